"""Copies of the repository for several implementers at the same time, and how their changes are merged.

A copy outlives the process, so that a killed run continues in it. Its changes are merged into the repository,
also into files that changed there meanwhile; where both sides changed the same lines, that is a conflict.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from agentflow.core.errors import StateError
from agentflow.core.record import Record, encode
from agentflow.frontmatter import write_atomic
from agentflow.parse import decode
from agentflow.sandbox.throwaway import View, remove_scratch
from agentflow.workspace.git import Git
from agentflow.workspace.mixed_tree import merge_texts
from agentflow.workspace.private_git import use_own_objects
from agentflow.workspace.snapshot import (
    FileEntries,
    FileEntry,
    FileSnapshot,
    InTheWay,
    TaskSnapshots,
    list_snapshot,
    read_entry,
    take_snapshot,
    to_snapshot,
    to_unread_entries,
    write_files,
)
from agentflow.workspace.working_copy import WorkingCopy

_MADE = "made.json"
_FILES = "files"
_PLAIN = frozenset({"100644", "100755"})
_TABLES = frozenset({".csv", ".tsv"})
"""Files of lines whose first one may say what stands in the others."""
_LINE_FILES = frozenset({*_TABLES, ".jsonl", ".log", ".ndjson", ".txt"})
"""Files of lines, such as a hook's log: what several add at the end does not depend on each other."""
_OURS = frozenset({"agentflow", "worktrees"})


class SideCopy(Record):
    """A copy of the repository's files, and what they were as it was made."""

    main: Path
    """The repository."""
    view: View
    git: Git
    """The repository, with the files of the copy."""
    tree: str
    """The tree of its files as it was made."""
    start: FileSnapshot

    @property
    def root(self) -> Path:
        return self.view.place


class MergeResult(Record):
    """The result of merging the changes of a copy."""

    taken: tuple[str, ...]
    """The files that hold the change of the copy now."""
    conflicts: tuple[str, ...]
    """The files in which somebody else changed the same, and that are as they left them."""


class _CopyRecord(Record):
    """The record of a copy once it is complete."""

    tree: str
    shown: tuple[str, ...]
    start: FileSnapshot


def open_side_copy(
    git: Git, tree: str, ignored: tuple[str, ...], masked: tuple[Path, ...], folder: Path
) -> SideCopy:
    """Return the copy of a tree that lies in a folder, made if it is not there or not complete.

    What is masked, since no role may read it, is empty there: whoever finds the copy reads what lies in it.
    """
    place = folder / _FILES / git.root.name
    if (folder / _MADE).exists():
        made = decode(_CopyRecord, (folder / _MADE).read_bytes(), str(folder / _MADE))
    else:
        remove_scratch(folder)  # what a kill left of one
        made = _make_copy(WorkingCopy(git, tree, ignored), git, masked, folder)
        write_atomic(folder / _MADE, encode(made))
    return SideCopy(
        main=git.root,
        view=View(folder=place, shown=made.shown),
        git=git.switch_to_copy(place, made.shown),
        tree=made.tree,
        start=made.start,
    )


def _make_copy(stage: WorkingCopy, git: Git, masked: tuple[Path, ...], folder: Path) -> _CopyRecord:
    folder.mkdir(mode=0o700, parents=True)
    stage.fill(outer=folder)
    place = stage.view.place
    _lay_policy(git.root / ".claude", place / ".claude")
    for each in masked:
        if each.is_relative_to(git.root):
            hidden = place / each.relative_to(git.root)
            if hidden.is_file() and not hidden.is_symlink():
                hidden.unlink()
                hidden.touch()
    copied = git.switch_to_copy(place, stage.view.shown)
    return _CopyRecord(tree=copied.write_tree(), shown=stage.view.shown, start=take_snapshot(copied))


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


def merge_change(git: Git, copy: SideCopy, snapshots: TaskSnapshots) -> MergeResult:
    """Take the change of a copy over into the repository, but for files in which others changed the same.

    To do this again changes nothing. Raises StateError naming what cannot be written.
    """
    plan = _plan_merge(git, copy)
    written = {path: entry for path, entry in plan.wanted.items() if entry is not None}
    removed = tuple(path for path, entry in plan.wanted.items() if entry is None)
    kept = {path: entry for path, entry in plan.now.items() if path not in removed} | written
    _announce(git, snapshots, written, removed)
    try:
        write_files(git, written, removed, kept)
    except InTheWay as error:
        hint = "move away what is there, then: agentflow resume"
        raise StateError(f"{error.path} cannot be written: {error.reason}", hint=hint) from None
    return MergeResult(taken=plan.taken, conflicts=plan.conflicts)


def find_conflicts(git: Git, copy: SideCopy) -> tuple[str, ...]:
    """Return the files in which the copy and somebody else changed the same."""
    return _plan_merge(git, copy).conflicts


class _MergePlan(Record):
    """The fate of each file that was changed in a copy."""

    now: FileEntries
    """The files of the repository."""
    wanted: dict[str, FileEntry | None]
    """What is to be written there, and with None removed."""
    taken: tuple[str, ...]
    conflicts: tuple[str, ...]


def _plan_merge(git: Git, copy: SideCopy) -> _MergePlan:
    found = read_change(copy)
    seen = list_snapshot(git, take_snapshot(git))
    now = _add_ignored(git, seen, found)
    gone = {path for path, (_, after) in found.items() if after is None}
    wanted: dict[str, FileEntry | None] = {}
    conflicts = []
    for path, pair in found.items():
        after, here = pair[1], now.get(path)
        if _is_conflict(path, pair, now, gone):
            after = _merge_file(git, path, pair, seen.get(path))  # what git ignores is the user's
            if after is None:
                conflicts.append(path)
                continue
        if not _is_same(after, here):
            wanted[path] = None if after is None else _with_mode(after, here)
    taken = tuple(path for path in found if path not in conflicts)
    return _MergePlan(now=now, wanted=wanted, taken=taken, conflicts=tuple(conflicts))


def _merge_file(
    git: Git, path: str, pair: tuple[FileEntry | None, FileEntry | None], here: FileEntry | None
) -> FileEntry | None:
    """Return a file with the changes of both sides, or None where they changed the same lines."""
    before, after = pair
    sides = [entry for entry in (before, after, here) if entry is not None]
    if after is None or here is None or not {entry.kind for entry in sides} <= _PLAIN:
        return None
    ours, base, theirs = (read_entry(git, entry) if entry else b"" for entry in (here, before, after))
    suffix = PurePosixPath(path).suffix
    is_list = suffix in _LINE_FILES and (bool(base) or suffix not in _TABLES)
    merged = _join_ends(ours, base, theirs) if is_list else None
    if merged is None and before is not None:
        merged = merge_texts(git, ours, base, theirs)
    if merged is None:
        return None
    stored = git.call("hash-object", "-w", "--stdin", stdin=merged, env=use_own_objects(git.source))
    kind = after.kind if before is not None and here.kind == before.kind else here.kind
    return after.replace(kind=kind, id=stored.decode().strip())


def _join_ends(ours: bytes, base: bytes, theirs: bytes) -> bytes | None:
    """Return a text to whose end both sides added whole lines, with the lines of both; else None."""
    is_appended = ours.startswith(base) and theirs.startswith(base)
    if not is_appended or (base and not base.endswith(b"\n")):
        return None
    added = theirs[len(base) :]
    if ours.endswith(added):
        return ours  # they are there already
    return ours + added if ours.endswith(b"\n") else None


def _announce(git: Git, snapshots: TaskSnapshots, written: FileEntries, removed: tuple[str, ...]) -> None:
    """Record files as changed by the task before they are, since a kill may come meanwhile."""
    kept = snapshots.load()
    files = {**snapshots.read_files(kept.last), **written}
    last = {path: entry for path, entry in files.items() if path not in removed}
    snapshots.save(kept.replace(last=to_snapshot(git, last)))


def _add_ignored(git: Git, seen: FileEntries, paths: Iterable[str]) -> FileEntries:
    """Return the files of the repository, and those at some paths though git ignores them."""
    unseen = [path for path in paths if path not in seen and _is_file(git.root, path)]
    return list_snapshot(git, take_snapshot(git, to_unread_entries(git, unseen))) if unseen else seen


def _is_file(root: Path, path: str) -> bool:
    """Return whether something lies there that is no folder, and no link leads to it."""
    place = root / path
    is_there = place.is_symlink() or place.is_file()
    return is_there and place.parent.resolve() == place.parent


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
    """Return whether two files are the same for git."""
    if one is None or other is None:
        return one is other
    return (one.kind, one.id) == (other.kind, other.id)


def _with_mode(entry: FileEntry, here: FileEntry | None) -> FileEntry:
    """Return a file with the mode that it has in the repository, unless it became a program or a link."""
    return entry.replace(mode=here.mode) if here is not None and here.kind == entry.kind else entry
