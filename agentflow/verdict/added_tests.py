"""Which tests a file of another language than Python gained, where nothing else of it is another."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from agentflow.core.record import Record
from agentflow.verdict.comments import blank_out
from agentflow.verdict.expected import find_begin

_OPENING, _CLOSING = "([{", ")]}"
_HEAD = re.compile(r"(?P<start>[^\n'\"`]*?)(?P<name>Test\w+|\w+\s*(?=\(\s*\)\s*(?:->[^\n{]*)?\{)|['\"`])")
_NO_MORE = re.compile(r"[;,]?[ \t]*(?:\n|\Z)")
_BODY = re.compile(r"[^()\[\]{};,\n]*\{")
_GO_IMPORT = re.compile(r'\t"[\w./-]+"')
_GO_SETUP = re.compile(r"(?m)^func (?:init|TestMain)\(")
_NAMES = re.compile(
    r"(?P<start>(?:const|let|var|import)\s+\{)(?P<names>[\w\s,]*)(?P<rest>\}\s*(?:=\s*require\(|from\s).*)"
)


def find_added_tests(path: str, before: str, after: str) -> frozenset[str]:
    """Return the names of the tests that a file gained; none where it gained, lost or changed anything else.

    A test stands whole beside others that begin like it. Further imports are no difference.
    """
    if not before and not _GO_SETUP.search(after):
        return frozenset(name for line in after.splitlines() if (name := find_begin(line)))
    file, old = _File.of(path, after), before.splitlines(keepends=True)
    if file is None:
        return frozenset()
    names = set[str]()
    for kind, first, last, start, end in _differences(old, file.lines):
        imports = kind == "replace" and last - first == 1 and _imports_more(old[first], file.lines[start])
        found = file.tests_between(start + imports, end) if imports or kind == "insert" else None
        if found is None:
            return frozenset()
        names |= found
    return frozenset(names)


def _differences(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, int, int, int, int]]:
    found = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return (each for each in found if each[0] != "equal")


def _imports_more(old: str, new: str) -> bool:
    """Tell whether a line imports the same names as before, and others, from the same place."""
    was, now = _NAMES.fullmatch(old.rstrip()), _NAMES.fullmatch(new.rstrip())
    if was is None or now is None or (was["start"], was["rest"]) != (now["start"], now["rest"]):
        return False
    names = [[name.strip() for name in each["names"].split(",")] for each in (was, now)]
    return {*names[0]} <= {*names[1]} and len({*names[1]}) == len(names[1])


class _File(Record):
    """A file of tests, line by line, with what of each is neither comment nor text."""

    lines: tuple[str, ...]
    bare: tuple[str, ...]
    depths: tuple[int, ...]
    """In how many brackets each line begins."""

    @classmethod
    def of(cls, path: str, text: str) -> "_File | None":
        code = blank_out(path, text)
        if code is None:
            return None
        bare, depths = code.splitlines(keepends=True), [0]
        for line in bare:
            depths.append(depths[-1] + _balance(line))
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
        """Tell whether without these lines the file is the same as without those."""
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
        """Return the line behind a statement that begins on a line and ends with its line; else nothing."""
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
        """Tell whether a test that was there begins like a line, in the same block."""
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


def _balance(line: str) -> int:
    return sum((sign in _OPENING) - (sign in _CLOSING) for sign in line)
