"""Protected names that a command made although they did not exist: they are set aside, never left standing.

A mount can protect only what exists, and a placeholder would be litter in the user's repository. So the names
at the root are compared before and after; what they were is written down first, so that the next start can do
it where a kill came in between.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from agentflow.core.errors import InvalidFile
from agentflow.core.record import Record, encode
from agentflow.parse import decode
from agentflow.sandbox.links import find_links
from agentflow.sandbox.profile import is_protected, protected_names
from agentflow.sandbox.scratch import abandoned, scratch_file


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
def watched(root: Path, names: Iterable[str], aside: Path, opened: Iterable[str]) -> Iterator[list[str]]:
    """Let a command run; the list is filled with the names that were set aside, `names` were there before."""
    before = {name: _leading(root / name) for name in sorted(names)}
    opened = tuple(opened)
    missing = tuple(_missing(root, [name for name in before if is_protected(name, opened)]))
    note = _Note(root=str(root), before=before, opened=opened, aside=str(aside), missing=missing)
    found: list[str] = []
    with scratch_file(encode(note)):
        try:
            yield found
        finally:
            found += _set_aside(note)


def sweep() -> tuple[str, ...]:
    """Clear away what killed processes left; return what protected paths of theirs were set aside."""
    found: list[str] = []
    for left in abandoned():
        try:
            note = decode(_Note, left.read_bytes(), left.name)
            found += [f"{note.root}/{name}" for name in _set_aside(note)]
        except (OSError, InvalidFile):
            pass  # a folder and no note, or the repository is gone
    return tuple(found)


def _set_aside(note: _Note) -> list[str]:
    root, aside = Path(note.root), Path(note.aside)
    here = (name for name in protected_names(root) if is_protected(name, note.opened))
    new = sorted(name for name in here if _leading(root / name) != note.before.get(name))
    new += [name for name in note.missing if os.path.lexists(root / name)]
    for name in new:
        place = _free(aside / (f"{name}~" if "/" in name else name))  # no repository there either
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.rename(root / name, place)  # noqa: PTH104  # a link itself is moved, never followed
    for name, target in note.before.items():
        if target and is_protected(name, note.opened) and not os.path.lexists(root / name):
            os.symlink(target, root / name)  # noqa: PTH211  # as it was
    return new


def _missing(root: Path, names: Iterable[str]) -> Iterator[str]:
    for _, real in find_links(root, names):
        if root in real.parents and not real.exists():
            yield real.relative_to(root).as_posix()


def _free(place: Path) -> Path:
    return _free(place.with_name(f"{place.name}~")) if os.path.lexists(place) else place


def _leading(place: Path) -> str:
    return os.fsdecode(place.readlink()) if place.is_symlink() else ""
