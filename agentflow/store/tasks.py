"""A task's folder: its events, its `task.md`, its runs and its evidence."""

import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from agentflow.core.events import Event, IntentTold, PhaseEnded, Stamped, StateChanged, Warned
from agentflow.core.evidence import Evidence
from agentflow.core.record import encode, plain, sealed
from agentflow.core.task import FRONTMATTER_KEYS, GateStatus, Intent, TaskState
from agentflow.core.todo import PlanChanged
from agentflow.frontmatter import write_atomic, write_whole
from agentflow.parse import fit
from agentflow.redact import json_visible, nested, redacted
from agentflow.store.journal import AppendFile, RunFile, mend_tail
from agentflow.store.ledger import EvidenceLedger
from agentflow.store.observers import tell
from agentflow.store.reading import EVENTS, TASKS, events, evidence_of, folded, intents, stamped, state_of
from agentflow.store.task_file import edited_intent, write_task

NEWEST = Path(".claude/orchestration.local.md")
_SHOWN = frozenset(FRONTMATTER_KEYS) - {"usage"}
"""Keys whose change rewrites `task.md`; the tokens used are written along with the next one."""
_NEVER = object()


def new_task_id() -> str:
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


class TaskStore:
    """One task on disk: `events.jsonl` is the truth, `task.md` is folded from it."""

    def __init__(
        self, folder: Path, task: TaskState, happened: tuple[Stamped, ...], known: tuple[Evidence, ...]
    ) -> None:
        """Take over a folder and what has happened in it; `create` and `reopen` are the ways in."""
        self.folder = folder
        self.task = task
        self.observers: list[Callable[[Stamped], None]] = []
        self._seq = happened[-1].seq if happened else 0
        self._saved: dict[str, Any] = {}
        self._log: list[str] = []
        for one in happened:
            self._note(one.event)
        self._events = AppendFile(folder / EVENTS)
        self.ledger = EvidenceLedger(folder, task, self.emit, known)

    @classmethod
    def create(cls, root: Path, task: TaskState) -> Self:
        """Make the folder of a new task and write its text to disk before anything else happens."""
        folder = root / TASKS / task.task_id
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for place in (folder, *(folder / name for name in ("runs", "evidence", "outputs"))):
            place.mkdir(mode=0o700)
        write_whole(folder / ".gitignore", b"*\n")
        store = cls(folder, task, (), ())
        store.save(task)
        store.point_here(root)
        return store

    @classmethod
    def reopen(cls, folder: Path) -> Self:
        """Go on with a task, also one of an older version. Raises CorruptState, and writes nothing then."""
        happened = tuple(events(folder))
        task, known = state_of(folder, happened), evidence_of(folder)
        mend_tail(folder / EVENTS)
        store = cls(folder, task, happened, known)
        store._saved = folded(folder, happened)
        store.save(task)  # keys that an older version did not have, once
        store._take_edits(intents(happened))
        return store

    def _take_edits(self, known: list[Intent]) -> None:
        """Take over an intent that somebody wrote into `task.md`; one that stood there before is old."""
        edited = edited_intent(self.folder / "task.md")
        if edited is not None and edited not in known:
            self.emit(Warned(message="the intent in task.md was edited by hand, and counts"))
            self.save(self.task.replace(intent=edited))

    def emit(self, event: Event, parent: int | None = None) -> None:
        """Append an event, then tell the observers; one that raises is told no more.

        `parent` is the run that asked for the sub-agent it is about.
        """
        self._seq += 1
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        head = b'{"seq":%d,"at":"%s",' % (self._seq, at.encode())
        said = encode(event)
        written = json_visible(redacted(said.decode())).encode()
        above = b"" if parent is None else b',"parent":%d' % parent
        body = b'%s%s%s,"task_id":"%s"}' % (head, written[1:-1], above, self.task.task_id.encode())
        line = sealed(body)
        self._events.append(line, durable=isinstance(event, StateChanged))
        happened = None if said == written else stamped(line)
        if happened is None:
            happened = Stamped(seq=self._seq, at=at, event=event, parent=parent)
        self._note(happened.event)
        for failure in tell(self.observers, happened):
            self.emit(Warned(message=failure))

    def save(self, task: TaskState) -> None:
        """Append what changed since the last save; rewrite `task.md` when a reader would see it."""
        self.task = task
        state = plain(task)
        changed = {key: value for key, value in state.items() if self._saved.get(key, _NEVER) != value}
        if not changed:
            return
        before, self._saved = self._saved, state
        self.emit(StateChanged(changed=changed))
        if "todos" in changed and "todos" in before:
            self.emit(_plan_changed(before["todos"], state["todos"]))
        if changed.keys() & _SHOWN:
            write_task(self.folder / "task.md", task, "".join(self._log))

    def change(self, values: dict[str, Any]) -> None:
        """Save new values of some keys, as a tool call gave them."""
        self.save(fit(TaskState, {**self._saved, **values}))

    def run_path(self, number: int, role: str) -> Path:
        return self.folder / "runs" / f"{number}-{role}.jsonl"

    def transcript_paths(self, role: str) -> tuple[Path, ...]:
        return tuple((self.folder / "runs").glob(f"[0-9]*-{role}.jsonl"))

    def open_run(self, number: int, role: str) -> RunFile:
        """Return the journal of a run; state that its calls change is saved as they end."""
        return RunFile(self.run_path(number, role), self.change)

    def write_report(self, text: str) -> Path:
        path = self.folder / "report.md"
        write_atomic(path, redacted(text).encode())
        return path

    def point_here(self, root: Path) -> None:
        """Let the well-known symlink lead to this task; what is there and not ours stays."""
        link = root / NEWEST
        is_ours = link.is_symlink() and link.resolve().is_relative_to((root / TASKS).resolve())
        if link.exists() and not is_ours:
            self.emit(Warned(message=f"{NEWEST} is not our link: left alone"))
            return
        fresh = link.with_name(f".{link.name}.{self.task.task_id}")
        fresh.symlink_to(Path("agentflow") / self.task.task_id / "task.md")
        fresh.replace(link)

    def _note(self, event: Event) -> None:
        """Keep the log of `task.md` for events that people read."""
        match event:
            case PhaseEnded(status=GateStatus.SKIPPED):
                pass
            case PhaseEnded():
                title = f"\n### Iteration {event.iteration} / {event.phase} / {event.status}\n"
                self._log.append(f"{title}{nested(event.message)}\n")
            case IntentTold():
                gaps = "".join(f"- {nested(gap)}\n" for gap in event.gaps) or "- gaps: none\n"
                self._log.append(f"\n### Intent\n- goal: {nested(event.goal)}\n{gaps}")
            case Warned():
                self._log.append(f"\n> {nested(event.message)}\n")
            case _:
                pass


def _plan_changed(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> PlanChanged:
    old, new = ({todo["id"]: todo for todo in todos} for todos in (before, after))
    return PlanChanged(
        added=tuple(number for number in new if number not in old),
        changed=tuple(number for number in new if number in old and old[number] != new[number]),
        removed=tuple(number for number in old if number not in new),
    )
