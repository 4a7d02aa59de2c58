"""Hook points: what a hook is told at each, and what it may answer."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from agentflow.core.messages import Reply, Request
from agentflow.core.ports import Watch
from agentflow.core.record import Record
from agentflow.core.task import Phase
from agentflow.core.tool import Tool


class Point(StrEnum):
    """Where a hook can stand, by the public name; those after `Notification` take functions only."""

    SESSION_START = "SessionStart"
    SESSION_END = "SessionEnd"
    USER_PROMPT_SUBMIT = "UserPromptSubmit"
    PRE_TOOL_USE = "PreToolUse"
    PERMISSION_REQUEST = "PermissionRequest"
    POST_TOOL_USE = "PostToolUse"
    POST_TOOL_USE_FAILURE = "PostToolUseFailure"
    SUBAGENT_START = "SubagentStart"
    SUBAGENT_STOP = "SubagentStop"
    TASK_COMPLETED = "TaskCompleted"
    PRE_COMPACT = "PreCompact"
    POST_COMPACT = "PostCompact"
    STOP = "Stop"
    STOP_FAILURE = "StopFailure"
    NOTIFICATION = "Notification"
    RUN_START = "RunStart"
    RUN_END = "RunEnd"
    TURN_START = "TurnStart"
    TURN_END = "TurnEnd"
    MODEL_REQUEST = "ModelRequest"
    MODEL_RESPONSE = "ModelResponse"
    ERROR = "Error"


class Actor(Record):
    """Who acts: a role, or the program itself."""

    name: str = "agentflow"
    depth: int = 0
    """0 for a role of the pipeline, one more for each level of sub-agents."""


class Scene(Record):
    """Where in a task something happens."""

    task_id: str
    cwd: Path
    """The repository."""
    transcript: Path
    """The file of the run, or the task's events."""
    outputs: Path
    """Folder for texts that are too long to be passed on."""
    phase: Phase
    iteration: int
    actor: Actor = Actor()
    tool: Tool | None = None
    """The tool of a call, at the points of calls."""
    watch: Watch | None = None
    """Told when scripts run, so that their changes are known; None where nobody watches."""


class SessionStarted(Record):
    source: str
    """`startup` or `resume`."""
    model: str


class SessionEnded(Record):
    reason: str


class Prompt(Record):
    prompt: str


class ToolUse(Record):
    """A call before it is made, or before a person is asked about it."""

    tool_name: str
    tool_input: dict[str, Any]
    tool_use_id: str


class ToolDone(Record):
    tool_name: str
    tool_input: dict[str, Any]
    tool_use_id: str
    tool_response: str
    """What the model will see."""


class ToolFailed(Record):
    tool_name: str
    tool_input: dict[str, Any]
    tool_use_id: str
    error: str
    """What the model will see."""


class SubagentStarted(Record):
    agent_id: str
    agent_type: str


class SubagentStopped(Record):
    agent_id: str
    agent_type: str
    last_assistant_message: str
    stop_hook_active: bool = False


class PhasePassing(Record):
    """A phase is about to pass its gate."""

    task_subject: str
    task_description: str


class Compacting(Record):
    trigger: str
    """`manual` or `auto`."""
    custom_instructions: str = ""


class CompactionDone(Record):
    trigger: str
    compact_summary: str
    """The summary in place of older messages; empty where only outputs were archived."""


class Stopped(Record):
    last_assistant_message: str
    stop_hook_active: bool = False
    """A hook has kept this task from stopping before."""


class Failed(Record):
    error: str


class Notified(Record):
    message: str
    notification_type: str


class Briefed(Record):
    brief: str


class Concluded(Record):
    outcome: str


class TurnPayload(Record):
    turn: int


class RequestPayload(Record):
    request: Request


class ReplyPayload(Record):
    reply: Reply


Payload = (
    SessionStarted
    | SessionEnded
    | Prompt
    | ToolUse
    | ToolDone
    | ToolFailed
    | SubagentStarted
    | SubagentStopped
    | PhasePassing
    | Compacting
    | CompactionDone
    | Stopped
    | Failed
    | Notified
    | Briefed
    | Concluded
    | TurnPayload
    | RequestPayload
    | ReplyPayload
)
"""What an event says beside its scene; the field names are public."""


class HookEvent(Record):
    """What a hook is told."""

    point: Point
    scene: Scene
    payload: Payload


class PointRules(Record):
    """What counts at a hook point."""

    payload: type[Record]
    answers: tuple[str, ...] = ()
    """The fields of a `HookResult` that a hook may set, beside those of every point."""
    changes: str = ""
    """The field of an answer that changes the payload, if any."""
    changed: str = ""
    """The field of the payload that it changes."""
    matched: str = ""
    """The field of the payload that a matcher is compared with; empty: every event matches."""
    is_guarded: bool = False
    """A hook that cannot do its work blocks."""
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
    def legal(self) -> frozenset[str]:
        """All fields that may be answered; every hook can end the task and tell the person something."""
        return frozenset((*self.answers, "halt", "notice"))


_CALL = ("decision", "reason", "updated_input")
POINTS: Mapping[Point, PointRules] = {
    Point.SESSION_START: PointRules(
        payload=SessionStarted, answers=("context",), matched="source", takes_text=True
    ),
    Point.SESSION_END: PointRules(payload=SessionEnded, matched="reason", timeout=1.5),
    Point.USER_PROMPT_SUBMIT: PointRules(
        payload=Prompt, answers=("block", "context"), takes_text=True, timeout=30.0
    ),
    Point.PRE_TOOL_USE: PointRules(
        payload=ToolUse,
        answers=(*_CALL, "context"),
        changes="updated_input",
        changed="tool_input",
        matched="tool_name",
        is_guarded=True,
    ),
    Point.PERMISSION_REQUEST: PointRules(
        payload=ToolUse,
        answers=_CALL,
        changes="updated_input",
        changed="tool_input",
        matched="tool_name",
        is_guarded=True,
    ),
    Point.POST_TOOL_USE: PointRules(
        payload=ToolDone,
        answers=("updated_output", "context"),
        changes="updated_output",
        changed="tool_response",
        matched="tool_name",
    ),
    Point.POST_TOOL_USE_FAILURE: PointRules(
        payload=ToolFailed,
        answers=("updated_output", "context"),
        changes="updated_output",
        changed="error",
        matched="tool_name",
    ),
    Point.SUBAGENT_START: PointRules(payload=SubagentStarted, answers=("context",), matched="agent_type"),
    Point.SUBAGENT_STOP: PointRules(
        payload=SubagentStopped, answers=("block", "bail", "context"), matched="agent_type", is_guarded=True
    ),
    Point.TASK_COMPLETED: PointRules(payload=PhasePassing, answers=("block", "context"), is_guarded=True),
    Point.PRE_COMPACT: PointRules(payload=Compacting, answers=("block", "context"), matched="trigger"),
    Point.POST_COMPACT: PointRules(payload=CompactionDone, matched="trigger"),
    Point.STOP: PointRules(payload=Stopped, answers=("block", "context"), is_guarded=True),
    Point.STOP_FAILURE: PointRules(payload=Failed, matched="error"),
    Point.NOTIFICATION: PointRules(payload=Notified, matched="notification_type"),
    Point.RUN_START: PointRules(payload=Briefed, answers=("context",), takes_scripts=False),
    Point.RUN_END: PointRules(payload=Concluded, answers=("context",), takes_scripts=False),
    Point.TURN_START: PointRules(payload=TurnPayload, answers=("stop",), takes_scripts=False),
    Point.TURN_END: PointRules(payload=TurnPayload, answers=("stop",), takes_scripts=False),
    Point.MODEL_REQUEST: PointRules(
        payload=RequestPayload,
        answers=("request", "block"),
        changes="request",
        changed="request",
        takes_scripts=False,
    ),
    Point.MODEL_RESPONSE: PointRules(
        payload=ReplyPayload,
        answers=("reply", "block"),
        changes="reply",
        changed="reply",
        takes_scripts=False,
    ),
    Point.ERROR: PointRules(payload=Failed, takes_scripts=False),
}
"""What a hook point is: the only place that says so."""
