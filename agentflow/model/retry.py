"""The one retry loop, and which failures of a provider may pass."""

import random
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import TypeVar

import anyio

from agentflow.core.errors import ModelError, ModelRejected, ModelUnavailable, PromptTooLong
from agentflow.core.regex import regex
from agentflow.model.wire import BadReply, ModelUnfit, NobodyThere, ServerGone, TryFailed
from agentflow.settings import Retry

T = TypeVar("T")

MAX_BAD_REPLIES = 3
MAX_NOBODY = 3
"""Tries at an address where there is no server."""
_NOBODY_SECONDS = 1.5
"""Between two of them."""
MAX_WAIT = 900.0
"""Seconds that a server may make us wait; for longer the task is parked."""
_PASSING = frozenset({408, 409, 425, 429}) | frozenset(range(500, 600))
_UNFIT = frozenset({400, 404, 410, 422})
"""What an endpoint answers about a model it does not have, or that cannot take the request."""
_NO_TOOLS = regex(
    r"\bsupport\w*\b[^.]{0,40}\btools?\b|\btools?\b[^.]{0,20}\bnot (supported|available|enabled)\b",
    re.IGNORECASE,
)
_TOO_LONG = regex(
    r"\b(prompt|input|context|messages?|tokens)\b.{0,80}\b(too (long|large|many)|exceed|maximum|limit)"
    r"|\b(too (long|large|many)|exceeds?|exceeded|maximum)\b.{0,80}\b(prompt|context|tokens)\b",
    re.IGNORECASE,
)
"""What endpoints say of a request that has more tokens than the model takes."""
_OF_THE_REPLY = "output tokens"
_LONG = 413
_TOOLS_HINT = "every role needs tools; give its tier a model that takes them, under models in config.yaml"
_STATUS: Mapping[str, int] = {
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
}
_HINTS: Mapping[int, str] = {
    401: "set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN to a credential of this endpoint",
    403: "this credential may not use this model",
    404: "check the endpoint's address, and the model ids under models in config.yaml",
}

Tell = Callable[[int, str, float], None]
"""Is told of each failed try: its number, why, and the seconds until the next."""


async def persist(attempt: Callable[[], Awaitable[T]], retry: Retry, tell: Tell) -> T:
    """Return what a try gives; what may pass is tried again, with pauses. Raises ModelError."""
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
        said = f"{failed}; it asks us to wait {asked:.0f} seconds"
        raise ModelUnavailable(said, is_settled=True) from None
    longest = min(_longest(retry, number), _NOBODY_SECONDS if isinstance(failed, NobodyThere) else MAX_WAIT)
    jitter = random.uniform(0, longest)  # noqa: S311  # no secret depends on it
    return round(max(asked, jitter), 3)


def by_status(status: int, message: str, retry_after: str | None) -> ModelError:
    said = f"the model's endpoint answered {status}" + (f": {message}" if message else "")
    if status in _PASSING:
        return TryFailed(said, retry_after=seconds(retry_after))
    is_about_prompt = _TOO_LONG.search(message) and _OF_THE_REPLY not in message
    if status == _LONG or (status in _UNFIT and is_about_prompt):
        return PromptTooLong(said)
    kind = ModelUnfit if status in _UNFIT else ModelRejected
    takes_no_tools = status in _UNFIT and _NO_TOOLS.search(message)
    return kind(said, hint=_TOOLS_HINT if takes_no_tools else _HINTS.get(status, ""))


def by_type(kind: str, message: str) -> ModelError:
    """Return the error that an error event means; one that we do not know may pass."""
    return by_status(_STATUS.get(kind, 500), f"{kind}: {message}" if kind else message, None)


def seconds(retry_after: str | None) -> float | None:
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
