"""Workers that try edits in copies of the repository, one for each core, inside the sandbox."""

import itertools
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from agentflow.core.errors import ModelRejected
from agentflow.core.evidence import RED
from agentflow.core.record import Record
from agentflow.repair.bench import Bench, Driver, open_pristine
from agentflow.repair.candidates import Candidate
from agentflow.repair.clues import TestTrace
from agentflow.repair.target import RepairRunner

_SLOWER = 8
"""The factor by which the tests may take longer under an edit."""
_SHORTEST_CPU = (0.3, 1.0)
_SHORTEST_WALL = (2.0, 5.0)
"""Seconds that they may take in any case: the failing ones, and then the others."""
_BRIEFEST_CPU = 0.06
"""The same for the failing ones in a first round, where some of them never end as the code is."""
_START_SECONDS = 60.0
_MORE = 40.0
"""Seconds that a driver may go on after the time of the search, for a comparison."""
_MOST_CRASHES = 6
_MOST_SLEPT = 2.0
"""Seconds that the failing tests may ask to sleep before that is cut short."""
_MOST_GUARD_SECONDS = 5.0
"""Slow tests that passed are left to the program's own check."""
_AHEAD = 64
"""Edits that may be tried ahead of the one whose result is waited for, for each worker."""


class End(StrEnum):
    """The end of the try of an edit."""

    RAN = "ran"
    HUNG = "hung"
    """It took too long."""
    CRASHED = "crashed"
    """It ended the process that tried it."""


class Trial(Record):
    """The effect of an edit on the tests."""

    candidate: Candidate
    end: End = End.RAN
    turned: tuple[str, ...] = ()
    """Failing tests that pass now."""
    broke: tuple[str, ...] = ()
    """Tests that passed and do not now."""
    left: tuple[str, ...] = ()
    """Tests that are red and did not pass before either."""
    nearness: float = 0.0
    """How near the failing tests came to what they expect, from 0 to 1."""
    wanted: str = ""
    got: str = ""
    """What the nearest failure of them was about."""

    @property
    def is_plausible(self) -> bool:
        return bool(self.turned) and not self.broke and not self.left

    @property
    def is_progress(self) -> bool:
        return bool(self.turned) and not self.broke


class Worker:
    """One core's driver, opened once an edit needs it."""

    def __init__(self, crew: "Workers") -> None:
        self._crew = crew
        self._driver: Driver | None = None
        self._ready: dict[str, bool] = {}
        """True if a kind of server can try edits, once it has said so."""

    def attempt(self, candidate: Candidate | None, kind: str) -> tuple[dict[str, Any], str]:
        edit = None if candidate is None else _plain(candidate)
        answer = self._try_edit(kind, edit)
        if answer.get("end") == "stale":
            kind, answer = "fresh", self._try_edit("fresh", edit)
        return answer, kind

    def compare(self, order: Mapping[str, Any], first: Candidate, seconds: float) -> dict[str, Any]:
        is_cancelled = self._crew.bench.watch.cancelled
        driver = self.open("fresh", seconds, is_cancelled)
        if driver is None:
            return {}
        driver.tell("fresh", {"compare": order, "edit": _plain(first), "seconds": seconds})
        answer = driver.hear("fresh", seconds + _START_SECONDS, is_cancelled)
        if answer is None:
            self.close()
        return answer or {}

    def _try_edit(self, kind: str, edit: Mapping[str, Any] | None) -> dict[str, Any]:
        crew = self._crew
        driver = self.open(kind, crew.seconds_left, crew.is_over)
        if driver is None:
            return {"end": "stale" if kind == "warm" else "unready"}
        plan = crew.plan(kind)
        driver.tell(kind, {"edit": edit}, plan)
        answer = driver.hear(kind, sum(plan["wall"]) + _START_SECONDS, crew.is_over)
        if answer is not None:
            crew.crashed = 0
            return answer
        is_crash = driver.is_over and not crew.is_over()
        said = driver.read_last_line() if is_crash else ""
        self.close()
        if not is_crash:
            crew.is_stopped.set()
            return {"end": "unready"}
        crew.crashed += 1
        if crew.crashed >= _MOST_CRASHES:
            crew.is_stopped.set()
            raise ModelRejected(f"a worker of the search for a repair crashed: {said}")
        return {"end": "crashed"}

    def open(self, kind: str, seconds: float, is_vain: Callable[[], bool]) -> Driver | None:
        """Return the driver where its server of a kind can try edits. Raises ModelRejected for a crash."""
        crew = self._crew
        if self._driver is None:
            # what is compared may go on after the time of the search
            self._driver = Driver(crew.bench, crew.spec, crew.pool, max(seconds, crew.seconds_left) + _MORE)
        driver = self._driver
        if kind not in crew.spec["servers"]:
            return None
        if kind not in self._ready:
            hello = driver.hear(kind, _START_SECONDS, is_vain)
            if hello is None and driver.is_over and not is_vain():
                said = driver.read_last_line()
                self.close()
                raise ModelRejected(f"a worker of the search for a repair crashed: {said}")
            if hello is None:
                return None
            self._ready[kind] = bool(hello["ready"])
        return driver if self._ready[kind] else None

    def close(self) -> None:
        self._ready.clear()
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.close()


def _plain(candidate: Candidate) -> dict[str, Any]:
    edit = candidate.mutation
    return {"path": candidate.path, "start": edit.start, "end": edit.end, "text": edit.text}


class Workers:
    """All cores' workers."""

    def __init__(
        self, bench: Bench, seen: TestTrace, pristine: Path, pool: ThreadPoolExecutor, deadline: float
    ) -> None:
        self.bench = bench
        self.pool = pool
        self.deadline = deadline
        self.crashed = 0
        """Drivers that ended in a row, with no answer between."""
        self.is_stopped = threading.Event()
        self.failing = tuple(test for test, outcome in seen.outcomes.items() if outcome in RED)
        self.passed = tuple(test for test, outcome in seen.outcomes.items() if outcome == "passed")
        is_pytest = bench.target.runner is RepairRunner.PYTEST
        self.loading = tuple(
            test for test in self.failing if (is_pytest and "::" not in test) or "_FailedTest" in test
        )
        """Those that stand for tests which could not be loaded."""
        self.ending = tuple(test for test in self.failing if test not in set(seen.slow))
        """Those that end by themselves; the others are red because they do not."""
        self.kind = "warm"
        self.is_hurried = False
        """Sleeps end at once in a warm worker."""
        self.is_brief = False
        """A first round is on: edits under which the tests do not end soon may be tried again."""
        self.brief: list[float] = []
        """The limits of processor time in it."""
        self.is_all_or_none = False
        """An edit that leaves one of the failing tests red is given up at once."""
        self.confirms = True
        """What looks plausible in a warm worker is tried in a fresh one too."""
        loaded: dict[str, list[int]] = {}
        for path, line in seen.lines.get("", ()):
            loaded.setdefault(path, []).append(line)
        self.spec: dict[str, Any] = {
            "pristine": str(pristine),
            "loaded": loaded,
            "paths": sorted(loaded),
            "servers": ("fresh",) if self.loading else ("warm", "fresh"),
        }
        self.plans: dict[str, dict[str, Any]] = {"fresh": _plan_fresh(seen, self.failing)}
        self.base = 0.0
        """How near the failing tests are without any edit."""
        count = os.cpu_count() or 1
        self._workers = [Worker(self) for _ in range(count)]
        self._idle = SimpleQueue[Worker]()
        for worker in self._workers:
            self._idle.put(worker)
        self._trying = ThreadPoolExecutor(count)
        self._warming: list[Future[Driver | None]] = []
        self._ahead: dict[tuple[Candidate, str], Trial] = {}
        """Trials that nobody has waited for yet."""

    @property
    def seconds_left(self) -> float:
        return max(0.0, self.deadline - time.monotonic())

    def is_over(self) -> bool:
        return self.is_stopped.is_set() or self.bench.watch.cancelled() or not self.seconds_left

    def plan(self, kind: str) -> dict[str, Any]:
        brief = {"cpu": self.brief} if self.is_brief and kind == "warm" else {}
        return {**self.plans[kind], **brief, "is_all_or_none": self.is_all_or_none}

    def prepare(self, seen: TestTrace) -> None:
        """Run the tests in a warm worker as they are, to know how long they take; else only fresh ones do."""
        guards = [test for test in self.passed if seen.durations.get(test, 0.0) < _MOST_GUARD_SECONDS]
        first = [10 * part for part in self.plans["fresh"]["wall"]]
        plan: dict[str, Any] = {"failing": self.ending, "guards": guards, "cpu": first, "wall": first}
        self.is_hurried = sum(seen.sleeps.get(test, 0.0) for test in self.ending) > _MOST_SLEPT
        if not self.loading:
            opening = ("warm", self.seconds_left, self.is_over)
            self._warming = [self.pool.submit(each.open, *opening) for each in self._workers[1:]]
        if not (answer := self._try_as_is({**plan, "hurried": self.is_hurried})) and self.is_hurried:
            self.is_hurried = False
            self._workers[0].close()
            answer = self._try_as_is(plan)
        for each in self._warming:
            each.result()
        if not answer:
            self.kind = "fresh"
            return
        outcomes = answer["outcomes"]
        plan = {
            **plan,
            "hurried": self.is_hurried,
            "failing": self.failing,
            "guards": [test for test in guards if outcomes.get(test) == "passed"],
            "cpu": [
                max(least, _SLOWER * took) for least, took in zip(_SHORTEST_CPU, answer["cpu"], strict=True)
            ],
            "wall": [
                max(least, _SLOWER * took) for least, took in zip(_SHORTEST_WALL, answer["wall"], strict=True)
            ],
        }
        self.plans["warm"] = plan
        usual = answer["cpu"][0] + answer["cpu"][1] / max(1, len(guards))
        self.brief = [min(plan["cpu"][0], _BRIEFEST_CPU + _SLOWER * usual), plan["cpu"][1]]
        self.is_brief = self.ending != self.failing
        self.base = self._near(answer["near"], 0)[0]

    def _try_as_is(self, plan: dict[str, Any]) -> dict[str, Any]:
        """Return what a warm worker says of the code as it is; nothing where that fails otherwise there."""
        self.plans["warm"] = plan
        answer, kind = self._workers[0].attempt(None, "warm") if not self.loading else ({}, "fresh")
        outcomes = answer.get("outcomes", {})
        return answer if kind == "warm" and all(outcomes.get(test) in RED for test in self.ending) else {}

    def try_edits(self, candidates: Iterable[Candidate]) -> Iterator[Trial]:
        """Yield what each edit does, in order; end early when the time is over.

        What looks plausible in a warm worker has been tried in a fresh one too, as long as it `confirms`.
        """
        yield from self._spread(candidates, self.kind)

    def compare(self, order: Mapping[str, Any], first: Candidate, seconds: float) -> dict[str, Any]:
        return self._workers[0].compare(order, first, seconds)

    def confirm(self, candidates: Iterable[Candidate]) -> Iterator[Trial]:
        """Yield what each edit does in a process that loads everything anew, in order."""
        yield from self._spread(candidates, "fresh")

    def _spread(self, candidates: Iterable[Candidate], kind: str) -> Iterator[Trial]:
        todo, waiting = iter(candidates), deque[Future[Trial | None]]()
        closed = threading.Event()
        try:
            while True:
                for candidate in itertools.islice(todo, _AHEAD * len(self._workers) - len(waiting)):
                    waiting.append(self._trying.submit(self._take_turn, candidate, kind, closed))
                trial = waiting.popleft().result() if waiting else None
                if trial is None:
                    closed.set()
                    for done in waiting:
                        done.result()  # it raises where a worker crashed
                    return
                yield trial
        finally:
            closed.set()
            for done in waiting:
                if done.exception() is None and (trial := done.result()):
                    self._ahead[trial.candidate, kind] = trial

    def _take_turn(self, candidate: Candidate, kind: str, closed: threading.Event) -> Trial | None:
        """Try an edit with an idle worker; None where nobody waits any more."""
        if known := self._ahead.pop((candidate, kind), None):
            return known
        if closed.is_set() or self.is_over():
            return None
        worker = self._idle.get()
        try:
            return self._try(worker, candidate, kind)
        finally:
            self._idle.put(worker)

    def _try(self, worker: Worker, candidate: Candidate, kind: str) -> Trial | None:
        answer, used = worker.attempt(candidate, kind)
        if answer["end"] == "unready":
            return None
        trial = self._judge(candidate, answer, used)
        is_open = trial.is_plausible and used == "warm" and self.confirms
        return self._try(worker, candidate, "fresh") if is_open else trial

    def _judge(self, candidate: Candidate, answer: Mapping[str, Any], kind: str) -> Trial:
        if answer["end"] != End.RAN:
            return Trial(candidate=candidate, end=End(answer["end"]), left=self.failing)
        outcomes: dict[str, str] = answer["outcomes"]
        is_done, here = answer["is_done"], set(answer.get("ids", ()))
        red = {test for test, outcome in outcomes.items() if outcome in RED}
        plan = self.plans[kind]
        guards = set(plan["guards"] if kind == "warm" else self.passed) - set(plan.get("skip", ()))
        gone = guards - here if is_done and here else set()
        loaded = {test for test in self.loading if is_done and test not in outcomes}
        turned = [test for test in self.failing if test in loaded or outcomes.get(test) == "passed"]
        broke = sorted((red & guards) | gone)
        left = sorted((red | set(self.failing)) - guards - set(turned))
        near, wanted, got = self._near(answer.get("near", {}), len(turned))
        return Trial(
            candidate=candidate,
            turned=tuple(turned) if is_done else (),
            broke=tuple(broke),
            left=tuple(left),
            nearness=near,
            wanted=wanted,
            got=got,
        )

    def _near(self, near: Mapping[str, list[Any]], turned: int) -> tuple[float, str, str]:
        """Return how near the failing tests are, and what the one that is the nearest to green was about."""
        known = [near[test] for test in self.failing if test in near]
        if not known:
            return (turned / max(1, len(self.failing)), "", "")
        best = max(known, key=lambda each: each[0])
        total = turned + sum(each[0] for each in known)
        return (round(total / max(1, turned + len(known)), 4), best[1], best[2])

    def close(self) -> None:
        self.is_stopped.set()
        self._trying.shutdown()
        wait(self._warming)  # what they open is closed as well
        for worker in self._workers:
            worker.close()


def _plan_fresh(seen: TestTrace, failing: tuple[str, ...]) -> dict[str, Any]:
    first = 1.0 + _SLOWER * (seen.load + sum(seen.durations.get(test, 0.0) for test in failing))
    rest = 1.0 + _SLOWER * sum(seen.durations.values())
    return {
        "failing": failing,
        "skip": (*seen.slow, *seen.unwatched),
        "cpu": (first, rest),
        "wall": (first * 3, rest * 3),
    }


@contextmanager
def open_workers(
    bench: Bench, seen: TestTrace, deadline: float, *, is_warm: bool = True
) -> Iterator[Workers]:
    """Yield the workers; no process and no file of theirs stays."""
    count = os.cpu_count() or 1
    with open_pristine(bench) as (pristine, layered), ThreadPoolExecutor(4 * count) as pool:
        workers = Workers(layered, seen, pristine, pool, deadline)
        try:
            if is_warm:
                workers.prepare(seen)
            else:
                workers.kind, workers.spec["servers"] = "fresh", ("fresh",)
            yield workers
        finally:
            workers.close()
