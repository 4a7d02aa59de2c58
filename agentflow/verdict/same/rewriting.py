"""Refactored Python code in one form: loops, variables, private functions, help texts."""

import ast
import builtins
import re
import sys
from collections.abc import Callable, Collection, Iterator
from functools import partial
from string import Formatter

from agentflow.verdict.same.inlining import (
    GUARDS,
    PAUSES,
    SCOPES,
    Filled,
    count_bound_names,
    count_names,
    find_bound_names,
    is_handed,
    put_in_constants,
    put_in_functions,
)
from agentflow.verdict.syntax import AnyFunction, has_kind, list_parameters, list_words, name_imported

_Inert = Callable[[ast.expr], bool]
_SEES_FRAMES = frozenset(
    {
        *("locals", "vars", "eval", "exec", "dir", "globals", "f_locals", "_getframe", "currentframe"),
        *("inspect", "stack", "trace", "traceback", "settrace", "setprofile", "warn", "warnings"),
        *("getsource", "findCaller", "gc", "weakref", "getrefcount", "__class__", "super", "__traceback__"),
        *("stacklevel", "jit", "njit", "numba"),
    }
)
"""Names whose use may reveal the running function, its variables, or how long a value lives."""
_MAKES_HELP = frozenset({"SUPPRESS", "_actions", "format_help", "format_usage", "Action"})
"""Names whose use does more with the help of an option than show it."""
_SHOWN = {"add_argument": ("help",), "add_parser": ("help",), "ArgumentParser": ("description", "epilog")}
"""Arguments of argparse that are only shown to people."""
_ENDS_LOOPS = frozenset({"next", "StopIteration", "__next__"})


def to_one_form(old: ast.Module, new: ast.Module, own: Collection[str]) -> tuple[ast.Module, ast.Module]:
    """Return both versions as code that does the same, written in one form.

    `own` are the names of the repository's modules. Without them no function is put in the place of its
    calls, since that rests on what the other files say.
    """
    if not all(_SEES_FRAMES.isdisjoint(list_words(side)) for side in (old, new)):
        return old, new
    if own:
        new = put_in_constants(new, old)
        old, new = put_in_functions(old, new), put_in_functions(new, old)
    for side in (old, new):
        _blank_help(side)
        inertness = _Inertness(side, own)
        for function in [node for node in ast.walk(side) if isinstance(node, AnyFunction)]:
            _gather_loops(function)
            _put_in_variables(function, inertness)
        _list_what_is_joined(side)
        _FormatCalls().visit(side)
        ast.fix_missing_locations(side)
    return old, new


# a loop that fills a list


def _gather_loops(function: AnyFunction) -> None:
    """Write each loop that does nothing but fill a new list as a comprehension."""
    for body in _rows(function):
        for place in range(len(body) - 2, -1, -1):
            made = _to_comprehension(body[place], body[place + 1], function)
            if made is not None:
                body[place : place + 2] = [made]


def _rows(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield the statement lists of a function, without those inside `try` and `with`."""
    for field in ("body", "orelse"):
        row = getattr(node, field, [])
        yield row
        for each in row:
            if not isinstance(each, (*GUARDS, *SCOPES)):
                yield from _rows(each)


def _to_comprehension(first: ast.stmt, loop: ast.stmt, function: AnyFunction) -> ast.stmt | None:
    match first, loop:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=ast.List(elts=[])),
            ast.For(target=target, iter=source, body=[step], orelse=[]),
        ):
            condition, step = _split_condition(step)
        case _:
            return None
    match step:
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(attr="append", value=ast.Name(id=filled)), args=[item], keywords=[]
            )
        ) if filled == name and not isinstance(item, ast.Starred):
            pass
        case _:
            return None
    names = _targets(target)
    parts = [item, source, *condition]
    is_plain = bool(names) and not any(has_kind(each, (*SCOPES, *PAUSES)) for each in parts)
    is_apart = names.isdisjoint(count_names(source)) and _is_of_loop(name, names, (first, loop), function)
    if not (is_plain and is_apart):
        return None
    clause = ast.comprehension(target=target, iter=source, ifs=condition, is_async=0)
    value = ast.ListComp(elt=item, generators=[clause])
    return ast.Assign(targets=first.targets, value=value, lineno=first.lineno)


def _split_condition(step: ast.stmt) -> tuple[list[ast.expr], ast.stmt]:
    match step:
        case ast.If(test=test, body=[inner], orelse=[]):
            return [test], inner
        case _:
            return [], step


def _targets(node: ast.expr) -> frozenset[str]:
    """Return the names that a loop binds; nothing if it binds anything but names."""
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    names = [each.id for each in parts if isinstance(each, ast.Name)]
    return frozenset(names) if len(names) == len(parts) else frozenset()


def _is_of_loop(
    name: str, names: frozenset[str], pair: tuple[ast.stmt, ast.stmt], function: AnyFunction
) -> bool:
    """Return whether a loop's names are used nowhere else, and its list is not read while it grows."""
    everywhere, here = count_names(function), count_names(*pair)
    inner = [each for each in ast.walk(function) if isinstance(each, SCOPES) and each is not function]
    declared = [each for each in ast.walk(function) if isinstance(each, ast.Global | ast.Nonlocal)]
    return (
        here[name] == len(pair)
        and name not in names
        and all(everywhere[each] == here[each] for each in names)
        and not count_names(*inner, *declared).keys() & {name, *names}
    )


# a variable that is used once


def _put_in_variables(function: AnyFunction, inertness: "_Inertness") -> None:
    """Replace each variable that only the following `return` uses by its value."""
    if has_kind(function, (ast.Nonlocal, ast.Global)):
        return
    inert = partial(inertness.is_inert, function)
    for body in _rows(function):
        match body[-2:]:
            case [
                ast.Assign(targets=[ast.Name(id=name)], value=value),
                ast.Return(value=ast.expr() as result),
            ]:
                is_once = count_names(function)[name] == count_names(*body[-2:])[name] == 2  # set, used
                if is_once and not has_kind(value, PAUSES) and _comes_first(name, result, inert):
                    body[-2:] = [Filled({name: value}).put_in(body[-1])]
            case _:
                pass


def _comes_first(name: str, result: ast.expr, inert: _Inert) -> bool:
    """Return whether a result reads a name before it has any effect, and does nothing after using it."""
    if _is_named(result, name):
        return True
    match result:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner))) if owner == name:
            return True
        case _:
            pass
    for part in _parts(result):
        if _is_named(part, name):
            return True
        if not inert(part):
            return False
    return False


def _is_named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _parts(node: ast.expr) -> list[ast.expr]:
    """Return the parts of an expression that are evaluated exactly once, in order."""
    match node:
        case ast.Call(func=func, args=args, keywords=keywords):
            is_plain = not any(isinstance(each, ast.Starred) for each in args) and all(
                each.arg for each in keywords
            )
            return [func, *args, *(each.value for each in keywords)] if is_plain else []
        case ast.BinOp(left=left, right=right) | ast.Compare(left=left, comparators=[right]):
            return [left, right]
        case ast.Attribute(value=value) | ast.UnaryOp(operand=value) | ast.Subscript(value=value):
            return [value]
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return parts
        case _:
            return []


class _Inertness:
    """The expressions that have no effect, cannot fail, and do not depend on what is evaluated before."""

    def __init__(self, side: ast.Module, own: Collection[str]) -> None:
        imports = [node for node in side.body if isinstance(node, ast.Import | ast.ImportFrom)]
        functions = {node.name for node in side.body if isinstance(node, AnyFunction)}
        self._tops = functions | {name_imported(each) for node in imports for each in node.names}
        self._bound = count_bound_names(side)
        modules = (each for node in imports if isinstance(node, ast.Import) for each in node.names)
        library = sys.stdlib_module_names - {*own}
        self._modules = {name_imported(each) for each in modules if each.name in library}

    def is_inert(self, function: AnyFunction, node: ast.expr) -> bool:
        match node:
            case ast.Constant():
                return True
            case ast.Name(id=name) if name in list_parameters(function):
                return is_handed(node, function)
            case ast.Name(id=name):
                is_known = name in self._tops or hasattr(builtins, name)
                return "*" not in self._bound and is_known and self._bound[name] == (name in self._tops)
            case ast.Attribute(value=ast.Constant(value=str()), attr=attr):
                return hasattr(str, attr)
            case ast.Attribute(value=ast.Name(id=name) as module):
                return name in self._modules and self.is_inert(function, module)
            case _:
                return False


# what is joined, and what is told to people


def _list_what_is_joined(side: ast.Module) -> None:
    """Write each generator that a string joins as a list, unless something in it could end it early."""
    bound = find_bound_names(side)
    for node in ast.walk(side):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Constant(value=str()), attr="join"),
                args=[ast.GeneratorExp() as each],
            ) if _cannot_end(each, bound):
                node.args = [ast.ListComp(elt=each.elt, generators=each.generators)]
            case _:
                pass


def _cannot_end(node: ast.GeneratorExp, bound: Collection[str]) -> bool:
    """Return whether a generator calls nothing that could raise StopIteration."""
    calls = (each.func for each in ast.walk(node) if isinstance(each, ast.Call))
    known = all(
        (isinstance(each, ast.Name) and hasattr(builtins, each.id) and each.id not in bound)
        or (isinstance(each, ast.Attribute) and hasattr(str, each.attr))
        for each in calls
    )
    return known and _ENDS_LOOPS.isdisjoint(list_words(node)) and not has_kind(node, PAUSES)


class _FormatCalls(ast.NodeTransformer):
    """Writes each call of `format` on a text as a formatted text, where no order can matter."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format"), keywords=[]
            ):
                values = _fill_in(text, node.args) if _are_plain(node.args) else None
                return node if values is None else ast.JoinedStr(values=values)
            case _:
                return node


def _are_plain(parts: list[ast.expr]) -> bool:
    """Return whether no part has an effect on what the other parts show."""
    apart = [each for each in parts if not isinstance(each, ast.Constant)]
    is_starred = any(isinstance(each, ast.Starred) for each in parts)
    return not is_starred and (len(apart) < 2 or all(isinstance(each, ast.Name) for each in apart))


def _fill_in(text: str, parts: list[ast.expr]) -> list[ast.expr] | None:
    """Return the values of a formatted text; None unless each part stands in it once and in order."""
    values, left = list[ast.expr](), list(parts)
    try:
        for before, field, form, conversion in Formatter().parse(text):
            values += [ast.Constant(value=before)] if before else []
            if field is None:
                continue
            if field or "{" in (form or "") or not left:
                return None
            spec = ast.JoinedStr(values=[ast.Constant(value=form)]) if form else None
            asked = ord(conversion) if conversion else -1
            values.append(ast.FormattedValue(value=left.pop(0), conversion=asked, format_spec=spec))
    except ValueError:
        return None
    return None if left else values


def _blank_help(side: ast.Module) -> None:
    """Remove the help texts of argparse, but keep their placeholders."""
    words = list_words(side)
    if "argparse" not in words or not _MAKES_HELP.isdisjoint(words):
        return
    for node in ast.walk(side):
        match node:
            case ast.Call(func=ast.Attribute(attr=word)) if word in _SHOWN:
                for each in node.keywords:
                    if each.arg in _SHOWN[word]:
                        each.value = _blank(each.value)
            case _:
                pass


def _blank(node: ast.expr) -> ast.expr:
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or not node.value.strip():
        return node
    return ast.Constant(value=" ".join(["told", *re.findall(r"%(?:\(\w*\))?.?", node.value)]))
