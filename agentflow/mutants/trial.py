"""Which mutants tests notice: the order in which they are tried, and the result of each."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from enum import StrEnum
from itertools import zip_longest

from agentflow.core.evidence import Check
from agentflow.core.record import Record
from agentflow.mutants.operators import Grade, Mutant


class Outcome(StrEnum):
    KILLED = "killed"
    """A test fails on it that passes without it."""
    SURVIVED = "survived"
    NO_COVERAGE = "no coverage"
    """No test reaches it."""
    TIMED_OUT = "timed out"
    """Its run was ended by the limit, which shows nothing."""
    INVALID = "invalid"
    """It does not compile or load."""
    NOT_TRIED = "not tried"
    """No time was left."""


class TriedMutant(Record):
    mutant: Mutant
    outcome: Outcome
    killers: tuple[str, ...] = ()
    """The first tests that fail on it, where they are known."""


class MutantOrder(Record):
    """Mutants to try under the tests of a check."""

    check: Check
    passing: frozenset[str]
    """The tests that pass without a mutant: only these can kill."""
    first: frozenset[str]
    """Those that are tried before the others."""
    mutants: tuple[Mutant, ...]
    """In the order in which they are tried."""
    seconds: float
    """For all of them."""


class MutationResult(Record):
    """The mutants of a change, each with what tests make of it."""

    tried: tuple[TriedMutant, ...]
    unread: tuple[str, ...] = ()
    """Changed places that no grammar reads."""

    def select(self, *outcomes: Outcome) -> tuple[Mutant, ...]:
        return tuple(each.mutant for each in self.tried if each.outcome in outcomes)

    @property
    def unnoticed(self) -> tuple[Mutant, ...]:
        """Those that no test notices."""
        return self.select(Outcome.SURVIVED, Outcome.NO_COVERAGE)

    @property
    def survivors(self) -> tuple[Mutant, ...]:
        """Those that no test notices, the strong ones first, of one place at most two."""
        found = sorted(self.unnoticed, key=lambda each: (each.grade is Grade.WEAK, each.start))
        kept, counts = list[Mutant](), defaultdict[tuple[str, int], int](int)
        for each in found:
            counts[each.path, each.line] += 1
            if counts[each.path, each.line] <= _MOST_OF_A_LINE:
                kept.append(each)
        return tuple(kept)

    @property
    def is_open(self) -> bool:
        """True if a strong mutant survived, or nothing of the change could be read."""
        is_strong = any(each.grade is Grade.STRONG for each in self.unnoticed)
        return is_strong or (bool(self.unread) and not self.tried)


_MOST_OF_A_LINE = 2


def order_mutants(mutants: Iterable[Mutant]) -> tuple[Mutant, ...]:
    """Return mutants in the order in which they tell most: strong ones first, one of each line in turn."""
    rounds = dict[Grade, defaultdict[tuple[str, int], list[Mutant]]]()
    for each in mutants:
        rounds.setdefault(each.grade, defaultdict(list))[each.path, each.line].append(each)
    found = list[Mutant]()
    for grade in (each for each in Grade if each in rounds):
        for row in zip_longest(*rounds[grade].values()):
            found += [each for each in row if each is not None]
    return tuple(found)


def try_mutants(
    mutants: Iterable[Mutant],
    attempt: Callable[[Mutant], Outcome],
    seconds: float,
    now: Callable[[], float] = time.monotonic,
) -> tuple[TriedMutant, ...]:
    """Return the outcome of each mutant; none begins when the seconds are over."""
    end, found = now() + seconds, list[TriedMutant]()
    for mutant in order_mutants(mutants):
        outcome = attempt(mutant) if now() < end else Outcome.NOT_TRIED
        found.append(TriedMutant(mutant=mutant, outcome=outcome))
    return tuple(found)
