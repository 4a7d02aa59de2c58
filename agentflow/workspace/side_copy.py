"""Copies of the repository in which several work beside each other, and how their changes come together.

A copy outlives the process, so that whoever was killed goes on in it. What was changed there is taken over by
paths: a file that somebody else changed meanwhile is a conflict, whatever stands in it.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from agentflow.core.errors import StateError
from agentflow.core.record import Record, encode
from agentflow.frontmatter import write_atomic
from agentflow.parse import decode
from agentflow.sandbox.throwaway import View
from agentflow.workspace.git import Git
from agentflow.workspace.snapshot import (
    FileEntries,
    FileEntry,
    FileSnapshot,
    InTheWay,
    list_snapshot,
    take_snapshot,
    write_files,
)
from agentflow.workspace.working_copy import WorkingCopy

_MADE = "made.json"
_FILES = "files"
_OURS = frozenset({"agentflow", "worktrees"})


class SideCopy(Record):
    """A copy of the repository's files, and what they were as it was made."""

    main: Path
    """The repository."""
    view: View
    git: Git
    """The repository, with the files of the copy."""
    tree: str
    """The tree that it was made of."""
    start: FileSnapshot

    @property
    def root(self) -> Path:
        return self.view.place


class Merged(Record):
    """What became of the changes of a copy."""

    taken: tuple[str, ...]
    """The files that are as in the copy now."""
    conflicts: tuple[str, ...]
    """The files that somebody else changed too, and that are as they left them."""


class _Made(Record):
    """What is written down of a copy once it is complete."""

    tree: str
    shown: tuple[str, ...]
    start: FileSnapshot


def open_side_copy(git: Git, tree: str, ignored: tuple[str, ...], folder: Path) -> SideCopy:
    """Return the copy of a tree that lies in a folder, made if it is not there or not complete."""
    place = folder / _FILES / git.root.name
    if (folder / _MADE).exists():
        made = decode(_Made, (folder / _MADE).read_bytes(), str(folder / _MADE))
    else:
        remove_side_copy(folder)
        made = _make(git, tree, ignored, folder)
        write_atomic(folder / _MADE, encode(made))
    return SideCopy(
        main=git.root,
        view=View(folder=place, shown=made.shown),
        git=git.on_copy(place),
        tree=made.tree,
        start=made.start,
    )


def remove_side_copy(folder: Path) -> None:
    """Remove a copy, or what a kill left of it."""
    shutil.rmtree(folder, ignore_errors=True)


def _make(git: Git, tree: str, ignored: tuple[str, ...], folder: Path) -> _Made:
    folder.mkdir(mode=0o700, parents=True)
    stage = WorkingCopy(git, tree, ignored)
    stage.fill(outer=folder)
    _lay_policy(git.root / ".claude", stage.view.place / ".claude")
    start = take_snapshot(git.on_copy(stage.view.place))
    return _Made(tree=tree, shown=stage.view.shown, start=start)


def _lay_policy(source: Path, place: Path) -> None:
    """Copy what scripts of hooks need and git may ignore, our own files left out."""
    for folder, names, files in os.walk(source):
        below = Path(folder).relative_to(source)
        names[:] = [name for name in names if below.parts or name not in _OURS]
        for name in files:
            if not os.path.lexists(place / below / name):
                (place / below).mkdir(parents=True, exist_ok=True)
                shutil.copy2(Path(folder, name), place / below / name, follow_symlinks=False)


def read_change(copy: SideCopy) -> dict[str, tuple[FileEntry | None, FileEntry | None]]:
    """Return the files that differ from when a copy was made, each as it was and as it is."""
    before = list_snapshot(copy.git, copy.start)
    after = list_snapshot(copy.git, take_snapshot(copy.git))
    paths = sorted(before.keys() | after.keys())
    pairs = {path: (before.get(path), after.get(path)) for path in paths if path not in copy.view.shown}
    return {path: pair for path, pair in pairs.items() if not _is_same(*pair)}


def merge_change(git: Git, copy: SideCopy) -> Merged:
    """Take the change of a copy over into the repository, but for files that are no more as it began with.

    To do this again changes nothing. Raises StateError naming what cannot be written.
    """
    now = list_snapshot(git, take_snapshot(git))
    found = read_change(copy)
    gone = {path for path, (_, after) in found.items() if after is None}
    conflicts = {path for path, pair in found.items() if _is_conflict(path, pair, now, gone)}
    wanted = {
        path: after
        for path, (_, after) in found.items()
        if path not in conflicts and not _is_same(after, now.get(path))
    }
    written = {path: _with_mode(after, now.get(path)) for path, after in wanted.items() if after is not None}
    removed = tuple(path for path, after in wanted.items() if after is None)
    try:
        write_files(git, written, removed, {**now, **written})
    except InTheWay as error:
        hint = "move away what is there, then: agentflow resume"
        raise StateError(f"{error.path} cannot be written: {error.reason}", hint=hint) from None
    taken = (path for path in found if path not in conflicts)
    return Merged(taken=tuple(taken), conflicts=tuple(sorted(conflicts)))


def _is_conflict(
    path: str, pair: tuple[FileEntry | None, FileEntry | None], now: FileEntries, gone: set[str]
) -> bool:
    before, after = pair
    here = now.get(path)
    if not (_is_same(here, before) or _is_same(here, after)):
        return True
    return after is not None and any(each not in gone for each in _find_obstacles(path, now))


def _find_obstacles(path: str, now: FileEntries) -> Iterator[str]:
    """Yield the files that stand where a folder of the path has to be, or below the path itself."""
    yield from (str(parent) for parent in PurePosixPath(path).parents if str(parent) in now)
    yield from (each for each in now if each.startswith(f"{path}/"))


def _is_same(one: FileEntry | None, other: FileEntry | None) -> bool:
    """Tell whether two files are the same for git."""
    if one is None or other is None:
        return one is other
    return (one.kind, one.id) == (other.kind, other.id)


def _with_mode(entry: FileEntry, here: FileEntry | None) -> FileEntry:
    """Return a file with the mode that it has in the repository, unless it became a program or a link."""
    return entry.replace(mode=here.mode) if here is not None and here.kind == entry.kind else entry
