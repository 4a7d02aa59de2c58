"""Private folders and notes for one command, gone with it, however deep its folders are.

What a kill leaves is found by the next start.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agentflow.descendants import is_alive
from agentflow.process import capture

_UNLOCKED, _LOCKED = "agentflow-new-", "agentflow-scratch-"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a new folder that nobody else can enter."""
    made = Path(tempfile.mkdtemp(prefix=f"{_UNLOCKED}{os.getpid()}-")).resolve()
    descriptor = os.open(made, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    folder = made.rename(made.with_name(_LOCKED + made.name.removeprefix(_UNLOCKED)))
    try:
        yield folder
    finally:
        remove_scratch(folder)
        os.close(descriptor)


@contextmanager
def scratch_file(content: bytes) -> Iterator[None]:
    """Keep a note in a new file that nobody else can read."""
    descriptor, name = tempfile.mkstemp(prefix=f"{_UNLOCKED}{os.getpid()}-")
    place = Path(name)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(descriptor, content)
        place = place.rename(place.with_name(_LOCKED + place.name.removeprefix(_UNLOCKED)))
        yield
    finally:
        place.unlink(missing_ok=True)
        os.close(descriptor)


def take_abandoned() -> Iterator[Path]:
    """Yield the folders and notes of processes that were killed, and remove each."""
    folder = Path(tempfile.gettempdir()).resolve()
    unlocked = (left for left in folder.glob(f"{_UNLOCKED}*") if not _is_being_made(left.name))
    for left in (*folder.glob(f"{_LOCKED}*"), *unlocked):
        try:
            descriptor = os.open(left, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            continue  # gone, or another user's
        try:
            if os.fstat(descriptor).st_uid == os.getuid() and _is_free(descriptor):
                yield left
                remove_scratch(left)
        finally:
            os.close(descriptor)


def is_scratch(path: Path) -> bool:
    """Tell whether a path lies in a private folder of ours, which the commands that it is for always see."""
    above = (path, *path.parents)
    tops = (place for place in above if place.parent == Path(tempfile.gettempdir()).resolve())
    return any(place.name.startswith((_LOCKED, _UNLOCKED)) for place in tops)


def _is_being_made(name: str) -> bool:
    """Tell whether the process that made it is there, which is about to lock it."""
    pid = name.removeprefix(_UNLOCKED).partition("-")[0]
    return not pid.isdecimal() or is_alive(int(pid))


def _is_free(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def remove_scratch(folder: Path) -> None:
    """Delete a file, or a folder with all that is in it, also what nobody may write or list, however deep."""
    if folder.is_file() and not folder.is_symlink():
        folder.unlink(missing_ok=True)
        return
    with suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        raze(folder)


def walk(root: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield what `os.walk` does, without a call for each level: that ends at the thousandth."""
    todo = [str(root)]
    while todo:
        if listed := next(os.walk(todo.pop()), None):
            yield listed
            place, names, _ = listed
            inner = (f"{place}/{name}" for name in reversed(names))
            todo += [path for path in inner if not os.path.islink(path)]  # noqa: PTH114  # strings from os.walk


def raze(folder: Path) -> None:
    """Delete a folder in which paths may be too long to be named, or that nobody may list, as far as can be.

    Python's own calls itself for each level, and these programs do not.
    """
    locked = ("-type", "d", "!", "-perm", "-700", "-execdir", "chmod", "u+rwx", "{}", ";")
    for words in (("find", str(folder), *locked), ("rm", "-rf", "--", str(folder))):
        with suppress(OSError):
            capture(words, cwd=folder.parent)
