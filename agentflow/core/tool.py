"""Tools: each has a typed input, an effect, and a plain function."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from agentflow.core.errors import NotAllowed
from agentflow.core.evidence import Execution
from agentflow.core.messages import DEFAULT_ROOM
from agentflow.core.pending import Pending
from agentflow.core.ports import Background, Ledger, Runner, Workspace
from agentflow.core.record import Record
from agentflow.core.role import JudgeTest, Role
from agentflow.core.run import HandOff, Run, SubagentResult


class Effect(StrEnum):
    """The effect that a call can have; READ calls may run side by side."""

    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"


class Subject(StrEnum):
    """The kind of thing that an input of a tool names; rules, path guard and redaction go by it."""

    COMMAND = "command"
    """A command line for a shell."""
    PATH = "path"
    """A file or folder of the repository."""
    ADDRESS = "address"
    """An address of the web."""
    NAME = "name"
    """The name of a sub-agent, of a skill or the like."""
    TEXT = "text"
    """Text that describes a call; no rule applies to it."""
    QUOTE = "quote"
    """A text of the file that the call changes."""


_BY_FIELD: Mapping[str, Subject] = {
    "subagent_type": Subject.NAME,
    "file_path": Subject.PATH,
    "notebook_path": Subject.PATH,
    "command": Subject.COMMAND,
    "pattern": Subject.TEXT,
    "summary": Subject.TEXT,
    "verdict": Subject.TEXT,
    "path": Subject.PATH,
    "url": Subject.ADDRESS,
    "query": Subject.TEXT,
    "skill": Subject.NAME,
}
"""The subject of each public input name, for a tool that does not declare its own."""


class Category(StrEnum):
    """A group of tools; a role's list may name one instead of its tools."""

    FS = "fs"
    SHELL = "shell"
    NET = "net"
    STATE = "state"
    ASK = "ask"
    REPO = "repo"
    AGENT = "agent"
    MCP = "mcp"


class Retention(StrEnum):
    """The part of an old, long result that compaction keeps."""

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
    """The result of a tool call."""

    content: str
    """For the model."""
    changes: dict[str, Any] = {}
    """New values of keys of the task's state."""
    shown: str = ""
    """An image or document for the model, as `ToolResult.shown`."""
    failures: dict[str, str] = {}
    """As `ToolResult.failures`."""
    submitted: bool = False
    execution: Execution | None = None
    clipped: bool = False
    """True when `content` leaves out part of the execution's output."""
    is_error: bool = False
    """The model is told that the call failed."""
    delegated: SubagentResult | None = None
    handoff: HandOff | None = None
    pending: Pending | None = None
    """A sub-agent's pending item: the call has no result yet and is made again after the decision."""


def _refuse_commands(_: str, command: str) -> str:
    """Refuse a command inside a call where nobody can decide about it. Raises NotAllowed."""
    raise NotAllowed(f"nobody can decide about {command} here")


def _refuse_calls(name: str, _: dict[str, Any]) -> None:
    """Refuse a call inside a call where nobody can decide about it. Raises NotAllowed."""
    raise NotAllowed(f"nobody can decide about {name} here")


Mutate = Callable[[str, Callable[[], bool]], str]
"""Tells which lines that the task changed no test notices: of a file or folder, until it is cancelled."""


class TestSelection(Record):
    """Tests by id, by file or folder, or by a part of their names; nothing named means all of them."""

    __test__ = False

    ids: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    pattern: str = ""


class TestsRun(Record):
    """The result of some tests."""

    __test__ = False

    execution: Execution
    summary: str
    failures: Mapping[str, str] = {}
    """What is said of each failing test, by its id: its place and its assertion."""
    remarks: tuple[str, ...] = ()


RunSelected = Callable[[TestSelection, Path, Callable[[], bool]], TestsRun]
"""Runs tests with the repository's own runner, their output going to a file, until it is cancelled."""


TryTest = Callable[[str, str, Path, Callable[[], bool]], tuple[TestsRun, tuple[JudgeTest, ...]]]
"""Runs a new test file, by path and text, on a copy; returns with its run all that were tried so."""


class Shell(Record):
    """The way a tool runs commands and makes other calls."""

    runner: Runner
    outputs: Path
    """Folder for full outputs, one file a call."""
    shown_bytes: int = DEFAULT_ROOM.result_chars
    """Of an output, to the model."""
    shows: tuple[str, ...] = ()
    """The kinds of files that the model sees: `image`, `pdf`."""
    authorize: Callable[[str, str], str] = _refuse_commands
    """Returns a command inside a call, by an id of its own, as rules and hooks let it run, or raises."""
    make: Callable[[str, dict[str, Any]], None] = _refuse_calls
    """Makes another call of the role's, by name and input, like any call; raises ToolError if it fails."""
    mutate: Mutate | None = None
    """None where the files are not the repository's own."""
    background: Background | None = None
    """None where no command may run beside the role."""
    run_tests: RunSelected | None = None
    """None where nothing is known of the repository's tests."""
    try_test: TryTest | None = None
    """None for who judges no change."""
    slow_checkers: set[str] = set()
    """The programs that took too long to look at an edit, for the whole run; they are not asked again."""


ListChanged = Callable[[], Mapping[str, bool]]
"""Returns the files that differ from before the task, each with whether others than hooks changed it."""


class ToolContext(Record):
    """The surroundings that every tool gets beside its input."""

    tools: tuple["Tool", ...]
    """Those of the role."""
    workspace: Workspace
    shell: Shell
    role: Role
    task_id: str
    call_id: str
    run: Run
    ledger: Ledger
    cancelled: Callable[[], bool]
    """True once the run is to stop."""
    changed: ListChanged | None
    """Lists what the task has changed so far; None where that is not tracked."""


class Tool(Record):
    """A tool: its function takes the parsed input and the context."""

    name: str
    category: Category
    effect: Effect
    input: type[Record]
    call: Callable[[Any, ToolContext], Output]
    """Its docstring is what the model reads."""
    schema: dict[str, Any] | None = None
    """The JSON schema of its input, where somebody else wrote it; None follows from the type."""
    subjects: dict[str, Subject] | None = None
    """The subject of each input, the one that describes a call first; None: by the public input names."""
    shows_file: bool = False
    """After a call the model knows the text of the named file, and may change the file."""
    granted: bool = False
    """It comes with a capability, so a role may call it without listing it."""
    reads: Callable[[dict[str, Any]], bool] | None = None
    """Whether a call with this input only reads, for a tool whose effect depends on it."""

    by_provider: bool = False
    """The model's provider runs it; no hook and no rule sees a call beforehand."""

    scope: str = ""
    """What the role may do with it, in words for the model."""
    retention: Retention | None = None
    """None follows from the category."""

    @property
    def effective_retention(self) -> Retention:
        return self.retention or _BY_CATEGORY.get(self.category, Retention.SUMMARIZE_ARCHIVE)

    @property
    def input_subjects(self) -> Mapping[str, Subject]:
        """The subject of each input, as the tool declares or by the public input names."""
        if self.subjects is not None:
            return self.subjects
        return {key: _BY_FIELD[key] for key in _BY_FIELD if key in self.input.__struct_encode_fields__}

    @property
    def rule_subject(self) -> Subject:
        """The subject that a pattern in a role's list is compared with."""
        return next((kind for kind in Subject if kind in self.input_subjects.values()), Subject.TEXT)

    def list_values(self, given: Mapping[str, Any], kind: Subject) -> tuple[str, ...]:
        """Return a call's values for the inputs of a subject; each item of a list counts."""
        sources = list_edits(given) if kind is Subject.QUOTE else [given]
        keys = [key for key, named in self.input_subjects.items() if named is kind]
        found = (each.get(key) for each in sources for key in keys)
        return tuple(text for value in found for text in _texts(value))

    @property
    def may_change(self) -> bool:
        """Whether a call may change a file, or runs a command and so leaves evidence."""
        return self.effect is not Effect.READ and self.category is not Category.STATE

    def is_read_only(self, given: dict[str, Any]) -> bool:
        """Return whether a call may run beside others."""
        return self.effect is Effect.READ if self.reads is None else self.reads(given)

    @property
    def description(self) -> str:
        return " ".join(f"{self.call.__doc__ or ''} {self.scope}".split())


def list_edits(given: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what a call replaces, each as `Edit` is told; the call itself where it lists no edits."""
    listed = given.get("edits")
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else [given]


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Iterable):
        yield from (item for item in value if isinstance(item, str))
