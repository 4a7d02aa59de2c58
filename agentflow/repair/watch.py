"""Runs the tests once and sees outcome, time, executed lines and types of each; loaded by driver.py.

It runs in the interpreter of the check (3.8 or newer) and imports nothing but the standard library.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_WATCHED = 300
"""Passing tests whose lines are looked at."""
_LONGEST_WATCH = 3.0
"""Seconds after which a passing test is left to the program's own check."""
_LONGEST_HANG = 10.0
"""Seconds after which a test counts as one that never ends, where the check ran into its time limit."""
_STOPPED = 0.8
"""The share of its time after which a test is asked where it is."""


def watch_tests(spec: dict[str, Any], observe: Any, sealed: Any, tracing: Any) -> dict[str, Any]:
    """Run the failing tests and then some others, each within a time, and return what was seen.

    Lines and types are only seen where the spec asks for them: to see them takes many times longer.
    """
    recorder = observe.Recorder(str(Path.cwd()))
    tracer = tracing.Tracer(recorder.place) if spec["traced"] else tracing.NoTracer()
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
    """Return how long each test is watched: those that fail for long, unless they are known not to end."""
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
    """Return what was seen of the test that runs or has just ended."""
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
