"""What commands and pages do with a repository's memory."""

from collections.abc import Iterator
from contextlib import contextmanager

from agentflow.core.errors import StateError
from agentflow.memory.entry import PERSON, MemoryEntry
from agentflow.memory.file import MemoryFile
from agentflow.memory.keep import make_learning
from agentflow.memory.place import look_into_memory, open_memory
from agentflow.store.ownership import hold_writer_lock
from agentflow.store.reading import find, read_evidence
from agentflow.workspace.git import Git


@contextmanager
def change_memory(git: Git) -> Iterator[MemoryFile]:
    """Yield a repository's memory to a person who changes it; not while a task is at work.

    Without a sandbox a role's own command could otherwise put its words in the person's mouth.
    Raises TaskLocked.
    """
    with hold_writer_lock(git.root), open_memory(git) as memory:
        yield memory


def list_memory(git: Git, most: int = -1, /, **values: object) -> tuple[MemoryEntry, ...]:
    """Return what is remembered with these values, the newest first."""
    with look_into_memory(git) as memory:
        return memory.list_entries(most, **values) if memory else ()


def require_entry(memory: MemoryFile | None, number: int) -> MemoryEntry:
    found = memory.list_entries(id=number) if memory else ()
    if not found:
        raise StateError(f"there is no entry {number} in memory", hint="agentflow memory list shows them")
    return found[0]


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
        memory.add((learning,))
        return memory.list_entries(key=learning.key)[0]
