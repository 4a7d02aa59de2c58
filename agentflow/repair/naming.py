"""Single edits of names: variables, attributes, arguments and calls."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise

from agentflow.repair.sources import Code, FunctionNode, Mutation
from agentflow.repair.wrapping import find_names

PAIRS = (
    ("min", "max"),
    ("any", "all"),
    ("sum", "len"),
    ("sorted", "list"),
    ("int", "round"),
    ("floor", "ceil"),
    ("append", "extend"),
    ("append", "add"),
    ("lstrip", "rstrip"),
    ("strip", "rstrip"),
    ("strip", "lstrip"),
    ("startswith", "endswith"),
    ("upper", "lower"),
    ("title", "capitalize"),
    ("find", "rfind"),
    ("index", "rindex"),
    ("split", "rsplit"),
    ("partition", "rpartition"),
    ("removeprefix", "removesuffix"),
    ("ljust", "rjust"),
    ("keys", "values"),
    ("keys", "items"),
    ("values", "items"),
    ("union", "intersection"),
    ("difference", "symmetric_difference"),
    ("isalpha", "isalnum"),
    ("isdigit", "isalnum"),
    ("isupper", "islower"),
    ("pop", "popleft"),
    ("append", "appendleft"),
    ("update", "add"),
    ("remove", "discard"),
    ("reversed", "list"),
    ("len", "max"),
    ("issubset", "issuperset"),
)
_NEAREST = 8


def mutate_names(code: Code, node: ast.AST) -> Iterator[Mutation]:
    """Yield the edits of one node that use another name, or the same ones in another order."""
    match node:
        case ast.Call():
            yield from _call(code, node)
        case ast.Name(ctx=ast.Load()):
            yield from _variable(code, node)
        case ast.Attribute(ctx=ast.Load() | ast.Store()):
            yield from _attribute(code, node)
        case ast.AugAssign(target=ast.Name() as target):
            for name in _nearest(target.id, _in_scope(code, target)):
                yield code.swap(target, name, "wrong variable", 3)
        case ast.Constant(value=str()):
            yield from _word(code, node)
        case _:
            return


def _call(code: Code, node: ast.Call) -> Iterator[Mutation]:
    arguments = node.args
    if not any(isinstance(each, ast.Starred) for each in arguments):
        for left, right in pairwise(arguments):
            yield code.exchange(left, right, "swapped arguments")
    if isinstance(node.func, ast.Name) and len(arguments) == 1 and not node.keywords:
        yield code.swap(node, code.get_text(arguments[0]), "extra call", 4)
    if isinstance(node.func, ast.Attribute) and node.func.attr == "pop" and not arguments:
        yield code.swap(node, f"{code.get_text(node.func)}(0)", "wrong call", 3)
    if isinstance(node.func, ast.Attribute) and not arguments and not node.keywords:
        yield code.swap(node, code.get_text(node.func.value), "extra call", 4)
    if isinstance(node.func, ast.Name) and node.func.id == "range" and len(arguments) == 1:
        yield code.swap(arguments[0], f"1, {code.get_text(arguments[0])}", "missing start", 3)
    if isinstance(node.func, ast.Name) and node.func.id == "range" and len(arguments) == 2:
        yield code.make_mutation(
            (code.find_span(arguments[0])[0], code.find_span(arguments[1])[0]), "", "extra start", 3
        )


def _variable(code: Code, node: ast.Name) -> Iterator[Mutation]:
    parent = code.parents.get(node)
    if isinstance(parent, ast.Call) and parent.func is node:
        for name in _partners(node.id):
            yield code.swap(node, name, "wrong call", 2)
        for name in _functions(code, node, len(parent.args) + len(parent.keywords)):
            yield code.swap(node, name, "wrong call", 3)
        return
    for name in _nearest(node.id, _in_scope(code, node)):
        yield code.swap(node, name, "wrong variable", 3)


def _attribute(code: Code, node: ast.Attribute) -> Iterator[Mutation]:
    end = code.find_span(node)[1]
    place = (end - len(node.attr.encode()), end)
    is_called = _is_called(code, node)
    if is_called:
        yield from (code.make_mutation(place, name, "wrong call", 2) for name in _partners(node.attr))
    owner = code.get_text(node.value)
    around = code.find_home(node) if owner == "self" else code.tree
    by_owner = code.compute_once(("attributes", around), lambda: _list_attributes(code, around))
    seen = list(by_owner.get((owner, is_called), ()))
    if owner == "self":
        seen += [(name, line) for name, line in _fields(code.find_home(node)) if not is_called]
    for name in _nearest(node.attr, _sort_by_distance(seen, node.lineno)):
        yield code.make_mutation(place, name, "wrong call" if is_called else "wrong attribute", 3)


def _list_attributes(code: Code, around: ast.AST) -> dict[tuple[str, bool], list[tuple[str, int]]]:
    """Return for each owner, and whether they are called, its attributes and their lines."""
    found: dict[tuple[str, bool], list[tuple[str, int]]] = defaultdict(list)
    for each in code.walk(around):
        if isinstance(each, ast.Attribute):
            found[code.get_text(each.value), _is_called(code, each)].append((each.attr, each.lineno))
    return found


def _word(code: Code, node: ast.Constant) -> Iterator[Mutation]:
    """Replace a key, compared text or argument by another text of the same function."""
    if not isinstance(code.parents.get(node), ast.Subscript | ast.Compare | ast.Call):
        return
    scope = code.find_scope(node)
    words = code.compute_once(("words", scope), lambda: _list_words(code, scope))
    for word in _nearest(code.get_text(node), _sort_by_distance(words, node.lineno))[:4]:
        yield code.swap(node, word, "wrong word", 4)


def _list_words(code: Code, scope: ast.AST) -> list[tuple[str, int]]:
    return [
        (code.get_text(each), each.lineno)
        for each in code.walk(scope)
        if isinstance(each, ast.Constant)
        and isinstance(each.value, str)
        and not isinstance(code.parents[each], ast.Expr | ast.JoinedStr)
    ]


def _is_called(code: Code, node: ast.Attribute) -> bool:
    parent = code.parents.get(node)
    return isinstance(parent, ast.Call) and parent.func is node


def _partners(name: str) -> Iterator[str]:
    for left, right in PAIRS:
        if name in {left, right}:
            yield right if name == left else left


def _functions(code: Code, node: ast.Name, count: int) -> tuple[str, ...]:
    """Return the functions of this module that take as many arguments."""
    fitting = [
        (each.name, each.lineno)
        for each in code.tree.body
        if isinstance(each, FunctionNode) and _takes(each.args, count)
    ]
    return _nearest(node.id, _sort_by_distance(fitting, node.lineno))


def _takes(arguments: ast.arguments, count: int) -> bool:
    most = len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs)
    return most - len(arguments.defaults) <= count <= most


def _in_scope(code: Code, node: ast.Name) -> tuple[str, ...]:
    """Return the parameters and variables of the function, then the module's constants, nearest first."""
    local = find_names(code, node)
    shared = [
        (target.id, each.lineno)
        for each in code.tree.body
        if isinstance(each, ast.Assign)
        for target in each.targets
        if isinstance(target, ast.Name)
    ]
    return (*local, *(_sort_by_distance(shared, node.lineno) if node.id.isupper() else ()))


def _fields(home: ast.AST) -> Iterator[tuple[str, int]]:
    for each in getattr(home, "body", ()):
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            yield each.target.id, each.lineno


def _sort_by_distance(names: Iterable[tuple[str, int]], line: int) -> tuple[str, ...]:
    """Return names by how near to a line they stand."""
    return tuple(
        dict.fromkeys(name for name, _ in sorted(names, key=lambda pair: (abs(pair[1] - line), pair[0])))
    )


def _nearest(name: str, others: Iterable[str]) -> tuple[str, ...]:
    return tuple(other for other in dict.fromkeys(others) if other != name)[:_NEAREST]
