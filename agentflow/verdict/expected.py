"""Tests of other languages than Python, as text: the literals that they expect, and others in their place."""

import re
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath

from agentflow.core.record import Record

_NUMBER = r"-?\d+(?:\.\d+)?(?![\w.])"
_STRING = r'"(?:[^"\\\n]|\\.)*"'
_LITERAL = rf"(?:{_NUMBER}|{_STRING}|'(?:[^'\\\n]|\\.){{2,}}')"
_MATCHER = re.compile(
    rf"\.(?:toBe|toEqual|toStrictEqual|toBeCloseTo|equals?|eql?|deepEqual|isEqualTo)\(\s*(?P<it>{_LITERAL})\s*[,)]"
)
_COMPARED = re.compile(rf"(?:[!=]==?\s*|\s(?:-eq|-ne|=)\s+)(?P<it>{_LITERAL})")
_CALL = re.compile(
    r"\b(?:\w*(?:assert|check|expect|same|equal|want|verify|near|close)\w*|is|ok)(?:[.:]+\w+)*!?\s*(?P<open>\()",
    re.IGNORECASE,
)
_WORDS = re.compile(
    rf"^\s*(?:assert|check|expect|same|equal|is)\w*\s.*(?<!\S)(?P<it>{_NUMBER}|\"[^\"$`\\]*\"|'[^']*')(?!\S)",
    re.IGNORECASE,
)
"""An assertion of a shell, which has no parentheses."""
_BEGIN = re.compile(
    r"""\bfunc\s+(?P<go>Test\w+)\s*\(|\bfn\s+(?P<rust>\w+)\s*\(
    |\b(?:test|it|specify)(?:\.\w+)*\s*\(\s*(?P<quote>['"`])(?P<js>.*?)(?P=quote)""",
    re.VERBOSE,
)
_SHELLS = (".sh", ".bash", ".bats", "")
_SHELL_COMPARED = re.compile(r"\s!?==?\s+(?P<it>\w[\w./-]*)")
_LAST_WORD = re.compile(r"\s(?P<it>\w[\w./-]*)\s*$")
_BOUND = re.compile(rf"(?<![-=<>])(?P<sign>[<>])=?\s*(?P<it>{_NUMBER})")
_QUOTED = re.compile(rf"{_STRING}|'[^']*'")
_SPLIT = re.compile(rf"{_LITERAL}|[(\[{{]|[)\]}}]|,")
_STEP = 37
_BOUND_STEPS = (100_000_007, 1_000_000_007)
"""By which bounds are moved; any integer of 32 bits holds them."""


class Expected(Record):
    """A literal that a test expects, and where it stands."""

    test: str
    """The id of the test; empty where nobody tells one from another."""
    line: int
    span: tuple[int, int]
    sign: str = ""
    """Of a bound, the side on which the result has to lie."""


def find_begin(line: str) -> str:
    """Return the name of the test that begins on a line; empty where none does."""
    begin = _BEGIN.search(line)
    return (begin["go"] or begin["rust"] or begin["js"]) if begin else ""


def find_expected(path: str, text: str, tests: Collection[str]) -> tuple[Expected, ...]:
    """Return the first expected literal of each of these tests; with none named, of each line."""
    found: dict[object, Expected] = {}
    owner: str | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if name := find_begin(line):
            owner = next((test for test in tests if test.endswith(name)), None)
        named = _named_in(line, tests)
        test, match = owner or named, _span(path, line, is_named=named is not None)
        if match is not None and (test is not None or not tests):
            span, sign = match
            found.setdefault(test or number, Expected(test=test or "", line=number, span=span, sign=sign))
    return tuple(found.values())


def _named_in(line: str, tests: Collection[str]) -> str | None:
    """Return the test whose name an assertion tells itself, as in TAP."""
    names = [text[1:-1] for text in _QUOTED.findall(line) if text[1:-1].strip()]
    return next((test for test in tests for name in names if re.split("::", test)[-1] == name), None)


def expect_other(text: str, found: Collection[Expected], word: str, direction: int) -> str:
    """Return a file in which these literals are others, numbers by a step up or down."""
    lines = text.splitlines(keepends=True)
    for each in found:
        line, (start, end) = lines[each.line - 1], each.span
        literal = line[start:end]
        other = _moved(literal, each.sign, direction) if each.sign else _other(literal, word, direction)
        lines[each.line - 1] = line[:start] + other + line[end:]
    return "".join(lines)


def _other(literal: str, word: str, direction: int) -> str:
    if literal[0] in "\"'":
        return f"{literal[:-1]}{word}{literal[-1]}"
    if not re.fullmatch(_NUMBER, literal):
        return f"{literal}{word}"
    whole, point, rest = literal.partition(".")
    return f"{int(whole) + direction * _STEP}{point}{rest}"


def _moved(literal: str, sign: str, direction: int) -> str:
    """Return a bound that no result keeps: one far above a lower bound, one far below an upper one."""
    step = _BOUND_STEPS[direction < 0]
    return str(int(float(literal)) + (step if sign == ">" else -step))


def _span(path: str, line: str, *, is_named: bool) -> tuple[tuple[int, int], str] | None:
    """Return where the expected literal of a line stands, and of a bound the side of the result."""
    if line.lstrip().startswith(("//", "#", "*")) or (_BEGIN.search(line) is None and "function " in line):
        return None
    is_shell = PurePosixPath(path).suffix in _SHELLS
    of_shell = (_WORDS, _SHELL_COMPARED, *((_LAST_WORD,) if is_named else ()))
    patterns = (_MATCHER, _COMPARED, *(of_shell if is_shell else ()))
    found = (match for pattern in patterns if (match := pattern.search(line)))
    spans = ((match.start("it"), match.end("it")) for match in found)
    calls = [_argument(line, call.start("open")) for call in _CALL.finditer(line)]
    span = next(spans, None) or next(filter(None, calls), None)
    bound = _BOUND.search(line) if calls and not is_shell else None
    if span is None and bound is not None:
        return (bound.start("it"), bound.end("it")), bound["sign"]
    return (span, "") if span is not None else None


def _argument(line: str, opening: int) -> tuple[int, int] | None:
    """Return the last argument of a call that is a literal, of the first three; a message counts last."""
    spans = [(start, end) for start, end in _arguments(line, opening) if start < end]
    literal = [span for span in spans[:3] if re.fullmatch(_LITERAL, line[slice(*span)])]
    plain = [span for span in literal if line[span[0]] not in "\"'"]
    first_two = [span for span in literal if span in spans[:2]]
    chosen = plain or first_two
    return chosen[-1] if chosen and len(spans) > 1 else None


def _arguments(line: str, opening: int) -> Iterator[tuple[int, int]]:
    """Yield where the arguments of a call stand that begins here."""
    depth, start = 0, opening + 1
    for token in _SPLIT.finditer(line, opening):
        if token[0] in ("(", "[", "{"):
            depth += 1
        elif token[0] in (")", "]", "}"):
            depth -= 1
        if depth == 0 or (depth == 1 and token[0] == ","):
            yield _stripped(line, start, token.start())
            start = token.end()
        if depth == 0:
            return


def _stripped(line: str, start: int, end: int) -> tuple[int, int]:
    text = line[start:end]
    begin = start + len(text) - len(text.lstrip())
    return begin, max(begin, start + len(text.rstrip()))
