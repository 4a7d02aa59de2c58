"""One writer in a repository: a lock that the kernel gives back when its holder dies."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from agentflow.core.errors import ConfigError, InvalidFile, TaskLocked
from agentflow.descendants import is_alive
from agentflow.frontmatter import write_whole
from agentflow.store.reading import TASKS, state_folder
from agentflow.trust import content

HOLDER = "writer.pid"


@contextmanager
def writer_lock(root: Path) -> Iterator[None]:
    """Hold the right to change this repository's files. Raises TaskLocked while another task does."""
    folder = state_folder(root)
    with ExitStack() as stack:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not os.path.lexists(folder / ".gitignore"):  # one that is there may be the user's
                write_whole(folder / ".gitignore", b"*\n")
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            lock = os.open(folder / "writer.lock", flags, 0o600)
            stack.callback(os.close, lock)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TaskLocked(
                "another task is at work in this repository",
                hint="wait for it, or look at it with agentflow status",
            ) from None
        except OSError as error:
            raise ConfigError(
                f"cannot write {folder}: {error.strerror}",
                hint="agentflow keeps its state below .claude/ in the repository",
            ) from None
        holder = folder / HOLDER
        stack.callback(holder.unlink, missing_ok=True)
        write_whole(holder, str(os.getpid()).encode())
        yield


def is_at_work(root: Path) -> bool:
    """Tell whether a process works in a repository; one that was killed leaves its number behind."""
    pid = find_writer(root)
    return pid is not None and is_alive(pid)


def find_writer(root: Path) -> int | None:
    """Return the process that says it works in a repository; only the lock itself is binding."""
    try:
        return int(content(root / TASKS / HOLDER))
    except (OSError, ValueError, InvalidFile):
        return None
