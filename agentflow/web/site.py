"""The pages of one repository, made from the files of its tasks."""

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from agentflow.api.memory import list_memory
from agentflow.api.undo import OPEN
from agentflow.api.worktree import list_homes, open_home
from agentflow.core.errors import StateError, TaskNotFound
from agentflow.core.pending import APPROVED, Pending, to_letter
from agentflow.core.task import Status
from agentflow.memory.entry import EntryKind
from agentflow.pages.page import TaskPage, read_task_page
from agentflow.pages.render import describe_pending, render_parts
from agentflow.pages.templates import fill_template, to_markup
from agentflow.redact import strip_colours, to_one_line
from agentflow.store import reading
from agentflow.store.reading import load_state
from agentflow.store.sessions import load_sessions
from agentflow.view.tasks import INTERRUPTED, UNDONE, TaskRow, describe_task
from agentflow.view.words import format_local, style_status
from agentflow.web.actions import Actions, Continuations, to_home
from agentflow.web.links import Links
from agentflow.workspace.git import Git

_OUTPUT_PAGE_BYTES = 64 * 1024
_MOST_REMEMBERED = 500
_RESUMABLE = (Status.RUNNING, Status.SUSPENDED, Status.CANCELLED, Status.ERROR)
_TONES: Mapping[str | None, str] = {
    **{status: style_status(status).name.lower() for status in Status},
    INTERRUPTED: "warn",
    UNDONE: "warn",
    None: "bad",
}
_INNER = ("run-", "turn-")
"""Parts that stand in another; the script of the page puts them there."""
Parts = Mapping[str, str]
_Stamp = tuple[object, ...]


class _KeptTask(NamedTuple):
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
        self.links = Links()
        self._deciding = Lock()
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
        homes = list_homes(self._root)
        found = {name: home / reading.TASKS / name for home in homes for name in reading.list_tasks(home)}
        return dict(sorted(found.items())) if len(homes) > 1 else found

    def show_list(self) -> str:
        return self._fill_page("web/list.html", title="Tasks", up="", parts=self.render_list())

    def render_list(self) -> Parts:
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

    def show_memory(self) -> str:
        newest = partial(list_memory, self._homes[self._root], _MOST_REMEMBERED)
        kinds = [(f"{kind.capitalize()}s", newest(kind=kind)) for kind in EntryKind]
        more = any(len(entries) == _MOST_REMEMBERED for _, entries in kinds)
        return self._fill_page("web/memory.html", title="Memory", up="./", kinds=kinds, more=more)

    def show_task(self, task_id: str) -> str:
        parts = self.render_task(task_id)
        title = self._describe(self.find_task(task_id), is_at_work=False).task or task_id
        return self._fill_page("web/task.html", title=title, up="../../", parts=parts)

    def render_task(self, task_id: str) -> Parts:
        folder = self.find_task(task_id)
        is_at_work = self._continuations.is_at_work(to_home(folder))
        failure = self._continuations.explain_failure(folder)
        runs = sorted((folder / "runs").glob("*.jsonl"))
        files = map(_stamp, (folder / reading.EVENTS, folder / reading.EVIDENCE, *runs))
        stamp = (*files, is_at_work, failure)
        kept = self._tasks.get(task_id)
        if kept is None or kept.stamp != stamp:
            before = kept.page if kept else None
            page = read_task_page(folder, self.open_home(folder), at_work=is_at_work, before=before)
            kept = _KeptTask(stamp, page, _render_all(page, failure))
            self._tasks[task_id] = kept
        return kept.parts

    def make_link(self, task_id: str, pending_id: str, address: str) -> str:
        """Return in a line a link that decides one thing. Raises StateError."""
        state = load_state(self.find_task(task_id))
        item = next((one for one in state.pending if one.id == pending_id and one.kind in APPROVED), None)
        if item is None:
            raise StateError(f"{to_one_line(pending_id, 60)} does not wait for an approval")
        text, until = self.links.make(task_id, item)
        return f"One-time link for this decision, valid until {format_local(until)}: {address}decide/{text}/"

    def show_link(self, text: str) -> str:
        """Return the page of a signed link. Raises StateError for one that is not valid."""
        link = self.links.read(text)
        folder = self.find_task(link.task)
        items = [item for item in load_state(folder).pending if item.id == link.pending]
        if any(item.identity != link.seen for item in items):
            raise StateError(f"{link.pending} was changed meanwhile", hint="the page makes a new link")
        title = f"A decision about task {link.task}"
        waiting = to_markup(_render_waiting(items, folder, is_link=True))
        return self._fill_page("web/decide.html", title=title, up="../", waiting=waiting)

    def follow_link(self, text: str, action: str, body: bytes) -> str:
        """Decide by a signed link, which is spent unless that fails. Raises AgentflowError."""
        with self._deciding:
            link = self.links.read(text)
            said = self.actions.run_link(action, self.find_task(link.task), body, link)
            self.links.used.add(link.nonce)
        return said

    def show_evidence(self, task_id: str, evidence_id: str, number: int) -> str:
        folder = self.find_task(task_id)
        record = next((one for one in reading.read_evidence(folder) if one.id == evidence_id), None)
        if record is None:
            raise TaskNotFound(f"there is no evidence {to_one_line(evidence_id, 60)} in this task")
        path = folder / reading.EVIDENCE / f"{record.id}.out"
        size = path.stat().st_size if path.is_file() and not path.is_symlink() else 0
        pages = max(1, -(-size // _OUTPUT_PAGE_BYTES))
        number = min(max(1, number), pages)
        output = b""
        if size:
            with path.open("rb") as file:
                file.seek((number - 1) * _OUTPUT_PAGE_BYTES)
                output = file.read(_OUTPUT_PAGE_BYTES)
        return self._fill_page(
            "web/evidence.html",
            title=record.id,
            up="../../../",
            record=record,
            output=strip_colours(output.decode("utf-8", "replace")),
            number=number,
            pages=pages,
            size=size,
        )

    def _fill_page(self, name: str, *, parts: Parts | None = None, **values: object) -> str:
        shown = [to_markup(text) for part, text in (parts or {}).items() if not part.startswith(_INNER)]
        return fill_template(name, repository=self._root.name, parts=shown, **values)

    def _describe(self, folder: Path, *, is_at_work: bool) -> TaskRow:
        stamp = (_stamp(folder / reading.EVENTS), is_at_work)
        kept = self._rows.get(folder.name)
        if kept is None or kept[0] != stamp:
            kept = (stamp, describe_task(folder, at_work=is_at_work))
            self._rows[folder.name] = kept
        return kept[1]


def render_error(message: str, hint: str) -> str:
    return fill_template("web/error.html", message=message, hint=hint)


def _render_all(page: TaskPage, failure: str) -> Parts:
    parts = dict(render_parts(page, evidence_link="evidence/{}"))
    if page.snapshot is None:
        return parts
    state = page.snapshot.state
    folder = page.snapshot.folder
    controls = fill_template(
        "web/controls.html",
        is_open=state.status in OPEN,
        can_resume=state.status in _RESUMABLE and not state.pending and not page.at_work,
        can_undo=state.undone is None and not page.at_work and not state.reads_only,
        failure=failure,
    )
    waiting = _render_waiting(state.pending, folder, is_link=False)
    mine = {"waiting": waiting, "head": parts.pop("head"), "controls": controls}
    return {**{name: text for name, text in mine.items() if text}, **parts}


def _render_waiting(pending: Iterable[Pending], folder: Path, *, is_link: bool) -> str:
    items = []
    for item in pending:
        lettered = [
            (one.text, [(to_letter(place), option) for place, option in enumerate(one.options)])
            for one in item.questions
        ]
        items.append((item, describe_pending(item, folder), lettered))
    values = {"items": items, "approved": APPROVED, "is_link": is_link}
    return fill_template("web/waiting.html", **values) if items else ""


def _stamp(path: Path) -> tuple[str, int, int]:
    try:
        found = path.stat()
    except OSError:
        return path.name, 0, 0
    return path.name, found.st_mtime_ns, found.st_size
