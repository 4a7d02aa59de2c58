"""Workers that try edits in copies of the repository, one for each core, inside the sandbox."""

import itertools
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any

from agentflow.core.errors import ModelRejected
from agentflow.core.evidence import RED
from agentflow.core.record import Record
from agentflow.repair.bench import Bench, Channel, open_pristine
from agentflow.repair.candidates import Candidate
from agentflow.repair.locate import TestTrace
from agentflow.repair.target import RepairRunner

_SLOWER = 8
"""How many times longer than before the tests may take under an edit."""
_SHORTEST_CPU = (0.3, 1.0)
_SHORTEST_WALL = (2.0, 5.0)
"""Seconds that they may take in any case: the failing ones, and then the others."""
_BRIEFEST_CPU = 0.06
"""The same for the failing ones in a first round, where some of them never end as the code is."""
_START_SECONDS = 60.0
_MOST_CRASHES = 6
_MOST_SLEPT = 2.0
"""Seconds that the failing tests may ask to sleep before that is cut short."""
_MOST_GUARD_SECONDS = 5.0
"""Slow tests that passed are left to the program's own check."""
_TICK = 0.05
_AHEAD = 64
"""Edits that may be tried ahead of the one whose result is waited for, for each worker."""


class End(StrEnum):
    """How the try of an edit ended."""

    RAN = "ran"
    HUNG = "hung"
    """It took too long."""
    CRASHED = "crashed"
    """It ended the process that tried it."""


class Trial(Record):
    """What an edit did to the tests."""

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
        """Tell whether all that failed passes, and all that passed."""
        return bool(self.turned) and not self.broke and not self.left

    @property
    def is_progress(self) -> bool:
        return bool(self.turned) and not self.broke


class Worker:
    """One core's warm driver, and its fresh one once an edit needs it."""

    def __init__(self, crew: "Workers") -> None:
        self._crew = crew
        self._channels: dict[str, Channel] = {}

    def attempt(self, candidate: Candidate | None, kind: str) -> tuple[dict[str, Any], str]:
        """Return the answer to an edit and the kind of driver that gave it."""
        edit = None if candidate is None else _plain(candidate)
        answer = self._ask(kind, edit)
        if answer.get("end") == "stale":
            kind, answer = "fresh", self._ask("fresh", edit)
        return answer, kind

    def warm_up(self) -> None:
        """Load the tests and the code before the first edit comes."""
        self._open("warm")

    def _ask(self, kind: str, edit: Mapping[str, Any] | None) -> dict[str, Any]:
        crew = self._crew
        channel = self._channels.get(kind) or self._open(kind)
        if channel is None:
            return {"end": "stale" if kind == "warm" else "unready"}
        brief = {"cpu": crew.brief} if crew.is_brief and kind == "warm" else {}
        plan = {**crew.plans[kind], **brief, "is_all_or_none": crew.is_all_or_none}
        channel.plan(plan)
        channel.tell({"edit": edit})
        seconds = sum(plan["wall"]) + _START_SECONDS
        answer = channel.hear(time.monotonic() + seconds, crew.is_over)
        if answer is not None:
            crew.crashed = 0
            return answer
        del self._channels[kind]
        if crew.is_over() or not channel.is_over:
            self._crew.is_stopped.set()
            channel.close()
            return {"end": "unready"}
        crew.note_crash(channel.last_words())
        channel.close()
        return {"end": "crashed"}

    def _open(self, kind: str) -> Channel | None:
        crew = self._crew
        channel = Channel(crew.bench, {**crew.spec, "serve": kind}, crew.pool, crew.seconds_left)
        hello = channel.hear(time.monotonic() + _START_SECONDS, crew.is_over)
        if hello is None and channel.is_over and not crew.is_over():
            said = channel.last_words()
            channel.close()
            raise ModelRejected(f"a worker of the search for a repair crashed: {said}")
        if hello is None or not hello["ready"]:
            channel.close()
            return None
        self._channels[kind] = channel
        return channel

    def close(self) -> None:
        for channel in self._channels.values():
            channel.close()


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
        self.spec = {"pristine": str(pristine), "loaded": loaded, "paths": sorted(loaded)}
        self.plans: dict[str, dict[str, Any]] = {"fresh": _plan_fresh(seen, self.failing)}
        self.base = 0.0
        """How near the failing tests are without any edit."""
        count = os.cpu_count() or 1
        self._workers = [Worker(self) for _ in range(count)]
        self._warming: list[Future[None]] = []

    @property
    def seconds_left(self) -> float:
        return max(0.0, self.deadline - time.monotonic())

    def is_over(self) -> bool:
        return self.is_stopped.is_set() or self.bench.watch.cancelled() or not self.seconds_left

    def note_crash(self, said: str) -> None:
        self.crashed += 1
        if self.crashed >= _MOST_CRASHES:
            self.is_stopped.set()
            raise ModelRejected(f"a worker of the search for a repair crashed: {said}")

    def prepare(self, seen: TestTrace) -> None:
        """Run the tests in a warm worker as they are, to know how long they take; else only fresh ones do."""
        guards = [test for test in self.passed if seen.took.get(test, 0.0) < _MOST_GUARD_SECONDS]
        first = [10 * part for part in self.plans["fresh"]["wall"]]
        plan: dict[str, Any] = {"failing": self.ending, "guards": guards, "cpu": first, "wall": first}
        self.is_hurried = sum(seen.slept.get(test, 0.0) for test in self.ending) > _MOST_SLEPT
        if not self.loading:
            self._warming = [self.pool.submit(each.warm_up) for each in self._workers[1:]]
        if not (answer := self._try_as_is({**plan, "hurried": self.is_hurried})) and self.is_hurried:
            self.is_hurried = False
            self._workers[0].close()
            self._workers[0] = Worker(self)
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
            "cpu": _slow_down(_SHORTEST_CPU, answer["cpu"]),
            "wall": _slow_down(_SHORTEST_WALL, answer["wall"]),
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

    def confirm(self, candidates: Iterable[Candidate]) -> Iterator[Trial]:
        """Yield what each edit does in a process that loads everything anew, in order."""
        yield from self._spread(candidates, "fresh")

    def _spread(self, candidates: Iterable[Candidate], kind: str) -> Iterator[Trial]:
        queue = _Queue(candidates, _AHEAD * len(self._workers), len(self._workers))
        running = [self.pool.submit(self._work, worker, queue, kind) for worker in self._workers]
        try:
            yield from queue.take_all()
            for each in running:
                each.result()
        finally:
            queue.is_closed.set()
            wait(running)

    def _work(self, worker: Worker, queue: "_Queue", kind: str) -> None:
        """Try one edit after the other until there is none, or nobody waits any more."""
        try:
            while not queue.is_closed.is_set() and not self.is_over():
                if not queue.room.acquire(timeout=_TICK):
                    continue
                number, candidate = queue.give()
                if candidate is None:
                    return
                queue.put(number, self._try(worker, candidate, kind))
        finally:
            queue.leave()

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
        wait(self._warming)  # what they open is closed as well
        for worker in self._workers:
            worker.close()


class _Queue:
    """Edits that several workers take from, and their results in the order of the edits."""

    def __init__(self, candidates: Iterable[Candidate], room: int, workers: int) -> None:
        self.room = threading.Semaphore(room)
        self.is_closed = threading.Event()
        self._todo = iter(candidates)
        self._given = itertools.count()
        self._done: dict[int, Trial | None] = {}
        self._news = threading.Condition()
        self._open = workers

    def give(self) -> tuple[int, Candidate | None]:
        with self._news:
            return next(self._given), next(self._todo, None)

    def put(self, number: int, trial: Trial | None) -> None:
        with self._news:
            self._done[number] = trial
            self._news.notify()

    def leave(self) -> None:
        with self._news:
            self._open -= 1
            self._news.notify()

    def take_all(self) -> Iterator[Trial]:
        """Yield the results in order, until one is missing."""
        for number in itertools.count():
            with self._news:
                self._news.wait_for(lambda: number in self._done or not self._open)  # noqa: B023
                trial = self._done.pop(number, None)
            if trial is None:
                return
            self.room.release()
            yield trial


def _plan_fresh(seen: TestTrace, failing: tuple[str, ...]) -> dict[str, Any]:
    """Return which tests are run where everything is loaded anew, and how long they may take."""
    first = 1.0 + _SLOWER * (seen.load + sum(seen.took.get(test, 0.0) for test in failing))
    rest = 1.0 + _SLOWER * sum(seen.took.values())
    return {
        "failing": failing,
        "skip": (*seen.slow, *seen.unwatched),
        "cpu": (first, rest),
        "wall": (first * 3, rest * 3),
    }


def _slow_down(shortest: Iterable[float], took: Iterable[float]) -> list[float]:
    """Return how long the parts of a try may take."""
    return [max(least, _SLOWER * each) for least, each in zip(shortest, took, strict=True)]


@contextmanager
def open_workers(bench: Bench, seen: TestTrace, deadline: float) -> Iterator[Workers]:
    """Yield the workers; no process and no file of theirs stays."""
    count = os.cpu_count() or 1
    with open_pristine(bench) as (pristine, layered), ThreadPoolExecutor(4 * count) as pool:
        workers = Workers(layered, seen, pristine, pool, deadline)
        try:
            workers.prepare(seen)
            yield workers
        finally:
            workers.close()
