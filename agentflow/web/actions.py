"""The actions of the page on the tasks of a repository, and the processes that continue tasks after them."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from agentflow.api.decisions import answer_question, decide_approval, parse_edited_input, send_message
from agentflow.api.undo import OPEN, cancel_task, undo
from agentflow.core.errors import Exit, StateError, TaskLocked, UsageError
from agentflow.core.pending import Answer
from agentflow.core.record import Record
from agentflow.parse import decode
from agentflow.process import DetachedProgram, detach
from agentflow.store.ownership import is_at_work
from agentflow.store.reading import load_state
from agentflow.web.links import SignedLink
from agentflow.workspace.git import Git

_NO_VERDICT = (Exit.CONFIG, Exit.NO_MODEL, Exit.NO_SANDBOX, Exit.INTERNAL)
"""Exit codes that the task's own files may not explain."""


class _Decision(Record):
    pending: str
    by: str = ""
    comment: str = ""
    reason: str = ""
    """Of a denial."""
    seen: str | None = None
    """The `identity` of what the page showed."""
    input: str = ""
    """The input that the call is made with instead, as JSON; empty: the one that was asked about."""


class _MessageText(Record):
    said: tuple[str, ...]
    """A text, or one for each question."""


class _Undo(Record):
    dry_run: bool = True
    force: bool = False


def to_home(folder: Path) -> Path:
    return folder.parents[2]


class Continuations:
    """The processes that continue tasks after a decision on the page; each outlives the server."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._begun: dict[Path, DetachedProgram] = {}

    def begin(self, folder: Path) -> None:
        if self.is_at_work(to_home(folder)):
            raise TaskLocked("another task is at work in this repository", hint="resume this one afterwards")
        argv = (sys.executable, "-P", "-m", "agentflow", "resume", folder.name, "-q", "-C", str(self._root))
        self._begun[folder] = detach(argv, self._root, dict(os.environ))

    def is_at_work(self, home: Path) -> bool:
        """Return whether a process works there, after reaping our own that have ended."""
        for folder, each in tuple(self._begun.items()):
            if each.exit_code not in (None, *_NO_VERDICT):
                self._begun.pop(folder, None)  # its stderr closes with it, once nobody reads it
        running = [to_home(folder) for folder, each in self._begun.items() if each.exit_code is None]
        return home in running or is_at_work(home)

    def explain_failure(self, folder: Path) -> str:
        """Return the error message of a continuation that failed to go on, or empty."""
        begun = self._begun.get(folder)
        return begun.read_stderr() if begun is not None and begun.exit_code in _NO_VERDICT else ""


class Actions:
    def __init__(self, continuations: Continuations, find_git: Callable[[Path], Git]) -> None:
        self._continuations = continuations
        self._find_git = find_git

    def run_link(self, name: str, folder: Path, body: bytes, link: SignedLink) -> str:
        """Approve or deny the one thing that a signed link is for. Raises AgentflowError."""
        said = decode(_Decision, body, "decision")
        if name not in ("approve", "deny") or said.pending != link.pending:
            raise UsageError("this link does not decide that")
        return self._decide(folder, name, said.replace(seen=link.seen), "with a signed link")

    def run(self, name: str, folder: Path, body: bytes) -> str:
        match name:
            case "approve" | "deny":
                return self._decide(folder, name, decode(_Decision, body, "decision"), "on the page")
            case "answer":
                texts = decode(_MessageText, body, "answer").said
                answer_question(self._find_git(folder), folder, texts)
                return f"Answered. {self._go_on(folder)}"
            case "say":
                text = " ".join(decode(_MessageText, body, "message").said)
                if not text.strip():
                    raise UsageError("the message is empty")
                send_message(self._find_git(folder), folder, text)
                return "The working role reads it before its next turn."
            case "stop":
                status = load_state(folder).status
                if status not in OPEN:
                    raise StateError(f"the task is over: {status}")
                ending = cancel_task(self._find_git(folder).root, folder.name)
                what = "was asked to stop and is still ending" if ending.is_pending else "has stopped"
                return f"The task {what}."
            case "resume":
                self._continuations.begin(folder)
                return "The task continues."
            case "undo":
                wish, root = decode(_Undo, body, "undo"), self._find_git(folder).root
                done = undo(folder.name, folder=root, dry_run=wish.dry_run, force=wish.force)
                return "\n".join(done.describe())
            case _:
                raise UsageError(f"there is no action {name}")

    def _decide(self, folder: Path, name: str, said: _Decision, via: str) -> str:
        """Record a decision and continue the task once nothing else waits. Raises AgentflowError."""
        is_yes = name == "approve"
        if not is_yes and not said.reason.strip():
            raise UsageError("say why: the model reads the reason as the result of its call")
        given = parse_edited_input(said.input or None) if is_yes else None
        by, comment = said.by, said.comment
        answer = Answer(approved=is_yes, text=said.reason, input=given, by=by, comment=comment, via=via)
        made = decide_approval(self._find_git(folder), folder, said.pending, answer, seen=said.seen)
        then = "" if made.was_decided or made.approvals_left else f" {self._go_on(folder)}"
        return f"{made.tell()}.{then}"

    def _go_on(self, folder: Path) -> str:
        waits = len(load_state(folder).pending)
        if waits:
            return f"{waits} more to decide before the task continues."
        self._continuations.begin(folder)
        return "The task continues."
