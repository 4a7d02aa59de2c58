"""Which parts of a conversation are archived so that the next request fits. Pure."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from agentflow.core.messages import Message, MessagePart, Speaker, ToolCall, ToolResult, ToolSpec, part_size
from agentflow.core.record import Record
from agentflow.core.run import Run
from agentflow.core.tool import Retention
from agentflow.redact import redact_text
from agentflow.tools.shell import recall_note

HEAVY = 1_000
"""Characters of a result above which a marker is shorter."""
LARGE = 2_000
"""Characters of an argument above which only its beginning and its hash stay."""
_BEGINNING = 200

Kept = Callable[[str], Retention]
"""What is left of the results of a tool, by its name."""


class Archive(Record):
    """What goes from a conversation, and what stands in its place."""

    results: dict[str, str] = {}
    """By call id, the marker."""
    inputs: dict[str, dict[str, Any]] = {}
    """By call id, the shorter input."""
    files: dict[str, str] = {}
    """By call id, the text that is kept in a file."""
    saved: int = 0
    """Characters that the conversation has less."""


def newest_batch(messages: tuple[Message, ...]) -> int:
    """Return the place of the newest reply with calls, else of the newest one; all from there on stays."""
    replies = [place for place, each in enumerate(messages) if each.speaker is Speaker.ASSISTANT]
    calling = [place for place in replies if messages[place].calls]
    return next(reversed(calling or replies), len(messages))


def turn_place(messages: tuple[Message, ...], turns: int) -> int:
    """Return the place of the first of so many newest replies; 1 where there are fewer."""
    replies = [place for place, each in enumerate(messages) if each.speaker is Speaker.ASSISTANT]
    return replies[-turns] if len(replies) >= turns else 1


def archive(run: Run, kept: Kept, offered: Iterable[ToolSpec], places: Iterable[int], excess: int) -> Archive:
    """Return what of the messages at these places is archived, until so many characters are saved."""
    offered = tuple(offered)
    calls = {call.id: call for message in run.messages for call in message.calls}
    done = _find_succeeded(run.messages)
    found = Archive()
    for part in (part for place in places for part in run.messages[place].parts):
        if found.saved >= excess:
            break
        call = calls.get(part.call_id) if isinstance(part, ToolResult) else None
        if isinstance(part, ToolResult) and call is not None:
            found = _with_result(found, part, call, kept(call.name), offered)
        elif isinstance(part, ToolCall) and part.id in done:
            found = _with_input(found, part, kept(part.name))
    return found


def join_archives(one: Archive, other: Archive) -> Archive:
    return Archive(
        results=one.results | other.results,
        inputs=one.inputs | other.inputs,
        files=one.files | other.files,
        saved=one.saved + other.saved,
    )


def _find_succeeded(messages: tuple[Message, ...]) -> frozenset[str]:
    parts = (part for message in messages for part in message.parts)
    return frozenset(part.call_id for part in parts if isinstance(part, ToolResult) and not part.is_error)


def _with_result(
    found: Archive, result: ToolResult, call: ToolCall, kept: Retention, offered: tuple[ToolSpec, ...]
) -> Archive:
    if kept is Retention.KEEP_FULL or len(result.content) <= HEAVY:
        return found
    copy = {} if kept is Retention.DROP else {call.id: result.content}
    note = recall_note(offered, call.id) if copy else "make the call again to read it"
    marker = redact_text(_marker(result, call, kept, note))
    return found.replace(
        results={**found.results, call.id: marker},
        files=found.files | copy,
        saved=found.saved + len(result.content) - len(marker),
    )


def _marker(result: ToolResult, call: ToolCall, kept: Retention, note: str) -> str:
    lines = [line for line in result.content.split("\n") if line.strip()] or [""]
    last = f"\n{_clip(lines[-1])}" if kept is Retention.KEEP_STRUCTURED and len(lines) > 1 else ""
    size = f"{len(result.content):,} characters"
    return f"[archived: {call.name}, {call.id}, {size}; {note}]\n{_clip(lines[0])}{last}"


def _clip(line: str) -> str:
    return line if len(line) <= _BEGINNING else f"{line[:_BEGINNING]}…"


def _with_input(found: Archive, call: ToolCall, kept: Retention) -> Archive:
    if kept is Retention.KEEP_FULL:
        return found
    given = {key: shorten(value) for key, value in call.input.items()}
    if given == call.input:
        return found
    saved = part_size(call) - part_size(call.replace(input=given))
    return found.replace(inputs={**found.inputs, call.id: given}, saved=found.saved + saved)


def shorten(value: Any) -> Any:
    """Return plain data in which each long text is its beginning, its length and its SHA-256."""
    if isinstance(value, str):
        return value if len(value) <= LARGE else _shorten_text(value)
    if isinstance(value, dict):
        return {key: shorten(item) for key, item in value.items()}
    return [shorten(item) for item in value] if isinstance(value, list) else value


def _shorten_text(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    rest = f"{len(text) - _BEGINNING:,} more characters were sent; of the whole: sha256 {digest}"
    return redact_text(f"{text[:_BEGINNING]}… [{rest}]")


def select_pairs(messages: Iterable[Message], wanted: Callable[[ToolCall], bool]) -> Iterator[Message]:
    """Yield the calls that are wanted with their results, and nothing else of the messages."""
    ids: set[str] = set()
    for message in messages:
        ids |= {call.id for call in message.calls if wanted(call)}
        parts = tuple(part for part in message.parts if _call_of(part) in ids)
        if parts:
            yield message.replace(parts=parts)


def _call_of(part: MessagePart) -> str | None:
    match part:
        case ToolCall():
            return part.id
        case ToolResult():
            return part.call_id
        case _:
            return None
