"""A git diff side by side, each changed place with what the verdict says of it."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import groupby, zip_longest

from agentflow.core.evidence import Surface
from agentflow.core.finding import Finding
from agentflow.core.record import Record
from agentflow.core.verdict import MutantResult, ProofKind, Verdict, pick_survivors
from agentflow.redact import list_some
from agentflow.verdict.paths import PathKind, explain
from agentflow.view.verdict import FileDiff
from agentflow.wording import describe, describe_all

_HEAD = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)")
_NO_NEWLINE = "\\"
_MOST_ROWS = 800
"""Lines of one file that anybody looks at."""


class JudgedAs(StrEnum):
    PROVED = "proved"
    UNPROVED = "unproved"
    CHECK = "changed check"
    DOCUMENT = "document"
    SAME = "same behaviour"
    OPEN = "not judged"


_PROVED = {True: JudgedAs.PROVED, False: JudgedAs.UNPROVED}


class FileLine(Record):
    number: int
    text: str
    is_changed: bool


class SideRow(Record):
    """A line of the old file beside the line of the new file; one of them may be missing."""

    old: FileLine | None
    new: FileLine | None
    survivors: tuple[MutantResult, ...] = ()


class DiffBlock(Record):
    """Neighbouring lines: either all changed, with a mark, or all unchanged."""

    rows: tuple[SideRow, ...]
    mark: JudgedAs | None = None
    note: str = ""
    """Why it is marked so, or what would prove it."""


class HunkView(Record):
    title: str
    blocks: tuple[DiffBlock, ...]


class FileView(Record):
    path: str
    kind: PathKind
    reason: str
    added: int
    removed: int
    hunks: tuple[HunkView, ...]
    left_out: int = 0

    @property
    def survived(self) -> int:
        rows = (row for hunk in self.hunks for block in hunk.blocks for row in block.rows)
        return sum(each.is_strong for row in rows for each in row.survivors)

    @property
    def marks(self) -> tuple[JudgedAs, ...]:
        found = {block.mark for hunk in self.hunks for block in hunk.blocks}
        return tuple(mark for mark in JudgedAs if mark in found)


def arrange_diff(
    files: Iterable[FileDiff],
    surface: Surface,
    verdict: Verdict | None,
    mutants: tuple[MutantResult, ...] = (),
) -> tuple[FileView, ...]:
    survived = pick_survivors(mutants)
    return tuple(_arrange_file(each, surface, verdict, survived) for each in files)


def _arrange_file(
    file: FileDiff, surface: Surface, verdict: Verdict | None, survived: Iterable[MutantResult]
) -> FileView:
    about = explain(file.path, surface)
    survivors = defaultdict[int, list[MutantResult]](list)
    own = [mutant for mutant in survived if mutant.path == file.path]
    for mutant in own:
        survivors[mutant.line].append(mutant)
    judged = _Marks(
        path=file.path,
        kind=about.kind,
        verdict=verdict,
        survivors=survivors,
        edits=frozenset(mutant.edit for mutant in own),
    )
    hunks = list[list[str]]()
    for row in file.hunks[:_MOST_ROWS]:
        if row.startswith("@@") or not hunks:
            hunks.append([])
        hunks[-1].append(row)
    return FileView(
        path=file.path,
        kind=about.kind,
        reason=about.reason,
        added=file.added,
        removed=file.removed,
        hunks=tuple(_arrange_hunk(rows, judged) for rows in hunks),
        left_out=max(0, len(file.hunks) - _MOST_ROWS),
    )


class _Marks(Record):
    path: str
    kind: PathKind
    verdict: Verdict | None
    survivors: dict[int, list[MutantResult]]
    """The edits that no test notices and that are not shown yet, by their line in the new file."""
    edits: frozenset[str]
    """All of them; they are shown at their lines."""

    def judge_lines(self, numbers: Sequence[int]) -> list[tuple[JudgedAs, str]]:
        """Return mark and note of some lines; one that was not tried belongs to what comes after it."""
        verdict = self.verdict
        if self.kind is not PathKind.PRODUCT:
            kind = JudgedAs.CHECK if self.kind is PathKind.CHECK else JudgedAs.DOCUMENT
            return [(kind, "")] * len(numbers)
        if verdict is None or not (verdict.proof or verdict.unproved):
            return [(JudgedAs.OPEN, "")] * len(numbers)
        proved = ([proved for first, last, proved in self._spans if first <= at <= last] for at in numbers)
        tried = [_PROVED[all(each)] if each else None for each in proved]
        last = next((mark for mark in reversed(tried) if mark), None)
        if last is None:
            return [self._find_whole(verdict)] * len(numbers)
        filled = list[JudgedAs]()
        for mark in reversed(tried):
            filled.append(mark or (filled[-1] if filled else last))
        return [(mark, "") for mark in reversed(filled)]

    def list_wanted(self, first: int, last: int) -> str:
        near = (each for each, span in self._unproved if span[0] <= last and first <= span[1])
        others = (describe(each.replace(path="")) for each in near if self.edits.isdisjoint(each.subjects))
        return list_some(dict.fromkeys(others), 3, "; ")

    def _find_whole(self, verdict: Verdict) -> tuple[JudgedAs, str]:
        kinds = [each.kind for each in verdict.proof]
        tried = any(each.hunks for each in verdict.proof)
        if ProofKind.PINNED in kinds or (ProofKind.FAIL_TO_PASS in kinds and not tried):
            return JudgedAs.PROVED, ""
        if kinds:  # what has no behaviour is not tried alone
            other = next((kind for kind in kinds if kind is not ProofKind.FAIL_TO_PASS), None)
            return JudgedAs.SAME, other.words if other else "changes no behaviour by itself"
        return JudgedAs.UNPROVED, next(iter(describe_all(verdict.unproved)), "")

    @property
    def _unproved(self) -> Iterator[tuple[Finding, tuple[int, int]]]:
        for each in self.verdict.unproved if self.verdict else ():
            if each.path == self.path and each.line is not None:
                yield each, (each.line, each.end or each.line)

    @property
    def _spans(self) -> Iterator[tuple[int, int, bool]]:
        """Yield the first and the last line of each place, and whether it is proved."""
        yield from ((*span, False) for _, span in self._unproved)
        for hunk in (hunk for proof in (self.verdict.proof if self.verdict else ()) for hunk in proof.hunks):
            if hunk.path == self.path and hunk.proved:
                yield hunk.line, hunk.end, True


def _arrange_hunk(rows: list[str], judged: _Marks) -> HunkView:
    head = _HEAD.match(rows[0])
    if head is None:  # no diff of git
        return HunkView(title="", blocks=())
    old, new, blocks = int(head[1]), int(head[2]), list[DiffBlock]()
    lines = (row for row in rows[1:] if not row.startswith(_NO_NEWLINE))
    for is_changed, group in groupby(lines, lambda row: row[:1] in "+-"):
        found = list(group)
        if is_changed:
            blocks.extend(_pair(found, old, new, judged))
        else:
            sides = (_number(found, first, is_changed=False) for first in (old, new))
            kept = (SideRow(old=left, new=right) for left, right in zip(*sides, strict=True))
            blocks.append(DiffBlock(rows=tuple(kept)))
        old += sum(row[:1] != "+" for row in found)
        new += sum(row[:1] != "-" for row in found)
    return HunkView(title=head[3].strip(), blocks=tuple(blocks))


def _number(rows: Iterable[str], first: int, *, is_changed: bool) -> list[FileLine]:
    return [FileLine(number=at, text=row[1:], is_changed=is_changed) for at, row in enumerate(rows, first)]


def _pair(rows: list[str], old: int, new: int, judged: _Marks) -> Iterator[DiffBlock]:
    gone = _number((row for row in rows if row[0] == "-"), old, is_changed=True)
    came = _number((row for row in rows if row[0] == "+"), new, is_changed=True)
    pairs = [SideRow(old=left, new=right) for left, right in zip_longest(gone, came)]
    last = came[-1].number if came else max(new, 1)  # what only went has the place of what comes after it
    numbers = [row.new.number if row.new else last for row in pairs]
    pairs = [
        row.replace(survivors=tuple(judged.survivors.pop(number, ())))
        for row, number in zip(pairs, numbers, strict=True)
    ]
    marked = zip(pairs, numbers, judged.judge_lines(numbers), strict=True)
    for (mark, note), group in groupby(marked, lambda each: each[2]):
        found = list(group)
        wanted = judged.list_wanted(found[0][1], found[-1][1]) if mark is JudgedAs.UNPROVED else ""
        yield DiffBlock(rows=tuple(row for row, _, _ in found), mark=mark, note=note or wanted)
