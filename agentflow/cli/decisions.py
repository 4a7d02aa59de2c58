"""Decisions of people, written into a task's state from any process."""

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from agentflow.cli.printing import say
from agentflow.core.errors import InvalidFile, StateError, TaskLocked, TaskNotFound, UsageError
from agentflow.core.events import Answered
from agentflow.core.exits import Exit
from agentflow.core.pending import APPROVED, Answer, Pending, reply
from agentflow.core.task import Ending, Status
from agentflow.parse import decode
from agentflow.process import timestamp
from agentflow.store.locks import pid_of, writer_lock
from agentflow.store.reading import events, find, state_of, tasks
from agentflow.store.tasks import TaskStore
from agentflow.workflow.waiting import answered
from agentflow.workspace.git import open_repository

STOP_SECONDS = 10.0


def edited_input(text: str | None) -> dict[str, Any] | None:
    """Return the input given with `--args`. Raises UsageError."""
    if text is None:
        return None
    try:
        return decode(dict[str, Any], text, "--args")
    except InvalidFile as error:
        raise UsageError(str(error), hint='an object, for example --args \'{"command": "ls"}\'') from None


def decide(start: Path, pending_id: str, decision: Answer) -> None:
    """Write a decision about what is pending; the same one twice is one."""
    root = open_repository(start).root
    with writer_lock(root):
        store = TaskStore.reopen(_holder(root, pending_id))
        if pending_id in store.task.answers:
            say(f"{pending_id} was decided before: {_word(store.task.answers[pending_id])}")
            return
        (item,) = (item for item in store.task.pending if item.id == pending_id)
        if item.kind not in APPROVED:
            hint = item.decided_by(store.task.task_id)
            raise StateError(f"{pending_id} is no call that waits for approval", hint=hint)
        record(store, item, decision)
        say(f"{pending_id} {_word(decision)}; agentflow resume {store.task.task_id} goes on")


def answer_question(start: Path, task_id: str, said: Sequence[str]) -> None:
    """Answer what a task asks first; a letter or number stands for an option.

    Raises StateError, or UsageError for what is no answer.
    """
    root = open_repository(start).root
    with writer_lock(root):
        store = TaskStore.reopen(find(root, task_id))
        if not store.task.pending:
            raise StateError(f"task {store.task.task_id} asks nothing")
        first = store.task.pending[0]
        if first.kind in APPROVED:
            raise StateError(f"{first.id} is no question", hint=first.decided_by(store.task.task_id))
        record(store, first, reply(first, said))


def record(store: TaskStore, item: Pending, decision: Answer) -> None:
    """Write a decision into the state and the log."""
    store.save(answered(store.task, item, decision.replace(at=timestamp())))
    store.emit(Answered(pending=item.id, approved=decision.approved, by=decision.by))


def _holder(root: Path, pending_id: str) -> Path:
    """Return the folder of the newest task that waits under an id, else of the newest that did."""
    folders = [find(root, task_id) for task_id in reversed(tasks(root))]
    states = [(folder, state_of(folder, tuple(events(folder)))) for folder in folders]
    waiting = [folder for folder, task in states if any(item.id == pending_id for item in task.pending)]
    decided = [folder for folder, task in states if pending_id in task.answers]
    if waiting or decided:
        return (waiting or decided)[0]
    raise TaskNotFound(f"nothing is pending under {pending_id}", hint="agentflow status shows what is")


def _word(answer: Answer) -> str:
    return "approved" if answer.approved else "denied"


def cancel_task(start: Path, task_id: str) -> None:
    """Stop a task: its process if one works on it, else its state."""
    root = open_repository(start).root
    folder = find(root, task_id)
    deadline = time.monotonic() + STOP_SECONDS
    asked: int | None = None
    while time.monotonic() < deadline:
        try:
            with writer_lock(root):
                _mark_cancelled(TaskStore.reopen(folder))
                return
        except TaskLocked:
            asked = _interrupt(root, asked)
            time.sleep(0.1)
    raise TaskLocked("the task did not stop in time")


def _interrupt(root: Path, asked: int | None) -> int | None:
    """Ask the process at work to stop, once: a second signal would kill it while it writes its end."""
    pid = pid_of(root)
    if pid is not None and pid != asked:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    return pid


def _mark_cancelled(store: TaskStore) -> None:
    if store.task.status in (Status.RUNNING, Status.SUSPENDED):
        ending = Ending(status=Status.CANCELLED, exit_code=Exit.TERMINATED, reason="cancelled")
        store.save(store.task.replace(status=Status.CANCELLED, ending=ending, active=False))
    say(f"{store.task.task_id} {store.task.status}")
