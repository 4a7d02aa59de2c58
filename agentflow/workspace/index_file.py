"""The index of a repository as bytes, read and written without git where it is of the plain kind.

What git would refuse to take into an index, or reads in a way of its own, is left to git.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import NamedTuple

_HEAD = Struct(">4sLL")
_MODE, _ID = slice(24, 28), 40
"""Where an entry has them; before, between and behind stands what the kernel said, which nobody believes."""
_EXTENDED, _STAGE, _SKIP = 0x4000, 0x3000, 0x4000
_LONGEST = 0xFFF
_MODES = (0o100644, 0o100755, 0o120000)
_ODD = re.compile(
    rb"(?:^|/)(?:\.{0,2}|\.git|git~\d+)(?:/|$)"  # no name, or one that leads out or into git's own folder
    rb"|(?:^|/)\.[^/]*[\x80-\xff]"  # what some file systems take for such a one
    rb"|[\\:\x00-\x1f]",
    re.IGNORECASE,
)


class IndexEntry(NamedTuple):
    """A file of an index."""

    path: bytes
    mode: int
    id: bytes
    is_skipped: bool = False
    """Left out of the disk."""


def read_index(raw: bytes, hash_name: str) -> tuple[IndexEntry, ...] | None:
    """Return the files of an index, sorted; None where git has to say what it holds."""
    try:
        found = _read(raw, hashlib.new(hash_name, usedforsecurity=False).digest_size)
    except (IndexError, ValueError):
        return None
    paths = {entry.path for entry in found}
    is_clear = len(paths) == len(found) and not any(map(_ODD.search, paths))
    return tuple(sorted(found)) if is_clear and paths.isdisjoint(list_folders(paths)) else None


def _read(raw: bytes, digest: int) -> list[IndexEntry]:
    """Return the files of an index. Raises ValueError unless all are plain files in plain entries."""
    kind, version, count = raw[:4], int.from_bytes(raw[4:8]), int.from_bytes(raw[8:12])
    if kind != b"DIRC" or version not in (2, 3):
        raise ValueError(version)
    place, found = _HEAD.size, list[IndexEntry]()
    for _ in range(count):
        head = raw[place : place + _ID + digest + 4]
        flags, more = int.from_bytes(head[-4:-2]), int.from_bytes(head[-2:])
        is_extended, mode = bool(flags & _EXTENDED), int.from_bytes(head[_MODE])
        begin = place + len(head) - (0 if is_extended else 2)
        end = raw.index(b"\0", begin)
        if mode not in _MODES or flags & _STAGE:
            raise ValueError(mode)
        found.append(IndexEntry(raw[begin:end], mode, head[_ID:-4], is_extended and bool(more & _SKIP)))
        place += (end - place + 8) & ~7
    if any(name[:1].islower() for name in _extensions(raw, place, len(raw) - digest)):
        raise ValueError("an extension changes what the entries mean")
    return found


def _extensions(raw: bytes, place: int, end: int) -> Iterator[bytes]:
    while place < end:
        yield raw[place : place + 4]
        place += 8 + int.from_bytes(raw[place + 4 : place + 8])


def list_folders(paths: Iterable[bytes]) -> set[bytes]:
    """Return all folders that paths lead through, the top left out."""
    return {folder for path in paths for folder in _parents(path)}


def _parents(path: bytes) -> Iterator[bytes]:
    while path := path.rpartition(b"/")[0]:
        yield path


def write_index(entries: tuple[IndexEntry, ...], hash_name: str) -> bytes:
    """Return an index of sorted files in which no content is known before git read the file."""
    version = 3 if any(entry.is_skipped for entry in entries) else 2
    body = _HEAD.pack(b"DIRC", version, len(entries)) + b"".join(map(_encode_entry, entries))
    return body + hashlib.new(hash_name, body, usedforsecurity=False).digest()


def _encode_entry(entry: IndexEntry) -> bytes:
    size = min(len(entry.path), _LONGEST)
    flags = (size | _EXTENDED, _SKIP) if entry.is_skipped else (size,)
    told = (
        bytes(24)
        + entry.mode.to_bytes(4)
        + bytes(12)
        + entry.id
        + b"".join(flag.to_bytes(2) for flag in flags)
    )
    whole = told + entry.path
    return whole + bytes(8 - len(whole) % 8)


def hash_tree(entries: Iterable[IndexEntry], hash_name: str) -> str:
    """Return the id of the tree that files make."""
    folders: dict[bytes, list[tuple[bytes, bytes]]] = {b"": []}
    for entry in entries:
        folder, _, name = entry.path.rpartition(b"/")
        folders.setdefault(folder, []).append((name, b"%o %s\0%s" % (entry.mode, name, entry.id)))
    for folder in list_folders(tuple(folders)):
        folders.setdefault(folder, [])
    for folder in sorted(folders.keys() - {b""}, key=lambda path: -path.count(b"/")):
        above, _, name = folder.rpartition(b"/")
        found = _hash_folder(folders[folder], hash_name)
        folders[above].append((name + b"/", b"40000 %s\0%s" % (name, found)))
    return _hash_folder(folders[b""], hash_name).hex()


def _hash_folder(parts: list[tuple[bytes, bytes]], hash_name: str) -> bytes:
    content = b"".join(part for _, part in sorted(parts))
    return hashlib.new(hash_name, b"tree %d\0%s" % (len(content), content), usedforsecurity=False).digest()
