"""How much of a conversation a request holds: the limits, and an estimate of its tokens."""

from typing import Annotated

from msgspec import Meta

from agentflow.core.messages import Message, Part, Served, Text, Thought, ToolCall, ToolResult, Usage
from agentflow.core.record import Record

TOKENS_A_CHARACTER = 0.25
"""As long as no reply tells otherwise."""
_SHARE = 0.75
"""Of the context, which is compacted before it is full."""
_SUMMARY_PART = 16
_LEAST_SAMPLE = 20_000
"""Characters of a request from which on its usage says how long our texts are in tokens."""
_BELIEVED = (0.1, 2.0)
"""Tokens a character can have; a server that tells anything else does not count what it was sent."""


class ContextLimits(Record):
    """Bounds of what a run sends and shows; tokens unless said otherwise."""

    context: Annotated[int, Meta(ge=4_000)] = 96_000
    """Of a request and its reply; a model whose window is smaller has that."""
    trigger: Annotated[int, Meta(ge=1_000)] | None = None
    """Of a request from which on the conversation is compacted; None is three quarters of the context."""
    calls: Annotated[int, Meta(ge=0)] = 10
    """Tool calls of a role whose file names no limit."""
    parallel: Annotated[int, Meta(ge=1, le=64)] = 4
    """Calls that only read and run at once."""
    summary: Annotated[int, Meta(ge=100)] = 5_000
    result_chars: Annotated[int, Meta(ge=1_000)] = 32_000
    """Characters of a tool's result."""
    result_tokens: Annotated[int, Meta(ge=250)] = 8_000
    turns_kept: Annotated[int, Meta(ge=1)] = 16
    """Newest turns whose outputs are archived last."""

    @property
    def compacted_at(self) -> int:
        """Tokens of a request from which on the conversation is compacted."""
        return int(self.context * _SHARE) if self.trigger is None else min(self.trigger, self.context)

    @property
    def summary_tokens(self) -> int:
        """Tokens of a summary, which is a small part of the context."""
        return min(self.summary, self.context // _SUMMARY_PART)

    def within(self, window: int | None) -> "ContextLimits":
        """Return the limits for a model of this window; None is not known."""
        if window is None or window >= self.context:
            return self.replace(trigger=self.compacted_at)
        return self.replace(context=window, trigger=min(self.compacted_at, int(window * _SHARE)))

    def result_size(self, rate: float) -> int:
        """Return how many characters of a result are shown where a character has so many tokens."""
        return min(self.result_chars, int(self.result_tokens / rate))


DEFAULT_ROOM = ContextLimits()


def size_of(message: Message) -> int:
    """Return the characters of a message."""
    return sum(map(part_size, message.parts))


def part_size(part: Part) -> int:
    match part:
        case Text():
            return len(part.text)
        case ToolResult():
            return len(part.content)
        case ToolCall():
            return len(repr(part.input))
        case Thought() | Served():
            return len(repr(part.block))


def calibrate_rate(rate: float, sent_size: int, usage: Usage) -> float:
    """Return tokens a character, moved halfway to what a reply tells of a request of this size."""
    prompt = usage.input + usage.cache_read + usage.cache_write
    if sent_size < _LEAST_SAMPLE:
        return rate
    told = prompt / sent_size
    least, most = _BELIEVED
    return (rate + told) / 2 if least <= told <= most else rate
