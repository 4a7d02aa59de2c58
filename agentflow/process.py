"""Run a command: own process group, deadline, output to a file with a cap; the only door to subprocess."""

import hashlib
import os
import secrets
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from agentflow.core.record import Record

INHERITED = ("PATH", "HOME", "LANG", "TERM", "TZ", "USER", "SHELL", "VIRTUAL_ENV", "TMPDIR")
"""The only variables of ours that a child sees, with LC_*; no key, token, proxy or PYTHON* among them."""
KEEP_BYTES = 16 * 1024 * 1024
"""Output kept in full; beyond it, head and tail."""
TAIL_BYTES = 1024 * 1024
GRACE_SECONDS = 1.0
"""Between SIGTERM and SIGKILL."""
_MARK = "AGENTFLOW_COMMAND"
_TICK = 0.05
_SHORT_TICK = 0.002
_CHUNK = 1 << 16


class Command(Record):
    """What to run: `argv` without a shell, in a folder, within `timeout` seconds."""

    argv: tuple[str, ...]
    cwd: str
    timeout: float
    env: Mapping[str, str] = {}
    """Added to the inherited variables."""


class Finished(Record):
    """What came of a command."""

    exit_code: int | None
    """None when a signal ended it."""
    timed_out: bool
    started_at: str
    seconds: float
    sha256: str
    """Of everything it printed, stdout and stderr as they came."""
    bytes: int
    tail: str
    """The last part of the output, decoded."""


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what a child process gets to see of our environment, and nothing else."""
    kept = {key: value for key, value in os.environ.items() if key in INHERITED or key.startswith("LC_")}
    return {**kept, **(extra or {})}


def timestamp() -> str:
    """Return now in UTC, to the second, as ISO 8601."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def capture(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout: float = 60,
) -> subprocess.CompletedProcess[bytes]:
    """Run a short program of our own choosing (git, rg, an interpreter probe) and return what it said.

    Raises OSError when it cannot be started and subprocess.TimeoutExpired.
    """
    return subprocess.run(
        list(argv),
        cwd=cwd,
        env=environment(env),
        input=stdin,
        capture_output=True,
        timeout=timeout,
        check=False,
    )


def run(command: Command, sink: Path, cancelled: Callable[[], bool] = lambda: False) -> Finished:
    """Run a command to its end, its output going to `sink`; nothing it started outlives the call.

    Raises OSError when the program cannot be started.
    """
    mark = secrets.token_hex(8)
    started_at, begin = timestamp(), time.monotonic()
    with sink.open("wb") as file:
        process = subprocess.Popen(
            command.argv,
            cwd=command.cwd,
            env=environment({**command.env, _MARK: mark}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        collected = _Collected(file)
        try:
            timed_out = _follow(process, collected, begin + command.timeout, cancelled)
        finally:
            _end(process, mark)
        _drain(process, collected)
        collected.finish()
    code = process.returncode
    return Finished(
        exit_code=code if code >= 0 else None,
        timed_out=timed_out,
        started_at=started_at,
        seconds=round(time.monotonic() - begin, 3),
        sha256=collected.digest.hexdigest(),
        bytes=collected.bytes,
        tail=collected.tail.decode("utf-8", "replace"),
    )


class _Collected:
    """Output as it comes: all of it hashed, head and tail kept."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.digest = hashlib.sha256()
        self.bytes = 0
        self.tail = b""

    def add(self, chunk: bytes) -> None:
        self.digest.update(chunk)
        room = max(0, KEEP_BYTES - TAIL_BYTES - self.bytes)
        self.file.write(chunk[:room])
        self.bytes += len(chunk)
        self.tail = (self.tail + chunk)[-TAIL_BYTES:]

    def finish(self) -> None:
        written = min(self.bytes, KEEP_BYTES - TAIL_BYTES)
        rest = self.bytes - written
        if rest > len(self.tail):
            self.file.write(b"\n[... %d bytes dropped ...]\n" % (rest - len(self.tail)))
        self.file.write(self.tail[-rest:] if rest else b"")


def _follow(
    process: subprocess.Popen[bytes], collected: _Collected, deadline: float, cancelled: Callable[[], bool]
) -> bool:
    """Read until the process has ended; return whether its time was over."""
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    with selectors.DefaultSelector() as selector, _watched(process.pid, selector) as tick:
        selector.register(process.stdout, selectors.EVENT_READ)
        while process.poll() is None:
            if time.monotonic() >= deadline:
                return True
            if cancelled():
                return False
            selector.select(tick)
            chunk = _available(process.stdout)
            if chunk:
                collected.add(chunk)
            elif chunk == b"" and process.stdout.fileno() in selector.get_map():
                selector.unregister(process.stdout)
    return False


@contextmanager
def _watched(pid: int, selector: selectors.BaseSelector) -> Iterator[float]:
    """Let a selector see the end of a process where the system can; yield how long it may wait."""
    if not hasattr(os, "pidfd_open"):
        yield _SHORT_TICK
        return
    descriptor = os.pidfd_open(pid)
    selector.register(descriptor, selectors.EVENT_READ)
    try:
        yield _TICK
    finally:
        os.close(descriptor)


def _available(stream: IO[bytes]) -> bytes | None:
    """Return what can be read now: empty at the end, None while there is nothing yet."""
    return stream.read(_CHUNK)


def _drain(process: subprocess.Popen[bytes], collected: _Collected) -> None:
    """Read what is left in the pipe without waiting for anybody who still holds it."""
    assert process.stdout is not None
    while chunk := process.stdout.read(_CHUNK):
        collected.add(chunk)
    process.stdout.close()


def _end(process: subprocess.Popen[bytes], mark: str) -> None:
    """Stop the process group, and whatever left it, within two seconds."""
    if process.poll() is None:
        _signal_group(process.pid, signal.SIGTERM)
        try:
            process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            pass  # it had its chance
    _signal_group(process.pid, signal.SIGKILL)
    for _ in range(3):
        strays = _marked(mark)
        if not strays:
            break
        for stray in strays:
            _signal(stray, signal.SIGKILL)
    process.wait()


def _signal_group(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        pass  # it is gone, or only a zombie is left


def _signal(process: int, number: signal.Signals) -> None:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass  # it is gone


def _marked(mark: str) -> list[int]:
    """Return the living processes that were started with this mark, where /proc tells."""
    needle = f"{_MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if needle in entry.read_bytes():
                found.append(int(entry.parent.name))
        except OSError:
            continue  # it ended while we looked, or is another user's
    return found
