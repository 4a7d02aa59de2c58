"""The end of a process, of its group and of whatever left it."""

import os
import resource
import signal
import sys
from pathlib import Path

MARK = "AGENTFLOW_COMMAND"
"""The variable by which a process is known that left its group and has no limit of ours."""
_FILE_LOCKS = 10
"""RLIMIT_LOCKS: without effect since Linux 2.4.25, and inherited by whatever a process starts."""
_ROUNDS = 3


def signal_group(group: int, number: signal.Signals) -> None:
    """Send a signal to a group, if it still is there."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        pass  # it is gone, or only a zombie is left


def brand(process: int, mark: int) -> None:
    """Give a process a limit that all it starts from now on inherits, also with an empty environment."""
    if sys.platform == "linux":
        try:
            _, most = resource.prlimit(process, _FILE_LOCKS)
            resource.prlimit(process, _FILE_LOCKS, (mark, most))
        except (OSError, ValueError):
            pass  # it has ended, or the system does not allow it: its environment is left


def kill_marked(mark: int) -> None:
    """Kill every process that was started with this mark, where /proc tells."""
    killed: set[int] = set()
    for _ in range(_ROUNDS):
        strays = _marked(mark) - killed
        if not strays:
            break
        for stray in strays:
            _kill(stray)
        killed |= strays


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # it is gone, or became another user's


def _marked(mark: int) -> set[int]:
    numbers = [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]
    return {number for number in numbers if _is_branded(number, mark) or _says(number, mark)}


def _is_branded(process: int, mark: int) -> bool:
    if sys.platform != "linux":
        return False
    try:
        return resource.prlimit(process, _FILE_LOCKS)[0] == mark
    except OSError:
        return False  # it ended while we looked, or is another user's


def _says(process: int, mark: int) -> bool:
    """Tell by its environment whether a process is marked: it may have begun before it had its limit."""
    try:
        return f"{MARK}={mark:016x}".encode() in Path(f"/proc/{process}/environ").read_bytes()
    except OSError:
        return False
