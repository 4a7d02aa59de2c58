"""What the parts of the Messages wire share: who is asked, what comes back, and how a try fails."""

import os
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from agentflow import __version__
from agentflow.core.errors import ConfigError, ModelRejected, ModelUnavailable
from agentflow.core.messages import Usage
from agentflow.core.record import Record

VENDOR = "https://api.anthropic.com"
API_VERSION = "2026-10-21"


class Secret:
    """A credential, which no print shows."""

    def __init__(self, value: str) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "Secret(…)"


class Endpoint(Record):
    """A server that speaks the Messages API, and the credentials for it."""

    address: str
    key: Secret | None = None
    token: Secret | None = None

    @property
    def headers(self) -> dict[str, str]:
        """What tells the server who asks; a key stands in both headers in which servers look for it."""
        if self.key is not None:
            return {"x-api-key": self.key.value, "authorization": f"Bearer {self.key.value}"}
        return {"authorization": f"Bearer {self.token.value}"} if self.token is not None else {}

    @property
    def request_headers(self) -> dict[str, str]:
        """What every request says that we write ourselves."""
        return {
            "content-type": "application/json",
            "anthropic-version": API_VERSION,
            "user-agent": f"agentflow/{__version__}",
            **self.headers,
        }

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(secret.value for secret in (self.key, self.token) if secret is not None)


class Answer(Record):
    """An HTTP response whose body is still to be read."""

    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    chunks: AsyncIterator[bytes]


class Source(Protocol):
    """Where the bytes of replies come from."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not stand in any message."""

    def open(self, body: bytes, *, stream: bool) -> AbstractAsyncContextManager[Answer]:
        """Send one request; raise TryFailed when it does not get through, ModelRejected when none will."""

    async def close(self) -> None:
        """Give up the connection; the next request opens another."""


class TryFailed(ModelUnavailable):
    """One try gave no turn; the next one may."""

    def __init__(self, reason: str, *, retry_after: float | None = None, used: Usage | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after
        """Seconds the server asked us to wait."""
        self.used = used
        """What the provider counted before it failed."""


class ModelUnfit(ModelRejected):
    """This model cannot take the request; another one of its tier may."""


class BadReply(TryFailed):
    """What came is no complete turn; a server that does that twice will do it again."""


def unreached(error: BaseException) -> TryFailed | ModelRejected:
    """Return what a failed connection means: only a certificate that is not trusted stays so."""
    causes = tuple(_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return ModelRejected(
                f"the endpoint's certificate is not trusted: {cause.verify_message}",
                hint="name a private authority's file in SSL_CERT_FILE",
            )
    said = next(filter(None, (getattr(cause, "strerror", None) or str(cause) for cause in causes)), "")
    unsaid = "it took too long" if isinstance(error, TimeoutError) else "the connection broke off"
    return TryFailed(f"no reply from the model's endpoint: {said or unsaid}")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what led to it."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def unread() -> ConfigError:
    """Return what it means that the user's certificates cannot be read."""
    named = os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")
    return ConfigError(f"the certificates in {named} cannot be read", hint="see SSL_CERT_FILE")
