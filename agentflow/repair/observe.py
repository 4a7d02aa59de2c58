"""Runs the tests once and sees outcomes, executed lines and failing frames; loaded by driver.py.

It runs in the interpreter of the check (3.8 or newer), so it imports nothing but the standard library and
the tests' own runner.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import re
import sys
import time
import unittest
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType, TracebackType

RED = ("failed", "error")
_VALUED = (
    *("-k", "-m", "-c", "-p", "-o", "-W", "-n", "-r"),
    *("--rootdir", "--ignore", "--deselect", "--confcutdir"),
)
"""Options of pytest whose value is the next word."""


class Recorder:
    """What the tests did: outcomes, lines executed, and the frames of what went wrong."""

    def __init__(self, root: str, tracing: bool) -> None:
        self.root = root + os.sep
        self.tracing = tracing
        self.outcomes: dict[str, str] = {}
        self.frames: dict[str, list[tuple[str, int]]] = {}
        self.lines: dict[str, set[tuple[str, int]]] = {"": set()}
        self.files: set[str] = set()
        self.seen = self.lines[""]
        self.known: dict[str, str | None] = {}

    def begin(self, test: str) -> None:
        """Count what is executed from now on for a test; for the loading of tests when it is empty."""
        self.seen = self.lines.setdefault(test, set())
        if self.tracing:
            sys.settrace(self.enter)

    def note(self, test: str, outcome: str) -> None:
        if self.outcomes.get(test) not in RED:
            self.outcomes[test] = outcome

    def blame(self, test: str, traceback: TracebackType | None) -> None:
        found = self.frames.setdefault(test, [])
        while traceback is not None:
            place = self.place(traceback.tb_frame.f_code)
            if place is not None and traceback.tb_lineno:
                found.append((place, traceback.tb_lineno))
            traceback = traceback.tb_next

    def place(self, code: CodeType) -> str | None:
        """Return the file of some code relative to the copy, or None when it lies elsewhere."""
        name = code.co_filename
        if name not in self.known:
            path = str(Path(name).resolve())
            self.known[name] = path[len(self.root) :] if path.startswith(self.root) else None
        return self.known[name]

    def enter(self, frame: FrameType, _event: str, _: object) -> Any:
        place = self.place(frame.f_code)
        if place is None:
            return None
        self.seen.add((place, frame.f_lineno))

        def step(inner: FrameType, event: str, _: object) -> Any:
            if event == "line":
                self.seen.add((place, inner.f_lineno))
            return step

        return step

    def report(self) -> dict[str, Any]:
        # no file has the line 0 in which a module begins, and some code has no line at all
        lines = {test: sorted(line for line in lines if line[1]) for test, lines in self.lines.items()}
        return {"outcomes": self.outcomes, "lines": lines, "frames": self.frames, "files": sorted(self.files)}


class UnittestResult(unittest.TestResult):
    """The runner calls a result of its own type; everything goes to the recorder."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder
        self.buffer = True

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().startTest(test)
        self.recorder.begin(test.id())

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        self.recorder.begin("")
        super().stopTest(test)

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        self.recorder.note(test.id(), "passed")

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: ARG002, N802
        self.recorder.note(test.id(), "skipped")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: ARG002, N802
        self.recorder.note(test.id(), "skipped")

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        self.note_red(test, "failed", err[2])

    def addError(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        self.note_red(test, "error", err[2])

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        self.note_red(test, "failed", None)

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:  # noqa: ARG002, N802
        if err is not None:
            self.note_red(test, "failed", err[2])

    def note_red(self, test: unittest.TestCase, outcome: str, traceback: TracebackType | None) -> None:
        self.recorder.note(test.id(), outcome)
        self.recorder.blame(test.id(), traceback)
        if self.failfast:
            self.stop()


class PytestRecorder:
    """The plugin through which pytest tells the recorder."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.recorder.note(report.nodeid, "error")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.recorder.files.add(nodeid.partition("::")[0])
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
        self.recorder.blame(node.nodeid, call.excinfo.tb)


def run_pytest(spec: dict[str, Any], recorder: Recorder, failfast: bool) -> None:
    import pytest  # noqa: PLC0415  # only where the check is pytest

    arguments = pytest_arguments(spec["arguments"], spec["files"])
    are_loaded = not os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    for module, options in (
        ("pytest_randomly", ["-p", "no:randomly"]),
        ("xdist", ["-n0"]),
        ("pytest_cov", ["--no-cov"]),
    ):
        arguments += options if are_loaded and importlib.util.find_spec(module) else []
    pytest.main(arguments + (["--maxfail=1"] if failfast else []), plugins=[PytestRecorder(recorder)])


def pytest_arguments(given: list[str], files: list[str]) -> list[str]:
    """Return the options of the check, its places replaced by the files that matter."""
    kept, before = [], ""
    for word in given:
        is_place = not word.startswith("-") and before not in _VALUED
        is_report = word.startswith(("--junit", "--cov", "--lf", "--ff", "-x", "--maxfail", "--exitfirst"))
        if not is_report and not (is_place and files):
            kept.append(word)
        before = word
    return kept + files


def run_unittest(spec: dict[str, Any], recorder: Recorder, failfast: bool) -> None:
    wanted = {str(Path(path).resolve()) for path in spec["files"]}
    chosen = unittest.TestSuite()
    for test in flat(unittest.TestSuite(unittest_suites(spec["arguments"], spec["files"]))):
        module = type(test).__module__
        path = str(Path(getattr(sys.modules.get(module), "__file__", None) or "").resolve())
        if not wanted or path in wanted or module == "unittest.loader":
            recorder.files.add(os.path.relpath(path))
            chosen.addTest(test)
    result = UnittestResult(recorder)
    result.failfast = failfast
    chosen.run(result)


def unittest_suites(given: list[str], files: list[str]) -> Iterator[unittest.TestSuite]:
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


def flat(suite: unittest.TestSuite) -> Iterator[Any]:
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


RUNNERS = {"pytest": run_pytest, "unittest": run_unittest}


def observe(spec: dict[str, Any], failfast: bool = False) -> dict[str, Any]:
    """Run the tests once and return what was seen."""
    recorder = Recorder(str(Path.cwd()), spec["trace"])
    began = time.monotonic()
    with contextlib.suppress(SystemExit):
        recorder.begin("")
        RUNNERS[spec["runner"]](spec, recorder, failfast)
    sys.settrace(None)
    return {**recorder.report(), "seconds": time.monotonic() - began}
