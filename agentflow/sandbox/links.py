"""Links: which are followed on the way to a file, and where those of protected names lead.

A repository can hold a link in the place of any file. What a protected name leads to is protected as it is.
"""

import errno
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from agentflow.core.errors import ConfigError
from agentflow.sandbox.profile import is_git, is_protected, protected_names

_MOST = 40
"""Links on one way, as in the kernel."""
_LEFT_OUT = frozenset({"agentflow", "worktrees", "node_modules", ".git"})
"""Folders below protected names that no program obeys: our own state, copies of the repository, packages."""


def follow_links(path: Path) -> Iterator[Path]:
    """Yield each link on the way to what an absolute path names. Raises OSError for a loop."""
    todo, here, found = list(reversed(path.parts[1:])), "/", 0
    while todo:
        part = todo.pop()
        place = os.path.dirname(here) if part == ".." else os.path.join(here, part)  # noqa: PTH118, PTH120
        if part == "..":
            here = place
            continue
        try:
            target = os.readlink(place)  # noqa: PTH115  # strings, since this is done for each call
        except OSError:
            here = place  # no link, or nothing
            continue
        yield Path(place)
        found += 1
        if found > _MOST:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        here = "/" if target.startswith("/") else here
        todo += [part for part in reversed(target.split("/")) if part not in ("", ".")]


def find_links(root: Path, names: Iterable[str]) -> Iterator[tuple[Path, Path]]:
    """Yield the links at and below names at the root, each with what it leads to."""
    todo, seen = [root / name for name in names if "/" not in name and not is_git(name)], set[Path]()
    while todo:
        place = todo.pop()
        if place.is_symlink():
            real = Path(os.path.realpath(place))
            yield place, real
            if root in real.parents and real not in seen:
                seen.add(real)
                todo.append(real)
        elif place.is_dir():
            todo += _entries(place)


def _entries(folder: Path) -> list[Path]:
    """Return what of a folder may be a link, or hold one."""
    try:
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if entry.is_symlink() or entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []  # not ours to read
    return [folder / entry.name for entry in found if entry.name not in _LEFT_OUT]


def require_firm_links(root: Path, opened: Iterable[str] = ()) -> None:
    """Refuse a protected name whose link a command could lead elsewhere. Raises ConfigError naming it."""
    names = [name for name in protected_names(root) if "/" not in name and is_protected(name, opened)]
    links = list(find_links(root, names))
    firm = {*(root / name for name in names), *(real for _, real in links)}
    for place, real in links:
        shown = place.relative_to(root)
        if real == root or real in root.parents:
            raise ConfigError(f"{shown} leads to a folder that holds the repository", hint=_HINT)
        loose = (step for step in follow_links(place) if root in step.parents)
        found = next((step for step in loose if firm.isdisjoint((step, *step.parents))), None)
        if found is not None:
            told = f"{shown} leads through {found.relative_to(root)}, which commands could change"
            raise ConfigError(told, hint=_HINT)


_HINT = "let the link lead to the file itself, or put the file in its place"
