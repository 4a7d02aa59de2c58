"""The end of a process, of its group and of whatever left it."""

import os
import signal
from pathlib import Path

MARK = "AGENTFLOW_COMMAND"
"""The variable by which a process is known that left its group."""


def signal_group(group: int, number: signal.Signals) -> None:
    """Send a signal to a group, if it still is there."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        pass  # it is gone, or only a zombie is left


def kill_marked(mark: str) -> None:
    """Kill every process that was started with this mark, where /proc tells."""
    for _ in range(3):
        strays = _marked(mark)
        if not strays:
            break
        for stray in strays:
            _kill(stray)


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it is gone


def _marked(mark: str) -> list[int]:
    needle = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if needle in entry.read_bytes():
                found.append(int(entry.parent.name))
        except OSError:
            continue  # it ended while we looked, or is another user's
    return found
