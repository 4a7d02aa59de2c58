"""Requests to a model, its replies, and the limits of a conversation in tokens."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta, field

from agentflow.core.record import Record
from agentflow.core.regex import regex

SUMMARIZER = "summarizer"
"""The role of a request that asks for a summary of a run's messages."""


class Speaker(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"


class Text(Record, tag="text", omit_defaults=True):
    text: str
    citations: tuple[dict[str, Any], ...] = ()
    """The provider's sources for this text; they are sent back unchanged."""


class ToolCall(Record, tag="tool_use"):
    id: str
    name: str
    input: dict[str, Any]
    problem: str | None = None
    """Why a call that arrived damaged is not made; its result says this."""


class Thought(Record, tag="thought"):
    """A provider's block that the program does not read; it is sent back unchanged."""

    block: dict[str, Any]


class ServerToolPart(Record, tag="served"):
    """A call of a tool that the provider runs itself, or its result; it is sent back unchanged."""

    block: dict[str, Any]
    call_id: str
    tool: str
    said: str
    """The query, or the result, as text."""
    is_result: bool = False
    is_error: bool = False


class ToolResult(Record, tag="tool_result", omit_defaults=True):
    call_id: str
    content: str
    is_error: bool = field(default_factory=bool)  # a factory's value is always written
    shown: str = ""
    """An image or document that the model sees beside the text, as a `data:` address."""
    failures: dict[str, str] = {}
    """What it says of each failing test, by id; a later result says only what is new."""

    @property
    def shown_kind(self) -> str:
        """Its media type, without parameters."""
        return self.shown.removeprefix("data:").partition(";")[0]

    @property
    def shown_content(self) -> str:
        """In base64."""
        return self.shown.partition(";base64,")[2]


ReplyPart = Text | Thought | ServerToolPart | ToolCall
MessagePart = ReplyPart | ToolResult


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
    PERSON = "person"
    """A person said it while the role worked."""
    NEWS = "news"
    """The program learned it while the role worked."""


class Message(Record):
    speaker: Speaker
    parts: tuple[MessagePart, ...]

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
    """The provider interrupted its own work; the next request continues it."""


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


def sum_usage(usages: Iterable[Usage]) -> Usage:
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
    """The number of earlier requests of this kind that were answered."""
    reply_tokens: int | None = None
    """The most tokens of the reply, where the settings allow more."""


TOKENS_A_CHARACTER = 0.25
"""Until a reply tells the real rate."""
_SHARE = 0.75
"""The part of the context at which a conversation is compacted."""
_SUMMARY_PART = 16
_LEAST_SAMPLE = 20_000
"""A smaller request says too little about how many tokens a character has."""
_PLAUSIBLE = (0.1, 2.0)
"""Rates that can be true; a server that reports another one does not count what it was sent."""


class ContextLimits(Record):
    """Limits of what a run sends and shows, in tokens unless stated otherwise."""

    context: Annotated[int, Meta(ge=4_000)] = 96_000
    """Of a request and its reply; at most the model's window."""
    trigger: Annotated[int, Meta(ge=1_000)] | None = None
    """The size of a request at which the conversation is compacted; None is three quarters of the context."""
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
    shows: tuple[str, ...] | None = None
    """The kinds of files that the model sees, such as `image` or `pdf`; None follows from its name."""

    @property
    def compacted_at(self) -> int:
        """The size of a request at which the conversation is compacted."""
        return int(self.context * _SHARE) if self.trigger is None else min(self.trigger, self.context)

    @property
    def summary_tokens(self) -> int:
        """Tokens of a summary, which is a small part of the context."""
        return min(self.summary, self.context // _SUMMARY_PART)

    def fit_window(self, window: int | None) -> "ContextLimits":
        """Return the limits for a model with this window; None where it is not known."""
        if window is None or window >= self.context:
            return self.replace(trigger=self.compacted_at)
        return self.replace(context=window, trigger=min(self.compacted_at, int(window * _SHARE)))

    def measure_result(self, rate: float) -> int:
        """Return how many characters of a result are shown at a rate of tokens a character."""
        return min(self.result_chars, int(self.result_tokens / rate))


DEFAULT_ROOM = ContextLimits()


def measure_message(message: Message) -> int:
    return sum(map(measure_part, message.parts))


_SHOWN_CHARS = 8_000
"""What an image, or a page of a document, counts for: about 2,000 tokens."""
_PAGES = regex(r"data:[\w/+.-]+;pages=(\d+);")


def measure_shown(shown: str) -> int:
    """Return what an image or document counts for in characters; its bytes say nothing."""
    pages = _PAGES.match(shown)
    return _SHOWN_CHARS * int(pages[1]) if pages else _SHOWN_CHARS * bool(shown)


def count_hidden_bytes(request: Request) -> int:
    """Return the bytes of a request that its size in text does not have: those of images and documents."""
    parts = (part for message in request.messages for part in message.parts)
    return sum(len(part.shown) - measure_shown(part.shown) for part in parts if isinstance(part, ToolResult))


def hide_shown(request: Request) -> Request:
    """Return a request without images and documents; the same where it has none."""

    def hide(part: MessagePart) -> MessagePart:
        if not isinstance(part, ToolResult) or not part.shown:
            return part
        return part.replace(shown="", content=f"{part.content}\n[the model's server did not take it]")

    messages = tuple(each.replace(parts=tuple(map(hide, each.parts))) for each in request.messages)
    return request if messages == request.messages else request.replace(messages=messages)


def measure_part(part: MessagePart) -> int:
    match part:
        case Text():
            return len(part.text)
        case ToolResult():
            return len(part.content) + measure_shown(part.shown)
        case ToolCall():
            return len(repr(part.input))
        case Thought() | ServerToolPart():
            return len(repr(part.block))


def calibrate_rate(rate: float, sent_size: int, usage: Usage) -> float:
    """Return the rate of tokens a character, moved halfway to the one that a reply reports."""
    prompt = usage.input + usage.cache_read + usage.cache_write
    if sent_size < _LEAST_SAMPLE:
        return rate
    told = prompt / sent_size
    least, most = _PLAUSIBLE
    return (rate + told) / 2 if least <= told <= most else rate
