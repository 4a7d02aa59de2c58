"""A run after its history was compacted, and the size of what it sends."""

from typing import Any

from agentflow.core.context import size_of
from agentflow.core.messages import Message, Part, ToolCall, ToolResult, total
from agentflow.core.record import encode
from agentflow.core.run import CompactionTrigger, HistoryCompacted, Run, RunOpened

_SHARE = 0.75
"""Of a request that was too long, which the next ones stay below."""


def with_message(run: Run, message: Message, **changes: Any) -> Run:
    """Return the run with one more message."""
    return run.replace(messages=(*run.messages, message), size=run.size + size_of(message), **changes)


def head_size(head: RunOpened) -> int:
    """Return the characters that every request begins with."""
    return len(head.system) + sum(len(encode(tool)) for tool in head.tools)


def apply_compaction(run: Run, entry: HistoryCompacted) -> Run:
    """Return the run with the history that an entry says."""
    head = run.head.replace(tools=entry.tools) if entry.tools else run.head
    messages = rewrite_messages(run.messages, entry)
    size = run.size if entry.is_empty else head_size(head) + sum(map(size_of, messages))
    same = {id(message) for message in messages}
    was_asked = entry.reply is not None or entry.failure is not None
    after = run.replace(
        head=head,
        messages=messages,
        size=size,
        sent=0 if messages is not run.messages else run.sent,
        replaced=(*run.replaced, *(message for message in run.messages if id(message) not in same)),
        is_new=False,
        is_archived=run.is_archived or bool(entry.results),
        summaries=run.summaries + was_asked,
        usage=total((run.usage, entry.reply.usage)) if entry.reply else run.usage,
        seconds=run.seconds + entry.seconds,
    )
    if entry.trigger is CompactionTrigger.OVERFLOW:
        ceiling = int(run.tokens * _SHARE)
        after = after.replace(is_refused=True, ceiling=min(ceiling, run.ceiling or ceiling))
    return after


def rewrite_messages(messages: tuple[Message, ...], entry: HistoryCompacted) -> tuple[Message, ...]:
    """Return messages as an entry says that they read from there on."""
    if entry.is_empty:
        return messages
    kept = tuple(_shortened(message, entry) for message in messages[entry.until :])
    first = tuple(_shortened(message, entry) for message in messages[: min(entry.until, 1)])
    return (*first, *entry.instead, *kept)


def _shortened(message: Message, entry: HistoryCompacted) -> Message:
    parts = tuple(_replaced(part, entry) for part in message.parts)
    return message if parts == message.parts else message.replace(parts=parts)


def _replaced(part: Part, entry: HistoryCompacted) -> Part:
    match part:
        case ToolResult() if part.call_id in entry.results:
            return part.replace(content=entry.results[part.call_id])
        case ToolCall() if part.id in entry.inputs:
            return part.replace(input=entry.inputs[part.id])
        case _:
            return part
