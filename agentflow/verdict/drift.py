"""What differs on disk from the tree that is judged."""

from collections.abc import Collection, Iterable
from pathlib import PurePosixPath

from agentflow.core.task import TaskState
from agentflow.core.verdict import FailReason
from agentflow.core.wording import list_some
from agentflow.verdict.surface import belongs
from agentflow.workspace.git import ChangeKind, FileChange
from agentflow.workspace.ignored_files import CACHES

_ARTEFACTS = frozenset(
    {".log", ".txt", ".out", ".tmp", ".xml", ".html", ".db", ".sqlite3", ".csv", ".lock", ".pid"}
)
"""New files of these kinds are what checks leave behind; any other could change what the checks show."""


def find_hook_files(task: TaskState) -> frozenset[str]:
    """Return the files that only hooks changed, without those that belong to the checks."""
    return frozenset(path for path in task.hook_files if not belongs(task.surface, path))


def describe_drift(drift: tuple[FileChange, ...], altered: tuple[FileChange, ...]) -> list[str]:
    """Return what changed since the judged tree was recorded: on disk, and in the judges' copies."""
    parts = {
        FailReason.CHANGED_LATER: drift,
        FailReason.CHANGED_IN_COPY: altered,
    }
    told = {kind: [each.path for each in part if not _is_artefact(each)] for kind, part in parts.items()}
    return [kind.of(list_some(paths)) for kind, paths in told.items() if paths]


def without_leavings(
    altered: Iterable[FileChange],
    before: Iterable[FileChange],
    changed: Collection[str],
    tracked: Iterable[str],
) -> tuple[FileChange, ...]:
    """Return what checks changed in their copies, without what they leave behind before a task, too.

    A new file is known by the folder that came with it, else by its folder and its kind, since its name may
    be another in each run. A file that the task changed is never taken for one that checks write.
    """
    known, there = list(before), {str(folder) for path in tracked for folder in PurePosixPath(path).parents}
    written = {(change.kind, change.path) for change in known if change.path not in changed}
    places = {_place(change.path, there) for change in known if change.kind is ChangeKind.ADDED}
    return tuple(
        change
        for change in altered
        if (change.kind, change.path) not in written
        and not (change.kind is ChangeKind.ADDED and _place(change.path, there) in places)
    )


def _place(path: str, there: Collection[str]) -> tuple[str, str]:
    """Return the outermost new folder of a new file, or else its folder and suffix."""
    file = PurePosixPath(path)
    new = next((str(folder) for folder in reversed(file.parents) if str(folder) not in there), "")
    return (new, "") if new else (str(file.parent), file.suffix)


def _is_artefact(change: FileChange) -> bool:
    """Return whether a file is new and looks like output."""
    return change.kind is ChangeKind.ADDED and is_left_behind(change.path)


def is_left_behind(name: str) -> bool:
    """Return whether a path looks like output that no program or test runner reads."""
    path = PurePosixPath(name)
    return bool(path.suffix in _ARTEFACTS or path.name.startswith(".coverage") or CACHES & {*path.parts})


def is_written_by_hooks(name: str) -> bool:
    """Return whether a hook may have written a file, by its name: a log or a cache."""
    return is_left_behind(name) or ("/" in name and not PurePosixPath(name).suffix)


def describe_leavings(drift: tuple[FileChange, ...]) -> list[str]:
    """Return the new files that look like output of the checks."""
    added = [change.path for change in drift if _is_artefact(change)]
    return [f"new files appeared while the checks ran: {list_some(added)}"] if added else []
