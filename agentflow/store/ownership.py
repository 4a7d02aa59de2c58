"""The tasks that this user began, and the lock that lets one process write.

A task names its model, its budget and a person's decisions. In a task that came with a repository, the author
of the repository would choose all of these.
"""

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from agentflow.core.errors import ConfigError, InvalidFile, TaskLocked, advise_on_os_error
from agentflow.core.pending import Budget
from agentflow.core.record import Record, encode
from agentflow.core.task import TaskState
from agentflow.descendants import is_alive
from agentflow.frontmatter import write_whole
from agentflow.parse import decode
from agentflow.store.reading import EVENTS, TASKS, find_state_folder
from agentflow.trust import read_content


class TaskOrigin(Record):
    """The way in which this user began a task, or took it over."""

    size: int
    """Bytes of its events by then."""
    sum: str
    """Their hash."""
    model: str
    max_iterations: int
    budget: Budget


def record_begun(config: Path, folder: Path, task: TaskState) -> None:
    """Record how a task began; a failure to write that does not stop the task."""
    raw = (folder / EVENTS).read_bytes()
    begun = TaskOrigin(
        size=len(raw),
        sum=hashlib.sha256(raw).hexdigest(),
        model=task.model,
        max_iterations=task.max_iterations,
        budget=task.options.budget,
    )
    place = _place(config, folder)
    with suppress(OSError):
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(place, encode(begun) + b"\n")


def is_own(config: Path, folder: Path, task: TaskState) -> bool:
    """Return whether a task began as this user recorded it, and has the same model and limits."""
    try:
        place = _place(config, folder)
        begun = decode(TaskOrigin, place.read_bytes(), str(place))
        raw = (folder / EVENTS).read_bytes()
    except (OSError, InvalidFile):
        return False
    said = (task.model, task.max_iterations, task.options.budget)
    is_said = said == (begun.model, begun.max_iterations, begun.budget)
    return is_said and hashlib.sha256(raw[: begun.size]).hexdigest() == begun.sum


def _place(config: Path, folder: Path) -> Path:
    return config.parent / "tasks" / f"{folder.name}.json"


HOLDER = "writer.pid"


@contextmanager
def hold_writer_lock(root: Path, patience: float = 0) -> Iterator[None]:
    """Hold the right to change this repository's files. Raises TaskLocked while another task does.

    `patience` is how many seconds to wait for it.
    """
    folder = find_state_folder(root)
    with ExitStack() as stack:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not os.path.lexists(folder / ".gitignore"):  # one that is there may be the user's
                write_whole(folder / ".gitignore", b"*\n")
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            lock = os.open(folder / "writer.lock", flags, 0o600)
            stack.callback(os.close, lock)
            _lock(lock, patience)
        except BlockingIOError:
            raise TaskLocked(
                "another task is at work in this repository",
                hint="wait for it, or look at it with agentflow status",
            ) from None
        except OSError as error:
            raise ConfigError(
                f"cannot write {folder}: {error.strerror}",
                hint=advise_on_os_error(error, "agentflow keeps its state below .claude/ in the repository"),
            ) from None
        holder = folder / HOLDER
        stack.callback(holder.unlink, missing_ok=True)
        write_whole(holder, str(os.getpid()).encode())
        yield


def _lock(descriptor: int, patience: float) -> None:
    """Take the lock. Raises BlockingIOError where somebody has it for so many seconds."""
    for _ in range(round(50 * patience)):
        with suppress(BlockingIOError):
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        time.sleep(1 / 50)
    return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_at_work(root: Path) -> bool:
    """Return whether a process works in a repository; one that was killed leaves its number behind."""
    pid = find_writer(root)
    return pid is not None and is_alive(pid)


def find_writer(root: Path) -> int | None:
    try:
        return int(read_content(root / TASKS / HOLDER))
    except (OSError, ValueError, InvalidFile):
        return None
