"""Which mutants tests notice: the order in which they are tried, and the result of each."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import zip_longest

from agentflow.core.evidence import Check
from agentflow.core.record import Record
from agentflow.core.verdict import MutantEnd
from agentflow.mutants.operators import Grade, Mutant


class TriedMutant(Record):
    mutant: Mutant
    outcome: MutantEnd
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
