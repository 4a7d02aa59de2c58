"""The paths that differ between two trees, by their entries where both are known, else from git's output."""

import stat
from collections.abc import Iterator
from enum import StrEnum

from agentflow.core.record import Record
from agentflow.workspace.private_git import IndexEntry


class ChangeKind(StrEnum):
    ADDED = "A"
    MODIFIED = "M"
    DELETED = "D"
    TYPE = "T"


class FileChange(Record):
    kind: ChangeKind
    path: str
    """Bytes that are no UTF-8 are escaped, as in `\\xff`."""


class EntryChange(Record):
    """One path that differs between two trees, with what they have there."""

    kind: ChangeKind
    path: bytes
    modes: tuple[bytes, bytes]
    """Before and after, as git writes them; zeros where there is no such file."""
    blobs: tuple[bytes, bytes]


def compare_entries(
    before: tuple[IndexEntry, ...], after: tuple[IndexEntry, ...], nobody: bytes
) -> Iterator[EntryChange]:
    """Yield the paths that differ between two trees, sorted; `nobody` is the id for a missing file."""
    first, second = {*before}, {*after}
    old, new = ({entry.path: entry for entry in entries} for entries in (first - second, second - first))
    for path in sorted(old.keys() | new.keys()):
        pair = (old.get(path), new.get(path))
        modes, blobs = zip(*(_spell(entry, nobody) for entry in pair), strict=True)
        yield EntryChange(kind=_find_kind(*pair), path=path, modes=modes, blobs=blobs)


def _spell(entry: IndexEntry | None, nobody: bytes) -> tuple[bytes, bytes]:
    """Return mode and id of a file as git writes them; zeros for none."""
    if entry is None:
        return b"000000", nobody
    return b"%06o" % entry.mode, entry.id.hex().encode()


def _find_kind(before: IndexEntry | None, after: IndexEntry | None) -> ChangeKind:
    if before is None:
        return ChangeKind.ADDED
    if after is None:
        return ChangeKind.DELETED
    is_same = stat.S_IFMT(before.mode) == stat.S_IFMT(after.mode)
    return ChangeKind.MODIFIED if is_same else ChangeKind.TYPE
