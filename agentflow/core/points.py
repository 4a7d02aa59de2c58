"""The points of a task's life, and what is told at each; answers and hooks are in `hook.py`."""

from enum import StrEnum
from pathlib import Path
from typing import Any

from agentflow.core.messages import Reply, Request
from agentflow.core.ports import Watch
from agentflow.core.record import Record
from agentflow.core.task import Phase

RULES = "permission rules"
"""The hook that holds the user's rules."""


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


GUARDED = frozenset(
    {Point.PRE_TOOL_USE, Point.PERMISSION_REQUEST, Point.STOP, Point.SUBAGENT_STOP, Point.TASK_COMPLETED}
)
"""Where a hook that cannot do its work blocks."""


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
    watch: Watch | None = None
    """Told when scripts run, where anybody is to know what they change."""


class SessionStarted(Record):
    source: str
    """`startup` or `resume`."""
    model: str


class SessionEnded(Record):
    reason: str


class Prompt(Record):
    prompt: str


class ToolUse(Record):
    """A call that is about to be made, or about to be asked for."""

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
    """What the model is told in place of older messages; empty where only outputs were archived."""


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


class Turn(Record):
    turn: int


class Asking(Record):
    request: Request


class Answered(Record):
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
    | Turn
    | Asking
    | Answered
)
"""What an event says beside its scene; the fields have the public names."""


class HookEvent(Record):
    """What a hook is told."""

    point: Point
    scene: Scene
    payload: Payload
