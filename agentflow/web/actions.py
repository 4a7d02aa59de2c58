"""What a person does on the page: the same as the commands of that name."""

import os
import sys
from pathlib import Path

from agentflow.api.decisions import answer_question, decide_approval, parse_edited_input, send_message
from agentflow.api.undo import OPEN, UndoResult, cancel_task, undo
from agentflow.core.errors import Exit, StateError, TaskLocked, UsageError
from agentflow.core.pending import Answer
from agentflow.core.record import Record
from agentflow.parse import decode
from agentflow.process import DetachedProgram, detach
from agentflow.redact import list_some
from agentflow.store.ownership import is_at_work
from agentflow.store.reading import events, fold_state
from agentflow.workspace.git import Git

_NO_VERDICT = (Exit.CONFIG, Exit.NO_MODEL, Exit.NO_SANDBOX, Exit.INTERNAL)
"""Ends of which the task's own files may say nothing."""
_BY = "the page"
_SHOWN = 20


class _Approval(Record):
    pending: str
    comment: str = ""
    input: str = ""
    """The input that the call is made with instead, as JSON; empty: the one that was asked about."""


class _Denial(Record):
    pending: str
    reason: str


class _Said(Record):
    said: tuple[str, ...]
    """A text, or one for each question."""


class _Undo(Record):
    dry_run: bool = True
    force: bool = False


class Continuations:
    """Tasks that go on since a person decided here, each in a process of its own that outlives the server."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._begun: dict[str, DetachedProgram] = {}

    def begin(self, task_id: str) -> None:
        """Start `agentflow resume`. Raises TaskLocked while a task is at work."""
        if self.is_at_work():
            raise TaskLocked("another task is at work in this repository", hint="resume this one afterwards")
        argv = (sys.executable, "-P", "-m", "agentflow", "resume", task_id, "-q", "-C", str(self._root))
        self._begun[task_id] = detach(argv, self._root, dict(os.environ))

    def is_at_work(self) -> bool:
        """Return whether a process works in the repository, after reaping our own that have ended."""
        running = [each.exit_code is None for each in self._begun.values()]
        return any(running) or is_at_work(self._root)

    def explain_failure(self, task_id: str) -> str:
        """Return what a continuation said that could not go on, or nothing."""
        begun = self._begun.get(task_id)
        return begun.read_stderr() if begun is not None and begun.exit_code in _NO_VERDICT else ""


class Actions:
    """The actions on the tasks of one repository."""

    def __init__(self, git: Git, continuations: Continuations) -> None:
        self._git = git
        self._continuations = continuations

    def run(self, name: str, folder: Path, body: bytes) -> str:
        """Do what a person asked for and return what came of it. Raises AgentflowError."""
        match name:
            case "approve":
                return self._approve(folder, decode(_Approval, body, "approval"))
            case "deny":
                return self._deny(folder, decode(_Denial, body, "denial"))
            case "answer":
                answer_question(self._git.root, folder.name, decode(_Said, body, "answer").said)
                return f"Answered. {self._go_on(folder)}"
            case "say":
                return self._say(folder, " ".join(decode(_Said, body, "message").said))
            case "stop":
                return self._stop(folder)
            case "resume":
                self._continuations.begin(folder.name)
                return "The task continues."
            case "undo":
                return self._undo(folder, decode(_Undo, body, "undo"))
            case _:
                raise UsageError(f"there is no action {name}")

    def _approve(self, folder: Path, said: _Approval) -> str:
        given = parse_edited_input(said.input or None)
        return self._decide(
            folder, said.pending, Answer(approved=True, input=given, by=_BY, comment=said.comment)
        )

    def _deny(self, folder: Path, said: _Denial) -> str:
        if not said.reason.strip():
            raise UsageError("say why: the model reads the reason as the result of its call")
        return self._decide(folder, said.pending, Answer(approved=False, text=said.reason, by=_BY))

    def _decide(self, folder: Path, pending_id: str, decision: Answer) -> str:
        made = decide_approval(self._git.root, pending_id, decision, task_id=folder.name)
        if made.before:
            return f"{pending_id} was decided before: {made.word}."
        return f"{pending_id} {made.word}. {self._go_on(folder)}"

    def _go_on(self, folder: Path) -> str:
        """Continue a task for which nothing is left to decide."""
        waits = len(fold_state(folder, tuple(events(folder))).pending)
        if waits:
            return f"{waits} more to decide before the task continues."
        self._continuations.begin(folder.name)
        return "The task continues."

    def _say(self, folder: Path, text: str) -> str:
        if not text.strip():
            raise UsageError("the message is empty")
        send_message(self._git, folder, text)
        return "The role that works reads it before its next turn."

    def _undo(self, folder: Path, wish: _Undo) -> str:
        return _describe_undo(
            undo(folder.name, folder=self._git.root, dry_run=wish.dry_run, force=wish.force)
        )

    def _stop(self, folder: Path) -> str:
        status = fold_state(folder, tuple(events(folder))).status
        if status not in OPEN:
            raise StateError(f"the task is over: {status}")
        ending = cancel_task(self._git.root, folder.name)
        return (
            "The task was asked to stop and is still ending."
            if ending.is_pending
            else "The task has stopped."
        )


def _describe_undo(done: UndoResult) -> str:
    """Return what an undo did or would do, a line for each kind of change."""
    match done.state:
        case "already_undone":
            return "The task was undone before."
        case "nothing_to_undo":
            return "The task left no change that is still there."
        case "would_undo":
            title, verbs = "Undo would", ("restore", "remove", "keep")
        case _:
            title, verbs = "Undone.", ("restored", "removed", "kept")
    kinds = zip(verbs, (done.restored, done.removed, done.kept), strict=True)
    rows = [f"{verb} {list_some(paths, _SHOWN)}" for verb, paths in kinds if paths]
    if done.in_the_way:
        rows.append(f"changed since the task ended: {list_some(done.in_the_way, _SHOWN)}")
    return "\n".join((title, *rows))
