import os
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from agentflow.core.errors import CorruptState, TaskNotFound
from agentflow.core.events import PhaseStarted, StateChanged, StoredEvent, TaskStarted, Warned
from agentflow.core.evidence import Evidence
from agentflow.core.task import Phase, Status, TaskState
from agentflow.store.reading import find, list_tasks, load_events, parse_event
from agentflow.store.tasks import TaskStore
from agentflow.view.tasks import Snapshot, load_snapshot, read_output_tail

Write = Callable[..., Path]
At = Callable[[str], Path]


def in_events(folder: Path, old: bytes, new: bytes) -> None:
    path = folder / "events.jsonl"
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new, 1))


def test_the_state_is_the_fold_of_all_changes(folder: At, finished: Snapshot) -> None:
    loaded = load_snapshot(folder("complete"))
    assert loaded.state == finished.state
    assert loaded.state.status is Status.VERIFIED
    assert loaded.state.final[-1].evidence == "ev-0007"


def test_events_are_kept_in_order_without_the_changes_of_the_state(folder: At, finished: Snapshot) -> None:
    loaded = load_snapshot(folder("complete"))
    assert loaded.events == finished.events
    assert not any(isinstance(one.event, StateChanged) for one in loaded.events)


def test_evidence_stands_in_the_order_of_its_ids(
    write_task: Write, opened: StateChanged, finished: Snapshot
) -> None:
    one = finished.evidence[0]
    names = ("ev-9999", "ev-10000", "ev-0002")
    loaded = load_snapshot(write_task([opened], [one.replace(id=name) for name in names]))
    assert [record.id for record in loaded.evidence] == ["ev-0002", "ev-9999", "ev-10000"]
    assert loaded.find("ev-9999") == one.replace(id="ev-9999")
    assert loaded.find(None) is None


def test_what_the_store_writes_is_what_the_view_reads(tmp_path: Path, finished: Snapshot) -> None:
    state = finished.state.replace(task="naïve\n\x1b[2J “task”")
    store = TaskStore.create(tmp_path, state)
    store.emit(PhaseStarted(phase=Phase.REVIEW, iteration=3))
    loaded = load_snapshot(find(tmp_path, None))
    assert loaded.state == state
    assert PhaseStarted(phase=Phase.REVIEW, iteration=3) in [one.event for one in loaded.events]


@pytest.mark.parametrize("torn", [b"", b'{"seq":99', b'{"seq":99,"at":"2026', b"\x00\x00\x00", b"\xff\xfe"])
def test_a_last_line_that_is_still_being_written_is_left_out(folder: At, torn: bytes) -> None:
    place = folder("complete")
    whole = load_snapshot(place)
    with (place / "events.jsonl").open("ab") as file:
        file.write(torn)
    assert load_snapshot(place) == whole


def test_every_beginning_of_the_file_loads_or_says_that_there_is_no_state(folder: At) -> None:
    place = folder("implementation")
    content = (place / "events.jsonl").read_bytes()
    first = content.index(b"\n") + 1
    for size in range(0, len(content), 7):
        (place / "events.jsonl").write_bytes(content[:size])
        if size >= first:
            assert load_snapshot(place).state.task_id == place.name
        else:
            with pytest.raises(CorruptState, match=r"events\.jsonl"):
                load_snapshot(place)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"max_iterations":10', b'"max_iterations":11'),
        (b'"type":"TaskStarted"', b'"type":"TaskStartes"'),
        (b'{"seq":2,', b'{"seq":2 '),
        (b"pager", b"\xff\xfeger"),
    ],
)
def test_a_damaged_line_stops_with_file_and_line(folder: At, old: bytes, new: bytes) -> None:
    place = folder("complete")
    in_events(place, old, new)
    with pytest.raises(CorruptState, match=r"events\.jsonl:[12]: the line is damaged"):
        load_snapshot(place)


def test_a_line_lost_in_the_middle_of_a_write_is_damage(folder: At) -> None:
    place = folder("complete")
    lines = (place / "events.jsonl").read_bytes().splitlines(keepends=True)
    (place / "events.jsonl").write_bytes(b"".join([*lines[:3], lines[3][:20], *lines[4:]]))
    with pytest.raises(CorruptState, match=r"events\.jsonl:4:"):
        load_snapshot(place)


def test_a_value_of_the_wrong_kind_is_named(write_task: Write, opened: StateChanged) -> None:
    place = write_task([opened, StateChanged(changed={"iteration": "many"})])
    with pytest.raises(CorruptState, match=r"events\.jsonl: iteration: expected `int`"):
        load_snapshot(place)


def test_a_later_version_is_refused_by_name(write_task: Write, opened: StateChanged) -> None:
    place = write_task([opened, StateChanged(changed={"version": 99, "mood": "good"})])
    with pytest.raises(CorruptState, match="version 99 was written by a newer agentflow"):
        load_snapshot(place)


def test_damaged_evidence_names_its_file(folder: At) -> None:
    place = folder("complete")
    (place / "evidence" / "ev-0002.json").write_bytes(b'{"id":"ev-0002"}')
    with pytest.raises(CorruptState, match=r"ev-0002\.json"):
        load_snapshot(place)


def test_a_half_written_evidence_file_of_another_name_is_not_read(folder: At) -> None:
    place = folder("complete")
    whole = load_snapshot(place)
    (place / "evidence" / ".ev-0009.json.x.tmp").write_bytes(b"{")
    assert load_snapshot(place) == whole


def test_a_line_is_an_event(line_of: Callable[[StoredEvent], bytes]) -> None:
    one = StoredEvent(seq=7, at="2026-01-02T03:04:05.120Z", event=Warned(message='"sum":"ffffffff"}'))
    assert parse_event(line_of(one)) == one
    assert parse_event(line_of(one).rstrip(b"\n")) == one


def test_an_event_of_a_later_version_is_passed_over(
    write_task: Write, opened: StateChanged, line_of: Callable[[StoredEvent], bytes]
) -> None:
    task_id = opened.changed["task_id"]
    body = b'{"seq":2,"at":"2026-01-02T03:04:05.120Z","type":"Dreamt","of":"sheep","task_id":"%s"}'
    body %= task_id.encode()
    strange = body[:-1] + b',"sum":"%08x"}\n' % zlib.crc32(body)
    known = StoredEvent(seq=3, at="2026-01-02T03:04:06.120Z", event=Warned(message="after it"))
    place = write_task([opened])
    with (place / "events.jsonl").open("ab") as file:
        file.write(strange + line_of(known))
    assert parse_event(strange) is None
    assert [one.event for one in load_snapshot(place).events] == [known.event]


def test_events_can_be_read_one_by_one_with_the_changes_among_them(folder: At) -> None:
    kinds = [type(one.event) for one in load_events(folder("implementation"))]
    assert kinds[:2] == [StateChanged, TaskStarted]


def test_the_end_of_an_output_is_read_and_nothing_outside_the_folder(folder: At) -> None:
    place = folder("complete")
    (place / "evidence" / "ev-0002.out").write_bytes(b"first\n" + b"x" * 100_000 + b"\nlast \xff\n")
    (place / "secret.out").write_text("secret")
    shown = read_output_tail(place, "ev-0002")
    assert shown.endswith("\nlast \ufffd\n")
    assert "first" not in shown
    assert read_output_tail(place, "ev-0001") == ""
    assert read_output_tail(place, "../secret") == ""


IDS = ("20260102T030405Z-aaaa", "20260102T030406Z-bbbb", "20260203T000000Z-0c0c")


@pytest.fixture
def three(write_task: Write, opened: StateChanged, tmp_path: Path) -> Path:
    for name in reversed(IDS):
        write_task([opened], name=name)
    return tmp_path


def test_tasks_are_listed_with_the_newest_last(three: Path) -> None:
    (three / ".claude" / "agentflow" / "20270101T000000Z-ffff").mkdir()
    (three / ".claude" / "agentflow" / "notesZ-x").mkdir()
    (three / ".claude" / "agentflow" / "notesZ-x" / "events.jsonl").touch()
    assert list_tasks(three) == IDS


def test_of_two_tasks_of_one_second_the_one_written_last_is_the_newest(
    write_task: Write, opened: StateChanged, tmp_path: Path
) -> None:
    older = write_task([opened], name="20260102T030405Z-ffff")
    write_task([opened], name="20260102T030405Z-0000")
    os.utime(older / "events.jsonl", ns=(1, 1))
    assert find(tmp_path, None).name == "20260102T030405Z-0000"


@pytest.mark.parametrize(
    ("asked", "found"), [(None, IDS[2]), (IDS[0], IDS[0]), ("202602", IDS[2]), ("20260102T030406", IDS[1])]
)
def test_a_task_is_found_by_a_beginning_of_its_id(three: Path, asked: str | None, found: str) -> None:
    assert find(three, asked).name == found


@pytest.mark.parametrize("asked", ["2026", "", "20270101", "../agentflow", "\x1b[2J"])
def test_what_names_no_single_task_is_refused_with_the_newest_ones(three: Path, asked: str) -> None:
    with pytest.raises(TaskNotFound) as refused:
        find(three, asked)
    assert IDS[2] in refused.value.hint
    assert "\x1b" not in str(refused.value)


def test_a_repository_without_tasks_says_so(tmp_path: Path) -> None:
    with pytest.raises(TaskNotFound, match="no task in this repository"):
        find(tmp_path, None)


def test_reading_leaves_every_file_as_it_was(folder: At) -> None:
    place = folder("complete")
    before = {path: path.stat().st_mtime_ns for path in place.parent.rglob("*")}
    load_snapshot(place)
    assert {path: path.stat().st_mtime_ns for path in place.parent.rglob("*")} == before


def test_state_and_evidence_have_their_types(folder: At) -> None:
    loaded = load_snapshot(folder("verification"))
    assert isinstance(loaded.state, TaskState)
    assert all(isinstance(record, Evidence) for record in loaded.evidence)
