"""One agent run: the entries of its file, and where it stands after them."""

from enum import StrEnum
from math import ceil
from typing import Any

from agentflow.core.messages import (
    TOKENS_A_CHARACTER,
    Message,
    Notice,
    Reply,
    Speaker,
    Stop,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    sum_usage,
)
from agentflow.core.pending import Answer, Pending
from agentflow.core.record import Record


class SubagentResult(Record):
    """The result of a sub-agent."""

    run: int
    agent: str
    usage: Usage
    answer: str | None = None
    """Its text, where that becomes the answer of its parent's run."""
    halt: str | None = None
    """Why a hook ends the whole task."""


class HandOff(Record):
    """The role that takes a conversation over, and why."""

    to: str
    reason: str


class TokenSavings(Record):
    """The tokens that a direct answer saved its parent's run; not a part of the usage."""

    tokens_not_resent: int
    """Measured: what the next request would have sent again."""
    synthesis_avoided: int
    """Estimated: the tokens of an answer that the parent did not have to write."""
    estimated: tuple[str, ...] = ("synthesis_avoided",)


class Tally(Record):
    """The usage that counts against the limits of the active role."""

    turns: int = 0
    tool_calls: int = 0
    tokens: int = 0
    seconds: float = 0
    cost: float = 0


class RunOutcome(StrEnum):
    """Why a run ended; only the first two are what was asked for."""

    SUBMITTED = "submitted"
    ANSWERED = "answered"
    NO_SUBMISSION = "no_submission"
    INVALID_SUBMISSION = "invalid_submission"
    TURN_LIMIT = "turn_limit"
    PAUSE_LIMIT = "pause_limit"
    """The provider paused its replies too often in a row."""
    TOOL_LIMIT = "tool_limit"
    TOKEN_LIMIT = "token_limit"  # noqa: S105  # not a password
    TIME_LIMIT = "time_limit"
    COST_LIMIT = "cost_limit"
    CONFUSED = "confused"
    """Three turns in a row in which no call could be made."""
    STOPPED = "stopped"
    """A hook ended this run."""
    HALTED = "halted"
    """A hook ended the whole task."""
    ERROR = "error"
    """The model gave no usable reply; the file stays open, so that the run may go on."""


class RunOpened(Record, tag=True):
    """The head of a run file: what every request of the run has in common."""

    run: int
    role: str
    agent: str
    iteration: int
    model: str
    system: str
    tools: tuple[ToolSpec, ...]
    submit: str | None
    """The tool that ends the run, if any."""
    parent: str | None = None
    """The call that asked for this run, if it is a sub-agent's."""
    concatenates: bool = False
    """Direct answers of one turn are put one after the other."""
    angle: str = ""
    """What it looks at, where several look at once."""
    shown: tuple[str, ...] = ()
    """The files that its brief shows whole, which count as read."""
    continues: int | None = None
    """The earlier run whose conversation goes on in this one."""
    history: tuple[Message, ...] = ()
    """The conversation of the earlier task that this one goes on with."""


class MessageAdded(Record, tag=True):
    """A user message from the program: the brief, or a notice."""

    message: Message
    notice: Notice


class RequestSent(Record, tag=True):
    """The head and all messages above were sent."""

    turn: int
    force: str | None = None
    changed: bool = False
    """A hook had something else sent."""


class ReplyReceived(Record, tag=True):
    reply: Reply
    seconds: float = 0
    """The time of the model."""


class CallsStarted(Record, tag=True):
    """These calls are about to have their effect."""

    calls: tuple[str, ...]


class CallAnswered(Record, tag=True):
    """A call has its result, and its effect is on disk."""

    result: ToolResult
    changes: dict[str, Any] = {}
    """New values of keys of the task's state."""
    submitted: bool = False
    halt: str | None = None
    """Why a hook ends the whole task here."""
    seconds: float = 0
    """The time of the tool."""
    made: bool = True
    """False for a call that had no chance of an effect: skipped, refused or malformed."""
    refused_by: str = ""
    """The list, rule or hook that did not let the call be made."""
    delegated: SubagentResult | None = None
    handoff: HandOff | None = None


class HandedOver(Record, tag=True):
    """Another role continues the conversation; these values replace those of the head."""

    agent: str
    model: str
    system: str
    tools: tuple[ToolSpec, ...]


class CompactionTrigger(StrEnum):
    """Why a conversation is compacted."""

    LIMIT = "limit"
    """The next request would have more tokens than the limits say."""
    OVERFLOW = "overflow"
    """The provider answered that the request is too long."""


class HistoryCompacted(Record, tag=True, omit_defaults=True):
    """The messages as they are sent from here on; what is taken out of them is kept in `outputs/`."""

    trigger: CompactionTrigger
    results: dict[str, str] = {}
    """By call id, what stands in place of a result."""
    inputs: dict[str, dict[str, Any]] = {}
    """By call id, the input with long texts shortened."""
    until: int = 1
    """The messages from the second up to this place are replaced."""
    instead: tuple[Message, ...] = ()
    """The messages in their place."""
    tools: tuple[ToolSpec, ...] = ()
    """The tools from here on; empty if they stay the same."""
    reply: Reply | None = None
    """The model's summary."""
    failure: str | None = None
    """Why the model gave no summary."""
    blocked: str | None = None
    """Why a hook kept the compaction from happening."""
    seconds: float = 0

    @property
    def is_empty(self) -> bool:
        return not (self.results or self.inputs or self.until > 1)


class RunStopped(Record, tag=True):
    """A hook ends the run here, or with `halt` the whole task."""

    reason: str
    halt: bool = False


class RunPaused(Record, tag=True, omit_defaults=True):
    """A call waits for a person; with `inside`, the sub-agent that the call runs does."""

    call_id: str
    pending: Pending
    inside: bool = False


class PauseAnswered(Record, tag=True):
    """The call that waited was decided."""

    call_id: str
    answer: Answer


class RunClosed(Record, tag=True):
    outcome: RunOutcome
    changes: dict[str, Any] = {}
    """New values of keys of the task's state, from a direct answer."""
    bail: str | None = None
    """A hook's answer, which replaces that of the sub-agent and of the run that started it."""


RunEntry = (
    RunOpened
    | MessageAdded
    | RequestSent
    | ReplyReceived
    | CallsStarted
    | CallAnswered
    | HandedOver
    | HistoryCompacted
    | RunStopped
    | RunPaused
    | PauseAnswered
    | RunClosed
)


class Run(Record):
    """The state of a run."""

    head: RunOpened
    task_prompt: str = ""
    """The task as the run began."""
    messages: tuple[Message, ...] = ()
    """The conversation, including earlier runs that this one continues."""
    answers: tuple[ToolResult, ...] = ()
    """The results so far of the newest reply's calls."""
    started: tuple[str, ...] = ()
    sent: int = 0
    """The number of messages in the newest request."""
    size: int = 0
    """Characters of head and messages."""
    sent_size: int = 0
    """The same of the newest request; 0 where a hook had something else sent."""
    rate: float = TOKENS_A_CHARACTER
    """Tokens a character has, as the replies tell."""
    ceiling: int | None = None
    """Tokens above which a request was too long for the provider."""
    is_new: bool = False
    """Results came since the conversation was last compacted."""
    is_refused: bool = False
    """The newest request was too long, and none was answered since."""
    notices: dict[Notice, Message] = {}
    """The newest message of the program for each notice."""
    summaries: int = 0
    """The number of times that the model was asked for a summary."""
    recalls: tuple[str, ...] = ()
    """Calls that read archived results."""
    replaced: tuple[Message, ...] = ()
    """Messages as they were before a compaction changed them or took them out."""
    is_archived: bool = False
    """Some results stand in `outputs/` only."""
    turns: int = 0
    tool_calls: int = 0
    used: tuple[Usage, ...] = ()
    """Of each reply."""
    usage: Usage = Usage()
    """Of all replies and summaries."""
    seconds: float = 0
    """The time of model and tools together."""
    reminded: bool = False
    """The role was told once that it has to submit."""
    todo_turn: int = 0
    """The turn in which the todos were last written, or the role was reminded of them."""
    finalized: bool = False
    """The role was told that its limit is reached, and asked to submit now."""
    rejected: int = 0
    """Submissions that did not fit."""
    invalid_turns: int = 0
    """Turns in a row in which no call could be made."""
    refused_by: dict[str, str] = {}
    """Who refused calls in those turns, each with the last words."""
    made: int = 0
    """Calls of the newest reply that were made."""
    changes: dict[str, Any] = {}
    submitted: bool = False
    stop: str | None = None
    halt: str | None = None
    pause: RunPaused | None = None
    delegated: tuple[SubagentResult, ...] = ()
    """All sub-agents that have finished."""
    returned: dict[str, SubagentResult] = {}
    """Those of the newest reply, by the call that asked for them."""
    answer: str | None = None
    """The direct answer of a sub-agent."""
    saved: TokenSavings | None = None
    bail: str | None = None
    held: int = 0
    """The number of times that hooks kept the run from ending."""
    handoff: HandOff | None = None
    """The next step is to hand over."""
    handoffs: int = 0
    active: str | None = None
    """Who goes on with the conversation, once it was handed over."""
    before: Tally = Tally()
    """The usage before the active role began."""
    decided: dict[str, Answer] = {}
    """Answers of people, by the call they are about."""
    outcome: RunOutcome | None = None
    reply_stop: Stop | None = None
    """Why the newest reply ended."""
    pauses: int = 0
    """Replies in a row that the provider paused."""

    @property
    def all_messages(self) -> tuple[Message, ...]:
        """All messages that the role ever saw, including archived ones."""
        return (*self.replaced, *self.messages)

    def mentions(self, text: str) -> bool:
        results = (
            part for message in self.messages for part in message.parts if isinstance(part, ToolResult)
        )
        return any(text in message.text for message in self.messages) or any(
            text in result.content for result in results
        )

    @property
    def tokens(self) -> int:
        return ceil(self.size * self.rate)

    @property
    def cost(self) -> Usage:
        """The usage of the run and its sub-agents together."""
        return sum_usage((self.usage, *(each.usage for each in self.delegated)))

    @property
    def active_tally(self) -> Tally:
        """The usage since the active role began."""
        now, before = self.tally, self.before
        used = {name: getattr(now, name) - getattr(before, name) for name in Tally.__struct_fields__}
        return Tally(**{**used, "turns": used["turns"] - self.finalized})

    @property
    def tally(self) -> Tally:
        """The usage of the whole run without its sub-agents."""
        tokens, cost = self.usage.tokens, self.usage.cost_usd or 0
        return Tally(
            turns=self.turns, tool_calls=self.tool_calls, tokens=tokens, seconds=self.seconds, cost=cost
        )

    @property
    def pending(self) -> tuple[ToolCall, ...]:
        """Calls of the newest reply that have no result yet, in order."""
        if not self.messages or self.messages[-1].speaker is not Speaker.ASSISTANT:
            return ()
        answered = {answer.call_id for answer in self.answers}
        return tuple(call for call in self.messages[-1].calls if call.id not in answered)
