"""Clues from one run of the tests: suspicious lines, the types seen, and the constants of failing tests."""

import ast
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from agentflow.core.evidence import RED
from agentflow.core.record import Record
from agentflow.repair.sources import (
    Code,
    FunctionNode,
    Mutation,
    Sources,
    find_header_lines,
    is_editable,
    parse_code,
)

FAR = 1_000_000
"""The distance of a line from a failure in another file."""
MOST_CONSTANTS = 10
NUMBERS = frozenset({"int", "float", "Decimal", "Fraction", "complex"})
_TEST_NAME = re.compile(r"(\w+)(?:\[.*\])?(?: \(.*\))?$")
_RESULTS: Mapping[str, str] = {
    name: kind
    for kind, names in {
        "int": "len int ord hash count find index rfind",
        "str": "str repr chr input format hex bin strip lstrip rstrip lower upper title capitalize replace "
        "join ljust rjust center zfill removeprefix removesuffix swapcase casefold",
        "list": "sorted list split rsplit splitlines findall",
        "bool": "isinstance any all bool callable hasattr startswith endswith isdigit isalpha isalnum "
        "isspace",
        "tuple": "tuple partition rpartition",
        **{name: name for name in ("set", "dict", "float", "frozenset")},
    }.items()
    for name in names.split()
}
"""What functions and methods give."""
_DISPLAYS: Mapping[type[ast.AST], str] = {
    ast.JoinedStr: "str",
    ast.Compare: "bool",
    ast.Tuple: "tuple",
    ast.List: "list",
    ast.ListComp: "list",
    ast.Dict: "dict",
    ast.DictComp: "dict",
    ast.Set: "set",
    ast.SetComp: "set",
}


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
        return frozenset(test for test, outcome in self.outcomes.items() if outcome in RED)


class EditPlace(Record):
    """A line of production code, and how much it is suspected."""

    path: str
    line: int
    score: float
    distance: int
    """Lines between it and the innermost frame of a failure."""


def localise(sources: Sources, seen: TestTrace) -> tuple[EditPlace, ...]:
    reds, touched = seen.reds, {test: _lines(seen, test) for test in seen.outcomes}
    suspects = frozenset[tuple[str, int]]().union(*(touched[test] for test in reds))
    loaded = {path for path, _ in (*suspects, *seen.lines.get("", ()))} - set(seen.files)
    paths = {path for path in loaded if is_editable(sources, path)}
    _add_constants(sources, paths, touched)
    own = ([frame for frame in seen.frames.get(test, ()) if frame[0] in paths] for test in reds)
    innermost = {frames[-1] for frames in own if frames}
    failing = Counter(line for test in reds for line in touched[test] if line[0] in paths)
    passing = Counter(line for test in touched.keys() - reds for line in touched[test])
    found = []
    for (path, line), count in failing.items():
        score = count / math.sqrt(len(reds) * (count + passing[path, line]))
        distances = [abs(number - line) for other, number in innermost if other == path]
        place = EditPlace(path=path, line=line, score=round(score, 6), distance=min(distances, default=FAR))
        found.append(place)
    return tuple(sorted(found, key=lambda place: (-place.score, place.distance, place.path, place.line)))


def _lines(seen: TestTrace, test: str) -> set[tuple[str, int]]:
    """Return the lines that a test executed; for a test that failed to load, the lines that ran at import."""
    own = set(seen.lines.get(test, ())) | set(seen.frames.get(test, ()))
    is_unloaded = test not in seen.lines or "_FailedTest" in test
    return own | set(seen.lines.get("", ())) if is_unloaded else own


def _add_constants(sources: Sources, paths: set[str], touched: dict[str, set[tuple[str, int]]]) -> None:
    """Count the lines that set a constant or a field as executed by each test that uses it."""
    codes = {path: code for path in sorted(paths) if (code := parse_code(sources.read(path)))}
    users: dict[str, set[tuple[str, int]]] = {}
    for path, code in codes.items():
        for node in ast.walk(code.tree):
            if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                name = node.id if isinstance(node, ast.Name) else node.attr
                users.setdefault(name, set()).add((path, node.lineno))
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


class Hints(Record):
    """The facts that narrow the edits of one file."""

    numbers: tuple[str, ...] = ()
    """Numbers that the failing tests name, as they write them."""
    words: tuple[str, ...] = ()
    """Texts that the failing tests name."""
    lines: frozenset[int] = frozenset()
    """Those of the statements that are edited."""
    types: Mapping[int, Mapping[str, tuple[str, ...]]] = {}
    """First line of a function to its names and the types each had."""

    @property
    def literals(self) -> frozenset[str]:
        return frozenset((*self.numbers, *map(repr, self.words)))


EditRules = tuple[tuple[tuple[type[ast.AST], ...], Callable[[Code, Any, Hints], Iterator[Mutation]]], ...]
"""Kinds of edit: the nodes that each applies to, and how it changes one."""


def read_hints(named: Sequence[object], seen: TestTrace, path: str) -> Hints:
    own = {place: names for place, names in seen.types.items() if place.rpartition(":")[0] == path}
    numbers, words = list[str](), list[str]()
    for each in named:
        if isinstance(each, str):
            words.append(each)
        elif not isinstance(each, bool) and isinstance(each, int | float):
            numbers.append(repr(each))
    return Hints(
        numbers=tuple(dict.fromkeys(numbers))[:MOST_CONSTANTS],
        words=tuple(dict.fromkeys(words))[:MOST_CONSTANTS],
        types={int(place.rpartition(":")[2]): names for place, names in own.items()},
    )


def list_tested(sources: Sources, seen: TestTrace) -> tuple[object, ...]:
    constants = list[object]()
    names = {found[1] for test in seen.reds if (found := _TEST_NAME.search(test.rpartition("::")[2]))}
    names |= {part for test in seen.reds for part in test.split(".")}
    for path in seen.files:
        if path not in sources.files or (code := parse_code(sources.read(path))) is None:
            continue
        for function in ast.walk(code.tree):
            if isinstance(function, FunctionNode) and function.name in names:
                constants += [each.value for each in ast.walk(function) if isinstance(each, ast.Constant)]
    return tuple(constants)


def find_types(code: Code, node: ast.AST, hints: Hints) -> frozenset[str]:
    """Return the types that an expression may have; nothing where that is not known."""
    match node:
        case ast.Constant():
            return frozenset({type(node.value).__name__})
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return frozenset(filter(None, (_RESULTS.get(name),)))
        case ast.BinOp():
            return find_types(code, node.left, hints) or find_types(code, node.right, hints)
        case ast.Name():
            return find_name_types(code, node, node.id, hints)
        case _:
            return frozenset(filter(None, (_DISPLAYS.get(type(node)),)))


def find_name_types(code: Code, node: ast.AST, name: str, hints: Hints) -> frozenset[str]:
    """Return the types that a name had in the function around a node, comprehensions in it among them."""
    scope = code.find_scope(node)

    def work() -> frozenset[str]:
        first, last = getattr(scope, "lineno", 0), getattr(scope, "end_lineno", 0) or 0
        first = min([first, *(each.lineno for each in getattr(scope, "decorator_list", ()))])
        inside = (names for line, names in hints.types.items() if first <= line <= last)
        return frozenset(kind for names in inside for kind in names.get(name, ())) - {"NoneType"}

    return code.compute_once(("types", scope, name), work)
