"""Collects the tests and runs them, and sees outcomes and what failures say; loaded by driver.py.

It runs in the interpreter of the check (3.8 or newer), so it imports nothing but the standard library and
the tests' own runner.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import importlib.util
import os
import re
import sys
import unittest
from numbers import Number
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType, TracebackType

_RED = ("failed", "error")
_VALUED = (
    *("-k", "-m", "-c", "-p", "-o", "-W", "-n", "-r"),
    *("--rootdir", "--ignore", "--deselect", "--confcutdir"),
)
"""Options of pytest whose value is the next word."""
_LONGEST_MESSAGE = 2000
_LOADING = "Failed to import test module"
"""How unittest tells of a module that cannot be loaded, with the traceback as text."""
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_LONGEST_SHOWN = 120
_ERROR, _ASSERTION, _COMPARED = 0.05, 0.15, 0.2
"""What an error in the code, a failed assertion, and one of two values are worth at least."""
_DOCTEST = re.compile(r"Expected:\n(?P<wanted>.*?)\nGot:\n(?P<got>.*)", re.DOTALL)


class Recorder:
    """The outcomes of the tests, the messages of failures, and the frames of what went wrong."""

    def __init__(self, root: str, folder: str) -> None:
        self.root = root + os.sep
        self.home = self.root + folder
        self.outcomes: dict[str, str] = {}
        self.red: set[str] = set()
        self.frames: dict[str, list[tuple[str, int]]] = {}
        self.messages: dict[str, str] = {}
        self.files: set[str] = set()
        self.known: dict[str, str | None] = {}
        self.begin: Callable[[str], object] = lambda _test: None
        """Called with the id of a test that starts, and with an empty one when it has ended."""
        self.fail: Callable[[str, BaseException], object] = lambda _test, _error: None
        """Called with what made a test red."""

    def note(self, test: str, outcome: str) -> None:
        if outcome in _RED:
            self.red.add(test)
        if self.outcomes.get(test) not in _RED:
            self.outcomes[test] = outcome

    def blame(self, test: str, error: BaseException | None, traceback: TracebackType | None) -> None:
        cause = error.__cause__ if type(error).__name__ == "CollectError" and error else None
        error, traceback = (cause, cause.__traceback__) if cause else (error, traceback)
        found = self.frames.setdefault(test, [])
        while traceback is not None:
            place = self.place(traceback.tb_frame.f_code.co_filename)
            if place is not None and traceback.tb_lineno:
                found.append((place, traceback.tb_lineno))
            traceback = traceback.tb_next
        if error is not None:
            self.messages.setdefault(test, _describe_error(error))
            self.fail(test, error)
        if isinstance(error, ImportError) and str(error).startswith(_LOADING):
            places = [(self.place(name), int(line)) for name, line in _FRAME.findall(str(error))]
            found += [(place, line) for place, line in places if place]
        if isinstance(error, SyntaxError) and error.filename and error.lineno:
            place = self.place(error.filename)
            found += [(place, error.lineno)] if place else []

    def walk(self, frame: FrameType | None) -> list[tuple[str, int]]:
        found = []
        while frame is not None:
            place = self.place(frame.f_code.co_filename)
            if place is not None:
                found.append((place, frame.f_lineno))
            frame = frame.f_back
        return found[::-1]

    def place(self, name: str) -> str | None:
        """Return a file of some code relative to the copy, or None when it lies elsewhere."""
        if name not in self.known:
            path = "" if name.startswith("<") else str(Path(name).resolve())
            self.known[name] = path[len(self.root) :] if path.startswith(self.root) else None
        return self.known[name]

    def report(self) -> dict[str, Any]:
        return {
            "outcomes": self.outcomes,
            "frames": self.frames,
            "messages": self.messages,
            "files": sorted(self.files),
        }


def _describe_error(error: BaseException) -> str:
    try:
        said = str(error)
    except Exception:  # noqa: BLE001  # whatever the code under test raises
        said = ""
    kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
    return f"{kind}{said}"[:_LONGEST_MESSAGE]


class Nearness:
    """The last comparison of a red test; also a plugin of pytest."""

    def __init__(self) -> None:
        self.pair: tuple[Any, Any] | None = None
        self.seen: dict[str, tuple[float, str, str]] = {}

    def pytest_assertrepr_compare(self, op: str, left: object, right: object) -> None:
        if op in ("==", "is"):
            self.pair = (left, right)

    def watch_unittest(self) -> None:
        before = unittest.TestCase.assertEqual
        me = self

        def compare(case: Any, first: Any, second: Any, msg: Any = None) -> None:
            try:
                before(case, first, second, msg)
            except AssertionError:
                me.pair = (first, second)
                raise

        unittest.TestCase.assertEqual = compare  # type: ignore[method-assign, assignment]

    def begin(self) -> None:
        self.pair = None

    def fail(self, test: str, error: BaseException) -> None:
        near, wanted, got = self.measure(error)
        if test not in self.seen or near > self.seen[test][0]:
            self.seen[test] = (round(near, 4), wanted, got)

    def measure(self, error: BaseException) -> tuple[float, str, str]:
        try:
            text = str(error)
        except Exception:  # noqa: BLE001  # whatever the code under test raises
            text = ""
        said = _DOCTEST.search(text)
        if said:
            wanted, got = said["wanted"].strip(), said["got"].strip()
            return _COMPARED + 0.7 * rate_likeness(got, wanted), wanted[:_LONGEST_SHOWN], got[:_LONGEST_SHOWN]
        if not isinstance(error, AssertionError):
            return _ERROR, "", f"{type(error).__name__}: {text}"[:_LONGEST_SHOWN]
        if self.pair is None:
            return _ASSERTION, "", text.partition("\n")[0][:_LONGEST_SHOWN]
        got, wanted = self.pair
        return _COMPARED + 0.7 * rate_likeness(got, wanted), clip_repr(wanted), clip_repr(got)


def clip_repr(value: object) -> str:
    try:
        return repr(value)[:_LONGEST_SHOWN]
    except Exception:  # noqa: BLE001  # whatever the code under test raises
        return f"a {type(value).__name__}"


def rate_likeness(got: Any, wanted: Any) -> float:
    """Return how alike two values are, from 0 to 1: numbers by their distance, others by their text."""
    try:
        if isinstance(got, Number) and isinstance(wanted, Number):
            return 1.0 if got == wanted else 0.9 / (1.0 + abs(float(got) - float(wanted)))  # type: ignore[arg-type]
    except Exception:  # noqa: BLE001  # such as numbers of the code under test
        return 0.0
    if type(got) is not type(wanted):
        return 0.0
    return difflib.SequenceMatcher(None, clip_repr(got), clip_repr(wanted), autojunk=False).ratio()


class Tests:
    """The collected tests, to be run in any order."""

    def __init__(self, recorder: Recorder, items: dict[str, Any]) -> None:
        self.recorder = recorder
        self.items = items

    def be_silent(self) -> None:
        """Write no report of the tests that run from now on."""


Serve = Any
"""What is called with the collected tests."""


class UnittestResult(unittest.TestResult):
    """The runner calls a result of its own type; everything goes to the recorder."""

    def __init__(self, recorder: Recorder, is_enough: Callable[[], bool]) -> None:
        super().__init__()
        self.recorder = recorder
        self.is_enough = is_enough
        self.buffer = True

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().startTest(test)
        self.recorder.begin(test.id())

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        self.recorder.begin("")
        super().stopTest(test)
        if self.is_enough():
            self.stop()

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        self.recorder.note(test.id(), "passed")

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: ARG002, N802
        self.recorder.note(test.id(), "skipped")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: ARG002, N802
        self.recorder.note(test.id(), "skipped")

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        self.note_red(test, "failed", err)

    def addError(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        self.note_red(test, "error", err)

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        self.note_red(test, "failed", (None, None, None))

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:  # noqa: ARG002, N802
        if err is not None:
            self.note_red(test, "failed", err)

    def note_red(self, test: unittest.TestCase, outcome: str, err: Any) -> None:
        self.recorder.note(test.id(), outcome)
        self.recorder.blame(test.id(), err[1], err[2])


class UnittestTests(Tests):
    """Tests of unittest."""

    def run(self, ids: Iterable[str], is_enough: Callable[[], bool]) -> None:
        chosen = unittest.TestSuite(self.items[test] for test in ids if test in self.items)
        chosen.run(UnittestResult(self.recorder, is_enough))


class PytestTests(Tests):
    """Tests of pytest."""

    def run(self, ids: Iterable[str], is_enough: Callable[[], bool]) -> None:
        chosen = [self.items[test] for test in ids if test in self.items]
        os.chdir(self.recorder.home)  # they were collected from the root, which their ids are relative to
        for item, following in zip(chosen, [*chosen[1:], None]):  # noqa: B905  # Python 3.8 has no `strict`
            item.repr_failure = lambda *_, **__: "red"  # nobody reads it, and it takes most of the time
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if is_enough():
                return

    def be_silent(self) -> None:
        for item in list(self.items.values())[:1]:
            plugins = item.config.pluginmanager
            if plugins.hasplugin("terminalreporter"):
                plugins.unregister(name="terminalreporter")


class PytestRecorder:
    """The plugin through which pytest tells the recorder."""

    def __init__(self, recorder: Recorder, serve: Serve) -> None:
        self.recorder = recorder
        self.serve = serve

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.recorder.note(report.nodeid, "error")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.recorder.begin(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.recorder.note(report.nodeid, "failed" if report.when == "call" else "error")
        elif report.skipped:
            self.recorder.note(report.nodeid, "skipped")
        elif report.when == "call":
            self.recorder.note(report.nodeid, "passed")

    def pytest_runtest_logfinish(self) -> None:
        self.recorder.begin("")

    def pytest_exception_interact(self, node: Any, call: Any) -> None:
        self.recorder.blame(node.nodeid, call.excinfo.value, call.excinfo.tb)


class PytestLoop(PytestRecorder):
    """The same, and what runs the tests in pytest's place."""

    def pytest_runtestloop(self, session: Any) -> bool:
        for item in session.items:
            if type(item).__name__ != "DoctestItem":  # which stands in the code under test itself
                self.recorder.files.add(item.nodeid.partition("::")[0])
        self.recorder.begin("")
        self.serve(PytestTests(self.recorder, {item.nodeid: item for item in session.items}))
        return True


class PytestStart:
    """The plugin that takes over once pytest is set up, and before it loads a test."""

    def __init__(self, take_over: Callable[[Callable[[], None]], None]) -> None:
        self.take_over = take_over
        self.is_over = False

    def pytest_collection(self, session: Any) -> Iterator[None]:
        hook = session.config.hook

        def load_and_run() -> None:
            self.is_over = True
            hook.pytest_collection(session=session)
            hook.pytest_runtestloop(session=session)

        if not self.is_over:
            self.take_over(load_and_run)
        yield


def run_pytest(spec: dict[str, Any], recorder: Recorder, serve: Serve, *others: object) -> None:
    import pytest  # noqa: PLC0415  # only where the check is pytest

    PytestLoop.pytest_runtestloop = pytest.hookimpl(tryfirst=True)(PytestLoop.pytest_runtestloop)  # type: ignore[method-assign]
    wrap = pytest.hookimpl(hookwrapper=True, tryfirst=True)
    PytestStart.pytest_collection = wrap(PytestStart.pytest_collection)  # type: ignore[method-assign]
    arguments = choose_pytest_arguments(spec["arguments"], spec["files"])
    are_loaded = not os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    for module, options in (
        ("pytest_randomly", ["-p", "no:randomly"]),
        ("xdist", ["-n0"]),
        ("pytest_cov", ["--no-cov"]),
    ):
        arguments += options if are_loaded and importlib.util.find_spec(module) else []
    pytest.main(arguments, plugins=[PytestLoop(recorder, serve), *others])


def choose_pytest_arguments(given: list[str], files: list[str]) -> list[str]:
    """Return the options of the check, its places replaced by the files that matter."""
    kept, before = [], ""
    for word in given:
        is_place = not word.startswith("-") and before not in _VALUED
        is_report = word.startswith(("--junit", "--cov", "--lf", "--ff", "-x", "--maxfail", "--exitfirst"))
        if not is_report and not (is_place and files):
            kept.append(word)
        before = word
    return kept + files


def run_unittest(spec: dict[str, Any], recorder: Recorder, serve: Serve) -> None:
    wanted = {str(Path(path).resolve()) for path in spec["files"]}
    chosen = {}
    for test in flatten_suite(unittest.TestSuite(load_unittest_suites(spec["arguments"], spec["files"]))):
        module = type(test).__module__
        path = str(Path(getattr(sys.modules.get(module), "__file__", None) or "").resolve())
        if not wanted or path in wanted or module == "unittest.loader":
            recorder.files.add(os.path.relpath(path))
            chosen[test.id()] = test
    serve(UnittestTests(recorder, chosen))


def load_unittest_suites(given: list[str], files: list[str]) -> Iterator[unittest.TestSuite]:
    """Yield what the arguments of `python -m unittest` load; `&&` stands between those of several runs."""
    runs: list[list[str]] = [[]]
    for word in given:
        if word == "&&":
            runs.append([])
        else:
            runs[-1].append(word)
    for run in runs:
        yield from load_suites(run, files)


def load_suites(given: list[str], files: list[str]) -> Iterator[unittest.TestSuite]:
    loader = unittest.TestLoader()
    parser = argparse.ArgumentParser()
    parser.add_argument("-s", "--start-directory", dest="start", default=".")
    parser.add_argument("-p", "--pattern", default="test*.py")
    parser.add_argument("-t", "--top-level-directory", dest="top")
    parser.add_argument("-k", action="append")
    parser.add_argument("places", nargs="*")
    options, others = parser.parse_known_args([word for word in given if word != "discover"])
    places = options.places + [word for word in others if not word.startswith("-")]
    if places and given[0] != "discover":
        yield loader.loadTestsFromNames([re.sub(r"\.py$", "", name).replace("/", ".") for name in places])
        return
    start, pattern, top = (places + [options.start, options.pattern, options.top][len(places) :])[:3]
    for each in sorted({Path(path).name for path in files}) or [pattern]:
        yield loader.discover(start, each, top)


def flatten_suite(suite: unittest.TestSuite) -> Iterator[Any]:
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flatten_suite(test)
        else:
            yield test


RUNNERS = {"pytest": run_pytest, "unittest": run_unittest}


def collect(spec: dict[str, Any], recorder: Recorder, serve: Serve) -> None:
    with contextlib.suppress(SystemExit):
        RUNNERS[spec["runner"]](spec, recorder, serve)
