"""Where the memory of a repository is kept, and the learnings that lie in the repository itself."""

import hashlib
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agentflow.core.errors import AgentflowError, StateError
from agentflow.core.ports import Workspace
from agentflow.core.task import Instruction
from agentflow.library.instructions import MAX_IN_PROMPT
from agentflow.redact import redact_text
from agentflow.settings import LEARNINGS, find_folders, load_settings
from agentflow.trust import load_trust
from agentflow.workspace.git import Git

if TYPE_CHECKING:
    from agentflow.memory.file import MemoryFile


def find_memory_file(git: Git, environ: Mapping[str, str]) -> Path:
    """Return the file of a repository's memory, which its clones and work trees share.

    The repository is known by the commit that its history began with, by its path before there is one.
    """
    try:
        first = git.call("rev-list", "--first-parent", "--max-parents=0", "HEAD").split()[-1].decode()
    except StateError:
        first = hashlib.sha256(os.fsencode(git.root.resolve())).hexdigest()
    return find_folders(environ).memory / f"{first}.sqlite"


class MemoryPlace(NamedTuple):
    """Where a repository's memory lies. SQLite is loaded only where it is opened."""

    git: Git
    environ: Mapping[str, str]

    def look(self) -> "AbstractContextManager[MemoryFile | None]":
        """Return the memory if there is one. Raises ConfigError."""
        return self.open() if find_memory_file(self.git, self.environ).is_file() else nullcontext()

    def open(self) -> "MemoryFile":
        """Return the memory, made if need be. Raises ConfigError."""
        from agentflow.memory.file import MemoryFile  # noqa: PLC0415
        from agentflow.memory.meaning import load_meaning  # noqa: PLC0415

        meaning = partial(load_meaning, load_settings(self.environ), self.environ)
        return MemoryFile(find_memory_file(self.git, self.environ), meaning)


def load_learnings(workspace: Workspace, environ: Mapping[str, str]) -> tuple[Instruction, ...]:
    """Return the repository's own file of learnings, while a person trusts what it holds."""
    try:
        if not load_trust(find_folders(environ).config, workspace.root).covers(LEARNINGS):
            return ()
        text = redact_text(workspace.read(LEARNINGS).decode("utf-8", "replace")).strip()
    except AgentflowError:
        return ()
    kept = Instruction(path=LEARNINGS, text=text[:MAX_IN_PROMPT], size=len(text))
    return (kept,) if text else ()
