"""A task's folder: its events, its `task.md`, its runs and its evidence."""

import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from agentflow.core.errors import AgentflowError, CorruptState
from agentflow.core.events import (
    Event,
    HandEdited,
    PlanChanged,
    StateChanged,
    StoredEvent,
    TaskUndone,
    Warned,
)
from agentflow.core.evidence import Evidence
from agentflow.core.record import encode, to_builtins
from agentflow.core.role import Plan
from agentflow.core.task import Status, TaskState, UndoMark, gather_parts
from agentflow.frontmatter import write_atomic, write_whole
from agentflow.parse import fit
from agentflow.process import make_timestamp
from agentflow.redact import make_json_visible, make_visible, nest_text, redact_text, to_one_line
from agentflow.store.journal import AppendFile, RunFile, cut_torn_line, read_numbered_lines
from agentflow.store.ledger import REPORT, EvidenceLedger, find_report_hash, hash_file
from agentflow.store.reading import (
    EVENTS,
    TASKS,
    find_state_folder,
    fold_fields,
    fold_state,
    load_events,
    parse_event,
    read_evidence,
    seal,
    to_log_text,
)
from agentflow.store.task_file import (
    SHOWN,
    STATE,
    Edits,
    find_edits,
    format_plan,
    read_task_text,
    write_task,
)

NEWEST = Path(".claude/orchestration.local.md")
_NEVER = object()


def make_task_id() -> str:
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


class TaskStore:
    """One task on disk: `events.jsonl` is the truth, `task.md` is folded from it."""

    def __init__(
        self, folder: Path, task: TaskState, happened: tuple[StoredEvent, ...], known: tuple[Evidence, ...]
    ) -> None:
        """Take over a folder and what has happened in it; `create` and `reopen` are the ways in."""
        for name in ("runs", "evidence", "outputs"):  # git keeps no empty folder of a task that is cloned
            (folder / name).mkdir(mode=0o700, exist_ok=True)
        self.folder = folder
        self.task = task
        self.observers: list[Callable[[StoredEvent], None]] = []
        self._seq = sum(1 for _ in read_numbered_lines(folder / EVENTS)) if happened else 0
        self._saved: dict[str, Any] = {}
        self._log: list[str] = []
        self._notes = ""
        for one in happened:
            self._note(one.event)
        self._events = AppendFile(folder / EVENTS)
        self.ledger = EvidenceLedger(folder, task, self.emit, known)

    @classmethod
    def create(cls, root: Path, task: TaskState) -> Self:
        """Make the folder of a new task and write its text to disk before anything else happens."""
        folder = find_state_folder(root) / task.task_id
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700)
        write_whole(folder / ".gitignore", b"*\n")
        store = cls(folder, task, (), ())
        store.save(task)
        store.point_here(root)
        return store

    @classmethod
    def reopen(cls, folder: Path) -> Self:
        """Go on with a task, also one of an older version. Raises CorruptState, and writes nothing then."""
        _require_no_links(folder)
        happened = tuple(load_events(folder))
        task, known = fold_state(folder, happened), read_evidence(folder)
        if task.task_id != folder.name:
            raise CorruptState(f"{folder / EVENTS}: it is of the task {to_one_line(task.task_id, 60)}")
        return cls._reopen(folder, task, happened, known)

    @classmethod
    def reopen_to_undo(cls, folder: Path) -> Self:
        """Go on with a task whose files are put back, for which neither its evidence nor `task.md` is needed.

        A `task.md` that cannot be read is kept beside the one that is written in its place.
        """
        _require_no_links(folder)
        happened = tuple(load_events(folder))
        task, aside = fold_state(folder, happened), f"{STATE}.unreadable-{secrets.token_hex(2)}"
        try:
            find_edits(folder, happened)
        except AgentflowError as error:
            (folder / STATE).rename(folder / aside)
            store = cls._reopen(folder, task, happened, ())
            store.emit(Warned(message=f"{error}; it is kept as {aside}"))
            return store
        return cls._reopen(folder, task, happened, ())

    @classmethod
    def _reopen(
        cls, folder: Path, task: TaskState, happened: tuple[StoredEvent, ...], known: tuple[Evidence, ...]
    ) -> Self:
        """Return a saved task with the edits in its `task.md`; a torn last event is dropped."""
        edits = find_edits(folder, happened)
        cut_torn_line(folder / EVENTS)
        store = cls(folder, task, happened, known)
        store._saved = fold_fields(folder, happened)
        store.save(task)  # keys that an older version did not have, once
        store._take_edits(edits)
        return store

    def _take_edits(self, edits: Edits) -> None:
        """Take over the edits in `task.md`, warn of those without effect, and rewrite the file."""
        for line in edits.ignored:
            self.emit(Warned(message=line))
        if edits.notes is not None:
            self.emit(HandEdited(part="body", text=edits.notes))
        if edits.intent is not None:
            before, after = to_builtins(self.task.intent), to_builtins(edits.intent)
            changed = ", ".join(key for key in after if after[key] != before[key])
            self.emit(HandEdited(part="intent", text=changed))
            self.emit(Warned(message="the intent in task.md was edited by hand and counts"))
            self.save(self.task.replace(intent=edits.intent))
        elif edits != Edits():
            self._show()

    def _show(self) -> None:
        write_task(self.folder / STATE, self.task, "".join(self._log), self._notes)

    def emit(self, event: Event, parent: int | None = None) -> None:
        """Append an event, then call the observers; one that raises is called no more.

        `parent` is the run above, for an event of a sub-agent.
        """
        self._seq += 1
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        head = b'{"seq":%d,"at":"%s",' % (self._seq, at.encode())
        said = encode(event)
        written = make_json_visible(redact_text(said.decode())).encode()
        above = b"" if parent is None else b',"parent":%d' % parent
        body = b'%s%s%s,"task_id":"%s"}' % (head, written[1:-1], above, self.task.task_id.encode())
        line = seal(body)
        self._events.append(line, durable=isinstance(event, StateChanged))
        happened = None if said == written else parse_event(line)
        if happened is None:
            happened = StoredEvent(seq=self._seq, at=at, event=event, parent=parent)
        self._note(happened.event)
        for failure in tell_observers(self.observers, happened):
            self.emit(Warned(message=failure))

    def save(self, task: TaskState) -> None:
        """Append what changed since the last save; rewrite `task.md` when a reader would see it."""
        self.task = task
        state = task.to_fields()
        changed = {key: value for key, value in state.items() if self._saved.get(key, _NEVER) != value}
        if not changed:
            return
        before, self._saved = self._saved, state
        self.emit(StateChanged(changed=changed))
        if "todos" in changed and "todos" in before:
            self.emit(_to_plan_change(before["todos"], state["todos"]))
        if changed.keys() & SHOWN:
            self._show()

    def change(self, values: dict[str, Any]) -> None:
        """Save new values of some keys, as a tool call gave them."""
        self.save(fit(TaskState, gather_parts({**self._saved, **values})))

    def run_path(self, number: int, role: str) -> Path:
        return self.folder / "runs" / f"{number}-{role}.jsonl"

    def list_transcripts(self, role: str) -> tuple[Path, ...]:
        return tuple((self.folder / "runs").glob(f"[0-9]*-{role}.jsonl"))

    def open_run(self, number: int, role: str) -> RunFile:
        """Return the journal of a run; state that its calls change is saved as they end."""
        return RunFile(self.run_path(number, role), self.change)

    def write_report(self, text: str) -> Path:
        path = self.folder / REPORT
        write_atomic(path, redact_text(text).encode())
        return path

    def locate_plan(self, name: str) -> Path:
        return self.folder / f"{name}.md"

    def write_plan(self, name: str, plan: Plan) -> None:
        write_atomic(self.locate_plan(name), redact_text(f"{format_plan(plan)}\n").encode())

    def read_edited_plan(self, name: str, plan: Plan) -> str:
        """Return a plan as a person edited it; nothing where it stands as it was. Raises InvalidFile."""
        try:
            text = read_task_text(self.locate_plan(name)).strip()
        except OSError:
            return ""
        return "" if text == redact_text(format_plan(plan)).strip() else text

    def mark_undone(self, restored: tuple[str, ...], removed: tuple[str, ...], kept: tuple[str, ...]) -> None:
        """Record that the files were put back; the report says so too, unless it was edited."""
        undone = UndoMark(at=make_timestamp(), kept=kept)
        was, path = self.task.status, self.folder / REPORT
        self.save(self.task.replace(undone=undone))
        is_ours = path.is_file() and hash_file(path) == find_report_hash(load_events(self.folder))
        text = build_undone_report(path.read_text("utf-8"), undone, was, self.task.title) if is_ours else ""
        digest = hash_file(self.write_report(text)) if is_ours else ""
        self.emit(TaskUndone(restored=restored, removed=removed, kept=kept, was=was, report=digest))

    def point_here(self, root: Path) -> None:
        """Let the well-known symlink lead to this task; what is there and not ours stays."""
        link = root / NEWEST
        is_ours = link.is_symlink() and link.resolve().is_relative_to((root / TASKS).resolve())
        if link.exists() and not is_ours:
            self.emit(Warned(message=f"{NEWEST} is not a link of agentflow: left alone"))
            return
        fresh = link.with_name(f".{link.name}.{self.task.task_id}")
        fresh.symlink_to(Path("agentflow") / self.task.task_id / "task.md")
        fresh.replace(link)

    def _note(self, event: Event) -> None:
        """Keep the log of `task.md` for events that people read."""
        self._log.append(to_log_text(event))
        if isinstance(event, HandEdited) and event.part == "body":
            self._notes = event.text


def build_undone_report(text: str, undone: UndoMark, was: Status, title: str) -> str:
    """Return a report whose first line says that its task was undone."""
    kept = "".join(f"- {nest_text(path)}\n" for path in undone.kept)
    said = f"\n## Kept, because the task did not change it\n{kept}" if kept else ""
    head = f"# undone {undone.at} (was: {was}): {make_visible(title.strip().partition(chr(10))[0])}"
    return f"{head}\n{said}{text.partition(chr(10))[2]}"


def tell_observers(observers: list[Callable[[Any], None]], event: object) -> list[str]:
    """Tell each observer in turn, drop those that raise, and return a warning for each of these."""
    failures = []
    for observer in tuple(observers):
        try:
            observer(event)
        except Exception as error:  # noqa: BLE001  # an observer cannot break the task
            observers[:] = [each for each in observers if each is not observer]
            name = getattr(observer, "__qualname__", type(observer).__name__)
            failures.append(f"{name} is no longer called: {to_one_line(f'{type(error).__name__}: {error}')}")
    return failures


def _require_no_links(folder: Path) -> None:
    """Raise CorruptState for a link in a task's folder, through which writing would lead elsewhere."""
    for place in (folder, *folder.iterdir(), *folder.glob("*/*")):
        if place.is_symlink():
            raise CorruptState(f"{place} is a link", hint="nothing was changed; look at the file")


def _to_plan_change(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> PlanChanged:
    old, new = ({todo["id"]: todo for todo in todos} for todos in (before, after))
    return PlanChanged(
        added=tuple(number for number in new if number not in old),
        changed=tuple(number for number in new if number in old and old[number] != new[number]),
        removed=tuple(number for number in old if number not in new),
    )
