"""Throw-away copies of a repository's files, and the import path under which a copy tests itself.

A check runs in one and can change nothing that counts.
"""

import json
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath
from threading import Lock
from types import MappingProxyType

from agentflow.core.errors import OutsideWorkspace, StateError
from agentflow.core.evidence import Command
from agentflow.core.record import Record
from agentflow.parse import fit
from agentflow.process import capture
from agentflow.sandbox.confine import build_mount_words
from agentflow.sandbox.environment import is_python_environment
from agentflow.sandbox.profile import CACHES, SHARED
from agentflow.sandbox.run import Sandbox
from agentflow.sandbox.throwaway import HISTORY, View, make_overlay_view, make_scratch_folder
from agentflow.workspace.changes import ChangeKind
from agentflow.workspace.git import Git
from agentflow.workspace.ignored_files import is_package_folder
from agentflow.workspace.private_git import make_git_with_tree, make_private_git, make_unfiltered_git

CHECKOUT = ("checkout-index", "-a", "-f", "-u", "-q")
"""How git writes all files that its index knows."""
_ROOM = 64_000_000
"""Bytes of ignored files that are copied; the rest is seen where it lies, as an environment is."""


class WrittenTree(Record):
    """Files of a tree in a folder, and how git is asked of them."""

    view: View
    git: Git
    env: Mapping[str, str]


class LowerDirectory:
    """The files of one tree, written once: those of any other can be a layer above them."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._lock = Lock()
        self._opened = ExitStack()
        self._below: WrittenTree | None = None
        self._tree = ""
        self._is_mountable = False

    def write_below(self, tree: str) -> WrittenTree:
        """Return the files of the lower layer: those of the first tree that was asked for."""
        with self._lock:
            if self._below is None:
                outer = self._opened.enter_context(make_scratch_folder())
                self._below, self._tree = write_tree(self._git, tree, outer), tree
                self._is_mountable = is_mountable(self._below.view.folder, outer / "trial")
            return self._below

    def write_layer(self, tree: str, outer: Path) -> WrittenTree | None:
        """Put the files of a tree above those here, the layer below a folder; None where that cannot be."""
        below = self.write_below(tree)
        if not (self._is_mountable and self._fits(tree)):
            return None
        view = make_overlay_view(below.view.folder, outer / "layer")
        env = make_unfiltered_git(self._git.source, outer / "layer/git", view.place)
        shutil.copyfile(below.env["GIT_INDEX_FILE"], env["GIT_INDEX_FILE"])
        git = self._git.replace(within=build_mount_words(str(view.folder), str(outer / "layer")))
        if tree == self._tree:
            return WrittenTree(view=view, git=git, env=env)
        # where nothing is gone, the layer is its files; to mount it costs a start of Python
        writer, work = (self._git, view.top) if self._stays(tree) else (git, view.place)
        try:
            writer.call("read-tree", "-m", "-u", tree, env={**env, "GIT_WORK_TREE": str(work)})
        except StateError:
            return None
        return WrittenTree(view=view, git=git, env=env)

    def _fits(self, tree: str) -> bool:
        """Return whether files that are the same in a tree are written in the same encoding here."""
        changed = (change.path for change in self._git.list_changes(self._tree, tree))
        return not any(path.rpartition("/")[2] == ".gitattributes" for path in changed)

    def _stays(self, tree: str) -> bool:
        """Return whether a tree has all files that are here, though some with another content."""
        kept = (ChangeKind.ADDED, ChangeKind.MODIFIED)
        return all(change.kind in kept for change in self._git.list_changes(self._tree, tree))

    def close(self) -> None:
        """Remove the files; they are written again if they are needed."""
        self._below = None
        self._opened.close()


_CHANGES = MappingProxyType({"C": "M", "R": "D", "?": "A"})
"""What git says of a file, and how it is told; one that is gone is changed as well."""


class WorkingCopy:
    """A folder with the files of a tree, with what git ignores, and with a git folder of its own."""

    def __init__(self, git: Git, tree: str, ignored: tuple[str, ...]) -> None:
        """Take the ignored files of the repository that are to be seen."""
        self._git = git
        self._tree = tree
        self._ignored = ignored
        self._links: tuple[str, ...] = ()
        self._opened = ExitStack()
        self._env: Mapping[str, str] = {}
        self.view = View(folder=Path())
        """What a sandbox shows of it, once filled."""
        self._untouched: dict[str, tuple[int, ...]] | None = None
        """The marks of the layer as it is before a check; None where nobody can tell."""
        self._written = dict[str, float]()
        """The times of the files that were replaced."""

    def fill(self, underlay: LowerDirectory | None = None, outer: Path | None = None) -> None:
        """Write all files, as a layer above others where that can be; no filter has a say.

        They lie in a scratch folder, or in a folder that outlives the process.
        """
        outer = outer or self._opened.enter_context(make_scratch_folder())
        tree = self._git.leave_out_absent(self._tree)
        layer = underlay.write_layer(tree, outer) if underlay else None
        written = layer or write_tree(self._git, tree, outer)
        self._git, self._env, self.view = written.git, written.env, written.view
        self.view = self.view.replace(shown=tuple(self._lay_ignored()))
        self._lay_git()
        self._untouched = self._marks()

    def link_environments(self, seen: Iterable[str]) -> None:
        """Link to the repository's environments where the copy has nothing."""
        there = (name for name in _list_environments(seen) if (self._git.root / name).is_dir())
        self._links = tuple(name for name in there if self.view.is_free(name))
        for name in self._links:
            place = self.view.make_room(name, as_folder=False)
            place.symlink_to(self._git.root / name, target_is_directory=True)

    def _marks(self) -> dict[str, tuple[int, ...]] | None:
        """Return a mark of each file of the layer, which shows changes of a check; None if unreadable."""
        if self.view.layer is None:
            return None
        try:
            return dict(_find_marks(f"{self.view.layer}/upper"))
        except OSError:  # a check made folders too deep to be named, or none that we may list
            return None

    def _is_touched(self) -> bool:
        return self._untouched is None or self._untouched != self._marks()

    def replace_file(self, path: str, content: bytes | None) -> None:
        """Write a file of the tree with other content, or remove it, which is no change by a check.

        It is later than all that was built of the file before, and by a whole second than its content before:
        `make` compares times, Python keeps compiled code by second and size.
        """
        place = self.view.top / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            place.unlink(missing_ok=True)
        else:
            place.write_bytes(content)
            self._written[path] = max(time.time(), self._written.get(path, 0.0) + 1)
            os.utime(place, (self._written[path],) * 2)
        if self._untouched is not None:
            self._untouched = self._marks()

    def restore(self, belongs: Callable[[str], bool]) -> None:
        """Undo what a check changed, except build products: files that git ignores and no check obeys."""
        if not self._is_touched():
            return
        self._git.call(*CHECKOUT, env=self._env)
        strange = set(self._others("--exclude-standard"))
        strange |= {path for path in self._others() if belongs(path)}
        places = [os.fsencode(self.view.place / path) for path in strange if not self._is_laid(path)]
        words = (*self._git.within, "xargs", "-0", "rm", "-rf", "--")
        capture(words, cwd=self._git.root, stdin=b"\0".join(places))
        self._untouched = self._marks()

    def list_files(self) -> tuple[str, ...]:
        """Return the files of its tree."""
        raw = self._git.call("ls-files", "-z", env=self._env)
        return tuple(os.fsdecode(path) for path in raw.split(b"\0") if path)

    def list_changes(self) -> tuple[str, ...]:
        """Return what a check did to the files that count: A, M or D, and the path."""
        if not self._is_touched():
            return ()
        options = ("--modified", "--deleted", "--others", "--exclude-standard")
        raw = self._git.call("ls-files", "-t", "-z", *options, env=self._env)
        found = dict[str, str]()
        for word in filter(None, os.fsdecode(raw).split("\0")):
            sign, path = word[0], word[2:]
            found[path] = "D" if "D" in (found.get(path), _CHANGES[sign]) else _CHANGES[sign]
        return tuple(
            f"{kind} {path}" for path, kind in found.items() if kind != "A" or not self._is_laid(path)
        )

    def _is_laid(self, path: str) -> bool:
        """Return whether a file was put here although it is not in the tree."""
        entries = {entry.rstrip("/") for entry in self._ignored}
        is_below = any(path == entry or path.startswith(f"{entry}/") for entry in entries)
        return is_below or path in self._links

    def remove(self) -> None:
        self._opened.close()

    def _others(self, *options: str) -> Iterator[str]:
        raw = self._git.call("ls-files", "--others", "-z", *options, env=self._env)
        return (os.fsdecode(path) for path in raw.split(b"\0") if path)

    def _lay_ignored(self) -> Iterator[str]:
        """Copy what git ignores as long as there is room; of environments and the rest, yield the place."""
        room = _ROOM
        for entry in self._ignored:
            source = self._git.root / entry
            if (
                CACHES.isdisjoint(PurePosixPath(entry).parts)
                and os.path.lexists(source)
                and self.view.is_free(entry)
            ):
                size = None if is_package_folder(entry) else _measure(source, room)
                is_folder = source.is_dir() and (size is None or not source.is_symlink())
                place = self.view.make_room(entry, as_folder=is_folder)
                if size is None:
                    place.touch()
                    yield entry.rstrip("/")
                else:
                    room -= size
                    _copy(source, place)

    def _lay_git(self) -> None:
        """Give the copy a git folder that shows the same commits, and can be changed without harm."""
        place = self.view.top / ".git"
        source = self._git.source
        make_private_git(self.view.place, source, place)
        for folder in ("objects/info", "objects/pack", f"objects/{HISTORY}"):
            (place / folder).mkdir(parents=True)
        others = (HISTORY.encode(), os.fsencode(source.objects))  # as mounted in the sandbox, and outside
        (place / "objects/info/alternates").write_bytes(b"".join(each + b"\n" for each in others))
        for path in (*source.commits, source.index):
            if path.is_file():
                shutil.copyfile(path, place / path.name)
        shutil.copytree(source.refs, place / "refs", dirs_exist_ok=True)


def write_tree(git: Git, tree: str, outer: Path) -> WrittenTree:
    """Write all files of a tree somewhere below a folder; no filter has a say."""
    view = View(folder=outer / "files" / git.root.name)
    view.folder.mkdir(parents=True)
    env = make_git_with_tree(git.call, git.source, tree, outer / "git", view.folder)
    git.call(*CHECKOUT, env=env)
    return WrittenTree(view=view, git=git, env=env)


@contextmanager
def copy_files(
    root: Path, files: Iterable[str], look_up: Callable[[], object] = lambda: None
) -> Iterator[Path]:
    """Yield a private folder with some files of a repository. Raises OutsideWorkspace.

    `look_up` is called before each file and raises to cancel.
    """
    names = tuple(files)
    for name in names:
        if name.startswith("/") or ".." in PurePosixPath(name).parts:
            raise OutsideWorkspace(f"{name} leads out of the repository")
    with make_scratch_folder() as folder:
        for parent in sorted({PurePosixPath(name).parent for name in names}):
            (folder / parent).mkdir(parents=True, exist_ok=True)
        for name in names:
            look_up()
            source = root / name
            if source.is_symlink() or source.is_file():
                shutil.copy2(source, folder / name, follow_symlinks=False)
        for name in SHARED:
            if (root / name).is_dir() and not (folder / name).exists():
                (folder / name).symlink_to(root / name, target_is_directory=True)
        yield folder


def is_mountable(files: Path, scratch: Path) -> bool:
    """Return whether a layer can be put above files here."""
    words = (*build_mount_words(str(make_overlay_view(files, scratch).folder), str(scratch)), "true")
    return capture(words, cwd=files).returncode == 0


def _find_marks(top: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield each path below a folder with a mark of its state, which leaves out the times of folders."""
    folders = [top]
    while folders:
        with os.scandir(folders.pop()) as entries:
            found = list(entries)
        for entry in found:
            said = entry.stat(follow_symlinks=False)
            mark = (said.st_ino, said.st_mode, said.st_uid, said.st_gid)
            if entry.is_dir(follow_symlinks=False):
                yield entry.path, mark
                folders.append(entry.path)
            else:
                yield entry.path, (*mark, said.st_size, said.st_mtime_ns, said.st_ctime_ns)


def _copy(source: Path, place: Path) -> None:
    if source.is_symlink():
        place.symlink_to(source.readlink())
        return
    with suppress(OSError):  # what cannot be read cannot be copied either
        if source.is_dir():
            shutil.copytree(source, place, symlinks=True, ignore=_find_odd, dirs_exist_ok=True)
        else:
            shutil.copy2(source, place)


def _measure(source: Path, room: int) -> int | None:
    """Return how many bytes lie there, or None where they are more than the room."""
    total = source.lstat().st_size if not source.is_dir() or source.is_symlink() else 0
    for folder, names, files in os.walk(source):
        names[:] = [name for name in names if name not in CACHES]
        total += sum(os.lstat(f"{folder}/{name}").st_size for name in files)
        if total > room:
            return None
    return total if total <= room else None


def _find_odd(folder: str, names: list[str]) -> set[str]:
    """Return what no copy has: caches, pipes, sockets and devices."""
    modes = {name: os.lstat(f"{folder}/{name}").st_mode for name in names}
    plain = (stat.S_ISREG, stat.S_ISDIR, stat.S_ISLNK)
    return {name for name, mode in modes.items() if name in CACHES or not any(is_it(mode) for is_it in plain)}


_PROBE = """
import json, sys
maps = [getattr(sys.modules.get(getattr(each, "__module__", "")), "MAPPING", {}) for each in sys.meta_path]
homes = [path.rpartition("/")[0] for each in maps for path in each.values()]
print("\\n" + json.dumps([entry for entry in sys.path + homes if entry]))
"""
_PROBE_SECONDS = 30.0


def find_import_paths(sandbox: Sandbox, interpreter: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return from where an interpreter imports this repository's packages, relative to the root.

    An editable install leads there through entries of `sys.path`, or through a finder that is asked after
    them. Entries of PYTHONPATH that lie elsewhere follow, as they are.
    """
    root = sandbox.root
    declared = [str(root / entry) for entry in env.get("PYTHONPATH", "").split(os.pathsep) if entry]
    inside = [_below(root, entry) for entry in (*declared, *_search_path(sandbox, (interpreter,), env))]
    places = [place for place in (*inside, "src", ".") if place and (root / place).is_dir()]
    return tuple(dict.fromkeys([*places, *(entry for entry in declared if _below(root, entry) is None)]))


def find_installed_paths(sandbox: Sandbox, words: Sequence[str]) -> tuple[str, ...]:
    """Return where in the repository an interpreter, started by these words, finds packages by itself."""
    root = sandbox.root
    found = (_below(root, entry) for entry in _search_path(sandbox, words, {}))
    return tuple(dict.fromkeys(place for place in found if place and (root / place).is_dir()))


def to_pythonpath(copy: Path, places: Iterable[str]) -> str:
    """Return the PYTHONPATH under which a copy imports itself, ahead of every editable install."""
    return os.pathsep.join(str(copy / place) for place in places)


def _search_path(sandbox: Sandbox, words: Sequence[str], env: Mapping[str, str]) -> list[str]:
    argv = (*words, "-c", _PROBE)
    probe = Command(argv=argv, cwd=str(sandbox.root), timeout=_PROBE_SECONDS, env=env)
    with make_scratch_folder() as folder:
        try:
            said = sandbox.of(None).run(probe, folder / "output").tail
            return fit(list[str], json.loads(said.strip().rpartition("\n")[2]))
        except (OSError, ValueError):
            return []  # the run itself will say what is wrong with this interpreter


def _below(root: Path, entry: str) -> str | None:
    """Return where an entry lies in the repository, unless it is elsewhere or in an environment."""
    home = root.resolve()
    place = Path(entry).resolve()
    if not place.is_relative_to(home):
        return None
    found = place.relative_to(home)
    folders = (home / folder for folder in (found, *found.parents))
    return None if any(map(is_python_environment, folders)) else str(found)


def share_environments(sandbox: Sandbox, root: Path, seen: Iterable[str] = ()) -> Sandbox:
    """Return a copy's sandbox with the repository's environments readable, those among `seen` included."""
    real = root.resolve()
    names = _list_environments(seen)
    shared = tuple(root / name for name in names if (root / name / "bin").resolve().is_relative_to(real))
    opened = sandbox.opened
    return sandbox.replace(opened=opened.replace(readable=(*opened.readable, *shared)))


def _list_environments(seen: Iterable[str]) -> tuple[str, ...]:
    """Return where environments may lie: at the root, and among the ignored entries that are seen."""
    below = (entry.rstrip("/") for entry in seen if is_package_folder(entry))
    return tuple(dict.fromkeys([*sorted(SHARED), *below]))


@contextmanager
def lay_out(git: Git, tree: str, seen: Iterable[str] = ()) -> Iterator[WorkingCopy]:
    """Yield a folder with the files of a tree, some ignored files and the environments."""
    entries = tuple(seen)
    stage = WorkingCopy(git, tree, tuple(entry for entry in entries if not is_package_folder(entry)))
    try:
        stage.fill()
        stage.link_environments(entries)
        yield stage
    finally:
        stage.remove()
