"""The pipes of a program that runs beside us, read and written without waiting on a thread."""

import os
from typing import IO

import anyio

_CHUNK = 1 << 16


async def read_pipe(pipe: IO[bytes] | None) -> bytes:
    """Return what a pipe holds as soon as it holds something; nothing at its end."""
    assert pipe is not None
    while True:
        await anyio.wait_readable(pipe.fileno())
        try:
            return os.read(pipe.fileno(), _CHUNK)
        except BlockingIOError:
            continue


async def write_pipe(pipe: IO[bytes] | None, content: bytes) -> bool:
    """Write all to a pipe; tell whether somebody still reads it."""
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
