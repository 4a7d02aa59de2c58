"""The `sitecustomize` of every Python that a check starts: notes what is read by whom, and which test runs.

It is copied beside a file that names the root of the repository. The program that it is loaded into pays for
all that it imports, and is not to notice it.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` takes longer to load than all else that happens here
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

_APART = ("/site-packages/", "/node_modules/", "/__pycache__/", "/.git/")
_FOLDER = os.path.dirname(os.path.abspath(__file__))
_WRITE_ONLY = 1
_SETUP = b" (setup)"
_ROOM = 1000
"""The length of the file that names the running test; it is overwritten, since emptying it is slow."""
_TICK = 1.0
_FAR = 10
"""A test that takes so many times longer than any before it takes too long."""


class _Notes:
    """The files read in a repository, each pair of a file and its reader written down once."""

    def __init__(self, root: str) -> None:
        self._top = root + "/"
        self._here = os.getcwd()
        self._known: set[tuple[str, str]] = set()
        self._calls = (os.open, os.write, os.close)  # a test may put others in their place

    def hear(self, event: str, words: tuple[Any, ...]) -> None:
        if event != "open":
            return
        try:
            path, mode, flags = words
            if _is_read(mode, flags):
                self._note(os.fsdecode(path))
        except BaseException:  # whatever is wrong here, the check is not to notice
            pass

    def _note(self, path: str) -> None:
        found = self._inside(path, os.getcwd)
        pair = (found, self._reader(sys._getframe(2))) if found else ("", "")
        if not found or pair in self._known:
            return
        self._known.add(pair)
        opening, writing, closing = self._calls
        descriptor = opening(_FOLDER + "/reads", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        writing(descriptor, os.fsencode("\t".join(pair) + "\n"))
        closing(descriptor)

    def _inside(self, path: str, folder: Any) -> str:
        whole = path if path.startswith("/") else folder() + "/" + path
        whole = os.path.normpath(whole) if "./" in whole or "//" in whole else whole
        is_own = whole.startswith(self._top) and not any(word in whole for word in _APART)
        return whole[len(self._top) :] if is_own else ""

    def _reader(self, frame: FrameType | None) -> str:
        """Return the nearest file of the repository whose code is being run."""
        while frame is not None:
            name = frame.f_code.co_filename
            found = "" if name.startswith("<") else self._inside(name, lambda: self._here)
            if found:
                return found
            frame = frame.f_back
        return ""


class TestStalled(BaseException):
    """A test kept the processor busy for far longer than any before it."""


class _Tests:
    """The test of pytest that runs: it is told to whoever waits, and ended where it does not move."""

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._calls = (os.open, os.write, os.close)
        self._part = ("", False)
        self._began = self._last = 0.0
        self._stop: Callable[[], Any] = lambda: None

    def hear(self, event: str, words: tuple[Any, ...]) -> None:
        try:
            if event == "os.putenv" and words[0] == b"PYTEST_CURRENT_TEST" and words[1].endswith(_SETUP):
                self._tell(words[1][: -len(_SETUP)])
            elif event == "os.unsetenv" and words[0] == b"PYTEST_CURRENT_TEST":
                self._tell(b"")
            elif event == "os.exec":
                self._stop()
            elif event == "import" and words[0] == "_pytest.runner" and self._longest:
                self._start()
        except BaseException:  # the same
            pass

    def _start(self) -> None:
        """Look at the test that runs at each second of processor time, which one that waits does not use."""
        import atexit  # noqa: PLC0415  # only where tests run
        import signal  # noqa: PLC0415
        import time  # noqa: PLC0415

        self._clock, call = time.process_time, signal.setitimer
        signal.signal(signal.SIGVTALRM, self._look)
        call(signal.ITIMER_VIRTUAL, _TICK, _TICK)
        self._stop = lambda: call(signal.ITIMER_VIRTUAL, 0)
        atexit.register(self._stop)  # a tick kills a program that has taken its handlers apart

    def _look(self, _number: int, frame: FrameType | None) -> None:
        test, is_inside = part = _find_test(frame)
        now = self._clock()
        if part != self._part:
            self._longest = max(self._longest, _FAR * (self._last - self._began) if self._part[1] else 0)
            self._part, self._began = part, now
        self._last = now
        if is_inside and now - self._began >= self._longest:
            self._part = ("", False)  # what is ended here is no measure for others
            self._write("stalled", os.O_APPEND, os.fsencode(test) + b"\n")
            raise TestStalled(f"it did not end within {now - self._began:.0f} s of processor time")

    def _tell(self, test: bytes) -> None:
        self._write("at", 0, test[:_ROOM].ljust(_ROOM, b"\0"))

    def _write(self, name: str, way: int, text: bytes) -> None:
        opening, writing, closing = self._calls
        descriptor = opening(f"{_FOLDER}/{name}", os.O_WRONLY | os.O_CREAT | way, 0o600)
        writing(descriptor, text)
        closing(descriptor)


def _find_test(frame: FrameType | None) -> tuple[str, bool]:
    """Return the test that runs, and whether it does more than prepare or clean up, maybe for others too."""
    is_inside = False
    while frame is not None:
        code = frame.f_code
        if code.co_filename.endswith("/_pytest/runner.py"):
            is_inside = is_inside or code.co_name == "pytest_runtest_call"
            if code.co_name == "runtestprotocol":
                return frame.f_locals["item"].nodeid, is_inside
        frame = frame.f_back
    return "", False


def _is_read(mode: Any, flags: int) -> bool:
    return "r" in mode or "+" in mode if isinstance(mode, str) else flags & 3 != _WRITE_ONLY


def _hand_on() -> None:
    """Load the `sitecustomize` that this one stands in front of."""
    sys.path[:] = [entry for entry in sys.path if entry != _FOLDER]
    own = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401, PLC0415
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = own


if __name__ == "sitecustomize":
    try:
        with open(_FOLDER + "/root") as _file:
            for _root in _file.read().split("\0"):
                sys.addaudithook(_Notes(_root).hear)
        with open(_FOLDER + "/longest") as _file:
            sys.addaudithook(_Tests(float(_file.read())).hear)
    except BaseException:  # the same
        pass
    _hand_on()
