"""Hints beside a file's syntax: types seen as the tests ran, constants of the failing tests."""

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agentflow.core.evidence import RED
from agentflow.core.record import Record
from agentflow.repair.locate import TestTrace
from agentflow.repair.sources import Code, FunctionNode, Mutation, Sources, parse_code

MOST_CONSTANTS = 10

NUMBERS = frozenset({"int", "float", "Decimal", "Fraction", "complex"})

_TEST_NAME = re.compile(r"(\w+)(?:\[.*\])?(?: \(.*\))?$")

_BUILTIN_RESULTS: Mapping[str, str] = {
    **dict.fromkeys(("len", "int", "ord", "hash"), "int"),
    **dict.fromkeys(("str", "repr", "chr", "input", "format", "hex", "bin"), "str"),
    **dict.fromkeys(("sorted", "list"), "list"),
    **dict.fromkeys(("isinstance", "any", "all", "bool", "callable", "hasattr"), "bool"),
    **{name: name for name in ("set", "dict", "tuple", "float", "frozenset")},
}

_METHOD_RESULTS: Mapping[str, str] = {
    **dict.fromkeys(("strip", "lstrip", "rstrip", "lower", "upper", "title", "capitalize"), "str"),
    **dict.fromkeys(("replace", "join", "format", "ljust", "rjust", "center", "zfill"), "str"),
    **dict.fromkeys(("removeprefix", "removesuffix", "swapcase", "casefold"), "str"),
    **dict.fromkeys(("split", "rsplit", "splitlines", "findall"), "list"),
    **dict.fromkeys(("partition", "rpartition"), "tuple"),
    **dict.fromkeys(("startswith", "endswith", "isdigit", "isalpha", "isalnum", "isspace"), "bool"),
    **dict.fromkeys(("count", "find", "index", "rfind"), "int"),
}


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


class Hints(Record):
    """The facts that narrow the edits of one file."""

    numbers: tuple[str, ...] = ()
    """Numbers that the failing tests name, as they write them."""
    words: tuple[str, ...] = ()
    """Texts that the failing tests name."""
    types: Mapping[int, Mapping[str, tuple[str, ...]]] = {}
    """First line of a function to its names and the types each had."""

    @property
    def literals(self) -> frozenset[str]:
        """The values that the failing tests name, as texts."""
        return frozenset((*self.numbers, *map(repr, self.words)))


class Rule(NamedTuple):
    """One kind of edit: the nodes that it is for, and what it makes of one of them."""

    nodes: tuple[type[ast.AST], ...]
    propose: Callable[[Code, Any, Hints], Iterator[Mutation]]

    def apply(self, code: Code, node: ast.AST, hints: Hints) -> Iterator[Mutation]:
        """Yield the edits of a node, none for a node of another type."""
        if isinstance(node, self.nodes):
            yield from self.propose(code, node, hints)


def read_hints(named: Sequence[object], seen: TestTrace, path: str) -> Hints:
    """Return what the run and the constants of the failing tests say about one file."""
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
    """Return the constants of the tests that fail, in the order in which they stand."""
    constants = list[object]()
    red = {test for test, outcome in seen.outcomes.items() if outcome in RED}
    names = {found[1] for test in red if (found := _TEST_NAME.search(test.rpartition("::")[2]))}
    names |= {part for test in red for part in test.split(".")}
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
        case ast.Call(func=ast.Name(id=name)):
            return frozenset(filter(None, (_BUILTIN_RESULTS.get(name),)))
        case ast.Call(func=ast.Attribute(attr=name)):
            return frozenset(filter(None, (_METHOD_RESULTS.get(name),)))
        case ast.BinOp():
            return find_types(code, node.left, hints) or find_types(code, node.right, hints)
        case ast.Name():
            return find_name_types(code, node, node.id, hints)
        case _:
            return frozenset(filter(None, (_DISPLAYS.get(type(node)),)))


def find_name_types(code: Code, node: ast.AST, name: str, hints: Hints) -> frozenset[str]:
    """Return the types that a name had in the function around a node, comprehensions in it among them."""
    scope = code.find_scope(node)
    return code.compute_once(("types", scope, name), lambda: _find_scope_types(scope, name, hints))


def _find_scope_types(scope: ast.AST, name: str, hints: Hints) -> frozenset[str]:
    first, last = getattr(scope, "lineno", 0), getattr(scope, "end_lineno", 0) or 0
    first = min([first, *(each.lineno for each in getattr(scope, "decorator_list", ()))])
    inside = (names for line, names in hints.types.items() if first <= line <= last)
    return frozenset(kind for names in inside for kind in names.get(name, ())) - {"NoneType"}
