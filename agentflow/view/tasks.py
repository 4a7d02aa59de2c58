"""A task folder read into a snapshot, and the tasks of a repository as a table."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

from agentflow.core.errors import CorruptState
from agentflow.core.events import StateChanged, StoredEvent
from agentflow.core.evidence import Evidence
from agentflow.core.record import Record
from agentflow.core.task import Status, TaskState
from agentflow.redact import format_count, format_money, to_one_line
from agentflow.store.reading import EVIDENCE, fold_state, load_events, load_state, read_evidence
from agentflow.view.text import Line, Span, Style, line, span, tabulate
from agentflow.view.words import mark_status, style_status

INTERRUPTED = "interrupted"
UNDONE = "undone"
_VERDICTS: Mapping[Status, str] = {
    Status.VERIFIED: "verified",
    Status.VERIFIED_WITH_CAVEAT: "verified_with_caveat",
    Status.ANSWERED: "answered",
    Status.FAILED: "not_verified",
    Status.LIMIT: "not_verified",
    Status.TAMPERED: "not_verified",
}
"""The result of a task that ended by itself."""
_UNITS: Mapping[str, int] = {"day": 86_400, "hour": 3_600, "minute": 60}
_HEADS = ("task", "when", "status", "exit", "cost", "first words")
_MOST_WORDS = 200


class TaskRow(Record):
    """A task in a list; one that cannot be read has only its id and the error."""

    task_id: str
    started_at: str | None = None
    task: str | None = None
    status: str | None = None
    """A status of a task, `interrupted` where its process has gone, or `undone`."""
    verdict: str | None = None
    exit_code: int | None = None
    cost_usd: float | None = None
    error: str | None = None


def describe_task(folder: Path, *, at_work: bool) -> TaskRow:
    try:
        state = load_state(folder)
    except CorruptState as error:
        problem = str(error).replace(f"{folder}/", "")
        return TaskRow(task_id=folder.name, error=to_one_line(problem, _MOST_WORDS))
    return TaskRow(
        task_id=folder.name,
        started_at=state.started_at,
        task=to_one_line(state.title, _MOST_WORDS),
        status=name_status(state, at_work=at_work),
        verdict=_VERDICTS.get(state.status),
        exit_code=int(state.ending.exit_code) if state.ending else None,
        cost_usd=state.usage.cost_usd,
    )


def name_status(state: TaskState, *, at_work: bool) -> str:
    """Return the status of a task, `interrupted` where its process has gone, or `undone`."""
    if state.undone is not None:
        return UNDONE
    return INTERRUPTED if state.status is Status.RUNNING and not at_work else state.status


def draw_tasks(rows: tuple[TaskRow, ...], now: datetime, width: int | None) -> Iterator[Line]:
    if not rows:
        yield line(span('there is no task in this repository; agentflow task "…" starts one', Style.DIM))
        return
    if readable := [one for one in rows if one.error is None]:
        yield from tabulate(_HEADS, (_draw_cells(one, now) for one in readable), width=width or _MOST_WORDS)
    broken = [one for one in rows if one.error is not None]
    if broken:
        yield line(span(f"! {format_count(len(broken), 'task')} cannot be read", Style.WARN))
    for one in broken:
        yield line(f"  {one.task_id}  ", span(one.error or "", Style.DIM), hang=4)


def _draw_cells(one: TaskRow, now: datetime) -> tuple[Span, ...]:
    if one.status in (INTERRUPTED, UNDONE):
        status = span(f"! {one.status}", Style.WARN)
    else:
        known = Status(one.status or "")
        words = "with caveat" if known is Status.VERIFIED_WITH_CAVEAT else known
        status = span(f"{mark_status(known).text}{words}", style_status(known))
    return (
        span(one.task_id, Style.ACCENT),
        span(_describe_age(one.started_at, now), Style.DIM),
        status,
        span("-" if one.exit_code is None else str(one.exit_code)),
        span("-" if one.cost_usd is None else format_money(one.cost_usd), Style.DIM),
        span(one.task or ""),
    )


def _describe_age(started_at: str | None, now: datetime) -> str:
    try:
        seconds = (now - datetime.fromisoformat(started_at or "")).total_seconds()
    except (TypeError, ValueError):
        return "-"
    for unit, size in _UNITS.items():
        if seconds >= size:
            return f"{format_count(int(seconds // size), unit)} ago"
    return "just now"


_OUTPUT_BYTES = 64 * 1024


class Snapshot(Record):
    """All that the files of a task say at one moment."""

    folder: Path
    state: TaskState
    events: tuple[StoredEvent, ...]
    """What happened; changes of the state are not among them but folded into it."""
    evidence: tuple[Evidence, ...]

    def find(self, evidence_id: str | None) -> Evidence | None:
        return next((one for one in self.evidence if one.id == evidence_id), None)


def load_snapshot(folder: Path) -> Snapshot:
    """Return what a task folder holds. Raises CorruptState naming the damaged file."""
    all_events = tuple(load_events(folder))
    happened = tuple(one for one in all_events if not isinstance(one.event, StateChanged))
    return Snapshot(
        folder=folder, state=fold_state(folder, all_events), events=happened, evidence=read_evidence(folder)
    )


def read_output_tail(folder: Path, evidence_id: str) -> str:
    path = folder / EVIDENCE / f"{Path(evidence_id).name}.out"
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _OUTPUT_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""  # outputs may be deleted; the record stands without
