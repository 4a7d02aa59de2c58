"""Hook points, and the event that a hook receives at each; `hook.py` has the rules for its answers."""

import re
from enum import StrEnum
from pathlib import Path
from typing import Any

from agentflow.core.messages import Reply, Request
from agentflow.core.ports import Runner, Watch
from agentflow.core.record import Record, map_texts
from agentflow.core.task import Phase
from agentflow.core.tool import Tool


class Point(StrEnum):
    """The public names of the points where hooks run; those after `Notification` take functions only."""

    SESSION_START = "SessionStart"
    SESSION_END = "SessionEnd"
    INSTRUCTIONS_LOADED = "InstructionsLoaded"
    USER_PROMPT_SUBMIT = "UserPromptSubmit"
    USER_PROMPT_EXPANSION = "UserPromptExpansion"
    PRE_TOOL_USE = "PreToolUse"
    PERMISSION_REQUEST = "PermissionRequest"
    PERMISSION_DENIED = "PermissionDenied"
    POST_TOOL_USE = "PostToolUse"
    POST_TOOL_USE_FAILURE = "PostToolUseFailure"
    POST_TOOL_BATCH = "PostToolBatch"
    SUBAGENT_START = "SubagentStart"
    SUBAGENT_STOP = "SubagentStop"
    TASK_CREATED = "TaskCreated"
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
    """A role, or the program itself."""

    name: str = "agentflow"
    depth: int = 0
    """0 for a role of the pipeline, one more for each level of sub-agents."""


class Scene(Record):
    """The place in a task where something happens."""

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
    """Learns when scripts run, so that it can tell their changes apart; None where nobody watches."""
    runner: Runner | None = None
    """Runs the scripts that ask for a sandbox; None where there is none."""
    repository: Path | None = None
    """The repository that `cwd` is a copy of; None where it is the repository itself."""

    @property
    def root(self) -> Path:
        """The repository, by which rules name files."""
        return self.repository or self.cwd

    def to_repository(self, value: Any) -> Any:
        """Return a value whose texts name the repository where they named its copy."""
        if self.repository is None:
            return value
        return map_texts(value, lambda text: text.replace(str(self.cwd), str(self.repository)))

    def to_copy(self, value: Any) -> Any:
        """Return a value whose texts name the copy where they named the repository."""
        if self.repository is None:
            return value
        named = re.compile(rf"{re.escape(str(self.repository))}(?![\w.-])")
        return map_texts(self.to_repository(value), lambda text: named.sub(lambda _: str(self.cwd), text))


class SessionStarted(Record):
    source: str
    """`startup` or `resume`."""
    model: str


class SessionEnded(Record):
    reason: str


class InstructionsRead(Record):
    """A file of instructions that roles are given."""

    file_path: str
    memory_type: str
    """`Project`, or `Local` for a file that is the user's own."""
    load_reason: str
    """`session_start`; `nested_traversal` for a folder's, `path_glob_match` for a rule about some files."""


class Prompt(Record):
    prompt: str


class CommandCalled(Record):
    """A command that was called by its name, before it becomes a text."""

    command_name: str
    command_args: str
    command_source: str
    """`user`, `project` or `plugin`."""
    prompt: str
    """The line that the person typed."""
    expansion_type: str = "slash_command"


class ToolUse(Record):
    """A call before it is made."""

    tool_name: str
    tool_input: dict[str, Any]
    tool_use_id: str


class PermissionAsked(Record):
    """A call before a person is asked about it."""

    tool_name: str
    tool_input: dict[str, Any]
    tool_use_id: str
    permission_suggestions: tuple[str, ...] = ()
    """Always empty: rules are not made by hooks."""


class CallDenied(Record):
    """A call that a list, a rule, a hook or a person did not allow."""

    tool_name: str
    tool_input: dict[str, Any]
    tool_use_id: str
    reason: str


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


class BatchCall(Record):
    """A call of a batch, with its result."""

    tool_name: str
    tool_input: dict[str, Any]
    tool_use_id: str
    tool_response: str


class BatchDone(Record):
    """All calls of a reply have their results."""

    tool_calls: tuple[BatchCall, ...]


class SubagentStarted(Record):
    agent_id: str
    agent_type: str


class SubagentStopped(Record):
    agent_id: str
    agent_type: str
    last_assistant_message: str
    agent_transcript_path: str = ""
    stop_hook_active: bool = False


class PhaseWork(Record):
    """The work of a role in a phase, before it begins or before its result counts."""

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
    background_tasks: tuple[str, ...] = ()
    """Always empty: nothing runs on when a task ends."""
    session_crons: tuple[str, ...] = ()
    """Always empty as well."""


class Failed(Record):
    error: str


class StopFailed(Record):
    """The model gave no usable reply, so that the task ends or waits."""

    error: str
    """`server_error`, `invalid_request` or `rate_limit`."""
    error_details: str


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


class HookEvent(Record):
    """One event, as a hook receives it."""

    point: Point
    scene: Scene
    payload: Record
    """The part that depends on the point, of the type that `POINTS` names; its field names are public."""
