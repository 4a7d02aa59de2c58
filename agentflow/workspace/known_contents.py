"""Which ignored files are as they were first seen: by their content, where what the kernel says differs.

Whoever installs the same package elsewhere gives its files one more hard link, and with it another time of
their last change; so do backups.
"""

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from agentflow.frontmatter import write_atomic

_ROOM = 128_000_000
"""Bytes of contents that are read each time; what remains is read the next times."""


class _Known(NamedTuple):
    """A file, all fields as text."""

    now: str
    """What the kernel says of it."""
    first: str
    """What it said when the file came to have this content."""
    digest: str
    """Empty where nobody read it yet."""


class KnownContents:
    """The files of the last look, in a file beside those that undo needs, which no command can write."""

    def __init__(self, kept: Path) -> None:
        self._place = kept / "contents"
        words = os.fsdecode(self._place.read_bytes()).split("\0") if self._place.is_file() else []
        found = zip(*[iter(words)] * 4, strict=False)  # the last word is empty
        self._before = {path: _Known(*rest) for path, *rest in found}

    def stamp(self, root: Path, found: Mapping[str, os.stat_result]) -> Iterator[tuple[str, str]]:
        """Yield each path with what was said of it when it came to have the content that it has now."""
        now = {path: self._look(root / path, path, said) for path, said in found.items()}
        room = _ROOM
        waiting = (path for path, known in now.items() if not known.digest)
        for path in sorted(waiting, key=lambda path: (found[path].st_nlink < 2, found[path].st_size)):
            size = found[path].st_size
            if room > 0 and (size <= room or found[path].st_nlink > 1):
                now[path] = now[path]._replace(digest=digest_file(root / path, found[path]))
                room -= size
        self._save(now)
        yield from ((path, known.first) for path, known in now.items())

    def _look(self, place: Path, path: str, said: os.stat_result) -> _Known:
        here, before = _describe(said), self._before.get(path)
        if before is None or before.now == here:
            return before or _Known(here, here, "")
        is_alike = before.first.split()[:2] == here.split()[:2]
        digest = digest_file(place, said) if before.digest and is_alike else ""
        return _Known(here, before.first if digest and digest == before.digest else here, digest)

    def _save(self, now: Mapping[str, _Known]) -> None:
        if now == self._before:
            return
        with suppress(OSError):  # the next time looks at all of them again
            self._place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            words = (f"{word}\0" for path, known in now.items() for word in (path, *known))
            write_atomic(self._place, os.fsencode("".join(words)))


def _describe(said: os.stat_result) -> str:
    return f"{said.st_mode} {said.st_size} {said.st_mtime_ns} {said.st_ctime_ns}"


def digest_file(place: Path, said: os.stat_result) -> str:
    """Return a digest of what a file or link holds; empty unless it is the one of which that was said."""
    try:
        if stat.S_ISLNK(said.st_mode):
            return hashlib.sha256(os.fsencode(place.readlink())).hexdigest()
        with os.fdopen(os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return ""
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return digest if _describe(os.fstat(file.fileno())) == _describe(said) else ""
    except OSError:
        return ""
