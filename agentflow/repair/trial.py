"""The effect of an edit on the tests, and the trials of several workers in the order of their edits."""

import itertools
import threading
from collections.abc import Iterable, Iterator
from enum import StrEnum

from agentflow.core.record import Record
from agentflow.repair.candidates import Candidate


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
        """Return whether all that failed passes, and all that passed."""
        return bool(self.turned) and not self.broke and not self.left

    @property
    def is_progress(self) -> bool:
        return bool(self.turned) and not self.broke


class TrialQueue:
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

    def list_untaken(self) -> tuple[Trial, ...]:
        """Return the results that nobody took."""
        return tuple(trial for trial in self._done.values() if trial is not None)

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
