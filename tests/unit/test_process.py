import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from itertools import count
from pathlib import Path

import pytest

from agentflow.core.evidence import Command, Execution
from agentflow.process import (
    GRACE_SECONDS,
    KEEP_BYTES,
    TAIL_BYTES,
    capture,
    exchange,
    make_child_environment,
    make_timestamp,
    run,
)
from tests.support.processes import processes
from tests.support.repo import eventually

F_SETPIPE_SZ = 1031


def shell(script: str, tmp_path: Path, timeout: float = 20, **env: str) -> Execution:
    command = Command(argv=("bash", "-c", script), cwd=str(tmp_path), timeout=timeout, env=env)
    return run(command, tmp_path / "out")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def told(tmp_path: Path) -> bool:
    """Return whether a process has written its number."""
    place = tmp_path / "pid"
    return place.exists() and place.read_text().endswith("\n")


def ended(tmp_path: Path) -> bool:
    """Return whether the process that wrote its number ends long before it would by itself."""
    pid = int((tmp_path / "pid").read_text())
    for _ in range(1000):
        if not alive(pid):
            return True
        time.sleep(0.01)
    os.kill(pid, 9)
    return False


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", None)])
def test_the_exit_code_is_told(tmp_path: Path, script: str, code: int | None) -> None:
    finished = shell(script, tmp_path)
    assert (finished.exit_code, finished.timed_out) == (code, False)


def test_both_streams_are_kept_in_order_and_hashed(tmp_path: Path) -> None:
    finished = shell("echo one; echo two >&2; echo three", tmp_path)
    printed = b"one\ntwo\nthree\n"
    assert (tmp_path / "out").read_bytes() == printed
    assert (finished.tail, finished.bytes) == (printed.decode(), len(printed))
    assert finished.stdout_sha256 == hashlib.sha256(printed).hexdigest()


def test_the_last_words_of_a_quick_command_are_not_lost(tmp_path: Path) -> None:
    for _ in range(20):
        assert shell("printf 'x%.0s' {1..30000}", tmp_path).bytes == 30_000


def test_the_end_of_what_printed_a_dot_just_now_is_seen_at_once(tmp_path: Path) -> None:
    def seconds_late() -> float:
        finished = shell("sleep 0.02; printf .; date +%s.%N >ended", tmp_path)
        assert finished.tail == "."
        return time.time() - float((tmp_path / "ended").read_text())

    assert any(seconds_late() < 0.02 for _ in range(100))


def test_what_prints_a_dot_at_a_time_ends_when_its_time_is_over(tmp_path: Path) -> None:
    begin = time.monotonic()
    assert shell("while true; do printf .; sleep 0.005; done", tmp_path, timeout=0.5).timed_out
    assert time.monotonic() - begin < 15


@pytest.mark.parametrize("pipe_bytes", [8 * 1024, 64 * 1024])
def test_nobody_who_prints_much_waits_for_us(tmp_path: Path, pipe_bytes: int) -> None:
    """A user who has many pipes gets small ones."""
    size = f"import fcntl, os; fcntl.fcntl(1, {F_SETPIPE_SZ}, {pipe_bytes})"
    command = Command(
        argv=(sys.executable, "-c", f"{size}\nos.write(1, b'x' * 1_500_000)"), cwd=str(tmp_path), timeout=60
    )
    several = (run(command, tmp_path / "out") for _ in range(5))
    quick = next(finished for finished in several if finished.seconds < 3)
    assert quick.bytes == 1_500_000


def looks_a_second(script: str, tmp_path: Path) -> float:
    """Return how often a command is looked at while it runs."""
    looks = count()
    command = Command(argv=("bash", "-c", script), cwd=str(tmp_path), timeout=20)
    finished = run(command, tmp_path / "out", lambda: next(looks) < 0)
    return next(looks) / finished.seconds


def test_a_silent_command_is_looked_at_as_often_as_one_that_speaks(tmp_path: Path) -> None:
    speaking = "for i in {1..100}; do printf .; sleep 0.01; done"
    assert looks_a_second("sleep 1", tmp_path) > 0.7 * looks_a_second(speaking, tmp_path)


def test_bytes_that_are_no_text_are_kept(tmp_path: Path) -> None:
    finished = shell(r"printf '\xff\x00a'", tmp_path)
    assert (tmp_path / "out").read_bytes() == b"\xff\x00a"
    assert finished.tail == "\ufffd\x00a"


def test_there_is_no_input_to_wait_for(tmp_path: Path) -> None:
    assert shell("cat; echo done", tmp_path, timeout=5).tail == "done\n"


@pytest.mark.parametrize(
    ("size", "is_whole"),
    [(KEEP_BYTES - 1, True), (KEEP_BYTES, True), (KEEP_BYTES + 1, False), (KEEP_BYTES + 5_000_000, False)],
)
def test_output_is_kept_whole_up_to_the_cap_and_as_head_and_tail_beyond(
    tmp_path: Path, size: int, is_whole: bool
) -> None:
    block = bytes(range(256)) * 1021
    script = f"import sys; sys.stdout.buffer.write((bytes(range(256)) * 1021 * 100)[:{size}])"
    printed = (block * 100)[:size]
    command = Command(argv=(sys.executable, "-c", script), cwd=str(tmp_path), timeout=60)
    finished = run(command, tmp_path / "out")
    kept = (tmp_path / "out").read_bytes()
    assert (finished.bytes, finished.stdout_sha256) == (size, hashlib.sha256(printed).hexdigest())
    assert (kept == printed) is is_whole
    assert kept[: KEEP_BYTES - TAIL_BYTES] == printed[: KEEP_BYTES - TAIL_BYTES]
    assert kept[-TAIL_BYTES:] == printed[-TAIL_BYTES:]
    assert len(kept) <= KEEP_BYTES + 100
    if not is_whole:
        assert f"[... {size - KEEP_BYTES} bytes dropped ...]".encode() in kept


UNTIL_IT_RUNS = "while [ ! -s pid ]; do sleep 0.01; done"
STAYING = {
    "plain": "sleep 60 & echo $! >pid; wait",
    "background": "sleep 60 & echo $! >pid; sleep 60",
    "in the foreground": "echo $$ >pid; exec sleep 60",
    "deaf to TERM": "trap '' TERM; echo $$ >pid; while true; do sleep 0.1; done",
    "in its own session": "setsid bash -c 'echo $$ >pid; sleep 60' & wait",
    "in its own session and deaf": "setsid bash -c 'trap \"\" TERM HUP; echo $$ >pid; sleep 60' & wait",
    "a grandchild": "(setsid bash -c 'setsid bash -c \"echo \\$\\$ >pid; sleep 60\" & wait' & wait) & wait",
    "with an empty environment": "echo $$ >pid; exec env -i sleep 60",
}


@pytest.mark.parametrize("name", STAYING)
def test_when_the_time_is_over_all_of_it_ends(tmp_path: Path, name: str) -> None:
    def wait_for_it() -> bool:
        while time.monotonic() < begin + 20 and not told(tmp_path):
            time.sleep(0.01)
        return False

    begin = time.monotonic()
    command = Command(argv=("bash", "-c", STAYING[name]), cwd=str(tmp_path), timeout=0.5)
    finished = run(command, tmp_path / "out", wait_for_it)
    assert time.monotonic() - begin < 30
    assert finished.timed_out
    assert ended(tmp_path)


def test_what_is_asked_to_end_gets_a_second_for_it() -> None:
    assert GRACE_SECONDS == 1


@pytest.mark.parametrize(
    "script",
    [
        "sleep 60 & echo $! >pid",
        "nohup sleep 60 >/dev/null 2>&1 & echo $! >pid",
        "setsid sleep 60 & echo $! >pid",
        f"setsid bash -c 'echo $$ >pid; exec sleep 60' >/dev/null 2>&1 & {UNTIL_IT_RUNS}",
        f"env -i setsid bash -c 'echo $$ >pid; exec sleep 60' & {UNTIL_IT_RUNS}",
        f"setsid bash -c 'ulimit -S -x 7; echo $$ >pid; exec sleep 60' & {UNTIL_IT_RUNS}",
    ],
)
def test_what_a_command_leaves_behind_neither_holds_us_nor_lives_on(tmp_path: Path, script: str) -> None:
    begin = time.monotonic()
    finished = shell(script, tmp_path)
    assert time.monotonic() - begin < 15
    assert (finished.exit_code, finished.timed_out) == (0, False)
    assert ended(tmp_path)


@pytest.mark.parametrize("start", ["", "setsid"])
def test_what_takes_long_to_die_is_dead_when_the_command_is_over(tmp_path: Path, start: str) -> None:
    hold = "import time; held = b'x' * (300 << 20); print('held', flush=True); time.sleep(60)"
    wait = "while [ ! -s held ]; do sleep 0.01; done"
    shell(f'{start} {sys.executable} -c "{hold}" >held & echo $! >pid; {wait}', tmp_path)
    assert not alive(int((tmp_path / "pid").read_text()))


def test_a_cancelled_command_ends_at_once(tmp_path: Path) -> None:
    begin = time.monotonic()
    command = Command(argv=("bash", "-c", "echo $$ >pid; sleep 60"), cwd=str(tmp_path), timeout=60)
    finished = run(command, tmp_path / "out", lambda: told(tmp_path))
    assert time.monotonic() - begin < 30
    assert (finished.exit_code, finished.timed_out) == (None, False)
    assert ended(tmp_path)


def test_an_error_while_asking_whether_to_stop_kills_the_command(tmp_path: Path) -> None:
    def cancelled() -> bool:
        if told(tmp_path):
            raise KeyboardInterrupt
        return False

    command = Command(argv=("bash", "-c", "echo $$ >pid; exec sleep 60"), cwd=str(tmp_path), timeout=60)
    with pytest.raises(KeyboardInterrupt):
        run(command, tmp_path / "out", cancelled)
    assert ended(tmp_path)


def test_another_command_that_runs_beside_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    found: list[Execution] = []
    beside = threading.Thread(target=lambda: found.append(shell("sleep 0.8; echo whole", tmp_path / "other")))
    beside.start()
    shell("setsid sleep 60 & exit 0", tmp_path)
    beside.join()
    assert (found[0].exit_code, found[0].tail) == (0, "whole\n")


BOMBS = {
    "many": "for i in {1..80}; do sleep 60 & done; wait",
    "a tree": "f() { [ $1 = 0 ] && exec sleep 60; f $(($1 - 1)) & f $(($1 - 1)) & wait; }; f 6",
    "deaf, in sessions": "for i in {1..80}; do setsid bash -c 'trap \"\" TERM; sleep 60' & done; wait",
    "threads": f"{sys.executable} -c 'import threading, time\n"
    "for _ in range(80): threading.Thread(target=time.sleep, args=(60,)).start()'",
}


@pytest.mark.parametrize("script", BOMBS.values(), ids=BOMBS)
def test_with_too_many_processes_or_threads_all_of_it_is_killed(tmp_path: Path, script: str) -> None:
    command = Command(argv=("bash", "-c", script), cwd=str(tmp_path), timeout=30, most_tasks=50)
    finished = run(command, tmp_path / "out")
    assert (finished.exit_code, finished.timed_out) == (None, False)
    assert finished.notes == ("it was killed: it had more than 50 processes and threads at once",)
    assert not [place for place in Path("/proc").glob("[0-9]*/cwd") if leads_to(place) == str(tmp_path)]


def test_a_bomb_is_seen_also_while_as_much_ends_elsewhere(tmp_path: Path) -> None:
    threads = (
        "import threading, time\nfor _ in range(150): threading.Thread(target=time.sleep, args=(60,)).start()"
    )
    others = subprocess.Popen(
        [sys.executable, "-c", f"{threads}\nprint('lit', flush=True)"], stdout=subprocess.PIPE
    )
    assert others.stdout is not None
    assert others.stdout.readline() == b"lit\n"
    threading.Timer(0.3, others.kill).start()
    script = "sleep 0.6; for i in {1..60}; do sleep 60 & done; wait"
    command = Command(argv=("bash", "-c", script), cwd=str(tmp_path), timeout=30, most_tasks=50)
    finished = run(command, tmp_path / "out")
    others.communicate()
    assert finished.notes == ("it was killed: it had more than 50 processes and threads at once",)


def leads_to(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""


def test_many_processes_one_after_the_other_are_no_crowd(tmp_path: Path) -> None:
    script = "for i in {1..200}; do /bin/true; done; sleep 0.2; echo whole"
    command = Command(argv=("bash", "-c", script), cwd=str(tmp_path), timeout=30, most_tasks=50)
    assert run(command, tmp_path / "out").tail == "whole\n"


def test_a_program_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    command = Command(argv=("no-such-program",), cwd=str(tmp_path), timeout=5)
    with pytest.raises(FileNotFoundError):
        run(command, tmp_path / "out")


def test_a_command_gives_way_to_us_alone(tmp_path: Path) -> None:
    """Beside any other busy program it gets nearly as much as that does."""
    assert shell("sleep 0.1; nice", tmp_path).tail.strip() == str(os.nice(0) + 1)


def test_the_time_it_took_is_told(tmp_path: Path) -> None:
    begin = time.monotonic()
    finished = shell("sleep 0.2", tmp_path)
    assert 0.2 <= finished.seconds <= round(time.monotonic() - begin, 3)
    assert len(finished.started_at) == len(make_timestamp()) == len("2026-01-02T03:04:05Z")


SECRETS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "AWS_SECRET_ACCESS_KEY",
    "GITHUB_TOKEN",
    "HTTPS_PROXY",
    "https_proxy",
    "SSH_AUTH_SOCK",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "GIT_DIR",
    "GIT_CONFIG_PARAMETERS",
    "LD_PRELOAD_X",
    "BASH_ENV",
    "ENV",
    "AGENTFLOW_MODEL",
    "SOMETHING_ELSE",
)


@pytest.mark.parametrize("name", SECRETS)
def test_nothing_secret_of_ours_reaches_a_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "planted-value")
    assert "planted-value" not in shell("env", tmp_path).tail
    assert b"planted-value" not in capture(("env",), cwd=tmp_path).stdout


def test_a_child_sees_what_it_needs_and_what_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_TIME", "C")
    monkeypatch.setenv("HOME", "/home-of-a-test")
    monkeypatch.setenv("RUSTUP_HOME", "/usr/local/rustup")
    seen = shell("env", tmp_path, EXTRA="given", HOME="/other").tail.splitlines()
    assert {"LC_TIME=C", "EXTRA=given", "HOME=/other", "RUSTUP_HOME=/usr/local/rustup"} <= set(seen)
    assert make_child_environment()["HOME"] == "/home-of-a-test"


def test_captured_streams_are_apart_and_input_is_given(tmp_path: Path) -> None:
    script = ("bash", "-c", "cat; echo bad >&2; exit 4")
    finished = capture(script, cwd=tmp_path, stdin=b"given")
    assert (finished.stdout, finished.stderr, finished.returncode) == (b"given", b"bad\n", 4)


def test_a_short_program_that_takes_too_long_is_ended_with_what_it_started(tmp_path: Path) -> None:
    begin, seconds = time.monotonic(), f"60.{os.getpid()}"
    with pytest.raises(TimeoutError, match=r"^bash took longer than 0\.3 s and was stopped$"):
        capture(("bash", "-c", f"sleep {seconds} & wait"), cwd=tmp_path, timeout=0.3)
    assert time.monotonic() - begin < 30
    eventually(lambda: processes(f"sleep {seconds}") == set())


def test_a_short_program_that_nobody_waits_for_is_ended_with_what_it_started(tmp_path: Path) -> None:
    begin, seconds = time.monotonic(), f"61.{os.getpid()}"
    script = ("bash", "-c", f"cat; sleep {seconds} & touch begun; wait")
    ran = capture(script, cwd=tmp_path, stdin=b"given", cancelled=(tmp_path / "begun").exists)
    assert ran.returncode == -signal.SIGKILL
    assert time.monotonic() - begin < 30
    eventually(lambda: processes(f"sleep {seconds}") == set())


SLOW_READER = """
import sys, time
count = 0
while chunk := sys.stdin.buffer.read1(65536):
    count += len(chunk)
    time.sleep(0.2 if count < 400_000 else 0)
print(count)
"""
NO_READER = "import sys; sys.stdout.buffer.write(b'y' * 5_000_000)"
GIVEN = b"x" * 5_000_000


@pytest.mark.parametrize(
    ("script", "stdout"),
    [(SLOW_READER, b"5000000\n"), (NO_READER, b"y" * 5_000_000), ("import sys; sys.stdin.close()", b"")],
    ids=["slow reader", "a writer that never reads", "a reader that leaves"],
)
def test_much_input_holds_nobody_up(tmp_path: Path, script: str, stdout: bytes) -> None:
    finished = capture((sys.executable, "-c", script), cwd=tmp_path, stdin=GIVEN, timeout=40)
    assert (finished.stdout, finished.returncode) == (stdout, 0)
    command = Command(argv=(sys.executable, "-c", script), cwd=str(tmp_path), timeout=40)
    said = exchange(command, GIVEN)
    assert stdout.startswith(said.stdout)
    assert not said.timed_out


def test_a_program_is_cancelled_amid_its_input_whoever_else_holds_its_output(tmp_path: Path) -> None:
    begin, seconds = time.monotonic(), f"63.{os.getpid()}"
    script = f"setsid sleep {seconds} & head -c 1000 >begun; sleep 60"
    ran = capture(("bash", "-c", script), cwd=tmp_path, stdin=GIVEN, cancelled=(tmp_path / "begun").exists)
    assert (ran.stdout, ran.returncode) == (b"", -signal.SIGKILL)
    assert time.monotonic() - begin < 30
    for stray in processes(f"sleep {seconds}"):
        os.kill(stray, signal.SIGKILL)


def test_what_a_short_program_leaves_running_beside_its_pipes_goes_on(tmp_path: Path) -> None:
    seconds = f"62.{os.getpid()}"
    said = capture(("bash", "-c", f"sleep {seconds} <&- >&- 2>&- & echo $!"), cwd=tmp_path).stdout
    eventually(lambda: processes(f"sleep {seconds}") == {int(said)})
    os.kill(int(said), signal.SIGKILL)


def test_commands_that_begin_together_end_apart(tmp_path: Path) -> None:
    """Each leaves a process without a trace of its origin; the other's end must not end it."""
    script = f"env -i setsid bash -c 'echo $$ >pid; exec sleep 60' & {UNTIL_IT_RUNS}"
    folders = [tmp_path / str(number) for number in range(6)]
    for folder in folders:
        folder.mkdir()
    lasting = [threading.Thread(target=shell, args=(f"{script}; sleep 1", folder)) for folder in folders[:3]]
    for thread in lasting:
        thread.start()
    for folder in folders[3:]:
        shell(script, folder)
        assert ended(folder)
    for thread in lasting:
        thread.join()
    assert all(ended(folder) for folder in folders[:3])


def test_what_we_mark_is_not_we_ourselves(tmp_path: Path) -> None:
    before = Path("/proc/self/limits").read_text()
    shell("true", tmp_path)
    with pytest.raises(FileNotFoundError):
        run(Command(argv=("no-such-program",), cwd=str(tmp_path), timeout=5), tmp_path / "out")
    assert Path("/proc/self/limits").read_text() == before


def test_the_folder_of_a_command_is_its_own(tmp_path: Path) -> None:
    assert shell("pwd -P", tmp_path).tail.strip() == str(tmp_path.resolve())
