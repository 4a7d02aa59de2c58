"""The connection of our own: kept while the server keeps it, and what it brings unpacked."""

import gzip
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import pytest

from agentflow.model.direct import Direct
from agentflow.model.endpoint import Endpoint
from agentflow.model.http import Http
from agentflow.model.wire import BadReply, TryFailed
from agentflow.settings import Deadlines

PLAIN = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
PIECES = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n"
TOLD_FIRST = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" + PLAIN
LAST = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok"
CUT = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok"


def packed(body: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(body)
    return head + body


class Server:
    """Gives each connection its answers, one a request, and closes it then."""

    def __init__(self, *conversations: tuple[bytes, ...]) -> None:
        self.connections = 0
        self.settled = threading.Semaphore(0)
        """One for each answer, once its connection is closed if it was the last one there."""
        self.first = b""
        """The first line of the last request."""
        self._conversations = conversations
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(5)
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def listen(self) -> None:
        for answers in self._conversations:
            try:
                connection, _ = self._socket.accept()
            except TimeoutError:
                return
            connection.settimeout(5)
            self.connections += 1
            with connection, connection.makefile("rb") as reader:
                for place, answer in enumerate(answers):
                    if place:
                        self.settled.release()
                    self.first = reader.readline()
                    while reader.readline() not in (b"\r\n", b""):
                        pass
                    reader.read(2)
                    connection.sendall(answer)
            self.settled.release()

    def close(self) -> None:
        self._socket.close()


@contextmanager
def serving(*conversations: tuple[bytes, ...]) -> Iterator[Server]:
    server = Server(*conversations)
    thread = threading.Thread(target=server.listen)
    thread.start()
    try:
        yield server
    finally:
        thread.join()
        server.close()


def asked(server: Server, times: int) -> list[bytes]:
    """Return the bodies of so many answers, one request after the other."""

    async def ask() -> list[bytes]:
        source = Direct(Endpoint(address=server.address), Deadlines())
        bodies = []
        for _ in range(times):
            async with source.open(b"{}", stream=False) as answer:
                bodies.append(b"".join([chunk async for chunk in answer.chunks]))
            assert await anyio.to_thread.run_sync(server.settled.acquire, True, 20)
        await source.close()
        return bodies

    return anyio.run(ask)


@pytest.mark.parametrize("answer", [PLAIN, PIECES, TOLD_FIRST, packed(gzip.compress(b"ok", mtime=0))])
def test_one_connection_is_kept_for_all_requests(answer: bytes) -> None:
    with serving((answer, answer, answer)) as server:
        assert asked(server, 3) == [b"ok"] * 3
    assert server.connections == 1


@pytest.mark.parametrize("way", [Direct, Http])
def test_requests_go_to_the_path_of_the_endpoint(way: type[Direct | Http]) -> None:
    async def ask(address: str) -> int:
        source = way(Endpoint(address=f"{address}/v1", path="/chat/completions"), Deadlines())
        async with source.open(b"{}", stream=False) as answer:
            status = answer.status
        await source.close()
        return status

    with serving((PLAIN,)) as server:
        assert anyio.run(ask, server.address) == 200
    assert server.first.split()[:2] == [b"POST", b"/v1/chat/completions"]


@pytest.mark.parametrize("last", [PLAIN, LAST])
def test_a_connection_that_the_server_closed_is_not_used_again(last: bytes) -> None:
    with serving((PLAIN, last), (PLAIN,)) as server:
        assert asked(server, 3) == [b"ok"] * 3
    assert server.connections == 2


@pytest.mark.parametrize(
    "answer", [CUT, b"", b"SSH-2.0-other\r\n", b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 20_000]
)
def test_what_is_no_whole_answer_is_a_failed_try(answer: bytes) -> None:
    with serving((answer,)) as server, pytest.raises(TryFailed, match="no reply from the model's endpoint"):
        asked(server, 1)


def test_what_cannot_be_unpacked_is_no_reply() -> None:
    with serving((packed(b"plain"),)) as server, pytest.raises(BadReply, match="compressed"):
        asked(server, 1)
