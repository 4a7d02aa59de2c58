"""What a process prints, as it comes: with a cap on what is kept."""

import hashlib
from typing import IO

KEEP_BYTES = 16 * 1024 * 1024
"""Output kept in full; beyond it, head and tail."""
TAIL_BYTES = 1024 * 1024
SPOKEN_BYTES = 64 * 1024
"""What is kept of each stream of an exchange."""


class Collected:
    """Output as it comes: all of it hashed, head and tail kept."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.digest = hashlib.sha256()
        self.bytes = 0
        self.tail = b""

    def add(self, chunk: bytes) -> None:
        self.digest.update(chunk)
        room = max(0, KEEP_BYTES - TAIL_BYTES - self.bytes)
        self.file.write(chunk[:room])
        self.bytes += len(chunk)
        self.tail = (self.tail + chunk)[-TAIL_BYTES:]

    def finish(self) -> None:
        written = min(self.bytes, KEEP_BYTES - TAIL_BYTES)
        rest = self.bytes - written
        if rest > len(self.tail):
            self.file.write(b"\n[... %d bytes dropped ...]\n" % (rest - len(self.tail)))
        self.file.write(self.tail[-rest:] if rest else b"")


class Spoken:
    """The beginning of a stream, and how long it is."""

    def __init__(self) -> None:
        self.kept = b""
        self.bytes = 0

    def add(self, chunk: bytes) -> None:
        self.kept += chunk[: max(0, SPOKEN_BYTES - self.bytes)]
        self.bytes += len(chunk)
