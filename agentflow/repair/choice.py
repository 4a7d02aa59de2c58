"""The choice among edits that all make the tests pass: by what they do with inputs that no test has."""

import ast
import json
import re
from collections import Counter
from collections.abc import Sequence

from agentflow.core.record import Record
from agentflow.parse import Mismatch, fit
from agentflow.repair.bench import Bench, drive, open_copy
from agentflow.repair.candidates import Candidate
from agentflow.repair.sources import FunctionNode, apply_mutation, parse_code
from agentflow.sandbox.throwaway import scratch_folder

COMPARE_SECONDS = 30.0

MOST_COMPARED = 16

_LATE = frozenset(
    (
        "constant",
        "missing increment",
        "missing decrement",
        "extra increment",
        "extra operand",
        "missing bound",
    )
)
"""Kinds that make a test pass by chance more often than an operator or a name does."""

_LITERAL = re.compile(r"-?\d+(?:\.\d+)?|'[^']*'|\"[^\"]*\"")

_HARMLESS = frozenset({"0", "1", "2", "-1", "''", '""', "' '", '" "'})

_GUARDS = ("missing guard", "missing bound", "missing condition", "return value")


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
    if len(compared) == 1:
        return RepairChoice(winner=compared[0])
    seen = _compare(bench, compared)
    return rank_survivors(compared, seen, _find_test_literals(bench))


def rank_survivors(survivors: Sequence[Candidate], seen: Compared, tested: frozenset[str]) -> RepairChoice:
    """Return the choice among survivors from what they do; an unknown one is a rival."""
    count = min((len(each) for each in seen.outcomes if each), default=0)
    vectors = [tuple(each[:count]) for each in seen.outcomes] or [() for _ in survivors]
    votes = [Counter(vector[at] for vector in vectors if vector) for at in range(count)]

    def place(index: int) -> tuple[bool, int, int, int, int]:
        """Rank by cost, then by how few inputs end in an error, then by how many versions agree."""
        vector, candidate = vectors[index], survivors[index]
        agreed = sum(votes[at][outcome] for at, outcome in enumerate(vector))
        errors = sum(outcome.startswith("! ") for outcome in vector)
        is_late = not _LATE.isdisjoint(candidate.mutation.kind.split(" and "))
        return is_special(candidate, tested), candidate.cost + is_late, errors, -agreed, index

    best = min(range(len(survivors)), key=place)
    others = [
        at for at, vector in enumerate(vectors) if at != best and (not vector or vector != vectors[best])
    ]
    return RepairChoice(
        winner=survivors[best],
        rivals=tuple(survivors[at] for at in others),
        differing=tuple(_describe(seen, vectors, best, at) for at in others),
    )


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


def is_special(candidate: Candidate, tested: frozenset[str]) -> bool:
    """Say whether an edit names a value of the failing tests where only these ask for it."""
    edit = candidate.mutation
    if not any(kind in _GUARDS for kind in edit.kind.split(" and ")):
        return False
    return bool(({*_LITERAL.findall(edit.text)} & tested) - _HARMLESS)


def _find_test_literals(bench: Bench) -> frozenset[str]:
    """Return the constants of the test files, as a literal shows them."""
    found = set()
    for path in bench.target.files:
        code = parse_code(bench.sources.read(path)) if path in bench.sources.files else None
        for node in ast.walk(code.tree) if code is not None else ():
            if isinstance(node, ast.Constant):
                found |= {repr(node.value), json.dumps(node.value) if isinstance(node.value, str) else ""}
    return frozenset(found)


def _compare(bench: Bench, survivors: Sequence[Candidate]) -> Compared:
    """Return what the survivors of one file do with inputs near those of the tests, if that can be told."""
    paths = {each.path for each in survivors}
    if len(paths) != 1:
        return Compared()
    (path,) = paths
    raw = bench.sources.read(path)
    versions = [apply_mutation(raw, each.mutation).decode("utf-8", "replace") for each in survivors]
    order = {"path": path, "functions": _find_functions(raw, survivors), "versions": versions}
    with open_copy(bench) as copy, scratch_folder() as folder:
        report = folder / "report.json"
        drive(bench, copy, folder, {"report": str(report), "compare": order}, COMPARE_SECONDS)
        try:
            return fit(Compared, json.loads(report.read_bytes()))
        except (OSError, ValueError, Mismatch):
            return Compared()


def _find_functions(raw: bytes, survivors: Sequence[Candidate]) -> list[int]:
    """Return the first line of each function that an edit stands in."""
    code = parse_code(raw)
    if code is None:
        return []
    lines = {each.mutation.line for each in survivors}
    return sorted(
        min([node.lineno, *(each.lineno for each in node.decorator_list)])
        for node in ast.walk(code.tree)
        if isinstance(node, FunctionNode)
        and lines & {*range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    )
