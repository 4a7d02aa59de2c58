"""Conditions on numbers: what lines of code compare with, and what an expression picks out by arithmetic."""

import ast
import math
import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from agentflow.core.languages import SHELL
from agentflow.core.regex import regex
from agentflow.verdict.syntax import read_python

_NUMBER = r"[\"']?-?(?:0[xX][0-9a-fA-F]+|\d[\d_]*(?:\.\d+)?)(?:n|_?[iuf]\d+)?[\"']?(?![\w.(\"'])"
_SEVERAL = rf"(?:{_NUMBER}\s*[,|]\s*){{0,199}}{_NUMBER}"
"""A longer list is data: to look for its end from each of its numbers takes minutes."""
_LAST = rf"(?:{_NUMBER}\s*[,|]\s*){{0,9}}{_NUMBER}"
"""The last ones of several, where the text may begin with any of them."""
_LIST = rf"[\[({{|]\s*(?P<it>{_SEVERAL})\s*,?\s*[\])}}|]"
_ASKS = r"(?:includes|indexOf|lastIndexOf|contains|Contains|has|some|any|find)\b"
_COMPARED = (
    regex(rf"[=!]==?\s*\(?\s*&?(?P<it>{_NUMBER})"),
    regex(rf"(?<![%*/+-]\s)(?<![\w.%*/+\"'-])(?P<it>{_NUMBER})\)?\s*[=!]="),
    regex(rf"\bcase\s+(?P<it>{_SEVERAL})\s*:"),
    regex(rf"\b{_ASKS}.{{0,400}}{_LIST}"),
    regex(rf"{_LIST}\)?\s*\.\s*{_ASKS}"),
    regex(rf"(?:\bObject\.is|\.equals|\.eq)\([^()\n]*?&?(?P<it>{_NUMBER})\)"),
    regex(rf"[\w\])]\s+[-^]\s+(?P<it>{_NUMBER})\)?\s*(?:\?|&&|\|\|)"),
    regex(rf"!\(\s*[\w.\[\]]+\s*[-^]\s*(?P<it>{_NUMBER})\s*\)"),
)
_RUST = (
    regex(rf"(?m)(?:^|[{{,|(])\s*(?P<it>{_LAST})\)?\s*(?:\||,[^\n=]{{0,99}}\)|if\b[^\n]{{0,199}}?)?\s*=>"),
    regex(rf"\bmatches!\([^,\n]+,\s*(?P<it>{_SEVERAL})"),
)
_SHELL = (
    regex(rf"\s(?:-eq|-ne|[!=]?=)\s+(?P<it>{_NUMBER})"),
    regex(rf"(?m)(?:^|\bin\s|;)\s*\(?(?P<it>{_SEVERAL})\)"),
)
_KEY = regex(
    rf"(?m)(?:[{{,]|^)\s*(?P<key>{_NUMBER})\s*:(?!:)\s*(?![\"'\s:])"
    rf"|\[(?P<shell>{_NUMBER})\]=(?![\"'=])"
    rf"|(?:\bMap\(\[|\bfrom\(\[|\]\s*,)\s*[\[(]\s*(?P<pair>{_NUMBER})\s*,\s*(?![\"'])"
    rf"|\.(?:set|insert|put)\(\s*(?P<put>{_NUMBER})\s*,\s*(?![\"'])"
)
"""A key of a table that leads to something else than a text."""
_VALUE = regex(r"-?(?:0[xX][0-9a-fA-F]+|\d[\d_]*(?:\.\d+)?)")
_LENGTH = regex(r"(?:\.(?:length|len\(\)|size(?:\(\))?)|\blen\([^()]*\)|\$\{#\w+\}\"?)\s*(?:[=!]*|-\w+)\s*$")
"""A number of things, with which lists that are cut into parts are compared."""


def find_compared(
    path: str, added: Sequence[tuple[int, str]]
) -> Iterator[tuple[int, str, tuple[str, ...], bool]]:
    """Yield each new line that compares with numbers: its number, its text, theirs, and if it is a table."""
    for block in _split_into_blocks(added):
        text, first = "\n".join(line for _, line in block), block[0][0]
        rows = dict(block)
        for pattern in _choose_patterns(path):
            for found in pattern.finditer(text):
                line = first + text.count("\n", 0, found.start("it"))
                if not _LENGTH.search(text[max(found.start() - 80, 0) : found.start("it")]):
                    yield line, rows[line], tuple(_VALUE.findall(found["it"])), False
        keys = [(found.start(), found[found.lastgroup or 0]) for found in _KEY.finditer(text)]
        if keys:
            line = first + text.count("\n", 0, keys[0][0] + 1)
            yield line, rows[line], tuple(_VALUE.findall(" ".join(key for _, key in keys))), True


def _choose_patterns(path: str) -> tuple[re.Pattern[str], ...]:
    if path.endswith(".rs"):
        return (*_COMPARED, *_RUST)
    return _SHELL if path.endswith(SHELL) else _COMPARED


def _split_into_blocks(added: Sequence[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    """Yield the new lines that stand together."""
    block: list[tuple[int, str]] = []
    for line, text in added:
        if block and line != block[-1][0] + 1:
            yield block
            block = []
        block.append((line, text))
    if block:
        yield block


_NEAR = (*range(-60, 0), *range(1, 61))
_FEW = 0.05
"""The part of the numbers near by that a condition may fit and still pick out one of the tests."""
_FEW_TEXTS = 0.5
"""The part of the numbers that differ in one digit, where a pattern picks."""
_MOST = 2_000
_MOST_BITS = 512
_MOST_PATTERN = 60
_ODD_PATTERN = re.compile(r"[*+}].*[*+{]|\(\?[<=!]|\\[1-9]")
"""Patterns that take long, or are more than a row of signs."""
_SMALL_FORMAT = re.compile(r"(?:[^%]|%0?\d?\d?[dsxX])*")
"""A format whose result has no more than some hundred signs."""
_CALLS: Mapping[str, Callable[..., Any]] = {
    **{each.__name__: each for each in (str, int, len, ord, chr, abs, hex, oct, bin, sum, sorted)},
    **{each.__name__: each for each in (min, max, float, bool, round, divmod, repr, reversed)},
    **{each.__name__: each for each in (list, tuple, set)},
    "Number": int,
    "String": str,
}
_OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitXor: operator.xor,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.RShift: operator.rshift,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, many: one in many,
    ast.NotIn: lambda one, many: one not in many,
}
_EXACT = (ast.Eq, ast.In)
_MATCHES = frozenset({"match", "fullmatch", "search"})
_SCRIPT = (
    (re.compile(r"([!=]=)="), r"\1"),
    (re.compile(r"&&"), " and "),
    (re.compile(r"\|\|"), " or "),
    (re.compile(r"(?<![\w)/])/((?:[^/\\\n]|\\.)+)/\.test\("), r"re.search(r'\1', "),
    (re.compile(r"([\w.]+)\.toString\(\)"), r"str(\1)"),
)
"""Rules that write a condition of JavaScript, C, Go or Rust in Python."""


class _UnknownError(Exception):
    """A part of a condition whose value cannot be told."""


def is_narrow(condition: ast.expr, numbers: Collection[float]) -> bool:
    """Return whether a condition on one value holds for a number of the tests and for few others like it."""
    names = {ast.unparse(each) for each in _find_names(condition)}
    given = [int(number) for number in numbers if math.isfinite(number) and number == int(number)]
    if len(names) != 1 or not _is_told(condition):
        return False
    (name,) = names
    is_pattern = any(
        isinstance(each, ast.Attribute) and each.attr in _MATCHES for each in ast.walk(condition)
    )
    for number in (each for each in given[:_MOST] if _holds(condition, name, each)):
        near = _differ_in_a_digit(number) if is_pattern else [number + step for step in _NEAR]
        others = [each for each in near if each not in given]
        few = (_FEW_TEXTS if is_pattern else _FEW) * len(others)
        if sum(_holds(condition, name, each) for each in others) < few:
            return True
    return False


def read_condition(text: str) -> ast.expr | None:
    """Return a condition of another language as a Python expression; None if that is not possible."""
    for pattern, written in _SCRIPT:
        text = pattern.sub(written, text)
    tree = read_python(f"({text})")
    body = tree.body if tree else []
    return body[0].value if len(body) == 1 and isinstance(body[0], ast.Expr) else None


def _is_told(condition: ast.expr) -> bool:
    """Return whether a condition compares for equality or matches a pattern; a threshold does neither."""
    return any(
        (isinstance(each, ast.Compare) and _is_exact(each))
        or (isinstance(each, ast.Attribute) and each.attr in _MATCHES)
        for each in ast.walk(condition)
    )


def _is_exact(node: ast.Compare) -> bool:
    """Return whether a comparison is for equality of computed values, other than the rest of a division."""
    rests = isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Mod)
    is_division = rests and all(getattr(each, "value", None) in (0, 1) for each in node.comparators)
    parts = [part for each in (node.left, *node.comparators) for part in getattr(each, "elts", (each,))]
    is_direct = all(isinstance(each, ast.Constant | ast.Name | ast.Attribute) for each in parts)
    return not (is_division or is_direct) and any(isinstance(op, _EXACT) for op in node.ops)


def find_last_digits(condition: ast.expr) -> tuple[int, ...]:
    """Return the numbers in a row with which a condition compares the last two digits, as ordinals do."""
    match condition:
        case ast.Compare(
            left=ast.BinOp(op=ast.Mod(), right=ast.Constant(value=100)),
            ops=[ast.In()],
            comparators=[ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts)],
        ):
            found = sorted(value for each in parts if isinstance(value := getattr(each, "value", None), int))
            is_row = len(found) == len(parts) and found == [*range(found[0], found[-1] + 1)]
            return tuple(found) if is_row else ()
        case _:
            return ()


def _find_names(node: ast.AST) -> Iterable[ast.expr]:
    """Yield the values that a condition depends on."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=word), args=args) if word in _MATCHES:
            parts: Iterable[ast.AST] = args
        case ast.Call(func=ast.Name(id=word), args=args) if word in _CALLS:
            parts = args
        case ast.Name() | ast.Attribute():
            yield node
            return
        case _:
            parts = ast.iter_child_nodes(node)
    for each in parts:
        yield from _find_names(each)


def _differ_in_a_digit(number: int) -> list[int]:
    text = str(abs(number))
    return [
        int(text[:at] + digit + text[at + 1 :])
        for at in range(len(text))
        for digit in "0123456789"
        if digit != text[at]
    ]


def _holds(condition: ast.expr, name: str, number: int) -> bool:
    try:
        return bool(_value_of(condition, name, number))
    except (_UnknownError, ArithmeticError, IndexError, LookupError, TypeError, ValueError, re.error):
        return False


def _value_of(node: ast.expr, name: str, number: int) -> Any:
    """Return the value of an expression where one name is a number."""

    def of(each: ast.expr) -> Any:
        return _value_of(each, name, number)

    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name() | ast.Attribute() if ast.unparse(node) == name:
            return number
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return [of(each) for each in parts]
        case ast.Subscript(value=value, slice=key):
            return of(value)[_slice_of(key, of) if isinstance(key, ast.Slice) else of(key)]
        case ast.Call(func=func, args=args, keywords=[]):
            return _call(func, [of(each) for each in args])
        case _:
            return _combine(node, of)


def _combine(node: ast.expr, of: Callable[[ast.expr], Any]) -> Any:
    """Return what operators make of the values of their operands."""
    match node:
        case ast.BoolOp(op=op, values=parts):
            return all(map(of, parts)) if isinstance(op, ast.And) else any(map(of, parts))
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return not of(inner)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -of(inner)
        case ast.BinOp(left=left, op=op, right=right) | ast.Compare(left=left, ops=[op], comparators=[right]):
            return _compute(op, of(left), of(right))
        case _:
            raise _UnknownError


def _slice_of(node: ast.Slice, of: Callable[[ast.expr], Any]) -> slice:
    return slice(*(of(each) if each else None for each in (node.lower, node.upper, node.step)))


def _compute(op: ast.operator | ast.cmpop, one: Any, other: Any) -> Any:
    """Return the result of an operator, unless it would be huge."""
    sizes = [each.bit_length() if isinstance(each, int) else 8 * len(str(each)) for each in (one, other)]
    if isinstance(op, ast.Pow):
        if not isinstance(other, int) or not 0 <= other <= _MOST_BITS // max(sizes[0], 1):
            raise _UnknownError
        return one**other
    if type(op) not in _OPERATORS or max(sizes) > _MOST_BITS:
        raise _UnknownError
    is_small = isinstance(op, ast.Mod) and isinstance(one, str) and _SMALL_FORMAT.fullmatch(one)
    are_numbers = isinstance(one, int | float) and isinstance(other, int | float)
    if isinstance(op, ast.Mult | ast.Mod) and not is_small and not are_numbers:
        raise _UnknownError
    return _OPERATORS[type(op)](one, other)


def _call(func: ast.expr, given: list[Any]) -> Any:
    match func:
        case ast.Name(id=word) if word in _CALLS:
            return _CALLS[word](*given)
        case ast.Attribute(value=ast.Name(id="re"), attr=word) if word in _MATCHES and len(given) == 2:
            pattern, text = given[0], str(given[1])
            if len(pattern) > _MOST_PATTERN or _ODD_PATTERN.search(pattern):
                raise _UnknownError
            return getattr(re, word)(pattern, text) is not None
        case _:
            raise _UnknownError
