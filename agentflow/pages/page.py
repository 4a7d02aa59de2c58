"""A task folder read into the record that all pages of the task are made from."""

from pathlib import Path

from agentflow.core.record import Record
from agentflow.view.tasks import Snapshot, load
from agentflow.workspace.git import Git


class TaskPage(Record):
    """All that a page shows of a task at one moment."""

    task_id: str
    snapshot: Snapshot | None
    """None where the events cannot be read."""
    at_work: bool
    """A process is at work in the repository."""
    problems: tuple[str, ...] = ()
    """What could not be read."""


def read_page(folder: Path, git: Git, *, at_work: bool, before: TaskPage | None = None) -> TaskPage:  # noqa: ARG001
    """Return the page of a task as its files are now; what the page before has of the diff is taken over."""
    return TaskPage(task_id=folder.name, snapshot=load(folder), at_work=at_work)
