"""The files of a task, written for a view to read."""

import os
import zlib
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agentflow.core.events import Event, EvidenceRecorded, StateChanged, StoredEvent
from agentflow.core.evidence import Evidence
from agentflow.core.record import encode
from agentflow.core.task import TaskState, gather_parts
from agentflow.parse import fit
from agentflow.view.tasks import Snapshot
from agentflow.view.text import Line, Medium, render
from tests.unit.view.material import TASK_ID, records, state
from tests.unit.view.telling import changed, stages

GOLDEN = Path(__file__).parents[2] / "golden" / "view"


def stamp(events: Iterable[Event]) -> tuple[StoredEvent, ...]:
    begin = datetime(2026, 1, 2, 3, 4, 5, 120_000, UTC)
    times = (begin + timedelta(seconds=0.137 * number) for number in range(100_000))
    return tuple(
        StoredEvent(seq=seq, at=at.isoformat(timespec="milliseconds").replace("+00:00", "Z"), event=event)
        for seq, (at, event) in enumerate(zip(times, events, strict=False), 1)
    )


def event_file_line(one: StoredEvent) -> bytes:
    head = b'{"seq":%d,"at":"%s",' % (one.seq, one.at.encode())
    body = head + encode(one.event)[1:-1] + b',"task_id":"%s"}' % TASK_ID.encode()
    return body[:-1] + b',"sum":"%08x"}\n' % zlib.crc32(body)


def write_folder(
    root: Path, events: Iterable[Event], evidence: Iterable[Evidence], name: str = TASK_ID
) -> Path:
    folder = root / ".claude" / "agentflow" / name
    (folder / "evidence").mkdir(parents=True)
    (folder / "events.jsonl").write_bytes(b"".join(map(event_file_line, stamp(events))))
    for record in evidence:
        (folder / "evidence" / f"{record.id}.json").write_bytes(encode(record) + b"\n")
    return folder


@pytest.fixture
def story() -> Callable[[str], tuple[StoredEvent, ...]]:
    return lambda stage: stamp(stages()[stage])


@pytest.fixture
def folder(tmp_path: Path) -> Callable[[str], Path]:
    """Write the task as it stands at a stage and return its folder."""

    def written(stage: str) -> Path:
        events = stages()[stage]
        ids = {event.evidence for event in events if isinstance(event, EvidenceRecorded)}
        return write_folder(tmp_path, events, [record for record in records() if record.id in ids])

    return written


@pytest.fixture
def write_task(tmp_path: Path) -> Callable[..., Path]:
    """Write a task of any id from any events and evidence, and return its folder."""

    def written(events: Iterable[Event], evidence: Iterable[Evidence] = (), name: str = TASK_ID) -> Path:
        return write_folder(tmp_path, events, evidence, name)

    return written


@pytest.fixture
def opened() -> StateChanged:
    return changed(**state().to_fields())


@pytest.fixture
def line_of() -> Callable[[StoredEvent], bytes]:
    return event_file_line


@pytest.fixture
def finished() -> Snapshot:
    """The task at its end, as `load_snapshot` would return it."""
    events = stages()["complete"]
    fields: dict[str, object] = {}
    for event in events:
        if isinstance(event, StateChanged):
            fields.update(event.changed)
    told = tuple(one for one in stamp(events) if not isinstance(one.event, StateChanged))
    return Snapshot(
        folder=Path(TASK_ID), state=fit(TaskState, gather_parts(fields)), events=told, evidence=records()
    )


@pytest.fixture
def golden() -> Callable[[str, Iterable[Line]], None]:
    """Compare lines with a file; AGENTFLOW_UPDATE_GOLDEN=1 writes the file instead."""

    def compared(name: str, lines: Iterable[Line]) -> None:
        path = GOLDEN / f"{name}.txt"
        text = render(lines, Medium(colour=False, ascii=False, live=False), None)
        if os.environ.get("AGENTFLOW_UPDATE_GOLDEN") == "1":
            path.write_text(text, "utf-8")
        assert text == path.read_text("utf-8")

    return compared
