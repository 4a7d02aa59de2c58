"""What goes to and comes from a model; vendor shapes never get past `model/`."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from agentflow.core.record import Record

SUMMARIZER = "summarizer"
"""Whose request it is that asks for a summary of a run's messages."""


class Speaker(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"


class Text(Record, tag="text", omit_defaults=True):
    text: str
    citations: tuple[dict[str, Any], ...] = ()
    """What a provider says it rests on; it goes back to it unchanged."""


class ToolCall(Record, tag="tool_use"):
    id: str
    name: str
    input: dict[str, Any]
    problem: str | None = None
    """Why it cannot be made, when it did not arrive whole; it is answered with this and never run."""


class Thought(Record, tag="thought"):
    """A block of a provider's that means nothing to us and goes back to it unchanged."""

    block: dict[str, Any]


class Served(Record, tag="served"):
    """A block of a tool that the provider runs itself, a call or what came of one; it goes back unchanged."""

    block: dict[str, Any]
    call_id: str
    tool: str
    said: str
    """What is asked for, or what came of it."""
    is_result: bool = False
    is_error: bool = False


class ToolResult(Record, tag="tool_result"):
    call_id: str
    content: str
    is_error: bool = False


ReplyPart = Text | Thought | Served | ToolCall
Part = ReplyPart | ToolResult


class Notice(StrEnum):
    """Why the program spoke to a role."""

    BRIEF = "brief"
    FAILED = "failed"
    """A new iteration, in the conversation of the one that failed."""
    REMINDER = "reminder"
    FINALIZE = "finalize"
    HOOK = "hook"
    HELD = "held"
    TODOS = "todos"


class Message(Record):
    speaker: Speaker
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall))


class Stop(StrEnum):
    """Why a model stopped; anything else a provider says is not success."""

    END_TURN = "end_turn"
    TOOL_USE = "tool_use"
    MAX_TOKENS = "max_tokens"
    REFUSAL = "refusal"
    PAUSED = "paused"
    """The provider broke its own work off, and goes on with it when it is asked again."""


class Usage(Record):
    """Tokens and money; an unknown cost is None, never a guess."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost_usd: float | None = None

    @property
    def tokens(self) -> int:
        """Sent and received, those read from a cache too."""
        return self.input + self.output + self.cache_read + self.cache_write


def total(usages: Iterable[Usage]) -> Usage:
    """Add usages up; the cost is known only if each one is."""
    added = tuple(usages)
    costs = [usage.cost_usd for usage in added if usage.cost_usd is not None]
    return Usage(
        input=sum(usage.input for usage in added),
        output=sum(usage.output for usage in added),
        cache_read=sum(usage.cache_read for usage in added),
        cache_write=sum(usage.cache_write for usage in added),
        cost_usd=sum(costs) if costs and len(costs) == len(added) else None,
    )


class Reply(Record):
    """One complete turn of a model."""

    parts: tuple[ReplyPart, ...]
    stop: Stop = Stop.END_TURN
    usage: Usage = Usage()
    model: str = ""


class ToolSpec(Record, omit_defaults=True):
    """A tool as a model sees it; `input_schema` is a JSON schema object."""

    name: str
    description: str
    input_schema: dict[str, Any]
    by_provider: bool = False
    """The model's provider runs it; nothing is run here."""


class Request(Record):
    """One question to a model: `system` and `tools` are the same for a whole run."""

    role: str
    agent: str
    run: int
    iteration: int
    model: str
    """The model id the role's tier stands for."""
    system: str
    tools: tuple[ToolSpec, ...]
    messages: tuple[Message, ...]
    force: str | None = None
    """The tool the model must call now, if any."""
    replies: int = 0
    """How many requests of this kind the run got an answer to before."""
    reply_tokens: int | None = None
    """The most tokens that the reply may have, where the settings allow more."""
