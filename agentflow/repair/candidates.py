"""Suspicious lines, found from what failing tests execute, and the single edits of them that are tried."""

import ast
import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from agentflow.core.evidence import RED
from agentflow.core.record import Record
from agentflow.repair.naming import mutate_names
from agentflow.repair.operators import mutate_operators, mutate_statements
from agentflow.repair.sources import (
    Code,
    Mutation,
    Sources,
    apply_mutation,
    header_lines,
    is_editable,
    parse_code,
)

MOST_CANDIDATES = 400
"""Candidates tried before we say that nothing mends it."""

_RULES = (mutate_operators, mutate_names, mutate_statements)

FAR = 1_000_000
"""The distance of a line from a failure in another file."""


class TestTrace(Record):
    """The outcomes and executed lines of one run of the tests."""

    outcomes: Mapping[str, str]
    lines: Mapping[str, tuple[tuple[str, int], ...]]
    """Test id to the lines it executed; those of loading stand under the empty id."""
    frames: Mapping[str, tuple[tuple[str, int], ...]]
    """Red test to the frames of its traceback, outermost first."""
    files: tuple[str, ...]
    """The files the tests stand in."""
    seconds: float


class EditPlace(Record):
    """A line of production code, and how much it is suspected."""

    path: str
    line: int
    score: float
    failing: int
    """Failing tests that execute it."""
    passing: int
    distance: int
    """Lines between it and the innermost frame of a failure."""

    @property
    def claim(self) -> str:
        return f"executed by {self.failing} failing and {self.passing} passing tests"


def localise(sources: Sources, seen: TestTrace) -> tuple[EditPlace, ...]:
    """Return the lines that failing tests execute, the most suspicious first."""
    reds = {test for test, outcome in seen.outcomes.items() if outcome in RED}
    touched = {test: _lines(seen, test) for test in seen.outcomes}
    suspects = sorted({line for test in reds for line in touched[test]})
    loaded = {path for path, _ in (*suspects, *seen.lines.get("", ()))} - set(seen.files)
    paths = {path for path in loaded if is_editable(sources, path)}
    _add_constants(sources, paths, touched)
    innermost = [frame for test in sorted(reds) if (frame := _innermost(seen, test, paths))]
    found = [
        _place(line, reds, touched, innermost)
        for line in sorted({line for test in reds for line in touched[test] if line[0] in paths})
    ]
    return tuple(sorted(found, key=lambda place: (-place.score, place.distance, place.path, place.line)))


def _lines(seen: TestTrace, test: str) -> set[tuple[str, int]]:
    """Return the lines that a test executed; for a test that failed to load, the lines that ran at import."""
    own = set(seen.lines.get(test, ())) | set(seen.frames.get(test, ()))
    is_unloaded = test not in seen.lines or "_FailedTest" in test
    return own | set(seen.lines.get("", ())) if is_unloaded else own


def _place(
    line: tuple[str, int],
    reds: set[str],
    touched: dict[str, set[tuple[str, int]]],
    innermost: Iterable[tuple[str, int]],
) -> EditPlace:
    tests = {test for test, lines in touched.items() if line in lines}
    failing, passing = len(tests & reds), len(tests - reds)
    score = failing / math.sqrt(len(reds) * (failing + passing))
    distances = [abs(number - line[1]) for path, number in innermost if path == line[0]]
    return EditPlace(
        path=line[0],
        line=line[1],
        score=round(score, 6),
        failing=failing,
        passing=passing,
        distance=min(distances, default=FAR),
    )


def _innermost(seen: TestTrace, test: str, paths: set[str]) -> tuple[str, int] | None:
    frames = [frame for frame in seen.frames.get(test, ()) if frame[0] in paths]
    return frames[-1] if frames else None


def _add_constants(sources: Sources, paths: set[str], touched: dict[str, set[tuple[str, int]]]) -> None:
    """Count the lines that set a constant or a field as executed by each test that uses it."""
    codes = {path: code for path in sorted(paths) if (code := parse_code(sources.read(path)))}
    users: dict[str, set[tuple[str, int]]] = {}
    for path, code in codes.items():
        for name, line in _reads(code):
            users.setdefault(name, set()).add((path, line))
    for path, code in codes.items():
        for name, lines in _constants(code):
            for executed in touched.values():
                if not executed.isdisjoint(users.get(name, ())):
                    executed.update((path, line) for line in lines)


def _constants(code: Code) -> Iterator[tuple[str, range]]:
    bodies = [code.tree.body, *(each.body for each in code.tree.body if isinstance(each, ast.ClassDef))]
    for statement in (statement for body in bodies for statement in body):
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    yield target.id, header_lines(statement)


def _reads(code: Code) -> Iterator[tuple[str, int]]:
    """Return each name that an expression reads, with the line."""
    for node in ast.walk(code.tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield (node.id if isinstance(node, ast.Name) else node.attr), node.lineno


class Candidate(Record):
    """One edit, and where it stands in the order."""

    path: str
    mutation: Mutation
    cost: int
    distance: int
    """Lines between it and the innermost frame of a failure."""

    @property
    def title(self) -> str:
        """What it changes, on one line."""
        return f"{self.path}:{self.mutation.line} {self.mutation.kind}: {self.mutation.note}"

    @property
    def rank(self) -> tuple[int, int, str, int, int, str]:
        edit = self.mutation
        return (self.cost, self.distance, self.path, edit.start, edit.end - edit.start, edit.text)


def list_candidates(sources: Sources, places: tuple[EditPlace, ...]) -> tuple[Candidate, ...]:
    """Return the edits to try: nearest and smallest first, no two alike."""
    ordered = sorted(_all(sources, places), key=lambda candidate: candidate.rank)
    texts = {place.path: sources.read(place.path) for place in places}
    found: dict[tuple[str, bytes], Candidate] = {}
    for candidate in ordered:
        if len(found) == MOST_CANDIDATES:
            break
        changed = apply_mutation(texts[candidate.path], candidate.mutation)
        if changed != texts[candidate.path]:
            found.setdefault((candidate.path, hashlib.sha256(changed).digest()), candidate)
    return tuple(found.values())


def _all(sources: Sources, places: tuple[EditPlace, ...]) -> Iterator[Candidate]:
    levels = {
        score: level for level, score in enumerate(sorted({place.score for place in places}, reverse=True))
    }
    for path in sorted({place.path for place in places}):
        lines = {place.line: place for place in places if place.path == path}
        code = parse_code(sources.read(path))
        if code is None:
            continue
        for node in ast.walk(code.tree):
            place = _place_of(code, node, lines)
            if place is None:
                continue
            for mutation in chain.from_iterable(rule(code, node) for rule in _RULES):
                cost = levels[place.score] + mutation.weight
                yield Candidate(path=path, mutation=mutation, cost=cost, distance=place.distance)


def _place_of(code: Code, node: ast.AST, lines: Mapping[int, EditPlace]) -> EditPlace | None:
    """Return the most suspicious line of the statement around a node."""
    statement = code.statement(node)
    if statement is None:
        return None
    found = [lines[line] for line in header_lines(statement) if line in lines]
    return min(found, key=lambda place: (-place.score, place.distance)) if found else None
