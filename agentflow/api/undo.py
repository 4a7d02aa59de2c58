"""Undo a task, commit its change, or cancel it from outside."""

import os
import re
import signal
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from agentflow.api.decisions import require_own
from agentflow.core.errors import AgentflowError, Exit, StateError, TaskLocked
from agentflow.core.events import CheckStarted, EvidenceRecorded, Warned
from agentflow.core.pending import Consent
from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.core.task import Ending, Status, TaskState
from agentflow.memory.keep import reject_task
from agentflow.redact import list_some, to_one_line
from agentflow.store.journal import load_runs
from agentflow.store.ownership import find_writer, hold_writer_lock
from agentflow.store.reading import (
    find,
    find_last_write_time,
    list_tasks,
    load_events,
    load_state,
    try_load_state,
)
from agentflow.store.tasks import TaskStore
from agentflow.verdict.case import find_hook_files
from agentflow.workspace.commit import AcceptDiff, CommitResult, plan_commit, write_commit
from agentflow.workspace.git import Git, open_repository
from agentflow.workspace.snapshot import (
    Death,
    KeptSnapshots,
    Moments,
    TaskSnapshots,
    plan_undo,
    put_back,
)

_STOP_SECONDS = 1.5
"""The seconds that `cancel` waits for the end of the process at work."""
_LOOK_SECONDS = 0.02
OPEN = (Status.RUNNING, Status.SUSPENDED)
MOST_LISTED = 20
_GET_BACK = "GIT_ALTERNATE_OBJECT_DIRECTORIES=$(git rev-parse --git-path agentflow/objects) git show {}:FILE"


class UndoResult(Record):
    task_id: str
    state: str
    """`undone`, `would_undo`, `nothing_to_undo` or `already_undone`."""
    restored: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    """Files that the task did not change, and that stay as they are."""
    in_the_way: tuple[str, ...] = ()
    """Files that a person changed after the task."""
    replaced: str | None = None
    """The tree that keeps the files from before the undo."""
    at: str | None = None
    """When the task was undone before."""

    def describe(self) -> Iterator[str]:
        if self.state == "already_undone":
            yield f"task {self.task_id} was undone {self.at or 'before'}; nothing to do"
            return
        if self.state == "nothing_to_undo":
            yield f"task {self.task_id} left no change that is still there; nothing to do"
            return
        is_plan = self.state == "would_undo"
        yield f"{'would undo' if is_plan else 'undid'} task {self.task_id}"
        for verb, paths in (("restored", self.restored), ("removed", self.removed)):
            for path in paths:
                note = "  (changed since)" if path in self.in_the_way else ""
                yield f"  {verb.removesuffix('d') if is_plan else verb:<9} {to_one_line(path)}{note}"
        for path in self.kept[:MOST_LISTED]:
            yield f"  {'keep' if is_plan else 'kept':<9} {to_one_line(path)}  (not changed by the task)"
        if self.in_the_way and self.replaced:
            yield f"what was there is kept: {_GET_BACK.format(self.replaced)}"
        if is_plan and self.in_the_way:
            yield f"{len(self.in_the_way)} of these changed since: they need --force; your versions are kept"


def undo(
    task_id: str | None = None, *, folder: Path | str = ".", dry_run: bool = False, force: bool = False
) -> UndoResult:
    """Restore the files to their state before a task. Raises StateError where later edits are in the way."""
    git = open_repository(Path(folder))
    found = find(git.root, task_id)
    with hold_writer_lock(git.root):
        return _undo(git, found, dry_run=dry_run, force=force)


class CancelResult(Record):
    status: Status
    is_pending: bool = False
    """Its process was asked and is still stopping."""


def cancel_task(start: Path, task_id: str | None) -> CancelResult:
    """Stop a task: ask its process to stop, or end its state where no process works on it."""
    root = open_repository(start).root
    folder = find(root, task_id)
    deadline = time.monotonic() + _STOP_SECONDS
    asked: int | None = None
    while True:
        try:
            with hold_writer_lock(root):
                return CancelResult(status=_mark_cancelled(start, TaskStore.reopen(folder)))
        except TaskLocked:
            if time.monotonic() > deadline:
                return CancelResult(status=Status.RUNNING, is_pending=True)
            if asked is None and _is_others_turn(root, folder):
                raise
            asked = _interrupt(root, asked)
            time.sleep(_LOOK_SECONDS)


def _undo(git: Git, folder: Path, *, dry_run: bool, force: bool) -> UndoResult:
    past = TaskSnapshots(git, folder.name)
    kept = past.load()
    if kept.replaced is not None:
        undone = load_state(folder).undone
        return UndoResult(task_id=folder.name, state="already_undone", at=undone.at if undone else None)
    shot = past.record_now(kept)
    moments = Moments(
        base=past.read_files(kept.base), last=past.read_files(kept.last), now=past.read_files(shot)
    )
    spared = find_hook_files(load_state(folder))
    plan = plan_undo(git.root, kept, moments, _find_death(folder, kept), spared)
    state = "would_undo" if dry_run else "undone"
    result = UndoResult(
        task_id=folder.name,
        state=state if plan.restored or plan.removed else "nothing_to_undo",
        restored=tuple(sorted(plan.restored)),
        removed=tuple(plan.removed),
        kept=tuple(plan.left),
        in_the_way=tuple(sorted({*plan.changed_since, *plan.unclear})),
    )
    if dry_run:
        return result
    if result.in_the_way and not force:
        reasons = (
            (plan.changed_since, "changed since the task ended"),
            (plan.unclear, "changed by its last command or later; the task was killed at that moment"),
        )
        why = "; ".join(f"{why}: {list_some(paths, MOST_LISTED)}" for paths, why in reasons if paths)
        hint = f"keep what you need of them, then agentflow undo {folder.name} --force"
        raise StateError(f"nothing was undone. {why}", hint=hint)
    died_at = find_last_write_time(folder)
    store = TaskStore.reopen_to_undo(folder)
    put_back(git, plan, moments.base)
    # what the task itself let git ignore shows only now, and of that we know no more than when it was made
    seen = moments.replace(now=past.read_files(past.record_now(kept)))
    rest = plan_undo(git.root, kept, seen, Death(at=died_at, in_flight=False), spared)
    put_back(git, rest, moments.base)
    removed = tuple(sorted({*result.removed, *rest.removed}))
    result = result.replace(removed=removed, kept=tuple(rest.left), replaced=shot.tree)
    if result.restored or result.removed:
        past.save(kept.replace(replaced=shot))
        store.mark_undone(result.restored, result.removed, result.kept)
        reject_task(store.task.task_id, git, "its task was undone")
    return result


def _find_death(folder: Path, kept: KeptSnapshots) -> Death | None:
    if not kept.is_open:
        return None
    checks = [
        one.event for one in load_events(folder) if isinstance(one.event, CheckStarted | EvidenceRecorded)
    ]
    is_calling = any(run.outcome is None and run.started for run in load_runs(folder))
    is_checking = bool(checks) and isinstance(checks[-1], CheckStarted)
    return Death(at=find_last_write_time(folder), in_flight=is_calling or is_checking)


def _is_others_turn(root: Path, folder: Path) -> bool:
    if load_state(folder).status is Status.RUNNING:
        return False
    others = (try_load_state(find(root, name)) for name in list_tasks(root) if name != folder.name)
    return any(other is not None and other.status is Status.RUNNING for other in others)


def _interrupt(root: Path, asked: int | None) -> int | None:
    """Ask the process at work to stop, once: a second signal would kill it while it writes its end."""
    pid = find_writer(root)
    if pid is not None and pid != asked:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    return pid


def _mark_cancelled(start: Path, store: TaskStore) -> Status:
    from agentflow.api.boundary import TaskRequest
    from agentflow.api.wiring import assemble, prepare
    from agentflow.workflow.run import end_early

    if store.task.status in OPEN:
        try:
            task = store.task
            request = TaskRequest(text=task.task, model=task.model, no_sandbox=task.sandbox == "none")
            crew = assemble(prepare(start, request), store, Consent.SUSPEND)
            crew.snapshots.begin(find_last_write_time(store.folder))  # what changed meanwhile is the user's
            end_early(crew, Status.CANCELLED, Exit.TERMINATED, "cancelled")
        except AgentflowError as error:  # its settings or its model are gone: it is cancelled all the same
            ending = Ending(status=Status.CANCELLED, exit_code=Exit.TERMINATED, reason="cancelled")
            store.emit(Warned(message=f"no report was written: {error}"))
            store.save(store.task.replace(status=Status.CANCELLED, ending=ending, active=False))
    return store.task.status


_PROVED = (Status.VERIFIED, Status.VERIFIED_WITH_CAVEAT)
_SUBJECT_CHARS = 72
_MESSAGE_CHARS = 2000
_FIRST_SENTENCE = regex(r"(?<=[.;])\s")
_WORD = regex(r"[a-z]+(?=[\s,:;]|$)")
"""A first word that may be no name; one that the diff has is one as well."""


class CommitAnswers(Record):
    """What a person says to a commit that is not simply what was verified; each is asked when it matters."""

    accept_caveat: Callable[[str], bool] = lambda _: False
    accept_diff: AcceptDiff = lambda _: False


def commit_task(
    folder: Path,
    task_id: str | None = None,
    *,
    branch: str | None = None,
    answers: CommitAnswers | None = None,
) -> CommitResult:
    """Commit exactly what a verified task changed, on the current or on a new branch.

    Raises StateError where the task is not verified, was undone, or cannot be told apart from other changes.
    """
    answers, git = answers or CommitAnswers(), open_repository(folder)
    found = find(git.root, task_id)
    with hold_writer_lock(git.root):
        require_own(git, found)
        task = load_state(found)
        base, final = _require_verified(task)
        plan = plan_commit(git, base, final)
        caveats = "; ".join(task.verdict.caveats) if task.verdict else ""
        if task.status is Status.VERIFIED_WITH_CAVEAT and not answers.accept_caveat(caveats):
            raise StateError(
                f"task {task.task_id} is verified with a caveat ({caveats}), so nothing was committed",
                hint=f"agentflow commit {task.task_id} --accept-caveat",
            )
        message = _write_message(task, git.make_diff(base, final))
        return write_commit(git, plan, message, branch, answers.accept_diff)


def _require_verified(task: TaskState) -> tuple[str, str]:
    if task.status not in _PROVED:
        raise StateError(
            f"task {task.task_id} is {task.status}, not verified, so nothing was committed",
            hint=f"agentflow status {task.task_id} shows why; git commit works as usual",
        )
    if task.undone:
        raise StateError(f"task {task.task_id} was undone; there is nothing to commit")
    if task.base_tree is None or task.tree is None or task.base_tree == task.tree:
        raise StateError(f"task {task.task_id} changed no file; there is nothing to commit")
    return task.base_tree, task.tree


def _write_message(task: TaskState, diff: str) -> str:
    asked = to_one_line(task.title, _MESSAGE_CHARS)
    summary = to_one_line(task.change.summary, _MESSAGE_CHARS) if task.change else ""
    subject = to_one_line(_FIRST_SENTENCE.split(summary or asked, 1)[0].rstrip(".;"), _SUBJECT_CHARS)
    word = _WORD.match(subject)
    is_name = word is None or re.search(rf"\b{re.escape(word[0])}\b", diff)
    body = (summary if subject != summary.rstrip(".;") else "", f"Task: {asked}" if summary else "")
    verdict = task.verdict
    caveats = f" ({', '.join(verdict.caveats)})" if verdict and verdict.caveats else ""
    trailers = {
        "Agentflow-Task": task.task_id,
        "Agentflow-Verdict": f"{task.status}{caveats}",
        "Agentflow-Evidence": ", ".join(verdict.evidence) if verdict else "",
    }
    parts = (
        subject if is_name else subject[0].upper() + subject[1:],
        *(textwrap.fill(text, 72) for text in body),
        "\n".join(f"{name}: {value}" for name, value in trailers.items() if value),
    )
    return "\n\n".join(filter(None, parts)) + "\n"
