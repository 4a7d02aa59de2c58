"""Private folders for one command, gone with it; what a killed process left is removed by the next one."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PREFIX = "agentflow-scratch-"
_YOUNG_SECONDS = 60.0
"""A folder of this age may not be locked yet."""


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a new folder that nobody else can enter."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield folder
    finally:
        os.close(descriptor)
        remove(folder)


def sweep() -> None:
    """Remove the folders of processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue  # gone, or another user's
        try:
            if _is_abandoned(descriptor):
                remove(folder)
        finally:
            os.close(descriptor)


def _is_abandoned(descriptor: int) -> bool:
    found = os.fstat(descriptor)
    if found.st_uid != os.getuid() or time.time() - found.st_ctime < _YOUNG_SECONDS:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def remove(folder: Path) -> None:
    """Delete a folder with all that is in it, also what somebody made read-only."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        for place, _, _ in os.walk(folder):
            Path(place).chmod(0o700)
        shutil.rmtree(folder, ignore_errors=True)
