"""Protected names: where their links lead, and what becomes of those that a command makes.

A repository can hold a link in the place of any file; what a protected name leads to is protected as it is.
A mount can protect only what exists, and a placeholder would be litter in the user's repository. So the
names at the root are compared before and after a command, and new ones are set aside. What they were is
written down first, so that the next start can do it where a kill came in between.
"""

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from agentflow.core.errors import ConfigError, InvalidFile
from agentflow.core.record import Record, encode
from agentflow.parse import decode
from agentflow.sandbox.profile import find_protected_names, is_git, is_protected
from agentflow.sandbox.scratch import scratch_file, take_abandoned


class _Note(Record):
    """What stood at the root before a command."""

    root: str
    before: dict[str, str]
    """By name, and where it leads if it is a link, which no mount protects."""
    opened: tuple[str, ...]
    aside: str
    """Where what is new is moved to."""
    missing: tuple[str, ...] = ()
    """What links of protected names lead to in the repository, and what is not there."""


@contextmanager
def set_aside_new_names(
    root: Path, names: Iterable[str], aside: Path, opened: Iterable[str]
) -> Iterator[list[str]]:
    """Let a command run; the list is filled with the names that were set aside, `names` were there before."""
    before = {name: _read_link(root / name) for name in sorted(names)}
    opened = tuple(opened)
    missing = tuple(_find_missing(root, [name for name in before if is_protected(name, opened)]))
    note = _Note(root=str(root), before=before, opened=opened, aside=str(aside), missing=missing)
    found: list[str] = []
    with scratch_file(encode(note)):
        try:
            yield found
        finally:
            found += _set_aside(note)


def clear_leftovers() -> tuple[str, ...]:
    """Clear away what killed processes left; return what protected paths of theirs were set aside."""
    found: list[str] = []
    for left in take_abandoned():
        try:
            note = decode(_Note, left.read_bytes(), left.name)
            found += [f"{note.root}/{name}" for name in _set_aside(note)]
        except (OSError, InvalidFile):
            pass  # a folder and no note, or the repository is gone
    return tuple(found)


def _set_aside(note: _Note) -> list[str]:
    root, aside = Path(note.root), Path(note.aside)
    here = (name for name in find_protected_names(root) if is_protected(name, note.opened))
    new = sorted(name for name in here if _read_link(root / name) != note.before.get(name))
    new += [name for name in note.missing if os.path.lexists(root / name)]
    for name in new:
        place = _free(aside / (f"{name}~" if "/" in name else name))  # no repository there either
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.rename(root / name, place)  # noqa: PTH104  # a link itself is moved, never followed
    for name, target in note.before.items():
        if target and is_protected(name, note.opened) and not os.path.lexists(root / name):
            os.symlink(target, root / name)  # noqa: PTH211  # as it was
    return new


def _find_missing(root: Path, names: Iterable[str]) -> Iterator[str]:
    for _, real in find_links(root, names):
        if root in real.parents and not real.exists():
            yield real.relative_to(root).as_posix()


def _free(place: Path) -> Path:
    return _free(place.with_name(f"{place.name}~")) if os.path.lexists(place) else place


def _read_link(place: Path) -> str:
    return os.fsdecode(place.readlink()) if place.is_symlink() else ""


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
            todo += _list_links(place)


def _list_links(folder: Path) -> list[Path]:
    """Return what of a folder may be a link, or hold one."""
    try:
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if entry.is_symlink() or entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []  # not ours to read
    return [folder / entry.name for entry in found if entry.name not in _LEFT_OUT]


def require_firm_links(root: Path, opened: Iterable[str] = ()) -> None:
    """Refuse a protected name whose link a command could lead elsewhere. Raises ConfigError naming it."""
    names = [name for name in find_protected_names(root) if "/" not in name and is_protected(name, opened)]
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
