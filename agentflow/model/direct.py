"""Byte source without a proxy on the way: HTTP/1.1 over kept connections; the only door to h11."""

import select
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from ssl import SSLContext
from urllib.parse import urlsplit

import anyio
import h11
from anyio.abc import ByteStream, SocketAttribute

from agentflow.model.endpoint import Endpoint
from agentflow.model.wire import (
    ServerAnswer,
    decompress_body,
    explain_unread_certificates,
    to_connection_error,
)
from agentflow.settings import Deadlines

_IDLE_SECONDS = 5.0
"""After which a connection is not used again: what lies between may have forgotten it."""
_HEAD_BYTES = 64 * 1024
_BROKEN = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, h11.ProtocolError)


class Direct:
    """Sends requests to one server, each over a connection that no other uses meanwhile."""

    def __init__(self, endpoint: Endpoint, deadlines: Deadlines) -> None:
        self.secrets = endpoint.secrets
        self._address = endpoint.address
        address = urlsplit(endpoint.url)
        self._host = address.hostname or ""
        self._trust = _load_authorities() if address.scheme == "https" else None
        self._port = address.port or (443 if self._trust else 80)
        self._path = address.path
        self._headers = {"host": address.netloc, "accept-encoding": "gzip", **endpoint.request_headers}
        self._patience = deadlines.connect
        self._idle: list[_Connection] = []

    @asynccontextmanager
    async def open(self, body: bytes, *, stream: bool) -> AsyncIterator[ServerAnswer]:
        accept = "text/event-stream" if stream else "application/json"
        headers = {**self._headers, "accept": accept, "content-length": str(len(body))}
        with _translate_errors(self._address):
            connection = await self._take_idle() or await self._connect()
        try:
            with _translate_errors():
                encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
                response = await connection.ask(
                    h11.Request(method="POST", target=self._path, headers=encoded), body
                )
            found = {name.decode("latin-1"): value.decode("latin-1") for name, value in response.headers}
            yield ServerAnswer(
                status=response.status_code,
                headers=found,
                chunks=decompress_body(connection.read_chunks(), found),
            )
        finally:
            if connection.is_done:
                connection.begin_again()
                self._idle.append(connection)
            else:
                await connection.close()

    async def reach(self) -> None:
        """Open the connection that the next request takes. Raises TryFailed, or ModelRejected."""
        with _translate_errors(self._address):
            self._idle.append(await self._take_idle() or await self._connect())

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().close()

    async def _take_idle(self) -> "_Connection | None":
        while self._idle:
            connection = self._idle.pop()
            if connection.is_alive():
                return connection
            await connection.close()
        return None

    async def _connect(self) -> "_Connection":
        with anyio.fail_after(self._patience):
            if self._trust is None:
                return _Connection(await anyio.connect_tcp(self._host, self._port))
            stream = await anyio.connect_tcp(
                self._host, self._port, ssl_context=self._trust, tls_standard_compatible=False
            )
            return _Connection(stream)


class _Connection:
    """One connection, and how far its conversation is."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._socket = stream.extra(SocketAttribute.raw_socket)  # noqa: S610
        self._protocol = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD_BYTES)
        self._since = anyio.current_time()
        """When it was last used."""

    async def ask(self, request: h11.Request, body: bytes) -> h11.Response:
        """Send a request and return the head of its answer."""
        parts = (request, h11.Data(data=body), h11.EndOfMessage())
        sent = b"".join(self._protocol.send(part) or b"" for part in parts)
        with suppress(anyio.BrokenResourceError):  # a server may answer before it has read all of it
            await self._stream.send(sent)
        while not isinstance(event := await self._event(), h11.Response):
            pass  # what only informs
        return event

    async def read_chunks(self) -> AsyncIterator[bytes]:
        with _translate_errors():
            while isinstance(event := await self._event(), h11.Data):
                yield bytes(event.data)

    async def _event(self) -> object:
        while (event := self._protocol.next_event()) is h11.NEED_DATA:
            try:
                received = await self._stream.receive()
            except anyio.EndOfStream:
                received = b""
            self._protocol.receive_data(received)
        return event

    @property
    def is_done(self) -> bool:
        """Return whether the whole answer was read, and another request may follow."""
        return self._protocol.our_state is self._protocol.their_state is h11.DONE

    def begin_again(self) -> None:
        self._protocol.start_next_cycle()
        self._since = anyio.current_time()

    def is_alive(self) -> bool:
        """Return whether the server still listens, as far as can be seen; it has nothing to say unasked."""
        if anyio.current_time() - self._since > _IDLE_SECONDS:
            return False
        waiting = select.poll()
        waiting.register(self._socket, select.POLLIN)
        return not waiting.poll(0)

    async def close(self) -> None:
        await anyio.aclose_forcefully(self._stream)


def _load_authorities() -> SSLContext:
    """Return whom to trust, by the user's SSL_CERT_FILE or SSL_CERT_DIR, or else by the system."""
    from httpcore2 import default_ssl_context  # noqa: PLC0415  # where TLS has no part, it takes long for nothing

    try:
        return default_ssl_context()
    except OSError:
        raise explain_unread_certificates() from None


@contextmanager
def _translate_errors(address: str = "") -> Iterator[None]:
    try:
        yield
    except _BROKEN as error:
        raise to_connection_error(error, address) from None
