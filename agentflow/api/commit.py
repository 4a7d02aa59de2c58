"""Commit a verified task: which tasks may be committed, and what the commit says."""

import textwrap
from pathlib import Path

from agentflow.api.decisions import require_own
from agentflow.core.errors import StateError
from agentflow.core.task import Status, TaskState
from agentflow.redact import one_line
from agentflow.store.ownership import writer_lock
from agentflow.store.reading import events, find, fold_state
from agentflow.workspace.commit import Committed, plan_commit, write_commit
from agentflow.workspace.git import open_repository

_PROVED = (Status.VERIFIED, Status.VERIFIED_WITH_CAVEAT)
_SUBJECT_CHARS = 72


def commit_task(folder: Path, task_id: str | None = None, *, branch: str | None = None) -> Committed:
    """Commit exactly what a verified task changed, on the current or on a new branch.

    Raises StateError where the task is not verified, was undone, or cannot be told apart from other changes.
    """
    git = open_repository(folder)
    found = find(git.root, task_id)
    with writer_lock(git.root):
        require_own(git, found)
        task = fold_state(found, tuple(events(found)))
        base, final = _require_verified(task)
        return write_commit(git, plan_commit(git, base, final), write_message(task), branch)


def _require_verified(task: TaskState) -> tuple[str, str]:
    """Return the trees before and after a task. Raises StateError where it has nothing to commit."""
    if task.status not in _PROVED:
        raise StateError(
            f"task {task.task_id} is {task.status}, not verified, so nothing was committed",
            hint=f"agentflow status {task.task_id} shows why; git commit works as ever",
        )
    if task.undone:
        raise StateError(f"task {task.task_id} was undone; there is nothing to commit")
    if task.base_tree is None or task.tree is None or task.base_tree == task.tree:
        raise StateError(f"task {task.task_id} changed no file; there is nothing to commit")
    return task.base_tree, task.tree


def write_message(task: TaskState) -> str:
    """Return the commit message: the task as its subject, what was changed, and trailers."""
    subject = one_line(task.task, _SUBJECT_CHARS)
    summary = textwrap.fill(one_line(task.change.summary, 2000), 72) if task.change else ""
    parts = (subject[:1].upper() + subject[1:], summary, _write_trailers(task))
    return "\n\n".join(filter(None, parts)) + "\n"


def _write_trailers(task: TaskState) -> str:
    verdict = task.verdict
    caveats = f" ({', '.join(verdict.caveats)})" if verdict and verdict.caveats else ""
    rows = {
        "Agentflow-Task": task.task_id,
        "Agentflow-Verdict": f"{task.status}{caveats}",
        "Agentflow-Evidence": ", ".join(verdict.evidence) if verdict else "",
    }
    return "\n".join(f"{name}: {value}" for name, value in rows.items() if value)
