"""What differs on disk from the tree that is judged."""

from pathlib import PurePosixPath

from agentflow.workspace.git import ChangeKind, FileChange

_ARTEFACTS = frozenset(
    {".log", ".txt", ".out", ".tmp", ".xml", ".html", ".db", ".sqlite3", ".csv", ".lock", ".pid"}
)
"""New files of these kinds are what checks leave behind; any other could change what the checks show."""
NAMED = 5
"""Names listed in a reason before the rest is counted."""


def drifted(drift: tuple[FileChange, ...], altered: tuple[FileChange, ...]) -> list[str]:
    """Return what was changed after the tree was taken that is judged: here, and by a judge in its copy."""
    parts = {
        "changed after the checks began": drift,
        "changed by a check or a judge in its own copy": altered,
    }
    told = {words: [each.path for each in part if not _is_artefact(each)] for words, part in parts.items()}
    return [f"{words}: {listed(paths)}" for words, paths in told.items() if paths]


def _is_artefact(change: FileChange) -> bool:
    """Return whether a file is new and of a kind that no program or test runner obeys."""
    return change.kind is ChangeKind.ADDED and PurePosixPath(change.path).suffix in _ARTEFACTS


def appeared(drift: tuple[FileChange, ...]) -> list[str]:
    """Return what checks left behind, which no check obeys."""
    added = [change.path for change in drift if _is_artefact(change)]
    return [f"new files appeared while the checks ran: {listed(added)}"] if added else []


def listed(names: list[str]) -> str:
    """Return names in one line, the first few of many."""
    shown = ", ".join(names[:NAMED])
    return f"{shown} and {len(names) - NAMED} more" if len(names) > NAMED else shown
