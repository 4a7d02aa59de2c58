"""Putting the files back as they were before a task."""

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from functools import partial
from pathlib import Path, PurePosixPath

from agentflow.core.errors import StateError
from agentflow.core.record import Record
from agentflow.workspace.git import Git
from agentflow.workspace.openat import HERE, find_opener, open_folder
from agentflow.workspace.snapshot import FileEntries, FileEntry, KeptSnapshots, is_changed_after, read_entry

_LINK = "120000"


class UndoPlan(Record):
    """What undoing a task comes to."""

    restored: Mapping[str, FileEntry]
    """What is written, with what."""
    removed: tuple[str, ...]
    changed_since: tuple[str, ...]
    """What the task changed and somebody else did after it."""
    left: tuple[str, ...]
    """What is not as it was before the task and stays so, since somebody else changed it."""
    unclear: tuple[str, ...]
    """What a command may have changed that was at work when the task was killed, or somebody since."""


class Moments(Record):
    """The files of a task at the three moments that count."""

    base: FileEntries
    last: FileEntries
    now: FileEntries


class Death(Record):
    """How a task ended that was killed."""

    at: float
    """When it last wrote something down."""
    in_flight: bool
    """Something was at work then that may have changed files."""


class Fate(Enum):
    """What undoing does with one file."""

    LEFT = "left"
    BACK = "back"
    CHANGED = "changed"
    UNCLEAR = "unclear"


def plan_undo(
    root: Path,
    kept: KeptSnapshots,
    moments: Moments,
    death: Death | None,
    spared: frozenset[str] = frozenset(),
) -> UndoPlan:
    """Return what is to be done; `death` is None for a task that knew of its end.

    What is `spared` stays as it is, whoever changed it.
    """
    paths = sorted(moments.base.keys() | moments.last.keys() | moments.now.keys())
    differing = (path for path in paths if moments.base.get(path) != moments.now.get(path))
    fates = {path: _fate(root / path, path, moments, death) for path in differing}
    for path in filter(partial(_was_ignored, kept), fates):
        if path not in moments.base or fates[path] is Fate.CHANGED:
            fates[path] = Fate.LEFT  # programs of the user's write there as well
    fates |= dict.fromkeys(spared & fates.keys(), Fate.LEFT)
    back = [path for path, fate in fates.items() if fate is not Fate.LEFT]
    return UndoPlan(
        restored={path: moments.base[path] for path in back if path in moments.base},
        removed=tuple(path for path in back if path not in moments.base),
        changed_since=tuple(path for path, fate in fates.items() if fate is Fate.CHANGED),
        left=tuple(path for path, fate in fates.items() if fate is Fate.LEFT),
        unclear=tuple(path for path, fate in fates.items() if fate is Fate.UNCLEAR),
    )


def _fate(place: Path, path: str, moments: Moments, death: Death | None) -> Fate:
    """Decide about a file that is not as it was before the task."""
    after, here = moments.last.get(path), moments.now.get(path)
    if after == here or (death is not None and not is_changed_after(place, death.at)):
        return Fate.BACK
    if moments.base.get(path) != after:
        return Fate.CHANGED
    return Fate.UNCLEAR if death is not None and death.in_flight else Fate.LEFT


def put_back(git: Git, found: UndoPlan, base: FileEntries) -> None:
    """Make the files what they were, each at once. Raises StateError naming what is in the way."""
    with _descriptor(git.root) as root:
        for path in reversed(found.removed):
            with _name_problem(path), _parent(root, path) as (folder, leaf):
                _remove(folder, leaf)
        _remove_empty(git.root, found.removed, base)
        for path, entry in found.restored.items():
            with _name_problem(path), _parent(root, path) as (folder, leaf):
                _restore(folder, leaf, entry, read_entry(git, entry))


@contextmanager
def _name_problem(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        problem = f"{path} cannot be put back: {error.strerror}"
        raise StateError(problem, hint="move away what is there, and undo again") from None


@contextmanager
def _parent(root: int, path: str) -> Iterator[tuple[int, str]]:
    """Yield the folder of a file, made where it is missing, and the file's name in it."""
    parent, _, leaf = path.rpartition("/")
    folder = open_folder(find_opener(), root, parent or HERE)
    try:
        yield folder, leaf
    finally:
        os.close(folder)


@contextmanager
def _descriptor(root: Path) -> Iterator[int]:
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _remove(folder: int, leaf: str) -> None:
    try:
        os.unlink(leaf, dir_fd=folder)  # no Path has a folder
    except FileNotFoundError:
        pass  # somebody was faster


def _remove_empty(root: Path, removed: tuple[str, ...], base: FileEntries) -> None:
    """Remove the folders in which nothing is left and in which nothing was."""
    filled = {parent for path in base for parent in PurePosixPath(path).parents}
    emptied = {parent for path in removed for parent in PurePosixPath(path).parents} - filled
    for folder in sorted(emptied, key=lambda each: len(each.parts), reverse=True):
        try:
            (root / folder).rmdir()
        except OSError:
            pass  # something is in it that is not the task's


def _restore(folder: int, leaf: str, entry: FileEntry, content: bytes) -> None:
    temporary = f".agentflow-{secrets.token_hex(8)}.tmp"
    try:
        if entry.kind == _LINK:
            os.symlink(content, os.fsencode(temporary), dir_fd=folder)
        else:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            with os.fdopen(os.open(temporary, flags, 0o600, dir_fd=folder), "wb") as file:
                file.write(content)
                os.fchmod(file.fileno(), entry.mode)
                os.fsync(file.fileno())
        os.replace(temporary, leaf, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        _remove(folder, temporary)
        raise


def _was_ignored(kept: KeptSnapshots, path: str) -> bool:
    return any(path == entry or (entry.endswith("/") and path.startswith(entry)) for entry in kept.ignored)
