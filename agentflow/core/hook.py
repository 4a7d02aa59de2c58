"""Hooks: what each may answer at its point, and what they decide together."""

from collections.abc import Awaitable, Callable, Mapping
from enum import IntEnum, StrEnum
from typing import Any

from agentflow.core.messages import Reply, Request
from agentflow.core.points import HookEvent, Point
from agentflow.core.record import Record


class Decision(IntEnum):
    """What hooks decide together is the highest of what each decides."""

    NONE = 0
    ALLOW = 1
    ASK = 2
    DENY = 3


class HookResult(Record):
    """What one hook answers; `LEGAL` says which of it means something at a point."""

    decision: Decision = Decision.NONE
    reason: str | None = None
    block: str | None = None
    """Why something is kept from happening."""
    bail: str | None = None
    """Taken as the result of the sub-agent that stops."""
    stop: str | None = None
    """Why the run ends here."""
    updated_input: dict[str, Any] | None = None
    """The whole new input."""
    updated_output: str | None = None
    """What a call did cannot be undone, only described otherwise."""
    request: Request | None = None
    reply: Reply | None = None
    context: str | None = None
    """A text for the model."""
    halt: str | None = None
    """Why the whole task ends."""
    notice: str | None = None
    """For the person."""


_CALL = ("decision", "reason", "updated_input")
_FIELDS: Mapping[Point, tuple[str, ...]] = {
    Point.SESSION_START: ("context",),
    Point.USER_PROMPT_SUBMIT: ("block", "context"),
    Point.PRE_TOOL_USE: (*_CALL, "context"),
    Point.PERMISSION_REQUEST: _CALL,
    Point.POST_TOOL_USE: ("updated_output", "context"),
    Point.POST_TOOL_USE_FAILURE: ("updated_output", "context"),
    Point.SUBAGENT_START: ("context",),
    Point.SUBAGENT_STOP: ("block", "bail", "context"),
    Point.TASK_COMPLETED: ("block", "context"),
    Point.PRE_COMPACT: ("block", "context"),
    Point.STOP: ("block", "context"),
    Point.RUN_START: ("context",),
    Point.RUN_END: ("context",),
    Point.TURN_START: ("stop",),
    Point.TURN_END: ("stop",),
    Point.MODEL_REQUEST: ("request", "block"),
    Point.MODEL_RESPONSE: ("reply", "block"),
}
LEGAL: Mapping[Point, frozenset[str]] = {
    point: frozenset((*_FIELDS.get(point, ()), "halt", "notice")) for point in Point
}
"""The fields that may be answered at each point; at all of them the task can be ended, the person told."""


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
    """Files of the repository that it may run or read, with the hash of what was trusted; empty for none."""
    written: tuple[str, ...] = ()
    """Files of the repository that it names and only writes."""


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
    deciders: tuple[str, ...] = ()
    """The names of the hooks that gave them."""
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
