"""Tests in other languages than Python: the literals they expect, and the tests a change adds."""

import re
from collections.abc import Collection, Iterator

from agentflow.core.languages import may_be_shell
from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.verdict.tokens import blank_out
from agentflow.workspace.mixed_tree import find_differences

_NUMBER = r"-?\d+(?:\.\d+)?(?![\w.])"
_STRING = r'"(?:[^"\\\n]|\\.)*"'
_LITERAL = rf"(?:{_NUMBER}|{_STRING}|'(?:[^'\\\n]|\\.){{2,}}')"
_MATCHER = regex(
    rf"\.(?:toBe|toEqual|toStrictEqual|toBeCloseTo|equals?|eql?|deepEqual|isEqualTo)\(\s*(?P<it>{_LITERAL})\s*[,)]"
)
_COMPARED = regex(rf"(?:[!=]==?\s*|\s(?:-eq|-ne|=)\s+)(?P<it>{_LITERAL})")
_CALL = regex(
    r"\b(?:\w*(?:assert|check|expect|same|equal|want|verify|near|close)\w*|is|ok)(?:[.:]+\w+)*!?\s*(?P<open>\()",
    re.IGNORECASE,
)
_WORDS = regex(
    rf"^\s*(?:assert|check|expect|same|equal|is)\w*\s.*(?<!\S)(?P<it>{_NUMBER}|\"[^\"$`\\]*\"|'[^']*')(?!\S)",
    re.IGNORECASE,
)
"""An assertion of a shell, which has no parentheses."""
_BEGIN = regex(
    r"""\bfunc\s+(?P<go>Test\w+)\s*\(|\bfn\s+(?P<rust>\w+)\s*\(
    |\b(?:test|it|specify)(?:\.\w+)*\s*\(\s*(?P<quote>['"`])(?P<js>.*?)(?P=quote)""",
    re.VERBOSE,
)
_SHELL_COMPARED = regex(r"\s!?==?\s+(?P<it>\w[\w./-]*)")
_LAST_WORD = regex(r"\s(?P<it>\w[\w./-]*)\s*$")
_BOUND = regex(rf"(?<![-=<>])(?P<sign>[<>])=?\s*(?P<it>{_NUMBER})")
_QUOTED = regex(rf"{_STRING}|'[^']*'")
_SPLIT = regex(rf"{_LITERAL}|[(\[{{]|[)\]}}]|,")
_STEP = 37
_BOUND_STEPS = (100_000_007, 1_000_000_007)
"""Steps by which bounds are moved; they fit into 32 bits."""
_OPENING, _CLOSING = "([{", ")]}"
_HEAD = regex(r"(?P<start>[^\n'\"`]*?)(?P<name>Test\w+|\w+\s*(?=\(\s*\)\s*(?:->[^\n{]*)?\{)|['\"`])")
_NO_MORE = regex(r"[;,]?[ \t]*(?:\n|\Z)")
_BODY = regex(r"[^()\[\]{};,\n]*\{")
_GO_IMPORT = regex(r'\t"[\w./-]+"')
_GO_SETUP = regex(r"(?m)^func (?:init|TestMain)\(")
_NAMES = regex(
    r"(?P<start>(?:const|let|var|import)\s+\{)(?P<names>[\w\s,]*)(?P<rest>\}\s*(?:=\s*require\(|from\s).*)"
)


class Expected(Record):
    """A literal that a test expects, and where it stands."""

    test: str
    """The id of the test; empty where tests cannot be told apart."""
    line: int
    span: tuple[int, int]
    sign: str = ""
    """For a bound, the side on which the result must lie."""


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
        named = _find_named(line, tests)
        test, match = owner or named, _span(path, line, is_named=named is not None)
        if match is not None and (test is not None or not tests):
            span, sign = match
            found.setdefault(test or number, Expected(test=test or "", line=number, span=span, sign=sign))
    return tuple(found.values())


def _find_named(line: str, tests: Collection[str]) -> str | None:
    """Return the test that an assertion names, as in TAP."""
    names = [text[1:-1] for text in _QUOTED.findall(line) if text[1:-1].strip()]
    return next((test for test in tests for name in names if re.split("::", test)[-1] == name), None)


def expect_other(text: str, found: Collection[Expected], word: str, direction: int) -> str:
    """Return a test file with these literals changed, numbers by a step up or down."""
    lines = text.splitlines(keepends=True)
    for each in found:
        line, (start, end) = lines[each.line - 1], each.span
        literal = line[start:end]
        other = _move(literal, each.sign, direction) if each.sign else _other(literal, word, direction)
        lines[each.line - 1] = line[:start] + other + line[end:]
    return "".join(lines)


def _other(literal: str, word: str, direction: int) -> str:
    if literal[0] in "\"'":
        return f"{literal[:-1]}{word}{literal[-1]}"
    if not re.fullmatch(_NUMBER, literal):
        return f"{literal}{word}"
    whole, point, rest = literal.partition(".")
    return f"{int(whole) + direction * _STEP}{point}{rest}"


def _move(literal: str, sign: str, direction: int) -> str:
    """Return a bound that no result satisfies."""
    step = _BOUND_STEPS[direction < 0]
    return str(int(float(literal)) + (step if sign == ">" else -step))


def _span(path: str, line: str, *, is_named: bool) -> tuple[tuple[int, int], str] | None:
    """Return where the expected literal of a line stands, and of a bound the side of the result."""
    if line.lstrip().startswith(("//", "#", "*")) or (_BEGIN.search(line) is None and "function " in line):
        return None
    is_shell = may_be_shell(path) or path.endswith(".bats")
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
            yield _strip(line, start, token.start())
            start = token.end()
        if depth == 0:
            return


def _strip(line: str, start: int, end: int) -> tuple[int, int]:
    text = line[start:end]
    begin = start + len(text) - len(text.lstrip())
    return begin, max(begin, start + len(text.rstrip()))


def find_added_tests(path: str, before: str, after: str) -> frozenset[str]:
    """Return the names of the tests added to a file; none if anything else in it changed.

    A test stands whole beside others that begin like it. Further imports are no difference.
    """
    if not before and not _GO_SETUP.search(after):
        return frozenset(name for line in after.splitlines() if (name := find_begin(line)))
    file, old = _File.of(path, after), before.splitlines(keepends=True)
    if file is None:
        return frozenset()
    names = set[str]()
    for kind, first, last, start, end in find_differences(old, file.lines):
        imports = kind == "replace" and last - first == 1 and _imports_more(old[first], file.lines[start])
        found = file.tests_between(start + imports, end) if imports or kind == "insert" else None
        if found is None:
            return frozenset()
        names |= found
    return frozenset(names)


def _imports_more(old: str, new: str) -> bool:
    """Return whether a line imports the same names as before, and others, from the same place."""
    was, now = _NAMES.fullmatch(old.rstrip()), _NAMES.fullmatch(new.rstrip())
    if was is None or now is None or (was["start"], was["rest"]) != (now["start"], now["rest"]):
        return False
    names = [[name.strip() for name in each["names"].split(",")] for each in (was, now)]
    return {*names[0]} <= {*names[1]} and len({*names[1]}) == len(names[1])


class _File(Record):
    """A test file line by line, each with its code alone."""

    lines: tuple[str, ...]
    bare: tuple[str, ...]
    depths: tuple[int, ...]
    """The bracket depth at which each line begins."""

    @classmethod
    def of(cls, path: str, text: str) -> "_File | None":
        code = blank_out(path, text)
        if code is None:
            return None
        bare, depths = code.splitlines(keepends=True), [0]
        for line in bare:
            depths.append(depths[-1] + sum((sign in _OPENING) - (sign in _CLOSING) for sign in line))
        lines = tuple(text.splitlines(keepends=True))
        return cls(lines=lines, bare=tuple(bare), depths=tuple(depths)) if len(lines) == len(bare) else None

    def tests_between(self, start: int, end: int) -> set[str] | None:
        """Return the tests that new lines hold, if they hold nothing else, wherever equal lines were cut."""
        if start == end or self._are_imports(start, end):
            return set()
        for shift in range(end - start + 1):
            for first, last in {(start - shift, end - shift), (start + shift, end + shift)}:
                if self._is_alike(first, last, start, end):
                    found = self._statements(first, last)
                    if found:
                        return found
        return None

    def _is_alike(self, first: int, last: int, start: int, end: int) -> bool:
        """Return whether the file is the same without either of two ranges of lines."""
        if first < 0 or last > len(self.lines):
            return False
        return self.lines[:first] + self.lines[last:] == self.lines[:start] + self.lines[end:]

    def _are_imports(self, start: int, end: int) -> bool:
        opening = next((self.lines[at] for at in range(start - 1, -1, -1) if not self.depths[at]), "")
        is_go = opening.rstrip() == "import ("
        return is_go and all(_GO_IMPORT.fullmatch(line.rstrip("\n")) for line in self.lines[start:end])

    def _statements(self, start: int, end: int) -> set[str] | None:
        """Return the names of the tests of which these lines consist."""
        depth, found, at = self.depths[start], set[str](), start
        while at < end:
            if not self.bare[at].strip() or self.lines[at].strip() == "#[test]":
                at += 1
                continue
            name, last = find_begin(self.lines[at]), self._end_of(at, depth)
            if not name or last is None or last > end or not self._has_sibling(at, start, end):
                return None
            found.add(name)
            at = last
        return found if at == end else None

    def _end_of(self, at: int, depth: int) -> int | None:
        """Return the line behind a statement that begins on a line; None if more follows on its last line."""
        text, level, place = "".join(self.bare[at:]), depth, 0
        while place < len(text):
            sign = text[place]
            level += (sign in _OPENING) - (sign in _CLOSING)
            place += 1
            if level < depth or (level == depth and sign in ";,"):
                return None
            if level == depth and sign in _CLOSING:
                if _NO_MORE.match(text, place):
                    return at + text.count("\n", 0, place) + 1
                if not (body := _BODY.match(text, place)):
                    return None
                place, level = body.end(), level + 1
        return None

    def _has_sibling(self, at: int, start: int, end: int) -> bool:
        """Return whether a test that was there begins like a line, in the same block."""
        depth, head = self.depths[at], _head(self.lines[at])
        for step in (-1, 1):
            place = at + step
            while 0 <= place < len(self.lines) and self.depths[place] >= depth:
                is_old = place not in range(start, end) and self.depths[place] == depth
                if is_old and find_begin(self.lines[place]) and _head(self.lines[place]) == head:
                    return True
                place += step
        return False


def _head(line: str) -> str:
    found = _HEAD.match(line)
    return found["start"] if found else line
