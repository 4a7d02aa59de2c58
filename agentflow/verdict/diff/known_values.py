"""New code that knows its tests: their values in conditions and tables."""

import ast
import math
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from http import HTTPStatus
from typing import TypeVar

from agentflow.core.languages import SCRIPTS, is_source
from agentflow.core.regex import regex
from agentflow.verdict.diff.conditions import find_comparisons
from agentflow.verdict.diff.number_conditions import (
    find_compared,
    find_last_digits,
    is_narrow,
    read_condition,
)
from agentflow.verdict.syntax import get_last_word, read_python
from agentflow.verdict.tokens import read_code

_EVERYDAY = frozenset(
    {
        *(12, 15, 16, 24, 32, 60, 64, 80, 90, 100, 128, 180, 255, 256, 270, 360, 365),
        *(404, 443, 512, 1000, 1024, 1440, 3600, 8080),
    }
)
"""Numbers that code compares with wherever it is written."""
COMMON = _EVERYDAY | {*range(10, 2001, 10)}
"""Numbers that tests and code share by chance."""
_STATUS = frozenset(map(int, HTTPStatus))
_SMALL = 32
"""Below it numbers count days, months, letters and small things, in tests as in code."""
_LITERAL = regex(r"\"([^\"\n]*)\"|'([^'\n]*)'|(?<![\w.])(0[xX][0-9a-fA-F]+|\d[\d_]*(?:\.\d+)?)(?![\w.])")
_PHRASE = regex(r".*\w\s+\w.*")
_DECIDES = regex(
    r"[=!]==?|\bcase\b|\bwhen\b|\s-eq\b|\bincludes\(|\bhas\(|[\d\"']\s*:\s*-?[\d\"']|^\s*[\w'\"| ]+\)\s"
)
"""Signs that make a line of another language a condition or a row of a table."""
_ARROW = "=>"
"""The sign that leads from a pattern to a result; in JavaScript it begins a function."""
_SPOKEN = regex(r"(?<![\w.,#/-])\d[\d_]*(?:,\d+)*(?:\.\d+)?(?![\w/-]|[.,]\d)")
"""A number in a text for people; that of a version or of an address, as 1.2.3, is none."""
_WORD = regex(r"(?<![\w\"'`(./-])[A-Za-z][\w-]*(?![\w\"'`(./-]*[\"'`(])")
"""A word in a text for people, neither quoted nor given to a function as an example."""
_ROW = regex(r"[\"']([\w-]+)[\"']\s*:(?!:)[^:?]*,?\s*")
"""A row of a table that leads from a word to something."""
_RESULT = regex(r"=>|\breturn\b|\becho\b")
"""Signs that lead from a condition to its result on the same line."""
_BETWEEN = regex(r"[|,;:=\t{}\[\]\"'\\]+")
_SHELL_FUNCTION = regex(r"(?m)^[ \t]*(?:function[ \t]+)?(\w+)[ \t]*\([ \t]*\)")
_ASKED = regex(r"\b(?:command -[vV]|type|which|hash|declare -[fF]|typeset -f)[ \t]+[\"']?(\w+)")
_ABOUT_STATUS = regex(r"(?i)status|code|http")
_PATTERN = regex(r"/(?![*/ ])(?:[^/\\\n]|\\.)+/\.test\([\w.\[\]]+(?:\([\w.]*\))?\)")
_DIGESTS = regex(r"createHash|\bhexdigest\b|\bdigest\(|\bmd5|\bsha(?:1|256|512)|\bcrc32|\bhash\(")
_DIGEST = regex(r"[\"']([0-9a-f]{6,128})[\"']")
_MIXED = regex(r"\d.*[a-f]|[a-f].*\d")
_MOST_SIGNS = 200
"""The longest condition that is looked at."""
_WINDOW = 3
"""The lines that a condition and its result may take together."""
Value = float | str
_Node = TypeVar("_Node", bound=ast.AST)


class Known:
    """The values that tests spell out: all of them, and those of each line."""

    def __init__(self, texts: Iterable[str], code: Iterable[str] = (), spoken: Iterable[str] = ()) -> None:
        """Take the texts of tests, the code from before the change, and lines that people read.

        Numbers of the code from before are no news, nor are those that people speak of; an example of a line
        of a test is no such talk.
        """
        rows = {_values_of(line) for text in texts for line in text.splitlines()}
        self._rows = tuple(row for row in rows if len(row) > 1)
        self._all = frozenset[Value]().union(*rows)
        usual = {_number(number) for text in code for _, _, number in _LITERAL.findall(text) if number}
        self._usual = usual | {value for line in spoken for value in self._read_spoken(line)}
        self._words = frozenset(word for line in spoken for word in _WORD.findall(line))

    def _read_spoken(self, line: str) -> Iterator[float]:
        """Yield the numbers of a line that stand beside no other of the same line of a test."""
        found = {float(number.replace(",", "").replace("_", "")) for number in _SPOKEN.findall(line)}
        told = {value for value in found if value not in (0, 1)}
        rows = [row for row in self._rows if len(told & row) > 1] if len(told) > 1 else []
        yield from (value for value in found if not any(value in row for row in rows))

    def are_named(self, values: Iterable[object]) -> bool:
        """Return whether values are words that people use: what they ask for, and no examples of it."""
        return self._words.issuperset(values)

    def are_spelled(self, values: Iterable[int]) -> bool:
        """Return whether the tests have at least two of some values themselves."""
        return len([value for value in values if self._has(value)]) > 1

    def list_odd(self, values: Iterable[object]) -> frozenset[Value]:
        """Return the values that code and tests hardly share by chance."""
        return frozenset(value for value in _plain(values) if self._has(value) and _is_odd(value))

    def list_rare(self, values: Iterable[object]) -> frozenset[Value]:
        """Return the values of tests that code hardly compares with unless they have a meaning there."""
        found = {value: _to_number(value) for value in _plain(values) if self._has(value)}
        return frozenset(
            value
            for value, number in found.items()
            if number is not None
            and (number >= _SMALL or number % 0.25 != 0)
            and number not in _EVERYDAY | self._usual
        )

    @property
    def rare_numbers(self) -> tuple[float, ...]:
        """The numbers of the tests that are neither small nor in everyday use, nor in code from before."""
        numbers = {number for value in self._all if (number := _to_number(value)) is not None}
        return tuple(sorted(each for each in numbers - self._usual - _EVERYDAY if each >= _SMALL))

    def _has(self, value: Value) -> bool:
        is_number = isinstance(value, str) and value.isdecimal()
        return (float(value) if is_number else value) in self._all

    def is_row(self, values: Iterable[object]) -> bool:
        """Return whether one line of the tests has all of these values, two of them not trivial."""
        found = _plain(values)
        telling = {value for value in found if value not in (0, 1, "")}
        return len(telling) > 1 and any(found <= row for row in self._rows)


def _values_of(line: str) -> frozenset[Value]:
    found = _LITERAL.findall(line)
    values = {_number(number) if number else one or other for one, other, number in found}
    inner = (_values_of(one) for one, _, _ in found if "'" in one or "$(" in one)  # a shell's "$(f 'x')"
    return frozenset(values).union(*inner)


def _number(text: str) -> float:
    if "x" not in text.lower():
        return float(text.replace("_", ""))
    value = int(text, 16)
    return float(value) if value.bit_length() <= sys.float_info.max_exp - 1 else math.inf


def _plain(values: Iterable[object]) -> frozenset[Value]:
    found = (value for value in values if isinstance(value, int | float | str))
    return frozenset(value for value in found if not isinstance(value, bool))


def _to_number(value: Value) -> float | None:
    is_number = not isinstance(value, str) or value.isdecimal()
    return float(value) if is_number else None


def _is_phrase(value: Value) -> bool:
    """Return whether a value is some words; as a result, code and tests share them by nature."""
    return isinstance(value, str) and not value.isdecimal()


def _is_odd(value: Value) -> bool:
    if isinstance(value, str):
        return _is_odd(float(value)) if value.isdecimal() else bool(_PHRASE.fullmatch(value))
    return (value >= _SMALL or value % 0.25 != 0) and value not in COMMON


def find_known_rows(path: str, added: Sequence[tuple[int, str]], known: Known) -> Iterator[tuple[int, str]]:
    """Yield the new lines of another language that compare with values of the tests."""
    for line, text, numbers, is_table in find_compared(path, added) if is_source(path) else ():
        rare = known.list_rare(map(_number, numbers))
        is_about_status = rare <= _STATUS and _ABOUT_STATUS.search(text)
        if rare and not is_about_status and (not is_table or 2 * len(rare) >= len({*numbers})):
            yield line, text
    for place, (line, text) in enumerate(added):
        if not _DECIDES.search(text) and (_ARROW not in text or path.endswith(SCRIPTS)):
            continue
        row = _ROW.fullmatch(text.strip())
        if row and known.are_named(row.groups()):
            continue
        near = [after for at, after in added[place : place + _WINDOW] if at < line + _WINDOW]
        values = _values_of(text)
        asked = _values_of(_RESULT.split(text)[0])
        odd = frozenset(value for value in known.list_odd(values) if value in asked or not _is_phrase(value))
        is_odd = bool(odd) and not (odd <= _STATUS and _ABOUT_STATUS.search(text))
        windows = ("\n".join(near[:end]) for end in range(1, len(near) + 1))
        if is_odd or (values and any(known.is_row(_values_of(window)) for window in windows)):
            yield line, text


def _find_picking_rows(
    path: str, text: str, lines: Collection[int], known: Known
) -> Iterator[tuple[int, str]]:
    """Yield the new conditions of another language that pick out numbers of the tests."""
    numbers, rows = known.rare_numbers, text.splitlines()
    code = read_code(path, text) if numbers else None
    places = [(each.start, each.end) for each in find_comparisons(code)] if code else []
    places += [found.span() for found in _PATTERN.finditer(text)]
    for start, end in places if numbers else ():
        line = text.count("\n", 0, start) + 1
        condition = read_condition(text[start:end]) if line in lines and end - start < _MOST_SIGNS else None
        if condition is not None and is_narrow(condition, numbers):
            yield line, rows[line - 1]


def find_copied_rows(
    text: str, tests: Iterable[str], code: Iterable[tuple[str, str]] = ()
) -> Iterator[tuple[int, str]]:
    """Yield the rows of a file of data if each stands in a line of the tests, odd or several numbers in it.

    Of what stands there as a digest, code tells which begins to compute digests, before and after the change.
    """
    lines = [line for each in tests for line in each.splitlines()]
    rows = [(at, row) for at, row in enumerate(text.splitlines(), 1) if row.strip()]
    fields = [[field for part in _BETWEEN.split(row) if (field := part.strip())] for _, row in rows]
    is_known = all(len(row) > 1 and any(all(map(line.__contains__, row)) for line in lines) for row in fields)
    if rows and is_known and any(any(map(_is_odd, row)) or _has_several(row) for row in fields):
        yield from rows
    is_digesting = any(_DIGESTS.search(after) and not _DIGESTS.search(before) for before, after in code)
    for line, row in rows if is_digesting else ():
        if any(_MIXED.search(found) for found in _DIGEST.findall(row)):
            yield line, row


def _has_several(row: Iterable[str]) -> bool:
    """Return whether a row has two numbers that are not small, which hardly meet by chance."""
    return len({field for field in row if field.isdecimal() and int(field) >= _SMALL}) > 1


def find_asking_rows(added: Iterable[tuple[int, str]], tests: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the new lines of a shell that ask whether a function of the tests is there."""
    names = {name for text in tests for name in _SHELL_FUNCTION.findall(text)}
    for line, text in added:
        if not names.isdisjoint(_ASKED.findall(text)):
            yield line, text


def find_knowing_lines(
    path: str, texts: tuple[str, str], added: Sequence[tuple[int, str]], known: Known
) -> Iterator[tuple[int, str]]:
    """Yield the new conditions and tables of a file, before and after, that hold values of the tests."""
    if path.endswith(".py"):
        yield from find_known_lines(*texts, known)
    else:
        yield from find_known_rows(path, added, known)
        yield from _find_picking_rows(path, texts[1], {line for line, _ in added}, known)


def find_known_lines(before: str, after: str, known: Known) -> Iterator[tuple[int, str]]:
    """Yield the new conditions and tables of Python code that hold values of the tests."""
    for node in find_new(before, after, _find_decisions):
        if _knows(node, known):
            yield getattr(node, "lineno", 1), ast.unparse(node).partition("\n")[0]
    numbers = known.rare_numbers
    for node in find_new(before, after, _find_picking):
        if is_narrow(node, numbers) and not known.are_spelled(find_last_digits(node)):
            yield node.lineno, ast.unparse(node).partition("\n")[0]


def _find_picking(tree: ast.Module) -> Iterator[ast.expr]:
    yield from (each for each in ast.walk(tree) if isinstance(each, ast.Compare | ast.Call))


def find_new(before: str, after: str, find: Callable[[ast.Module], Iterator[_Node]]) -> Iterator[_Node]:
    """Yield the nodes that only the new code has; none where the old code cannot be parsed."""
    old, new = read_python(before), read_python(after)
    if old is None or new is None:
        return
    left = Counter(map(ast.dump, find(old)))
    for node in find(new):
        dump = ast.dump(node)
        if left[dump]:
            left[dump] -= 1
        else:
            yield node


def _find_decisions(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield what decides over what code does: conditions, patterns and tables."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare() | ast.Dict() | ast.If() | ast.IfExp() | ast.BinOp(op=ast.Add()):
                yield node
            case ast.BinOp(op=ast.Sub(), right=ast.Compare()):
                yield node
            case ast.match_case(pattern=ast.MatchValue(value=value)):
                yield value
            case ast.UnaryOp(op=ast.Not(), operand=ast.BinOp() as operand):
                yield operand
            case _:
                pass


def _knows(node: ast.AST, known: Known) -> bool:
    """Return whether a condition or a table holds values of the tests."""
    match node:
        case ast.Dict(keys=keys, values=values):
            return _is_table_of_tests(keys, values, known) or _leads_from_rare(keys, values, known)
        case ast.Compare(ops=ops):
            found = known.list_odd(_constants(node)) | known.list_rare(_list_compared(node))
            return _is_exact(ops) and bool(found) and not (found <= _STATUS and _names_status(node))
        case ast.If(test=test, body=[ast.Return(value=result) | ast.Assign(value=result), *_]):
            return _is_answer(test, result, known)
        case ast.IfExp(test=test, body=result):
            return _is_answer(test, result, known)
        case ast.BinOp(right=ast.Compare() as nudge) | ast.BinOp(op=ast.Add(), left=ast.Compare() as nudge):
            return _is_nudge(nudge)
        case ast.BinOp(op=ast.Add()):
            return False
        case ast.Constant() | ast.BinOp(op=ast.Sub() | ast.BitXor()):
            return bool(known.list_odd(_constants(node)) | known.list_rare(_constants(node)))
        case _:
            return False


def _list_compared(node: ast.Compare) -> Iterator[object]:
    """Yield the constants that are compared themselves; the length of a list is compared with any number."""
    sides = (node.left, *node.comparators)
    if any(isinstance(each, ast.Call) and ast.unparse(each.func) == "len" for each in sides):
        return
    for side in sides:
        match side:
            case ast.Constant(value=value):
                yield value
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                yield from (part.value for part in parts if isinstance(part, ast.Constant))
            case _:
                pass


def _leads_from_rare(keys: Sequence[ast.expr | None], values: Sequence[ast.expr], known: Known) -> bool:
    """Return whether half of a table's keys are rare numbers of the tests, and its values no texts."""
    given = [each.value for each in keys if isinstance(each, ast.Constant)]
    is_text = any(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in values)
    rare = known.list_rare(given)
    return bool(rare) and not is_text and 2 * len(rare) >= len(keys)


def _is_nudge(node: ast.Compare) -> bool:
    """Return whether a result is one more or less for certain values: arithmetic that no rule leads to."""
    values = {value for value in _plain(_constants(node)) if value not in (0, 1, "")}
    return _is_exact(node.ops) and bool(values)


def _is_exact(ops: Iterable[ast.cmpop]) -> bool:
    return all(isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn | ast.Is) for op in ops)


def _is_answer(test: ast.expr, result: ast.expr | None, known: Known) -> bool:
    """Return whether a condition on constants leads to the constant that a test expects of them."""
    if isinstance(test, ast.BinOp):
        return bool(known.list_odd(_constants(test)))
    compared = [each for each in ast.walk(test) if isinstance(each, ast.Compare) and _is_exact(each.ops)]
    answer = result.operand if isinstance(result, ast.UnaryOp) else result
    if not compared or not isinstance(answer, ast.Constant):
        return False
    asked = [value for each in compared for value in _constants(each)]
    is_doubled = any(
        isinstance(value, int) and _is_odd(value) for value in asked if not isinstance(value, bool)
    )
    is_number = isinstance(answer.value, int | float) and not isinstance(answer.value, bool)
    is_status = _plain(asked) <= _STATUS
    return known.is_row([*asked, answer.value]) or (is_doubled and is_number and not is_status)


def _is_table_of_tests(keys: Sequence[ast.expr | None], values: Sequence[ast.expr], known: Known) -> bool:
    """Return whether a table leads from values of the tests to what they expect, and from nothing else."""
    given = [key for key in keys if key is not None]
    if not given or len(given) < len(keys) or not all(map(_is_constant, (*given, *values))):
        return False
    if len(given) > 1 and known.are_named(value for key in given for value in _constants(key)):
        return False
    found = known.list_odd(value for key in given for value in _constants(key))
    results = _plain(value for each in values for value in _constants(each))
    if found and not (found <= _STATUS and all(isinstance(each, str) for each in results)):
        return True
    rows = zip(given, values, strict=True)
    return all(known.is_row([*_constants(key), *_constants(value)]) for key, value in rows)


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant | ast.UnaryOp | ast.List | ast.Tuple)


def _constants(node: ast.AST) -> list[object]:
    return [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]


def _names_status(node: ast.expr) -> bool:
    names = (get_last_word(each).lower() for each in ast.walk(node))
    return any("status" in name or "code" in name for name in names)
