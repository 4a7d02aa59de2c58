"""Suspicious lines, found from what failing tests execute."""

import ast
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from agentflow.core.evidence import RED
from agentflow.core.record import Record
from agentflow.repair.sources import Code, Sources, find_header_lines, is_editable, parse_code

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
    load: float = 0.0
    """Seconds until the tests were collected."""
    durations: Mapping[str, float] = {}
    """Test to the seconds for which it ran."""
    sleeps: Mapping[str, float] = {}
    """Test to the seconds that it asked to sleep."""
    unwatched: tuple[str, ...] = ()
    """Tests of the same files that were not run."""
    slow: tuple[str, ...] = ()
    """Tests that took too long to be watched."""
    messages: Mapping[str, str] = {}
    """Red test to what its failure said."""
    types: Mapping[str, Mapping[str, tuple[str, ...]]] = {}
    """`path:first line` of a function to its local names, and to the names of the types each had."""

    @property
    def reds(self) -> frozenset[str]:
        """The tests that do not pass."""
        return frozenset(test for test, outcome in self.outcomes.items() if outcome in RED)


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
    reds = set(seen.reds)
    touched = {test: _lines(seen, test) for test in seen.outcomes}
    suspects = sorted({line for test in reds for line in touched[test]})
    loaded = {path for path, _ in (*suspects, *seen.lines.get("", ()))} - set(seen.files)
    paths = {path for path in loaded if is_editable(sources, path)}
    _add_constants(sources, paths, touched)
    innermost = {frame for test in reds if (frame := _innermost(seen, test, paths))}
    failing = Counter(line for test in reds for line in touched[test] if line[0] in paths)
    passing = Counter(line for test, lines in touched.items() if test not in reds for line in lines)
    found = [_place(line, (count, passing[line], len(reds)), innermost) for line, count in failing.items()]
    return tuple(sorted(found, key=lambda place: (-place.score, place.distance, place.path, place.line)))


def _lines(seen: TestTrace, test: str) -> set[tuple[str, int]]:
    """Return the lines that a test executed; for a test that failed to load, the lines that ran at import."""
    own = set(seen.lines.get(test, ())) | set(seen.frames.get(test, ()))
    is_unloaded = test not in seen.lines or "_FailedTest" in test
    return own | set(seen.lines.get("", ())) if is_unloaded else own


def _place(
    line: tuple[str, int], counts: tuple[int, int, int], innermost: Iterable[tuple[str, int]]
) -> EditPlace:
    """Return a line with the tests that execute it, failing and passing, of so many failing ones."""
    failing, passing, total = counts
    score = failing / math.sqrt(total * (failing + passing))
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
                    yield target.id, find_header_lines(statement)


def _reads(code: Code) -> Iterator[tuple[str, int]]:
    """Return each name that an expression reads, with the line."""
    for node in ast.walk(code.tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield (node.id if isinstance(node, ast.Name) else node.attr), node.lineno
