"""The one retry loop: which failures of a provider may pass, and limits that processes share."""

import fcntl
import hashlib
import os
import random
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TypeVar

import anyio
from msgspec import Meta

from agentflow.core.errors import (
    PASSING_STATUSES,
    InvalidFile,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    PromptTooLong,
)
from agentflow.core.record import Record, encode
from agentflow.core.regex import regex
from agentflow.frontmatter import write_whole
from agentflow.model.wire import ADDRESS, BadReply, ModelUnfit, NobodyThere, ServerGone, TryFailed
from agentflow.parse import decode
from agentflow.settings import Retry

T = TypeVar("T")

MAX_BAD_REPLIES = 3
MAX_NOBODY = 3
"""Tries at an address where there is no server."""
_NOBODY_SECONDS = 1.5
"""Between two of them."""
MAX_WAIT = 900.0
"""Seconds that a server may make us wait; for longer the task is parked."""
_UNFIT = frozenset({400, 404, 410, 422})
"""The status for a model that the endpoint lacks, or that cannot take the request."""
_NO_TOOLS = regex(
    r"\bsupport\w*\b[^.]{0,40}\b(tools?|function call\w*)\b"
    r"|\b(tools?|function call\w*)\b[^.]{0,20}\b(not (supported|available|enabled)|requires? --)",
    re.IGNORECASE,
)
_TOO_LONG = regex(
    r"\b(prompt|input|context|messages?|tokens)\b.{0,80}\b(too (long|large|many)|exceed|maximum|limit)"
    r"|\b(too (long|large|many)|exceeds?|exceeded|maximum)\b.{0,80}\b(prompt|context|tokens)\b",
    re.IGNORECASE,
)
"""What endpoints say of a request that has more tokens than the model takes."""
_OF_THE_REPLY = regex(r"\b(output|completion)[ _]tokens\b")
_LONG = 413
_FAILED = 500
"""What llama.cpp answers where it was started without tools."""
_TOOLS_HINT = (
    "Every role needs tools: start the server with them, "
    "or give the tier a model that takes them, under models in config.yaml"
)
FAULT_STATUSES: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
    "insufficient_quota": 402,
    "invalid_api_key": 401,
    "rate_limit_exceeded": 429,
    "context_length_exceeded": 400,
    "BadRequestError": 400,
    "NotFoundError": 404,
}
"""What the name of an error means where no status tells."""
_REFUSALS: Mapping[int, tuple[str, str]] = {
    401: ("your API key was rejected", "Correct it"),
    403: ("your API key may not do this", "Correct it, or choose another model"),
    404: ("the endpoint has no such model or address", f"Correct the model's id, or {ADDRESS}"),
}
"""What the refusal of a status means, and what a person can do about it."""
_RESUME = ", then run agentflow resume"

Tell = Callable[[int, str, float], None]
"""Gets each failed try: its number, the reason, and the seconds until the next."""


async def persist(attempt: Callable[[], Awaitable[T]], retry: Retry, tell: Tell) -> T:
    """Return the result of the first try that succeeds, with pauses between tries. Raises ModelError."""
    begin = anyio.current_time()
    window = sum(_longest(retry, number) for number in range(1, retry.tries)) / 2
    number = bad = nobody = 0
    while True:
        number += 1
        try:
            return await attempt()
        except TryFailed as failed:
            bad += isinstance(failed, BadReply)
            nobody += isinstance(failed, NobodyThere)
            over = number >= retry.tries and anyio.current_time() - begin >= window
            if over or bad >= MAX_BAD_REPLIES:
                said = f"{failed} ({number} tries)" if number > 1 else str(failed)
                raise ModelUnavailable(said, is_settled=True) from None
            if nobody >= MAX_NOBODY:
                raise ServerGone(f"{failed} ({number} tries)", hint=failed.hint, is_settled=True) from None
            pause = _pause(retry, number, failed)
            tell(number, str(failed), pause)
        await anyio.sleep(pause)


def _longest(retry: Retry, number: int) -> float:
    return min(retry.max_seconds, retry.base_seconds * 2.0 ** min(number - 1, 30))


def _pause(retry: Retry, number: int, failed: TryFailed) -> float:
    """Return full jitter below the growing pause, or what the server asks for if that is more."""
    asked = failed.retry_after or 0.0
    if asked > MAX_WAIT:
        said = f"{failed}; it asks to wait {asked:.0f} seconds"
        raise ModelUnavailable(said, is_settled=True) from None
    longest = min(_longest(retry, number), _NOBODY_SECONDS if isinstance(failed, NobodyThere) else MAX_WAIT)
    jitter = random.uniform(0, longest)  # noqa: S311  # no secret depends on it
    return round(max(asked, jitter), 3)


def to_status_error(status: int, message: str, retry_after: str | None) -> ModelError:
    said = f"the model's endpoint answered {status}" + (f": {message}" if message else "")
    takes_no_tools = (status in _UNFIT or status == _FAILED) and _NO_TOOLS.search(message)
    if status in PASSING_STATUSES and not takes_no_tools:
        return TryFailed(said, retry_after=parse_retry_after(retry_after))
    is_about_prompt = _TOO_LONG.search(message) and not _OF_THE_REPLY.search(message)
    if status == _LONG or (status in _UNFIT and is_about_prompt):
        return PromptTooLong(said)
    kind = ModelUnfit if status in _UNFIT or takes_no_tools else ModelRefused
    meaning, hint = _REFUSALS.get(status, ("the model's endpoint refused this request", "Correct that"))
    about = f"{status}: {message}" if message else str(status)
    return kind(f"{meaning} ({about})", hint=f"{_TOOLS_HINT if takes_no_tools else hint}{_RESUME}")


def to_type_error(kind: str, message: str) -> ModelError:
    """Return the error that an error event means; one that we do not know may pass."""
    return to_status_error(FAULT_STATUSES.get(kind, 500), f"{kind}: {message}" if kind else message, None)


def parse_retry_after(retry_after: str | None) -> float | None:
    """Return the seconds of a `retry-after`, which is a number or a date; None when it is neither."""
    if retry_after is None:
        return None
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass  # then it is a date
    from email.utils import parsedate_to_datetime  # noqa: PLC0415  # few servers name a date

    try:
        until = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    return max(0.0, (until.replace(tzinfo=until.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


_SETTINGS = "limits.json"
_LOOK_SECONDS = 0.05


class SharedLimits(Record):
    """The rate limits that all processes together keep at one endpoint."""

    at_once: Annotated[int, Meta(ge=1)] | None = None
    per_minute: Annotated[float, Meta(gt=0)] | None = None


class _Bucket(Record):
    """The used part of an endpoint's limits; times are seconds of the clock."""

    full_at: float = 0
    """When the bucket is full again: each request moves it on by its share of a minute."""
    open_at: float = 0
    """When the endpoint may be asked again."""


class Throttle:
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
        """Keep all processes from asking the endpoint for some seconds."""
        with self._change() as (bucket, save):
            save(bucket.replace(open_at=max(bucket.open_at, time.time() + min(seconds, MAX_WAIT))))

    def _ask_pause(self) -> float:
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
        """Yield the locked state of the endpoint, and the function that replaces it."""
        lock = os.open(self._place.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            bucket = _Bucket()
            with suppress(OSError, InvalidFile):
                bucket = decode(_Bucket, self._place.read_bytes(), str(self._place))
            yield bucket, lambda changed: write_whole(self._place, encode(changed))
        finally:
            os.close(lock)

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
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / _SETTINGS, encode(limits))
