"""The choice among edits that all make the tests pass: by what they do with inputs that no test has."""

import ast
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

from agentflow.core.record import Record
from agentflow.parse import Mismatch, fit
from agentflow.repair.candidates import Candidate
from agentflow.repair.sources import FunctionNode, Sources, apply_mutation, parse_code

COMPARE_SECONDS = 30.0
LEAST_SECONDS = 5.0
"""Also where the time of the search is over: edits that nobody compared are of little use."""
MOST_COMPARED = 16
_FAR = 3
"""The weight by which a rival may exceed the chosen edit; one more in doubt."""
_FAULTY = 4
"""The extra weight of an edit that leaves errors where another edit gives a result and leaves fewer."""
_ACCIDENT = "? "
"""How the outcome of a call begins that ends in an error which the code does not raise itself."""
_MISTAKES = frozenset(
    {"KeyError", "IndexError", "TypeError", "AttributeError", "ZeroDivisionError", "UnboundLocalError"}
)
_PART = " | "
"""Stands between what a call gives, what it leaves of its arguments, and a number for all of both."""
_SHOWN = 60
_GUESS = "a guess: only the failing tests name that value"


class VersionComparison(Record):
    """The behaviour of some versions with each of some inputs."""

    inputs: tuple[str, ...] = ()
    outcomes: tuple[tuple[str, ...], ...] = ()
    before: tuple[str, ...] = ()
    """What the code does that is to be repaired."""
    sizes: tuple[int, ...] = ()
    """The parts of the code of each version."""


class RepairChoice(Record):
    """The edit that is made, and those that would pass the same tests and do something else."""

    winner: Candidate
    rivals: tuple[Candidate, ...] = ()
    differing: tuple[str, ...] = ()
    """For each rival an input on which it differs, with what the chosen edit and the rival give."""


def choose_repair(
    survivors: Sequence[Candidate],
    compare: Callable[[Sequence[Candidate]], VersionComparison],
    confirm: Callable[[Sequence[Candidate]], Collection[Candidate]],
) -> RepairChoice | None:
    """Return the edit that most others agree with; edits that differ from it nowhere are no rivals.

    The edit and its rivals, and no others, have to be confirmed; None where none is.
    """
    left = tuple(survivors)[:MOST_COMPARED]
    seen = compare(left) if len(left) > 1 else VersionComparison()
    confirmed = set[Candidate]()
    while left:
        choice = rank_survivors(left, seen)
        asked = [each for each in (choice.winner, *choice.rivals) if each not in confirmed]
        confirmed |= {*confirm(asked)} if asked else set()
        if confirmed.issuperset(asked):
            return choice
        kept = [at for at, each in enumerate(left) if each in confirmed or each not in asked]
        left = tuple(left[at] for at in kept)
        seen = seen.replace(
            outcomes=tuple(seen.outcomes[at] for at in kept) if seen.outcomes else (),
            sizes=tuple(seen.sizes[at] for at in kept) if seen.sizes else (),
        )
    return None


def rank_survivors(survivors: Sequence[Candidate], seen: VersionComparison) -> RepairChoice:
    """Return the choice among survivors from what they do; an unknown one is a rival."""
    count = min((len(each) for each in seen.outcomes if each), default=0)
    vectors = [tuple(each[:count]) for each in seen.outcomes] or [() for _ in survivors]
    votes = [Counter(vector[at] for vector in vectors if vector) for at in range(count)]

    def place(index: int) -> tuple[bool, int, int, int, int, int, int]:
        """Rank by weight, by new errors, by how much code is added, then by how many versions agree."""
        vector, candidate = vectors[index], survivors[index]
        agreed = sum(votes[at][outcome] for at, outcome in enumerate(vector))
        weight = candidate.weight + (_FAULTY if index in faulty else 0)
        size = seen.sizes[index] if seen.sizes else 0
        return candidate.is_special, weight, candidate.cost, len(errors[index]), size, -agreed, index

    errors = [_find_errors(vector) for vector in vectors]
    if set[int]().union(*errors) >= _find_errors(seen.before[:count]):  # else the tests are about such errors
        errors = [found - _find_errors(seen.before) for found in errors]
    faulty = {
        at
        for at, found in enumerate(errors)
        for other, fewer in enumerate(errors)
        if fewer < found and vectors[other] and survivors[other].doubt < _FAR
    }

    best = min(range(len(survivors)), key=place)
    winner = survivors[best]
    most = winner.weight + _FAR + (winner.doubt > 0)
    others = [
        at
        for at, (vector, other) in enumerate(zip(vectors, survivors, strict=True))
        if (not vector or not vectors[best] or _find_differing(vectors[best], vector))
        and at != best
        and other.weight <= most
        and (winner.is_special or not other.is_special)
    ]
    guesses = ((winner, _GUESS),) if winner.is_special else ()
    found = (*((survivors[at], _describe(seen, vectors, best, at)) for at in others), *guesses)
    return RepairChoice(
        winner=winner,
        rivals=tuple(rival for rival, _ in found),
        differing=tuple(where for _, where in found),
    )


def _find_errors(vector: Sequence[str]) -> frozenset[int]:
    return frozenset(at for at, outcome in enumerate(vector) if outcome.removeprefix(_ACCIDENT) in _MISTAKES)


def _find_differing(mine: Sequence[str], theirs: Sequence[str]) -> list[int]:
    """Return the inputs with which an edit does another thing than the chosen one, and does not just fail."""
    pairs = enumerate(zip(mine, theirs, strict=False))
    return [at for at, (own, other) in pairs if own != other and not other.startswith(_ACCIDENT)]


def _describe(seen: VersionComparison, vectors: Sequence[tuple[str, ...]], best: int, other: int) -> str:
    mine, theirs = vectors[best], vectors[other]
    if not mine or not theirs:
        return "no input could be made to compare them"
    at = min(_find_differing(mine, theirs), key=lambda at: (len(seen.inputs[at]), at))
    own, another = (each[at].split(_PART) for each in (mine, theirs))
    if own[0] != another[0]:
        left, right = _shorten(own[0], another[0])
        return f"for {seen.inputs[at]} this one gives {left}, that one {right}"
    left, right = _shorten(own[1], another[1])
    return f"for {seen.inputs[at]} both give {own[0]}; this one leaves {left}, that one {right}"


def _shorten(one: str, other: str) -> tuple[str, str]:
    alike = next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), 0)
    start = 0 if max(len(one), len(other)) <= _SHOWN else max(0, alike - _SHOWN // 2)
    left, right = (
        f"{'…' * bool(start)}{each[start : start + _SHOWN]}{'…' * (len(each) > start + _SHOWN)}"
        for each in (one.removeprefix("! ").removeprefix(_ACCIDENT), other.removeprefix("! "))
    )
    return left, right


def compare_survivors(
    sources: Sources, survivors: Sequence[Candidate], run: Callable[[dict[str, Any]], object]
) -> VersionComparison:
    """Return how the survivors of one file treat inputs near the tests' own, if that can be found out.

    The tests run with the first of them: they reach more of the code that passes them, and do not hang in it.
    """
    paths = {each.path for each in survivors}
    if len(paths) != 1:
        return VersionComparison()
    (path,) = paths
    try:
        seen = fit(VersionComparison, run(make_order(sources.read(path), path, survivors)))
    except Mismatch:
        return VersionComparison()
    codes = (parse_code(apply_mutation(sources.read(path), each.mutation)) for each in survivors)
    sizes = tuple(
        sum(isinstance(node, ast.expr | ast.stmt) for node in ast.walk(code.tree)) if code else 0
        for code in codes
    )
    return seen.replace(outcomes=seen.outcomes[:-1], before=(*seen.outcomes[-1:], ())[0], sizes=sizes)


def make_order(raw: bytes, path: str, survivors: Sequence[Candidate]) -> dict[str, Any]:
    """Return what the driver is asked: versions of a file, its own last, and where the first is edited."""
    versions = [apply_mutation(raw, each.mutation) for each in survivors]
    before, after = (_list_functions(each) for each in (raw, versions[0]))
    lines = {each.mutation.line for each in survivors}
    are_alike = len(before) == len(after)
    edited = [at for at, each in enumerate(before) if lines & {*each}] if are_alike else []
    return {
        "path": path,
        "functions": [after[at].start for at in edited],
        "versions": [each.decode("utf-8", "replace") for each in (*versions, raw)],
    }


def _list_functions(raw: bytes) -> list[range]:
    code = parse_code(raw)
    return [
        range(min([node.lineno, *(each.lineno for each in node.decorator_list)]), (node.end_lineno or 0) + 1)
        for node in (ast.walk(code.tree) if code is not None else ())
        if isinstance(node, FunctionNode)
    ]
