"""The pages of one repository, made from the files of its tasks, and the page's actions."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from agentflow.api.decisions import answer_question, decide_approval, parse_edited_input, send_message
from agentflow.api.undo import OPEN, UndoResult, cancel_task, undo
from agentflow.api.worktree import list_homes, open_home
from agentflow.core.errors import Exit, StateError, TaskLocked, TaskNotFound, UsageError
from agentflow.core.pending import APPROVED, Answer, Pending, to_letter
from agentflow.core.record import Record
from agentflow.core.task import Status
from agentflow.pages.page import TaskPage, read_task_page
from agentflow.pages.render import describe_pending, render_parts
from agentflow.pages.templates import fill_template, to_markup
from agentflow.parse import decode
from agentflow.process import DetachedProgram, detach
from agentflow.redact import list_some, strip_colours, to_one_line
from agentflow.store import reading
from agentflow.store.ownership import is_at_work
from agentflow.store.reading import load_state
from agentflow.store.sessions import load_sessions
from agentflow.view.tasks import INTERRUPTED, UNDONE, TaskRow, describe_task
from agentflow.view.words import style_status
from agentflow.workspace.git import Git

_NO_VERDICT = (Exit.CONFIG, Exit.NO_MODEL, Exit.NO_SANDBOX, Exit.INTERNAL)
"""Exit codes that the task's own files may not explain."""
_BY = "the page"
_SHOWN = 20
_OUTPUT_PAGE_BYTES = 64 * 1024
"""The bytes of an output that one page shows."""
_RESUMABLE = (Status.RUNNING, Status.SUSPENDED, Status.CANCELLED, Status.ERROR)
_TONES: Mapping[str | None, str] = {
    **{status: style_status(status).name.lower() for status in Status},
    INTERRUPTED: "warn",
    UNDONE: "warn",
    None: "bad",
}
"""By each status in the list."""
_INNER = ("run-", "turn-")
"""Parts that stand in another; the script of the page puts them there."""
Parts = Mapping[str, str]
_Stamp = tuple[object, ...]


class _Approval(Record):
    pending: str
    comment: str = ""
    input: str = ""
    """The input that the call is made with instead, as JSON; empty: the one that was asked about."""


class _Denial(Record):
    pending: str
    reason: str


class _MessageText(Record):
    said: tuple[str, ...]
    """A text, or one for each question."""


class _Undo(Record):
    dry_run: bool = True
    force: bool = False


def to_home(folder: Path) -> Path:
    """Return the repository or the worktree that a task's folder lies in."""
    return folder.parents[2]


class Continuations:
    """The processes that continue tasks after a decision on the page; each outlives the server."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._begun: dict[Path, DetachedProgram] = {}
        """By the folder of the task."""

    def begin(self, folder: Path) -> None:
        """Start `agentflow resume`. Raises TaskLocked while a task is at work."""
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
    """The actions on the tasks of one repository."""

    def __init__(self, continuations: Continuations, find_git: Callable[[Path], Git]) -> None:
        """Take what returns the repository or worktree of a task's folder."""
        self._continuations = continuations
        self._find_git = find_git

    def run(self, name: str, folder: Path, body: bytes) -> str:
        """Do what a person asked for and return what came of it. Raises AgentflowError."""
        match name:
            case "approve":
                return self._approve(folder, decode(_Approval, body, "approval"))
            case "deny":
                return self._deny(folder, decode(_Denial, body, "denial"))
            case "answer":
                answer_question(
                    self._find_git(folder).root, folder.name, decode(_MessageText, body, "answer").said
                )
                return f"Answered. {self._go_on(folder)}"
            case "say":
                return self._say(folder, " ".join(decode(_MessageText, body, "message").said))
            case "stop":
                return self._stop(folder)
            case "resume":
                self._continuations.begin(folder)
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
        made = decide_approval(self._find_git(folder).root, pending_id, decision, task_id=folder.name)
        if made.before:
            return f"{pending_id} was already decided: {made.word}."
        return f"{pending_id} {made.word}. {self._go_on(folder)}"

    def _go_on(self, folder: Path) -> str:
        """Continue a task for which nothing is left to decide."""
        waits = len(load_state(folder).pending)
        if waits:
            return f"{waits} more to decide before the task continues."
        self._continuations.begin(folder)
        return "The task continues."

    def _say(self, folder: Path, text: str) -> str:
        if not text.strip():
            raise UsageError("the message is empty")
        send_message(self._find_git(folder), folder, text)
        return "The working role reads it before its next turn."

    def _undo(self, folder: Path, wish: _Undo) -> str:
        root = self._find_git(folder).root
        return _describe_undo(undo(folder.name, folder=root, dry_run=wish.dry_run, force=wish.force))

    def _stop(self, folder: Path) -> str:
        status = load_state(folder).status
        if status not in OPEN:
            raise StateError(f"the task is over: {status}")
        ending = cancel_task(self._find_git(folder).root, folder.name)
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


class _KeptTask(NamedTuple):
    """A task's page, and the state of its files that it was made from."""

    stamp: _Stamp
    page: TaskPage
    parts: Parts


class Site:
    """The pages that the server shows; files that did not change are not read again."""

    def __init__(self, git: Git) -> None:
        self._root = git.root
        self._homes: dict[Path, Git] = {git.root: git}
        self._continuations = Continuations(git.root)
        self._tasks: dict[str, _KeptTask] = {}
        self._rows: dict[str, tuple[_Stamp, TaskRow]] = {}
        self.actions = Actions(self._continuations, self.open_home)

    def find_task(self, task_id: str) -> Path:
        """Return the folder of a task of this repository or a worktree of it. Raises TaskNotFound."""
        found = self._list_tasks().get(task_id) if reading.is_task_id(task_id) else None
        if found is None:
            raise TaskNotFound(f"{to_one_line(task_id, 60)} is not a task of this repository")
        return found

    def open_home(self, folder: Path) -> Git:
        """Return the repository or the worktree that a task's folder lies in. Raises StateError."""
        home = to_home(folder)
        if home not in self._homes:
            self._homes[home] = open_home(self._root, folder.name)
        return self._homes[home]

    def _list_tasks(self) -> dict[str, Path]:
        """Return the folders of all tasks by their ids, newest last."""
        homes = list_homes(self._root)
        found = {name: home / reading.TASKS / name for home in homes for name in reading.list_tasks(home)}
        return dict(sorted(found.items())) if len(homes) > 1 else found

    def show_list(self) -> str:
        """Return the page of all tasks."""
        return self._fill_page("web/list.html", title="Tasks", up="", parts=self.render_list())

    def render_list(self) -> Parts:
        """Return the tasks and sessions as parts of a page."""
        tasks = self._list_tasks()
        works = {home: self._continuations.is_at_work(home) for home in set(map(to_home, tasks.values()))}
        rows = {
            name: self._describe(folder, is_at_work=works[to_home(folder)])
            for name, folder in reversed(tasks.items())
        }
        sessions = load_sessions(self._root)
        return {
            "tasks": fill_template("web/tasks.html", rows=tuple(rows.values()), tones=_TONES),
            "sessions": fill_template(
                "web/sessions.html",
                sessions=sessions.readable,
                rows=rows,
                tones=_TONES,
                problem="; ".join(map(str, sessions.damaged)),
            ),
        }

    def show_task(self, task_id: str) -> str:
        """Return the page of a task. Raises TaskNotFound."""
        parts = self.render_task(task_id)
        title = self._describe(self.find_task(task_id), is_at_work=False).task or task_id
        return self._fill_page("web/task.html", title=title, up="../../", parts=parts)

    def render_task(self, task_id: str) -> Parts:
        """Return the parts of a task's page. Raises TaskNotFound."""
        folder = self.find_task(task_id)
        is_at_work = self._continuations.is_at_work(to_home(folder))
        failure = self._continuations.explain_failure(folder)
        stamp = (*_stamp_task(folder), is_at_work, failure)
        kept = self._tasks.get(task_id)
        if kept is None or kept.stamp != stamp:
            before = kept.page if kept else None
            page = read_task_page(folder, self.open_home(folder), at_work=is_at_work, before=before)
            kept = _KeptTask(stamp, page, _render_all(page, failure))
            self._tasks[task_id] = kept
        return kept.parts

    def show_evidence(self, task_id: str, evidence_id: str, number: int) -> str:
        """Return a page of what a command printed. Raises TaskNotFound."""
        folder = self.find_task(task_id)
        record = next((one for one in reading.read_evidence(folder) if one.id == evidence_id), None)
        if record is None:
            raise TaskNotFound(f"there is no evidence {to_one_line(evidence_id, 60)} in this task")
        path = folder / reading.EVIDENCE / f"{record.id}.out"
        size = path.stat().st_size if path.is_file() and not path.is_symlink() else 0
        pages = max(1, -(-size // _OUTPUT_PAGE_BYTES))
        number = min(max(1, number), pages)
        return self._fill_page(
            "web/evidence.html",
            title=record.id,
            up="../../../",
            record=record,
            output=_read_output_page(path, number) if size else "",
            number=number,
            pages=pages,
            size=size,
        )

    def _fill_page(self, name: str, *, parts: Parts | None = None, **values: object) -> str:
        shown = [to_markup(text) for part, text in (parts or {}).items() if not part.startswith(_INNER)]
        return fill_template(name, repository=self._root.name, parts=shown, **values)

    def _describe(self, folder: Path, *, is_at_work: bool) -> TaskRow:
        """Return a task's row, read again only where its events have changed."""
        stamp = (_stamp(folder / reading.EVENTS), is_at_work)
        kept = self._rows.get(folder.name)
        if kept is None or kept[0] != stamp:
            kept = (stamp, describe_task(folder, at_work=is_at_work))
            self._rows[folder.name] = kept
        return kept[1]


def render_error(message: str, hint: str) -> str:
    """Return a page that says what is wrong."""
    return fill_template("web/error.html", message=message, hint=hint)


def _render_all(page: TaskPage, failure: str) -> Parts:
    """Return the parts of a page; what a person can do and decide comes after its head."""
    parts = dict(render_parts(page, evidence_link="evidence/{}"))
    if page.snapshot is None:
        return parts
    state = page.snapshot.state
    items = [(item, describe_pending(item, state.task_id), _list_questions(item)) for item in state.pending]
    controls = fill_template(
        "web/controls.html",
        is_open=state.status in OPEN,
        can_resume=state.status in _RESUMABLE and not items and not page.at_work,
        can_undo=state.undone is None and not page.at_work and not state.reads_only,
        failure=failure,
    )
    waiting = fill_template("web/waiting.html", items=items, approved=APPROVED) if items else ""
    mine = {"waiting": waiting, "controls": controls}
    return {"head": parts.pop("head"), **{name: text for name, text in mine.items() if text}, **parts}


def _list_questions(item: Pending) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the questions, and of each the options with their letters."""
    return [
        (one.text, [(to_letter(place), option) for place, option in enumerate(one.options)])
        for one in item.questions
    ]


def _read_output_page(path: Path, number: int) -> str:
    with path.open("rb") as file:
        file.seek((number - 1) * _OUTPUT_PAGE_BYTES)
        return strip_colours(file.read(_OUTPUT_PAGE_BYTES).decode("utf-8", "replace"))


def _stamp_task(folder: Path) -> _Stamp:
    """Return what differs once a file of a task has changed."""
    return tuple(_stamp(place) for place in _list_changing(folder))


def _list_changing(folder: Path) -> Iterator[Path]:
    yield folder / reading.EVENTS
    yield folder / reading.EVIDENCE
    yield from sorted((folder / "runs").glob("*.jsonl"))


def _stamp(path: Path) -> tuple[str, int, int]:
    try:
        found = path.stat()
    except OSError:
        return path.name, 0, 0
    return path.name, found.st_mtime_ns, found.st_size
