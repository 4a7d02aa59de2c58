"""`tasks`, and which task a command is about."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from agentflow.cli.options import FOLDER, JSON
from agentflow.cli.printing import say_json, show

if TYPE_CHECKING:
    from agentflow.core.task import TaskState

_ID_BEGINS = 4
"""Digits from which on a word before an answer can be the beginning of an id."""


def tasks(json: bool = JSON, folder: Path = FOLDER) -> None:
    """List the tasks of this repository. The newest comes first, with its status, exit code and cost."""
    from datetime import UTC, datetime

    from agentflow.store import reading
    from agentflow.store.locks import is_at_work
    from agentflow.view.listing import described, listing
    from agentflow.view.terminal import width_of
    from agentflow.workspace.git import open_repository

    root = open_repository(folder).root
    names, at_work = reversed(reading.tasks(root)), is_at_work(root)
    rows = tuple(described(root / reading.TASKS / name, at_work=at_work) for name in names)
    if json:
        say_json(rows)
    else:
        show(listing(rows, datetime.now(UTC), width_of(sys.stdout)))


def folder_of(root: Path, task_id: str | None, prefer: Callable[["TaskState"], bool] | None = None) -> Path:
    """Return the folder of a task; where none is named take the newest, and say on stderr which that is.

    Of several tasks, the newest whose state is as preferred comes first. Raises TaskNotFound.
    """
    from agentflow.redact import one_line, visible
    from agentflow.store.reading import find
    from agentflow.view.terminal import send

    if task_id is not None:
        return find(root, task_id)
    found = find(root, None)
    state = _state(found)
    if prefer is not None and not (state and prefer(state)):
        preferred = ((path, other) for path, other in _states(root) if prefer(other))
        found, state = next(preferred, (found, state))
    words = f": {one_line(state.task, 60)}" if state else ""
    send(visible(f"the newest task, {found.name}{words}") + "\n", sys.stderr)
    return found


def named_before(root: Path, words: list[str]) -> tuple[str | None, list[str]]:
    """Return the task that the first of some words names, if it names one, and the other words."""
    from agentflow.store import reading

    first, *rest = words
    is_beginning = first[:_ID_BEGINS].isdecimal() and len(first) >= _ID_BEGINS
    known = [name for name in reading.tasks(root) if name.startswith(first)]
    is_named = is_beginning and (bool(known) or reading.is_task_id(first))
    return (first, rest) if is_named else (None, words)


def _states(root: Path) -> Iterator[tuple[Path, "TaskState"]]:
    """Yield the tasks that can be read, the newest first."""
    from agentflow.store import reading

    for name in reversed(reading.tasks(root)):
        state = _state(root / reading.TASKS / name)
        if state is not None:
            yield root / reading.TASKS / name, state


def _state(folder: Path) -> "TaskState | None":
    from agentflow.core.errors import CorruptState
    from agentflow.store.reading import events, state_of

    try:
        return state_of(folder, tuple(events(folder)))
    except CorruptState:
        return None  # whoever goes on with it says what is wrong
