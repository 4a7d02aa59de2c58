"""The public functions of `import agentflow`, and beside them the other names that it offers.

The command line does the same and prints it.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypedDict, Unpack

from agentflow.api.boundary import TaskRequest, open_sandbox
from agentflow.api.decisions import DecisionResult, answer_question, decide_approval
from agentflow.api.session import Session, begin_session, resume_session, run_session
from agentflow.api.undo import CancelResult, cancel_task, undo
from agentflow.api.verification import Verification, choose_exit, reverify_records, run_checks
from agentflow.api.wiring import prepare
from agentflow.api.worktree import find_pending
from agentflow.compose.builder import AgentBuilder
from agentflow.compose.capability import Capability
from agentflow.core.errors import AgentflowError, Exit
from agentflow.core.events import StoredEvent
from agentflow.core.hook import Hook, HookResult
from agentflow.core.pending import Answer
from agentflow.core.points import HookEvent, Point
from agentflow.core.record import Record
from agentflow.core.role import Role
from agentflow.core.tool import Category, Effect, Output, Subject, Tool, ToolContext
from agentflow.store.reading import find
from agentflow.view.tasks import Snapshot, load_snapshot
from agentflow.workspace.git import open_repository

Observe = Callable[[StoredEvent], None]
_PLAIN = TaskRequest()
_PROGRAM = "a program"


def run_task(
    text: str,
    *,
    folder: Path | str = ".",
    model: str | None = None,
    request: TaskRequest = _PLAIN,
    capabilities: tuple[Capability, ...] = (),
    observe: Observe | None = None,
) -> Snapshot:
    """Carry out a task and return what its files say at the end.

    `request` says what the task may do and use, `capabilities` are given to every role beside the standard
    ones, and `observe` is told each event. A task that waits for a person ends with the status `suspended`.
    Raises AgentflowError for what the command line would refuse with a message.
    """
    request = request.replace(text=text, model=model, asked_by=request.asked_by or "a Python program")
    setup = prepare(Path(folder), request).replace(capabilities=capabilities)
    with begin_session(setup, request) as session:
        return _run_to_end(session, observe)


def resume(
    task_id: str | None = None,
    *,
    folder: Path | str = ".",
    request: TaskRequest = _PLAIN,
    capabilities: tuple[Capability, ...] = (),
    observe: Observe | None = None,
) -> Snapshot:
    """Continue a task, the newest by default, from where it left off.

    Raises Suspended while something is undecided, and TaskOver for a task that has ended.
    """
    with resume_session(open_repository(Path(folder)), task_id, request) as session:
        setup = session.setup.replace(capabilities=capabilities)
        return _run_to_end(session.replace(setup=setup), observe)


def load_task(task_id: str | None = None, *, folder: Path | str = ".") -> Snapshot:
    """Return what the files of a task say, the newest by default. Raises CorruptState for a damaged file."""
    return load_snapshot(find(open_repository(Path(folder)).root, task_id))


def answer(*words: str, task_id: str | None = None, folder: Path | str = ".") -> None:
    """Answer what a task asks first, by an option or your own words; `resume` then continues it."""
    git = open_repository(Path(folder))
    answer_question(git, find(git.root, task_id), words, _PROGRAM)


class DecisionDetails(TypedDict, total=False):
    """What may be said beside a decision."""

    reason: str
    """Of a denial; the model reads it."""
    args: Mapping[str, Any]
    """The input that the call is made with in place of its own."""
    by: str
    """Who told the program so."""
    comment: str


def decide(
    pending_id: str,
    *,
    approved: bool,
    task_id: str | None = None,
    folder: Path | str = ".",
    **details: Unpack[DecisionDetails],
) -> DecisionResult:
    """Approve or deny a call that waits, of the newest task with that id; `resume` then continues the task.

    Raises StateError for an approval of changed checks: that is a person's, given with `agentflow approve`.
    """
    args, by = details.get("args"), details.get("by", "")
    decision = Answer(
        approved=approved,
        text=details.get("reason", ""),
        input=None if args is None else dict(args),
        by=by or _PROGRAM,
        via=f"through {_PROGRAM}" if by else "",
        comment=details.get("comment", ""),
    )
    git, found = find_pending(Path(folder), pending_id, task_id)
    return decide_approval(git, found, pending_id, decision, is_person=False)


def cancel(task_id: str | None = None, *, folder: Path | str = ".") -> CancelResult:
    """Stop a task, also one that runs in another process; `resume` can still continue it."""
    return cancel_task(Path(folder), task_id)


def verify(
    task_id: str | None = None, *, folder: Path | str = ".", quick: bool = False, sandbox: bool = True
) -> Verification:
    """Run this repository's checks, or re-run those recorded for a task."""
    where = open_sandbox(open_repository(Path(folder)), TaskRequest(no_sandbox=not sandbox))
    shown = tuple(
        reverify_records(where, task_id) if task_id else run_checks(where, is_quick=quick, dry_run=False)
    )
    return Verification(exit_code=choose_exit(shown), rows=shown)


def _run_to_end(session: Session, observe: Observe | None) -> Snapshot:
    if observe is not None:
        session.store.observers.append(observe)
    run_session(session)
    return load_snapshot(session.store.folder)
