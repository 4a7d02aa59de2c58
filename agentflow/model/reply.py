"""A reply of the provider: its events put together, the turn as ours, and tools that the provider runs."""

import json
import re
from collections.abc import AsyncIterator, Mapping
from io import StringIO
from typing import Any

from agentflow.core.errors import ModelRefused, ModelRejected, PromptTooLong
from agentflow.core.messages import (
    Reply,
    ReplyPart,
    ServerToolPart,
    Stop,
    Text,
    Thought,
    ToolCall,
    ToolSpec,
    Usage,
)
from agentflow.core.record import Record, encode
from agentflow.model.wire import BadReply, ErrorEvent, ReadReply
from agentflow.parse import decode_or_none
from agentflow.redact import to_one_line

MAX_EVENT_BYTES = 16 * 1024 * 1024
MAX_REPLY_BYTES = 32 * 1024 * 1024
"""Of the text and the tool input of a reply together."""
MAX_STREAM_BYTES = 2 * MAX_REPLY_BYTES
"""The same with the frames around each piece."""
TOO_LONG = f"the reply is longer than {MAX_REPLY_BYTES // 1024 // 1024} MiB"
_NO_MORE = b"[DONE]"
"""What some APIs send after the last event."""
_MAX_SKIPPED = 20
"""Kinds that are told by name."""
_LONGEST_KIND = 40
_DELTAS = {
    "text_delta": "text",
    "input_json_delta": "partial_json",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
}
"""Kind of delta, to the key under which it has its text."""
_COUNTS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
}
_MAX_SEARCHES = 5
"""Of one request."""
_OFFERED: Mapping[str, dict[str, Any]] = {
    "WebSearch": {"type": "web_search_20250305", "name": "web_search", "max_uses": _MAX_SEARCHES}
}
_OURS: Mapping[str, str] = {tool["name"]: name for name, tool in _OFFERED.items()}


class RawTurn(Record):
    """A complete turn in the provider's words."""

    blocks: tuple[dict[str, Any], ...]
    """A tool call that was streamed has its input as text, under `json`."""
    stop: str
    usage: Usage
    model: str
    skipped: frozenset[str]
    """Kinds of event and delta that we do not know."""


async def read_events(chunks: AsyncIterator[bytes]) -> AsyncIterator[dict[str, Any]]:
    """Yield the objects of a stream of server-sent events. Raises BadReply."""
    received, lines = 0, list[bytes]()
    async for line in _split_lines(chunks):
        received += len(line)
        if received > MAX_EVENT_BYTES:
            raise BadReply("the stream holds an endless event")
        if line.startswith(b"data:"):
            lines.append(line[5:].removeprefix(b" "))
        elif not line:
            if lines and lines != [_NO_MORE]:
                yield _parse_object(b"\n".join(lines))
            received, lines = 0, []


async def _split_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    rest, received = bytearray(), 0
    async for chunk in chunks:
        received += len(chunk)
        if received > MAX_STREAM_BYTES:
            raise BadReply(TOO_LONG)
        rest += chunk
        if b"\n" in chunk:
            *whole, last = bytes(rest).split(b"\n")
            rest = bytearray(last)
            for raw in whole:
                yield raw.removesuffix(b"\r")
        if len(rest) > MAX_EVENT_BYTES:
            raise BadReply("the stream holds an endless line")


def _parse_object(raw: bytes) -> dict[str, Any]:
    try:
        found = json.loads(raw.decode())
    except (ValueError, RecursionError):
        raise BadReply("the stream holds an event that is not JSON") from None
    if not isinstance(found, dict):
        raise BadReply("the stream holds an event that is not an object")
    return found


def read_usage(counted: object) -> dict[str, int]:
    given = counted if isinstance(counted, dict) else {}
    counts = {ours: given.get(theirs) for ours, theirs in _COUNTS.items()}
    return {name: count for name, count in counts.items() if isinstance(count, int) and count >= 0}


class Assembly:
    def __init__(self) -> None:
        self.is_complete = False
        self._blocks: dict[int, dict[str, Any]] = {}
        self._texts: dict[tuple[int, str], StringIO] = {}
        """By block and key."""
        self._size = 0
        """Bytes of these texts."""
        self._open: set[int] = set()
        self._counts: dict[str, int] = {}
        self._model = ""
        self._stop: str | None = None
        self._skipped: set[str] = set()

    @property
    def used(self) -> Usage | None:
        return Usage(**self._counts) if self._counts else None

    def take(self, event: dict[str, Any]) -> str | None:
        """Add an event; return the text it adds to the reply, or None if it brings nothing new."""
        match event.get("type"):
            case "ping":
                return None
            case "error":
                raise ErrorEvent(_take_part(event, "error"))
            case "message_start":
                message = _take_part(event, "message")
                self._model = str(message.get("model", ""))
                self._counts |= read_usage(message.get("usage"))
            case "content_block_start" | "content_block_delta" | "content_block_stop" as kind:
                return self._take_block(kind, event)
            case "message_delta" | "message_stop" as kind:
                self._end(kind, event)
            case unknown:
                self._skip(str(unknown))
                return None
        return ""

    def to_reply(self) -> ReadReply:
        """Return the complete reply. Raises BadReply when it is not one, or ModelRejected."""
        return to_reply(self._end_turn())

    def _end_turn(self) -> RawTurn:
        if not self.is_complete:
            raise BadReply("the reply was cut off before its end")
        if self._open or self._stop is None or "output" not in self._counts:
            raise BadReply("the reply ended without what a turn ends with")
        return RawTurn(
            blocks=tuple(self._whole(index) for index in self._blocks),
            stop=self._stop,
            usage=Usage(**self._counts),
            model=self._model,
            skipped=frozenset(self._skipped),
        )

    def _whole(self, index: int) -> dict[str, Any]:
        block = self._blocks[index]
        streamed = {key: texts.getvalue() for (of, key), texts in self._texts.items() if of == index}
        return {**block, **{key: str(block.get(key) or "") + text for key, text in streamed.items()}}

    def _end(self, kind: str, event: dict[str, Any]) -> None:
        if kind == "message_stop":
            self.is_complete = True
            return
        stop = _take_part(event, "delta").get("stop_reason")
        self._stop = stop if isinstance(stop, str) else self._stop
        self._counts |= read_usage(event.get("usage"))

    def _take_block(self, kind: str, event: dict[str, Any]) -> str:
        index = event.get("index")
        if not isinstance(index, int) or (index in self._open) is (kind == "content_block_start"):
            raise BadReply(f"the stream holds a {kind} for a block that is not there")
        if kind == "content_block_delta":
            return self._add(index, _take_part(event, "delta"))
        if kind == "content_block_stop":
            self._open.remove(index)
        elif index in self._blocks:
            raise BadReply("the stream begins a block twice")
        else:
            self._open.add(index)
            self._blocks[index] = dict(_take_part(event, "content_block"))
        return ""

    def _add(self, index: int, delta: dict[str, Any]) -> str:
        kind = str(delta.get("type"))
        if kind == "citations_delta":
            found = self._blocks[index].get("citations")
            self._blocks[index]["citations"] = cited = found if isinstance(found, list) else []
            cited.append(_take_part(delta, "citation"))
            return ""
        if kind not in _DELTAS:
            self._skip(kind)
            return ""
        text = delta.get(_DELTAS[kind])
        if not isinstance(text, str):
            raise BadReply(f"the stream holds a {kind} without its text")
        key = "json" if kind == "input_json_delta" else _DELTAS[kind]
        self._size += len(text.encode("utf-8", "surrogatepass"))
        if self._size > MAX_REPLY_BYTES:
            raise BadReply(TOO_LONG)
        self._texts.setdefault((index, key), StringIO()).write(text)
        return text if kind == "text_delta" else ""

    def _skip(self, kind: str) -> None:
        if len(self._skipped) < _MAX_SKIPPED:
            self._skipped.add(kind[:_LONGEST_KIND])


def _take_part(event: dict[str, Any], key: str) -> dict[str, Any]:
    found = event.get(key)
    if not isinstance(found, dict):
        raise BadReply(f"the stream holds an event without its {key}")
    return found


_CALL_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.:-]{0,199}")
"""What names a file of ours as well."""
_STOPS: Mapping[str, Stop] = {
    "end_turn": Stop.END_TURN,
    "stop_sequence": Stop.END_TURN,
    "tool_use": Stop.TOOL_USE,
    "max_tokens": Stop.MAX_TOKENS,
    "pause_turn": Stop.PAUSED,
}
_REFUSED: Mapping[str, str] = {
    "refusal": "the model refused to go on",
}
_TOO_LONG = "model_context_window_exceeded"
_NOT_WHOLE = "its input did not arrive as a JSON object; nothing was run, make the call again"


def parse_body(raw: bytes) -> RawTurn:
    """Return the turn of a reply that was not streamed. Raises BadReply, ErrorEvent, or ModelRefused."""
    try:
        found = json.loads(raw.decode())
    except (ValueError, RecursionError):
        raise BadReply("the reply is not whole JSON") from None
    kind = found.get("type") if isinstance(found, dict) else None
    if kind == "error" and isinstance(found.get("error"), dict):
        raise ErrorEvent(found["error"])
    if kind != "message" or not isinstance(found.get("content"), list):
        raise ModelRefused("this endpoint is not the Messages API: its answer is JSON of another kind")
    counts = read_usage(found.get("usage"))
    if not isinstance(found.get("stop_reason"), str) or "output" not in counts:
        raise BadReply("the reply lacks what a turn ends with")
    return RawTurn(
        blocks=tuple(block for block in found["content"] if isinstance(block, dict)),
        stop=found["stop_reason"],
        usage=Usage(**counts),
        model=str(found.get("model", "")),
        skipped=frozenset(),
    )


def to_reply(turn: RawTurn) -> ReadReply:
    """Return a turn as a reply. Raises BadReply, or ModelRejected."""
    stop = _STOPS.get(turn.stop)
    if turn.stop == _TOO_LONG:
        raise PromptTooLong("the conversation no longer fits into the model's context window")
    if stop is None:
        raise ModelRejected(_REFUSED.get(turn.stop, f"the model stopped for an unknown reason: {turn.stop}"))
    taken = [(block, _to_part(block, turn.stop)) for block in turn.blocks]
    parts = tuple(part for _, part in taken if part is not None)
    skipped = {*turn.skipped, *(str(block.get("type")) for block, part in taken if part is None)}
    ids = [part.id for part in parts if isinstance(part, ToolCall)]
    if len(ids) != len(set(ids)):
        raise BadReply("two tool calls of the reply have the same id")
    if stop in (Stop.END_TURN, Stop.MAX_TOKENS):
        came = {part.call_id for part in parts if isinstance(part, ServerToolPart) and part.is_result}
        parts = tuple(
            part
            for part in parts
            if not isinstance(part, ServerToolPart) or part.is_result or part.call_id in came
        )
    model = join_surrogates(turn.model)
    return Reply(parts=parts, stop=stop, usage=turn.usage, model=model), frozenset(skipped)


def _to_part(block: dict[str, Any], stop: str) -> ReplyPart | None:
    part: ReplyPart | None
    match block.get("type"):
        case "text":
            cited = tuple(_to_writable(one) for one in block.get("citations") or () if isinstance(one, dict))
            part = Text(text=join_surrogates(str(block.get("text") or "")), citations=cited)
        case "thinking" | "redacted_thinking" | "reasoning":
            part = Thought(block=_to_writable(block))
        case "tool_use":
            part = _to_call(block, stop)
        case "server_tool_use":
            whole = {key: value for key, value in block.items() if key != "json"}
            part = to_served_call(_to_writable({**whole, "input": _read_input(block) or {}}))
        case "web_search_tool_result":
            part = to_served_result(_to_writable(block))
        case _:
            part = None
    return part


def _to_call(block: dict[str, Any], stop: str) -> ToolCall:
    """Return a tool call; only a turn that ended for its calls has calls that can be made."""
    name, call_id = block.get("name"), block.get("id")
    if not isinstance(name, str) or not isinstance(call_id, str) or not _CALL_ID.fullmatch(call_id):
        raise BadReply("the reply holds a tool call without a usable name and id")
    name = join_surrogates(name)
    if stop != "tool_use":
        advice = "; make the call again with less in it" if stop == "max_tokens" else ""
        problem = f"the turn ended with {stop} before this call was complete; nothing was run{advice}"
        return ToolCall(id=call_id, name=name, input={}, problem=problem)
    given = _read_input(block)
    return ToolCall(id=call_id, name=name, input=given or {}, problem=_NOT_WHOLE if given is None else None)


def _read_input(block: dict[str, Any]) -> dict[str, Any] | None:
    streamed = block.get("json")
    is_streamed = isinstance(streamed, str) and streamed
    try:
        found = decode_or_none(join_surrogates(str(streamed))) if is_streamed else block.get("input")
        encode(found)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _to_writable(block: dict[str, Any]) -> dict[str, Any]:
    found = {key: join_surrogates(value) if isinstance(value, str) else value for key, value in block.items()}
    try:
        encode(found)
    except (ValueError, RecursionError):
        raise BadReply("the reply holds a block that cannot be written down") from None
    return found


def join_surrogates(text: str) -> str:
    """Join surrogate pairs that were cut apart; what stays half a character is replaced."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def to_offer(tool: ToolSpec) -> dict[str, Any]:
    if tool.by_provider:
        return dict(_OFFERED[tool.name])
    return {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}


def to_served_call(block: dict[str, Any]) -> ServerToolPart | None:
    """Return a call that the provider made, or None for a tool that nobody offered."""
    tool, given = _OURS.get(str(block.get("name"))), block.get("input")
    if tool is None or not isinstance(given, dict):
        return None
    return ServerToolPart(
        block=block, call_id=str(block.get("id")), tool=tool, said=to_one_line(str(given.get("query")))
    )


def to_served_result(block: dict[str, Any]) -> ServerToolPart:
    """Return the result of a search as a part: the number of results, or the provider's error."""
    found = block.get("content")
    is_error = not isinstance(found, list)
    count = len(found or ())
    said = str(found.get("error_code")) if isinstance(found, dict) else f"{count} result{'s' * (count != 1)}"
    return ServerToolPart(
        block=block,
        call_id=str(block.get("tool_use_id")),
        tool="WebSearch",
        said=to_one_line(said),
        is_result=True,
        is_error=is_error,
    )
