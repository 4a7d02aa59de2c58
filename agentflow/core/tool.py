"""What a tool is: a typed input, an effect, and a plain function."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from agentflow.core.evidence import Execution
from agentflow.core.messages import DEFAULT_ROOM
from agentflow.core.pending import Pending
from agentflow.core.ports import Ledger, Runner, Workspace
from agentflow.core.record import Record
from agentflow.core.role import Role
from agentflow.core.run import Delegated, HandOff, Run


class Effect(StrEnum):
    """What a call can do; READ calls may run side by side."""

    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"


class Category(StrEnum):
    """What a tool is about; a role's list may name one for all of its tools."""

    FS = "fs"
    SHELL = "shell"
    NET = "net"
    STATE = "state"
    ASK = "ask"
    REPO = "repo"
    AGENT = "agent"


class Retention(StrEnum):
    """What is left of an old heavy result in a conversation that is compacted."""

    KEEP_FULL = "keep_full"
    KEEP_STRUCTURED = "keep_structured"
    """A marker with its first and its last line, such as exit code and evidence."""
    SUMMARIZE_ARCHIVE = "summarize_archive"
    """A marker with its first line."""
    DROP = "drop"
    """A marker, and no copy: the call can be made again."""


_BY_CATEGORY = {
    Category.STATE: Retention.KEEP_FULL,
    Category.ASK: Retention.KEEP_FULL,
    Category.SHELL: Retention.KEEP_STRUCTURED,
}


class Output(Record):
    """What a tool call gives back."""

    content: str
    """For the model."""
    changes: dict[str, Any] = {}
    """New values of keys of the task's state."""
    submitted: bool = False
    execution: Execution | None = None
    clipped: bool = False
    """True when `content` leaves out part of the execution's output."""
    is_error: bool = False
    """It came to an end that the model has to be told of as a failure."""
    delegated: Delegated | None = None
    handoff: HandOff | None = None
    pending: Pending | None = None
    """What a sub-agent waits for: the call has no result yet, and is made again once that is decided."""


class Shell(Record):
    """How a tool runs commands."""

    runner: Runner
    outputs: Path
    """Folder for full outputs, one file a call."""
    shown_bytes: int = DEFAULT_ROOM.result_chars
    """Of an output, to the model."""


Changed = Callable[[], Mapping[str, bool]]
"""Returns the files that differ from before the task, each with whether others than hooks changed it."""


class ToolContext(Record):
    """What every tool gets beside its input; the same for all, nothing optional."""

    workspace: Workspace
    shell: Shell
    role: Role
    task_id: str
    call_id: str
    run: Run
    ledger: Ledger
    cancelled: Callable[[], bool]
    """True once the run is to stop."""
    changed: Changed | None
    """Looks at what the task has changed so far; None where nobody keeps that in view."""


class Tool(Record):
    """A tool: its function takes the parsed input and the context."""

    name: str
    category: Category
    effect: Effect
    input: type[Record]
    call: Callable[[Any, ToolContext], Output]
    """Its docstring is what the model reads."""
    granted: bool = False
    """Comes with a capability: whoever is offered it may call it, whatever the role's list says."""
    reads: Callable[[dict[str, Any]], bool] | None = None
    """Whether a call with this input only reads, for a tool whose effect depends on it."""

    by_provider: bool = False
    """The model's provider runs it, so that no hook and no rule sees a call before it is made."""

    scope: str = ""
    """What the role may do with it, for the model."""
    retention: Retention | None = None
    """None follows from the category."""

    @property
    def kept_as(self) -> Retention:
        return self.retention or _BY_CATEGORY.get(self.category, Retention.SUMMARIZE_ARCHIVE)

    def only_reads(self, given: dict[str, Any]) -> bool:
        """Return whether a call may run beside others."""
        return self.effect is Effect.READ if self.reads is None else self.reads(given)

    @property
    def description(self) -> str:
        return " ".join(f"{self.call.__doc__ or ''} {self.scope}".split())
