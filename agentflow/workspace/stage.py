"""A tree of a repository in a throw-away folder, where a check runs and can change nothing that counts."""

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

from agentflow.core.errors import StateError
from agentflow.sandbox.scratch import scratch_folder
from agentflow.workspace.apart import cast, indexed
from agentflow.workspace.git import Git
from agentflow.workspace.ignored import CACHES, is_environment

_ROOM = 64_000_000
"""Bytes of ignored files that are copied; the rest is seen where it lies, as an environment is."""
_GIT_FILES = ("HEAD", "packed-refs", "shallow", "index")


class Stage:
    """A folder with the files of a tree, with what git ignores, and with a git folder of its own."""

    def __init__(self, git: Git, tree: str, ignored: tuple[str, ...]) -> None:
        """Take the ignored files of the repository that are to be seen."""
        self._git = git
        self._tree = tree
        self._ignored = ignored
        self._outer = ExitStack()
        self._env: dict[str, str] = {}
        self.folder = Path()
        """Where the files lie, once filled."""
        self.shown: tuple[str, ...] = ()
        """What is too large to copy, and an empty place here."""

    def fill(self) -> None:
        """Write all files, without a filter or a program having a say."""
        outer = self._outer.enter_context(scratch_folder())
        self.folder = outer / "files" / self._git.root.name
        self.folder.mkdir(parents=True)
        bare = outer / "git"
        bare.mkdir()
        self._env = indexed(self._git.call, self._git.source, self._tree, bare, self.folder)
        self._check_out()
        self._lay_ignored()
        self._lay_git()

    def restore(self, belongs: Callable[[str], bool]) -> None:
        """Undo what a check did, but for what git ignores and no check obeys: products of a build."""
        self._check_out()
        strange = set(self._others("--exclude-standard"))
        strange |= {path for path in self._others() if belongs(path)}
        for path in strange:
            if not self._is_laid(path):
                (self.folder / path).unlink(missing_ok=True)

    def changed(self) -> tuple[str, ...]:
        """Return what a check did to the files that count: A, M or D, and the path."""
        raw = self._git.call("diff-files", "-z", "--name-status", "--no-renames", env=self._env)
        words = [os.fsdecode(word) for word in raw.split(b"\0") if word]
        touched = [f"{kind} {path}" for kind, path in zip(words[::2], words[1::2], strict=True)]
        added = (f"A {path}" for path in self._others("--exclude-standard") if not self._is_laid(path))
        return (*touched, *added)

    def _is_laid(self, path: str) -> bool:
        """Tell whether a file was put here beside the tree."""
        return any(path == entry.rstrip("/") or path.startswith(entry) for entry in self._ignored)

    def remove(self) -> None:
        self._outer.close()

    def _check_out(self) -> None:
        self._git.call("checkout-index", "-a", "-f", "-u", "-q", env=self._env)

    def _others(self, *options: str) -> Iterator[str]:
        raw = self._git.call("ls-files", "--others", "-z", *options, env=self._env)
        return (os.fsdecode(path) for path in raw.split(b"\0") if path)

    def _lay_ignored(self) -> None:
        """Copy what git ignores as long as there is room; of environments and the rest, mark the place."""
        room, shown = _ROOM, []
        for entry in self._ignored:
            source, place = self._git.root / entry, self.folder / entry
            if CACHES.isdisjoint(source.parts) and os.path.lexists(source) and self._is_free(place):
                place.parent.mkdir(parents=True, exist_ok=True)
                size = None if is_environment(entry) else _size(source, room)
                if size is None:
                    shown.append(entry.rstrip("/"))
                    place.mkdir() if source.is_dir() else place.touch()
                else:
                    room -= size
                    _copy(source, place)
        self.shown = tuple(shown)

    def _is_free(self, place: Path) -> bool:
        """Tell whether nothing of the tree stands there, nor a link of it on the way."""
        parents = (each for each in place.parents if each.is_relative_to(self.folder))
        return not os.path.lexists(place) and not any(parent.is_symlink() for parent in parents)

    def _lay_git(self) -> None:
        """Give the copy a git folder that shows the same commits, and can be changed without harm."""
        place = self.folder / ".git"
        place.mkdir()
        source = self._git.source
        cast(self.folder, source, place)
        for folder in ("objects/info", "objects/pack"):
            (place / folder).mkdir(parents=True)
        (place / "objects/info/alternates").write_bytes(os.fsencode(source.objects) + b"\n")
        words = [word for name in (*_GIT_FILES, "refs") for word in ("--git-path", name)]
        with suppress(StateError):
            *files, refs = os.fsdecode(self._git.call("rev-parse", *words)).splitlines()
            for name, path in zip(_GIT_FILES, files, strict=True):
                if (self._git.root / path).is_file():
                    shutil.copyfile(self._git.root / path, place / name)
            shutil.copytree(self._git.root / refs, place / "refs", dirs_exist_ok=True)


def _copy(source: Path, place: Path) -> None:
    if source.is_symlink():
        place.symlink_to(source.readlink())
        return
    with suppress(OSError):  # what cannot be read cannot be copied either
        if source.is_dir():
            shutil.copytree(source, place, symlinks=True, ignore=_odd, dirs_exist_ok=True)
        else:
            shutil.copy2(source, place)


def _size(source: Path, room: int) -> int | None:
    """Return how many bytes lie there, or None where they are more than the room."""
    total = source.lstat().st_size if not source.is_dir() or source.is_symlink() else 0
    for folder, names, files in os.walk(source):
        names[:] = [name for name in names if name not in CACHES]
        total += sum(os.lstat(f"{folder}/{name}").st_size for name in files)
        if total > room:
            return None
    return total if total <= room else None


def _odd(folder: str, names: list[str]) -> set[str]:
    """Return what no copy has: caches, pipes, sockets and devices."""
    modes = {name: os.lstat(f"{folder}/{name}").st_mode for name in names}
    plain = (stat.S_ISREG, stat.S_ISDIR, stat.S_ISLNK)
    return {name for name, mode in modes.items() if name in CACHES or not any(is_it(mode) for is_it in plain)}
