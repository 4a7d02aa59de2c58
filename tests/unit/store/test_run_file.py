import resource
from pathlib import Path
from typing import Any

import pytest

from agentflow.core.errors import CorruptState
from agentflow.core.fold import advance, begin_run
from agentflow.core.messages import Message, Notice, Reply, Speaker, Text, ToolCall, ToolResult
from agentflow.core.run import (
    CallAnswered,
    CallsStarted,
    MessageAdded,
    ReplyReceived,
    RequestSent,
    Run,
    RunClosed,
    RunEntry,
    RunOpened,
    RunOutcome,
)
from agentflow.store.journal import RunFile, add_message, load_run
from tests.unit.open_files import open_files

HEAD = RunOpened(
    run=1,
    role="implementer",
    agent="a",
    iteration=1,
    model="m",
    system="s\n",
    tools=(),
    submit="SubmitChange",
)
BRIEF = Message(speaker=Speaker.USER, parts=(Text(text="do it"),))
CALL = ToolCall(id="c1", name="Look", input={"word": "x", "deep": [1, {"a": None}]})
ENTRIES: tuple[RunEntry, ...] = (
    HEAD,
    MessageAdded(message=BRIEF, notice=Notice.BRIEF),
    RequestSent(turn=1),
    ReplyReceived(reply=Reply(parts=(Text(text="é\u2028\n"), CALL))),
    CallsStarted(calls=("c1",)),
    CallAnswered(result=ToolResult(call_id="c1", content="seen"), changes={"todos": [1]}),
    RequestSent(turn=2),
    ReplyReceived(reply=Reply(parts=(Text(text="done"),))),
    RunClosed(outcome=RunOutcome.ANSWERED),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = RunFile(tmp_path / "1-implementer.jsonl", lambda _: None)
    for entry in ENTRIES:
        file.append(entry)
    return tmp_path / "1-implementer.jsonl"


def folded(entries: tuple[RunEntry, ...]) -> Run:
    run = begin_run(HEAD, None)
    for entry in entries[1:]:
        run = advance(run, entry)
    return run


def test_a_file_gives_the_run_back(path: Path) -> None:
    assert load_run(path) == folded(ENTRIES)


def test_each_entry_is_one_line(path: Path) -> None:
    assert path.read_bytes().count(b"\n") == len(ENTRIES)


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_a_torn_last_line_is_left_out(path: Path, cut: int) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    assert load_run(path) == folded(ENTRIES[:-1])


@pytest.mark.parametrize("number", range(1, len(ENTRIES) + 1))
@pytest.mark.parametrize("junk", [b"junk", b"", b"{}", b'{"type":"Nothing"}', b"null", b'"\xff"', b"[]"])
def test_a_damaged_line_is_named(path: Path, number: int, junk: bytes) -> None:
    written = path.read_bytes().split(b"\n")
    written[number - 1] = junk
    path.write_bytes(b"\n".join(written))
    with pytest.raises(CorruptState) as caught:
        load_run(path)
    assert str(caught.value).startswith(f"{path}:{number}: ")


def test_a_byte_that_is_no_text_is_named(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"do it", b"do \xff!"))
    with pytest.raises(CorruptState, match=":2: "):
        load_run(path)


def test_a_line_that_is_gone_is_noticed(path: Path) -> None:
    """Without the reply, its call has a result that nobody asked for."""
    written = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(written[:3] + written[4:]))
    with pytest.raises(CorruptState, match=":5: "):
        load_run(path)


def test_a_second_head_is_noticed(path: Path) -> None:
    written = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*written[:4], written[0], *written[4:]]))
    with pytest.raises(CorruptState, match=":5: "):
        load_run(path)


@pytest.mark.parametrize(
    ("gone", "named"),
    [(3, 3), (4, 5), (6, 6), (7, 7)],
    ids=["a request", "a reply", "a result", "the next request"],
)
def test_a_gap_shows_in_a_line_after_it_and_nothing_is_written(path: Path, gone: int, named: int) -> None:
    written = path.read_bytes().splitlines(keepends=True)
    del written[gone - 1]
    path.write_bytes(b"".join(written) + b"torn")
    before = path.read_bytes()
    with pytest.raises(CorruptState, match=f":{named}: "):
        load_run(path)
    assert path.read_bytes() == before


def test_a_turn_that_does_not_follow_is_noticed(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"turn":2', b'"turn":3'))
    with pytest.raises(CorruptState, match=":7: turn 3 follows turn 1"):
        load_run(path)


def test_a_result_that_stands_twice_is_noticed(path: Path) -> None:
    written = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*written[:6], *written[5:]]))
    with pytest.raises(CorruptState, match=":7: the result of a call that nobody asked for"):
        load_run(path)


def test_a_file_without_its_head_is_named(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    with pytest.raises(CorruptState, match=":1: a run file begins with RunOpened"):
        load_run(path)


@pytest.mark.parametrize("content", [b"", b'{"type":"RunOp'])
def test_a_file_without_an_entry_is_no_run(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert load_run(path) is None


def test_an_entry_after_a_torn_line_stands_alone(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])
    load_run(path)
    RunFile(path, lambda _: None).append(ENTRIES[-1])
    assert load_run(path) == folded(ENTRIES)


def test_what_a_call_changed_is_passed_on_once_it_is_written(tmp_path: Path) -> None:
    seen: list[tuple[dict[str, Any], bytes]] = []
    path = tmp_path / "run.jsonl"
    file = RunFile(path, lambda changes: seen.append((changes, path.read_bytes())))
    for entry in ENTRIES:
        file.append(entry)
    ((changes, written),) = seen
    assert changes == {"todos": [1]}
    assert written.count(b"\n") == 6


def test_the_file_is_for_its_owner_only(path: Path) -> None:
    assert path.stat().st_mode & 0o077 == 0


def test_messages_and_ended_runs_leave_no_file_open(tmp_path: Path) -> None:
    for number in range(3):
        add_message(tmp_path, f"message {number}")
        RunFile(tmp_path / f"{number}.jsonl", lambda _: None).append(HEAD)
    assert open_files(tmp_path) == []


def test_a_line_that_fits_only_in_part_is_an_error(tmp_path: Path) -> None:
    file = RunFile(tmp_path / "1.jsonl", lambda _: None)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            file.append(HEAD)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
