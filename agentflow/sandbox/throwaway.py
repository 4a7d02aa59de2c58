"""Private folders for one command, and views of the repository that it may change as it likes."""

import fcntl
import filecmp
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agentflow.core.errors import ConfigError
from agentflow.core.record import Record
from agentflow.descendants import is_alive
from agentflow.process import capture
from agentflow.sandbox.environment import is_python_environment
from agentflow.sandbox.profile import CACHES, PYTHON_ENVIRONMENTS, SHARED

_LAYERS = ("lower", "upper", "work", "merged")
HISTORY = "history"
"""Where the git folder of a copy shows the repository's objects, beside its own."""
_OPAQUE = ("trusted.overlay.opaque", "user.overlay.opaque")
"""The attributes by which a layer hides the folder below it: for root, and for other users."""


class View(Record):
    """The files that a command finds in place of the repository: a copy, or a layer above other files."""

    folder: Path
    """The copy, or the files below."""
    layer: Path | None = None
    """The folders of the layer."""
    shown: tuple[str, ...] = ()
    """What of the repository itself is seen there, and cannot be written."""

    @property
    def place(self) -> Path:
        """The folder with all its files; in a layer, only processes that mount it see them."""
        return self.folder if self.layer is None else self.layer / "merged"

    @property
    def folders(self) -> tuple[Path, ...]:
        """The places of its files outside the sandbox; a later folder overrides an earlier one."""
        return (self.folder,) if self.layer is None else (self.folder, self.layer / "upper")

    @property
    def top(self) -> Path:
        """The folder for files that are put into the view."""
        return self.folders[-1]

    @property
    def overlay(self) -> tuple[str, str] | None:
        """The folders to mount: the files below, and those of the layer."""
        return (str(self.folder), str(self.layer)) if self.layer else None

    def is_free(self, path: str) -> bool:
        """Return whether a command finds nothing at a path, and nothing but folders on the way to it."""
        places = self.folders
        for part in Path(path).parts:
            places = tuple(place / part for place in places if _is_there(place / part))
            if not places or _is_gone(places[-1]):
                return True
            if not _is_folder(places[-1]):
                return False
            places = places[-1:] if _is_opaque(places[-1]) else tuple(filter(_is_folder, places))
        return False

    def make_room(self, path: str, *, as_folder: bool) -> Path:
        """Return where to put something at a free path, the folders on the way made."""
        place = self.top / path
        ways = (*reversed(place.parents), place) if as_folder else tuple(reversed(place.parents))
        for folder in ways[len(self.top.parents) + 1 :]:
            _make(folder)
        if _is_there(place) and _is_gone(place):
            place.unlink()
        return place


def make_overlay_view(below: Path, scratch: Path) -> View:
    """Return a view that is a layer above files, its folders made."""
    for name in _LAYERS:
        (scratch / name).mkdir(mode=0o755, parents=True)
    return View(folder=below, layer=scratch)


def has_foreign_files(root: Path) -> bool:
    """Return whether a file belongs to a user or group that a user namespace does not map.

    An overlay cannot copy such a file up (EOVERFLOW); root needs no user namespace.
    """
    if os.geteuid() == 0:
        return False
    owners, groups = {os.geteuid()}, {os.getegid()}
    for folder, names, files in walk(root):
        for name in (*names, *files):
            found = os.lstat(f"{folder}/{name}")
            if found.st_uid not in owners or found.st_gid not in groups:
                return True
    return False


def copy_repository(root: Path, target: Path) -> Path:
    """Copy a repository, git's own folder and shared environments left out but as empty places.

    Raises ConfigError naming what cannot be read.
    """

    def find_left_out(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if name in places} if Path(folder) == root else set()

    places = list_uncopied(root)
    try:
        shutil.copytree(root, target, symlinks=True, ignore=find_left_out, ignore_dangling_symlinks=True)
    except shutil.Error as error:
        (place, *_), *_ = error.args[0]
        hint = "commands work on a copy of all files here; make it readable, or move it away"
        raise ConfigError(f"cannot read {place}", hint=hint) from None
    target.chmod(0o700)  # it may have become read-only, as the repository is
    for name in places:
        (target / name).mkdir()
    return target


def link_left_out(root: Path, copied: Path, names: Iterable[str]) -> None:
    """Let a copy at another place see what was left out of it.

    Tools keep caches among installed packages: such a folder is one of links, to which a command can add.
    """
    for name in names:
        place, source = copied / name, root / name
        if place.is_symlink() or (place.is_dir() and any(place.iterdir())):
            continue  # an earlier command needed it
        place.rmdir() if place.is_dir() else place.unlink(missing_ok=True)
        is_python = place.name in PYTHON_ENVIRONMENTS or is_python_environment(source)
        if place.name not in SHARED or source.is_symlink() or is_python or not source.is_dir():
            place.symlink_to(source, target_is_directory=source.is_dir())
            continue
        place.mkdir()
        for entry in source.iterdir():
            if entry.name not in CACHES:
                (place / entry.name).symlink_to(entry, target_is_directory=entry.is_dir())


def list_uncopied(root: Path) -> frozenset[str]:
    """Return the folders at the root to which copies link instead of having their own."""
    names = (".git", *SHARED)
    return frozenset(name for name in names if (root / name).is_dir() and not (root / name).is_symlink())


def find_overlay_changes(root: Path, upper: Path) -> Iterator[str]:
    """Yield what a command changed in an overlay: A, M or D, and the path."""
    for place, _, files in walk(upper):
        folder = Path(place)
        below = root / folder.relative_to(upper)
        if _is_opaque(folder):
            yield from (f"D {path}" for path in _files(root, below) if not _is_there(upper / path))
        for name in files:
            path = (below / name).relative_to(root)
            if _is_gone(folder / name):
                yield from (f"D {gone}" for gone in _files(root, below / name))
            elif change := _difference(root / path, folder / name):
                yield f"{change} {path}"


def find_copy_changes(root: Path, copied: Path) -> Iterator[str]:
    """Yield what a command changed in a copy: A, M or D, and the path."""
    kept = list_uncopied(root)
    for path in _files(copied, copied):
        if path.parts[0] not in kept and (change := _difference(root / path, copied / path)):
            yield f"{change} {path}"
    for path in _files(root, root):
        if path.parts[0] not in kept and not _is_there(copied / path):
            yield f"D {path}"


def _files(root: Path, below: Path) -> Iterator[Path]:
    """Yield every file at or below a place, relative to the root."""
    if below.is_symlink() or not below.is_dir():
        yield from (below.relative_to(root) for place in (below,) if _is_there(place))
        return
    for place, names, files in walk(below):
        links = (name for name in names if (Path(place) / name).is_symlink())
        yield from ((Path(place) / name).relative_to(root) for name in (*files, *links))


def _difference(before: Path, after: Path) -> str:
    """Return A or M when a file is new or another one, else empty."""
    if not _is_there(before):
        return "A"
    if before.is_symlink() or after.is_symlink():
        same = before.is_symlink() and after.is_symlink() and before.readlink() == after.readlink()
    else:
        modes = {bool(path.stat().st_mode & stat.S_IXUSR) for path in (before, after)}
        same = before.is_file() and len(modes) == 1 and filecmp.cmp(before, after, shallow=False)
    return "" if same else "M"


def _is_folder(place: Path) -> bool:
    return place.is_dir() and not place.is_symlink()


def _make(folder: Path) -> None:
    """Make a folder; where one is gone, what lies below it stays hidden."""
    if not _is_there(folder) or not _is_gone(folder):
        folder.mkdir(exist_ok=True)
        return
    folder.unlink()
    folder.mkdir()
    os.setxattr(folder, _OPAQUE[0] if os.geteuid() == 0 else _OPAQUE[1], b"y")


def _is_gone(place: Path) -> bool:
    """Return whether a layer says of a place that what lies below it is gone."""
    status = place.lstat()
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def _is_opaque(folder: Path) -> bool:
    try:
        return any(name in os.listxattr(folder, follow_symlinks=False) for name in _OPAQUE)
    except OSError:
        return False


def _is_there(path: Path) -> bool:
    return os.path.lexists(path)


_UNLOCKED, _LOCKED, _GONE = "agentflow-new-", "agentflow-scratch-", "agentflow-gone-"
_REMOVE = 'find "$@" -type d ! -perm -700 -execdir chmod u+rwx {} \\;; rm -rf -- "$@"'


@contextmanager
def make_scratch_folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix=f"{_UNLOCKED}{os.getpid()}-")).resolve()
    descriptor = os.open(made, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    folder = made.rename(made.with_name(_LOCKED + made.name.removeprefix(_UNLOCKED)))
    try:
        yield folder
    finally:
        remove_scratch(folder)
        os.close(descriptor)


@contextmanager
def make_scratch_file(content: bytes) -> Iterator[None]:
    """Hold bytes in a new private file, which a kill leaves behind."""
    descriptor, name = tempfile.mkstemp(prefix=f"{_UNLOCKED}{os.getpid()}-")
    place = Path(name)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(descriptor, content)
        place = place.rename(place.with_name(_LOCKED + place.name.removeprefix(_UNLOCKED)))
        yield
    finally:
        place.unlink(missing_ok=True)
        os.close(descriptor)


def take_abandoned() -> Iterator[Path]:
    """Yield the folders and notes of processes that were killed; they are removed in the background."""
    folder = Path(tempfile.gettempdir()).resolve()
    unlocked = (left for left in folder.glob(f"{_UNLOCKED}*") if not _is_being_made(left.name))
    gone = [left for left in folder.glob(f"{_GONE}*") if os.access(left, os.W_OK, follow_symlinks=False)]
    for left in (*folder.glob(f"{_LOCKED}*"), *unlocked):
        try:
            descriptor = os.open(left, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            continue  # gone, or another user's
        try:
            if os.fstat(descriptor).st_uid == os.getuid() and _is_free(descriptor):
                yield left
                with suppress(FileNotFoundError):  # its process, or another that looks, was just removing it
                    gone.append(left.rename(left.with_name(_GONE + left.name)))
        finally:
            os.close(descriptor)
    if gone:
        in_background = f"({_REMOVE}) </dev/null >/dev/null 2>&1 &"
        capture(("sh", "-c", in_background, "sh", *map(str, gone)), cwd=Path("/"))


def is_scratch(path: Path) -> bool:
    """Return whether a path lies in one of our private folders, which their own commands always see."""
    above = (path, *path.parents)
    tops = (place for place in above if place.parent == Path(tempfile.gettempdir()).resolve())
    return any(place.name.startswith((_LOCKED, _UNLOCKED)) for place in tops)


def _is_being_made(name: str) -> bool:
    """Return whether the process that made it is there, which is about to lock it."""
    pid = name.removeprefix(_UNLOCKED).partition("-")[0]
    return not pid.isdecimal() or is_alive(int(pid))


def _is_free(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def remove_scratch(folder: Path) -> None:
    """Delete a file or a folder, also one that is deep, read-only or cannot be listed."""
    if folder.is_file() and not folder.is_symlink():
        folder.unlink(missing_ok=True)
        return
    with suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():  # with paths too long for Python, or folders without rights
        with suppress(OSError):
            capture(("sh", "-c", _REMOVE, "sh", str(folder)), cwd=folder.parent)


def walk(root: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield what `os.walk` does, without a call for each level: that ends at the thousandth."""
    todo = [str(root)]
    while todo:
        if listed := next(os.walk(todo.pop()), None):
            yield listed
            place, names, _ = listed
            inner = (f"{place}/{name}" for name in reversed(names))
            todo += [path for path in inner if not os.path.islink(path)]  # noqa: PTH114  # strings from os.walk
