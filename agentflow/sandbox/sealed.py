"""Runs work in a forked child of which nothing stays, and puts a copy back; loaded by programs in a sandbox.

It runs in the interpreter of the check (3.8 or newer) and imports nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator

_CHUNK = 1 << 16
_ROOM = 3 << 30
"""Bytes of memory that a child may take beside what is loaded."""
_NAP = 0.001
_ADOPT = 36
"""PR_SET_CHILD_SUBREAPER: what leaves a child's group becomes a child of ours."""
_STARTS = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.exec", "os.system")
_CHANGES = (
    *("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod"),
    *("os.utime", "os.chown", "os.mkfifo", "os.mknod", "sqlite3.connect", "ctypes.dlopen"),
)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_FORK, _READ, _WRITE, _EXIT, _WAIT, _KILL = os.fork, os.read, os.write, os._exit, os.waitpid, os.kill
"""As they are before the code under test is loaded."""


def run_sealed(
    work: Callable[[Callable[[], None]], dict[str, Any]],
    cpu: list[float],
    wall: list[float],
    late: tuple[str, Callable[[], object]] | None = None,
) -> dict[str, Any]:
    """Return what some work in a child answers, and how the child ended.

    The work calls what it is given when it begins its second part; each part has its own limits. A file may
    be named, with what writes it: it is written in the child before anything there can read it.
    """
    touched: list[str] = []

    def inside(tell: Callable[[dict[str, Any]], None]) -> None:
        limit_time(cpu[0])
        watch_changes(touched, late)

        def enter() -> None:
            limit_time(cpu[1])
            tell({"part": 2})

        answer = work(enter)
        tell({**answer, "touched": bool(touched)})

    with open_child(inside) as child:
        lines = Lines(child.reader, wall[0])
        for told in lines:
            if "part" not in told:
                return told
            lines.deadline = time.monotonic() + wall[1]
        child.end()
    is_hung = lines.is_late or (os.WIFSIGNALED(child.status) and os.WTERMSIG(child.status) == signal.SIGPROF)
    return {"end": "hung" if is_hung else "crashed"}


def follow(
    work: Callable[[Callable[[dict[str, Any]], None]], None], longest: list[float]
) -> list[dict[str, Any]]:
    """Return what a child tells, until it has told enough or is silent for too long each time."""
    found: list[dict[str, Any]] = []
    with open_child(work) as child:
        lines = Lines(child.reader, longest[0])
        for told in lines:
            found.append(told)
            if len(found) == len(longest):
                break
            lines.deadline = time.monotonic() + longest[len(found)]
    return found


def start_child(work: Callable[[], None]) -> int:
    number = _FORK()
    if number == 0:
        work()
        _EXIT(0)
    return number


class Child:
    """A forked process."""

    def __init__(self, number: int, reader: int) -> None:
        self.number = number
        self.reader = reader
        self.status = 0
        self.is_over = False

    def end(self) -> None:
        """End the child, its group and whatever left it."""
        if self.is_over:
            return
        self.is_over = True
        for kill in (os.killpg, _KILL):
            with contextlib.suppress(OSError):
                kill(self.number, signal.SIGKILL)
        with contextlib.suppress(OSError):
            self.status = _WAIT(self.number, 0)[1]
        end_strays()


@contextlib.contextmanager
def open_child(work: Callable[[Callable[[dict[str, Any]], None]], None]) -> Iterator[Child]:
    """Yield a child that does some work and tells of it; it and all it started end with the block."""
    reader, writer = os.pipe()
    folder = tempfile.mkdtemp()
    number = _FORK()
    if number == 0:
        try:
            enter_child(reader, folder)
            work(lambda told: write_line(writer, told))
        finally:
            _EXIT(0)
    os.close(writer)
    child = Child(number, reader)
    try:
        yield child
    finally:
        child.end()
        os.close(reader)
        remove(folder)


def enter_child(reader: int, folder: str) -> None:
    """Give a child its own group, no input or output, and a folder of its own for temporary files."""
    os.setpgid(0, 0)
    for descriptor in (reader, *private):
        os.close(descriptor)
    sink = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(sink, descriptor)
    os.environ["TMPDIR"] = folder
    tempfile.tempdir = None


def write_line(writer: int, told: dict[str, Any]) -> None:
    raw = json.dumps(told).encode() + b"\n"
    while raw:
        raw = raw[_WRITE(writer, raw) :]


class Lines:
    """The lines of a child, until the time is over or the child is gone."""

    def __init__(self, reader: int, seconds: float) -> None:
        self.reader = reader
        self.deadline = time.monotonic() + seconds
        self.is_late = False

    def __iter__(self) -> Iterator[dict[str, Any]]:
        buffer = b""
        while True:
            left = self.deadline - time.monotonic()
            if left <= 0 or not select.select([self.reader], [], [], left)[0]:
                self.is_late = True
                return
            chunk = _READ(self.reader, _CHUNK)
            if not chunk:
                return
            *lines, buffer = (buffer + chunk).split(b"\n")
            for line in lines:
                try:
                    yield json.loads(line)
                except ValueError:
                    return  # what the code under test wrote there


def end_strays() -> None:
    """End every child that is not one of the first: only what a tried edit left behind is another."""
    with contextlib.suppress(OSError):
        while _WAIT(-1, os.WNOHANG)[0] or list_children() - _first:
            for stray in list_children() - _first:
                with contextlib.suppress(OSError):
                    _KILL(stray, signal.SIGKILL)
                    _WAIT(stray, 0)


def list_children() -> set[int]:
    own, found = str(os.getpid()).encode(), set()
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():  # noqa: PTH112, PTH208  # at every stray
        with contextlib.suppress(OSError):
            if (
                name.isdigit()
                and Path("/proc", name, "stat").read_bytes().rpartition(b") ")[2].split()[1] == own
            ):
                found.add(int(name))
    return found


private: list[int] = []
"""Descriptors of ours that no child gets."""

_first: set[int] = set()
"""What the loading of the tests started."""


def adopt_strays() -> None:
    """Become the parent of whatever leaves the group of a child."""
    _first.update(list_children())
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_ADOPT, 1, 0, 0, 0)


def note_sleeps() -> Callable[[], float]:
    """Return what tells for how many seconds the code has asked to sleep since now."""
    whole, asked = time.sleep, 0.0

    def sleep(seconds: float) -> None:
        nonlocal asked
        asked += max(0.0, seconds)
        whole(seconds)

    put_in_place(whole, sleep)
    return lambda: asked


def put_in_place(whole: Callable[[float], None], sleep: Callable[[float], None]) -> None:
    """Let all that is loaded sleep in another way."""
    time.sleep = sleep  # type: ignore[assignment]
    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if value is whole:
                setattr(module, name, sleep)


def shorten_waits() -> None:
    """Let every sleep end at once, and the clocks say that it took its time; only children may sleep then."""
    whole, skipped = time.sleep, 0.0

    def sleep(seconds: float) -> None:
        nonlocal skipped
        skipped += max(0.0, seconds - _NAP)
        whole(min(seconds, _NAP))

    def shift(clock: Callable[[], float]) -> Callable[[], float]:
        return lambda: clock() + skipped

    put_in_place(whole, sleep)
    for name in ("time", "monotonic", "perf_counter"):
        setattr(time, name, shift(getattr(time, name)))


def limit_memory() -> None:
    """Bound what this process and its children may take beside what is loaded."""
    with contextlib.suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + _ROOM
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


def limit_time(seconds: float) -> None:
    """Let the system end this process once it has used so much processor time."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)


def call_after(seconds: float, stop: Callable[[int, Any], None]) -> None:
    """Call a function with where this process is by then, unless the code under test wants the same alarm."""
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def watch_changes(touched: list[str], late: tuple[str, Callable[[], object]] | None) -> None:
    """Note whether this process may have changed a file of the copy, or started another that may.

    A file that is written late is written before it is opened here, and before another process starts.
    """
    root = str(Path.cwd()) + os.sep
    waiting = [] if late is None else [(root + late[0], late[1])]

    def see(event: str, given: tuple[Any, ...]) -> None:
        if waiting and (event in _STARTS or (event == "open" and is_at(given[0], waiting[0][0]))):
            touched.append(event)
            waiting.pop()[1]()
        if is_change(event, given, root):
            touched.append(event)

    sys.addaudithook(see)


def is_at(path: object, place: str) -> bool:
    """Say whether a path that is opened leads to a file."""
    is_path = isinstance(path, (str, bytes, os.PathLike))
    return is_path and os.path.realpath(os.fsdecode(path)) == place  # type: ignore[arg-type]


def is_change(event: str, given: tuple[Any, ...], root: str) -> bool:
    """Say whether an event may change a file below a folder, or starts a process that may."""
    if event == "open":
        path, mode, flags = given
        is_write = isinstance(mode, str) and any(sign in mode for sign in "wax+")
        return (is_write or (mode is None and flags & _WRITES)) and is_inside(path, root)
    return event in _STARTS or (event in _CHANGES and any(is_inside(each, root) for each in given[:2]))


def is_inside(path: object, root: str) -> bool:
    if not isinstance(path, (str, bytes, os.PathLike)):
        return False
    return (os.path.abspath(os.fsdecode(path)) + os.sep).startswith(root)  # noqa: PTH100  # at every file


def remove(folder: str) -> None:
    try:
        os.rmdir(folder)  # noqa: PTH106  # at every edit
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)


class Copy:
    """The files of the working folder, to be put back as they were."""

    def __init__(self, pristine: str, apart: Iterable[str] = ()) -> None:
        """Take what the files were, and the folders at the root that are none of the copy's own."""
        self.pristine = pristine
        self.apart = frozenset(apart)
        self.state = sign_files(self.apart)
        self.folders = {folder for folder, _ in walk_copy(self.apart)}

    def write(self, edit: dict[str, Any]) -> bytes:
        """Make an edit in its file and return what the file held."""
        path = Path(edit["path"])
        raw, mode = path.read_bytes(), path.stat().st_mode
        path.unlink()  # a read-only file can be replaced, not written
        write_anew(path, raw[: edit["start"]] + edit["text"].encode() + raw[edit["end"] :], mode)
        return raw

    def put_back(self, name: str, raw: bytes | None) -> None:
        path = Path(name)
        with contextlib.suppress(OSError):
            path.unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        write_anew(path, raw or b"", self.state[path][2])
        self.state[path] = mark_of(path)

    def restore(self) -> None:
        """Put the copy back as it was, so that no edit sees what an earlier one left behind."""
        now = sign_files(self.apart)
        for path in now.keys() - self.state.keys():
            path.unlink()
        for path, seen in self.state.items():
            if now.get(path) != seen:
                with contextlib.suppress(OSError):
                    path.unlink()
                path.parent.mkdir(parents=True, exist_ok=True)
                source = Path(self.pristine, path)
                if source.is_symlink():
                    path.symlink_to(os.readlink(source))  # noqa: PTH115  # Path has it since 3.9
                else:
                    write_anew(path, source.read_bytes(), source.stat().st_mode)
                self.state[path] = mark_of(path)
        for folder in sorted({folder for folder, _ in walk_copy(self.apart)} - self.folders, reverse=True):
            shutil.rmtree(folder, ignore_errors=True)


def walk_copy(apart: Container[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each folder of the copy and the files in it."""
    for folder, inner, names in os.walk("."):
        if folder == ".":
            inner[:] = [name for name in inner if name not in apart]
        yield folder, names


def sign_files(apart: Container[str]) -> dict[Path, tuple[int, ...]]:
    """Return what identifies the content of each file of the copy."""
    return {
        path: mark_of(path)
        for folder, names in walk_copy(apart)
        for path in map(Path(folder).joinpath, names)
    }


def mark_of(path: Path) -> tuple[int, ...]:
    seen = path.lstat()
    return (seen.st_size, seen.st_mtime_ns, seen.st_mode)


def write_anew(path: Path, raw: bytes, mode: int) -> None:
    """Write a new file that has its mode from the start: a sandbox may refuse to set it later."""
    before = os.umask(0)
    try:
        target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode & 0o777)
    finally:
        os.umask(before)
    with os.fdopen(target, "wb") as file:
        file.write(raw)
