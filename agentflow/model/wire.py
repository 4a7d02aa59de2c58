"""Between a live model, its API and its server: who is asked with which key, the answer, how a try fails."""

import os
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from agentflow import __version__
from agentflow.core.errors import ConfigError, ModelRejected, ModelUnavailable
from agentflow.core.messages import Reply, Request, ServerToolPart, ToolSpec, Usage
from agentflow.core.record import Record
from agentflow.model.tiers import REPAIR, parse_choice
from agentflow.process import capture_attended
from agentflow.redact import to_one_line
from agentflow.settings import Settings

VENDOR = "https://api.anthropic.com"
MESSAGES_PATH = "/v1/messages"
API_VERSION = "2026-10-21"
ADDRESS = "ANTHROPIC_BASE_URL, or endpoint in config.yaml"
_NO_REPLY = "no reply from the model's endpoint"
_ANY = "0.0.0.0"  # noqa: S104  # nothing is bound to it here
MAX_ERROR_BYTES = 64 * 1024
_GZIP = 31
"""For zlib: the longest window, in gzip's frame."""
_PIECE_BYTES = 256 * 1024
CANNOT_UNPACK = "the reply is compressed in a way that cannot be undone"
KEY = "ANTHROPIC_API_KEY"
TOKEN = "ANTHROPIC_AUTH_TOKEN"  # noqa: S105  # its name
COMMAND_SECONDS = 60.0
_SCHEMES = ("http", "https")
_COMMAND = "api_key_command in config.yaml"


class Secret:
    """A credential, which no print shows."""

    def __init__(self, value: str) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "Secret(…)"


class Endpoint(Record):
    """A server that speaks the Messages API, or another at another path, and the credentials for it."""

    address: str
    key: Secret | None = None
    token: Secret | None = None
    path: str = MESSAGES_PATH

    @property
    def url(self) -> str:
        """The address of requests."""
        return f"{self.address}{self.path}"

    @property
    def headers(self) -> dict[str, str]:
        """The credentials as headers; a key is sent in both headers that servers read."""
        if self.key is not None:
            return {"x-api-key": self.key.value, "authorization": f"Bearer {self.key.value}"}
        return {"authorization": f"Bearer {self.token.value}"} if self.token is not None else {}

    @property
    def request_headers(self) -> dict[str, str]:
        """The headers that are the same in every request of our own."""
        return {
            "content-type": "application/json",
            "anthropic-version": API_VERSION,
            "user-agent": f"agentflow/{__version__}",
            **self.headers,
        }

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(secret.value for secret in (self.key, self.token) if secret is not None)


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
    """A source of the bytes of replies."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts that no message may contain."""

    def open(self, body: bytes, *, stream: bool) -> AbstractAsyncContextManager[ServerAnswer]:
        """Send one request; raise TryFailed when it does not get through, ModelRejected when none will."""

    async def reach(self) -> None:
        """Open a connection early where that is cheap; raise what `open` raises."""

    async def close(self) -> None:
        """Give up the connection; the next request opens another."""


Room = Callable[[int], int]
"""Says how many tokens a reply may have, for a request of so many bytes."""
ReadReply = tuple[Reply, frozenset[str]]
"""A reply, and the kinds of what was skipped in it."""


class StreamedReply(Protocol):
    """A reply as it comes."""

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
        """Return the reply of a whole answer; raise BadReply, ErrorEvent or ModelRejected."""

    def start_stream(self) -> StreamedReply | None:
        """Return a reply to which the events of a stream are added, or None where nothing is streamed."""


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


class ModelUnfit(ModelRejected):
    """This model cannot take the request; another one of its tier may."""


class BadReply(TryFailed):
    """The answer is no complete turn; a server that sends this repeatedly is not tried for long."""


def to_connection_error(
    error: BaseException, address: str = "", *, by_proxy: bool = False
) -> TryFailed | ModelRejected:
    """Return what a failed connection means: only a certificate that is not trusted stays so."""
    causes = tuple(_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return ModelRejected(
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
    if is_refused and _is_here(place.hostname or ""):
        return NobodyThere(
            f"{_NO_REPLY}: nothing listens at {way}", hint=f"start the server, or check {ADDRESS}"
        )
    # what h11 and httpx say of it is about their own states
    if any(type(cause).__name__.endswith("ProtocolError") for cause in causes):
        return TryFailed(f"{_NO_REPLY}: the connection was closed before a whole reply")
    said = next(filter(None, (getattr(cause, "strerror", None) or str(cause) for cause in causes)), "")
    unsaid = "it took too long" if isinstance(error, TimeoutError) else "the connection broke off"
    return TryFailed(f"{_NO_REPLY}: {said or unsaid}")


def _is_here(host: str) -> bool:
    """Return whether a host's name means this machine."""
    return host.startswith("127.") or host in ("localhost", "::1", _ANY) or host.endswith(".localhost")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what led to it."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        if isinstance(cause, BaseExceptionGroup):  # one for each address that a name has
            yield from cause.exceptions
        cause = cause.__cause__ or cause.__context__


def explain_unread_certificates() -> ConfigError:
    """Return the error for certificates of the user that cannot be read."""
    named = os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")
    return ConfigError(f"the certificates in {named} cannot be read", hint="see SSL_CERT_FILE")


MAX_SEARCHES = 5
"""Of one request."""
_OFFERED: Mapping[str, dict[str, Any]] = {
    "WebSearch": {"type": "web_search_20250305", "name": "web_search", "max_uses": MAX_SEARCHES}
}
_OURS: Mapping[str, str] = {tool["name"]: name for name, tool in _OFFERED.items()}


def to_offer(tool: ToolSpec) -> dict[str, Any]:
    if tool.by_provider:
        return dict(_OFFERED[tool.name])
    return {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}


def to_served_call(block: dict[str, Any]) -> ServerToolPart | None:
    """Return a call that the provider made, or None for a tool that nobody offered."""
    tool, given = _OURS.get(str(block.get("name"))), block.get("input")
    if tool is None or not isinstance(given, dict):
        return None
    return ServerToolPart(
        block=block, call_id=str(block.get("id")), tool=tool, said=to_one_line(str(given.get("query")))
    )


def to_served_result(block: dict[str, Any]) -> ServerToolPart:
    """Return the result of a search as a part: the number of results, or the provider's error."""
    found = block.get("content")
    is_error = not isinstance(found, list)
    count = len(found or ())
    said = str(found.get("error_code")) if isinstance(found, dict) else f"{count} result{'s' * (count != 1)}"
    return ServerToolPart(
        block=block,
        call_id=str(block.get("tool_use_id")),
        tool="WebSearch",
        said=to_one_line(said),
        is_result=True,
        is_error=is_error,
    )


def choose_endpoint(environ: Mapping[str, str], settings: Settings) -> Endpoint:
    """Return the endpoint: of the environment, else of the settings, else the vendor's.

    A source of the key that the settings name counts alone. Raises ConfigError, or ModelRejected without it.
    """
    named = environ.get("ANTHROPIC_BASE_URL") or settings.endpoint or VENDOR
    parts = urlsplit(named)
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise ConfigError(
            "the address of the Messages API must begin with http:// or https:// and name a host",
            hint="it is ANTHROPIC_BASE_URL, or endpoint in config.yaml",
        )
    key, token = _credentials(environ, settings)
    return Endpoint(address=named.rstrip("/"), key=key, token=token)


def can_search(name: str, settings: Settings, environ: Mapping[str, str]) -> bool:
    """Return whether a model's endpoint runs searches of the web itself, as far as that is known."""
    kind = parse_choice(name).kind
    if kind == REPAIR:
        return False
    if settings.web_search is not None or kind == "script":
        return settings.web_search is not False
    address = environ.get("ANTHROPIC_BASE_URL") or settings.endpoint or VENDOR
    return kind == "anthropic" and address.rstrip("/") == VENDOR


def _credentials(environ: Mapping[str, str], settings: Settings) -> tuple[Secret | None, Secret | None]:
    if settings.api_key_env and settings.api_key_command:
        raise ConfigError("config.yaml names both api_key_env and api_key_command", hint="name one of them")
    if settings.api_key_command:
        return _secret(_run_command(settings.api_key_command, environ), _COMMAND), None
    if settings.api_key_env is None:
        return _secret(environ.get(KEY, ""), KEY), _secret(environ.get(TOKEN, ""), TOKEN)
    found = _secret(environ.get(settings.api_key_env, ""), settings.api_key_env)
    if found is None:
        raise ModelRejected(
            f"the environment holds no {settings.api_key_env}", hint="api_key_env in config.yaml names it"
        )
    return found, None


def _run_command(argv: tuple[str, ...], environ: Mapping[str, str]) -> str:
    """Return what the user's command prints; what it says when it fails is not shown, for it may be a key.

    It runs in the user's home, so that no file of a repository takes a part in it.
    """
    own = {name: value for name, value in environ.items() if name not in (KEY, TOKEN)}
    try:
        done = capture_attended(argv, cwd=Path.home(), env=own, timeout=COMMAND_SECONDS)
    except OSError as error:
        raise ModelRejected(f"{_COMMAND} gave no key: {error.strerror or error}") from None
    text = done.stdout.decode("utf-8", "replace").strip()
    if done.returncode != 0 or not text:
        raise ModelRejected(
            f"{_COMMAND} gave no key: exit {done.returncode}", hint=f"run {argv[0]} yourself to see why"
        )
    return text


def _secret(value: str, source: str) -> Secret | None:
    value = value.strip()
    if not value:
        return None
    if not (value.isascii() and value.isprintable()) or " " in value:
        raise ConfigError(f"{source} holds characters that no credential has")
    return Secret(value)
