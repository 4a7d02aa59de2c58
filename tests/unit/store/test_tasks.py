import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest

from agentflow.core.errors import ConfigError, CorruptState, InvalidFile, TaskLocked
from agentflow.core.events import PhaseEnded, StateChanged, StoredEvent, Warned
from agentflow.core.role import Findings
from agentflow.core.task import FRONTMATTER_KEYS, Gate, GateStatus, Phase, Status, TaskState, gather_parts
from agentflow.parse import Mismatch, fit
from agentflow.store.journal import read_numbered_lines
from agentflow.store.ownership import hold_writer_lock
from agentflow.store.reading import TASKS, is_intact, seal
from agentflow.store.task_file import read_task
from agentflow.store.tasks import NEWEST, TaskStore, make_task_id
from tests.unit.verdict.cases import a_task

SAVING = """
import sys
from pathlib import Path
from agentflow.core.task import Gate, GateStatus, Phase, TaskState
from agentflow.store.reading import TASKS
from agentflow.store.tasks import TaskStore

task = TaskState(task_id="t", task="x" * 5000, started_at="now", max_iterations=3, model="m")
root = Path(sys.argv[1])
(root / TASKS).mkdir(parents=True)
store = TaskStore.create(root, task)
print("ready", flush=True)
number = 0
while True:
    number += 1
    task = task.with_gate(Phase.PLANNING, Gate(status=GateStatus.FAILED, message="no: " * 500))
    task = task.replace(iteration=number)
    store.save(task)
"""
LOCKING = """
import sys, time
from pathlib import Path
from agentflow.store.ownership import hold_writer_lock

with hold_writer_lock(Path(sys.argv[1])):
    print("ready", flush=True)
    time.sleep(60)
"""


def a_store(root: Path, task: TaskState | None = None) -> TaskStore:
    (root / TASKS).mkdir(parents=True, exist_ok=True)
    return TaskStore.create(root, task or a_task())


def child(script: str, root: Path) -> "subprocess.Popen[str]":
    started = subprocess.Popen(
        [sys.executable, "-c", script, str(root)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    return started


def kill(started: "subprocess.Popen[str]") -> None:
    started.send_signal(signal.SIGKILL)
    started.communicate()


def events(store_folder: Path) -> list[dict[str, object]]:
    found = []
    for _, line in read_numbered_lines(store_folder / "events.jsonl"):
        assert is_intact(line)
        found.append(msgspec.json.decode(line))
    return found


def folded(store_folder: Path) -> TaskState:
    state: dict[str, object] = {}
    for event in events(store_folder):
        if event["type"] == "StateChanged":
            assert isinstance(event["changed"], dict)
            state |= event["changed"]
    return fit(TaskState, gather_parts(state))


def test_a_task_is_on_disk_before_anything_else_happens(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    assert store.folder == tmp_path / TASKS / a_task().task_id
    assert read_task(store.folder / "task.md") == a_task()
    assert folded(store.folder) == a_task()
    assert (store.folder / ".gitignore").read_text() == "*\n"
    assert {path.name for path in store.folder.iterdir() if path.is_dir()} == {"runs", "evidence", "outputs"}


def test_the_folder_is_for_its_owner_only(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    for path in (store.folder / "task.md", store.folder / "events.jsonl"):
        assert path.stat().st_mode & 0o077 == 0


def test_the_state_is_the_fold_of_the_events(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    task = a_task()
    for number, phase in enumerate(Phase, 1):
        task = task.with_gate(phase, Gate(status=GateStatus.PASSED, message=f"- {number}"))
        task = task.replace(current_phase=phase, iteration=number)
        store.save(task)
        assert folded(store.folder) == task
    task = task.replace(findings=Findings(summary="s", findings=(), open_questions=("q",)), tree="t1")
    store.save(task)
    assert folded(store.folder) == task
    assert store.task == task


def test_only_what_changed_is_appended(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    store.save(a_task(iteration=2))
    store.save(a_task(iteration=2))
    assert events(store.folder)[1:] == [
        {**events(store.folder)[1], "type": "StateChanged", "changed": {"iteration": 2}}
    ]


def test_events_are_numbered_stamped_and_named(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    for number in range(5):
        store.emit(Warned(message=str(number)))
    found = events(store.folder)
    assert [event["seq"] for event in found] == [1, 2, 3, 4, 5, 6]
    assert {event["task_id"] for event in found} == {a_task().task_id}
    assert all(str(event["at"]).endswith("Z") for event in found)
    assert list(found[1]) == ["seq", "at", "type", "message", "task_id", "sum"]


def test_observers_are_told_after_the_file(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    seen: list[tuple[StoredEvent, int]] = []
    store.observers.append(lambda stamped: seen.append((stamped, len(events(store.folder)))))
    store.emit(Warned(message="w"))
    ((stamped, written),) = seen
    assert (stamped.seq, written, stamped.event) == (2, 2, Warned(message="w"))


def test_an_observer_that_raises_is_told_no_more_and_breaks_nothing(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    seen: list[object] = []
    tries: list[StoredEvent] = []

    def broken(stamped: StoredEvent) -> None:
        tries.append(stamped)
        raise OSError("disk \udcff full")

    store.observers.extend([broken, lambda stamped: seen.append(stamped.event)])
    for word in ("one", "two"):
        store.emit(Warned(message=word))
    assert len(tries) == 1
    first, warning, second = seen
    assert (first, second) == (Warned(message="one"), Warned(message="two"))
    assert isinstance(warning, Warned)
    assert "broken is no longer called: OSError: disk \\udcff full" in warning.message
    assert [event["seq"] for event in events(store.folder)] == [1, 2, 3, 4]


def test_observers_that_all_raise_are_all_named(tmp_path: Path) -> None:
    store = a_store(tmp_path)

    class Screen:
        def __call__(self, stamped: StoredEvent) -> None:
            raise ValueError(stamped.seq)

    store.observers.extend([Screen(), Screen()])
    store.emit(Warned(message="w"))
    assert store.observers == []
    assert [event["message"] for event in events(store.folder)[2:]] == [
        "Screen is no longer called: ValueError: 2"
    ] * 2


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_observer_can_still_be_interrupted(tmp_path: Path, stop: type[BaseException]) -> None:
    store = a_store(tmp_path)

    def interrupted(_: StoredEvent) -> None:
        raise stop

    store.observers.append(interrupted)
    with pytest.raises(stop):
        store.emit(Warned(message="w"))


def test_what_readers_see_rewrites_the_task_file_and_nothing_else_does(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    before = (store.folder / "task.md").stat().st_ino
    store.save(a_task(runs=3))
    assert (store.folder / "task.md").stat().st_ino == before
    store.save(a_task(runs=3, iteration=2))
    assert read_task(store.folder / "task.md").iteration == 2


def test_the_log_tells_phases_and_warnings(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    ended = PhaseEnded(
        phase=Phase.PLANNING, iteration=2, status=GateStatus.FAILED, message="- why", seconds=1.0
    )
    store.emit(ended)
    store.emit(ended.replace(phase=Phase.REVIEW, status=GateStatus.SKIPPED, message="unseen"))
    store.emit(Warned(message="careful"))
    store.save(a_task(iteration=2))
    text = (store.folder / "task.md").read_text()
    assert "## Log\n\n### Iteration 2 / planning / failed\n- why\n\n> careful\n" in text
    assert "unseen" not in text


def test_a_foreign_message_is_neither_a_heading_of_the_log_nor_steers_a_terminal(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    forged = "no\x1b[2J\n### Iteration 9 / verification / passed\n---\nall is well"
    ended = PhaseEnded(
        phase=Phase.PLANNING, iteration=2, status=GateStatus.FAILED, message=forged, seconds=1.0
    )
    store.emit(ended)
    store.emit(ended.replace(message="# whole"))
    store.emit(Warned(message="a\n# b"))
    task = a_task(iteration=2, task=forged).with_gate(
        Phase.PLANNING, Gate(status=GateStatus.FAILED, message=forged)
    )
    store.save(task)
    path = store.folder / "task.md"
    log = path.read_text().partition("## Log\n")[2]
    headings = [line for line in log.splitlines() if line.startswith("#")]
    assert headings == ["### Iteration 2 / planning / failed"] * 2
    assert "\x1b" not in log
    assert "\n> a\n      # b\n" in log
    assert read_task(path).task == forged
    assert read_task(path).get_gate(Phase.PLANNING).message == forged


def test_state_that_a_call_gives_is_saved_with_the_rest(tmp_path: Path) -> None:
    store = a_store(tmp_path, a_task(iteration=2))
    store.change({"todos": [{"id": 1, "title": "t", "status": "pending"}]})
    assert folded(store.folder).todos[0].title == "t"
    assert folded(store.folder).iteration == 2
    assert store.task.todos[0].id == 1


@pytest.mark.parametrize(
    "wrong", [{"todos": [{"id": "one"}]}, {"gates": {"planning": {"status": "banana"}}}, {"nothing": 1}]
)
def test_state_that_does_not_fit_changes_nothing(tmp_path: Path, wrong: dict[str, object]) -> None:
    store = a_store(tmp_path)
    with pytest.raises(Mismatch):
        store.change(wrong)
    assert folded(store.folder) == store.task == a_task()


def test_a_second_task_inherits_nothing(tmp_path: Path) -> None:
    first = a_store(tmp_path, a_task(task_id="a", iteration=7, todos=()))
    second = a_store(tmp_path, a_task(task_id="b", task="other"))
    assert read_task(second.folder / "task.md") == a_task(task_id="b", task="other")
    assert read_task(first.folder / "task.md").iteration == 7
    assert (tmp_path / NEWEST).resolve() == (second.folder / "task.md").resolve()


def test_a_task_id_is_never_used_twice(tmp_path: Path) -> None:
    a_store(tmp_path)
    with pytest.raises(FileExistsError):
        a_store(tmp_path)


def test_task_ids_are_stamps_that_differ() -> None:
    ids = {make_task_id() for _ in range(20)}
    assert len(ids) > 1
    assert all(len(item) == 21 and item[8] == "T" and item[15:17] == "Z-" for item in ids)


def test_the_symlink_is_relative_and_leads_to_the_newest(tmp_path: Path) -> None:
    a_store(tmp_path)
    assert (tmp_path / NEWEST).readlink() == Path("agentflow") / a_task().task_id / "task.md"
    assert read_task(tmp_path / NEWEST) == a_task()


def test_a_file_of_the_user_is_never_replaced_by_the_symlink(tmp_path: Path) -> None:
    (tmp_path / TASKS).mkdir(parents=True)
    (tmp_path / NEWEST).write_text("mine")
    store = a_store(tmp_path)
    assert (tmp_path / NEWEST).read_text() == "mine"
    assert [event["type"] for event in events(store.folder)] == ["StateChanged", "Warned"]


def test_a_symlink_that_leads_nowhere_is_replaced(tmp_path: Path) -> None:
    (tmp_path / TASKS).mkdir(parents=True)
    (tmp_path / NEWEST).symlink_to("gone")
    a_store(tmp_path)
    assert read_task(tmp_path / NEWEST) == a_task()


@pytest.mark.parametrize("target", ["notes.md", "../README.md"])
def test_a_symlink_of_the_user_to_something_else_stays(tmp_path: Path, target: str) -> None:
    (tmp_path / TASKS).mkdir(parents=True)
    (tmp_path / ".claude" / target).write_text("mine")
    (tmp_path / NEWEST).symlink_to(target)
    a_store(tmp_path)
    assert (tmp_path / NEWEST).readlink() == Path(target)


def test_a_symlink_that_only_begins_like_ours_stays(tmp_path: Path) -> None:
    (tmp_path / TASKS).mkdir(parents=True)
    (tmp_path / "README.md").write_text("mine")
    (tmp_path / NEWEST).symlink_to("agentflow/../../README.md")
    store = a_store(tmp_path)
    assert (tmp_path / NEWEST).read_text() == "mine"
    assert "Warned" in [event["type"] for event in events(store.folder)]


def test_a_polling_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    wrong: list[Exception] = []
    read: list[int] = []
    done = threading.Event()

    def poll() -> None:
        while not done.is_set():
            for path in (store.folder / "task.md", tmp_path / NEWEST):
                try:
                    read.append(read_task(path).iteration)
                except (InvalidFile, CorruptState, OSError) as error:
                    wrong.append(error)

    reader = threading.Thread(target=poll)
    reader.start()
    begin, number = time.monotonic(), 1
    while number < 60 or (len(set(read)) < 3 and time.monotonic() < begin + 30):
        number += 1
        gate = Gate(status=GateStatus.FAILED, message=f"- {number}\n---\n" * min(number, 60))
        store.save(a_task(iteration=number).with_gate(Phase.PLANNING, gate))
    done.set()
    reader.join()
    assert wrong == []
    assert read == sorted(read)
    assert len(set(read)) >= 3


def test_no_kill_leaves_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    moment = random.Random(1)
    for number in range(20):
        root = tmp_path / str(number)
        started = child(SAVING, root)
        time.sleep(moment.uniform(0, 0.04))
        kill(started)
        shown = read_task(root / NEWEST)
        state = folded(root / TASKS / "t")
        assert shown.task == state.task == "x" * 5000
        assert shown.iteration <= state.iteration


def test_two_writers_conflict(tmp_path: Path) -> None:
    with (
        hold_writer_lock(tmp_path),
        pytest.raises(TaskLocked, match="another task"),
        hold_writer_lock(tmp_path),
    ):
        pytest.fail("two hold it")


def test_a_lock_is_free_again_after_its_holder(tmp_path: Path) -> None:
    for _ in range(2):
        with hold_writer_lock(tmp_path):
            assert (tmp_path / TASKS / ".gitignore").read_text() == "*\n"


def test_a_lock_is_free_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), hold_writer_lock(tmp_path):
        _ = 1 // 0
    with hold_writer_lock(tmp_path):
        pass


def test_a_killed_process_gives_its_lock_back(tmp_path: Path) -> None:
    started = child(LOCKING, tmp_path)
    with pytest.raises(TaskLocked), hold_writer_lock(tmp_path):
        pytest.fail("two hold it")
    kill(started)
    with hold_writer_lock(tmp_path):
        pass


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / ".claude").write_text("a file in the way")
    with pytest.raises(ConfigError, match="cannot write"), hold_writer_lock(tmp_path):
        pytest.fail("it was not held")


def test_the_frontmatter_has_the_keys_in_order_and_no_others(tmp_path: Path) -> None:
    store = a_store(tmp_path, a_task(verdict=None, runs=3))
    text = (store.folder / "task.md").read_text()
    head = text.split("---\n")[1]
    keys = [line.partition(":")[0] for line in head.splitlines() if line[:1].isalpha()]
    assert keys == list(FRONTMATTER_KEYS)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("status: running", "status: banana", "status"),
        ("iteration: 1", "iteration: one", "iteration"),
        ("task_id:", "task_ib:", "task_ib"),
        ("gates: {}", "gates: {planning: {status: banana}}", "gates"),
        ("gates: {}", "gates: {cooking: {status: passed}}", "gates"),
        ("model: script:x", "model: [a]", "model"),
    ],
)
def test_a_hand_edited_value_that_does_not_fit_is_named(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    store = a_store(tmp_path)
    path = store.folder / "task.md"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InvalidFile, match=said) as caught:
        read_task(path)
    assert str(path) in str(caught.value)


def test_a_file_of_a_newer_version_is_refused_by_name(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    path = store.folder / "task.md"
    path.write_text(path.read_text().replace("version: 2", "version: 99\nnew_key: 1"))
    with pytest.raises(CorruptState, match="version 99 was written by a newer agentflow"):
        read_task(path)


def test_a_status_reads_as_its_word(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    store.save(a_task(status=Status.VERIFIED_WITH_CAVEAT, active=False))
    assert "\nstatus: verified_with_caveat\n" in (store.folder / "task.md").read_text()


@pytest.mark.parametrize("body", [b'{"a":1}', b'{"a":"\xc3\xa9","b":[1,{"sum":"00000000"}]}'])
def test_a_sealed_line_shows_any_change_of_a_byte(body: bytes) -> None:
    line = seal(body)
    assert is_intact(line)
    assert msgspec.json.decode(line)["a"] == msgspec.json.decode(body)["a"]
    for place in range(len(line)):
        assert not is_intact(line[:place] + bytes([line[place] ^ 1]) + line[place + 1 :])
        assert not is_intact(line[:place])


@pytest.mark.parametrize("line", [b"", b"{}", b'{"a":1}', b',"sum":"', b'{"sum":"00000000"}'])
def test_a_line_without_its_seal_is_not_intact(line: bytes) -> None:
    assert not is_intact(line)


def test_an_event_of_any_text_stays_one_line(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    store.emit(Warned(message='a\nb\r\n\u2028"}\x00'))
    assert events(store.folder)[-1]["message"] == 'a\nb\r\n\u2028"}\x00'


def test_a_state_change_is_an_event_like_others(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    seen: list[StoredEvent] = []
    store.observers.append(seen.append)
    store.save(a_task(iteration=2))
    assert [stamped.event for stamped in seen] == [StateChanged(changed={"iteration": 2})]
