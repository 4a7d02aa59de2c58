"""A git diff, file by file; pure."""

import re
from collections.abc import Iterator

from agentflow.core.record import Record

_HEAD = re.compile(r'diff --git (?:a/(?P<same>.+) b/(?P=same)|.* "?b/(?P<new>.+?)"?)')


class FileDiff(Record):
    """What a diff says about one file."""

    path: str
    added: int
    removed: int
    hunks: tuple[str, ...]


def file_diffs(diff: str) -> Iterator[FileDiff]:
    """Yield the files of a git diff, each with its hunks."""
    rows: list[str] = []
    for row in [*diff.split("\n"), "diff --git "]:
        if row.startswith("diff --git "):
            if rows and rows[0].startswith("diff --git "):
                yield _file_diff(rows)
            rows = []
        rows.append(row)


def _file_diff(rows: list[str]) -> FileDiff:
    begin = next((number for number, row in enumerate(rows) if row.startswith("@@")), len(rows))
    hunks = [row for row in rows[begin:] if row]
    while hunks and hunks[-1].isspace():
        hunks.pop()
    return FileDiff(
        path=_path(rows[0]),
        added=sum(row.startswith("+") for row in hunks),
        removed=sum(row.startswith("-") for row in hunks),
        hunks=tuple(hunks),
    )


def _path(head: str) -> str:
    """Return the file that a line `diff --git a/X b/X` is about."""
    found = _HEAD.fullmatch(head)
    return (found["same"] or found["new"]) if found else head
