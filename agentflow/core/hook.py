"""Hooks: what each may answer at its point, and what they decide together."""

from collections.abc import Awaitable, Callable, Mapping
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from agentflow.core import points
from agentflow.core.messages import Reply, Request
from agentflow.core.points import HookEvent, Point
from agentflow.core.record import Record


class Decision(IntEnum):
    """What hooks decide together is the highest of what each decides."""

    NONE = 0
    ALLOW = 1
    ASK = 2
    DENY = 3


class Remark(Record):
    """The answer at points that change nothing; `halt` ends the task, `notice` is for the person."""

    halt: str | None = None
    notice: str | None = None


class ContextResult(Record):
    """The answer where text for the model may be added."""

    context: str | None = None
    halt: str | None = None
    notice: str | None = None


class StopResult(Record):
    """The answer as a turn begins or ends: `stop` is why the run ends here."""

    stop: str | None = None
    halt: str | None = None
    notice: str | None = None


class BlockResult(Record):
    """The answer where something may be kept from happening: `block` is the reason."""

    block: str | None = None
    context: str | None = None
    halt: str | None = None
    notice: str | None = None


class BailResult(Record):
    """The answer when a sub-agent stops; `bail` is taken as its result."""

    block: str | None = None
    bail: str | None = None
    context: str | None = None
    halt: str | None = None
    notice: str | None = None


class CallResult(Record):
    """The answer before a tool call."""

    decision: Decision = Decision.NONE
    reason: str | None = None
    updated_input: dict[str, Any] | None = None
    """The whole new input."""
    context: str | None = None
    halt: str | None = None
    notice: str | None = None


class PermissionResult(Record):
    """The answer in place of the person who would be asked."""

    decision: Decision = Decision.NONE
    reason: str | None = None
    updated_input: dict[str, Any] | None = None
    halt: str | None = None
    notice: str | None = None


class OutputResult(Record):
    """The answer after a tool call; what it did cannot be undone, only described otherwise."""

    updated_output: str | None = None
    context: str | None = None
    halt: str | None = None
    notice: str | None = None


class RequestResult(Record):
    """The answer before a request to the model."""

    request: Request | None = None
    block: str | None = None
    halt: str | None = None
    notice: str | None = None


class ReplyResult(Record):
    """The answer after a reply of the model."""

    reply: Reply | None = None
    block: str | None = None
    halt: str | None = None
    notice: str | None = None


HookResult = (
    Remark
    | ContextResult
    | StopResult
    | BlockResult
    | BailResult
    | CallResult
    | PermissionResult
    | OutputResult
    | RequestResult
    | ReplyResult
)


class Terms(NamedTuple):
    """What is told at a point, and what may be answered."""

    payload: type[Record]
    result: type[HookResult]


TERMS: Mapping[Point, Terms] = MappingProxyType(
    {
        Point.SESSION_START: Terms(points.SessionStarted, ContextResult),
        Point.SESSION_END: Terms(points.SessionEnded, Remark),
        Point.USER_PROMPT_SUBMIT: Terms(points.Prompt, BlockResult),
        Point.PRE_TOOL_USE: Terms(points.ToolUse, CallResult),
        Point.PERMISSION_REQUEST: Terms(points.ToolUse, PermissionResult),
        Point.POST_TOOL_USE: Terms(points.ToolDone, OutputResult),
        Point.POST_TOOL_USE_FAILURE: Terms(points.ToolFailed, OutputResult),
        Point.SUBAGENT_START: Terms(points.SubagentStarted, ContextResult),
        Point.SUBAGENT_STOP: Terms(points.SubagentStopped, BailResult),
        Point.TASK_COMPLETED: Terms(points.PhasePassing, BlockResult),
        Point.PRE_COMPACT: Terms(points.Compaction, BlockResult),
        Point.POST_COMPACT: Terms(points.Compaction, Remark),
        Point.STOP: Terms(points.Stopped, BlockResult),
        Point.STOP_FAILURE: Terms(points.Failed, Remark),
        Point.NOTIFICATION: Terms(points.Notified, Remark),
        Point.RUN_START: Terms(points.Briefed, ContextResult),
        Point.RUN_END: Terms(points.Concluded, ContextResult),
        Point.TURN_START: Terms(points.Turn, StopResult),
        Point.TURN_END: Terms(points.Turn, StopResult),
        Point.MODEL_REQUEST: Terms(points.Asking, RequestResult),
        Point.MODEL_RESPONSE: Terms(points.Answered, ReplyResult),
        Point.ERROR: Terms(points.Failed, Remark),
    }
)


class Origin(IntEnum):
    """Whose hook it is; among equal priorities in this order."""

    BUILT_IN = 0
    PLUGIN = 1
    USER = 2
    PROJECT = 3


class OnError(StrEnum):
    """What a hook that cannot do its work means; without one the point decides."""

    OPEN = "open"
    CLOSED = "closed"


class Script(Record):
    """A hook whose body is a process."""

    command: str
    args: tuple[str, ...] | None = None
    """Present: `command` is run without a shell."""
    shell: str = "sh"
    timeout: float | None = None
    """Seconds; None is the default of the point."""
    condition: str | None = None
    """A permission rule; the script runs for the calls it is about."""
    plugin: str | None = None
    """Folder that CLAUDE_PLUGIN_ROOT names."""
    sealed: tuple[tuple[str, str], ...] = ()
    """Files of the repository that it names, with the hash of what was trusted; empty for none."""


Function = Callable[[HookEvent], HookResult | Awaitable[HookResult | None] | None]


class Hook(Record):
    """Something that is asked at a point."""

    name: str
    """How it is named to people."""
    point: Point
    body: Function | Script
    matcher: str = ""
    priority: int = 0
    """Higher ones come first."""
    origin: Origin = Origin.BUILT_IN
    on_error: OnError | None = None


class HookDecision(Record):
    """What the hooks of a point decide together."""

    decision: Decision = Decision.NONE
    reasons: tuple[str, ...] = ()
    """Of those whose decision holds."""
    contexts: tuple[str, ...] = ()
    """Texts for the model."""
    updated_input: dict[str, Any] | None = None
    updated_output: str | None = None
    request: Request | None = None
    reply: Reply | None = None
    bail: str | None = None
    stop: str | None = None
    """Why the run ends; like `halt`, the first hook that says so is kept."""
    halt: str | None = None
    """Why the whole task ends; the first hook that says so is kept."""
    notices: tuple[str, ...] = ()
    """For the person; safe to print."""

    @property
    def reason(self) -> str:
        return "\n".join(self.reasons)

    @property
    def context(self) -> str:
        return "\n\n".join(self.contexts)


NOTHING = HookDecision()
"""What no hook decides; shared, so that a point without hooks costs nothing."""
