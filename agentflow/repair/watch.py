"""Runs the tests once and sees outcome, time, executed lines and types of each; loaded by driver.py.

It runs in the interpreter of the check (3.8 or newer) and imports nothing but the standard library. From 3.12
on the interpreter itself tells each line once; before, each function of the repository is traced.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

_MOST_CALLS = 40
"""Calls of a function whose values are looked at, for each test."""
_SHOWN = 4
_TOOL = 4
"""The number under which the interpreter knows us; no debugger, profiler or optimizer has it."""
_MONITORING: Any = getattr(sys, "monitoring", None)
_DISABLE: Any = getattr(_MONITORING, "DISABLE", None)
_MOST_WATCHED = 300
"""Passing tests whose lines are looked at."""
_LONGEST_WATCH = 3.0
"""Seconds after which a passing test is left to the program's own check."""
_LONGEST_HANG = 10.0
"""Seconds after which a test counts as one that never ends, where the check ran into its time limit."""
_STOPPED = 0.8
"""The share of its time after which a test is asked where it is."""


class Tracer:
    """The lines and types of one test after the other."""

    def __init__(self, place: Callable[[str], str | None], *, is_on: bool = True) -> None:
        """Take what gives a file's place, if any; one that is not on sees nothing, and takes no time."""
        self.place = place
        self.is_on = is_on
        self.lines: dict[str, set[tuple[str, int]]] = {"": set()}
        self.types: dict[str, dict[str, set[str]]] = {}
        self.seen = self.lines[""]
        self.calls: dict[CodeType, int] = {}
        self.is_typed = False

    def begin(self, test: str) -> None:
        """Count what is executed from now on for a test; for the loading of tests when it is empty."""
        if not self.is_on:
            return
        self.seen = self.lines.setdefault(test, set())
        self.calls = {}
        self.is_typed = bool(test)
        if _MONITORING:
            self.watch(_MONITORING)
        else:
            sys.settrace(self.enter)

    def end(self) -> None:
        if not self.is_on:
            return
        if not _MONITORING:
            sys.settrace(None)
        elif _MONITORING.get_tool(_TOOL) == "agentflow":
            _MONITORING.set_events(_TOOL, 0)

    def watch(self, monitoring: Any) -> None:
        events = monitoring.events
        if monitoring.get_tool(_TOOL) is None:
            monitoring.use_tool_id(_TOOL, "agentflow")
        monitoring.register_callback(_TOOL, events.PY_START, self.enter_code)
        monitoring.register_callback(_TOOL, events.LINE, self.step_on)
        monitoring.register_callback(_TOOL, events.PY_RETURN, self.leave_with)
        monitoring.set_events(_TOOL, events.PY_START | events.LINE | events.PY_RETURN)
        monitoring.restart_events()

    def enter_code(self, code: CodeType, _offset: int) -> Any:
        """Note the first line of a function, which Python reports as no step if the body stands there."""
        return self.step_on(code, code.co_firstlineno)

    def step_on(self, code: CodeType, line: int) -> Any:
        place = self.place(code.co_filename)
        if place is not None:
            self.seen.add((place, line))
        return _DISABLE

    def leave_with(self, code: CodeType, _offset: int, value: object) -> Any:
        place = self.place(code.co_filename)
        if place is None:
            return _DISABLE
        if self.is_typed:
            frame = sys._getframe(1)  # noqa: SLF001  # the only way to the values of what returns
            self.look(place, code, frame.f_locals, value)
        return None if self.calls.get(code, 0) < _MOST_CALLS else _DISABLE

    def enter(self, frame: FrameType, _event: str, _: object) -> Any:
        place = self.place(frame.f_code.co_filename)
        if place is None:
            return None
        self.seen.add((place, frame.f_lineno))

        def step(inner: FrameType, event: str, value: object) -> Any:
            if event == "line":
                self.seen.add((place, inner.f_lineno))
            elif event == "return" and self.is_typed and self.calls.get(inner.f_code, 0) < _MOST_CALLS:
                self.look(place, inner.f_code, inner.f_locals, value)
            return step

        return step

    def look(self, place: str, code: CodeType, values: dict[str, Any], result: object) -> None:
        self.calls[code] = self.calls.get(code, 0) + 1
        found = self.types.setdefault(f"{place}:{code.co_firstlineno}", {})
        for name, value in (*list(values.items()), ("return", result)):
            found.setdefault(name, set()).add(type(value).__name__)
            if type(value) in (list, tuple, set, frozenset, dict) and value:
                found.setdefault(f"{name}[]", set()).add(type(next(iter(value))).__name__)

    def report(self) -> dict[str, Any]:
        # no file has the line 0 in which a module begins, and some code has no line at all
        lines = {test: sorted(line for line in lines if line[1]) for test, lines in self.lines.items()}
        types = {
            function: {name: sorted(kinds)[:_SHOWN] for name, kinds in values.items()}
            for function, values in self.types.items()
        }
        return {"lines": lines, "types": types}


def watch_tests(spec: dict[str, Any], observe: Any, sealed: Any) -> dict[str, Any]:
    """Run the failing tests and then some others, each within a time, and return what was seen.

    Lines and types are only seen where the spec asks for them: to see them takes many times longer.
    """
    recorder = observe.Recorder(str(Path.cwd()), spec["folder"])
    tracer = Tracer(recorder.place, is_on=spec["traced"])
    began = time.monotonic()
    found: dict[str, Any] = {"lines": {}, "types": {}, "durations": {}, "sleeps": {}, "slow": [], "load": 0.0}

    def serve(tests: Any) -> None:
        tracer.end()
        found["load"] = time.monotonic() - began
        known = [test for test in spec["failing"] if test in tests.items]
        others = [test for test in tests.items if test not in set(known)]
        chosen = known + (others[:_MOST_WATCHED] if known else others)
        limits = limit_tests(spec, chosen, others)
        found["unwatched"] = [test for test in tests.items if test not in set(chosen)]
        while chosen:
            done = watch_some(sealed, recorder, tracer, tests, chosen, limits)
            ended = [each for each in done if not each["stopped"]]
            for each in ended:
                merge(found, recorder, each)
            if len(ended) == len(chosen):
                return
            stopped = chosen[len(ended)]
            found["slow"].append(stopped)
            if stopped in known or spec["hangs"]:
                for each in done[len(ended) :]:
                    merge(found, recorder, each)
                recorder.note(stopped, "error")
                found["durations"].pop(stopped, None)
            chosen = chosen[len(ended) + 1 :]

    tracer.begin("")
    recorder.begin = tracer.begin
    observe.collect(spec, recorder, serve)
    tracer.end()
    found["lines"][""] = tracer.report()["lines"][""]
    return {**recorder.report(), **found, "seconds": time.monotonic() - began}


def limit_tests(spec: dict[str, Any], chosen: list[str], others: list[str]) -> dict[str, float]:
    shortest = min(_LONGEST_HANG, spec["timeout"] / 4) if spec["hangs"] else _LONGEST_WATCH
    short = {*spec["stalled"], *others}
    return {test: shortest if test in short else spec["timeout"] for test in chosen}


def watch_some(
    sealed: Any, recorder: Any, tracer: Any, tests: Any, chosen: list[str], limits: dict[str, float]
) -> list[dict[str, Any]]:
    """Run tests in a child until one takes too long, and return what was seen of each.

    The last one, where it took too long, comes with the lines at which it was stopped, unless the interpreter
    itself was held up.
    """

    def work(tell: Callable[[dict[str, Any]], None]) -> None:
        state: dict[str, Any] = {"test": "", "since": 0.0, "asked": sealed.note_sleeps()}

        def begin(test: str) -> None:
            if test:
                state.update(test=test, since=time.monotonic(), before=state["asked"]())
                sealed.call_after(limits[test] * _STOPPED, stop)
                tracer.begin(test)
                return
            tracer.end()
            sealed.call_after(0, stop)
            if name := state["test"]:
                outcome = recorder.outcomes.get(name, "skipped")
                frames, message = recorder.frames.get(name), recorder.messages.get(name)
                tell(describe_test(state, tracer, outcome, frames, message))
                tracer.types = {}
                tracer.lines = {"": set()}

        def stop(_number: int, frame: Any) -> None:
            tracer.end()
            message = f"did not end within {limits[state['test']]:.0f} s"
            told = describe_test(state, tracer, "error", recorder.walk(frame), message)
            tell({**told, "stopped": True})
            os._exit(0)

        recorder.begin = begin
        tests.run(chosen, lambda: False)

    return list(sealed.follow(work, [limits[test] for test in chosen]))


def describe_test(
    state: dict[str, Any], tracer: Any, outcome: str, frames: Any, message: str | None
) -> dict[str, Any]:
    report = tracer.report()
    return {
        "test": state["test"],
        "outcome": outcome,
        "frames": frames,
        "message": message,
        "lines": report["lines"].get(state["test"], []),
        "types": report["types"],
        "seconds": time.monotonic() - state["since"],
        "asleep": state["asked"]() - state["before"],
        "stopped": False,
    }


def merge(found: dict[str, Any], recorder: Any, each: dict[str, Any]) -> None:
    test = each["test"]
    recorder.note(test, each["outcome"])
    found["lines"][test] = each["lines"]
    found["durations"][test] = each["seconds"]
    found["sleeps"][test] = each["asleep"]
    if each["frames"]:
        recorder.frames[test] = each["frames"]
    if each["message"]:
        recorder.messages[test] = each["message"]
    for function, values in each["types"].items():
        known = found["types"].setdefault(function, {})
        for name, kinds in values.items():
            known[name] = sorted({*known.get(name, ()), *kinds})
