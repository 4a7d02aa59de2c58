"""The request that a run comes to: messages in which every call has its one result, first in the next one."""

from agentflow.core.messages import Message, MessagePart, Request, Speaker, ToolCall, ToolResult
from agentflow.core.record import copy_shared
from agentflow.core.run import Run

INTERRUPTED = "interrupted: there is no result of this call, and whether it was done is unknown"


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
    """Return the first place whose message is not what the one before it asks for."""
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
    lost = {call_id: ToolResult(call_id=call_id, content=INTERRUPTED, is_error=True) for call_id in missing}
    first = tuple((results | lost)[call.id] for call in owed)
    others = tuple(part for part in parts if not isinstance(part, ToolResult))
    if not first and not others:
        return ()
    return (Message(speaker=Speaker.USER, parts=(*first, *others)),)
