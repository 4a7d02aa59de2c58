"""Where the memory of a repository is kept, and the learnings that lie in the repository itself."""

import hashlib
import os
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from agentflow.core.errors import AgentflowError, StateError
from agentflow.settings import LEARNINGS, find_folders
from agentflow.trust import load_trust
from agentflow.workspace.git import Git

if TYPE_CHECKING:
    from agentflow.memory.file import MemoryFile


def find_memory_file(git: Git) -> Path:
    """Return the file of a repository's memory, which its clones and work trees share.

    The repository is known by the commit that its history began with, by its path before there is one.
    """
    try:
        first = git.call("rev-list", "--first-parent", "--max-parents=0", "HEAD").split()[-1].decode()
    except StateError:
        first = hashlib.sha256(os.fsencode(git.root.resolve())).hexdigest()
    return find_folders(os.environ).memory / f"{first}.sqlite"


def look_into_memory(git: Git) -> "AbstractContextManager[MemoryFile | None]":
    """Return a repository's memory if there is one. Raises ConfigError."""
    return open_memory(git) if find_memory_file(git).is_file() else nullcontext()


def open_memory(git: Git) -> "MemoryFile":
    """Return a repository's memory, made if need be; SQLite is loaded only here. Raises ConfigError."""
    from agentflow.memory.file import MemoryFile  # noqa: PLC0415
    from agentflow.memory.meaning import load_meaning  # noqa: PLC0415

    return MemoryFile(find_memory_file(git), load_meaning)


def find_learnings(root: Path) -> tuple[str, ...]:
    """Return the repository's own file of learnings, while a person trusts what it holds."""
    with suppress(AgentflowError):
        return (LEARNINGS,) if load_trust(find_folders(os.environ).config, root).covers(LEARNINGS) else ()
    return ()
