"""The path guard: file tools reach no path outside the repository, and none of git's or of our own rules.

A path is first turned into the real name of what it leads to, then the name is judged, and then opened
without following any link. A link that is swapped in between is refused, since the name is not its own.
"""

import ctypes
import errno
import os
import re
import secrets
import stat
import struct
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import IO

from agentflow.core.errors import InvalidInput, OutsideWorkspace, StateError, ToolError
from agentflow.core.languages import SHELL, SOURCES
from agentflow.core.ports import Workspace
from agentflow.process import capture
from agentflow.sandbox.profile import CONFIGURATION, POLICY, fold_name, fold_path, is_git
from agentflow.sandbox.protection import find_links, follow_links
from agentflow.workspace.git import Git

Opener = Callable[[int, str, int, int], int]
"""Takes the folder's descriptor, a name, the flags of open(2) and a mode; returns a descriptor."""
HERE = "."
_OPENAT2 = 437
"""The number of the system call on every architecture of Linux."""
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
_RESOLVE = _NO_MAGICLINKS | _NO_SYMLINKS | _BENEATH
_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)


def find_opener() -> Opener:
    """Return how files are opened on this machine: by one call of the kernel, or part by part."""
    if not hasattr(os, "O_PATH"):
        return open_by_parts
    by_kernel = _kernel()
    root = os.open("/", _FOLDER)
    try:
        os.close(by_kernel(root, HERE, os.O_PATH | os.O_DIRECTORY, 0))
    except OSError:
        return open_by_parts  # an older kernel, or a sandbox that does not let us
    finally:
        os.close(root)
    return by_kernel


def _kernel() -> Opener:
    call = ctypes.CDLL(None, use_errno=True).syscall

    def by_kernel(folder: int, name: str, flags: int, mode: int) -> int:
        _require_plain(name)
        how = struct.pack("=QQQ", flags | os.O_CLOEXEC, mode if flags & os.O_CREAT else 0, _RESOLVE)
        while True:
            found: int = call(_OPENAT2, folder, os.fsencode(name), how, len(how))
            if found >= 0:
                return found
            problem = ctypes.get_errno()
            if problem != errno.EINTR:
                raise OSError(problem, os.strerror(problem), name)

    return by_kernel


def open_by_parts(folder: int, name: str, flags: int, mode: int) -> int:
    """Open part by part, each in the folder that was opened before it."""
    _require_plain(name)
    *parents, leaf = name.split("/")
    descriptor = os.dup(folder)
    try:
        for parent in parents:
            below = os.open(parent, _FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        return os.open(leaf, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=descriptor)
    finally:
        os.close(descriptor)


def open_folder(opener: Opener, root: int, name: str) -> int:
    """Return the descriptor of a folder, made with its parents where it is missing."""
    try:
        return opener(root, name, _FOLDER, 0)
    except FileNotFoundError:
        _make(opener, root, name)
        return opener(root, name, _FOLDER, 0)


def _make(opener: Opener, root: int, name: str) -> None:
    parent, _, leaf = name.rpartition("/")
    folder = open_folder(opener, root, parent or HERE)
    try:
        os.mkdir(leaf, dir_fd=folder)
    except FileExistsError:
        pass  # somebody else made it; what it is shows when it is opened
    finally:
        os.close(folder)


def _require_plain(name: str) -> None:
    if name != HERE and not {"", ".", ".."}.isdisjoint(name.split("/")):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), name)


@contextmanager
def open_root(root: Path) -> Iterator[int]:
    """Yield a folder that is no link."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def open_parent(root: int, path: str) -> Iterator[tuple[int, str]]:
    """Yield the folder of a file, made where it is missing, and the file's name in it."""
    parent, _, leaf = path.rpartition("/")
    folder = open_folder(find_opener(), root, parent or HERE)
    try:
        yield folder, leaf
    finally:
        os.close(folder)


def replace_beneath(
    folder: int, leaf: str, content: bytes, mode: int | None, *, is_link: bool = False
) -> None:
    """Put a file or a link in the place of another at once; without a mode it has that of the umask."""
    temporary = f".agentflow-{secrets.token_hex(8)}.tmp"
    try:
        if is_link:
            os.symlink(content, os.fsencode(temporary), dir_fd=folder)
        else:
            # opened by hand, because a file of mkstemp would not have the mode that the umask gives
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            with os.fdopen(
                os.open(temporary, flags, 0o666 if mode is None else 0o600, dir_fd=folder), "wb"
            ) as file:
                file.write(content)
                file.flush()
                if mode is not None:
                    os.fchmod(file.fileno(), mode)
                os.fsync(file.fileno())
        os.replace(temporary, leaf, src_dir_fd=folder, dst_dir_fd=folder)  # no Path has a folder
    except BaseException:
        remove_beneath(folder, temporary)
        raise


def remove_beneath(folder: int, leaf: str) -> None:
    """Remove a file, unless somebody was faster."""
    with suppress(FileNotFoundError):
        os.unlink(leaf, dir_fd=folder)


MAX_READ_BYTES = 10_000_000
"""Larger files are read in pages only."""
MAX_PATH = 4096
OWN_FOLDER = ".claude/agentflow/"
"""Where our own task folders lie: readable, never listed."""
_OFFERED = 3
_NEAR_FILES = 5_000
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_GIT = ("git", "--literal-pathspecs", "-c", "core.fsmonitor=false")
_LIST = (*_GIT, "ls-files", "-co", "--exclude-standard")
_LINKED = (
    "it has {} names (hard links), and another one may lie outside of the repository; "
    "work on a copy, or break the link: cp FILE NEW && mv NEW FILE"
)
_OBEYED = (".env*", *(name.casefold() for name in CONFIGURATION))
_SECRET_FILES = (
    *(".env*", "*.pem", "*.key", "*.p12", "*.pfx", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"),
    *(".netrc", ".pypirc", ".pgpass"),
)
_SECRET_WORDS = frozenset(
    {"credential", "credentials", "secret", "secrets", "password", "passwords", "token", "tokens"}
)
_SECRET_FOLDERS = _SECRET_WORDS - {"token", "tokens"}
"""Folders of tokens hold parts of a language or of a design more often than keys."""
_SAMPLES = frozenset({".example", ".sample", ".template", ".dist"})
_CODE = (SOURCES - {*SHELL}) | {
    *(".kts", ".groovy", ".cxx", ".mm", ".fs", ".mli", ".pm", ".r", ".jl", ".sql", ".proto", ".graphql"),
    *(".md", ".rst", ".adoc", ".html", ".css", ".scss", ".less", ".svg"),
}
"""Code and prose about secrets, which is what most files of such a name are; scripts of a shell set keys."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
"""A word of a name: `apiToken_v2` has three."""


Exceptions = Callable[[str, str], bool]
"""Whether the user lets a tool, Read or Edit, open a file whose name says that it holds secrets."""


FindDenial = Callable[[str], str | None]
"""Returns the user's rule that denies reading a file, by the file's real name, or None."""


class NoSuchFile(InvalidInput):
    """A path leads nowhere."""

    name = ""
    """The path in the repository."""


class PathGuard:
    """A Workspace on a folder of the disk."""

    def __init__(
        self,
        root: Path,
        exceptions: Exceptions = lambda _tool, _name: False,
        git: Iterable[Path] = (),
        find_denial: FindDenial = lambda _: None,
        known_as: Path | None = None,
        find_deleted: Callable[[str], bytes | None] = lambda _: None,
    ) -> None:
        """Take the root; `known_as` is the repository that the files there are a copy of."""
        self._root = root.resolve()
        self._known_as = known_as
        self._exceptions = exceptions
        self._find_denial = find_denial
        self._open_beneath = find_opener()
        self._git = _git_folders(self._root, git)
        self._find_deleted = find_deleted

    @property
    def root(self) -> Path:
        return self._root

    def switch_to_copy(self, root: Path) -> "PathGuard":
        """Return the guard of a copy, in which absolute paths of the repository lead to the copy's files."""
        return PathGuard(root, self._exceptions, (), self._find_denial, self._root)

    def show_deleted(self, git: Git, before: str) -> "PathGuard":
        """Return the guard under which a file that is gone reads as it was in a tree."""

        def find(name: str) -> bytes | None:
            with suppress(StateError):  # it was not there before either
                return git.call("cat-file", "blob", f"{before}:{name}")
            return None

        return PathGuard(self._root, self._exceptions, git.folders, self._find_denial, self._known_as, find)

    def read(self, path: str) -> bytes:
        """Return a file's bytes; raise InvalidInput unless it is a regular file of at most MAX_READ_BYTES."""
        try:
            return self._read(path)
        except InvalidInput:
            if (deleted := self._find_deleted(self.to_relative(path))) is not None:
                return deleted
            raise

    def _read(self, path: str) -> bytes:
        with self.open(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > MAX_READ_BYTES:
                raise InvalidInput(f"{path} has {size:,} bytes; the limit is {MAX_READ_BYTES:,}")
            return file.read(MAX_READ_BYTES)

    @contextmanager
    def open(self, path: str) -> Iterator[IO[bytes]]:
        """Yield a regular file of any size; raise InvalidInput when there is none."""
        with self._file(path, self.to_relative(path)) as file:
            yield file

    @contextmanager
    def _file(self, path: str, name: str) -> Iterator[IO[bytes]]:
        self._require_no_secret("Read", path, name)
        if rule := self._find_denial(name):
            raise OutsideWorkspace(f"{path} is denied by the rule {rule}")
        try:
            descriptor = self._open(name)
        except FileNotFoundError:
            error = NoSuchFile(f"{path}: no such file")
            error.name = name
            raise error from None
        except OSError as error:
            raise InvalidInput(f"{path} cannot be read: {error.strerror}") from None
        try:
            self._require_regular(path, name, os.fstat(descriptor))
        except InvalidInput:
            os.close(descriptor)
            raise
        with os.fdopen(descriptor, "rb") as file:
            yield file

    def peek(self, name: str) -> bytes | None:
        """Return what a file of the listing holds, or None for one that no search looks into."""
        try:
            with self._file(name, name) as file:
                size = os.fstat(file.fileno()).st_size
                return file.read(MAX_READ_BYTES) if size <= MAX_READ_BYTES else None
        except ToolError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Replace or create a file by its real name; a reader sees either the old or the new content."""
        real = self.to_relative(name)
        if part := find_policy_part(name) or find_policy_part(real) or self._policy_behind(real):
            raise OutsideWorkspace(f"{name} is read-only: no role writes to {part}")
        if real != name:
            raise OutsideWorkspace(f"{name} is not where it was: it leads to {real}")
        self._require_no_secret("Edit", name, name)
        try:
            with open_root(self._root) as root, open_parent(root, name) as (folder, leaf):
                mode = None
                with suppress(FileNotFoundError):
                    status = os.stat(leaf, dir_fd=folder, follow_symlinks=False)
                    self._require_regular(name, name, status)
                    mode = stat.S_IMODE(status.st_mode)
                replace_beneath(folder, leaf, content, mode)
        except OSError as error:
            raise ToolError(f"{name} cannot be written: {error.strerror}") from None

    def to_relative(self, path: str) -> str:
        """Return the path relative to the root, links followed, as git spells it."""
        if not path or len(path) > MAX_PATH or _CONTROL.search(path):
            raise OutsideWorkspace(f"{path[:80]!r} is not a path: empty, too long, or has control characters")
        path = self._to_stored_form(self._to_own(path))
        try:
            for link in follow_links(self._root / path):
                if link.parts[1] in ("proc", "dev"):  # it leads each process elsewhere
                    raise OutsideWorkspace(f"{path} leads through {link}, which no tool follows")
            place = (self._root / path).resolve()
        except (OSError, RuntimeError):  # a loop of links, or a name that is too long
            raise OutsideWorkspace(f"{path} leads nowhere") from None
        if not place.is_relative_to(self._root):
            raise OutsideWorkspace(f"{path} leads out of the repository")
        name = place.relative_to(self._root)
        self._require_name(path, PurePosixPath(name))
        return name.as_posix()

    def list_files(self, below: str = ".") -> tuple[str, ...]:
        """Return all files that git does not ignore and tools may open, relative to the root, sorted."""
        listed = capture(
            (*_LIST, "-z", "--", self.to_relative(below)), cwd=self._root, env={"GIT_OPTIONAL_LOCKS": "0"}
        )
        if listed.returncode:
            raise ToolError(f"git cannot list the files: {listed.stderr.decode('utf-8', 'replace').strip()}")
        names = {os.fsdecode(name) for name in listed.stdout.split(b"\0") if name}
        return tuple(sorted(name for name in names if self._is_listed(name)))

    def _to_own(self, path: str) -> str:
        """Return a path into the repository as one into the copy."""
        given = PurePosixPath(path)
        if self._known_as is None or given.is_relative_to(self._root) or not given.is_absolute():
            return path
        is_known = given.is_relative_to(self._known_as)
        return str(given.relative_to(self._known_as)) if is_known else path

    def _to_stored_form(self, path: str) -> str:
        """Return a path with the names of the disk, which may compose the same letters in another way."""
        if path.isascii() or os.path.lexists(self._root / path):
            return path
        place, names = self._root, list[str]()
        for part in PurePosixPath(path).parts:
            is_missing = not part.isascii() and not os.path.lexists(place / part)
            known = place.iterdir() if is_missing and place.is_dir() else ()
            names.append(next((each.name for each in known if compose(each.name) == compose(part)), part))
            place /= names[-1]
        return str(PurePosixPath(*names))

    def _is_listed(self, name: str) -> bool:
        if is_hidden(name) or self._find_denial(name):
            return False
        try:
            # a string join: 60,000 paths are looked at, and a Path each would cost more than git did
            return not stat.S_ISDIR(os.lstat(f"{self._root}/{name}").st_mode)
        except OSError:
            return False

    def _require_name(self, path: str, name: PurePosixPath) -> None:
        """Raise OutsideWorkspace for what belongs to git, as given and with links followed."""
        parts = (*self._split_path(path), *name.parts)
        below = any(name.is_relative_to(folder) for folder in self._git)
        if below or any(map(is_git, parts)):
            raise OutsideWorkspace(f"{path} belongs to git; no tool opens it")

    def _policy_behind(self, name: str) -> str | None:
        """Return the policy at the root that is, or holds, a link which leads to this file."""
        places = [(part, (self._root / part).resolve()) for part in POLICY]
        found = find_links(self._root, POLICY)
        places += ((link.relative_to(self._root).as_posix(), real) for link, real in found)
        return next((part for part, place in places if (self._root / name).is_relative_to(place)), None)

    def _split_path(self, path: str) -> tuple[str, ...]:
        """Return the parts of a path below the root, before any link in it is followed."""
        given = PurePosixPath(path)
        if given.is_absolute():
            return given.relative_to(self._root).parts if given.is_relative_to(self._root) else ()
        return given.parts

    def _require_no_secret(self, tool: str, path: str, name: str) -> None:
        if is_secret(name) and not self._exceptions(tool, name):
            raise OutsideWorkspace(
                f"{path} is named like a file with secrets, which no tool opens; "
                f'if it holds none, the user can put "{tool}({name})" under permissions.allow of '
                "~/.claude/settings.json"
            )

    def _require_regular(self, path: str, name: str, status: os.stat_result) -> None:
        if stat.S_ISDIR(status.st_mode):
            raise InvalidInput(f"{path} is a folder")
        if not stat.S_ISREG(status.st_mode):
            raise InvalidInput(f"{path} is not a regular file")
        if status.st_nlink > 1 and not self._is_tracked(name):
            raise InvalidInput(f"{path} is not opened: {_LINKED.format(status.st_nlink)}")

    def _is_tracked(self, name: str) -> bool:
        """Return whether git has a file, which is then nobody's secret whatever other names it has."""
        words = (*_GIT, "ls-files", "--error-unmatch", "--", name)
        return capture(words, cwd=self._root, env={"GIT_OPTIONAL_LOCKS": "0"}).returncode == 0

    def _open(self, name: str) -> int:
        # opening a pipe must not wait for its writer
        with open_root(self._root) as root:
            return self._open_beneath(root, name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY, 0)


def compose(name: str) -> str:
    """Return a name in the one form that all spellings of its letters share."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


@contextmanager
def suggest_near(workspace: Workspace) -> Iterator[None]:
    """Add to the message about a file that is not there which others it may have meant.

    Only where a role asked for it: the program looks for many files that need not be there, and git is slow.
    """
    try:
        yield
    except NoSuchFile as error:
        raise InvalidInput(f"{error}{offer_near(workspace, error.name)}") from None


def offer_near(workspace: Workspace, name: str) -> str:
    """Return the files that a name which leads nowhere may have meant, as the end of a message."""
    files, wanted = workspace.list_files(), PurePosixPath(name)
    same = [path for path in files if path.rpartition("/")[2].casefold() == wanted.name.casefold()]
    pool = (
        files
        if len(files) <= _NEAR_FILES
        else [path for path in files if wanted.parent in PurePosixPath(path).parents]
    )
    found = same[:_OFFERED] or get_close_matches(name, pool[:_NEAR_FILES], _OFFERED, 0.75)
    return f"; did you mean {' or '.join(found)}?" if found else ""


def is_hidden(name: str) -> bool:
    """Return whether a file is never listed: our own, or of a name that no tool may use."""
    return name.startswith(OWN_FOLDER) or _CONTROL.search(name) is not None


def find_policy_part(name: str) -> str | None:
    """Return the part of a name that makes it policy, which no role writes."""
    return next((part for part in PurePosixPath(name).parts if _is_policy(part)), None)


def find_obeyed_part(name: str) -> str | None:
    """Return the part of a name by which other programs execute or obey the file."""
    return next((part for part in PurePosixPath(name).parts if _matches(part, _OBEYED)), None)


def is_secret(name: str) -> bool:
    """Return whether a file holds secrets, by its name."""
    path = PurePosixPath(name)
    if _matches(path.name, _SECRET_FILES):
        return path.suffix.casefold() not in _SAMPLES
    if path.suffix.casefold() in _CODE:
        return False
    folders = {part.lstrip(".").casefold() for part in path.parts[:-1]}
    words = {word.casefold() for word in _WORD.findall(path.name)}
    return bool(words & _SECRET_WORDS or folders & _SECRET_FOLDERS)


def _git_folders(root: Path, known: Iterable[Path]) -> tuple[PurePosixPath, ...]:
    """Return where git keeps its own files below the root: as it told, and as a `.git` file says."""
    places = list(known)
    with suppress(OSError):
        said = (root / ".git").read_bytes()
        places.append((root / os.fsdecode(said.removeprefix(b"gitdir: ").rstrip(b"\r\n"))).resolve())
    inside = (place for place in places if place.is_relative_to(root) and place != root)
    return tuple(PurePosixPath(place.relative_to(root)) for place in inside)


def _is_policy(part: str) -> bool:
    return not set(POLICY).isdisjoint(fold_path(part).split("/"))


def _matches(part: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(fold_name(part), pattern) for pattern in patterns)
