"""Byte source by the way that the environment names: through a proxy, or for the SDK."""

import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from urllib.request import getproxies

import httpx2

from agentflow.core.errors import ConfigError
from agentflow.model.wire import Answer, BadReply, Endpoint, unreached, unread
from agentflow.settings import Deadlines


def new_client(address: str, deadlines: Deadlines) -> httpx2.AsyncClient:
    """Return a client that follows no redirect; proxies and certificates come from the user's environment.

    Raises ConfigError when these cannot be used.
    """
    timeout = httpx2.Timeout(None, connect=deadlines.connect)
    is_plain = address.startswith("http://") and not getproxies()
    # where TLS has no part nobody is trusted, because loading all authorities takes long
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else True
    try:
        return httpx2.AsyncClient(timeout=timeout, follow_redirects=False, verify=trust)
    except (ImportError, ValueError, httpx2.InvalidURL):
        raise ConfigError("the proxy in the environment cannot be used", hint="see HTTPS_PROXY") from None
    except OSError:
        raise unread() from None


class Http:
    """Sends each request over one kept connection."""

    def __init__(self, endpoint: Endpoint, deadlines: Deadlines) -> None:
        self.secrets = endpoint.secrets
        self._url = f"{endpoint.address}/v1/messages"
        self._headers = endpoint.request_headers
        self._connect = partial(new_client, endpoint.address, deadlines)
        self._client: httpx2.AsyncClient | None = self._connect()

    @asynccontextmanager
    async def open(self, body: bytes, *, stream: bool) -> AsyncIterator[Answer]:
        accept = "text/event-stream" if stream else "application/json"
        headers = {**self._headers, "accept": accept}
        self._client = client = self._client or self._connect()
        with failures_told():
            async with client.stream("POST", self._url, content=body, headers=headers) as response:
                yield answer(response)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


@contextmanager
def failures_told() -> Iterator[None]:
    """Say in our words how a connection failed."""
    try:
        yield
    except httpx2.TransportError as error:
        raise unreached(error) from None
    except httpx2.DecodingError:
        raise BadReply("the reply is compressed in a way that cannot be undone") from None


def answer(response: httpx2.Response) -> Answer:
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Answer(status=response.status_code, headers=headers, chunks=response.aiter_bytes())
