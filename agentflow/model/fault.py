"""What a server says of a request that failed, in the shapes in which servers say it."""

import re
import time
from collections.abc import Mapping
from typing import Any

from agentflow.core.record import Record, encode

_SECONDS = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s")


class ServerFault(Record):
    """The body of an error."""

    message: str = ""
    kinds: tuple[str, ...] = ()
    """The server's names for it, the narrowest first."""
    status: int | None = None
    """The HTTP status in the body, where a reply had begun before it failed."""
    retry_after: str | None = None
    """As the header of this name has it."""


def read_fault(said: Any, headers: Mapping[str, str]) -> ServerFault:
    """Return the fault that a body tells; one in a list, or without a frame around it, counts as well."""
    whole = said[0] if isinstance(said, list) and said else said
    if not isinstance(whole, dict):
        return ServerFault(retry_after=_find_wait({}, headers))
    error = whole.get("error") or whole
    if not isinstance(error, dict):
        error = {"message": error}
    code = error.get("code")
    named = tuple(name for name in (code, error.get("type")) if isinstance(name, str) and name)
    return ServerFault(
        message=_find_message(error),
        kinds=tuple(name for name in named if not name.isdigit()),
        status=code if isinstance(code, int) and 400 <= code < 600 else None,
        retry_after=_find_wait(error, headers),
    )


def _find_message(error: dict[str, Any]) -> str:
    said = error.get("message") or error.get("detail") or ""
    raw = _take(error, "metadata").get("raw")
    own = said if isinstance(said, str) else encode(said).decode()
    return f"{own}: {raw}" if isinstance(raw, str) and raw else own


def _find_wait(error: dict[str, Any], headers: Mapping[str, str]) -> str | None:
    """Return the seconds to wait, or a date: of a header, or of one that stands in the body."""
    within = _take(_take(error, "metadata"), "headers")
    inner = {str(name).lower(): str(value) for name, value in within.items()}
    told = {**inner, **headers}
    if (wait := told.get("retry-after")) is not None:
        return wait
    if (milliseconds := told.get("retry-after-ms", "")).isdecimal():
        return str(int(milliseconds) / 1000)
    if (reset := inner.get("x-ratelimit-reset", "")).isdecimal():
        return str(max(0.0, int(reset) / 1000 - time.time()))
    details = error.get("details")
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str) and (found := _SECONDS.fullmatch(delay)):
            return found[1]
    return None


def _take(value: dict[str, Any], key: str) -> dict[str, Any]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}
