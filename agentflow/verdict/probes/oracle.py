"""Oracle probes of Python tests: copies that expect another value and therefore have to fail."""

import ast
import copy
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice

from agentflow.core.evidence import RED, TestOutcome
from agentflow.core.record import Record
from agentflow.core.test_ids import get_test_function
from agentflow.verdict.syntax import AnyFunction, read_python

_EQUAL = re.compile(r"(?!.*(?:not|greater|less))assert.*(?:equal|allclose)", re.IGNORECASE)
_CLAIM = re.compile(r"(?:assert|check|expect|verify|ensure)_?\w*", re.IGNORECASE)
_MAY_FAIL = re.compile(r"xfail|expectedFailure|flaky|skip")
_OFFSET = 7_919
_MOST_LEAVES = 4
"""The most copies made of one assertion."""
_ROUGH = re.compile(r"approx|almost|close|near|tol|delta|places|digits|round", re.IGNORECASE)
"""Assertions that accept neighbouring values."""


class Clone(Record):
    """A copy of a test that must fail."""

    name: str
    control: str
    """The copy that fails when the same assertion is reached; if it passes, the result proves nothing."""
    said: str
    """The change in words."""
    group: str
    """One word for copies that count only together; otherwise the copy's name."""


class Oracle(Record):
    """A file of tests with clones beside them."""

    text: str
    clones: tuple[Clone, ...]

    @property
    def controls(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(clone.control for clone in self.clones))


def clone_tests(text: str, tests: Collection[str], word: str, most: int) -> Oracle | None:
    """Return a file with clones of the named test functions, one expected literal changed in each.

    None where no assertion compares with a literal. `word` stands nowhere in the file.
    """
    tree = read_python(text)
    if tree is None:
        return None
    maker = _Maker(word, most, _names_of_imports(tree))
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef))
    owners: list[ast.Module | ast.ClassDef] = [tree, *classes]
    for owner in owners:
        tested = [node for node in owner.body if isinstance(node, AnyFunction) and node.name in tests]
        for node in tested:
            owner.body += maker.clones_of(node)
    return (
        Oracle(text=ast.unparse(ast.fix_missing_locations(tree)), clones=tuple(maker.made))
        if maker.made
        else None
    )


def find_softened(clones: Iterable[Clone], outcomes: Mapping[str, TestOutcome]) -> tuple[str, ...]:
    """Return the changed values that no test noticed although their assertions were reached."""
    groups: dict[str, list[Clone]] = {}
    for clone in clones:
        groups.setdefault(clone.group, []).append(clone)
    told = {
        name: _cases(outcomes, name) for each in groups.values() for clone in each for name in _names(clone)
    }
    found = (each for each in groups.values() if all(_passes(told, clone) for clone in each))
    return tuple(dict.fromkeys(each[0].said for each in found))


def has_failed_clone(clones: Iterable[Clone], outcomes: Mapping[str, TestOutcome]) -> bool:
    """Return whether at least one clone, or one control, failed."""
    names = {name for clone in clones for name in _names(clone)}
    return any(set(_cases(outcomes, name).values()) & set(RED) for name in names)


def has_passing(clones: Iterable[Clone], outcomes: Mapping[str, TestOutcome]) -> bool:
    """Return whether a clone passed, so that its control has to tell whether its assertion was reached."""
    return any(TestOutcome.PASSED in _cases(outcomes, clone.name).values() for clone in clones)


def _names(clone: Clone) -> tuple[str, str]:
    return clone.name, clone.control


def _cases(outcomes: Mapping[str, TestOutcome], name: str) -> dict[str, TestOutcome]:
    """Return the result of each case of a test."""
    return {
        test.partition("[")[2]: outcome
        for test, outcome in outcomes.items()
        if get_test_function(test) == name
    }


def _passes(told: Mapping[str, Mapping[str, TestOutcome]], clone: Clone) -> bool:
    """Return whether a clone passes in a case in which its assertion was reached."""
    mine, controls = told[clone.name], told[clone.control]
    only = next(iter(controls.values())) if len(controls) == len(mine) == 1 else None
    return any(
        outcome is TestOutcome.PASSED and controls.get(case, only) in RED for case, outcome in mine.items()
    )


class _Maker:
    """Makes the copies of tests, up to a limit."""

    def __init__(self, word: str, most: int, imported: Collection[str]) -> None:
        self.made: list[Clone] = []
        self._word = word
        self._most = most
        self._imported = imported
        self._number = 0

    def clones_of(self, function: AnyFunction) -> list[ast.stmt]:
        """Return the clones of a test; one that may fail anyway tells nothing."""
        if any(_MAY_FAIL.search(ast.unparse(each)) for each in function.decorator_list):
            return []
        found = [*self._of_assertions(function), *self._of_rows(function)]
        return [node for nodes in found for node in nodes]

    def _of_assertions(self, function: AnyFunction) -> Iterator[list[ast.stmt]]:
        for place in (node for node in ast.walk(function) if isinstance(node, ast.Assert | ast.Expr)):
            is_called = not isinstance(place, ast.Assert) and _calls_claim(place, self._imported)
            sides = _arguments(place) if is_called else _sides(place)
            spots = [spot for side in sides for spot in _leaves(side)]
            if spots and len(self.made) < self._most:
                yield self._variants(function, place, spots, is_group=is_called)

    def _variants(
        self, function: AnyFunction, place: ast.stmt, spots: list["_Spot"], *, is_group: bool
    ) -> list[ast.stmt]:
        """Return a clone for each literal of an assertion, and the one that tells that it is reached."""
        control = self._name(function)
        nodes: list[ast.stmt] = [_with(function, control, [(place, _make_failing(self._word))])]
        group = control if is_group else ""
        changes = self._changes(spots[:_MOST_LEAVES], is_rough=is_group or _is_rough(place))
        for spot, changed in islice(changes, self._most - len(self.made)):
            name = self._name(function)
            nodes.append(_with(function, name, [(spot.node, changed)]))
            said = f"{function.name}: {ast.unparse(spot.node)}"
            self.made.append(Clone(name=name, control=control, said=said, group=group or name))
        if is_group:
            name = self._name(function)
            nodes.append(
                _with(
                    function,
                    name,
                    [(spot, ast.parse("object()", mode="eval").body) for spot in _arguments(place)],
                )
            )
            said = f"{function.name}: {ast.unparse(place)}"
            self.made.append(Clone(name=name, control=control, said=said, group=group))
        return nodes

    def _changes(self, spots: list["_Spot"], *, is_rough: bool) -> Iterator[tuple["_Spot", ast.expr]]:
        """Yield the other values of literals: those beside a number, or far off where neighbours may pass."""
        for spot in spots:
            near = () if is_rough else spot.near
            yield from ((spot, each) for each in near or spot.far(self._word))

    def _of_rows(self, function: AnyFunction) -> Iterator[list[ast.stmt]]:
        """Yield clones of a test with one row of its table, in which what it expects is another."""
        table = _table(function)
        place = _find_comparison(function, table.names) if table else None
        if table is None or place is None:
            return
        assertion, column = place
        for row in table.rows[:_MOST_LEAVES]:
            cell = table.cell(row, column)
            spots = list(_leaves(cell))[:1] if cell is not None else []
            for spot, changed in self._changes(spots, is_rough=_is_rough(assertion)):
                if len(self.made) < self._most:
                    yield self._row(function, (table, row), assertion, (spot, changed))

    def _row(
        self,
        function: AnyFunction,
        at: tuple["_Table", ast.expr],
        assertion: ast.stmt,
        change: tuple["_Spot", ast.expr],
    ) -> list[ast.stmt]:
        (table, row), (spot, other) = at, change
        control, name = self._name(function), self._name(function)
        alone = ast.List(elts=[row], ctx=ast.Load())
        changed = copy.deepcopy(alone, {id(spot.node): other})
        said = f"{function.name}: {ast.unparse(spot.node)} in {ast.unparse(row)}"
        self.made.append(Clone(name=name, control=control, said=said, group=name))
        return [
            _with(function, control, [(table.values, alone), (assertion, _make_failing(self._word))]),
            _with(function, name, [(table.values, changed)]),
        ]

    def _name(self, function: AnyFunction) -> str:
        """Return a new name that begins like the test's, and that no filter by the test's name finds."""
        self._number += 1
        return f"{function.name[:-1]}_{self._word}_{self._number}_{function.name[-1]}"


class _Spot:
    """A literal that a test expects."""

    def __init__(
        self, node: ast.expr, far: Callable[[str], tuple[ast.expr, ...]], near: tuple[ast.expr, ...] = ()
    ) -> None:
        self.node = node
        self.far = far
        """Values that are not equal to the expected one."""
        self.near = near


def _is_rough(place: ast.stmt) -> bool:
    return _ROUGH.search(ast.unparse(place)) is not None


def _with(function: AnyFunction, name: str, changes: Iterable[tuple[ast.AST, ast.AST]]) -> AnyFunction:
    """Return a copy of a function with another name, in which some nodes are others."""
    found = copy.deepcopy(function, {id(old): new for old, new in changes})
    found.name = name
    return found


def _make_failing(word: str) -> ast.stmt:
    return ast.parse(f"raise AssertionError({word!r})").body[0]


def _names_of_imports(tree: ast.Module) -> frozenset[str]:
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return frozenset(each.asname or each.name for node in nodes for each in node.names)


def _sides(place: ast.Assert | ast.Expr) -> list[ast.expr]:
    """Return what an assertion of equality compares."""
    return _operands(place.test) if isinstance(place, ast.Assert) else _arguments_of_claim(place.value)


def _operands(node: ast.expr) -> list[ast.expr]:
    """Return both sides of each comparison that has to hold."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return [side for each in node.values for side in _operands(each)]
    if isinstance(node, ast.Compare) and [type(each) for each in node.ops] == [ast.Eq]:
        return [node.left, *node.comparators]
    return []


def _arguments_of_claim(node: ast.expr) -> list[ast.expr]:
    """Return the first two arguments of an assertion that is a call; further ones are messages."""
    if not isinstance(node, ast.Call):
        return []
    name = ast.unparse(node.func).rpartition(".")[2]
    if name == "assertTrue" and node.args:
        return _operands(node.args[0])
    return node.args[:2] if _EQUAL.match(name) else []


def _leaves(node: ast.expr) -> Iterator[_Spot]:
    """Yield the literals of an operand that is a literal itself, or holds some side by side."""
    match node:
        case ast.Constant(value=bool() | str() | bytes() | None as value):
            yield _Spot(node, lambda word: (ast.Constant(value=_other(value, word)),))
        case ast.Constant(value=int() | float() as number):  # a comparison may be left in one direction
            far, near = _others(number, (-number - _OFFSET, abs(number) + _OFFSET)), (number - 1, number + 1)
            yield _Spot(node, lambda _: far, _others(number, near))
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
            yield _Spot(node, lambda word: (ast.Constant(value=f"{word}"),))
        case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(values=[]):
            yield _Spot(node, lambda word: (ast.Constant(value=word),))
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.Dict(values=parts):
            for part in parts:
                yield from _leaves(part)
        case ast.Call(func=called, args=[first, *_]) if ast.unparse(called).endswith("approx"):
            yield from _leaves(first)
        case _:
            return


def _others(number: float, others: Iterable[float]) -> tuple[ast.expr, ...]:
    """Return numbers as literals; a very large one is equal to what lies beside it."""
    return tuple(ast.Constant(value=each) for each in others if each != number)


def _other(value: bool | str | bytes | None, word: str) -> bool | str | bytes:
    """Return a value that is not equal to the given one."""
    match value:
        case bool():
            return not value
        case bytes():
            return value + word.encode()
        case str():
            return value + word
        case _:
            return word


def _calls_claim(place: ast.Expr, imported: Collection[str]) -> bool:
    """Return whether a statement calls what the test imports to assert something."""
    if not isinstance(place.value, ast.Call) or not isinstance(place.value.func, ast.Name):
        return False
    name = place.value.func.id
    return name in imported and _CLAIM.fullmatch(name) is not None


def _arguments(place: ast.stmt) -> list[ast.expr]:
    call = place.value if isinstance(place, ast.Expr) else None
    return (
        [each for each in call.args if not isinstance(each, ast.Starred)]
        if isinstance(call, ast.Call)
        else []
    )


class _Table(Record):
    """The cases of a test."""

    names: tuple[str, ...]
    values: ast.expr
    rows: tuple[ast.expr, ...]

    def cell(self, row: ast.expr, column: str) -> ast.expr | None:
        """Return what a row gives to one of the names."""
        if isinstance(row, ast.Call) and ast.unparse(row.func).endswith("param") and not row.keywords:
            cells: list[ast.expr] = row.args
        elif len(self.names) == 1:
            cells = [row]
        else:
            cells = row.elts if isinstance(row, ast.Tuple | ast.List) else []
        return cells[self.names.index(column)] if len(cells) == len(self.names) else None


def _table(function: AnyFunction) -> _Table | None:
    """Return the cases of a test that has one table of them, written down beside it."""
    calls = [each for each in function.decorator_list if isinstance(each, ast.Call)]
    found = [each for each in calls if ast.unparse(each.func).endswith("parametrize")]
    if len(found) != 1 or len(found[0].args) != 2 or found[0].keywords:
        return None
    names, values = found[0].args
    if not isinstance(values, ast.List | ast.Tuple):
        return None
    return _Table(names=_names_of(names), values=values, rows=tuple(values.elts))


def _names_of(node: ast.expr) -> tuple[str, ...]:
    match node:
        case ast.Constant(value=str() as text):
            return tuple(name.strip() for name in text.split(","))
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return tuple(str(part.value) for part in parts if isinstance(part, ast.Constant))
        case _:
            return ()


def _find_comparison(function: AnyFunction, names: Collection[str]) -> tuple[ast.stmt, str] | None:
    """Return the assertion that compares with a name which stands nowhere else in the test, and that name."""
    used = [node.id for part in function.body for node in ast.walk(part) if isinstance(node, ast.Name)]
    for place in (node for node in ast.walk(function) if isinstance(node, ast.Assert | ast.Expr)):
        found = (side.id for side in _sides(place) if isinstance(side, ast.Name) and side.id in names)
        name = next((each for each in found if used.count(each) == 1), None)
        if name is not None:
            return place, name
    return None
