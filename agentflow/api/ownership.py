"""Whose task it is: what a repository brought is continued only where the user says how."""

import os
from pathlib import Path

from agentflow.core.errors import StateError
from agentflow.core.events import Warned
from agentflow.core.pending import Budget
from agentflow.settings import folders, load_settings
from agentflow.store.ownership import is_own, record_begun
from agentflow.store.reading import TASKS, events, state_of
from agentflow.store.tasks import TaskStore
from agentflow.workspace.git import Git

_TAKEN = "this task was not begun here: its limits, skipped checks and decisions do not count"


def keep(store: TaskStore) -> None:
    """Write down that a task is this user's, and with which model and limits."""
    record_begun(folders(os.environ).config, store.folder, store.task)


def explain_foreign(git: Git, folder: Path) -> str:
    """Return why a task is not this user's, or nothing. Raises CorruptState."""
    name = f"{TASKS}/{folder.name}"
    if git.call("ls-files", "-z", "--", name):
        return "it is part of the repository's history"
    task = state_of(folder, tuple(events(folder)))
    if is_own(folders(os.environ).config, folder, task):
        return ""
    return "no record of yours says that you began it so"


def is_own_task(git: Git, folder: Path) -> bool:
    """Tell whether a task is this user's. Raises CorruptState."""
    return not explain_foreign(git, folder)


def require_own(git: Git, folder: Path) -> None:
    """Refuse a task that somebody else may have made. Raises StateError."""
    if why := explain_foreign(git, folder):
        task = state_of(folder, tuple(events(folder)))
        raise StateError(
            f"task {folder.name} is not taken up as it is: {why}",
            hint=f"look at it, then name the model yourself: agentflow resume {folder.name} "
            f"--model NAME (it names {task.model})",
        )


def take_over(store: TaskStore, model: str) -> None:
    """Make somebody else's task the user's: what it allows itself is left behind."""
    task, settings = store.task, load_settings(os.environ)
    store.save(
        task.replace(
            model=model,
            max_iterations=min(task.max_iterations, settings.max_iterations),
            budget=Budget(),
            overrides=(),
            known_failures=(),
            answers={},
        )
    )
    store.emit(Warned(message=_TAKEN))
    keep(store)
