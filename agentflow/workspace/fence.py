"""The repository as the file tools see it: no path leads out of it, and none into git's or our own rules."""

import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from agentflow.core.errors import InvalidInput, OutsideWorkspace, ToolError
from agentflow.process import capture

MAX_BYTES = 10_000_000
"""Larger files are not read."""
MAX_PATH = 4096
TASKS = ".claude/agentflow/"
"""Where our own task folders lie: readable, never listed."""
_POLICY = frozenset({".claude", ".agents", ".mcp.json"})
"""What decides over roles, hooks and permissions; no role writes it."""
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_LIST = ("git", "--literal-pathspecs", "-c", "core.fsmonitor=false", "ls-files", "-co", "--exclude-standard")


class Fence:
    """A Workspace on a folder of the disk."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    @property
    def root(self) -> Path:
        return self._root

    def read(self, path: str) -> bytes:
        """Return a file's bytes; raise InvalidInput unless it is a regular file of at most MAX_BYTES."""
        place = self._place(path)
        try:
            with open(place, "rb", opener=_open_at_once) as file:  # a Path takes no opener
                return _content(path, file)
        except FileNotFoundError:
            raise InvalidInput(f"{path}: no such file") from None
        except IsADirectoryError:
            raise InvalidInput(f"{path} is a folder") from None
        except OSError as error:
            raise InvalidInput(f"{path} cannot be read: {error.strerror}") from None

    def write(self, path: str, content: bytes) -> None:
        """Replace or create a file so that a reader sees the old or the new one, keeping its mode."""
        place = self._place(path)
        if part := next((part for part in self._parts(path, place) if part.lower() in _POLICY), None):
            raise OutsideWorkspace(f"{path} is read-only: no role writes to {part}")
        try:
            _replace(path, place, content)
        except OSError as error:
            raise ToolError(f"{path} cannot be written: {error.strerror}") from None

    def relative(self, path: str) -> str:
        """Return the path relative to the root, links followed, as git spells it."""
        return self._place(path).relative_to(self._root).as_posix()

    def files(self, below: str = ".") -> tuple[str, ...]:
        """Return all files that git does not ignore and tools may open, relative to the root, sorted."""
        listed = capture(
            (*_LIST, "-z", "--", self.relative(below)), cwd=self._root, env={"GIT_OPTIONAL_LOCKS": "0"}
        )
        if listed.returncode:
            raise ToolError(f"git cannot list the files: {listed.stderr.decode('utf-8', 'replace').strip()}")
        names = {os.fsdecode(name) for name in listed.stdout.split(b"\0") if name}
        return tuple(sorted(name for name in names if self._is_listed(name)))

    def _is_listed(self, name: str) -> bool:
        if is_hidden(name):
            return False
        try:
            # a string join: 60,000 paths are looked at, and a Path each would cost more than git did
            return not stat.S_ISDIR(os.lstat(f"{self._root}/{name}").st_mode)
        except OSError:
            return False

    def _place(self, path: str) -> Path:
        """Return the real place of a path. Raises OutsideWorkspace."""
        if not path or len(path) > MAX_PATH or _CONTROL.search(path):
            raise OutsideWorkspace(f"{path[:80]!r} is no path: empty, too long, or with control characters")
        try:
            place = (self._root / path).resolve()
        except (OSError, RuntimeError):  # a loop of links, or a name that is too long
            raise OutsideWorkspace(f"{path} leads nowhere") from None
        if not place.is_relative_to(self._root):
            raise OutsideWorkspace(f"{path} leads out of the repository")
        if ".git" in (part.lower() for part in self._parts(path, place)):
            raise OutsideWorkspace(f"{path} belongs to git; no tool opens it")
        return place

    def _parts(self, path: str, place: Path) -> Iterator[str]:
        """Yield the names on the way to a place below the root, as given and with links followed."""
        given = PurePosixPath(path)
        if not given.is_absolute():
            yield from given.parts
        elif given.is_relative_to(self._root):
            yield from given.relative_to(self._root).parts
        yield from place.relative_to(self._root).parts


def is_hidden(name: str) -> bool:
    """Tell whether a file is never listed: our own, or of a name that no tool may use."""
    return name.startswith(TASKS) or _CONTROL.search(name) is not None


def _open_at_once(path: str, flags: int) -> int:
    # a pipe must not hold us until somebody writes to it, nor a link that came in between lead elsewhere
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _content(path: str, file: IO[bytes]) -> bytes:
    status = os.fstat(file.fileno())
    _require_regular(path, status)
    if status.st_size > MAX_BYTES:
        raise InvalidInput(f"{path} has {status.st_size:,} bytes; the limit is {MAX_BYTES:,}")
    return file.read(MAX_BYTES)


def _require_regular(path: str, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise InvalidInput(f"{path} is a folder")
    if not stat.S_ISREG(status.st_mode):
        raise InvalidInput(f"{path} is not a regular file")


def _replace(path: str, place: Path, content: bytes) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        status = place.lstat()
    except FileNotFoundError:
        mode = None
    else:
        _require_regular(path, status)
        mode = stat.S_IMODE(status.st_mode)
    temporary = place.with_name(f".agentflow-{secrets.token_hex(8)}.tmp")
    # opened by hand, because a file of mkstemp would not have the mode that the umask gives
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(place)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
