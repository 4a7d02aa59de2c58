"""The search for an edit that makes the failing tests pass, or for several, one after the other."""

import json
import math
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from agentflow.core.errors import ModelRejected
from agentflow.core.events import Searched
from agentflow.core.evidence import RED
from agentflow.core.record import Record
from agentflow.parse import Mismatch, fit
from agentflow.repair.bench import Bench, drive, open_copy
from agentflow.repair.candidates import Candidate, list_candidates, list_rivals
from agentflow.repair.choice import (
    COMPARE_SECONDS,
    LEAST_SECONDS,
    MOST_COMPARED,
    RepairChoice,
    VersionComparison,
    choose_repair,
    compare_survivors,
)
from agentflow.repair.clues import TestTrace, localise
from agentflow.repair.sources import apply_mutation
from agentflow.repair.target import ADVICE
from agentflow.repair.workers import End, Trial, Workers, open_workers
from agentflow.sandbox.throwaway import make_scratch_folder

SEARCH_SECONDS = 60.0
WATCH_SECONDS = 180.0
_TIMES_SLOW = 4
_MOST_MORE = 240.0
"""A search is given so many times more seconds as the failing tests take, at most these."""
_MOST_RIVALS = MOST_COMPARED - 1
_MOST_TOLD = 5
_MOST_KEPT = 4
"""Edits that are kept on the way to one that mends the rest."""
_PATIENCE = 300
"""Edits that are still tried once one has turned some of the failing tests green."""
_TELL_SECONDS = 0.5
_TEST_FILE = re.compile(r"(^|/)(test[^/]*|[^/]*_test)\.py$")
"""A file that may hold tests, whichever runner is used."""
_PASSES = "the failing tests pass in a copy of the repository"
_HANGS = (
    "the tests ran into their time limit, and in a copy of the repository each of them ends: "
    "give them more time with `timeouts` in config.yaml"
)


class SearchResult(Record):
    texts: Mapping[str, bytes] = {}
    """The files that the repair changes, as they are then; none where there is no repair."""
    titles: tuple[str, ...] = ()
    """The edits of the repair."""
    rivals: tuple[Candidate, ...] = ()
    """Edits that mend the same tests as one of the repair, and do something else."""
    differing: tuple[str, ...] = ()
    """For each of them an input on which it differs, and what both give."""
    kinds: Mapping[str, int] = {}
    """What sorts of edit were tried, and how many."""
    total: int = 0
    crashed: int = 0
    """The number of edits that ended the process that tried them."""
    hung: int = 0
    seconds: float = SEARCH_SECONDS
    """The seconds that the search was given."""
    is_late: bool = False
    nearest: Trial | None = None
    base: float = 0.0
    """How near the failing tests are without any edit."""

    @property
    def tried(self) -> int:
        return sum(self.kinds.values())

    @property
    def rival_lines(self) -> tuple[str, ...]:
        pairs = zip(self.rivals, self.differing, strict=True)
        return tuple(f"{rival.title} ({where})" for rival, where in pairs)[:_MOST_TOLD]


def trace_tests(bench: Bench, *, is_traced: bool = True) -> TestTrace:
    """Return what the tests do on the code as it was, with the lines that they execute.

    Raises ModelRejected when they cannot be run.
    """
    with open_copy(bench) as copy, make_scratch_folder() as folder:
        report = folder / "report.json"
        seconds = min(WATCH_SECONDS, bench.watch.seconds_left)
        finished = drive(bench, copy, folder, {"report": str(report), "traced": is_traced}, seconds)
        try:
            seen = fit(TestTrace, json.loads(report.read_bytes()))
        except (OSError, ValueError, Mismatch):
            said = finished.tail.strip().splitlines()[-1:] or ["they said nothing"]
            if finished.timed_out:  # the last line is just how far they came
                said = [f"they did not end within {seconds:.0f} s"]
            raise ModelRejected(f"the tests cannot be run in a copy: {said[0]}", hint=ADVICE) from None
    if not set(seen.outcomes.values()) & set(RED):
        raise ModelRejected(_HANGS if bench.target.hangs else _PASSES, hint=ADVICE)
    return seen


class _RoundResult(Record):
    left: Sequence[Candidate]
    """Edits that nobody tried, or only beside another one."""
    has_survivors: bool
    whole: RepairChoice | None = None
    """What mends everything."""
    part: RepairChoice | None = None
    """What mends some of the failing tests and breaks none."""


class _Judge(NamedTuple):
    bench: Bench
    seen: TestTrace
    workers: Workers
    confirmed: Candidate | None = None
    """The one that passes where everything is loaded anew."""
    is_part: bool = False
    """They pass a part of the failing tests."""

    def compare(self, edits: Sequence[Candidate]) -> VersionComparison:
        seconds = min(COMPARE_SECONDS, max(LEAST_SECONDS, self.bench.watch.seconds_left))
        return compare_survivors(
            self.bench.sources, edits, lambda order: self.workers.compare(order, edits[0], seconds)
        )


class Search:
    """One search: the edits that were rejected are left out, and it ends with its time."""

    def __init__(self, bench: Bench, rejected: Iterable[Mapping[str, bytes]]) -> None:
        self._bench = bench
        self._rejected = tuple(rejected)
        self._last_told = 0.0
        seconds = min(SEARCH_SECONDS, bench.watch.seconds_left)
        self._deadline = time.monotonic() + seconds
        self._result = SearchResult(seconds=seconds)

    def run(self, seen: TestTrace, candidates: tuple[Candidate, ...]) -> SearchResult:
        """Return the edits under which the tests that matter pass, or how near the search came.

        Raises ModelRejected, which names the error, when a worker crashes by itself, or too many do.
        """
        slow = sum(seen.durations.get(test, 0.0) for test in seen.reds)
        left = self._bench.watch.seconds_left - self._result.seconds
        more = max(0.0, min(_MOST_MORE, _TIMES_SLOW * slow, left))
        self._deadline += more
        self._result = self._result.replace(total=len(candidates), seconds=self._result.seconds + more)
        self._hunt(self._bench, seen, candidates, ())
        return self._result

    def _hunt(
        self, bench: Bench, seen: TestTrace, todo: Sequence[Candidate], kept: tuple[RepairChoice, ...]
    ) -> bool:
        may_keep = len(kept) < _MOST_KEPT
        while todo:
            found = self._try_some(bench, seen, todo, kept, may_keep=may_keep)
            if found.whole:
                self._win(bench, (*kept, found.whole))
                return True
            todo = found.left
            if found.has_survivors:
                continue
            if not found.part:
                return False
            following = keep_edit(bench, found.part.winner)
            again = trace_tests(following)
            places = localise(following.sources, again)
            more = list_candidates(following.sources, places, again)
            self._result = self._result.replace(total=self._result.total + len(more))
            if self._hunt(following, again, more, (*kept, found.part)):
                return True
            may_keep = False
        return False

    def _try_some(
        self,
        bench: Bench,
        seen: TestTrace,
        todo: Sequence[Candidate],
        kept: tuple[RepairChoice, ...],
        *,
        may_keep: bool,
    ) -> "_RoundResult":
        survivors, partial, last = list[Candidate](), list[Trial](), math.inf
        order = [each for each in todo if not self._is_rejected(bench, each)]
        count, once = 0, len(order)
        with open_workers(bench, seen, self._deadline) as workers:
            if not kept:
                self._result = self._result.replace(base=workers.base)
            for count, trial in enumerate(_try_in_turn(workers, order), 1):
                self._note(trial, is_again=count > once)
                if trial.is_plausible:
                    survivors = [trial.candidate]
                elif may_keep and trial.is_progress:
                    last = last if partial else count + _PATIENCE
                    most = len(partial[0].turned) if partial else 0
                    if len(trial.turned) > most:
                        partial = [trial]
                    elif {*trial.turned} == {*partial[0].turned}:  # the others pass other tests
                        partial.append(trial)
                if survivors or count >= last:
                    break
            is_late = not workers.seconds_left and count < len(order) and not survivors
            self._result = self._result.replace(is_late=is_late)
            found = _RoundResult(left=order[count:], has_survivors=bool(survivors))
            if survivors:  # the workers are free again
                survivors += self._find_rivals(workers, list_rivals(survivors[0], order[count:], count))
                return found.replace(
                    whole=self._choose(_Judge(bench, seen, workers, survivors[0]), survivors)
                )
            if partial and not is_late:
                first, *others = (each.candidate for each in partial)
                judge = _Judge(bench, seen, workers, is_part=True)
                return found.replace(part=self._choose(judge, (first, *list_rivals(first, others))))
        return found

    def _choose(self, judge: "_Judge", survivors: Sequence[Candidate]) -> RepairChoice | None:
        tests = {path for path in judge.bench.sources.files if _TEST_FILE.search(path)}
        files = judge.bench.target.files  # there may be others beside those that are run for each edit
        is_wide = not judge.is_part and bool(files) and not tests.issubset(files)
        confirm = self._pass_suite if is_wide and len(survivors) > 1 else _pass_anew
        return choose_repair(survivors, judge.compare, lambda edits: confirm(judge, edits))

    def _pass_suite(self, judge: "_Judge", edits: Sequence[Candidate]) -> Sequence[Candidate]:
        """Return the edits that break no test of the whole suite.

        One whose time is over before that is known stays.
        """
        whole = judge.bench.replace(target=judge.bench.target.replace(files=()))
        red = judge.seen.reds
        try:
            seen = trace_tests(whole, is_traced=False)
            with open_workers(whole, seen, self._deadline, is_warm=False) as workers:
                trials = tuple(workers.confirm(edits))
        except ModelRejected:  # the suite takes longer than is left
            return edits
        harmful = [each.candidate for each in trials if each.broke or not red <= {*each.turned}]
        return [each for each in edits if each not in harmful]

    def _find_rivals(self, workers: Workers, others: Sequence[Candidate]) -> Iterator[Candidate]:
        found = 0
        workers.confirms = False  # only those are confirmed that matter
        workers.is_all_or_none = True
        for trial in workers.try_edits(others):
            self._note(trial)
            if trial.is_plausible:
                found += 1
                yield trial.candidate
            if found >= _MOST_RIVALS:
                return

    def _note(self, trial: Trial, *, is_again: bool = False) -> None:
        found, now = self._result, time.monotonic()
        kinds = Counter(found.kinds)
        kinds[trial.candidate.mutation.kind] += not is_again
        self._result = found.replace(
            kinds=dict(kinds),
            crashed=found.crashed + (trial.end is End.CRASHED),
            hung=found.hung + (trial.end is End.HUNG) - is_again,
            nearest=trial if _is_nearer(trial, found.nearest) else found.nearest,
        )
        if now > self._last_told + _TELL_SECONDS:
            self._last_told, found, watch = now, self._result, self._bench.watch
            best = "" if found.nearest is None else found.nearest.candidate.title
            left = round(max(0.0, self._deadline - now), 1)
            watch.tell(
                Searched(run=watch.run, tried=found.tried, total=found.total, seconds_left=left, best=best)
            )

    def _is_rejected(self, bench: Bench, candidate: Candidate) -> bool:
        after = keep_edit(bench, candidate).sources if self._rejected else bench.sources
        return any(
            all(after.read(path) == raw for path, raw in rejected.items()) for rejected in self._rejected
        )

    def _win(self, bench: Bench, choices: tuple[RepairChoice, ...]) -> None:
        edits = tuple(each.winner for each in choices)
        after = keep_edit(bench, edits[-1]).sources
        paths = sorted({each.path for each in edits})
        self._result = self._result.replace(
            texts={path: after.overlay[path] for path in paths},
            titles=tuple(each.title for each in edits),
            rivals=tuple(rival for each in choices for rival in each.rivals),
            differing=tuple(where for each in choices for where in each.differing),
        )


def _try_in_turn(workers: Workers, order: list[Candidate]) -> Iterator[Trial]:
    """Yield what each edit does; one that does not end in a first round comes once more, last."""
    count = len(order)
    for trial in workers.try_edits(order[:count]):
        if workers.is_brief and trial.end is End.HUNG:
            order.append(trial.candidate)
        yield trial
    workers.is_brief = False
    yield from workers.try_edits(order[count:])


def keep_edit(bench: Bench, candidate: Candidate) -> Bench:
    sources = bench.sources
    after = apply_mutation(sources.read(candidate.path), candidate.mutation)
    return bench.replace(sources=sources.replace(overlay={**sources.overlay, candidate.path: after}))


def _pass_anew(judge: _Judge, edits: Sequence[Candidate]) -> Sequence[Candidate]:
    """Return the edits that mend as much in a process that loads everything anew; what is not known stays."""
    workers = judge.workers
    if workers.is_hurried or workers.kind == "fresh":
        return edits  # slow tests are run again for the first only
    trials = tuple(workers.confirm([each for each in edits if each != judge.confirmed]))
    failed = [
        each.candidate for each in trials if not (each.is_progress if judge.is_part else each.is_plausible)
    ]
    return [each for each in edits if each not in failed]


def _is_nearer(trial: Trial, other: Trial | None) -> bool:
    merits = [
        (each.is_plausible, len(each.turned), not each.broke, each.nearness)
        for each in (trial, other)
        if each
    ]
    return trial.end is End.RAN and merits[0] > max(merits[1:], default=(False, -1, False, 0.0))
