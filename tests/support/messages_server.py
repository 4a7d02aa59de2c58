"""A Messages server on 127.0.0.1 that plays what a test says, with faults, and keeps every request."""

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Protocol

Block = dict[str, Any]
Event = dict[str, Any]


class Asked(NamedTuple):
    """One request as it came."""

    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.raw)
        return found

    @property
    def tools(self) -> set[str]:
        return {tool.get("function", tool)["name"] for tool in self.body.get("tools", ())}

    @property
    def turn(self) -> int:
        """How many replies stand in the request."""
        return sum(message["role"] == "assistant" for message in self.body["messages"])


class Plays(NamedTuple):
    """A good reply; the server sends it as a stream if it is asked to."""

    blocks: tuple[Block, ...] = ()
    stop: str | None = None
    usage: dict[str, int] | None = None

    @property
    def counts(self) -> dict[str, int]:
        if self.usage is not None:
            return self.usage
        return {
            "input_tokens": 10,
            "output_tokens": 5,
            "cache_read_input_tokens": 3,
            "cache_creation_input_tokens": 2,
        }

    @property
    def ending(self) -> str:
        calls = any(block["type"] == "tool_use" for block in self.blocks)
        return self.stop or ("tool_use" if calls else "end_turn")

    def message(self, model: str) -> dict[str, Any]:
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": list(self.blocks),
            "stop_reason": self.ending,
            "stop_sequence": None,
            "usage": self.counts,
        }

    def events(self, model: str) -> list[Event]:
        head = {**self.message(model), "content": [], "stop_reason": None}
        head["usage"] = {**self.counts, "output_tokens": 1} if self.counts else {}
        between = [event for index, block in enumerate(self.blocks) for event in block_events(index, block)]
        delta = {"stop_reason": self.ending, "stop_sequence": None}
        used = {key: count for key, count in self.counts.items() if key == "output_tokens"}
        return [
            {"type": "message_start", "message": head},
            {"type": "ping"},
            *between,
            {"type": "message_delta", "delta": delta, "usage": used},
            {"type": "message_stop"},
        ]


class Raw(NamedTuple):
    """Exactly these bytes as the body."""

    body: bytes
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)


class Stream(NamedTuple):
    """These events, or bytes, one after the other; then the connection is closed."""

    events: Iterable[Event | bytes]
    cut: int | None = None
    """Bytes after which the stream ends."""
    reset: bool = False
    """End it with a reset instead of an end of file."""
    every: float = 0
    """Seconds between the events."""


class Playable(Protocol):
    """A good reply, whole and as the events of a stream."""

    def message(self, model: str) -> dict[str, Any]: ...

    def events(self, model: str) -> Iterable[Event | bytes]: ...


Answer = Playable | Raw | Stream
Policy = Callable[[Asked], Answer]


def text(said: str) -> Block:
    return {"type": "text", "text": said}


def use(name: str, given: dict[str, Any], call_id: str = "toolu_1") -> Block:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def searched(query: str, *urls: str, call_id: str = "srvtoolu_1", error: str = "") -> tuple[Block, Block]:
    """Return a search that the provider made, and what came of it."""
    call = {"type": "server_tool_use", "id": call_id, "name": "web_search", "input": {"query": query}}
    found = [
        {
            "type": "web_search_result",
            "url": url,
            "title": "Über \\",
            "encrypted_content": "AbC/+=",
            "page_age": None,
        }
        for url in urls
    ]
    failed = {"type": "web_search_tool_result_error", "error_code": error}
    return call, {
        "type": "web_search_tool_result",
        "tool_use_id": call_id,
        "content": failed if error else found,
    }


def refuses(status: int, kind: str = "api_error", message: str = "no", **headers: str) -> Raw:
    error = {"type": "error", "error": {"type": kind, "message": message}}
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Raw(json.dumps(error).encode(), status, (("content-type", "application/json"), *named))


def block_events(index: int, block: Block) -> list[Event]:
    """Return the events of one block, its content in two halves."""
    kinds = {"text": ("text_delta", "text")}
    if block["type"] == "web_search_tool_result":
        return [
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_stop", "index": index},
        ]
    if block["type"] in ("tool_use", "server_tool_use"):
        start, whole = {**block, "input": {}}, json.dumps(block["input"])
        kind, key = "input_json_delta", "partial_json"
    else:
        kind, key = kinds.get(block["type"], ("thinking_delta", "thinking"))
        start, whole = {**block, key: ""}, block[key]
    cited = [{"type": "citations_delta", "citation": each} for each in start.pop("citations", ())]
    half = len(whole) // 2
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *(delta_event(index, {"type": kind, key: piece}) for piece in (whole[:half], whole[half:])),
        *(delta_event(index, delta) for delta in cited),
        {"type": "content_block_stop", "index": index},
    ]


def delta_event(index: int, delta: dict[str, Any]) -> Event:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def sse(event: Event | bytes) -> bytes:
    if isinstance(event, bytes):
        return event
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


class _Connection(BaseHTTPRequestHandler):
    """Reads requests and sends what the server decides."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.path, headers, raw)
        try:
            self._send(self.decided(asked), asked)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client had enough

    def decided(self, asked: Asked) -> Answer:
        assert isinstance(self.server, _Listener)
        return self.server.decide(asked)

    def _send(self, answer: Answer, asked: Asked) -> None:
        match answer:
            case Raw():
                self._head(answer.status, *answer.headers, ("content-length", str(len(answer.body))))
                self.wfile.write(answer.body)
            case Stream():
                self._play(answer)
            case _:
                self._reply(answer, asked.body)

    def _reply(self, answer: Playable, body: dict[str, Any]) -> None:
        model = str(body.get("model", ""))
        if body.get("stream"):
            self._play(Stream(tuple(answer.events(model))))
        else:
            self._send(Raw(json.dumps(answer.message(model)).encode()), Asked("", {}, b"{}"))

    def _play(self, stream: Stream) -> None:
        self._head(200, ("content-type", "text/event-stream"), ("transfer-encoding", "chunked"))
        sent = 0
        for event in stream.events:
            whole = sse(event)
            piece = whole if stream.cut is None else whole[: stream.cut - sent]
            sent += len(piece)
            if piece:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()
            time.sleep(stream.every)
        if stream.reset:
            self._reset()
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _reset(self) -> None:
        linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.connection.close()
        self.close_connection = True
        self.rfile.close()

    def _head(self, status: int, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name is inherited
        """Say nothing."""

    def finish(self) -> None:
        try:
            super().finish()
        except OSError:
            pass  # it was reset


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, decide: Policy) -> None:
        self.decide = decide
        super().__init__(("127.0.0.1", 0), _Connection)


class MessagesServer:
    """Answers each request by a policy, or by a list that is used up."""

    def __init__(self, policy: Policy, tls: ssl.SSLContext | None = None) -> None:
        self.asked: list[Asked] = []
        self.policy = policy
        self._lock = threading.Lock()
        self._server = _Listener(self.decide)
        self._scheme = "https" if tls else "http"
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)

    @property
    def address(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def decide(self, asked: Asked) -> Answer:
        with self._lock:
            self.asked.append(asked)
            return self.policy(asked)


@contextmanager
def serving(
    *answers: Answer, policy: Policy | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[MessagesServer]:
    """Run a server that plays these answers in order, the last one for ever, or follows a policy."""
    left = list(answers)

    def in_order(_: Asked) -> Answer:
        return left.pop(0) if len(left) > 1 else left[0]

    server = MessagesServer(policy or in_order, tls)
    server.start()
    try:
        yield server
    finally:
        server.stop()
