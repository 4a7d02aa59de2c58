"""What is extracted: private functions of Python put back in the place of their calls, and new constants."""

import ast
import builtins
import re
from collections import Counter
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, TypeVar

from agentflow.verdict.syntax import (
    AnyFunction,
    find_parameters,
    has_kind,
    list_parameters,
    list_words,
    read_python,
)

_Code = TypeVar("_Code", bound=ast.AST)

_LATER = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, *_LATER)
PAUSES = (ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr)
GUARDS = (ast.Try, ast.TryStar, ast.With, ast.AsyncWith)
"""Statements that still act after a statement inside them failed or returned."""
_UNFIT = (
    *(*SCOPES, *PAUSES, *GUARDS),
    *(ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, ast.Delete, ast.Match),
)
"""Syntax that a function must not contain to be put in the place of its calls."""
_CONSTANT = (
    *(ast.Constant, ast.UnaryOp, ast.BinOp, ast.Tuple),
    *(ast.unaryop, ast.operator, ast.expr_context),
)
"""Syntax of a value that is the same whenever it is computed."""
_PRIVATE = re.compile(r"_[A-Za-z]\w+")


def find_extracted(before: str, after: str) -> frozenset[str]:
    """Return the private functions that only one side has and that may replace their calls."""
    old, new = read_python(before), read_python(after)
    if old is None or new is None:
        return frozenset()
    pairs = ((old, new), (new, old))
    return frozenset(each.name for side, other in pairs for each in _list_extracted(side, other))


def count_names(*nodes: ast.AST) -> Counter[str]:
    """Return how often each name occurs in code, in any syntactic role."""
    found = Counter[str]()
    for each in (each for node in nodes for each in ast.walk(node)):
        for field, value in ast.iter_fields(each):
            if isinstance(value, str) and field in ("id", "arg", "name", "asname", "rest"):
                found[value.partition(".")[0]] += 1
            elif isinstance(each, ast.Global | ast.Nonlocal):
                found.update(value)
    return found


def count_bound_names(*nodes: ast.AST) -> Counter[str]:
    """Return how often code binds each name or otherwise uses it beside reading it."""
    read = (each for node in nodes for each in ast.walk(node) if isinstance(each, ast.Name))
    return count_names(*nodes) - Counter(each.id for each in read if isinstance(each.ctx, ast.Load))


def find_bound_names(*nodes: ast.AST) -> frozenset[str]:
    """Return the names that code binds or otherwise uses beside reading them."""
    return frozenset(count_bound_names(*nodes))


def _list_extracted(side: ast.Module, other: ast.Module) -> list[ast.FunctionDef]:
    private = [
        node for node in side.body if isinstance(node, ast.FunctionDef) and _PRIVATE.fullmatch(node.name)
    ]
    known = list_words(other) if private else frozenset[str]()
    return [node for node in private if node.name not in known and _is_fit(node)]


def _is_fit(node: ast.FunctionDef) -> bool:
    """Return whether a function only returns at its end and sets each local name before reading it."""
    given, body = node.args, node.body
    is_plain = not (node.decorator_list or given.defaults or given.kwonlyargs or given.vararg or given.kwarg)
    inner = [each for part in body for each in ast.walk(part)]
    returns = [each for each in inner if isinstance(each, ast.Return)]
    said = count_names(*body)
    bound = find_bound_names(*body)
    return (
        is_plain
        and not any(isinstance(each, _UNFIT) or getattr(each, "attr", "").startswith("__") for each in inner)
        and all(each is body[-1] and each.value for each in returns)
        and bound.isdisjoint(list_parameters(node))
        and not any(name.startswith("__") for name in said)
        and node.name not in said
        and all(_is_set_first(name, body) for name in bound)
    )


def _is_set_first(name: str, body: list[ast.stmt]) -> bool:
    """Return whether the first statement that uses a name assigns it."""
    first = next(node for node in body if name in count_names(node))
    match first:
        case ast.Assign(targets=[ast.Name(id=target)], value=value):
            return target == name and name not in count_names(value)
        case _:
            return False


def put_in_functions(side: ast.Module, other: ast.Module) -> ast.Module:
    """Return a side with the private functions that the other lacks put in the place of their calls."""
    for extracted in _list_extracted(side, other):
        tried = _Calls(deepcopy(side), extracted).put_in()
        if tried is not None:
            side = tried
    return side


def find_new_constants(before: str, after: str) -> frozenset[str]:
    """Return the constants that only the new code has and that may stand for their values."""
    old, new = read_python(before), read_python(after)
    return frozenset(_list_constants(new, old)) if old and new else frozenset()


def put_in_constants(side: ast.Module, other: ast.Module) -> ast.Module:
    """Return a side with the values of the constants that the other lacks put in the place of their names."""
    given = _list_constants(side, other)
    if not given:
        return side
    side.body = [node for node in side.body if _get_target(node) not in given]
    return Filled(given).put_in(side)


def _list_constants(side: ast.Module, other: ast.Module) -> dict[str, ast.expr]:
    """Return the values of names that a module sets once, before it uses them, and the other never says."""
    known, bound = list_words(other), count_bound_names(side)
    found = dict[str, ast.expr]()
    for place, node in enumerate(side.body):
        name = _get_target(node)
        is_first = name not in count_names(*side.body[:place])
        if name and is_first and bound[name] == 1 and name not in known and not hasattr(builtins, name):
            assert isinstance(node, ast.Assign | ast.AnnAssign)
            assert node.value
            found[name] = node.value
    return found


def _get_target(node: ast.stmt) -> str:
    """Return the name that a statement gives a plain value; empty for any other statement."""
    match node:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=ast.expr() as value)
            | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
        ) if not name.startswith("__") and all(isinstance(each, _CONSTANT) for each in ast.walk(value)):
            return name
        case _:
            return ""


class _Calls(ast.NodeTransformer):
    """Puts a function in the place of its calls in other functions."""

    def __init__(self, side: ast.Module, extracted: ast.FunctionDef) -> None:
        self._side, self._extracted = side, extracted
        self._around: list[AnyFunction] = []

    def put_in(self) -> ast.Module | None:
        """Return the code without the function; None if a call is left, or comes before the function."""
        name = self._extracted.name
        is_hinted = self._extracted.returns or any(
            each.annotation for each in find_parameters(self._extracted)
        )
        if is_hinted or not _is_there_in_time(self._side, name):
            return None
        self._side.body = [node for node in self._side.body if getattr(node, "name", "") != name]
        self.visit(self._side)
        return None if name in list_words(self._side) else self._side

    def visit(self, node: ast.AST) -> Any:
        """Visit code, but not what lambdas and comprehensions call: that runs later, or with other names."""
        return node if isinstance(node, _LATER) else super().visit(node)

    def visit_FunctionDef(self, node: AnyFunction) -> ast.AST:
        """Visit what runs when a function is called."""
        self._around.append(node)
        inner = ast.Module(body=node.body, type_ignores=[])
        self.generic_visit(inner)
        node.body = inner.body
        self._around.pop()
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        if not self._around:
            self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match self._extracted.body:
            case [ast.Return(value=ast.expr() as value)] if self._is_fit(node):
                return Filled(self._pair(node)).put_in(value)
            case _:
                return node

    def _pair(self, call: ast.Call) -> dict[str, ast.expr]:
        return dict(zip(list_parameters(self._extracted), call.args, strict=True))

    def visit_Expr(self, node: ast.Expr) -> ast.AST | list[ast.stmt]:
        return self._replace(node, node.value)

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        is_plain = len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
        return self._replace(node, node.value) if is_plain else self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> ast.AST | list[ast.stmt]:
        return self._replace(node, node.value)

    def _replace(
        self, node: ast.Expr | ast.Assign | ast.Return, call: ast.expr | None
    ) -> ast.AST | list[ast.stmt]:
        """Return what stands for a statement that does nothing but call the function."""
        if not isinstance(call, ast.Call) or not self._is_fit(call):
            return self.generic_visit(node)
        body = [Filled(self._pair(call)).put_in(each) for each in self._extracted.body]
        last = body[-1]
        if isinstance(last, ast.Return) and last.value:
            node.value = last.value
            return [*body[:-1], node]
        return body if isinstance(node, ast.Expr) else node

    def _is_fit(self, call: ast.Call) -> bool:
        """Return whether all arguments are bound and the function's names mean the same at the call."""
        names, inner = list_parameters(self._extracted), count_names(*self._extracted.body)
        is_own = isinstance(call.func, ast.Name) and call.func.id == self._extracted.name
        if not (is_own and self._around and len(call.args) == len(names)) or call.keywords:
            return False
        set_inside = find_bound_names(*self._extracted.body)
        is_apart = (inner.keys() - {*names}).isdisjoint(find_bound_names(*self._around))
        is_new = set_inside.isdisjoint(count_names(*self._around)) and not has_kind(
            self._around[0], (ast.Nonlocal,)
        )
        return is_apart and is_new and all(is_handed(each, self._around[-1]) for each in call.args)


def is_handed(node: ast.expr, function: AnyFunction) -> bool:
    """Return whether an argument is a constant or an undeleted parameter: reading it has no effect."""
    if isinstance(node, ast.Constant):
        return True
    deleted = (each for part in ast.walk(function) if isinstance(part, ast.Delete) for each in part.targets)
    is_bound = isinstance(node, ast.Name) and node.id in list_parameters(function)
    handlers = (each for each in ast.walk(function) if isinstance(each, ast.ExceptHandler))
    is_caught = any(each.name in count_names(node) for each in handlers)  # such a name is gone then
    return is_bound and not is_caught and not any(count_names(node) & count_names(each) for each in deleted)


class Filled(ast.NodeTransformer):
    """Puts arguments in the place of parameters."""

    def __init__(self, given: Mapping[str, ast.expr]) -> None:
        self._given = given

    def put_in(self, node: _Code) -> _Code:
        """Return a copy of code with its parameters replaced."""
        filled: _Code = self.visit(deepcopy(node))
        return filled

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return deepcopy(self._given.get(node.id, node))


def _is_there_in_time(side: ast.Module, name: str) -> bool:
    """Return whether nothing can call a function before its module has defined it."""
    places = [place for place, node in enumerate(side.body) if getattr(node, "name", "") == name]
    users = [
        place for place, node in enumerate(side.body) if name in count_names(node) and place not in places
    ]
    if len(places) != 1 or not users:
        return False
    return all(_only_defines(node) for node in side.body[users[0] : places[0]])


def _only_defines(node: ast.stmt) -> bool:
    if isinstance(node, ast.ClassDef):
        is_plain = not (node.bases or node.keywords or node.decorator_list)
        return is_plain and all(_only_defines(each) or isinstance(each, ast.Pass) for each in node.body)
    if not isinstance(node, AnyFunction):
        return False
    return not (node.decorator_list or node.args.defaults or any(node.args.kw_defaults))
