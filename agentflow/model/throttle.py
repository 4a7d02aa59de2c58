"""Limits that processes share at an endpoint: requests at once, requests a minute, pauses it asks for.

Each endpoint has one small file, changed under its lock, and one lock file for each request that may run at
once; both are let go of by the system when a process dies.
"""

import fcntl
import hashlib
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Annotated

import anyio
from msgspec import Meta

from agentflow.core.errors import InvalidFile
from agentflow.core.record import Record, encode
from agentflow.frontmatter import write_whole
from agentflow.model.retry import MAX_WAIT
from agentflow.parse import decode

_SETTINGS = "limits.json"
_LOOK_SECONDS = 0.05


class SharedLimits(Record):
    """What all processes together may ask of one endpoint."""

    at_once: Annotated[int, Meta(ge=1)] | None = None
    per_minute: Annotated[float, Meta(gt=0)] | None = None


class _Bucket(Record):
    """What an endpoint's requests have used up; times are seconds of the clock."""

    full_at: float = 0
    """When the bucket is full again: each request moves it on by its share of a minute."""
    open_at: float = 0
    """When the endpoint wants to be asked again."""


class Throttle:
    """One process's access to an endpoint with shared limits."""

    def __init__(self, folder: Path, endpoint: str) -> None:
        name = hashlib.sha256(endpoint.encode()).hexdigest()[:16]
        self._place = folder / f"{name}.json"
        self._slots = folder / f"{name}.slot"
        self._limits = decode(SharedLimits, (folder / _SETTINGS).read_bytes(), str(folder / _SETTINGS))

    @asynccontextmanager
    async def take_turn(self) -> AsyncIterator[None]:
        """Wait until a request may be sent, and let others wait while it runs."""
        async with self._hold_slot():
            while pause := self._ask_pause():  # noqa: ASYNC110  # other processes set no event
                await anyio.sleep(pause)
            yield

    def pause(self, seconds: float) -> None:
        """Let nobody ask the endpoint for some seconds."""
        with self._change() as (bucket, save):
            save(bucket.replace(open_at=max(bucket.open_at, time.time() + min(seconds, MAX_WAIT))))

    def _ask_pause(self) -> float:
        """Take a token and return 0, or return the seconds until there may be one."""
        now, share = time.time(), 60 / self._limits.per_minute if self._limits.per_minute else 0.0
        room = share * ((self._limits.at_once or 1) - 1)
        with self._change() as (bucket, save):
            until = max(bucket.open_at, bucket.full_at - room)
            if until > now:
                return min(until - now, MAX_WAIT)
            save(bucket.replace(full_at=max(bucket.full_at, now) + share))
        return 0.0

    @contextmanager
    def _change(self) -> Iterator[tuple[_Bucket, Callable[[_Bucket], None]]]:
        """Yield what stands in the file, and what replaces it; nobody else reads or writes it meanwhile."""
        lock = os.open(self._place.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield self._read(), lambda bucket: write_whole(self._place, encode(bucket))
        finally:
            os.close(lock)

    def _read(self) -> _Bucket:
        try:
            return decode(_Bucket, self._place.read_bytes(), str(self._place))
        except (OSError, InvalidFile):
            return _Bucket()

    @asynccontextmanager
    async def _hold_slot(self) -> AsyncIterator[None]:
        if self._limits.at_once is None:
            yield
            return
        while (slot := self._try_slots(self._limits.at_once)) is None:  # noqa: ASYNC110
            await anyio.sleep(_LOOK_SECONDS)
        try:
            yield
        finally:
            os.close(slot)

    def _try_slots(self, count: int) -> int | None:
        """Return the locked file of a free slot."""
        for number in range(count):
            slot = os.open(f"{self._slots}-{number}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(slot, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(slot)
            else:
                return slot
        return None


def share_limits(folder: Path, limits: SharedLimits) -> None:
    """Write down what all processes that are told of a folder may ask of an endpoint."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / _SETTINGS, encode(limits))
