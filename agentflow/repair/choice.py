"""The choice among edits that all make the tests pass: by what they do with inputs that no test has."""

import ast
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from agentflow.core.record import Record
from agentflow.parse import Mismatch, fit
from agentflow.repair.bench import Bench, drive, open_copy
from agentflow.repair.candidates import Candidate
from agentflow.repair.sources import FunctionNode, apply_mutation, parse_code
from agentflow.sandbox.throwaway import scratch_folder

COMPARE_SECONDS = 30.0
LEAST_SECONDS = 5.0
"""Also where the time of the search is over: edits that nobody compared are of little use."""

MOST_COMPARED = 16

_DOUBT: Mapping[str, int] = {
    **dict.fromkeys(("missing call", "missing statement"), 1),
    **dict.fromkeys(("constant", "extra operand", "other expression", "missing term", "wrong access"), 2),
    **dict.fromkeys(("extra increment", "extra guard"), 2),
    **dict.fromkeys(("missing guard", "missing bound", "missing increment", "missing decrement"), 3),
    **dict.fromkeys(("missing slice",), 3),
}
"""How much of a step heavier an edit counts that passes a test by chance more often than a name does."""

_STEP = 2

_FAR = 3
"""How much heavier than the chosen edit a rival of it is at most; one more in doubt."""

_FAULTY = 4
"""How much heavier an edit counts that leaves errors where another edit gives a result and leaves fewer."""

_UNMEANT = frozenset(
    {"KeyError", "IndexError", "TypeError", "AttributeError", "ZeroDivisionError", "UnboundLocalError"}
)

_GUESS = "a guess: only the failing tests name that value"


class Compared(Record):
    """What each of some versions does with each of some inputs."""

    inputs: tuple[str, ...] = ()
    outcomes: tuple[tuple[str, ...], ...] = ()


class RepairChoice(Record):
    """The edit that is made, and those that would pass the same tests and do something else."""

    winner: Candidate
    rivals: tuple[Candidate, ...] = ()
    differing: tuple[str, ...] = ()
    """For each rival an input on which it differs, with what the chosen edit and the rival give."""


def choose_repair(bench: Bench, survivors: Sequence[Candidate]) -> RepairChoice:
    """Return the edit that most others agree with; edits that differ from it nowhere are no rivals."""
    compared = tuple(survivors)[:MOST_COMPARED]
    seen = _compare(bench, compared) if len(compared) > 1 else Compared()
    return rank_survivors(compared, seen)


def rank_survivors(survivors: Sequence[Candidate], seen: Compared) -> RepairChoice:
    """Return the choice among survivors from what they do; an unknown one is a rival."""
    count = min((len(each) for each in seen.outcomes if each), default=0)
    vectors = [tuple(each[:count]) for each in seen.outcomes] or [() for _ in survivors]
    votes = [Counter(vector[at] for vector in vectors if vector) for at in range(count)]

    def place(index: int) -> tuple[bool, int, int, int, int, int]:
        """Rank by weight, then by how few inputs end in an error, then by how many versions agree."""
        vector, candidate = vectors[index], survivors[index]
        agreed = sum(votes[at][outcome] for at, outcome in enumerate(vector))
        weight = _weigh(candidate) + (_FAULTY if index in faulty else 0)
        return candidate.is_special, weight, candidate.cost, len(errors[index]), -agreed, index

    errors = [_find_errors(vector) for vector in vectors]
    faulty = {
        at
        for at, found in enumerate(errors)
        for other, fewer in enumerate(errors)
        if fewer < found and vectors[other] and _find_doubt(survivors[other]) < _FAR
    }

    best = min(range(len(survivors)), key=place)
    winner = survivors[best]
    others = [
        at
        for at, vector in enumerate(vectors)
        if (not vector or vector != vectors[best]) and is_rival(survivors[at], winner)
    ]
    guesses = ((winner, _GUESS),) if winner.is_special else ()
    found = (*((survivors[at], _describe(seen, vectors, best, at)) for at in others), *guesses)
    return RepairChoice(
        winner=winner,
        rivals=tuple(rival for rival, _ in found),
        differing=tuple(where for _, where in found),
    )


def _find_errors(vector: Sequence[str]) -> frozenset[int]:
    """Return the inputs that end in an error of the sort that nobody means."""
    return frozenset(at for at, outcome in enumerate(vector) if outcome.removeprefix("! ") in _UNMEANT)


def is_rival(other: Candidate, chosen: Candidate) -> bool:
    """Say whether an edit might be meant as well as the chosen one: no odder, and not that one and more."""
    if other == chosen or (other.is_special and not chosen.is_special):
        return False
    parts = [frozenset(each.mutation.note.split("; ")) for each in (chosen, other)]
    far = _FAR + (_find_doubt(chosen) > 0)
    return not parts[0] < parts[1] and _weigh(other) <= _weigh(chosen) + far


def _weigh(candidate: Candidate) -> int:
    """Return how unusual an edit is, the more so where it fits a test by chance."""
    return _STEP * candidate.cost + _find_doubt(candidate)


def _find_doubt(candidate: Candidate) -> int:
    return max(_DOUBT.get(kind, 0) for kind in candidate.mutation.kind.split(" and "))


def _describe(seen: Compared, vectors: Sequence[tuple[str, ...]], best: int, other: int) -> str:
    if not vectors[best] or not vectors[other]:
        return "no input could be made to compare them"
    pairs = zip(seen.inputs, vectors[best], vectors[other], strict=False)
    text, mine, theirs = next(each for each in pairs if each[1] != each[2])
    return f"{text} gives {_shorten(mine)}, or {_shorten(theirs)}"


def _shorten(outcome: str) -> str:
    if outcome.startswith("! "):
        return outcome[2:]
    result = outcome.partition(" | ")[0]
    return result if len(result) <= 60 else f"{result[:60]}…"


def _compare(bench: Bench, survivors: Sequence[Candidate]) -> Compared:
    """Return what the survivors of one file do with inputs near those of the tests, if that can be told."""
    paths = {each.path for each in survivors}
    if len(paths) != 1:
        return Compared()
    (path,) = paths
    order = make_order(bench.sources.read(path), path, survivors)
    # the tests reach more of the code that passes them, and do not hang in it
    overlay = {**bench.sources.overlay, path: order["versions"][0].encode()}
    bench = bench.replace(sources=bench.sources.replace(overlay=overlay))
    with open_copy(bench) as copy, scratch_folder() as folder:
        report = folder / "report.json"
        seconds = min(COMPARE_SECONDS, max(LEAST_SECONDS, bench.watch.seconds_left))
        drive(bench, copy, folder, {"report": str(report), "compare": order}, seconds)
        try:
            return fit(Compared, json.loads(report.read_bytes()))
        except (OSError, ValueError, Mismatch):
            return Compared()


def make_order(raw: bytes, path: str, survivors: Sequence[Candidate]) -> dict[str, Any]:
    """Return what the driver is asked: versions of a file, and where the first has the functions edited."""
    versions = [apply_mutation(raw, each.mutation) for each in survivors]
    before, after = (_list_functions(each) for each in (raw, versions[0]))
    lines = {each.mutation.line for each in survivors}
    are_alike = len(before) == len(after)
    edited = [at for at, each in enumerate(before) if lines & {*each}] if are_alike else []
    return {
        "path": path,
        "functions": [after[at].start for at in edited],
        "versions": [each.decode("utf-8", "replace") for each in versions],
    }


def _list_functions(raw: bytes) -> list[range]:
    """Return the lines of each function of a file."""
    code = parse_code(raw)
    return [
        range(min([node.lineno, *(each.lineno for each in node.decorator_list)]), (node.end_lineno or 0) + 1)
        for node in (ast.walk(code.tree) if code is not None else ())
        if isinstance(node, FunctionNode)
    ]
