"""Opens files beneath a folder by descriptor without following links, so that the judged file is opened.

A name is relative and has no `.` or `..` in it. Opening fails if a part of it has become a link meanwhile.
"""

import ctypes
import errno
import os
import secrets
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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
