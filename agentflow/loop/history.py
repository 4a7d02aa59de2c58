"""The messages of a run: the request it sends, and a model's reply as its tools take it."""

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import msgspec

from agentflow.core.events import Event, ToolFinished, ToolStarted
from agentflow.core.messages import (
    Message,
    MessagePart,
    Reply,
    ReplyPart,
    Request,
    ServerToolPart,
    Speaker,
    Stop,
    Text,
    Thought,
    ToolCall,
    ToolResult,
)
from agentflow.core.record import Record, copy_shared, map_texts
from agentflow.core.run import Run
from agentflow.loop.agent import Agent
from agentflow.parse import Mismatch, decode_or_none, fit
from agentflow.redact import redact_text, redact_values

INTERRUPTED_CALL = "interrupted: there is no result of this call, and whether it was done is unknown"


def request_of(run: Run, force: str | None = None) -> Request:
    """Return the next request of a run: role and task are its head and first message, then its history."""
    return Request(
        messages=run.messages, force=force, replies=len(run.used), **copy_shared(run.head, Request)
    )


def pair_results(
    messages: tuple[Message, ...], since: int = 0
) -> tuple[tuple[Message, ...], tuple[str, ...]]:
    """Return the messages with each call paired with one result, and what was wrong.

    Those before `since` were sent before and are taken as they are; the same tuple comes back if nothing
    was wrong.
    """
    place = _find_first_wrong(messages, since)
    if place is None:
        return messages, ()
    kept, problems = list(messages[:place]), list[str]()
    for message in messages[place:]:
        if message.speaker is Speaker.USER:
            kept.extend(_pair(_list_owed(kept), message, problems))
        else:
            kept.extend(_pair(_list_owed(kept), None, problems))
            kept.append(message)
    kept.extend(_pair(_list_owed(kept), None, problems))
    return tuple(kept), tuple(problems) or ("results stood in the wrong place",)


def _list_owed(kept: list[Message]) -> tuple[ToolCall, ...]:
    return kept[-1].calls if kept else ()


def _find_first_wrong(messages: tuple[Message, ...], since: int) -> int | None:
    for place in range(since, len(messages) + 1):
        owed = [call.id for call in messages[place - 1].calls] if place else []
        parts = messages[place].parts if place < len(messages) else ()
        if _result_ids(parts) != owed or _result_ids(parts[: len(owed)]) != owed:
            return place
    return None


def _result_ids(parts: tuple[MessagePart, ...]) -> list[str]:
    return [part.call_id for part in parts if isinstance(part, ToolResult)]


def _pair(owed: tuple[ToolCall, ...], message: Message | None, problems: list[str]) -> tuple[Message, ...]:
    """Return a user message with the results that are owed, first and in order; none if it were empty."""
    parts = message.parts if message else ()
    results: dict[str, ToolResult] = {}
    for part in parts:
        if isinstance(part, ToolResult):
            results.setdefault(part.call_id, part)
    missing = [call.id for call in owed if call.id not in results]
    stray = len(_result_ids(parts)) - (len(owed) - len(missing))
    problems.extend(f"call {call_id} had no result" for call_id in missing)
    problems.extend(f"{stray} results of no call before them" for _ in range(stray > 0))
    lost = {
        call_id: ToolResult(call_id=call_id, content=INTERRUPTED_CALL, is_error=True) for call_id in missing
    }
    first = tuple((results | lost)[call.id] for call in owed)
    others = tuple(part for part in parts if not isinstance(part, ToolResult))
    if not first and not others:
        return ()
    return (Message(speaker=Speaker.USER, parts=(*first, *others)),)


_LOST_INPUT = "its input held a secret, which is not kept, and the run was interrupted: make the call again"


def adopt_reply(agent: Agent, turn: int, reply: Reply) -> Reply:
    """Return a reply with our own ids for its calls, and with a submission in prose as a call.

    Ids name files and pair calls with results, so the model does not choose them.
    """
    calls = [part for part in reply.parts if isinstance(part, ToolCall)]
    if calls or reply.stop is Stop.PAUSED:
        return reply.replace(parts=_rename_calls(reply.parts, f"c{agent.around.number}-{turn}"))
    text = "\n".join(part.text for part in reply.parts if isinstance(part, Text))
    found = find_submission(text, agent.submit.input) if agent.submit else None
    if agent.submit is None or found is None:
        return reply
    call = ToolCall(id=f"c{agent.around.number}-{turn}-1", name=agent.submit.name, input=found)
    return reply.replace(parts=(*reply.parts, call))


def redact_reply(agent: Agent, reply: Reply) -> Reply:
    """Return a reply without the secrets in it; the inputs of its calls stay at hand until they are made."""
    return reply.replace(parts=tuple(clean for part in reply.parts for clean in _redact_part(agent, part)))


def _redact_part(agent: Agent, part: ReplyPart) -> tuple[ReplyPart, ...]:
    match part:
        case Text():
            cited = tuple(redact_values(one) for one in part.citations)
            return (Text(text=redact_text(to_writable(part.text)), citations=cited),)
        case ServerToolPart():  # one without the other is refused, so neither is left out
            return (part.replace(block=redact_values(part.block)),)
        case Thought():  # a provider takes its own block back unchanged, or not at all
            return (part,) if redact_values(part.block) == part.block else ()
        case ToolCall():
            given = redact_values(part.input)
            if given == part.input:
                return (part,)
            if part.problem is None:
                agent.secret_inputs[part.id] = part.input
            return (part.replace(input=given, problem=part.problem or _LOST_INPUT),)


def list_served_calls(run: int, turn: int, reply: Reply) -> Iterator[Event]:
    """Yield the events of the calls that the provider made itself."""
    for part in reply.parts:
        if isinstance(part, ServerToolPart) and part.is_result:
            yield ToolFinished(
                run=run,
                turn=turn,
                call_id=part.call_id,
                tool=part.tool,
                is_error=part.is_error,
                summary=part.said,
                seconds=0,
            )
        elif isinstance(part, ServerToolPart):
            yield ToolStarted(run=run, turn=turn, call_id=part.call_id, tool=part.tool, subject=part.said)


def _rename_calls(parts: tuple[ReplyPart, ...], prefix: str) -> tuple[ReplyPart, ...]:
    numbers = count(1)
    return tuple(
        part.replace(id=f"{prefix}-{next(numbers)}", input=to_writable(part.input))
        if isinstance(part, ToolCall)
        else part
        for part in parts
    )


_NUMBER = re.compile(r"\d+")
_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)


def fit_input(kind: type[Record], value: dict[str, Any]) -> Record:
    """Return a call's input as the tool's input type; what fits as it stands is not touched.

    Otherwise the same values are tried in their other spellings ("60" for 60, JSON in a string, one
    item for a list of it, all wrapped in `input`); nothing is invented. Raises Mismatch of the input as
    it was given.
    """
    try:
        return fit(kind, value)
    except Mismatch:
        for candidate in _list_spellings(kind, value):
            try:
                return fit(kind, candidate, lax=True)
            except Mismatch:
                continue
        raise


def fit_submission(
    kind: type[Record], value: dict[str, Any], *, drops: bool = False
) -> tuple[Record, tuple[str, ...]]:
    """Return a role's result as its type, and what in it is left out: keys that mean nothing to us.

    A list that is missing is empty, a number is a text where a text is meant, and so on: a slip of form must
    not lose right work. `drops` leaves out the items of lists that do not fit. Raises Mismatch.
    """
    try:
        return fit_input(kind, value), ()
    except Mismatch:
        from msgspec.inspect import type_info  # noqa: PLC0415  # only for what does not fit

        unknown: dict[str, None] = {}
        with suppress(Mismatch):
            return fit(kind, _shape(type_info(kind), value, "", unknown, drops), lax=True), tuple(unknown)
        raise


def _shape(described: Any, value: object, place: str, unknown: dict[str, None], drops: bool) -> object:
    match type(described).__name__:
        case "Metadata":
            return _shape(described.type, value, place, unknown, drops)
        case "UnionType" if value is not None:
            inner = (each for each in described.types if type(each).__name__ != "NoneType")
            return _shape(next(inner), value, place, unknown, drops)
        case "StrType" | "IntType" | "EnumType":
            return _shape_scalar(described, value)
        case "VarTupleType":
            return _shape_items(described.item_type, value, place, unknown, drops)
        case "StructType" if isinstance(found := _unpack(value), dict | str):
            fields = {field.encode_name: field for field in described.fields}
            if isinstance(found, str):
                found = {next(iter(fields)): found}
            lists = (name for name, field in fields.items() if field.required and _is_list(field.type))
            given = {**dict.fromkeys(lists), **found}
            unknown.update(dict.fromkeys(f"{place}{key}" for key in given if key not in fields))
            return {
                key: _shape(fields[key].type, item, f"{place}{key}.", unknown, drops)
                for key, item in given.items()
                if key in fields
            }
    return value


def _shape_scalar(described: Any, value: object) -> object:
    match type(described).__name__:
        case "StrType" if isinstance(value, dict):
            texts = [item for item in value.values() if isinstance(item, str)]
            return texts[0] if len(texts) == 1 else value
        case "StrType" if type(value) is int:
            return str(value)
        case "IntType" if isinstance(value, str) and (found := _NUMBER.search(value)):
            return found.group()
        case "EnumType" if isinstance(value, str):
            alike = (each.value for each in described.cls if each.value.lower() == value.strip().lower())
            return next(alike, value)
    return value


def _shape_items(described: Any, value: object, place: str, unknown: dict[str, None], drops: bool) -> object:
    found, kept = _unpack(value), list[object]()
    items = found if isinstance(found, list) else [] if found is None else [found]
    for number, item in enumerate(items, 1):
        shaped = _shape(described, item, place, unknown, drops)
        if drops and type(described).__name__ == "StructType":
            try:
                fit(described.cls, shaped, lax=True)
            except Mismatch:
                unknown[f"{place}{number}"] = None
                continue
        kept.append(shaped)
    return kept


def _is_list(described: Any) -> bool:
    return type(getattr(described, "type", described)).__name__ == "VarTupleType"


def _list_spellings(kind: type[Record], value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield value
    inner = value.get("input")
    if len(value) == 1 and isinstance(inner, dict):
        yield inner
        value = inner
    unpacked = {key: _unpack(item) for key, item in value.items()}
    yield unpacked
    fields = msgspec.structs.fields(kind)
    lists = {field.encode_name for field in fields if "tuple[" in str(field.type)}
    yield {
        key: [item] if key in lists and not isinstance(item, list) else item for key, item in unpacked.items()
    }


def _unpack(item: object) -> object:
    if not isinstance(item, str) or item[:1] not in ("{", "["):
        return item
    found = decode_or_none(item)
    return item if found is None else found


def find_submission(text: str, kind: type[Record]) -> dict[str, Any] | None:
    """Return the first JSON object in a text that fits a type: fenced ones first, else the first brace."""
    candidates = [found.group(1) for found in _FENCED.finditer(text)]
    start, end = text.find("{"), text.rfind("}")
    if start != -1 and end > start:
        candidates.append(text[start : end + 1])
    for candidate in candidates:
        found: dict[str, Any] = decode_or_none(candidate)
        with suppress(Mismatch):
            fit(kind, found)
            return found
    return None


def to_writable(value: Any) -> Any:
    """Return plain data in which every half character is an escape, so that it can stand in a file."""
    return map_texts(value, _escape_halves, _escape_halves)


def _escape_halves(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
