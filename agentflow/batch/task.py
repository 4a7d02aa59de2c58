"""One task of a batch, as the file of tasks describes it."""

from typing import Annotated

from msgspec import Meta, field

from agentflow.core.record import Record

_MAX_TEXT = 100_000
_Id = Annotated[str, Meta(pattern=r"^([A-Za-z0-9_][A-Za-z0-9._-]{0,79})?$")]
_Text = Annotated[str, Meta(min_length=1, max_length=_MAX_TEXT)]
_Dollars = Annotated[float, Meta(ge=0)]
_Number = Annotated[int, Meta(ge=1)]
_Seconds = Annotated[float, Meta(gt=0)]


class HiddenCheck(Record):
    """Decides after the verdict, on a copy that the task never sees, whether the task is resolved."""

    command: _Text
    folder: str = ""
    """A folder beside the file of tasks, whose files are written over the final files."""
    files: dict[str, str] = {}
    """Further such files, as texts by path."""
    patch: str = ""
    """A diff that is applied to the final files."""
    tests: tuple[str, ...] = ()
    """The ids of the tests that have to pass; without any, exit code 0 decides."""
    timeout: _Seconds = 600


class PlannedEdit(Record):
    """A text that is replaced in a file before the task begins, such as to plant a bug."""

    file: _Text
    old: _Text
    new: str


class BatchTask(Record):
    """One task of a batch: where it works, what it is asked, how long it may take and how it is examined."""

    text: _Text
    repository: _Text
    """A git address, the path of a git repository, or a folder without one."""
    id: _Id = ""
    commit: str = ""
    """A commit, branch or tag; empty: the newest commit."""
    edits: tuple[PlannedEdit, ...] = ()
    group: str = ""
    """An evaluation has a score for each group."""
    model: str | None = None
    named_class: str = field(default="", name="class")
    max_iterations: _Number | None = None
    max_cost: _Dollars | None = None
    max_tokens: _Number | None = None
    timeout: _Seconds | None = None
    review: bool | None = None
    environment: str = ""
    """A Python environment that the commands of the task use; empty: that of the repository."""
    check: HiddenCheck | None = None
