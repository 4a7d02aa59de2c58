"""The Messages API: each message of a run is encoded once, and earlier bytes never change."""

from typing import Any

from agentflow.core.messages import (
    Message,
    MessagePart,
    Request,
    ServerToolPart,
    Speaker,
    Text,
    Thought,
    ToolCall,
    ToolResult,
)
from agentflow.core.record import Record, encode
from agentflow.model.endpoint import MESSAGES_PATH
from agentflow.model.reply import Assembly, parse_body, to_offer, to_reply
from agentflow.model.wire import ReadReply, Room

LOOK_BACK = 20
"""Blocks before a breakpoint in which a provider finds an earlier one."""
RUNS_KEPT = 8
"""Runs go side by side; the bytes of older ones are dropped."""
_MARK = b',"cache_control":{"type":"ephemeral"}'
_CACHED = {"cache_control": {"type": "ephemeral"}}


class _Piece(Record):
    encoded: bytes
    blocks: int
    is_reply: bool

    @property
    def marked(self) -> bytes:
        """The same with a cache breakpoint on its last block."""
        return self.encoded[:-3] + _MARK + self.encoded[-3:]


class _RunBytes:
    """The encoded messages of one run."""

    def __init__(self, request: Request) -> None:
        self.head = _encode_head(request)
        self._same = (request.model, request.system, request.tools)
        self._messages: tuple[Message, ...] = ()
        self._past = bytearray()
        """The messages in which no breakpoint will stand any more, each with a comma behind it."""
        self._pieces: list[_Piece] = []
        """The messages after those."""

    def is_of(self, request: Request) -> bool:
        """Return whether a request begins as those before it did; after a handoff it does not."""
        return self._same == (request.model, request.system, request.tools)

    def body(self, messages: tuple[Message, ...], tail: bytes, room: Room) -> bytes:
        """Return a body; only what is new is encoded, or all of it after the past was replaced."""
        known = len(self._messages)
        if messages[:known] != self._messages:
            known = 0
            self._past.clear()
            self._pieces.clear()
        self._pieces.extend(piece for message in messages[known:] if (piece := _encode_message(message)))
        self._messages = messages
        # what lies before the last step is done with: a late turn costs what an early one does
        begin = max(0, _find_last_step(self._pieces) - 1)
        for piece in self._pieces[:begin]:
            self._past += piece.encoded + b","
        del self._pieces[:begin]
        newest = b",".join(_place_breakpoints(self._pieces))
        size = len(self.head) + len(self._past) + len(newest)
        return b"".join((self.head % room(size), self._past, newest, tail))


class MessagesApi:
    """The Messages API; it remembers the bytes of the runs that are under way."""

    title = "the Messages API"
    path = MESSAGES_PATH

    def __init__(self) -> None:
        self._runs: dict[tuple[int, str], _RunBytes] = {}
        """By run and model id."""

    def encode(self, request: Request, *, stream: bool, room: Room) -> bytes:
        key = (request.run, request.model)
        sent = self._runs.pop(key, None)
        if sent is None or not sent.is_of(request):
            sent = _RunBytes(request)
        self._runs[key] = sent
        if len(self._runs) > RUNS_KEPT:
            del self._runs[next(iter(self._runs))]
        choice = {"type": "tool", "name": request.force}
        forced = b',"tool_choice":' + encode(choice) if request.force else b""
        tail = b"]" + forced + (b',"stream":true}' if stream else b"}")
        return sent.body(request.messages, tail, room)

    def read(self, body: bytes) -> ReadReply:
        """Return the reply of a whole answer. Raises BadReply, ErrorEvent or ModelRejected."""
        return to_reply(parse_body(body))

    def start_stream(self) -> Assembly:
        return Assembly()


def _encode_head(request: Request) -> bytes:
    head: dict[str, Any] = {}
    tools = [to_offer(tool) for tool in request.tools]
    if request.system:
        head["system"] = [{"type": "text", "text": request.system, **_CACHED}]
    elif tools:
        tools[-1] |= _CACHED
    if tools:
        head["tools"] = tools
    lead = b'{"model":%s,"max_tokens":' % encode(request.model)
    rest = encode({**head, "messages": []})[1:-2]
    return lead.replace(b"%", b"%%") + b"%d," + rest.replace(b"%", b"%%")


def _encode_message(message: Message) -> _Piece | None:
    blocks = [block for part in message.parts if (block := _to_block(part)) is not None]
    if not blocks:
        return None
    encoded = encode({"role": message.speaker, "content": blocks})
    return _Piece(encoded=encoded, blocks=len(blocks), is_reply=message.speaker is Speaker.ASSISTANT)


def _to_block(part: MessagePart) -> dict[str, Any] | None:
    """Return a part as the API's block; None for a blank text, which it refuses."""
    block: dict[str, Any] | None
    match part:
        case Text(text=text):
            cited = {"citations": part.citations} if part.citations else {}
            block = {"type": "text", "text": text, **cited} if text.strip() else None
        case Thought(block=opaque) | ServerToolPart(block=opaque):
            block = opaque if opaque.get("type") != "reasoning" else None  # another provider's
        case ToolCall():
            block = {"type": "tool_use", "id": part.id, "name": part.name, "input": part.input}
        case ToolResult():
            failed = {"is_error": True} if part.is_error else {}
            said = {"type": "text", "text": part.content}
            content = [said, _to_shown(part)] if part.shown else part.content
            block = {"type": "tool_result", "tool_use_id": part.call_id, "content": content, **failed}
    return block


def _to_shown(result: ToolResult) -> dict[str, Any]:
    source = {"type": "base64", "media_type": result.shown_kind, "data": result.shown_content}
    return {"type": "image" if result.shown_kind.startswith("image/") else "document", "source": source}


def _place_breakpoints(pieces: list[_Piece]) -> list[bytes]:
    """Return the messages' bytes with cache breakpoints behind our newest and second newest message.

    The second is needed only when more blocks lie between them than a provider looks back.
    """
    bodies = [piece.encoded for piece in pieces]
    end, step = _find_newest_own(pieces), _find_last_step(pieces)
    if pieces:
        bodies[end] = pieces[end].marked
    if step and sum(piece.blocks for piece in pieces[step : end + 1]) >= LOOK_BACK:
        bodies[step - 1] = pieces[step - 1].marked
    return bodies


def _find_last_step(pieces: list[_Piece]) -> int:
    """Return where the newest reply begins to which something was said since; 0 if there is none."""
    places = range(_find_newest_own(pieces), 0, -1)
    return next((at for at in places if pieces[at].is_reply and not pieces[at - 1].is_reply), 0)


def _find_newest_own(pieces: list[_Piece]) -> int:
    """Return the place of the newest message that is no reply, else the first."""
    return next((at for at in range(len(pieces) - 1, -1, -1) if not pieces[at].is_reply), 0)
