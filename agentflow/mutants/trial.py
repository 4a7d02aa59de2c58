"""Which mutants tests notice: the order in which they are tried, and the result of each."""

from collections import Counter
from collections.abc import Iterable

from agentflow.core.evidence import Check
from agentflow.core.record import Record
from agentflow.core.verdict import MutantEnd
from agentflow.mutants.operators import Grade, Mutant

_MOST_OF_A_LINE = 200
"""A sum of two thousand parts has eight thousand mutants."""
_Ranked = tuple[tuple[bool, bool, int], Mutant]


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
    strong: frozenset[Mutant]
    """Those that decide: the rest of the tests runs only for these, since it takes longest."""
    seconds: float
    """For all of them."""


def order_mutants(mutants: Iterable[Mutant]) -> tuple[Mutant, ...]:
    """Return mutants, those that tell most first: strong ones, one of each block, then of each line."""
    blocks, lines, ranked = set[tuple[str, int, Grade]](), Counter[tuple[str, int]](), list[_Ranked]()
    for each in mutants:
        block, line = (each.path, each.block, each.grade), (each.path, each.line)
        ranked.append(((each.grade is Grade.WEAK, block in blocks, lines[line]), each))
        blocks.add(block)
        lines[line] += 1
    kept = (pair for pair in ranked if pair[0][2] < _MOST_OF_A_LINE)
    return tuple(each for _, each in sorted(kept, key=lambda pair: pair[0]))
