"""A run's requests as bytes: each message is encoded once, and what was sent stays as it is."""

from typing import Any

from agentflow.core.messages import Message, Part, Request, Speaker, Text, Thought, ToolCall, ToolResult
from agentflow.core.record import Record, encode

LOOK_BACK = 20
"""Blocks before a breakpoint in which a provider finds an earlier one."""
RUNS_KEPT = 8
"""Runs go side by side; the bytes of older ones are dropped."""
_MARK = b',"cache_control":{"type":"ephemeral"}'
_CACHED = {"cache_control": {"type": "ephemeral"}}


class _Piece(Record):
    """One encoded message; empty when nothing of it can be sent."""

    message: Message
    encoded: bytes
    blocks: int

    @property
    def marked(self) -> bytes:
        """The same with a cache breakpoint on its last block."""
        return self.encoded[:-3] + _MARK + self.encoded[-3:]


class _Sent(Record):
    """The encoded parts of one run."""

    head: bytes
    pieces: list[_Piece]


class Encoder:
    """Turns requests into bodies, and remembers the bytes of the runs that are under way."""

    def __init__(self, max_tokens: int) -> None:
        self._max_tokens = max_tokens
        self._runs: dict[int, _Sent] = {}

    def body(self, request: Request, *, stream: bool) -> bytes:
        """Return the body of a request: head, messages, and what may change from turn to turn."""
        sent = self._runs.pop(request.run, None) or _Sent(head=_head(request, self._max_tokens), pieces=[])
        self._runs[request.run] = sent
        if len(self._runs) > RUNS_KEPT:
            del self._runs[next(iter(self._runs))]
        _extend(sent.pieces, request.messages)
        return b"".join(
            (sent.head, b",".join(_marked(sent.pieces)), b"]", _tail(request, stream=stream), b"}")
        )


def _head(request: Request, max_tokens: int) -> bytes:
    head: dict[str, Any] = {"model": request.model, "max_tokens": max_tokens}
    tools: list[dict[str, Any]] = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
        for tool in request.tools
    ]
    if request.system:
        head["system"] = [{"type": "text", "text": request.system, **_CACHED}]
    elif tools:
        tools[-1] |= _CACHED
    if tools:
        head["tools"] = tools
    return encode(head)[:-1] + b',"messages":['


def _tail(request: Request, *, stream: bool) -> bytes:
    choice = {"type": "tool", "name": request.force}
    forced = b',"tool_choice":' + encode(choice) if request.force else b""
    return forced + (b',"stream":true' if stream else b"")


def _extend(pieces: list[_Piece], messages: tuple[Message, ...]) -> None:
    """Encode what is new; only a message that is another one than before is encoded again."""
    same = 0
    for piece, message in zip(pieces, messages, strict=False):
        if piece.message is not message:
            break
        same += 1
    del pieces[same:]
    pieces.extend(_piece(message) for message in messages[same:])


def _piece(message: Message) -> _Piece:
    blocks = [block for part in message.parts if (block := _block(part)) is not None]
    body = encode({"role": message.speaker, "content": blocks}) if blocks else b""
    return _Piece(message=message, encoded=body, blocks=len(blocks))


def _block(part: Part) -> dict[str, Any] | None:
    """Return a part as the API's block; None for a blank text, which it refuses."""
    block: dict[str, Any] | None
    match part:
        case Text(text=text):
            block = {"type": "text", "text": text} if text.strip() else None
        case Thought(block=opaque):
            block = opaque
        case ToolCall():
            block = {"type": "tool_use", "id": part.id, "name": part.name, "input": part.input}
        case ToolResult():
            failed = {"is_error": True} if part.is_error else {}
            block = {"type": "tool_result", "tool_use_id": part.call_id, "content": part.content, **failed}
    return block


def _marked(pieces: list[_Piece]) -> list[bytes]:
    """Return the messages' bytes, with breakpoints where this request ends and the last one ended.

    The second is needed only when more blocks lie between them than a provider looks back.
    """
    written = [piece for piece in pieces if piece.encoded]
    bodies = [piece.encoded for piece in written]
    if not written:
        return bodies
    bodies[-1] = written[-1].marked
    replies = [place for place, piece in enumerate(written) if piece.message.speaker is Speaker.ASSISTANT]
    ended = replies[-1] - 1 if replies else -1
    if ended >= 0 and sum(piece.blocks for piece in written[ended + 1 :]) >= LOOK_BACK:
        bodies[ended] = written[ended].marked
    return bodies
