"""The memory's file: searched by words and by meaning, one of two writers at a time, whole after a crash."""

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from agentflow.core.errors import ConfigError
from agentflow.memory.entry import EntryKind, MemoryEntry
from agentflow.memory.file import MemoryFile
from agentflow.memory.meaning import Meaning, find_nearest, load_static_model, to_bits

DAY = "2026-01-02T03:04:05Z"


def learning(text: str, **known: str | int) -> MemoryEntry:
    fields = {"kind": EntryKind.LEARNING, "at": DAY, "by": "you", "key": text, **known}
    return MemoryEntry(text=text, **fields)  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory" / "one.sqlite"


def no_meaning() -> Meaning | None:
    return None


def texts(memory: MemoryFile) -> list[str]:
    return [one.text for one in memory.list_entries()]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("rounding", "discounts are rounded half up in apply_rate"),
        ("the applyRate function", "discounts are rounded half up in apply_rate"),
        ("which PORT do servers use?", "the server listens on port 8642"),
        ("КЕШ", "кеш очищается раз в час"),
        ("缓存清空", "每小时清空缓存"),
    ],
)
def test_words_find_an_entry_in_other_forms_and_name_what_they_share(
    path: Path, asked: str, found: str
) -> None:
    known = ("discounts are rounded half up in apply_rate", "the server listens on port 8642")
    with MemoryFile(path, no_meaning) as memory:
        memory.add(map(learning, (*known, "кеш очищается раз в час", "每小时清空缓存")))
        (first, *_) = memory.search(asked)
        assert first.entry.text == found
        assert first.why.startswith("words: ")
        assert memory.search("what is that?") == ()


def test_a_frequent_word_is_looked_up_among_the_newest(path: Path) -> None:
    with MemoryFile(path, no_meaning) as memory:
        memory.add(learning(f"invoice {number}") for number in range(1_500))
        assert memory.search("invoice 3")[0].entry.text == "invoice 3"
        assert int(memory.search("invoice")[0].entry.text.split()[1]) >= 500


def test_the_files_are_private_and_a_key_is_there_once(path: Path) -> None:
    with MemoryFile(path, no_meaning) as memory:
        memory.add((learning("old", key="k"), learning("new", key="k")))
        modes = {stat.S_IMODE(place.stat().st_mode) for place in path.parent.iterdir()}
        assert (modes, stat.S_IMODE(path.parent.stat().st_mode)) == ({0o600}, 0o700)
        assert texts(memory) == ["new"]
        assert memory.search("old") == ()


def test_what_is_forgotten_is_not_in_the_file(path: Path) -> None:
    with MemoryFile(path, no_meaning) as memory:
        memory.add((learning("the gateway is called zanzibar"), learning("kept")))
        (hit,) = memory.search("zanzibar")
        assert memory.forget(id=hit.entry.id) == 1
        assert texts(memory) == ["kept"]
    assert not any(b"zanzibar" in place.read_bytes() for place in path.parent.iterdir())


def test_an_edit_is_the_persons_and_a_secret_is_not_kept(path: Path) -> None:
    secret = "sk-ant-" + "a1B2" * 8
    with MemoryFile(path, no_meaning) as memory:
        memory.add((learning("by a role", by="planner", against="something"),))
        memory.edit(memory.list_entries()[0], f"the key is {secret}")
        (one,) = memory.list_entries()
        assert (one.id, one.by, one.against, one.text) == (1, "you", "", "the key is [REDACTED]")
    assert not any(secret.encode() in place.read_bytes() for place in path.parent.iterdir())


@pytest.mark.parametrize(
    ("kept", "ran", "is_found"),
    [
        (0, {"make test": ("ev-0009", 2)}, False),
        (2, {"make test": ("ev-0009", 0)}, False),
        (1, {"make test": ("ev-0009", 2)}, True),
        (0, {"make lint": ("ev-0009", 2)}, True),
    ],
)
def test_a_learning_is_set_aside_while_its_command_ends_otherwise(
    path: Path, kept: int, ran: dict[str, tuple[str, int]], is_found: bool
) -> None:
    with MemoryFile(path, no_meaning) as memory:
        memory.add((learning("fees", task="t1", evidence="ev-0001", command="make test", exit_code=kept),))
        memory.weigh("t1", ran)
        assert memory.search("fees"), "a task does not speak against itself"
        memory.weigh("t2", ran)
        assert bool(memory.search("fees")) == is_found
        assert ("ev-0009 of t2" in memory.list_entries()[0].against) != is_found
        memory.weigh("t3", {"make test": ("ev-0002", kept)})
        assert memory.search("fees")


def know_first_letters() -> Meaning:
    """Return a model in which a text means its first letter."""

    def embed(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        places = (ord(text[0]) % 26 for text in texts)
        return [tuple(9.0 if place == number % 26 else -1.0 for number in range(256)) for place in places]

    return Meaning("rough", 10, embed)


def test_meaning_finds_what_shares_no_word_and_both_lists_are_fused(path: Path) -> None:
    with MemoryFile(path, no_meaning) as memory:
        memory.add((learning("apples"),))  # from before there was a model
    with MemoryFile(path, know_first_letters) as memory:
        memory.add(learning(text) for text in ("bananas", "cherries", "acid cherry"))
        assert {hit.entry.text for hit in memory.search("avocado", 2)} == {"acid cherry", "apples"}
        assert "; meaning: nearest " in memory.search("acid cherry")[0].why
        memory.forget(key="acid cherry")
        assert memory.search("avocado", 1)[0].entry.text == "apples"


def to_blocks(*codes: bytes) -> list[bytes]:
    return [bytes(byte for column in zip(*codes, strict=True) for byte in column)]


def test_the_nearest_codes_are_found_and_a_code_of_zeros_is_none() -> None:
    wanted = [1.0 if number % 3 else -2.0 for number in range(256)]

    def flip(count: int) -> Sequence[float]:
        return [-value if number < count else value for number, value in enumerate(wanted)]

    codes = [to_bits(flip(count)) for count in (256, 40, 0, 7)]
    assert find_nearest(to_blocks(bytes(32), *codes), wanted, 3) == [3, 4, 2]
    few = [1.0 if number < 20 else -1.0 for number in range(256)]  # nearer to zeros than to what is like it
    assert find_nearest(to_blocks(*[bytes(32)] * 99, to_bits(few[::-1]), to_bits(few)), few, 2) == [100, 99]


def test_the_packaged_model_knows_words_that_mean_the_same() -> None:
    model = load_static_model()
    if model is None:
        pytest.skip("NOT RUN: the extra memory is not installed")
    said = ("prices are rounded to cents", "start the web server", "open the door")
    codes = to_blocks(*map(to_bits, model.embed(said)))
    assert find_nearest(codes, model.embed(["launch an HTTP daemon"])[0], 1) == [1]


def test_a_damaged_file_and_one_of_another_version_are_named(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"no database" * 100)
    with pytest.raises(ConfigError, match="cannot be used"):
        MemoryFile(path, no_meaning)
    path.unlink()
    with MemoryFile(path, no_meaning) as memory:
        memory._sql.execute("pragma user_version = 9")
    with pytest.raises(ConfigError, match="another version of agentflow"):
        MemoryFile(path, no_meaning)


WRITER = """
import sys
from pathlib import Path
from agentflow.memory.entry import EntryKind, MemoryEntry
from agentflow.memory.file import MemoryFile
path, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
with MemoryFile(path, lambda: None) as memory:
    for number in range(count):
        memory.add(
            MemoryEntry(kind=EntryKind.LEARNING, text=f"{name} {number} {half}", at="", by="you",
                key=f"{name} {number} {half}")
            for half in "ab"
        )
        print(number, flush=True)
"""


def start_writer(path: Path, name: str, count: int) -> "subprocess.Popen[bytes]":
    words = (sys.executable, "-c", WRITER, str(path), name, str(count))
    return subprocess.Popen(words, stdout=subprocess.PIPE)


def test_two_processes_write_at_once_and_a_killed_one_leaves_whole_writes(path: Path) -> None:
    writers = [start_writer(path, name, 25) for name in ("one", "two")]
    endless = start_writer(path, "endless", 1_000_000)
    assert endless.stdout is not None
    for _ in range(8):
        endless.stdout.readline()
    os.kill(endless.pid, signal.SIGKILL)
    endless.communicate()
    for writer in writers:
        writer.communicate()
    assert [writer.returncode for writer in writers] == [0, 0]
    with MemoryFile(path, no_meaning) as memory:
        found = texts(memory)
        assert {f"{name} {number} b" for name in ("one", "two") for number in range(25)} <= {*found}
        halves = [text.rpartition(" ")[0] for text in found if text.startswith("endless")]
        assert len(halves) >= 16
        assert all(halves.count(each) == 2 for each in halves), "both halves of a write or none"
        memory.add((learning("goes on"),))
        assert memory.search("goes on", 1)[0].entry.text == "goes on"


def test_what_a_person_changed_or_deleted_is_not_written_anew_by_its_task(path: Path) -> None:
    kept = learning("the port is 1", by="planner", key="learning:t:1", task="t", command="check", exit_code=0)
    gone = learning("the host is a", by="planner", key="learning:t:2", task="t")
    with MemoryFile(path, no_meaning) as memory:
        memory.add((kept, gone))
        last, first = memory.list_entries()
        memory.edit(first, "the port is 2")
        memory.forget(id=last.id)
        memory.add((kept, gone))  # the task goes on and ends again
        assert texts(memory) == ["the port is 2"]
        memory.weigh("later", {"check": ("ev-0001", 1)})
        assert memory.list_entries()[0].against == ""
        memory.add((gone.replace(by="you"),))
        assert "the host is a" in texts(memory), "said once more by a person"


def test_a_run_that_ends_as_before_brings_back_nothing_of_a_task_that_was_undone(path: Path) -> None:
    with MemoryFile(path, no_meaning) as memory:
        memory.add((learning("the port is 1", task="t", command="check", exit_code=0),))
        memory.reject("t", "its task was undone")
        memory.weigh("later", {"check": ("ev-0001", 0)})
        assert memory.list_entries()[0].against == "its task was undone"


@pytest.mark.parametrize("change", ["kind = 'zzz'", "text = x'ff00ff'"])
def test_a_damaged_row_is_told_as_such(path: Path, change: str) -> None:
    with MemoryFile(path, no_meaning) as memory:
        memory.add((learning("the port is 1"),))
    with closing(sqlite3.connect(path)) as sql, sql:
        sql.execute(f"update entries set {change}")
    with MemoryFile(path, no_meaning) as memory, pytest.raises(ConfigError, match="cannot be used"):
        memory.list_entries()


def test_a_folder_in_the_place_of_the_file_is_told_as_such(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(ConfigError, match="cannot be used"):
        MemoryFile(path, no_meaning)
