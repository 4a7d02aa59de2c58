"""The output of a process as it comes: collected up to a cap, or read and written without blocking."""

import hashlib
import os
from collections.abc import Callable, Mapping
from selectors import BaseSelector
from typing import IO

from agentflow.redact import Redactor, redact_bytes

KEEP_BYTES = 16 * 1024 * 1024
"""Output kept in full; beyond it, head and tail."""
TAIL_BYTES = 1024 * 1024
HEAD_BYTES = 64 * 1024
"""What is kept of each stream of an exchange."""
_CHUNK = 1 << 16
_PIPE_CHUNKS = 16  # the most that a pipe holds


class OutputCollector:
    """Output as it comes: all of it hashed and counted, head and tail kept without secrets."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._kept = Redactor(lambda text: file.write(text.encode("latin-1")))
        self._tail = b""
        self.digest = hashlib.sha256()
        self.bytes = 0

    @property
    def tail(self) -> bytes:
        return redact_bytes(self._tail)

    def add(self, chunk: bytes) -> None:
        self.digest.update(chunk)
        room = max(0, KEEP_BYTES - TAIL_BYTES - self.bytes)
        self._keep(chunk[:room])
        self.bytes += len(chunk)
        self._tail = (self._tail + chunk)[-TAIL_BYTES:]

    def finish(self) -> None:
        written = min(self.bytes, KEEP_BYTES - TAIL_BYTES)
        rest = self.bytes - written
        if rest > len(self._tail):
            self._kept.finish()
            self._file.write(b"\n[... %d bytes dropped ...]\n" % (rest - len(self._tail)))
        self._keep(self._tail[-rest:] if rest else b"")
        self._kept.finish()

    def _keep(self, chunk: bytes) -> None:
        if chunk:
            self._kept.add(chunk.decode("latin-1"))
            self._file.flush()  # observers count the tests that have ended


class StreamHead:
    """The beginning of a stream, and how long it is."""

    def __init__(self) -> None:
        self.kept = b""
        self.bytes = 0

    def add(self, chunk: bytes) -> None:
        self.kept += chunk[: max(0, HEAD_BYTES - self.bytes)]
        self.bytes += len(chunk)


def pass_on(stream: IO[bytes], take: Callable[[bytes], None], selector: BaseSelector) -> int:
    """Pass on what can be read now, and return how much; a stream at its end leaves the selector."""
    try:
        chunk = os.read(stream.fileno(), _CHUNK)
    except BlockingIOError:
        return 0
    if chunk:
        take(chunk)
    elif stream.fileno() in selector.get_map():
        selector.unregister(stream)
    return len(chunk)


def drain(taken: Mapping[IO[bytes], Callable[[bytes], None]]) -> None:
    """Read the rest of the pipes without waiting for a process that still holds one."""
    for stream, take in taken.items():
        for _ in range(_PIPE_CHUNKS):
            if not (chunk := stream.read(_CHUNK)):
                break
            take(chunk)
        stream.close()


async def read_pipe(pipe: IO[bytes] | None) -> bytes:
    import anyio  # noqa: PLC0415  # most commands wait on no pipe this way

    assert pipe is not None
    while True:
        await anyio.wait_readable(pipe.fileno())
        try:
            return os.read(pipe.fileno(), _CHUNK)
        except BlockingIOError:
            continue


async def write_pipe(pipe: IO[bytes] | None, content: bytes) -> bool:
    """Write all to a pipe; return whether its reader is still there."""
    import anyio  # noqa: PLC0415

    assert pipe is not None
    left = memoryview(content)
    while left:
        try:
            left = left[os.write(pipe.fileno(), left) :]
        except BlockingIOError:
            await anyio.wait_writable(pipe.fileno())
        except OSError:
            return False
    return True


async def feed_pipe(pipe: IO[bytes] | None, content: bytes) -> None:
    """Write all that a program reads, and close the pipe."""
    assert pipe is not None
    await write_pipe(pipe, content)
    pipe.close()
