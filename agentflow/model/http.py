"""Byte source by the way that the environment names: through a proxy, or for the SDK."""

import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from types import MappingProxyType
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import anyio
import httpx2

from agentflow.core.errors import ConfigError
from agentflow.core.record import encode
from agentflow.model.endpoint import Endpoint
from agentflow.model.wire import (
    CANNOT_UNPACK,
    MAX_ERROR_BYTES,
    BadReply,
    ServerAnswer,
    TryFailed,
    decompress_body,
    explain_unread_certificates,
    to_connection_error,
)
from agentflow.settings import Deadlines

_JSON = MappingProxyType({"content-type": "application/json"})
_UNPACKED = 16
"""The factor by which a packed body of an error is cut shorter."""


def open_client(address: str, deadlines: Deadlines) -> httpx2.AsyncClient:
    """Return a client that follows no redirect; proxies and certificates come from the user's environment.

    Raises ConfigError when these cannot be used.
    """
    timeout = httpx2.Timeout(None, connect=deadlines.connect)
    is_plain = address.startswith("http://") and not getproxies()
    # where TLS has no part nobody is trusted, because loading all authorities takes long
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else True
    try:
        return httpx2.AsyncClient(
            timeout=timeout,
            follow_redirects=False,
            verify=trust,
            headers={"accept-encoding": "gzip"},
            event_hooks={"response": [_shorten]},
        )
    except (ImportError, ValueError, httpx2.InvalidURL):
        raise ConfigError("the proxy in the environment cannot be used", hint="see HTTPS_PROXY") from None
    except OSError:
        raise explain_unread_certificates() from None


async def post_json(address: str, value: object, seconds: float, headers: Mapping[str, str] = _JSON) -> bytes:
    """Post a value and return the answer. Raises TryFailed, which names no address, after that time too."""
    try:
        with anyio.fail_after(seconds):
            async with open_client(address, Deadlines(connect=seconds)) as client:
                answer = await client.post(address, content=encode(value), headers=headers)
    except (TimeoutError, OSError, ValueError, ConfigError, httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise TryFailed(type(error).__name__) from None
    if answer.status_code >= 300:  # a redirect is not followed
        raise TryFailed(f"it answered {answer.status_code}")
    return answer.content


class Http:
    def __init__(self, endpoint: Endpoint, deadlines: Deadlines) -> None:
        self.secrets = endpoint.secrets
        self._address = endpoint.address
        self._url = endpoint.url
        self._headers = endpoint.request_headers
        self._connect = partial(open_client, endpoint.address, deadlines)
        self._client: httpx2.AsyncClient | None = self._connect()

    @asynccontextmanager
    async def open(self, body: bytes, *, stream: bool) -> AsyncIterator[ServerAnswer]:
        accept = "text/event-stream" if stream else "application/json"
        headers = {**self._headers, "accept": accept}
        self._client = client = self._client or self._connect()
        with translate_errors(self._address):
            async with client.stream("POST", self._url, content=body, headers=headers) as response:
                yield to_server_answer(response)

    async def reach(self) -> None:
        """Leave it to the first request: this way opens no connection without one."""

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


@contextmanager
def translate_errors(address: str = "") -> Iterator[None]:
    try:
        yield
    except httpx2.TransportError as error:
        place = urlsplit(address)
        has_proxy = place.scheme in getproxies() and not proxy_bypass(place.hostname or "")
        raise to_connection_error(error, address, by_proxy=bool(address) and has_proxy) from None
    except httpx2.DecodingError:
        raise BadReply(CANNOT_UNPACK) from None


def to_server_answer(response: httpx2.Response) -> ServerAnswer:
    headers = {name.lower(): value for name, value in response.headers.items()}
    if response.is_stream_consumed:  # the SDK has read it
        return ServerAnswer(status=response.status_code, headers=headers, chunks=response.aiter_bytes())
    chunks = decompress_body(response.aiter_raw(), headers)
    return ServerAnswer(status=response.status_code, headers=headers, chunks=chunks)


class _Short(httpx2.AsyncByteStream):
    def __init__(self, body: httpx2.AsyncByteStream, limit: int) -> None:
        self._body = body
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._limit
        async for chunk in self._body:
            yield chunk[:left]
            left -= len(chunk)
            if left <= 0:
                return

    async def aclose(self) -> None:
        await self._body.aclose()


async def _shorten(response: httpx2.Response) -> None:
    if response.status_code != 200 and isinstance(response.stream, httpx2.AsyncByteStream):
        is_packed = "content-encoding" in response.headers
        limit = MAX_ERROR_BYTES // _UNPACKED if is_packed else MAX_ERROR_BYTES
        response.stream = _Short(response.stream, limit)
