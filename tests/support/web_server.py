"""A loopback web server that answers by path and keeps what it was asked."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import NamedTuple


class Content(NamedTuple):
    """What one path gives."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = {"content-type": "text/html; charset=utf-8"}


class WebServer:
    def __init__(self, contents: Mapping[str, Content]) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        kept = self.asked

        class Connection(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                kept.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                found = contents.get(self.path, Content(status=404))
                self.send_response(found.status)
                for name, value in found.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(found.body)))
                self.end_headers()
                self.wfile.write(found.body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name is inherited
                """Say nothing."""

            def do_CONNECT(self) -> None:
                kept.append((self.path, {}))
                self.send_error(403)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Connection)
        self.port = self._server.server_port
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @contextmanager
    def running(self) -> Iterator["WebServer"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()


@contextmanager
def pages(contents: Mapping[str, Content]) -> Iterator[WebServer]:
    with WebServer(contents).running() as server:
        yield server
