"""Changed Go that no test runs, as Go counts it: branches and functions."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from agentflow.checks.code_coverage import Block, Load
from agentflow.core.record import Record
from agentflow.core.verdict import Hunk
from agentflow.verdict.probes.branches import shorten
from agentflow.verdict.probes.breaking import find_changed_lines
from agentflow.verdict.tokens import Tokens, read_code
from agentflow.workspace.mixed_tree import ChangedTexts

_BRANCHES = re.compile(r"\{|&&|\|\||\b(?:if|else|for|case|default)\b")
_NO_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|\bbreak\b|[\s{}()\[\];,:]", re.DOTALL)
_EMPTY = re.compile(r"[^{}]*\{\s*\}")
_CHOSEN = re.compile(r"\A[^\n]*_\w+\.go\n|(?m:^// ?(?:go:build|\+build) )")
"""A file of Go that not every system may compile."""
_GO_BODY = re.compile(r"\bfunc\b[^\n]*\{")
_PASSED_ON = re.compile(
    r"\{\s*return (?:(?:nil|false|-?[01]|\"\"|[\w.*\[\]]+\{\}), )*"
    r"(?:err|fmt\.Errorf\(\"[^\"\n]*%w[^\"\n]*\"[^\n]*\berr\))\s*\}"
)
"""A block of Go that passes on an error of another function, as an exception is in other languages."""


class CountedGo(Record):
    """A changed file of which Go tells how often each part ran."""

    change: ChangedTexts

    def is_loaded(self, told: Mapping[str, Load]) -> bool:
        """Return whether the tests ran the file as it is written."""
        load = told.get(self.change.path)
        return self._is_left_out(told) or (load is not None and load[0][0][1] == len(self.change.after))

    def list_untried(self, told: Mapping[str, Load]) -> Iterator[Hunk]:
        """Yield the new parts that no test ran, with the test that would run them."""
        if self._is_left_out(told):
            first = _GO_BODY.search(self.change.after)
            line = self.change.after.count("\n", 0, first.start() if first else 0) + 1
            yield self._point(line, "that runs this file, on a system for which it is compiled")
            return
        if not self.is_loaded(told):
            return
        load = told[self.change.path]
        changed = _find_new_lines(self.change)
        idle = {(block, each[0]) for each in load for block in each if not block[2]}
        yield from self._list_idle(sorted(idle, key=lambda each: (each[0][0], -each[0][1])), load, changed)
        yield from self._list_always_true({block[0] for block, _ in idle}, load, changed)

    def _is_left_out(self, told: Mapping[str, Load]) -> bool:
        """Return whether Go counted other files, while this one, with functions, was in no test program."""
        path, after = self.change.path, self.change.after
        return bool(told) and path not in told and _GO_BODY.search(after) is not None

    def _list_idle(
        self, idle: Iterable[tuple[Block, Block]], load: Load, changed: Collection[int]
    ) -> Iterator[Hunk]:
        """Yield the parts that no test ran, each but once; a part comes with its function."""
        tried, end = _find_run(load), 0
        for block, function in idle:
            is_due = block[0] >= end and not any(tried[slice(*block[:2])]) and self._is_code(block)
            lines = self._head(self._line(self._begin(block)))
            if is_due and any(line in changed for line in lines) and not self._is_known(function):
                end = block[1]
                yield self._tell(block)

    def _list_always_true(
        self, idle: Collection[int], load: Load, changed: Collection[int]
    ) -> Iterator[Hunk]:
        """Yield the conditions that were never false, where no idle part begins that tells of it."""
        for condition, then, last in self._find_conditions():
            lines = range(self._line(condition[0]), self._line(condition[1]) + 1)
            is_new = any(line in changed for line in lines) and not self._is_known(condition)
            is_told = any(then < start <= last for start in idle)
            text = self._text(condition)[1:-1]
            if is_new and not is_told and _is_always_true(load, condition[0], then):
                yield self._point(lines[0], f"in which `{_shorten(text)}` is false")

    def _find_conditions(self) -> Iterator[tuple[Block, int, int]]:
        """Yield each condition of an `if`, and where what follows begins and ends."""
        code = read_code(self.change.path, self.change.after)
        if code is None:
            return
        for place in code.find_places("if"):
            closing = self._end_of_condition(code, place)
            if place < closing < len(code.words) - 1:
                begin, then = code.places[place + 1], code.places[closing + 1]
                braces = code.partners[closing + 1]
                behind = braces + 1 + (code.get_word(braces + 1) == "else")
                last = code.places[min(behind, len(code.places) - 1)]
                yield (begin - 1, then, 1), then + 1, last

    def _end_of_condition(self, code: Tokens, place: int) -> int:
        """Return the last token of the condition behind an `if`; 0 if it cannot be told."""
        blocks = (at for at in range(place, len(code.words)) if code.get_word(at) == "{")
        return next((at - 1 for at in blocks if code.around[at] == code.around[place]), 0)

    def _is_known(self, block: Block) -> bool:
        """Return whether a part stood in the file before, whatever its indentation."""
        return _bare(self._text(block)) in _bare(self.change.before)

    def _text(self, block: Block) -> str:
        return self.change.after[block[0] : block[1]]

    def _line(self, place: int) -> int:
        return len(f"{self._text((0, place, 0))}.".splitlines())

    def _begin(self, block: Block) -> int:
        """Return where a part begins: with the sign before it, a bracket or a colon."""
        return len(self._text((0, block[0], 0)).rstrip()) - 1

    def _head(self, line: int) -> range:
        """Return the lines of the condition before a part that begins on a line."""
        lines, first = self.change.after.splitlines(), line
        while first > 1 and lines[first - 1].strip().startswith(")"):
            first -= 1
        is_end = first > 1 and lines[first - 1].strip() == "}"
        return range(first - is_end, line + 1)

    def _is_code(self, block: Block) -> bool:
        """Return whether a part does anything more than to pass on an error."""
        text = self._text(block)
        begin = self._text((0, block[0], 0)).rpartition("\n")[2].strip()
        is_empty = _EMPTY.fullmatch(text) or not _NO_CODE.sub("", text)
        if begin.endswith("err != nil") and _PASSED_ON.fullmatch(text):
            return False
        return not is_empty

    def _tell(self, block: Block) -> Hunk:
        text = self._text(block)
        bare = text.lstrip(" \t\r\n:{};")
        line = self._line(block[0] + len(text) - len(bare))
        return self._point(line, f"that runs `{_shorten(bare)}`")

    def _point(self, line: int, wanted: str) -> Hunk:
        return Hunk(path=self.change.path, line=line, end=line, wanted=wanted)


def count_branches(change: ChangedTexts) -> CountedGo | None:
    """Return a changed file of Go whose parts are worth counting; None if no branch is new."""
    lines = change.after.splitlines()
    near = {line + step for line in _find_new_lines(change) for step in (-1, 0)}
    is_branching = any(_BRANCHES.search(lines[line]) for line in near if line < len(lines))
    is_chosen = _CHOSEN.search(f"{change.path}\n{change.after}") is not None
    is_due = change.path.endswith(".go") and (is_chosen or is_branching)
    return CountedGo(change=change) if is_due else None


def _find_new_lines(change: ChangedTexts) -> frozenset[int]:
    """Return the numbers of the changed lines, without those that are only indented otherwise."""
    return find_changed_lines(change.replace(before=_bare(change.before), after=_bare(change.after)))


def _bare(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines())


def _shorten(text: str) -> str:
    """Return the first line of code, as it is told."""
    return shorten((text.strip().splitlines() or [""])[0].strip())


def _is_always_true(load: Load, condition: int, then: int) -> bool:
    """Return whether what follows a condition ran as often as the condition itself, which did run."""
    return _count(load, condition) == _count(load, then) > 0


def _count(load: Load, place: int) -> int:
    """Return how often the code at a place ran."""
    around = [block for each in load for block in each if block[0] <= place < block[1]]
    return min(around, key=lambda block: block[1] - block[0])[2] if around else 0


def _find_run(load: Load) -> bytearray:
    """Return 1 for each sign of a file that ran, 0 for the others."""
    found = bytearray(load[0][0][1])
    for start, end, count in sorted((block for each in load for block in each), key=lambda b: (b[0], -b[1])):
        part = slice(max(start, 0), max(start, 0, min(end, len(found))))
        found[part] = bytes([count > 0]) * len(found[part])
    return found
