"""What commands and pages do with a repository's memory."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from agentflow.core.errors import StateError
from agentflow.memory.entry import PERSON, EntryKind, MemoryEntry
from agentflow.memory.file import MemoryFile
from agentflow.memory.keep import make_learning
from agentflow.memory.place import MemoryPlace
from agentflow.store.ownership import hold_writer_lock
from agentflow.store.reading import find, read_evidence
from agentflow.workspace.git import Git


def read_memory(git: Git) -> AbstractContextManager[MemoryFile | None]:
    """Return a repository's memory, or nothing where nothing was remembered yet. Raises ConfigError."""
    return MemoryPlace(git, os.environ).look()


@contextmanager
def change_memory(git: Git) -> Iterator[MemoryFile]:
    """Yield a repository's memory to a person who changes it; not while a task is at work.

    Without a sandbox a role's own command could otherwise put its words in the person's mouth.
    Raises TaskLocked.
    """
    with hold_writer_lock(git.root), MemoryPlace(git, os.environ).open() as memory:
        yield memory


def list_memory(git: Git, kind: EntryKind | None = None, most: int = -1) -> tuple[MemoryEntry, ...]:
    """Return what is remembered, the newest first."""
    with read_memory(git) as memory:
        return memory.list_entries(kind, most) if memory else ()


def require_entry(memory: MemoryFile | None, number: int) -> MemoryEntry:
    found = memory.find(number) if memory else None
    if found is None:
        raise StateError(f"there is no entry {number} in memory", hint="agentflow memory list shows them")
    return found


def keep_learning(git: Git, text: str, cited: str = "") -> MemoryEntry:
    """Keep what a person learnt; `cited` is evidence of the newest task, or `TASK/ev-0001`.

    Raises StateError where there is no such evidence, TaskLocked while a task is at work.
    """
    task, shown = "", None
    if cited:
        named, _, number = cited.rpartition("/")
        folder = find(git.root, named or None)
        task = folder.name
        shown = next((one for one in read_evidence(folder) if one.id == number), None)
        if shown is None:
            raise StateError(f"there is no evidence {number} in {task}", hint="agentflow evidence lists it")
    learning = make_learning(text, PERSON, task, shown)
    with change_memory(git) as memory:
        return memory.keep(learning)
