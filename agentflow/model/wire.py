"""Between a live model, its API and its source of bytes: the protocols, and how one try fails."""

import os
import re
import socket
import ssl
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from agentflow.core.errors import ConfigError, ModelRefused, ModelUnavailable
from agentflow.core.messages import Reply, Request, Usage
from agentflow.core.record import Record, encode

if TYPE_CHECKING:
    from agentflow.model.retry import Throttle

ADDRESS = "ANTHROPIC_BASE_URL, or endpoint in config.yaml"
_NO_REPLY = "no reply from the model's endpoint"
_ANY = "0.0.0.0"  # noqa: S104  # nothing is bound to it here
MAX_ERROR_BYTES = 64 * 1024
_GZIP = 31
"""For zlib: the longest window, in gzip's frame."""
_PIECE_BYTES = 256 * 1024
CANNOT_UNPACK = "the reply is compressed in a way that cannot be undone"


class ServerAnswer(Record):
    """An HTTP response whose body is still to be read."""

    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    chunks: AsyncIterator[bytes]


async def decompress_body(chunks: AsyncIterator[bytes], headers: Mapping[str, str]) -> AsyncIterator[bytes]:
    """Yield the body of an answer, decompressed in pieces that stay small. Raises BadReply."""
    packing = headers.get("content-encoding", "").strip().lower()
    if packing in ("", "identity"):
        async for chunk in chunks:
            yield chunk
        return
    if packing != "gzip":
        raise BadReply(CANNOT_UNPACK)
    unpacking = zlib.decompressobj(_GZIP)
    try:
        async for chunk in chunks:
            left = chunk
            while left and not unpacking.eof:
                yield unpacking.decompress(left, _PIECE_BYTES)
                left = unpacking.unconsumed_tail
    except zlib.error:
        raise BadReply(CANNOT_UNPACK) from None


class Source(Protocol):
    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts that no message may contain."""

    def open(self, body: bytes, *, stream: bool) -> AbstractAsyncContextManager[ServerAnswer]:
        """Send one request; raise TryFailed when it does not get through, ModelRefused when none will."""

    async def reach(self) -> None:
        """Open a connection early where that is cheap; raise what `open` raises."""

    async def close(self) -> None:
        """Give up the connection; the next request opens another."""


Room = Callable[[int], int]
"""Says how many tokens a reply may have, for a request of so many bytes."""
ReadReply = tuple[Reply, frozenset[str]]
"""A reply, and the kinds of what was skipped in it."""


class StreamedReply(Protocol):
    @property
    def is_complete(self) -> bool: ...

    @property
    def used(self) -> Usage | None:
        """What the provider has counted so far."""

    def take(self, event: dict[str, Any]) -> str | None:
        """Add an event; return the text it adds to the reply, or None if it brings nothing new."""

    def to_reply(self) -> ReadReply:
        """Return the complete reply; raise BadReply when it is not one, or ModelRejected."""


class Api(Protocol):
    """What a provider's requests and replies look like; all else is the same for every live model."""

    @property
    def title(self) -> str:
        """What messages call it."""

    @property
    def path(self) -> str:
        """Where in a server requests are sent to."""

    def encode(self, request: Request, *, stream: bool, room: Room) -> bytes:
        """Return the body of a request."""

    def read(self, body: bytes) -> ReadReply:
        """Return the reply of a whole answer; raise BadReply, ErrorEvent, ModelRefused or ModelRejected."""

    def start_stream(self) -> StreamedReply | None:
        """Return a reply to which the events of a stream are added, or None where nothing is streamed."""


class ProviderLine(Record):
    """A provider that is asked: how it speaks, and the way to it."""

    api: Api
    source: Source
    place: str = ADDRESS
    """What sets its address."""
    throttle: "Throttle | None" = None


class ErrorEvent(Exception):
    """The provider says, within a reply, that it failed."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__("error event")
        self.error = error


class TryFailed(ModelUnavailable):
    """One try gave no turn; the next one may."""

    def __init__(self, reason: str, *, retry_after: float | None = None, used: Usage | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after
        """Seconds the server asked us to wait."""
        self.used = used
        """What the provider counted before it failed."""


class NobodyThere(TryFailed):
    """There is no server at the address; a few tries are enough to know."""

    def __init__(
        self, reason: str, *, hint: str = "", retry_after: float | None = None, used: Usage | None = None
    ) -> None:
        super().__init__(reason, retry_after=retry_after, used=used)
        self.hint = hint


class ServerGone(ModelUnavailable):
    """No server was found at the address, whichever model is asked."""


class ModelUnfit(ModelRefused):
    """This model cannot take the request; another one of its tier may."""


class BadReply(TryFailed):
    """The answer is no complete turn; a server that sends this repeatedly is not tried for long."""


def to_connection_error(
    error: BaseException, address: str = "", *, by_proxy: bool = False
) -> TryFailed | ModelRefused:
    """Return what a failed connection means: only a certificate that is not trusted stays so."""
    causes = tuple(_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return ModelRefused(
                f"the endpoint's certificate is not trusted: {cause.verify_message}",
                hint="name a private authority's file in SSL_CERT_FILE",
            )
    place = urlsplit(address)
    way = f"the proxy on the way to {place.netloc}" if by_proxy else place.netloc or "its address"
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return NobodyThere(
            f"{_NO_REPLY}: the name of {way} cannot be resolved", hint=f"check the network, and {ADDRESS}"
        )
    is_refused = any(isinstance(cause, ConnectionRefusedError) for cause in causes)
    host = place.hostname or ""
    is_here = host.startswith("127.") or host in ("localhost", "::1", _ANY) or host.endswith(".localhost")
    if is_refused and is_here:
        return NobodyThere(
            f"{_NO_REPLY}: nothing listens at {way}", hint=f"start the server, or check {ADDRESS}"
        )
    # what h11 and httpx say of it is about their own states
    if any(type(cause).__name__.endswith("ProtocolError") for cause in causes):
        return TryFailed(f"{_NO_REPLY}: the connection was closed before a whole reply")
    said = next(filter(None, (getattr(cause, "strerror", None) or str(cause) for cause in causes)), "")
    unsaid = "it took too long" if isinstance(error, TimeoutError) else "the connection broke off"
    return TryFailed(f"{_NO_REPLY}: {said or unsaid}")


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        if isinstance(cause, BaseExceptionGroup):  # one for each address that a name has
            yield from cause.exceptions
        cause = cause.__cause__ or cause.__context__


def explain_unread_certificates() -> ConfigError:
    named = os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")
    return ConfigError(f"the certificates in {named} cannot be read", hint="see SSL_CERT_FILE")


_SECONDS = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s")


class ServerFault(Record):
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
