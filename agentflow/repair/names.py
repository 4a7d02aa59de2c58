"""Edits of names: other variables, attributes and calls, and what names a function has."""

import ast
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TypeGuard

from agentflow.repair.clues import EditRules, Hints
from agentflow.repair.sources import Code, FunctionNode, Mutation

_SIBLINGS = (
    *("min max len sum", "sorted list reversed", "int round", "append extend add appendleft"),
    *("strip lstrip rstrip", "title capitalize", "index rindex", "split rsplit", "partition rpartition"),
    *("removeprefix removesuffix", "ljust rjust", "keys values items", "union intersection"),
    *("difference symmetric_difference", "isalpha isalnum isdigit", "isupper islower", "pop popleft"),
    *("update add", "remove discard", "issubset issuperset"),
)
"""Functions that are taken for each other, beside those that the table of mutants has."""
_NEAREST = 8
_WINDOW = 32
"""Places before a line, and after it, that are looked at for what may stand there too."""


def find_names(code: Code, node: ast.AST) -> list[str]:
    """Return the parameters and variables of the function around a node, the nearest first."""
    scope, line = code.find_scope(node), getattr(node, "lineno", 0)

    def work() -> list[str]:
        places = _list_names(code, scope)
        at = bisect_left(places, (line, ""))
        near = [(abs(place - line), name) for place, name in places[max(0, at - _WINDOW) : at + _WINDOW]]
        return list(dict.fromkeys(name for _, name in (*sorted(near), *places[:_WINDOW])))

    return code.compute_once(("names", scope, line), work)


def _list_names(code: Code, scope: ast.AST) -> list[tuple[int, str]]:
    def work() -> list[tuple[int, str]]:
        found = (
            (each.lineno, each.arg if isinstance(each, ast.arg) else each.id)
            for each in code.walk(scope)
            if isinstance(each, ast.arg) or (isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
        )
        return sorted(pair for pair in found if pair[1] not in {"self", "cls"})

    return code.compute_once(("set names", scope), work)


def list_known(code: Code, node: ast.AST) -> frozenset[str]:
    return frozenset(name for _, name in _list_names(code, code.find_scope(node)))


def find_fields(code: Code, node: ast.AST) -> list[str]:
    """Return the attributes of `self` that the class around a node sets, as the code writes them."""
    home = code.find_home(node)

    def work() -> list[str]:
        found = (each for each in code.walk(home) if is_field(each) and isinstance(each.ctx, ast.Store))
        return list(dict.fromkeys(map(code.get_text, found)))

    return code.compute_once(("fields", home), work) if isinstance(home, ast.ClassDef) else []


def is_field(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def list_functions(code: Code, node: ast.AST, count: int) -> tuple[str, ...]:
    """Return the functions of this module that take so many arguments, those near a node first."""
    inside = code.find_scope(node)
    fitting = [
        (each.name, each.lineno)
        for each in code.tree.body
        if isinstance(each, FunctionNode) and each is not inside and _takes(each.args, count)
    ]
    return _sort_by_distance(fitting, getattr(node, "lineno", 0))


def _takes(arguments: ast.arguments, count: int) -> bool:
    most = len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs)
    return most - len(arguments.defaults) <= count <= most


def _variable(code: Code, node: ast.Name, _: Hints) -> Iterator[Mutation]:
    parent = code.parents.get(node)
    if isinstance(parent, ast.Call) and parent.func is node:
        yield from (code.swap(node, name, "wrong call", 2) for name in _list_siblings(node.id))
        for name in list_functions(code, node, len(parent.args) + len(parent.keywords))[:_NEAREST]:
            yield code.swap(node, name, "wrong call", 3)
        return
    names = find_names(code, node)
    if node.id.isupper():
        names += [text for text in _list_constants(code) if text not in names]
    is_read = isinstance(node.ctx, ast.Load) or isinstance(parent, ast.AugAssign)
    others = [name for name in names if name != node.id] if is_read else []
    yield from (code.swap(node, name, "wrong variable", 3) for name in others[:_NEAREST])


def _list_constants(code: Code) -> list[str]:
    targets = (each.targets[0] for each in code.tree.body if isinstance(each, ast.Assign))
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _attribute(code: Code, node: ast.Attribute, _: Hints) -> Iterator[Mutation]:
    end = code.find_span(node)[1]
    place = (end - len(node.attr.encode()), end)
    is_called = _is_called(code, node)
    if is_called:
        yield from (code.make_mutation(place, name, "wrong call", 2) for name in _list_siblings(node.attr))
    owner = code.get_text(node.value)
    around = code.find_home(node) if owner == "self" else code.tree
    by_owner = code.compute_once(("attributes", around), lambda: _list_attributes(code, around))
    seen = list(by_owner.get((owner, is_called), ()))
    if owner == "self" and not is_called:
        seen += [
            (each.target.id, each.lineno)
            for each in getattr(around, "body", ())
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
        ]
    others = [name for name in _sort_by_distance(seen, node.lineno) if name != node.attr]
    for name in others[:_NEAREST]:
        yield code.make_mutation(place, name, "wrong call" if is_called else "wrong attribute", 3)


def _list_attributes(code: Code, around: ast.AST) -> dict[tuple[str, bool], list[tuple[str, int]]]:
    found: dict[tuple[str, bool], list[tuple[str, int]]] = defaultdict(list)
    for each in code.walk(around):
        if isinstance(each, ast.Attribute):
            found[code.get_text(each.value), _is_called(code, each)].append((each.attr, each.lineno))
    return found


def _is_called(code: Code, node: ast.Attribute) -> bool:
    parent = code.parents.get(node)
    return isinstance(parent, ast.Call) and parent.func is node


def _list_siblings(name: str) -> Iterator[str]:
    for family in map(str.split, _SIBLINGS):
        yield from (other for other in family if name in family and other != name)


def _sort_by_distance(names: Iterable[tuple[str, int]], line: int) -> tuple[str, ...]:
    ordered = sorted(names, key=lambda pair: (abs(pair[1] - line), pair[0]))
    return tuple(dict.fromkeys(name for name, _ in ordered))


NAME_RULES: EditRules = (((ast.Name,), _variable), ((ast.Attribute,), _attribute))
