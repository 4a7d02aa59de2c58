"""Started as `python driver.py SPEC.json` in a copy of a repository: watches the tests, or tries edits.

It runs in the interpreter of the check (3.8 or newer) and imports nothing but the standard library and the
tests' own runner. A server takes orders, one JSON object a line, and answers each with one. The warm server
has loaded the tests and the code; the fresh one only the runner. Each edit is tried in a forked child, and
nothing of that child stays.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import runpy
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

_RED = ("failed", "error")
_UNREADY = 75
"""What a server ends with that cannot load the tests: the other one may."""
_PARTS = ("observe", "sealed", "patch", "compare", "inputs")
"""What servers load of us."""
_SEALED = Path(__file__).parent.with_name("sandbox") / "sealed.py"
_NOW = time.monotonic
"""The clock as it is before sleeps are shortened."""
_FIRST = 6
"""Failing tests that are run before an edit is given up, where none of them turns green."""


def run_spec() -> None:
    spec = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.path[:1] = [str(Path.cwd())] if spec["is_module"] else []
    sys.argv[1:] = []
    if "servers" in spec:
        start_servers(spec)
        return
    watch, observe, sealed = map(load_part, ("watch", "observe", "sealed"))
    report = watch.watch_tests(spec, observe, sealed)
    Path(spec["report"]).write_text(json.dumps(report), encoding="utf-8")


def start_servers(spec: dict[str, Any]) -> None:
    """Be the parent of servers, which share what is loaded before the code under test; end with the first."""
    if spec["runner"] == "pytest":
        load_pytest()
    for name in _PARTS:
        load_part(name)

    def serve(kind: str) -> None:
        (Warm if kind == "warm" else Fresh)(spec, *spec["servers"][kind]).start()
        os._exit(_UNREADY)

    numbers = {load_part("sealed").start_child(functools.partial(serve, kind)) for kind in spec["servers"]}
    code = _UNREADY
    while numbers and code == _UNREADY:
        number, status = os.waitpid(-1, 0)
        numbers.discard(number)
        code = to_exit_code(status)
    for number in numbers:
        os.kill(number, signal.SIGKILL)
        os.waitpid(number, 0)
    os._exit(code)


@functools.lru_cache(maxsize=None)  # noqa: UP033  # Python 3.8 has no `cache`
def load_part(name: str) -> Any:
    """Return what a file beside this one defines; the code under test never meets it as a module."""
    path = _SEALED if name == "sealed" else Path(__file__).with_name(f"{name}.py")
    return SimpleNamespace(**runpy.run_path(str(path), run_name=name))


class Server:
    """Takes orders and answers them."""

    def __init__(self, spec: dict[str, Any], orders: str, answers: str) -> None:
        self.spec = spec
        self.orders = os.open(orders, os.O_RDONLY)
        self.answers = os.open(answers, os.O_WRONLY)
        self.observe, self.sealed = load_part("observe"), load_part("sealed")
        self.sealed.private[:] = [self.orders, self.answers]
        self.nearness = self.observe.Nearness()
        self.recorder = self.observe.Recorder(str(Path.cwd()), spec["folder"])
        self.plan: dict[str, Any] = {}
        self.is_hurried = False

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

    def attempt(
        self, edit: dict[str, Any] | None, work: Any, limits: dict[str, list[float]], *, is_late: bool = False
    ) -> dict[str, Any]:
        """Do some work in a child, an edit written to its file, and put everything back.

        Where the edit is loaded already, its file may be written late: hardly a test reads it.
        """
        kept = self.copy.write(edit) if edit and not is_late else None
        late = (edit["path"], functools.partial(self.copy.write, edit)) if edit and is_late else None
        answer = self.sealed.run_sealed(work, limits["cpu"], limits["wall"], late)
        if edit and kept is not None:
            self.copy.put_back(edit["path"], kept)
        if answer.pop("touched", True):
            self.copy.restore()
        return dict(answer)

    def judge(self, tests: Any, rest: list[str], enter: Any, is_base: bool) -> dict[str, Any]:
        recorder, nearness = self.recorder, self.nearness
        recorder.blame = lambda test, error, _: error and nearness.fail(test, error)
        recorder.begin = lambda test: nearness.begin() if test else None
        failing = [test for test in self.plan["failing"] if test in tests.items]

        def reds() -> int:
            return sum(recorder.outcomes.get(test) in _RED for test in self.plan["failing"])

        def is_vain() -> bool:
            ran, count = sum(test in recorder.outcomes for test in failing), reds()
            is_none = ran >= _FIRST and count >= ran
            return not is_base and count > 0 and (self.plan["is_all_or_none"] or is_none)

        began = (time.process_time(), _NOW())
        tests.run(failing, is_vain)
        middle = (time.process_time(), _NOW())
        is_done = is_base or (reds() < len(self.plan["failing"]) and not is_vain())
        if is_done:
            enter()
            red = set(recorder.red)

            def is_broken() -> bool:
                return not is_base and not recorder.red <= red

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


class Warm(Server):
    """Has the tests and the code loaded, and changes functions where they are."""

    def start(self) -> None:
        self.observe.collect(self.spec, self.recorder, self.take_over)
        self.say({"ready": False})

    def take_over(self, tests: Any) -> None:
        self.tests = tests
        self.recorder.outcomes.clear()
        self.recorder.red.clear()
        tests.be_silent()
        self.nearness.watch_unittest()
        register(tests, self.nearness)
        self.patcher = load_part("patch").Patcher(self.recorder.place, self.spec["loaded"])
        for path in self.spec["paths"]:
            with contextlib.suppress(SyntaxError, ValueError, OSError):
                self.patcher.load_source(path)
        self.serve({"ready": True, "ids": list(tests.items)})

    def take_plan(self, plan: dict[str, Any]) -> None:
        super().take_plan(plan)
        for test in plan["failing"]:
            getattr(self.tests.items.get(test), "location", None)  # pytest keeps it, and no child has to ask

    def answer(self, order: dict[str, Any]) -> dict[str, Any]:
        edit = order["edit"]
        try:
            pairs = self.patcher.compile(edit) if edit else None
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return {"end": "ran", "outcomes": {}, "is_done": False}  # it is no code
        if edit and pairs is None:
            return {"end": "stale"}

        def work(enter: Any) -> dict[str, Any]:
            if pairs and not self.patcher.patch(edit["path"], pairs):
                return {"end": "stale"}
            return self.judge(self.tests, self.plan["guards"], enter, edit is None)

        return self.attempt(edit, work, self.plan, is_late=bool(pairs))


class Fresh(Server):
    """Loads the tests and the code anew for each edit, and for each comparison of edits."""

    def start(self) -> None:
        self.serve_tests: Any = None
        self.load: Any = lambda: self.observe.collect(self.spec, self.recorder, self.take_tests)
        if self.spec["runner"] == "pytest":
            self.start_pytest()
        self.serve({"ready": True, "ids": []})

    def start_pytest(self) -> None:
        """Serve from a child in which pytest is set up; return where that cannot be."""
        reader, writer = os.pipe()

        def take_over(load_and_run: Any) -> None:
            if is_code_loaded():
                os._exit(0)  # an edit of it would not be seen
            self.load = load_and_run
            os.write(writer, b"1")
            os.close(writer)
            self.serve({"ready": True, "ids": []})

        def run_pytest() -> None:
            start = self.observe.PytestStart(take_over)
            self.observe.run_pytest(self.spec, self.recorder, self.take_tests, start)

        child = self.sealed.start_child(run_pytest)
        os.close(writer)
        is_serving = os.read(reader, 1) == b"1"
        status = os.waitpid(child, 0)[1]
        os.close(reader)
        if is_serving:
            os._exit(to_exit_code(status))

    def take_tests(self, tests: Any) -> None:
        self.serve_tests(tests)

    def answer(self, order: dict[str, Any]) -> dict[str, Any]:
        return self.compare(order) if "compare" in order else self.try_edit(order["edit"])

    def load_tests(self, serve_tests: Any) -> None:
        self.serve_tests = serve_tests
        self.load()

    def compare(self, order: dict[str, Any]) -> dict[str, Any]:
        """Return what several versions of a file do, the first of which is tested meanwhile."""
        compare, inputs = load_part("compare"), load_part("inputs")

        def run_tests() -> None:
            self.load_tests(lambda tests: tests.run(list(tests.items), lambda: False))

        def work(_: Any) -> dict[str, Any]:
            self.sealed.private.clear()  # it is closed here
            found: dict[str, Any] = compare.compare_versions(order["compare"], run_tests, inputs, self.sealed)
            return found

        limits = [order["seconds"]]
        return self.attempt(order["edit"], work, {"cpu": limits, "wall": limits})

    def try_edit(self, edit: dict[str, Any]) -> dict[str, Any]:
        def work(enter: Any) -> dict[str, Any]:
            found: dict[str, Any] = {"end": "ran", "outcomes": self.recorder.outcomes, "is_done": False}

            def judge(tests: Any) -> None:
                self.nearness.watch_unittest()
                register(tests, self.nearness)
                skipped = {*self.plan["failing"], *self.plan["skip"]}
                rest = [test for test in tests.items if test not in skipped]
                found.update(self.judge(tests, rest, enter, is_base=False))

            self.load_tests(judge)
            return found

        return self.attempt(edit, work, self.plan)


def is_code_loaded() -> bool:
    inside = str(Path.cwd()) + os.sep
    files = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
    return any(name.startswith(inside) and Path(name).name != "conftest.py" for name in files)


def to_exit_code(status: int) -> int:
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def register(tests: Any, plugin: Any) -> None:
    item = next(iter(tests.items.values()), None)
    config = getattr(item, "config", None)
    if config is not None:
        config.pluginmanager.register(plugin, "agentflow-nearness")


def load_pytest() -> None:
    """Let pytest and its plugins load all they use before the forks, but nothing of the code under test."""
    import pytest  # noqa: PLC0415  # only where the check is pytest

    paths = sys.path[:]
    with tempfile.TemporaryDirectory() as folder, Path(os.devnull).open("w", encoding="utf-8") as sink:
        warm = Path(folder, "test_warm.py")
        warm.write_text("def test_warm():\n    assert [1] == [2]\n", encoding="utf-8")
        alone = ["-q", "--noconftest", "-c", os.devnull, "--rootdir", folder, "-p", "no:cacheprovider"]
        with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
            pytest.main([*alone, str(warm)])
    sys.path[:] = paths
    inside = str(Path.cwd()) + os.sep
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith((inside, folder)):
            del sys.modules[name]


if __name__ == "__main__":
    run_spec()
