"""Finds and ends everything that a command started: its group, and processes that left it."""

import os
import resource
import select
import selectors
import signal
import sys
import time
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from enum import Enum
from functools import partial
from pathlib import Path
from threading import Lock

CHILD_MARK = "AGENTFLOW_COMMAND"
"""The variable by which a process is known that left its group and has no limit of ours."""
_FILE_LOCKS = 10
"""RLIMIT_LOCKS: without effect since Linux 2.4.25, and inherited by whatever a process starts."""
_PATIENCE_SECONDS = 1.0
_TICK = 0.002
_LONG_TICK = 0.05
_COUNT_SECONDS = 0.05
_NICE = 1
_ONE_AT_A_TIME = Lock()
"""The mark is a limit of our whole process, so only one thread starts a command at a time."""


class Halt(Enum):
    TIME = "time"
    CROWD = "crowd"
    CANCELLED = "cancelled"


def make_halt_check(
    timeout: float, most_tasks: int, mark: int, cancelled: Callable[[], bool]
) -> Callable[[], Halt | None]:
    """Return the function that says whether a command has to be halted, and why."""
    deadline, looked = time.monotonic() + timeout, 0.0

    def halt() -> Halt | None:
        nonlocal looked
        now = time.monotonic()
        if now >= deadline:
            return Halt.TIME
        if cancelled():
            return Halt.CANCELLED
        if now < looked + _COUNT_SECONDS:
            return None
        looked = now
        # the count for the whole machine is cheap, and never below that of the command
        is_crowded = _count_tasks() > most_tasks and _is_crowd(mark, most_tasks)
        return Halt.CROWD if is_crowded else None

    return halt


def lower_priority(process: int) -> None:
    """Give a command a lower priority than ours, so that its fork bomb cannot keep us from ending it."""
    # it may have ended, or we were started with a lower one (`nice -n 15 agentflow`), which is kept
    with suppress(ProcessLookupError, PermissionError):
        os.setpriority(os.PRIO_PROCESS, process, _NICE)


@contextmanager
def watch_end(pid: int, selector: selectors.BaseSelector) -> Iterator[tuple[float, Callable[[], object]]]:
    """Let a selector see a process end; yield how long it may wait, and what waits for that end alone."""
    if not hasattr(os, "pidfd_open"):
        yield _TICK, partial(time.sleep, _TICK)
        return
    descriptor = os.pidfd_open(pid)
    selector.register(descriptor, selectors.EVENT_READ)
    end = select.poll()
    end.register(descriptor, select.POLLIN)
    try:
        yield _LONG_TICK, partial(end.poll, _LONG_TICK * 1000)
    finally:
        os.close(descriptor)


def signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):  # it is gone, or only a zombie is left
        os.killpg(group, number)


@contextmanager
def mark_children(mark: int | None = None) -> Iterator[None]:
    """Give processes that are started inside a mark, which they inherit even with an empty environment."""
    with _ONE_AT_A_TIME:
        if mark is None or sys.platform != "linux":
            yield
            return
        before = resource.getrlimit(_FILE_LOCKS)
        try:
            _set_limit((mark, before[1]))
            yield
        finally:
            _set_limit(before)


def _set_limit(limit: tuple[int, int]) -> None:
    with suppress(OSError, ValueError):  # the system does not let us: the environment is left
        resource.setrlimit(_FILE_LOCKS, limit)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True


def list_processes() -> frozenset[int]:
    """Return the numbers of all processes; empty without /proc."""
    try:
        names = os.listdir("/proc")  # noqa: PTH208  # at every command, and a path for each takes long
    except OSError:
        return frozenset()
    return frozenset(int(name) for name in names if name.isdecimal())


def _count_tasks() -> int:
    try:
        descriptor = os.open("/proc/loadavg", os.O_RDONLY)  # a quarter of the time that a path takes
    except OSError:
        return 0
    try:
        return int(os.read(descriptor, 256).split()[3].partition(b"/")[2])
    finally:
        os.close(descriptor)


def _is_crowd(mark: int, most: int) -> bool:
    marked = [number for number in list_processes() if _read_limit(number) == mark]
    threads = 0
    for number in marked if len(marked) <= most else ():
        with suppress(OSError):  # it ended while we looked
            threads += int(_read_status(number)[17])
    return len(marked) > most or threads > most


def kill_marked(mark: int, older: AbstractSet[int]) -> None:
    """Kill every process with this mark and wait until it is dead; `older` ran before there was one."""
    patience = time.monotonic() + _PATIENCE_SECONDS
    while strays := [_stop(stray) for stray in _find_marked(mark, older)]:
        for stray in strays:
            _send(stray, signal.SIGKILL)
        if time.monotonic() > patience:
            break  # what the kernel itself holds dies when it is let go
        time.sleep(_TICK)  # one with much memory still has its ports and locks for a while


def _stop(process: int) -> int:
    """Stop a process, so that it neither forks on nor reacts to the end of its child."""
    _send(process, signal.SIGSTOP)
    return process


def _send(process: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):  # it is gone, or became another user's
        os.kill(process, number)


def _find_marked(mark: int, older: AbstractSet[int]) -> Iterator[int]:
    # an old number may be a new process by now; reading the limit is cheap, the environment is not
    for number in sorted(list_processes()):
        if _has_marked_limit(number, mark) or (number not in older and _has_marked_environment(number, mark)):
            yield number


def _read_limit(process: int) -> int | None:
    if sys.platform != "linux":
        return None
    try:
        return resource.prlimit(process, _FILE_LOCKS)[0]
    except OSError:
        return None  # it ended while we looked, or is another user's


def _has_marked_limit(process: int, mark: int) -> bool:
    try:
        return _read_limit(process) == mark and _read_status(process)[0] not in (b"Z", b"X")
    except OSError:
        return False  # it ended while we looked


def _read_status(process: int) -> list[bytes]:
    """Return the fields of `/proc/PID/stat` from the state on. Raises OSError when it is gone."""
    return Path(f"/proc/{process}/stat").read_bytes().rpartition(b") ")[2].split()


def _has_marked_environment(process: int, mark: int) -> bool:
    """Return whether a process has the mark in its environment, for where limits cannot be set."""
    try:
        return f"{CHILD_MARK}={mark:016x}".encode() in Path(f"/proc/{process}/environ").read_bytes()
    except OSError:
        return False
