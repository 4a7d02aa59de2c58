"""A `sitecustomize` that runs each test on its neighbours: with one literal of its inputs changed at a time.

It is a plugin of pytest, too (PYTEST_DONT_REWRITE). Instead of asserting, it tells what the values come to
that a test asserts on, and which lines the test runs. It runs in the interpreter of the check (3.8 or newer)
and imports nothing but the standard library.
"""

from __future__ import annotations

import ast
import json
import os
import re
import runpy
import sys
import time
import unittest
from itertools import count
from pathlib import Path
from types import GeneratorType, MethodType, SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_SHIFT, _SEE, _END = "_near_shift", "_near_see", "_near_end"
_ALL = -1
"""The place that stands for all places at once."""
_NOWHERE = -2
_PLACE = "AGENTFLOW_FORKED"
_WAITS = 0x2A0
"""The flags of the code of a coroutine or a generator."""
_MOST_RUNS = 120
_MOST_ATOMS = 12
_MOST_ATOM = 200
_MOST_TEXT = 2000
_SMALL = 13
"""Below it numbers count months, weekdays and arguments, and mean something of their own."""
_LONGEST = 1.0
"""Seconds of one run of a test; it is ended behind them."""
_PLAIN = (int, float, str, list, tuple, dict)
_GIVEN = (ast.Constant, ast.Name, ast.UnaryOp, ast.List, ast.Tuple, ast.Set, ast.Dict)
_WORDLESS = frozenset({"isinstance", "approx", "type", "len", "repr", "super", "hasattr"})
_RAISES = re.compile(r"(assertR|r)aises(Regexp?|Group)?|(assertW|w)arns(Regex)?")
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
_STEPS: tuple[Callable[[Any], Any], ...] = (
    lambda it: it + 1,
    lambda it: it - 1,
    lambda it: it + 2,
    lambda it: it + 7,
    lambda it: it - 30,
    lambda it: it + 30,
    lambda it: it + 100,
    lambda it: it - 100,
    lambda it: it + 1000,
    lambda it: it * 3 + 5,
    lambda it: it * 2,
)
_EMPTY = len(_STEPS)
"""The change to nothing: a refactoring goes on treating `?limit=` as it did."""


class Teller:
    """The run of one test in a fork: what is changed in it, and what it tells."""

    def __init__(self, place: int = _NOWHERE, atom: int = 0, step: int = 0) -> None:
        self.place, self.atom, self.step = place, atom, step
        self.seen: list[tuple[int, str]] = []
        self.atoms: dict[int, list[Any]] = {}
        self.lines: set[tuple[str, int]] = set()

    def shift(self, place: int, value: Any) -> Any:
        """Return the value at a place of the test, with one of its numbers or texts changed."""
        self.atoms.setdefault(place, [*list_atoms(value)][:_MOST_ATOMS])
        if self.place not in (place, _ALL):
            return value
        numbers = count()

        def change(atom: Any) -> Any:
            is_meant = next(numbers) == self.atom or self.place == _ALL
            return change_atom(atom, self.step) if is_meant else atom

        return replace_atoms(value, change)

    def see(self, number: int, work: Callable[[], Any]) -> None:
        """Note what a value that is asserted on comes to."""
        try:
            self.seen.append((number, describe_value(work())))
        except Exception as error:  # noqa: BLE001  # whatever the product raises is its result
            self.end(number, error)

    def end(self, number: int, error: BaseException) -> None:
        self.seen.append((number, f"!{type(error).__name__}"))

    def trace(self, frame: Any, _event: str, _given: Any) -> Any:
        self.lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self.trace


def list_atoms(value: Any) -> Iterator[Any]:
    """Yield the numbers and texts of plain data."""
    if type(value) in (int, float, str):
        yield value[:_MOST_ATOM] if isinstance(value, str) else value
    elif type(value) in (list, tuple, dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from list_atoms(each)


def replace_atoms(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return plain data with other numbers and texts; a list or table stays the same object."""
    if type(value) not in _PLAIN:
        return value
    if isinstance(value, dict):
        value.update([(key, replace_atoms(each, change)) for key, each in value.items()])
        return value
    if isinstance(value, list):
        value[:] = [replace_atoms(each, change) for each in value]
        return value
    if isinstance(value, tuple):
        return tuple(replace_atoms(each, change) for each in value)
    return change(value)


def change_atom(atom: Any, step: int) -> Any:
    """Return another number, or a text in which one sign is the next of its kind or one is added."""
    if step == _EMPTY:
        return type(atom)()
    if not isinstance(atom, str):
        return _STEPS[step](atom)
    if re.fullmatch(r"[1-9]\d{0,8}", atom):
        return str(_STEPS[step](int(atom)))
    signs = [at for at, sign in enumerate(atom) if sign.isascii() and sign.isalnum()]
    most = min(len(signs), len(_STEPS) - 2)
    if step >= most:
        return {most: atom + "x", most + 1: "x" + atom}.get(step, atom)
    at = signs[step * len(signs) // most]
    other = {"z": "a", "Z": "A", "9": "0"}.get(atom[at], chr(ord(atom[at]) + 1))
    return atom[:at] + other + atom[at + 1 :]


def describe_value(value: Any) -> str:
    if isinstance(value, GeneratorType):
        value = list(value)
    own = getattr(value, "__dict__", None)
    is_bare = getattr(type(value), "__repr__", None) is object.__repr__ and own
    return _ADDRESS.sub("0x", f"{type(value).__name__} {own}" if is_bare else repr(value))[:_MOST_TEXT]


class Rewriter(ast.NodeTransformer):
    """Rewrites a test: inputs can be changed, and what was asserted is told."""

    def __init__(self) -> None:
        self.places = 0
        self.operands: list[tuple[set[int], set[str]]] = []
        """Of each value that is told: the places in it, and the names that it reads."""
        self.setups: list[tuple[set[str], set[str], set[int]]] = []
        """Of each statement before it: the names that it changes, those that it reads, and its places."""

    def list_relevant(self) -> list[list[int]]:
        """Return the places that each value depends on."""
        return [sorted(self.follow(set(places), set(names))) for places, names in self.operands]

    def follow(self, places: set[int], names: set[str]) -> set[int]:
        for _ in self.setups:
            for changes, reads, inside in self.setups:
                if changes & names and not (reads <= names and inside <= places):
                    names |= reads
                    places |= inside
        return places

    def visit(self, node: ast.AST) -> Any:
        if not isinstance(node, ast.stmt) or isinstance(node, (ast.Assert, ast.FunctionDef)):
            return super().visit(node)
        first = self.places
        changes, reads = find_changes(node), read_names(node)
        found = super().visit(node)
        if changes:
            self.setups.append((changes, reads, set(range(first, self.places))))
        return found

    def visit_Assert(self, node: ast.Assert) -> Any:
        return [self.tell(each) for each in split_condition(node.test) if not is_fixed(each)] or ast.Pass()

    def visit_Expr(self, node: ast.Expr) -> Any:
        call = node.value
        name = get_name(call.func) if isinstance(call, ast.Call) else ""
        if not isinstance(call, ast.Call) or not name.startswith("assert"):
            return self.generic_visit(node)
        if _RAISES.fullmatch(name) and len(call.args) > 1:
            whole = ast.Call(func=call.args[1], args=call.args[2:], keywords=call.keywords)
            return self.tell(ast.copy_location(whole, call))
        values = [each for each in call.args if not is_fixed(each)]
        return [self.tell(each) for each in values] or ast.Pass()

    def visit_With(self, node: ast.With) -> Any:
        calls = [each.context_expr for each in node.items]
        if not any(isinstance(each, ast.Call) and _RAISES.fullmatch(get_name(each.func)) for each in calls):
            return self.generic_visit(node)
        first, names, number = self.places, read_names(node), len(self.operands)
        self.operands.append((set(), names))
        body = self.generic_visit(ast.Module(body=node.body, type_ignores=[])).body  # type: ignore[attr-defined]
        self.operands[number] = (set(range(first, self.places)), names)
        told = parse_row(
            f"try:\n    pass\nexcept Exception as _near:\n    {_END}({number}, _near)\n"
            f"else:\n    {_SEE}({number}, lambda: None)\n"
        )
        told.body = body
        return told

    def visit_Call(self, node: ast.Call) -> Any:
        if get_name(node.func) in _WORDLESS:
            return node
        node.func = self.visit(node.func)
        node.args = [self.give(each) for each in node.args]
        for keyword in node.keywords:
            keyword.value = self.give(keyword.value)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.decorator_list = []
        return self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        return node

    def tell(self, value: ast.expr) -> Any:
        first, names, number = self.places, read_names(value), len(self.operands)
        self.operands.append((set(), names))
        value = self.visit(value)
        self.operands[number] = (set(range(first, self.places)), names)
        told = parse_row(f"{_SEE}({number}, lambda: 0)")
        told.value.args[1].body = value
        return told

    def give(self, value: Any) -> Any:
        """Return an argument that can be changed where it is data."""
        if isinstance(value, ast.Starred):
            value.value = self.give(value.value)
            return value
        value = self.visit(value)
        is_none = isinstance(value, ast.Constant) and not isinstance(value.value, (int, float, str))
        if is_none or not isinstance(value, _GIVEN):
            return value
        given = parse_row(f"{_SHIFT}({self.places}, 0)").value
        given.args[1] = value
        self.places += 1
        return given


def parse_row(text: str) -> Any:
    return ast.parse(text).body[0]


def get_name(node: ast.AST) -> str:
    return getattr(node, "attr", getattr(node, "id", ""))


def split_condition(node: ast.expr) -> Iterable[ast.expr]:
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.BoolOp):
        return [part for each in node.values for part in split_condition(each)]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return split_condition(node.operand)
    return [node]


def is_fixed(node: ast.AST) -> bool:
    return not any(isinstance(each, (ast.Name, ast.Call)) for each in ast.walk(node))


def read_names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def find_changes(node: ast.stmt) -> set[str]:
    """Return the names that a statement gives a value, or whose object it may change."""
    stores = {
        each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and isinstance(each.ctx, (ast.Store, ast.Del))
    }
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    is_part = isinstance(node, (ast.Assign, ast.AugAssign)) and not stores
    return read_names(node) if is_call or is_part else stores


def rewrite(function: Any) -> tuple[Any, list[list[int]]] | None:
    """Return the function of a test rewritten, and the places that each value depends on."""
    code = function.__code__
    if code.co_freevars or code.co_flags & _WAITS:
        return None
    with Path(code.co_filename).open("rb") as file:
        tree = ast.parse(file.read())
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            if code.co_firstlineno not in (node.lineno, *(each.lineno for each in node.decorator_list)):
                continue
            rewriter = Rewriter()
            space: dict[str, Any] = {}
            module = ast.fix_missing_locations(ast.Module(body=[rewriter.visit(node)], type_ignores=[]))
            exec(compile(module, code.co_filename, "exec", dont_inherit=True), function.__globals__, space)  # noqa: S102
            made = space[node.name]
            made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
            return made, rewriter.list_relevant()
    return None


class Neighbours:
    """Tells of each test that begins, until the time is over."""

    def __init__(self, place: Path) -> None:
        self.spec = json.loads((place / "spec.json").read_text(encoding="utf-8"))
        self.told = os.open(place / "told", os.O_WRONLY | os.O_APPEND)
        for name in ("spec.json", "told"):
            (place / name).unlink()  # nothing that is tested can write there
        sys.path[:] = [entry for entry in sys.path if entry != str(place)]
        self.sealed = SimpleNamespace(**runpy.run_path(self.spec["sealed"], run_name="sealed"))
        self.sealed.private[:] = [self.told]
        self.deadline = time.monotonic() + self.spec["seconds"]
        home = os.path.realpath(Path.cwd())
        self.root = (home[: -len(self.spec["folder"])] if self.spec["folder"] else home) + os.sep

    def run(self, test: str, function: Any, work: Callable[[Any], None]) -> None:
        """Run a test on its own values, twice, and on their neighbours."""
        for name, value in self.spec["restored"].items():
            os.environ.update({name: value}) if value else os.environ.pop(name, None)
        try:
            found = rewrite(getattr(function, "__func__", function))
        except (OSError, SyntaxError, ValueError, AttributeError, RecursionError):
            found = None
        if found is None or time.monotonic() > self.deadline:
            return
        self.sealed.adopt_strays()
        made, relevant = found
        bound = MethodType(made, function.__self__) if hasattr(function, "__self__") else made

        def attempt(change: tuple[int, ...], *, is_traced: bool = False) -> Teller:
            teller = Teller(*change)
            made.__globals__.update({_SHIFT: teller.shift, _SEE: teller.see, _END: teller.end})
            sys.settrace(teller.trace if is_traced else None)
            try:
                work(bound)
            except BaseException as error:  # noqa: BLE001  # a test may end in any way
                teller.end(-1, error)
            sys.settrace(None)
            return teller

        told = self.tell(attempt, relevant)
        if told:
            self.sealed.write_line(self.told, {"test": test, **told})

    def tell(self, attempt: Callable[..., Teller], relevant: Any) -> dict[str, Any] | None:
        """Return what a test tells, if it tells the same twice."""

        def inside(tell: Callable[[dict[str, Any]], None]) -> None:
            own = attempt((), is_traced=True)
            tell({"seen": own.seen, "atoms": sorted(own.atoms.items()), "lines": self.list_own(own.lines)})
            for change in ((), *self.list_changes(own.atoms), ()):
                if not change or time.monotonic() < self.deadline:
                    tell({"change": change, "seen": attempt(change).seen})

        limits = [_LONGEST] * (_MOST_RUNS + 3)
        own, *found = self.sealed.follow(inside, limits) or [None]
        if not found or own["seen"] != found[0]["seen"]:
            return None
        runs = [(*each["change"], each["seen"]) for each in found[1:-1]]
        if found[-1]["change"] or found[-1]["seen"] != own["seen"]:  # one run leaves something to the next
            changes = self.list_changes(dict(own["atoms"]))
            runs = [each for change in changes for each in self.try_alone(attempt, change)]
        return {**own, "relevant": relevant, "runs": runs}

    def try_alone(self, attempt: Callable[..., Teller], change: tuple[int, ...]) -> list[tuple[Any, ...]]:
        """Return what a test tells with a change, in a fork of its own; nothing if it takes too long."""
        if time.monotonic() > self.deadline:
            return []
        told = self.sealed.follow(lambda tell: tell({"seen": attempt(change).seen}), [_LONGEST])
        return [(*change, each["seen"]) for each in told]

    def list_own(self, lines: set[tuple[str, int]]) -> list[tuple[str, int]]:
        """Return the lines of the repository."""
        files = {path: os.path.realpath(path) for path, _ in lines}
        own = [(files[path], line) for path, line in lines if files[path].startswith(self.root)]
        return [(path[len(self.root) :], line) for path, line in own if path != __file__]

    def list_changes(self, atoms: dict[int, list[Any]]) -> list[tuple[int, int, int]]:
        """Return the changes of a test in the order in which they tell most: one of each value in turn."""
        every = [(place, at, value) for place, values in atoms.items() for at, value in enumerate(values)]
        steps = (*([_EMPTY] if self.spec["is_all"] else []), *range(len(_STEPS)))
        whole = [step for step in range(4) if any(change_atom(value, step) != value for *_, value in every)]
        telling = [each for each in every if self.spec["is_all"] or is_telling(each[2])]
        alone = [(*each, step) for step in steps for each in telling]
        found = [(place, at, step) for place, at, value, step in alone if change_atom(value, step) != value]
        return [*((_ALL, 0, step) for step in whole), *found][:_MOST_RUNS]


def is_telling(value: Any) -> bool:
    """Say whether code and tests hardly share a value by chance: no small number, no single word, no path."""
    if isinstance(value, str):
        is_odd = any(each.isdigit() or each.isspace() for each in value.strip())
        return is_odd and len(value) < _MOST_ATOM and not value.startswith("/")
    return bool(abs(value) >= _SMALL or value % 0.25)


def follow_tests(place: Path) -> Callable[[Any], None]:
    """Run the neighbours of each test of unittest; return what does so for an item of pytest."""
    neighbours, case = Neighbours(place), unittest.TestCase
    plain: Any = getattr(case, "_callTestMethod")  # noqa: B009  # no public name

    def call(self: Any, method: Any) -> None:
        neighbours.run(self.id(), method, lambda made: plain(self, made))

    def run_item(item: Any) -> None:
        if not hasattr(item, "funcargs") or issubclass(getattr(item, "cls", None) or object, case):
            return

        def work(made: Any) -> None:
            item.obj = made
            item.runtest()

        neighbours.run(item.nodeid, item.obj, work)
        item.obj = lambda *_, **__: None  # it may run for ever

    setattr(case, "_callTestMethod", call)  # noqa: B010
    return run_item


def pytest_cmdline_main(config: Any) -> None:
    if hasattr(config.option, "numprocesses"):
        config.option.numprocesses = 0


if _PLACE in os.environ:
    pytest_runtest_call = follow_tests(Path(os.environ.pop(_PLACE)))
