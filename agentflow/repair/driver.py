"""Started as `python driver.py SPEC.json` in a copy of a repository: watches the tests, or tries edits.

It runs in the interpreter of the check (3.8 or newer) and imports nothing but the standard library and the
tests' own runner. As a worker it takes orders, one JSON object a line, and answers each with one. A warm
worker has loaded the tests and the code; a fresh one only the runner. Each edit is tried in a forked child,
and nothing of that child stays.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import runpy
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_RED = ("failed", "error")
_MOST_WATCHED = 300
"""Passing tests whose lines are looked at."""
_LONGEST_WATCH = 3.0
"""Seconds after which a passing test is left to the program's own check."""
_LONGEST_HANG = 10.0
"""Seconds after which a test counts as one that never ends, where the check ran into its time limit."""
_STOPPED = 0.8
"""The share of its time after which a test is asked where it is."""
_NOW = time.monotonic
"""The clock as it is before sleeps are shortened."""
_FIRST = 6
"""Failing tests that are run before an edit is given up, where none of them turns green."""


def run_spec() -> None:
    spec = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.path[:1] = [str(Path.cwd())] if spec["module"] else []
    sys.argv[1:] = []
    if "compare" in spec:
        compare, observe, inputs = map(load_part, ("compare", "observe", "inputs"))
        seen = compare.compare_versions(spec, observe.observe, inputs)
    elif spec.get("serve") == "warm":
        Warm(spec).start()
        return
    elif spec.get("serve") == "fresh":
        Fresh(spec).start()
        return
    else:
        seen = watch_tests(spec)
    Path(spec["report"]).write_text(json.dumps(seen), encoding="utf-8")


def load_part(name: str) -> Any:
    """Return what a file beside this one defines; the code under test never meets it as a module."""
    return SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name(f"{name}.py")), run_name=name))


def watch_tests(spec: dict[str, Any]) -> dict[str, Any]:
    """Run the failing tests and then some others, each within a time, and return what was seen."""
    observe, sealed = load_part("observe"), load_part("sealed")
    recorder = observe.Recorder(str(Path.cwd()))
    tracer = load_part("trace").Tracer(recorder.place)
    began = time.monotonic()
    found: dict[str, Any] = {"lines": {}, "types": {}, "took": {}, "slept": {}, "slow": [], "load": 0.0}

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
                found["took"].pop(stopped, None)
            chosen = chosen[len(ended) + 1 :]

    tracer.begin("")
    recorder.begin = tracer.begin
    observe.collect(spec, recorder, serve)
    tracer.end()
    loading = tracer.report()
    found["lines"][""] = loading["lines"][""]
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

    Of the one that took too long it is told where it was then, unless the interpreter itself was held up.
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
        "slept": state["asked"]() - state["before"],
        "stopped": False,
    }


def merge(found: dict[str, Any], recorder: Any, each: dict[str, Any]) -> None:
    test = each["test"]
    recorder.note(test, each["outcome"])
    found["lines"][test] = each["lines"]
    found["took"][test] = each["seconds"]
    found["slept"][test] = each["slept"]
    if each["frames"]:
        recorder.frames[test] = each["frames"]
    if each["message"]:
        recorder.messages[test] = each["message"]
    for function, values in each["types"].items():
        known = found["types"].setdefault(function, {})
        for name, kinds in values.items():
            known[name] = sorted({*known.get(name, ()), *kinds})


class OrderTaker:
    """Takes orders and answers them."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.orders = os.open(spec["orders"], os.O_RDONLY)
        self.answers = os.open(spec["answers"], os.O_WRONLY)
        self.observe, self.sealed = load_part("observe"), load_part("sealed")
        self.sealed.private[:] = [self.orders, self.answers]
        self.nearness = load_part("nearness").Nearness()
        self.recorder = self.observe.Recorder(str(Path.cwd()))
        self.plan: dict[str, Any] = {}
        self.is_hurried = False

    def start(self) -> None:
        raise NotImplementedError

    def answer(self, order: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def serve(self, hello: dict[str, Any]) -> None:
        """Answer orders until there are none; the process ends here."""
        gc.collect()
        gc.freeze()  # what is loaded so far is never collected in a child
        self.sealed.adopt_strays()
        self.sealed.limit_memory()
        self.copy = self.sealed.Copy(self.spec["pristine"])
        self.say(hello)
        buffer = b""
        while True:
            while b"\n" not in buffer:
                chunk = os.read(self.orders, 1 << 16)
                if not chunk:
                    os._exit(0)
                buffer += chunk
            line, _, buffer = buffer.partition(b"\n")
            order = json.loads(line)
            if "quit" in order:
                os._exit(0)
            if "plan" in order:
                self.take_plan(order["plan"])
            else:
                self.say(self.answer(order))

    def take_plan(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        if plan.get("hurried") and not self.is_hurried:
            self.is_hurried = True
            self.sealed.shorten_waits()

    def say(self, told: dict[str, Any]) -> None:
        raw = json.dumps(told).encode() + b"\n"
        while raw:
            raw = raw[os.write(self.answers, raw) :]

    def attempt(self, edit: dict[str, Any] | None, work: Any) -> dict[str, Any]:
        """Try an edit in a child, the file written, and put everything back."""
        kept = self.copy.write(edit) if edit else None
        answer = self.sealed.run_sealed(work, self.plan["cpu"], self.plan["wall"])
        if edit:
            self.copy.put_back(edit["path"], kept)
        if answer.pop("touched", True):
            self.copy.restore()
        return dict(answer)

    def judge(self, tests: Any, rest: list[str], enter: Any, is_base: bool) -> dict[str, Any]:
        """Run the failing tests, and the others as soon as one of them is green."""
        recorder, nearness = self.recorder, self.nearness
        recorder.blame = lambda test, error, _: error and nearness.fail(test, error)
        recorder.begin = lambda test: nearness.begin() if test else None
        failing = [test for test in self.plan["failing"] if test in tests.items]

        def reds() -> int:
            return sum(recorder.outcomes.get(test) in _RED for test in self.plan["failing"])

        def is_vain() -> bool:
            ran, red = sum(test in recorder.outcomes for test in failing), reds()
            is_none = ran >= _FIRST and red >= ran
            return not is_base and red > 0 and (self.plan["is_all_or_none"] or is_none)

        began = (time.process_time(), _NOW())
        tests.run(failing, is_vain)
        middle = (time.process_time(), _NOW())
        is_done = is_base or (reds() < len(self.plan["failing"]) and not is_vain())
        if is_done:
            enter()

            def is_broken() -> bool:
                return not is_base and any(recorder.outcomes.get(test) in _RED for test in rest)

            tests.run([test for test in rest if test in tests.items], is_broken)
        end = (time.process_time(), _NOW())
        return {
            "end": "ran",
            "outcomes": recorder.outcomes,
            "near": nearness.seen,
            "is_done": is_done,
            "ids": list(tests.items) if is_done and len(tests.items) < 5000 else [],
            "cpu": [middle[0] - began[0], end[0] - middle[0]],
            "wall": [middle[1] - began[1], end[1] - middle[1]],
        }


class Warm(OrderTaker):
    """Has the tests and the code loaded, and changes functions where they are."""

    def start(self) -> None:
        self.observe.collect(self.spec, self.recorder, self.take_over)
        self.say({"ready": False})

    def take_over(self, tests: Any) -> None:
        self.tests = tests
        self.recorder.outcomes.clear()
        tests.be_silent()
        self.nearness.watch_unittest()
        register(tests, self.nearness)
        self.patcher = load_part("patch").Patcher(self.recorder.place, self.spec["loaded"])
        for path in self.spec["paths"]:
            with contextlib.suppress(SyntaxError, ValueError, OSError):
                self.patcher.source(path)
        self.serve({"ready": True, "ids": list(tests.items)})

    def take_plan(self, plan: dict[str, Any]) -> None:
        super().take_plan(plan)
        for test in plan["failing"]:
            getattr(self.tests.items.get(test), "location", None)  # pytest keeps it, and no child has to ask

    def answer(self, order: dict[str, Any]) -> dict[str, Any]:
        edit = order["edit"]
        try:
            pairs = self.patcher.compile(edit) if edit and self.patcher.can_patch(edit) else None
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return {"end": "ran", "outcomes": {}, "is_done": False}  # it is no code
        if edit and pairs is None:
            return {"end": "stale"}

        def work(enter: Any) -> dict[str, Any]:
            if pairs and not self.patcher.patch(edit["path"], pairs):
                return {"end": "stale"}
            return self.judge(self.tests, self.plan["guards"], enter, edit is None)

        return self.attempt(edit, work)


class Fresh(OrderTaker):
    """Loads the tests and the code anew for each edit."""

    def start(self) -> None:
        if self.spec["runner"] == "pytest":
            load_pytest()
        self.serve({"ready": True, "ids": []})

    def answer(self, order: dict[str, Any]) -> dict[str, Any]:
        def work(enter: Any) -> dict[str, Any]:
            found: dict[str, Any] = {"end": "ran", "outcomes": self.recorder.outcomes, "is_done": False}

            def judge(tests: Any) -> None:
                self.nearness.watch_unittest()
                register(tests, self.nearness)
                skipped = {*self.plan["failing"], *self.plan["skip"]}
                rest = [test for test in tests.items if test not in skipped]
                found.update(self.judge(tests, rest, enter, is_base=False))

            self.observe.collect(self.spec, self.recorder, judge)
            return found

        return self.attempt(order["edit"], work)


def register(tests: Any, plugin: Any) -> None:
    """Let pytest tell the plugin what is compared."""
    item = next(iter(tests.items.values()), None)
    config = getattr(item, "config", None)
    if config is not None:
        config.pluginmanager.register(plugin, "agentflow-nearness")


def load_pytest() -> None:
    """Let pytest and its plugins load all they use before the forks, but nothing of the code under test."""
    import pytest  # noqa: PLC0415  # only where the check is pytest

    with tempfile.TemporaryDirectory() as folder, Path(os.devnull).open("w", encoding="utf-8") as sink:
        warm = Path(folder, "test_warm.py")
        warm.write_text("def test_warm():\n    assert [1] == [2]\n", encoding="utf-8")
        alone = ["-q", "--noconftest", "-c", os.devnull, "--rootdir", folder, "-p", "no:cacheprovider"]
        with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
            pytest.main([*alone, str(warm)])
    inside = str(Path.cwd()) + os.sep
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith((inside, folder)):
            del sys.modules[name]


if __name__ == "__main__":
    run_spec()
