"""A server on the loopback that nobody should ask anything."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def listening() -> Iterator[tuple[str, list[str]]]:
    """Give the address of a server, and the list of those who connected to it."""
    asked: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    client, address = server.accept()
                    asked.append(str(address))
                    client.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", asked
        server.shutdown(socket.SHUT_RDWR)
    thread.join(5)
