"""Hooks: their answers, the rules of each hook point, and the joint decision of all hooks there."""

from collections.abc import Awaitable, Callable, Mapping
from enum import IntEnum, StrEnum
from typing import Any

from agentflow.core import points
from agentflow.core.messages import Reply, Request
from agentflow.core.points import HookEvent, Point
from agentflow.core.record import Record

RULES = "permission rules"
"""The hook that holds the user's rules."""


class Decision(IntEnum):
    """A hook's decision; of several hooks the highest counts."""

    NONE = 0
    ALLOW = 1
    ASK = 2
    DENY = 3


class HookResult(Record):
    """The answer of one hook; `POINTS` lists the fields that a point accepts."""

    decision: Decision = Decision.NONE
    reason: str | None = None
    block: str | None = None
    """Why something must not happen."""
    bail: str | None = None
    """The result of the stopping sub-agent, in place of its own."""
    stop: str | None = None
    """Why the run ends here."""
    updated_input: dict[str, Any] | None = None
    """The whole new input."""
    updated_output: str | None = None
    """The result that the model sees instead."""
    request: Request | None = None
    reply: Reply | None = None
    context: str | None = None
    """A text for the model."""
    halt: str | None = None
    """Why the whole task ends."""
    notice: str | None = None
    """For the person."""
    terminal: str | None = None
    """A bell, title or notification for the person's terminal."""


class Origin(IntEnum):
    """The source of a hook; at equal priority they run in this order."""

    BUILT_IN = 0
    PLUGIN = 1
    USER = 2
    PROJECT = 3


class OnError(StrEnum):
    """The effect of a failing hook: it lets things go on or blocks; None: the point decides."""

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
    sandbox: bool = False
    """It runs with the rights of a role that only reads, or not at all."""
    plugin: str | None = None
    """Folder that CLAUDE_PLUGIN_ROOT names."""
    sealed: tuple[tuple[str, str], ...] = ()
    """Files of the repository that it may run or read, each with the hash that was trusted."""
    written: tuple[str, ...] = ()
    """Files of the repository that it only writes."""


HookFunction = Callable[[HookEvent], HookResult | Awaitable[HookResult | None] | None]


class Hook(Record):
    """A function or script that runs at a hook point."""

    name: str
    """Its name for people."""
    point: Point
    body: HookFunction | Script
    matcher: str = ""
    priority: int = 0
    """Higher ones come first."""
    origin: Origin = Origin.BUILT_IN
    on_error: OnError | None = None
    source: str = ""
    """The file it was read from."""
    scope: str = ""
    """The role or skill whose frontmatter holds it; it runs only while that is active."""
    once: bool = False
    """It runs once in each run."""


class HookDecision(Record):
    """The joint decision of all hooks of a point."""

    decision: Decision = Decision.NONE
    reasons: tuple[str, ...] = ()
    """The reasons of the hooks whose decision counts."""
    deciders: tuple[str, ...] = ()
    """The names of those hooks."""
    contexts: tuple[str, ...] = ()
    """Texts for the model."""
    updated_input: dict[str, Any] | None = None
    updated_output: str | None = None
    request: Request | None = None
    reply: Reply | None = None
    bail: str | None = None
    stop: str | None = None
    """Why the run ends, from the first hook that says so."""
    halt: str | None = None
    """Why the whole task ends, from the first hook that says so."""
    notices: tuple[str, ...] = ()
    """For the person; safe to print."""
    signals: tuple[str, ...] = ()
    """Bells, titles and notifications for the person's terminal."""

    @property
    def reason(self) -> str:
        return "\n".join(self.reasons)

    @property
    def context(self) -> str:
        return "\n\n".join(self.contexts)


NO_DECISION = HookDecision()
"""The decision where there is no hook."""


class PointRules(Record):
    payload: type[Record]
    when: str = ""
    """When it is fired, as the rest of a sentence."""
    answers: tuple[str, ...] = ()
    """The fields of a `HookResult` that a hook may set, beside those of every point."""
    changes: str = ""
    """The field of an answer that changes the payload, if any."""
    changed: str = ""
    """The field of the payload that it changes."""
    matched: str = ""
    """The field of the payload that a matcher is compared with; empty: every event matches."""
    takes_scripts: bool = True
    """False: only functions stand there."""
    takes_text: bool = False
    """Plain text that a script prints is context for the model."""
    timeout: float = 600.0
    """Seconds that a script may take, unless its entry says otherwise."""

    @property
    def is_about_tool(self) -> bool:
        return self.matched == "tool_name"

    @property
    def can_block(self) -> bool:
        """Return whether a hook can keep something from happening."""
        return not {"block", "decision"}.isdisjoint(self.answers)

    @property
    def is_guarded(self) -> bool:
        """Return whether a failing hook blocks; it does wherever a script can block."""
        return self.can_block and self.takes_scripts

    @property
    def legal(self) -> frozenset[str]:
        """All fields that may be answered; every hook can end the task and tell the person something."""
        return frozenset((*self.answers, "halt", "notice", "terminal"))


_CALL = ("decision", "reason", "updated_input")
POINTS: Mapping[Point, PointRules] = {
    Point.SESSION_START: PointRules(
        payload=points.SessionStarted,
        when="when work on a task begins or continues",
        answers=("context",),
        matched="source",
        takes_text=True,
    ),
    Point.SESSION_END: PointRules(
        payload=points.SessionEnded,
        when="when this process ends its work on a task",
        matched="reason",
        timeout=1.5,
    ),
    Point.INSTRUCTIONS_LOADED: PointRules(
        payload=points.InstructionsRead,
        when="once for each file of instructions that roles get",
        matched="load_reason",
    ),
    Point.USER_PROMPT_SUBMIT: PointRules(
        payload=points.Prompt,
        when="with the text of a new task, before anything else happens",
        answers=("block", "context"),
        takes_text=True,
        timeout=30.0,
    ),
    Point.USER_PROMPT_EXPANSION: PointRules(
        payload=points.CommandCalled,
        when="when a command is called as /name, before it becomes the text of a task",
        answers=("block", "context"),
        matched="command_name",
        takes_text=True,
        timeout=30.0,
    ),
    Point.PRE_TOOL_USE: PointRules(
        payload=points.ToolUse,
        when="before a tool call",
        answers=(*_CALL, "context"),
        changes="updated_input",
        changed="tool_input",
        matched="tool_name",
    ),
    Point.PERMISSION_REQUEST: PointRules(
        payload=points.PermissionAsked,
        when="before a person is asked about a call",
        answers=_CALL,
        changes="updated_input",
        changed="tool_input",
        matched="tool_name",
    ),
    Point.PERMISSION_DENIED: PointRules(
        payload=points.CallDenied,
        when="after a list, a rule, a hook or a person denied a call",
        answers=("context",),
        matched="tool_name",
    ),
    Point.POST_TOOL_USE: PointRules(
        payload=points.ToolDone,
        when="after a call",
        answers=("updated_output", "context"),
        changes="updated_output",
        changed="tool_response",
        matched="tool_name",
    ),
    Point.POST_TOOL_USE_FAILURE: PointRules(
        payload=points.ToolFailed,
        when="after a call that failed",
        answers=("updated_output", "context"),
        changes="updated_output",
        changed="error",
        matched="tool_name",
    ),
    Point.POST_TOOL_BATCH: PointRules(
        payload=points.BatchDone, when="after all calls of one reply", answers=("block", "context")
    ),
    Point.SUBAGENT_START: PointRules(
        payload=points.SubagentStarted,
        when="when a sub-agent begins",
        answers=("context",),
        matched="agent_type",
    ),
    Point.SUBAGENT_STOP: PointRules(
        payload=points.SubagentStopped,
        when="when a sub-agent has its answer",
        answers=("block", "bail", "context"),
        matched="agent_type",
    ),
    Point.TASK_CREATED: PointRules(
        payload=points.PhaseWork, when="before a role gets the work of a phase", answers=("block",)
    ),
    Point.TASK_COMPLETED: PointRules(
        payload=points.PhaseWork,
        when="when a role submits the result of a phase, before it counts",
        answers=("block", "context"),
    ),
    Point.PRE_COMPACT: PointRules(
        payload=points.Compacting,
        when="before a conversation is compacted",
        answers=("block", "context"),
        matched="trigger",
    ),
    Point.POST_COMPACT: PointRules(
        payload=points.CompactionDone, when="after a conversation was compacted", matched="trigger"
    ),
    Point.STOP: PointRules(
        payload=points.Stopped,
        when="after a change was verified, before the task ends",
        answers=("block", "context"),
    ),
    Point.STOP_FAILURE: PointRules(
        payload=points.StopFailed,
        when="when the model gives no usable reply and the task ends or waits",
        matched="error",
    ),
    Point.NOTIFICATION: PointRules(
        payload=points.Notified,
        when="when the task waits for a person, and when it has ended",
        matched="notification_type",
    ),
    Point.RUN_START: PointRules(
        payload=points.Briefed, when="when a run of a role begins", answers=("context",), takes_scripts=False
    ),
    Point.RUN_END: PointRules(
        payload=points.Concluded, when="when a run of a role ends", answers=("context",), takes_scripts=False
    ),
    Point.TURN_START: PointRules(
        payload=points.TurnPayload, when="before each turn of a run", answers=("stop",), takes_scripts=False
    ),
    Point.TURN_END: PointRules(
        payload=points.TurnPayload, when="after each turn of a run", answers=("stop",), takes_scripts=False
    ),
    Point.MODEL_REQUEST: PointRules(
        payload=points.RequestPayload,
        when="before a request is sent to the model",
        answers=("request", "block"),
        changes="request",
        changed="request",
        takes_scripts=False,
    ),
    Point.MODEL_RESPONSE: PointRules(
        payload=points.ReplyPayload,
        when="after a reply, before anything in it counts",
        answers=("reply", "block"),
        changes="reply",
        changed="reply",
        takes_scripts=False,
    ),
    Point.ERROR: PointRules(
        payload=points.Failed, when="after the last try of a request failed", takes_scripts=False
    ),
}
"""The rules of all points; no other place holds them."""
NEVER_FIRED = (
    *("ConfigChange", "CwdChanged", "DirectoryAdded", "Elicitation", "ElicitationResult", "FileChanged"),
    *("MessageDisplay", "Setup", "TeammateIdle", "WorktreeCreate", "WorktreeRemove"),
)
"""Public events that never happen here; a hook at one of them is named wherever hooks are read."""
