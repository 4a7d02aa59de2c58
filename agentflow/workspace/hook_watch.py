"""Finds the files that only hooks changed, by comparing all files before and after hooks run."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from agentflow.redact import spell_bytes
from agentflow.workspace.git import Git
from agentflow.workspace.ignored_files import digest_file

_OURS = (".claude/agentflow", ".claude/worktrees")
_GONE = ""
Stamps = dict[str, str]
"""By path, a stamp that changes with each write; only a privileged program can set it back."""


class NoWatch:
    """The watch of a task without hooks, which costs nothing."""

    @contextmanager
    def watch_hooks(self) -> Iterator[None]:
        yield

    @contextmanager
    def watch_role(self) -> Iterator[None]:
        yield

    def list_files(self) -> dict[str, str]:
        """Return nothing, since no hook ran."""
        return {}


class HookWatch:
    """The watch of one task from its creation on; `known` is the result of an earlier process."""

    def __init__(self, git: Git, known: Mapping[str, str], changed: Iterable[str]) -> None:
        self._root = git.root
        self._left_out = frozenset(entry.rstrip("/") for entry in git.list_ignored() if entry.endswith("/"))
        self._stamps = self._scan()
        self._hooks: Stamps = {path: mark for path, mark in known.items() if self._mark(path) == mark}
        self._others = {*changed} - self._hooks.keys()
        self._running = self._working = 0
        self._is_shared = False
        """A role was at work while the hooks ran that run now."""

    @contextmanager
    def watch_hooks(self) -> Iterator[None]:
        """Take what changes meanwhile as the hooks' change, unless a role may have made it."""
        if self._running == 0:
            self._take(is_hooks=False)
            self._is_shared = self._working > 0
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            if self._running == 0:
                self._take(is_hooks=not self._is_shared)

    @contextmanager
    def watch_role(self) -> Iterator[None]:
        """Take what changes meanwhile as the role's change."""
        self._working += 1
        self._is_shared = True
        try:
            yield
        finally:
            self._working -= 1

    def list_files(self) -> dict[str, str]:
        """Return the files that only hooks have changed so far, and that are as a hook left them."""
        for path in [path for path, mark in self._hooks.items() if self._mark(path) != mark]:
            self._others.add(path)
            del self._hooks[path]
        return dict(self._hooks)

    def _take(self, *, is_hooks: bool) -> None:
        """Attribute the changes since the last look to hooks or to others."""
        before, self._stamps = self._stamps, self._scan()
        for path in {path for path, _ in before.items() ^ self._stamps.items()}:
            if is_hooks and path not in self._others:
                self._hooks[path] = self._mark(path)
            else:
                self._others.add(path)
                self._hooks.pop(path, None)

    def _scan(self) -> Stamps:
        found: Stamps = {}
        folders = [""]
        while folders:
            folder = folders.pop()
            try:
                with os.scandir(self._root / folder) as entries:
                    for entry in entries:
                        path = f"{folder}/{entry.name}" if folder else entry.name
                        if not entry.is_dir(follow_symlinks=False):
                            found[_text(path)] = _stamp(entry.stat(follow_symlinks=False))
                        elif entry.name != ".git" and path not in _OURS and path not in self._left_out:
                            folders.append(path)
            except OSError:
                continue  # nothing below it is put down to hooks
        return found

    def _mark(self, path: str) -> str:
        """Return a mark of what a file holds, which another hard link to it does not change."""
        place = self._root / path
        try:
            said = place.lstat()
        except OSError:
            return _GONE
        digest = digest_file(place, said)
        return f"{said.st_mode:o}:{digest}" if digest else _stamp(said)


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_ino}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}:{status.st_mode:o}"


def _text(path: str) -> str:
    return path if path.isascii() else spell_bytes(os.fsencode(path))
