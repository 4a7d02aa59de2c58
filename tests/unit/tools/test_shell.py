import hashlib
import time
from pathlib import Path

import pytest

from agentflow.core.errors import InvalidInput
from agentflow.core.messages import DEFAULT_ROOM
from agentflow.parse import Mismatch
from agentflow.tools.shell import BASH, HEAD_SHARE
from tests.support.boxes import unboxed
from tests.unit.tools.bench import Bench

HEAD_BYTES = DEFAULT_ROOM.result_chars // HEAD_SHARE
TAIL_BYTES = DEFAULT_ROOM.result_chars - HEAD_BYTES


def test_shows_output_and_exit_code_and_keeps_a_record(bench: Bench) -> None:
    output = bench(BASH, command="pwd; echo problem >&2; exit 3", description="look")
    assert output.content == f"{bench.root}\nproblem\nexit 3"
    assert output.execution is not None
    kept = output.execution
    printed = f"{bench.root}\nproblem\n"
    assert (kept.command, kept.cwd) == ("pwd; echo problem >&2; exit 3", str(bench.root))
    assert (kept.exit_code, kept.timed_out, kept.bytes) == (3, False, len(printed))
    assert kept.stdout_sha256 == hashlib.sha256(printed.encode()).hexdigest()
    assert kept.tail == printed
    assert Path(kept.output) == bench.outputs / "call-1.out"
    assert Path(kept.output).read_text() == printed
    assert not output.clipped


def test_a_silent_command_still_says_how_it_ended(bench: Bench) -> None:
    assert bench(BASH, command="true").content == "exit 0"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("false | true", "exit codes of a pipe: 1 0\nexit 0"),
        ("echo a | cat", "a\nexit 0"),
        ("(exit 3) | cat; echo later", "later\nexit codes of a pipe: 3 0\nexit 0"),
        ("for i in 1 2; do false | cat; done", "exit codes of a pipe: 1 0\nexit 0"),
        ("yes | head -1", "y\nexit 0"),
        ("false || echo other", "other\nexit 0"),
        ("{ false | cat; } > kept; cat kept", "exit codes of a pipe: 1 0\nexit 0"),
        ("set -o pipefail; (exit 5) | cat", "exit codes of a pipe: 5 0\nexit 5"),
    ],
)
def test_a_pipe_tells_the_exit_code_of_each_part(bench: Bench, command: str, said: str) -> None:
    assert bench(BASH, command=command).content == said


def test_a_long_output_is_clipped_in_the_middle_and_kept_in_full(bench: Bench) -> None:
    output = bench(BASH, command="seq 200000; exit 1")
    full = "".join(f"{number}\n" for number in range(1, 200_001))
    left_out = len(full) - HEAD_BYTES - TAIL_BYTES
    note = f"[{left_out} bytes left out here; the full text is kept under the call id call-1]"
    head, _, tail = output.content.partition(f"\n{note}\n")
    assert head == full[:HEAD_BYTES]
    assert tail == full[-TAIL_BYTES:] + "exit 1"
    assert output.clipped
    assert (bench.outputs / "call-1.out").read_text() == full
    assert output.execution is not None
    assert output.execution.tail == full[-4000:]


@pytest.mark.parametrize(("size", "clipped"), [(0, False), (1, True)])
def test_the_limit_itself_is_not_clipped(bench: Bench, size: int, *, clipped: bool) -> None:
    output = bench(BASH, command=f"head -c {HEAD_BYTES + TAIL_BYTES + size} /dev/zero | tr '\\0' x")
    assert output.clipped == ("bytes left out" in output.content) == clipped


def test_no_half_character_is_shown_at_the_cut(bench: Bench) -> None:
    bench.file("wide.txt", "x" + "é" * 40_000 + "y")
    assert "\ufffd" not in bench(BASH, command="cat wide.txt").content


def test_a_timeout_kills_all_that_was_started(bench: Bench) -> None:
    begin = time.monotonic()
    output = bench(
        BASH,
        command="(sleep 1.5; touch late) & setsid sh -c 'sleep 1.5; touch later' & sleep 30",
        timeout=300,
    )
    assert output.content == "timed out after 0.3 s and was killed with all it started"
    assert output.execution is not None
    assert output.execution.timed_out
    time.sleep(max(0.0, begin + 2.2 - time.monotonic()))
    assert list(bench.root.iterdir()) == [bench.root / ".git"]


def test_a_cancelled_run_stops_its_command(bench: Bench) -> None:
    begin = time.monotonic()
    bench.cancelled = (bench.root / "there").exists
    output = bench(BASH, command="echo begun; touch there; sleep 60")
    assert output.content == "begun\nstopped, because the run was"
    assert time.monotonic() - begin < 30


def test_a_command_killed_by_a_signal_says_so(bench: Bench) -> None:
    assert bench(BASH, command="kill -9 $$").content == "exit 137"
    bench.runner = unboxed(bench.root)
    assert bench(BASH, command="kill -9 $$").content == "killed by a signal"


@pytest.mark.parametrize("timeout", [0, 600_001])
def test_the_timeout_has_bounds(bench: Bench, timeout: int) -> None:
    with pytest.raises(Mismatch, match="timeout"):
        bench(BASH, command="true", timeout=timeout)


def test_our_keys_are_not_in_its_environment(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "planted")
    assert "planted" not in bench(BASH, command="env").content


def test_a_call_id_does_not_choose_the_file(bench: Bench) -> None:
    for call_id in ("../out", "/tmp/x", "", "a/b", "a\0", "x" * 300, "é"):
        with pytest.raises(InvalidInput, match="call id"):
            BASH.call(BASH.input(command="touch ran"), bench.context(call_id))
    with pytest.raises(InvalidInput, match="NUL"):
        bench(BASH, command="echo \0")
    assert list(bench.root.iterdir()) == [bench.root / ".git"]
