"""Files that a check reads as it runs: by Python's audit hook with the reader, by inotify in any language."""

import ctypes
import os
import select
import shutil
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from agentflow.core.evidence import Reads
from agentflow.runners.python import add_import_path
from agentflow.sandbox.throwaway import walk

_HOOK = Path(__file__).with_name("reading_hook.py")
_READS, _ROOT, _LONGEST, _STALLED, _AT = "reads", "root", "longest", "stalled", "at"
_MOST_NAME = 1000
_OPENED, _IS_FOLDER, _OVERFLOWED = 0x20, 0x40000000, 0x4000
_HEAD = struct.Struct("iIII")
_MOST_FOLDERS = 20_000
_MOST_BYTES = 32 << 20
_APART = frozenset({".git", "node_modules", ".venv", "__pycache__"})


class ReadObserver:
    """One run under observation."""

    def __init__(self, place: Path, env: Mapping[str, str]) -> None:
        self._place = place
        self.env = env
        """The variables that the run has to have."""
        self._opened: set[str] = set()
        self._gap = ""

    def add(self, opened: Iterable[str], gap: str) -> None:
        self._opened |= set(opened)
        self._gap = self._gap or gap

    def collect_reads(self) -> Reads:
        return Reads(
            by_code=frozenset(_pairs(self._place / _READS)), opened=frozenset(self._opened), gap=self._gap
        )

    def find_stalled(self) -> tuple[str, ...]:
        """Return the tests that the hook ended since they did not move."""
        path = self._place / _STALLED
        return tuple(dict.fromkeys(_read(path).splitlines())) if path.exists() else ()

    def find_test(self) -> str:
        """Return the test of pytest that was begun last; empty where none runs."""
        return _read(self._place / _AT)[:_MOST_NAME].rstrip("\0").encode("utf-8", "replace").decode()


def install_hook(scratch: Path, roots: Iterable[Path], import_path: str, longest: float = 0) -> ReadObserver:
    """Put our hook into a folder, and return what observes a run whose repository lies at one of the roots.

    `import_path` is the PYTHONPATH that the run has otherwise. A test that uses more than `longest` seconds
    of processor time, and far more than any before it, is ended; none where that is 0.
    """
    place = scratch / "observer"
    place.mkdir()
    shutil.copyfile(_HOOK, place / "sitecustomize.py")
    tops = dict.fromkeys(str(each) for root in roots for each in (root, root.resolve()))
    (place / _ROOT).write_text("\0".join(tops), "utf-8", "surrogateescape")
    (place / _LONGEST).write_text(str(longest), "utf-8")
    entries = filter(None, (str(place), import_path))
    return ReadObserver(place, {"PYTHONPATH": os.pathsep.join(entries)})


def keep_hook(command: str, observer: ReadObserver) -> str:
    """Return a command that sets an import path of its own, with ours in front of it."""
    return add_import_path(command, observer.env["PYTHONPATH"].split(os.pathsep)[0])


@contextmanager
def watch_folders(observer: ReadObserver, folders: Iterable[Path]) -> Iterator[None]:
    """Note which files below some folders are opened meanwhile; where the system cannot, the gap says why."""
    if not sys.platform.startswith("linux"):
        observer.add((), "this system does not report which files are opened")
        yield
        return
    kernel = ctypes.CDLL(None, use_errno=True)
    descriptor = kernel.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
    if descriptor < 0:
        observer.add((), f"inotify: {os.strerror(ctypes.get_errno())}")
        yield
        return
    end, stop = os.pipe()
    places, gap = _watches(kernel, descriptor, folders)
    opened: set[str] = set()
    reader = Thread(target=_listen, args=(descriptor, end, places, opened), daemon=True)
    reader.start()
    try:
        yield
    finally:
        os.close(stop)
        reader.join()
        os.close(end)
        os.close(descriptor)
        observer.add(opened - {""}, gap or ("inotify: too much at once" if "" in opened else ""))


def _watches(kernel: ctypes.CDLL, descriptor: int, folders: Iterable[Path]) -> tuple[dict[int, str], str]:
    places: dict[int, str] = {}
    for top in folders:
        for folder, names, _ in walk(top):
            names[:] = [name for name in names if name not in _APART]
            if len(places) == _MOST_FOLDERS:
                return places, f"inotify: more than {_MOST_FOLDERS:,} folders"
            watch = kernel.inotify_add_watch(descriptor, os.fsencode(folder), _OPENED)
            if watch < 0:
                return places, f"inotify: {os.strerror(ctypes.get_errno())}"
            places[watch] = os.path.relpath(folder, top)
    return places, ""


def _listen(descriptor: int, end: int, places: Mapping[int, str], opened: set[str]) -> None:
    """Take down what is opened until the other end of a pipe is closed; empty where something was lost."""
    is_over = False
    while not is_over:
        ready, _, _ = select.select((descriptor, end), (), ())
        is_over = end in ready
        while found := _next(descriptor):
            opened.update(_names(found, places))


def _next(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except BlockingIOError:
        return b""


def _names(events: bytes, places: Mapping[int, str]) -> Iterator[str]:
    start = 0
    while start < len(events):
        watch, what, _, length = _HEAD.unpack_from(events, start)
        start += _HEAD.size + length
        name = os.fsdecode(events[start - length : start].rstrip(b"\0"))
        if what & _OVERFLOWED:
            yield ""
        elif name and watch in places and not what & _IS_FOLDER:
            yield os.path.normpath(os.path.join(places[watch], name))  # noqa: PTH118  # a string


def _read(path: Path) -> str:
    """Return what the hook wrote down, in a file that the code under test can write too."""
    if not path.is_file() or path.is_symlink() or path.stat().st_size > _MOST_BYTES:
        return ""
    return path.read_bytes().decode("utf-8", "surrogateescape")


def _pairs(path: Path) -> Iterator[tuple[str, str]]:
    for line in _read(path).splitlines():
        file, _, reader = line.partition("\t")
        yield file, reader
