"""Run a command: own process group, deadline, output to a file with a cap; the only door to subprocess."""

import hashlib
import os
import secrets
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO

from agentflow.core.evidence import Command, Execution, ProgramOutput
from agentflow.descendants import (
    CHILD_MARK,
    Halt,
    kill_marked,
    list_processes,
    lower_priority,
    make_halt_check,
    mark_children,
    signal_group,
    watch_end,
)
from agentflow.redact import Redactor, redact_bytes

INHERITED = (
    *("PATH", "HOME", "LANG", "TERM", "TZ", "USER", "SHELL", "VIRTUAL_ENV", "TMPDIR"),
    *("RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "CARGO_HOME", "GOROOT", "GOPATH", "GOMODCACHE", "JAVA_HOME"),
    *("GRADLE_HOME", "MAVEN_HOME", "NVM_DIR", "PYENV_ROOT", "GEM_HOME", "GEM_PATH"),
)
"""The only variables of ours that a child sees, with LC_*; no key, token, proxy or PYTHON* among them.

The second and third row say where toolchains lie: the image `rust` has them in /usr/local, `golang` in /go.
"""
GRACE_SECONDS = 1.0
"""Between SIGTERM and SIGKILL."""
_MUCH_BYTES = 4 * 1024
"""Half of the smallest pipe that the system gives to a user with many: two pages."""
_CALM_SECONDS = 1.0
"""For so long after much was read at once, the output is read without a pause."""
_LOOK_SECONDS = 0.1
"""Between two looks whether a short program was cancelled."""
KEEP_BYTES = 16 * 1024 * 1024
"""Output kept in full; beyond it, head and tail."""
TAIL_BYTES = 1024 * 1024
HEAD_BYTES = 64 * 1024
"""What is kept of each stream of an exchange."""
_CHUNK = 1 << 16
_PIPE_CHUNKS = 16  # the most that a pipe holds
FLOOD_BYTES = 4 * 1024 * 1024
"""An exchange that prints more is ended."""


class OutputCollector:
    """Output as it comes: all of it hashed and counted, head and tail kept without secrets."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._kept = Redactor(lambda text: file.write(text.encode("latin-1")))
        self._tail = b""
        self.digest = hashlib.sha256()
        self.bytes = 0

    @property
    def tail(self) -> bytes:
        return redact_bytes(self._tail)

    def add(self, chunk: bytes) -> None:
        self.digest.update(chunk)
        room = max(0, KEEP_BYTES - TAIL_BYTES - self.bytes)
        self._keep(chunk[:room])
        self.bytes += len(chunk)
        self._tail = (self._tail + chunk)[-TAIL_BYTES:]

    def finish(self) -> None:
        written = min(self.bytes, KEEP_BYTES - TAIL_BYTES)
        rest = self.bytes - written
        if rest > len(self._tail):
            self._kept.finish()
            self._file.write(b"\n[... %d bytes dropped ...]\n" % (rest - len(self._tail)))
        self._keep(self._tail[-rest:] if rest else b"")
        self._kept.finish()

    def _keep(self, chunk: bytes) -> None:
        if chunk:
            self._kept.add(chunk.decode("latin-1"))
            self._file.flush()  # observers count the tests that have ended


class StreamHead:
    def __init__(self) -> None:
        self.kept = b""
        self.bytes = 0

    def add(self, chunk: bytes) -> None:
        self.kept += chunk[: max(0, HEAD_BYTES - self.bytes)]
        self.bytes += len(chunk)


def _pass_on(stream: IO[bytes], take: Callable[[bytes], None], selector: selectors.BaseSelector) -> int:
    """Pass on what can be read now, and return how much; a stream at its end leaves the selector."""
    try:
        chunk = os.read(stream.fileno(), _CHUNK)
    except BlockingIOError:
        return 0
    if chunk:
        take(chunk)
    elif stream.fileno() in selector.get_map():
        selector.unregister(stream)
    return len(chunk)


def _drain(taken: Mapping[IO[bytes], Callable[[bytes], None]]) -> None:
    """Read the rest of the pipes without waiting for a process that still holds one."""
    for stream, take in taken.items():
        for _ in range(_PIPE_CHUNKS):
            if not (chunk := stream.read(_CHUNK)):
                break
            take(chunk)
        stream.close()


async def read_pipe(pipe: IO[bytes] | None) -> bytes:
    import anyio  # noqa: PLC0415  # most commands wait on no pipe this way

    assert pipe is not None
    while True:
        await anyio.wait_readable(pipe.fileno())
        try:
            return os.read(pipe.fileno(), _CHUNK)
        except BlockingIOError:
            continue


async def write_pipe(pipe: IO[bytes] | None, content: bytes, *, is_last: bool = False) -> bool:
    """Write all to a pipe, and close it behind the last; return whether its reader is still there."""
    import anyio  # noqa: PLC0415

    assert pipe is not None
    left = memoryview(content)
    while left:
        try:
            left = left[os.write(pipe.fileno(), left) :]
        except BlockingIOError:
            await anyio.wait_writable(pipe.fileno())
        except OSError:
            break
    if is_last:
        pipe.close()
    return not left


def make_child_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key in INHERITED or key.startswith("LC_")}
    return {**kept, **(extra or {})}


def check_cancelled() -> bool:
    """Return False while the task of this thread goes on; raise, to end its command, once cancelled."""
    from anyio import from_thread  # noqa: PLC0415  # commands that only look load no event loop

    from_thread.check_cancelled()
    return False


def make_timestamp(ahead: float = 0) -> str:
    """Return the time in so many seconds."""
    return (datetime.now(UTC) + timedelta(seconds=ahead)).strftime("%Y-%m-%dT%H:%M:%SZ")


def capture(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout: float = 60,
    cancelled: Callable[[], bool] = lambda: False,
) -> subprocess.CompletedProcess[bytes]:
    """Run a short program out of reach of Ctrl-C; return its output. Raises OSError and TimeoutError."""
    until, said = time.monotonic() + timeout, None
    with _open_input(stdin) as given, _start_short(argv, cwd, env, timeout, given, 0) as process:
        while said is None and (left := until - time.monotonic()) > _LOOK_SECONDS:
            try:
                said = process.communicate(timeout=_LOOK_SECONDS)
            except subprocess.TimeoutExpired:
                if cancelled():
                    _kill(process)
                    process.wait()
                    said = b"", b""  # a process that it left behind may hold the pipes for hours
        if said is None:
            said = process.communicate(timeout=max(left, 0))
    return subprocess.CompletedProcess(argv, process.returncode, *said)


def run_attended(argv: Sequence[str]) -> int:
    """Run a program in which a person works: the terminal is its own until it ends. Raises OSError."""
    return subprocess.run(argv, check=False).returncode


def capture_attended(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[bytes]:
    """Run a short program that may ask a person: it shares our terminal and its Ctrl-C."""
    with _start_short(argv, cwd, env, timeout, subprocess.DEVNULL) as process:
        said = process.communicate(timeout=timeout)
    return subprocess.CompletedProcess(argv, process.returncode, *said)


@contextmanager
def _open_input(given: bytes) -> Iterator[int]:
    """Yield what a program reads its input from: a file, as a pipe would make us wait for a slow reader."""
    if not given:
        yield subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as file:
        file.write(given)
        file.seek(0)
        yield file.fileno()


@contextmanager
def _start_short(
    argv: Sequence[str],
    cwd: Path,
    env: Mapping[str, str] | None,
    timeout: float,
    stdin: int,
    group: int | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    with mark_children():
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=make_child_environment(env),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=group,
        )
    with process:
        try:
            yield process
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{argv[0]} took longer than {timeout:g} s and was stopped") from None
        finally:
            _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.returncode is None:
        signal_group(process.pid, signal.SIGKILL)
        process.kill()


def run(command: Command, sink: Path, cancelled: Callable[[], bool] = lambda: False) -> Execution:
    """Run a command, its output going to `sink`; nothing it started outlives the call. Raises OSError."""
    started_at, begin = make_timestamp(), time.monotonic()
    with os.fdopen(os.open(sink, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        collected = OutputCollector(file)
        pipes = (subprocess.DEVNULL, subprocess.PIPE, subprocess.STDOUT)
        process, halt = _run_to_end(command, pipes, (collected.add,), cancelled)
        collected.finish()
    crowded = f"it was killed: it had more than {command.most_tasks:,} processes and threads at once"
    return Execution(
        command=command.argv[-1],
        cwd=command.cwd,
        output=str(sink),
        exit_code=_exit_code(process),
        timed_out=halt is Halt.TIME,
        started_at=started_at,
        seconds=round(time.monotonic() - begin, 3),
        stdout_sha256=collected.digest.hexdigest(),
        bytes=collected.bytes,
        tail=collected.tail.decode("utf-8", "replace"),
        notes=(crowded,) if halt is Halt.CROWD else (),
    )


def exchange(command: Command, given: bytes, cancelled: Callable[[], bool] = lambda: False) -> ProgramOutput:
    """Return what a program says to an input; nothing it started outlives the call. Raises OSError."""
    out, err = StreamHead(), StreamHead()

    def enough() -> bool:
        return cancelled() or out.bytes + err.bytes > FLOOD_BYTES

    with _open_input(given) as stdin:
        pipes = (stdin, subprocess.PIPE, subprocess.PIPE)
        process, halt = _run_to_end(command, pipes, (out.add, err.add), enough)
    return ProgramOutput(
        exit_code=_exit_code(process),
        timed_out=halt is Halt.TIME,
        stdout=out.kept,
        stderr=err.kept,
        flooded=out.bytes > HEAD_BYTES or out.bytes + err.bytes > FLOOD_BYTES,
    )


@dataclass(frozen=True, slots=True)
class Program:
    """A program that runs beside us and is talked to through its pipes, which never block."""

    process: subprocess.Popen[bytes]
    mark: int
    older: frozenset[int]
    """The processes that ran before it."""

    def end(self, grace: float = GRACE_SECONDS) -> int | None:
        """Leave nothing alive that it started, `grace` seconds after SIGTERM; return its exit code."""
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        with suppress(subprocess.TimeoutExpired):  # SIGTERM follows
            self.process.wait(GRACE_SECONDS)
        _end(self.process, grace)
        kill_marked(self.mark, self.older)
        self.process.wait()
        return _exit_code(self.process)


def start(command: Command) -> Program:
    """Start a program for the caller to end; in a sandbox it dies with this thread. Raises OSError."""
    mark, older = secrets.randbits(62), list_processes()
    process = _spawn(command, mark, (subprocess.PIPE, subprocess.PIPE, subprocess.PIPE), bufsize=0)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            os.set_blocking(stream.fileno(), False)
    return Program(process=process, mark=mark, older=older)


@dataclass(frozen=True, slots=True)
class DetachedProgram:
    """A program that goes on when we end."""

    process: subprocess.Popen[bytes]
    stderr: IO[bytes]

    @property
    def exit_code(self) -> int | None:
        return self.process.poll()

    def read_stderr(self) -> str:
        descriptor = self.stderr.fileno()
        size = os.fstat(descriptor).st_size
        # pread leaves the file position alone, at which the program writes
        return os.pread(descriptor, HEAD_BYTES, max(0, size - HEAD_BYTES)).decode("utf-8", "replace")


def detach(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> DetachedProgram:
    """Start a program in a session of its own, without input. Raises OSError when it cannot be started."""
    stderr = tempfile.TemporaryFile()  # noqa: SIM115  # it is read as long as the server runs
    with mark_children():
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=make_child_environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )
    return DetachedProgram(process=process, stderr=stderr)


def _spawn(
    command: Command, mark: int, pipes: tuple[int, int, int], bufsize: int = -1
) -> subprocess.Popen[bytes]:
    with mark_children(mark):
        return subprocess.Popen(
            command.argv,
            cwd=command.cwd,
            env=make_child_environment({**command.env, CHILD_MARK: f"{mark:016x}"}),
            stdin=pipes[0],
            stdout=pipes[1],
            stderr=pipes[2],
            bufsize=bufsize,
            start_new_session=True,
            pass_fds=command.descriptors,
        )


def _run_to_end(
    command: Command,
    pipes: tuple[int, int, int],
    takers: tuple[Callable[[bytes], None], ...],
    cancelled: Callable[[], bool],
) -> tuple[subprocess.Popen[bytes], Halt | None]:
    mark = secrets.randbits(62)
    find_halt = make_halt_check(command.timeout, command.most_tasks, mark, cancelled)
    older = list_processes()
    process = _spawn(command, mark, pipes)
    lower_priority(process.pid)
    streams = [stream for stream in (process.stdout, process.stderr) if stream is not None]
    taken = dict(zip(streams, takers, strict=True))
    halt = None
    try:
        halt = _follow(process, taken, find_halt)
    finally:
        _end(process, 0 if halt is Halt.CROWD else GRACE_SECONDS)
        kill_marked(mark, older)
        process.wait()
        _drain(taken)
    return process, halt


def _exit_code(process: subprocess.Popen[bytes]) -> int | None:
    return process.returncode if process.returncode >= 0 else None


def _follow(
    process: subprocess.Popen[bytes],
    taken: Mapping[IO[bytes], Callable[[bytes], None]],
    find_halt: Callable[[], Halt | None],
) -> Halt | None:
    """Read until the process ends or has to be halted; a pause between reads spares CPU."""
    with selectors.DefaultSelector() as selector, watch_end(process.pid, selector) as (tick, rest):
        for stream in taken:
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ)
        last_much = 0.0
        while process.poll() is None:
            if halt := find_halt():
                return halt
            selector.select(tick)
            read = sum(_pass_on(stream, take, selector) for stream, take in taken.items())
            now = time.monotonic()
            if read >= _MUCH_BYTES:
                last_much = now
            if read and now - last_much > _CALM_SECONDS:
                rest()
    return None


def _end(process: subprocess.Popen[bytes], grace: float) -> None:
    if grace and process.poll() is None:
        signal_group(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):  # SIGKILL follows
            process.wait(grace)
    signal_group(process.pid, signal.SIGKILL)
