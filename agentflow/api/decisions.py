"""Decisions about tasks, written into their state from any process, and whether a task is the user's own."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentflow.core.errors import InvalidFile, StateError, UsageError
from agentflow.core.events import Answered
from agentflow.core.pending import (
    APPROVED,
    EXPIRED,
    Answer,
    Pending,
    PendingKind,
    add_approval,
    read_answer,
)
from agentflow.core.record import Record
from agentflow.core.task import Status
from agentflow.parse import decode
from agentflow.process import make_timestamp
from agentflow.redact import to_one_line
from agentflow.settings import find_folders
from agentflow.store.journal import add_message
from agentflow.store.ownership import hold_writer_lock, is_own, record_begun
from agentflow.store.reading import TASKS, load_state
from agentflow.store.tasks import TaskStore
from agentflow.view.words import format_local, tell_approvals_left
from agentflow.workflow.gates import record_answer
from agentflow.workspace.git import Git

_PATIENCE_SECONDS = 1.0
"""For another decision that is written at the same time."""


class DecisionResult(Record):
    task_id: str
    pending_id: str
    answer: Answer
    was_decided: bool = False
    """The item was decided alike before, and that decision stays."""
    approvals_left: int = 0
    """How many people more have to approve it."""

    @property
    def word(self) -> str:
        return "approved" if self.answer.approved else "denied"

    def tell(self) -> str:
        if self.was_decided:
            return f"{self.pending_id} was already {self.word} by {to_one_line(self.answer.author)}"
        if self.approvals_left:
            by = to_one_line(self.answer.author)
            return f"{self.pending_id} approved by {by}; {tell_approvals_left(self.approvals_left)}"
        return f"{self.pending_id} {self.word}"


@contextmanager
def hold_own_task(git: Git, folder: Path, patience: float = 0) -> Iterator[TaskStore]:
    """Yield a task of this user's, locked, in which nothing waits that has expired. Raises StateError."""
    with hold_writer_lock(git.root, patience):
        require_own(git, folder)
        store = TaskStore.reopen(folder)
        for item in store.task.pending:
            if item.is_expired(make_timestamp()):
                record_decision(store, item, EXPIRED)
        yield store


def decide_approval(
    git: Git,
    folder: Path,
    pending_id: str,
    decision: Answer,
    *,
    is_person: bool = True,
    seen: str | None = None,
) -> DecisionResult:
    """Record a decision about an item that waits in a task, or waited; the first one stays.

    `seen` is the `identity` of the item as the person saw it. Raises StateError where it is another by now,
    where it was decided otherwise or has expired, and where what is not a person approves changed checks, or
    what several people have to approve.
    """
    with hold_own_task(git, folder, _PATIENCE_SECONDS) as store:
        task_id = store.task.task_id
        if pending_id in store.task.waiting.answers:
            return _tell_made(store, pending_id, decision, was_decided=True)
        item = next((item for item in store.task.pending if item.id == pending_id), None)
        if item is None:
            raise StateError(
                f"nothing waits under the id {pending_id}", hint="agentflow status shows what waits"
            )
        if item.kind not in APPROVED:
            hint = item.tell_how_to_decide(task_id)
            raise StateError(f"{pending_id} does not wait for an approval", hint=hint)
        if decision.approved and not is_person and (item.kind is PendingKind.SURFACE or item.needed > 1):
            said = f"{pending_id} needs {item.needed} named people; a program cannot approve it"
            said = "only a person approves changed checks" if item.kind is PendingKind.SURFACE else said
            raise StateError(said, hint=item.tell_how_to_decide(task_id))
        if seen is not None and seen != item.identity:
            raise StateError(f"{pending_id} was changed meanwhile", hint="look at it again, then decide")
        left = record_decision(store, item, decision)
        return _tell_made(store, pending_id, decision).replace(approvals_left=left)


def _tell_made(
    store: TaskStore, pending_id: str, decision: Answer, *, was_decided: bool = False
) -> DecisionResult:
    """Return what was decided. Raises StateError where that is not what the person wants."""
    task_id, made = store.task.task_id, store.task.waiting.answers.get(pending_id, decision)
    result = DecisionResult(task_id=task_id, pending_id=pending_id, answer=made, was_decided=was_decided)
    if made.approved == decision.approved:
        return result
    hint = f"agentflow status {task_id} shows it"
    if made.by == EXPIRED.by:
        at = format_local(made.at)
        raise StateError(f"too late: {pending_id} expired at {at} and was denied", hint=hint)
    raise StateError(f"{pending_id} was already {result.word} by {to_one_line(made.author)}", hint=hint)


def answer_question(git: Git, folder: Path, said: Sequence[str], by: str = "") -> None:
    """Answer the first question of a task; a letter or number stands for an option. `by`: not a person.

    Raises StateError, or UsageError for an invalid answer.
    """
    with hold_own_task(git, folder) as store:
        if not store.task.pending:
            raise StateError(f"task {store.task.task_id} asks no question")
        first = store.task.pending[0]
        if first.kind in APPROVED:
            raise StateError(
                f"{first.id} is not a question", hint=first.tell_how_to_decide(store.task.task_id)
            )
        record_decision(store, first, read_answer(first, said).replace(by=by))


def parse_edited_input(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        return decode(dict[str, Any], text, "--args")
    except InvalidFile as error:
        raise UsageError(str(error), hint='an object, for example --args \'{"command": "ls"}\'') from None


def record_decision(store: TaskStore, item: Pending, decision: Answer) -> int:
    """Write a decision into the state and the log; return how many people more have to approve.

    What comes too late is recorded as denied. Raises UsageError where an approval needs a name, and for
    another input of what is no call, which the next person would see in place of the changed checks.
    """
    if decision.input is not None and item.kind is not PendingKind.APPROVAL:
        raise UsageError(f"only the input of a call can be changed, and {item.id} is none")
    now = make_timestamp()
    if item.is_expired(now):
        decision, now = EXPIRED, item.expires_at or now
    decision = decision.replace(at=now)
    item, decided = add_approval(item, decision)
    if decided is not None:
        task, left = record_answer(store.task, item, decided), 0
    else:
        others = (item if one.id == item.id else one for one in store.task.pending)
        task, left = store.task.replace(pending=tuple(others)), item.needed - len(item.given)
    store.save(task)
    store.emit(Answered(pending=item.id, approved=decision.approved, by=decision.author, left=left))
    return left


def record_own_task(store: TaskStore) -> None:
    record_begun(find_folders(os.environ).config, store.folder, store.task)


def explain_foreign(git: Git, folder: Path) -> str:
    """Return why a task is not this user's, or nothing. Raises CorruptState."""
    name = f"{TASKS}/{folder.name}"
    if git.call("ls-files", "-z", "--", name):
        return "it is part of the repository's history"
    task = load_state(folder)
    if is_own(find_folders(os.environ).config, folder, task):
        return ""
    return "you have no record of having begun it like this"


def require_own(git: Git, folder: Path) -> None:
    """Refuse a task that somebody else may have made. Raises StateError."""
    if why := explain_foreign(git, folder):
        task = load_state(folder)
        raise StateError(
            f"task {folder.name} is not continued as it is: {why}",
            hint=f"look at it, then begin it anew with a model of your choice: "
            f"agentflow resume {folder.name} --model NAME (it names {task.model})",
        )


def send_message(git: Git, folder: Path, text: str) -> None:
    """Leave a message for the role that works in a task. Raises StateError for a task that is over."""
    require_own(git, folder)
    task = load_state(folder)
    if task.status not in (Status.RUNNING, Status.SUSPENDED):
        hint = "start another task, or a follow-up of it in a session"
        raise StateError(f"task {folder.name} is over: {task.status}", hint=hint)
    add_message(folder, text)
