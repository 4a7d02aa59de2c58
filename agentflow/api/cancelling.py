"""Stopping a task from outside: its process is asked to stop, or its state is ended."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from agentflow.core.errors import AgentflowError, Exit, TaskLocked
from agentflow.core.events import Warned
from agentflow.core.pending import Consent
from agentflow.core.record import Record
from agentflow.core.task import Ending, Status
from agentflow.store.locks import pid_of, writer_lock
from agentflow.store.reading import find, last_sign
from agentflow.store.tasks import TaskStore
from agentflow.workspace.git import open_repository

STOP_SECONDS = 1.5
"""How long `cancel` waits for the end of the process at work."""
_LOOK_SECONDS = 0.02
OPEN = (Status.RUNNING, Status.SUSPENDED)


class Cancelled(Record):
    """How a task stands once it was asked to stop."""

    status: Status
    is_pending: bool = False
    """Its process was asked, and is still ending it."""


def cancel_task(start: Path, task_id: str | None) -> Cancelled:
    """Stop a task: its process if one works on it, else its state; a slow process is waited for shortly."""
    root = open_repository(start).root
    folder = find(root, task_id)
    deadline = time.monotonic() + STOP_SECONDS
    asked: int | None = None
    while True:
        try:
            with writer_lock(root):
                return Cancelled(status=_mark_cancelled(start, TaskStore.reopen(folder)))
        except TaskLocked:
            if time.monotonic() > deadline:
                return Cancelled(status=Status.RUNNING, is_pending=True)
            asked = _interrupt(root, asked)
            time.sleep(_LOOK_SECONDS)


def _interrupt(root: Path, asked: int | None) -> int | None:
    """Ask the process at work to stop, once: a second signal would kill it while it writes its end."""
    pid = pid_of(root)
    if pid is not None and pid != asked:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    return pid


def _mark_cancelled(start: Path, store: TaskStore) -> Status:
    """End a task that no process works on, with a report of the files as they are now."""
    if store.task.status in OPEN:
        try:
            _end(start, store)
        except AgentflowError as error:  # its settings or its model are gone: it is cancelled all the same
            ending = Ending(status=Status.CANCELLED, exit_code=Exit.TERMINATED, reason="cancelled")
            store.emit(Warned(message=f"no report was written: {error}"))
            store.save(store.task.replace(status=Status.CANCELLED, ending=ending, active=False))
    return store.task.status


def _end(start: Path, store: TaskStore) -> None:
    from agentflow.api.boundary import Wish
    from agentflow.api.wiring import assemble, prepare
    from agentflow.workflow.run import end_early

    task = store.task
    setup = prepare(start, task.model, task.task, Wish(no_sandbox=task.sandbox == "none"))
    crew = assemble(setup, store, Consent.SUSPEND)
    crew.past.begin(last_sign(store.folder))  # what the user changed meanwhile is not the task's
    end_early(crew, Status.CANCELLED, Exit.TERMINATED, "cancelled")
