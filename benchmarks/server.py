"""A Messages server without latency: plays turns by role, and keeps each request with its times."""

import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from json import dumps
from typing import Any, BinaryIO, NamedTuple

from tests.support.crew import ROLES
from tests.support.messages_server import Plays, sse, text, use

Calls = tuple[tuple[str, dict[str, Any]], ...]
_SUBMIT = re.compile(rb'"name": ?"(Submit\w+)"')
_LENGTH = b"content-length:"


class Asked(NamedTuple):
    """One request: when its head came, and when its whole answer was handed to the kernel."""

    role: str
    """Empty for a client that has no roles."""
    turn: int
    raw: bytes
    arrived: float
    ended: float
    made: int = 0
    """Tokens of the answer."""


Script = Callable[[str, int, bytes], Calls | Plays | None]
"""Role, turn and body of a request, to its answer or the calls of it; none ends, None gives no answer."""


class ModelServer:
    """Listens on 127.0.0.1 and answers by a script."""

    def __init__(self, script: Script) -> None:
        self.asked: list[Asked] = []
        self.script = script
        self._turns: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._socket = socket.create_server(("127.0.0.1", 0))

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def listen(self) -> None:
        """Take connections until the server is closed."""
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _serve(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection, connection.makefile("rb") as reader:
            while _begun(reader):
                arrived = time.monotonic()
                headers = iter(reader.readline, b"\r\n")
                sizes = [int(line[len(_LENGTH) :]) for line in headers if line.lower().startswith(_LENGTH)]
                try:
                    self._answer(connection, reader.read(sizes[0]), arrived)
                except OSError:
                    return  # the client has ended

    def _answer(self, connection: socket.socket, raw: bytes, arrived: float) -> None:
        submit = _SUBMIT.search(raw)
        role = ROLES[submit[1].decode()] if submit else ""
        with self._lock:
            turn = self._turns[role]
            self._turns[role] += 1
        said = self.script(role, turn, raw)
        reply = said if isinstance(said, Plays | None) else plays(role, turn, said)
        answer = b"" if reply is None else _encoded(reply, stream=b'"stream":true' in raw)
        made = reply.counts["output_tokens"] if reply else 0
        self.asked.append(Asked(role, turn, raw, arrived, time.monotonic(), made))
        connection.sendall(answer)


def _begun(reader: BinaryIO) -> bool:
    """Wait for the next request; a client that has ended sends none."""
    try:
        return bool(reader.readline())
    except OSError:
        return False


def plays(role: str, turn: int, calls: Calls) -> Plays:
    """Return the reply that makes some calls."""
    blocks = [use(name, given, f"toolu_{role}_{turn}_{number}") for number, (name, given) in enumerate(calls)]
    return Plays((text(f"Turn {turn}."), *blocks))


def _encoded(reply: Plays, *, stream: bool) -> bytes:
    kind = b"text/event-stream" if stream else b"application/json"
    events = b"".join(sse(event) for event in reply.events("m"))
    body = events if stream else dumps(reply.message("m")).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\ncontent-length: %d\r\n\r\n%s" % (kind, len(body), body)


@contextmanager
def serving(script: Script) -> Iterator[ModelServer]:
    """Run a server that answers by a script."""
    server = ModelServer(script)
    threading.Thread(target=server.listen, daemon=True).start()
    try:
        yield server
    finally:
        server.close()


def rehearsed(turns: int, command: str) -> Script:
    """Return a script in which the implementer, or a client without roles, runs one command a turn."""
    return _repeated(turns, ("Bash", {"command": command}))


def reading(turns: int, path: str) -> Script:
    """Return a script in which they read one file a turn, for which no command is run."""
    return _repeated(turns, ("Read", {"file_path": path}))


def _repeated(turns: int, call: tuple[str, dict[str, Any]]) -> Script:
    def script(role: str, turn: int, raw: bytes) -> Calls:
        works = role in {"", "implementer"} and turn < turns
        return (call,) if works else submission(role, raw)

    return script


def submission(role: str, raw: bytes) -> Calls:
    """Return the call by which a role ends; a client without roles ends with none."""
    match role:
        case "explorer":
            return (("SubmitFindings", {"summary": "found", "findings": [], "open_questions": []}),)
        case "planner":
            return (("SubmitPlan", {"summary": "plan", "steps": [], "acceptance": [], "risks": []}),)
        case "implementer":
            edited = ["calc.py"] if b'"name":"Edit","input"' in raw else []
            return (("SubmitChange", {"summary": "done", "files": edited}),)
        case "verifier":
            newest = max(re.findall(rb"ev-\d{4}", raw)).decode()
            return (("SubmitVerdict", {"verdict": "VERIFIED", "evidence": [newest], "reasons": []}),)
        case _:
            return ()
