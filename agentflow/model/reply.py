"""A provider's turn as a reply of ours: what cannot be run is marked so, and no ending passes for another."""

import json
import re
from collections.abc import Mapping
from typing import Any

from agentflow.core.errors import ModelRejected, PromptTooLong
from agentflow.core.messages import Reply, ReplyPart, Served, Stop, Text, Thought, ToolCall, Usage
from agentflow.core.record import encode
from agentflow.model.provided import to_served_call, to_served_result
from agentflow.model.stream import ErrorEvent, RawTurn, usage
from agentflow.model.wire import BadReply
from agentflow.parse import decode_or_none

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


def whole_body(raw: bytes) -> RawTurn:
    """Return the turn of a reply that was not streamed. Raises BadReply, ErrorEvent, or ModelRejected."""
    try:
        found = json.loads(raw.decode())
    except (ValueError, RecursionError):
        raise BadReply("the reply is not whole JSON") from None
    kind = found.get("type") if isinstance(found, dict) else None
    if kind == "error" and isinstance(found.get("error"), dict):
        raise ErrorEvent(found["error"])
    if kind != "message" or not isinstance(found.get("content"), list):
        raise ModelRejected("this endpoint is not the Messages API: its answer is JSON of another kind")
    counts = usage(found.get("usage"))
    if not isinstance(found.get("stop_reason"), str) or "output" not in counts:
        raise BadReply("the reply lacks what a turn ends with")
    return RawTurn(
        blocks=tuple(block for block in found["content"] if isinstance(block, dict)),
        stop=found["stop_reason"],
        usage=Usage(**counts),
        model=str(found.get("model", "")),
        skipped=frozenset(),
    )


def reply(turn: RawTurn) -> tuple[Reply, frozenset[str]]:
    """Return a turn as a reply, and the kinds of what was skipped. Raises BadReply, or ModelRejected."""
    stop = _STOPS.get(turn.stop)
    if turn.stop == _TOO_LONG:
        raise PromptTooLong("the conversation no longer fits into the model's context window")
    if stop is None:
        raise ModelRejected(
            _REFUSED.get(turn.stop, f"the model stopped for a reason we do not know: {turn.stop}")
        )
    taken = [(block, _to_part(block, turn.stop)) for block in turn.blocks]
    parts = tuple(part for _, part in taken if part is not None)
    skipped = {*turn.skipped, *(str(block.get("type")) for block, part in taken if part is None)}
    ids = [part.id for part in parts if isinstance(part, ToolCall)]
    if len(ids) != len(set(ids)):
        raise BadReply("two tool calls of the reply have the same id")
    if stop in (Stop.END_TURN, Stop.MAX_TOKENS):
        parts = _drop_unanswered(parts)
    return Reply(parts=parts, stop=stop, usage=turn.usage, model=_join_surrogates(turn.model)), frozenset(
        skipped
    )


def _to_part(block: dict[str, Any], stop: str) -> ReplyPart | None:
    """Return a block as a part of ours, or None for one that we do not know."""
    part: ReplyPart | None
    match block.get("type"):
        case "text":
            cited = tuple(_to_writable(one) for one in block.get("citations") or () if isinstance(one, dict))
            part = Text(text=_join_surrogates(str(block.get("text") or "")), citations=cited)
        case "thinking" | "redacted_thinking":
            part = Thought(block=_to_writable(block))
        case "tool_use":
            part = _call(block, stop)
        case "server_tool_use":
            whole = {key: value for key, value in block.items() if key != "json"}
            part = to_served_call(_to_writable({**whole, "input": _input(block) or {}}))
        case "web_search_tool_result":
            part = to_served_result(_to_writable(block))
        case _:
            part = None
    return part


def _drop_unanswered(parts: tuple[ReplyPart, ...]) -> tuple[ReplyPart, ...]:
    """Return the parts of a turn that is over without calls of the provider's that came to nothing."""
    came = {part.call_id for part in parts if isinstance(part, Served) and part.is_result}
    return tuple(
        part for part in parts if not isinstance(part, Served) or part.is_result or part.call_id in came
    )


def _call(block: dict[str, Any], stop: str) -> ToolCall:
    """Return a tool call; only a turn that ended for its calls has calls that can be made."""
    name, call_id = block.get("name"), block.get("id")
    if not isinstance(name, str) or not isinstance(call_id, str) or not _CALL_ID.fullmatch(call_id):
        raise BadReply("the reply holds a tool call without a usable name and id")
    name = _join_surrogates(name)
    if stop != "tool_use":
        advice = "; make the call again with less in it" if stop == "max_tokens" else ""
        problem = f"the turn ended with {stop} before this call was complete; nothing was run{advice}"
        return ToolCall(id=call_id, name=name, input={}, problem=problem)
    given = _input(block)
    return ToolCall(id=call_id, name=name, input=given or {}, problem=_NOT_WHOLE if given is None else None)


def _input(block: dict[str, Any]) -> dict[str, Any] | None:
    """Return a call's input, or None when it is no JSON object that can be written down again."""
    streamed = block.get("json")
    try:
        found = (
            decode_or_none(_join_surrogates(streamed))
            if isinstance(streamed, str) and streamed
            else block.get("input")
        )
        encode(found)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _to_writable(block: dict[str, Any]) -> dict[str, Any]:
    """Return a block whose own texts can be written down. Raises BadReply when the rest cannot."""
    found = {
        key: _join_surrogates(value) if isinstance(value, str) else value for key, value in block.items()
    }
    try:
        encode(found)
    except (ValueError, RecursionError):
        raise BadReply("the reply holds a block that cannot be written down") from None
    return found


def _join_surrogates(text: str) -> str:
    """Join surrogate pairs that were cut apart; what stays half a character is replaced."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
