"""Snapshots of all files before and after a task, byte for byte, and how they are put back.

Ids of trees are of another kind: those convert line ends as a commit would, and their objects are git's.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from enum import Enum
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath

from agentflow.core.errors import StateError
from agentflow.core.record import Record, encode
from agentflow.frontmatter import write_atomic
from agentflow.parse import decode
from agentflow.workspace.git import Git
from agentflow.workspace.ignored_files import list_precious
from agentflow.workspace.path_guard import open_parent, open_root, remove_beneath, replace_beneath
from agentflow.workspace.private_git import OBJECTS, use_own_objects

_USUAL = {"100644": 0o644, "100755": 0o755, "120000": 0o777}


class FileEntry(Record):
    """One file: what git knows of it, and its whole mode."""

    kind: str
    """The mode as git spells it."""
    id: str
    mode: int


FileEntries = Mapping[str, FileEntry]
"""By path relative to the root; bytes that are no UTF-8 as Python gives them."""


class FileSnapshot(Record):
    tree: str
    modes: dict[str, int] = {}
    """Of those whose mode is not what git would give them."""


def take_snapshot(git: Git, known: FileEntries | None = None) -> FileSnapshot:
    """Record the files as they are now, including known files that have become ignored."""
    with _folder(git) as env:
        has = git.exact.find_tracked(git.call, env) if known else set()
        missing = {path: entry for path, entry in (known or {}).items() if os.fsencode(path) not in has}
        if missing:
            git.call("update-index", "-z", "--index-info", env=env, stdin=_lines(missing))
        tree = git.exact.write_within(git.call, env)
    return to_whole_snapshot(git, tree)


def take_commit_snapshot(git: Git) -> FileSnapshot | None:
    """Record the files where they are found to be those of the newest commit, byte for byte."""
    entries = git.trees.find_entries(git.head) if git.head else None
    if git.head is None or entries is None or git.trees.may_convert(git.call, entries):
        return None
    _make_store(git)
    return to_whole_snapshot(git, git.head)


def to_snapshot(git: Git, files: FileEntries) -> FileSnapshot:
    with _folder(git) as env:
        git.call("read-tree", "--empty", env=env)
        git.call("update-index", "-z", "--index-info", env=env, stdin=_lines(files))
        tree = git.call("write-tree", "--missing-ok", env=env).decode().strip()
    modes = {path: entry.mode for path, entry in files.items() if entry.mode != _USUAL.get(entry.kind)}
    return FileSnapshot(tree=tree, modes=modes)


def to_unread_entries(git: Git, paths: Iterable[str]) -> FileEntries:
    """Return entries for ignored files, by which a snapshot includes and reads them."""
    nobody = "1" * (64 if git.source.hash == "sha256" else 40)
    return {
        path: FileEntry(kind="120000" if (git.root / path).is_symlink() else "100644", id=nobody, mode=0)
        for path in paths
    }


def list_snapshot(git: Git, snapshot: FileSnapshot) -> dict[str, FileEntry]:
    return {
        path: FileEntry(kind=kind, id=name, mode=snapshot.modes.get(path, _USUAL.get(kind, 0o644)))
        for path, (kind, name) in _list_tree(git, snapshot.tree).items()
    }


def keep_objects(git: Git, snapshot: FileSnapshot) -> None:
    """Copy the objects of a snapshot that no commit has, since git may clear them away."""
    if snapshot.tree == git.head:
        return
    env = use_own_objects(git.source)
    wanted = f"{snapshot.tree}\n" + (f"^{git.head}\n" if git.head else "")
    git.call("pack-objects", "-q", "--revs", f"{env[OBJECTS]}/pack/pack", env=env, stdin=wanted.encode())


def read_entry(git: Git, entry: FileEntry) -> bytes:
    return git.call("cat-file", "blob", entry.id, env=use_own_objects(git.source))


class KeptSnapshots(Record):
    base: FileSnapshot
    """Before it; with what the user changed themselves since, while the task waited."""
    last: FileSnapshot
    """The newest state that the task itself made."""
    ignored: tuple[str, ...]
    """What git ignored as the task began; a folder ends in a slash."""
    is_open: bool = True
    """The task has not ended, or was killed."""
    held: FileSnapshot | None = None
    """A moment of the task itself that its files may go back to."""
    replaced: FileSnapshot | None = None
    """What was there when the task was undone."""


class TaskSnapshots:
    def __init__(self, git: Git, task_id: str) -> None:
        self._git = git
        self._path = git.source.kept / f"{task_id}.json"

    def load(self) -> KeptSnapshots:
        """Return what is kept. Raises StateError when nothing is."""
        try:
            return decode(KeptSnapshots, self._path.read_bytes(), str(self._path))
        except FileNotFoundError:
            raise StateError(
                "nothing is kept of the files before this task",
                hint=f"{self._path.parent} was removed, or the task ended before it began",
            ) from None

    def save(self, kept: KeptSnapshots) -> None:
        write_atomic(self._path, encode(kept))

    def begin(self, moment: float) -> str | None:
        """Record the files before a task, or what the user did since it stopped at `moment`.

        Return the tree of the files if it was found to be that of the newest commit.
        """
        if self._path.exists():
            self._go_on(self.load(), moment)
            return None
        ignored = self._git.list_ignored()
        lasting = to_unread_entries(self._git, list_precious(self._git.root, ignored))
        tree = self._git.head if self._git.is_committed() else None
        committed = None if lasting or tree is None else take_commit_snapshot(self._git)
        snapshot = committed or take_snapshot(self._git, lasting)
        keep_objects(self._git, snapshot)
        self.save(KeptSnapshots(base=snapshot, last=snapshot, ignored=ignored))
        return tree

    def note(self, *, is_over: bool = False, is_same: bool = False) -> None:
        """Record the files as the task has made them; one that ended before it began made none.

        They are not looked at where it is known that the task left them the same.
        """
        if not self._path.exists():
            return
        kept = self.load()
        last = kept.last if is_same else take_snapshot(self._git, self.read_files(kept.base))
        self.save(kept.replace(last=last, is_open=not is_over))

    def hold(self) -> None:
        """Record the files as they are now, to go back to them."""
        kept = self.load()
        held = self.record_now(kept)
        keep_objects(self._git, held)
        self.save(kept.replace(last=held, held=held))

    def go_back(self, spared: frozenset[str]) -> None:
        """Restore the held files, but for spared and ignored ones. Raises InTheWay."""
        kept = self.load()
        if kept.held is None:
            return
        wanted, now = self.read_files(kept.held), self.read_files(self.record_now(kept))
        paths = [path for path in wanted.keys() | now.keys() if wanted.get(path) != now.get(path)]
        own = [path for path in paths if path not in spared and not _was_ignored(kept, path)]
        written = {path: wanted[path] for path in own if path in wanted}
        removed = tuple(sorted(path for path in own if path not in wanted))
        write_files(self._git, written, removed, wanted)
        self.save(kept.replace(last=kept.held))

    def read_files(self, snapshot: FileSnapshot) -> FileEntries:
        return list_snapshot(self._git, snapshot)

    def record_now(self, kept: KeptSnapshots) -> FileSnapshot:
        """Record the files as they are now, including those that the task began with or made."""
        return take_snapshot(self._git, {**self.read_files(kept.last), **self.read_files(kept.base)})

    def _go_on(self, kept: KeptSnapshots, moment: float) -> None:
        """Add the user's changes since the last stop to the base, so that undo leaves them."""
        snapshot = self.record_now(kept)
        base = dict(self.read_files(kept.base))
        held = dict(self.read_files(kept.held)) if kept.held else {}
        last, now = self.read_files(kept.last), self.read_files(snapshot)
        for path in base.keys() | last.keys() | now.keys():
            is_user = not kept.is_open or is_changed_after(self._git.root / path, moment)
            if last.get(path) == now.get(path) or not is_user:
                continue
            for files in (base, held):
                if path in now:
                    files[path] = now[path]
                else:
                    files.pop(path, None)
        rebased = to_snapshot(self._git, base)
        keep_objects(self._git, rebased)
        if kept.held:
            kept = kept.replace(held=to_snapshot(self._git, held))
        self.save(kept.replace(base=rebased, last=snapshot, is_open=True, replaced=None))


def is_changed_after(place: Path, moment: float) -> bool:
    """Return whether a file, or the folder that it is gone from, was changed after a moment."""
    while not os.path.lexists(place):
        place = place.parent
    return os.lstat(place).st_ctime > moment


def to_whole_snapshot(git: Git, tree: str) -> FileSnapshot:
    above, modes = os.fsencode(git.root) + b"/", dict[str, int]()
    for path, kind in _list_kinds(git, tree):
        try:
            mode = stat.S_IMODE(os.lstat(above + path).st_mode)
        except OSError:
            continue
        if mode != _USUAL.get(kind):
            modes[os.fsdecode(path)] = mode
    return FileSnapshot(tree=tree, modes=modes)


def _list_kinds(git: Git, tree: str) -> Iterable[tuple[bytes, str]]:
    if (entries := git.find_entries(tree)) is not None:
        return ((entry.path, f"{entry.mode:o}") for entry in entries)
    return ((os.fsencode(path), kind) for path, (kind, _) in _list_tree(git, tree).items())


@lru_cache(maxsize=2)
def _list_tree(git: Git, tree: str) -> Mapping[str, tuple[str, str]]:
    if (entries := git.find_entries(tree)) is not None:
        return {os.fsdecode(entry.path): (f"{entry.mode:o}", entry.id.hex()) for entry in entries}
    raw = git.call("ls-tree", "-r", "-z", tree, env=use_own_objects(git.source))
    words = (word.partition(b"\t") for word in raw.split(b"\0") if word)
    heads = ((os.fsdecode(path), head.decode().split(" ")) for head, _, path in words)
    return {path: (head[0], head[2]) for path, head in heads}


def _lines(files: FileEntries) -> bytes:
    lines: Iterable[bytes] = (
        f"{entry.kind} blob {entry.id}\t".encode() + os.fsencode(path) for path, entry in files.items()
    )
    return b"".join(line + b"\0" for line in lines)


def _folder(git: Git) -> AbstractContextManager[dict[str, str]]:
    """Return the variables of a git folder of our own that converts nothing."""
    _make_store(git)
    return git.exact.open_folder(git.call)


def _make_store(git: Git) -> None:
    Path(use_own_objects(git.source)[OBJECTS], "pack").mkdir(mode=0o700, parents=True, exist_ok=True)


_LINK = "120000"


class UndoPlan(Record):
    """The files that undoing a task restores, removes or leaves."""

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
    base: FileEntries
    last: FileEntries
    now: FileEntries


class Death(Record):
    """The end of a task that was killed."""

    at: float
    """When it last wrote something down."""
    in_flight: bool
    """Something was at work then that may have changed files."""


class Fate(Enum):
    """The treatment of one file by an undo."""

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
    """Return the plan of an undo; `death` is None for a task that ended by itself.

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
    """Make the files what they were. Raises StateError naming what is in the way."""
    try:
        write_files(git, found.restored, found.removed, base)
    except InTheWay as error:
        problem = f"{error.path} cannot be restored: {error.reason}"
        raise StateError(problem, hint="move away what is there, then undo again") from None


class InTheWay(Exception):
    """A file cannot be written or removed."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path, self.reason = path, reason


def write_files(git: Git, written: FileEntries, removed: tuple[str, ...], kept: FileEntries) -> None:
    """Write and remove files, each at once; folders that hold none of `kept` go with their last file.

    Raises InTheWay.
    """
    with open_root(git.root) as root:
        for path in reversed(removed):
            with _name_problem(path), open_parent(root, path) as (folder, leaf):
                remove_beneath(folder, leaf)
        _remove_empty(git.root, removed, kept)
        for path, entry in written.items():
            with _name_problem(path), open_parent(root, path) as (folder, leaf):
                content, is_link = read_entry(git, entry), entry.kind == _LINK
                replace_beneath(folder, leaf, content, entry.mode, is_link=is_link)


@contextmanager
def _name_problem(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InTheWay(path, str(error.strerror)) from None


def _remove_empty(root: Path, removed: tuple[str, ...], base: FileEntries) -> None:
    """Remove the folders in which nothing is left and in which nothing was."""
    filled = {parent for path in base for parent in PurePosixPath(path).parents}
    emptied = {parent for path in removed for parent in PurePosixPath(path).parents} - filled
    for folder in sorted(emptied, key=lambda each: len(each.parts), reverse=True):
        try:
            (root / folder).rmdir()
        except OSError:
            pass  # something is in it that is not the task's


def _was_ignored(kept: KeptSnapshots, path: str) -> bool:
    return any(path == entry or (entry.endswith("/") and path.startswith(entry)) for entry in kept.ignored)
