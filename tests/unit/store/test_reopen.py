from collections.abc import Callable
from pathlib import Path

import pytest

from agentflow.core.errors import CorruptState
from agentflow.core.events import PhaseEnded, StateChanged, Warned
from agentflow.core.evidence import By
from agentflow.core.task import GateStatus, Phase
from agentflow.store.reading import EVENTS, TASKS, load_events, seal
from agentflow.store.tasks import TaskStore
from tests.support.records import an_execution
from tests.unit.verdict.cases import a_task

ENDED = PhaseEnded(phase=Phase.PLANNING, iteration=1, status=GateStatus.FAILED, message="- why", seconds=1.0)


def record(store: TaskStore) -> str:
    printed = an_execution(store.folder / "outputs/c1.out")
    return store.ledger.record(printed, role=None, iteration=1, by=By.AGENT).id


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a task that was left after a failed phase, two records and a warning."""
    (tmp_path / TASKS).mkdir(parents=True)
    store = TaskStore.create(tmp_path, a_task())
    store.emit(ENDED)
    for _ in range(2):
        record(store)
    store.emit(Warned(message="careful"))
    store.save(a_task(iteration=2))
    return store.folder


def content(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_reopening_changes_no_file(folder: Path) -> None:
    before = content(folder)
    assert TaskStore.reopen(folder).task == a_task(iteration=2)
    assert content(folder) == before


def test_the_next_event_follows_the_last(folder: Path) -> None:
    last = [one.seq for one in load_events(folder)][-1]
    TaskStore.reopen(folder).emit(Warned(message="again"))
    assert [one.seq for one in load_events(folder)] == list(range(1, last + 2))


@pytest.mark.parametrize("cut", [1, 2, 10, 40])
def test_a_torn_last_line_is_as_if_it_had_not_been_written(folder: Path, cut: int) -> None:
    path = folder / EVENTS
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    store = TaskStore.reopen(folder)
    assert store.task == a_task()
    store.save(a_task(iteration=3))
    kept = whole.splitlines(keepends=True)[:-1]
    assert path.read_bytes().splitlines(keepends=True)[: len(kept)] == kept
    torn, edited, last = list(load_events(folder))[len(kept) :]
    assert isinstance(torn.event, Warned)
    assert torn.event.message.startswith("the last line of events.jsonl was cut off")
    assert edited.event == Warned(message="task.md: iteration was edited by hand to 2; it stays 1")
    assert (last.seq, last.event) == (len(kept) + 3, StateChanged(changed={"iteration": 3}))


def test_the_log_goes_on_where_it_was(folder: Path) -> None:
    store = TaskStore.reopen(folder)
    store.emit(Warned(message="again"))
    store.save(a_task(iteration=3))
    text = (folder / "task.md").read_text()
    assert text.endswith("## Log\n\n### Iteration 1 / planning / failed\n- why\n\n> careful\n\n> again\n")


def test_only_what_changed_since_is_written(folder: Path) -> None:
    TaskStore.reopen(folder).save(a_task(iteration=2, runs=1))
    assert list(load_events(folder))[-1].event == StateChanged(changed={"runs": 1})


def test_evidence_is_known_and_its_numbers_go_on(folder: Path) -> None:
    store = TaskStore.reopen(folder)
    assert store.ledger.find("ev-0002") is not None
    assert record(store) == "ev-0003"


def test_a_record_that_is_gone_costs_no_other_its_number(folder: Path) -> None:
    (folder / "evidence/ev-0001.json").unlink()
    kept = (folder / "evidence/ev-0002.json").read_bytes()
    assert record(TaskStore.reopen(folder)) == "ev-0003"
    assert (folder / "evidence/ev-0002.json").read_bytes() == kept


def test_the_numbers_go_on_beyond_four_digits(folder: Path) -> None:
    for number in (9999, 10000):
        text = (folder / "evidence/ev-0001.json").read_text().replace("ev-0001", f"ev-{number}")
        (folder / f"evidence/ev-{number}.json").write_text(text)
    assert record(TaskStore.reopen(folder)) == "ev-10001"


def added(path: Path, said: bytes) -> bytes:
    """Append an event, with its number and task, and return its line."""
    number = path.read_bytes().count(b"\n") + 1
    line = seal(b'{"seq":%d,"at":"now",%s,"task_id":"%s"}' % (number, said, path.parent.name.encode()))
    with path.open("ab") as file:
        file.write(line + b"\n")
    return line


def flipped(folder: Path) -> None:
    path = folder / EVENTS
    path.write_bytes(path.read_bytes().replace(b"careful", b"carefuL"))


def forged(folder: Path) -> None:
    path = folder / EVENTS
    first, rest = path.read_bytes().split(b"\n", 1)
    line = seal(b'{"seq":1,"at":"now","type":"Warned","message":3,"task_id":"t"}')
    path.write_bytes(b"\n".join((line, first, rest)))


def of_a_later_version(folder: Path) -> None:
    path = folder / EVENTS
    added(path, b'"type":"StateChanged","changed":{"version":99}')


def without_its_first_line(folder: Path) -> None:
    path = folder / EVENTS
    path.write_bytes(path.read_bytes().split(b"\n", 1)[1])


def gone(folder: Path) -> None:
    (folder / EVENTS).unlink()


def empty(folder: Path) -> None:
    (folder / EVENTS).write_bytes(b"")


def with_a_damaged_record(folder: Path) -> None:
    (folder / "evidence/ev-0001.json").write_bytes(b"{")


def with_a_renamed_record(folder: Path) -> None:
    (folder / "evidence/ev-0001.json").rename(folder / "evidence/ev-0007.json")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (flipped, "events.jsonl:"),
        (forged, "events.jsonl:1: message"),
        (of_a_later_version, "version 99"),
        (without_its_first_line, "events.jsonl"),
        (gone, "events.jsonl"),
        (empty, "events.jsonl"),
        (with_a_damaged_record, "ev-0001.json"),
        (with_a_renamed_record, "ev-0007.json"),
    ],
)
@pytest.mark.parametrize("tail", [b"", b'{"seq":'])
def test_what_is_damaged_is_named_and_nothing_is_written(
    folder: Path, damage: Callable[[Path], None], said: str, tail: bytes
) -> None:
    damage(folder)
    if (folder / EVENTS).exists():
        (folder / EVENTS).write_bytes((folder / EVENTS).read_bytes() + tail)
    before = content(folder)
    with pytest.raises(CorruptState, match=said):
        TaskStore.reopen(folder)
    assert content(folder) == before


def test_an_event_of_a_later_version_is_left_as_it_is(folder: Path) -> None:
    path = folder / EVENTS
    line = added(path, b'"type":"Later","word":1')
    store = TaskStore.reopen(folder)
    assert store.task == a_task(iteration=2)
    assert path.read_bytes().endswith(line + b"\n")
    store.emit(Warned(message="after it"))
    assert [one.event for one in load_events(folder)][-1] == Warned(message="after it")
