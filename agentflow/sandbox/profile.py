"""What a command may touch, by who runs it."""

import os
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from agentflow.core.record import Record


class Level(StrEnum):
    """How much of a profile the machine can hold."""

    FULL = "full"
    PARTIAL = "partial"
    NONE = "none"


class Access(StrEnum):
    """What becomes of what a command writes into the repository."""

    READ = "read"
    """It cannot write there."""
    WRITE = "write"
    """It stays, but for the protected paths."""
    THROW_AWAY = "throw away"
    """It is gone with the command."""


CHECKS = "checks"
"""Who runs the required checks: the program."""
ACCESS: Mapping[str, Access] = MappingProxyType(
    {"implementer": Access.WRITE, "verifier": Access.THROW_AWAY, CHECKS: Access.THROW_AWAY}
)
"""By who runs the command; everybody else only reads."""
POLICY = (".claude", ".agents", ".mcp.json")
"""Names that decide over roles, hooks and permissions: no role and no command writes them, nor makes them."""
CONFIGURATION = (
    *("CLAUDE.md", "AGENTS.md", ".env", ".envrc", ".vscode", ".idea", ".devcontainer", ".husky"),
    *(".pre-commit-config.yaml", ".gitmodules", ".gitattributes"),
)
"""Names at the root that other programs execute or obey: no command writes them, nor makes them."""
SHARED = (".venv", "venv", "env", "node_modules")
"""Environments at the root, which a copy does not copy: it shows them read-only."""


class Opened(Record):
    """What the user's own settings and the command line open."""

    network: tuple[str, ...] = ()
    """Who may reach the network."""
    readable: tuple[Path, ...] = ()
    """Hidden places that may be read all the same."""
    environment: Mapping[str, str] = {}
    """Variables a command gets beside the usual ones."""
    names: tuple[str, ...] = ()
    """Protected names that commands may write."""
    masked: tuple[Path, ...] = ()
    """What of the repository no role's command may read."""


class Profile(Record):
    """All that one command may touch."""

    root: Path
    source: Path
    """What stands at the root: the repository, or a throw-away view of it."""
    access: Access
    cwd: str
    network: bool
    hidden: tuple[Path, ...]
    readable: tuple[Path, ...]
    """Below hidden places."""
    protected: tuple[Path, ...]
    """Of those that exist."""
    masked: tuple[Path, ...]
    writable: tuple[Path, ...]
    """Beside the repository."""


def is_protected(name: str, opened: Iterable[str] = ()) -> bool:
    """Tell whether no command may write what has this path, however it is spelled."""
    plain = name.lower()
    if plain in {each.lower() for each in opened}:
        return False
    known = {each.lower() for each in (".git", *POLICY, *CONFIGURATION)}
    return plain in known or plain.startswith(".env.") or plain.endswith("/.git")


def protected_names(root: Path) -> frozenset[str]:
    """Return the protected paths that there are now: names at the root, and git's folders anywhere.

    Git runs what the configuration of a repository inside names, and no difference of trees shows it.
    """
    top = (entry.name for entry in root.iterdir())
    return frozenset(path for path in (*top, *_inside(root)) if is_protected(path))


def _inside(root: Path) -> Iterator[str]:
    """Yield git's folders below folders of a repository, environments left out."""
    folders = [""]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(root / folder) as entries:
                found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        except OSError:
            continue  # not ours to read, or gone
        yield from (f"{folder}{name}" for name, _ in found if folder and name.lower() == ".git")
        left_out = {".git", "node_modules"} if folder else {".git", *SHARED}
        folders += [f"{folder}{name}/" for name, is_folder in found if is_folder and name not in left_out]
