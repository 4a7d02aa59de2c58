"""What a process prints, as it comes: with a cap on what is kept."""

import hashlib
import os
from collections.abc import Callable, Mapping
from selectors import BaseSelector
from typing import IO

KEEP_BYTES = 16 * 1024 * 1024
"""Output kept in full; beyond it, head and tail."""
TAIL_BYTES = 1024 * 1024
SPOKEN_BYTES = 64 * 1024
"""What is kept of each stream of an exchange."""
_CHUNK = 1 << 16
_PIPE_CHUNKS = 16  # the most that a pipe holds


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


def pass_on(stream: IO[bytes], take: Callable[[bytes], None], selector: BaseSelector) -> None:
    """Read what is there now; a stream at its end is no longer waited for."""
    try:
        chunk = os.read(stream.fileno(), _CHUNK)
    except BlockingIOError:
        return
    if chunk:
        take(chunk)
    elif stream.fileno() in selector.get_map():
        selector.unregister(stream)


def drain(taken: Mapping[IO[bytes], Callable[[bytes], None]]) -> None:
    """Read what is left in the pipes without waiting for anybody who still holds one."""
    for stream, take in taken.items():
        for _ in range(_PIPE_CHUNKS):
            if not (chunk := stream.read(_CHUNK)):
                break
            take(chunk)
        stream.close()
