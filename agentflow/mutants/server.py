"""A plugin of pytest that takes its place: tries mutants, each in a forked child in which pytest starts anew.

It runs in the interpreter of the check (3.8 or newer), where the plugins of pytest are loaded and nothing of
the repository is. It imports nothing but the standard library and pytest.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import gc
import importlib
import json
import os
import re
import runpy
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_PLACE = "AGENTFLOW_FORKED"
_PATIENCE = 6
"""A test may take so many times the seconds that it takes without a mutant."""
_ENOUGH = 5
"""A test that was ended has failed if it ends without the mutant in this part of its time."""
_LEAST_BUSY, _LEAST_WAIT = 1.0, 5.0
_LOADING = 30.0
_SHARE = 0.5
"""The part of the time in which all tests are watched."""
_AGAIN = 0.2
"""The part of the time in which survivors meet the tests that do not reach them."""
_MOST_KILLERS = 5
_UNFIT = 75
"""What a child ends with in which the code is loaded before the tests: each mutant starts pytest then."""
_REACHED = "__agentflow_reached__"
_ANYWHERE = ("", 0)
"""The line of a test that starts another process, which may run any line."""
_NOW = time.perf_counter
"""The clock as it is before a test sets another."""


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: Any) -> Iterator[None]:
    place = os.environ.pop(_PLACE, "")
    if place:
        server = MutantServer(early_config, Path(place))
        warm = server.sealed.start_child(lambda: server.start_pytest(MutantStart(server)))
        if os.waitpid(warm, 0)[1] == _UNFIT << 8:
            server.serve()
        os._exit(0)
    yield


class MutantStart:
    """The plugin that takes over once pytest is set up, unless the code is loaded by then."""

    def __init__(self, server: MutantServer) -> None:
        self.server = server

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection(self, session: Any) -> Iterator[None]:
        session.config.pluginmanager.unregister(self)
        if not self.server.is_loaded() and count_tasks() == 1:
            self.server.session = session
            self.server.serve()
            os._exit(0)
        os._exit(_UNFIT)
        yield


class ChildRun:
    """What a child told of its tests."""

    def __init__(self) -> None:
        self.passed: set[str] = set()
        self.red: list[str] = []
        self.ran: dict[str, float] = {}
        """The seconds of each."""
        self.lines: dict[str, set[tuple[str, int]]] = {}
        self.at = ""
        """The test in which it ended, if it did not come to its end."""
        self.load = 0.0
        self.end: dict[str, Any] = {}
        self.is_hung = False

    def take(self, told: dict[str, Any]) -> None:
        test = told["test"]
        if told["what"] == "begin":
            self.at, self.load = test, self.load or told["seconds"]
        elif told["what"] == "done":
            self.at, self.ran[test] = "", told["seconds"]
            self.lines[test] = {(path, line) for path, line in told["lines"]}
        elif told["what"] == "red":
            self.red += [test] if test not in self.red else []
        else:
            self.passed.add(test)

    @property
    def sound(self) -> dict[str, float]:
        """The tests that pass, with their seconds."""
        return {test: took for test, took in self.ran.items() if test in self.passed - {*self.red}}


class MutantServer:
    """Tries the mutants of its order in the copy, and writes what each comes to."""

    def __init__(self, config: Any, place: Path) -> None:
        self.spec = json.loads((place / "spec.json").read_text(encoding="utf-8"))
        self.told = os.open(place / "told", os.O_WRONLY | os.O_APPEND)
        for name in ("spec.json", "told"):
            (place / name).unlink()  # nothing that is tested can write there
        sys.path[:] = [entry for entry in sys.path if entry != self.spec["plugin"]]
        sys.modules.pop(__name__, None)
        for name, value in self.spec["restored"].items():
            os.environ.update({name: value}) if value else os.environ.pop(name, None)
        self.config = config
        self.home = Path.cwd()
        self.session: Any = None
        """Where pytest is set up already."""
        self.root = Path(str(self.home)[: -len(self.spec["folder"])] if self.spec["folder"] else self.home)
        self.sealed = SimpleNamespace(**runpy.run_path(self.spec["sealed"], run_name="sealed"))
        self.sealed.private[:] = [self.told]
        self.files = {str(self.root / each["path"]): each["path"] for each in self.spec["mutants"]}
        self.deadline = _NOW() + self.spec["seconds"]
        self.first: frozenset[str] = frozenset(self.spec["first"])
        self.seconds: dict[str, float] = {}
        """Of each test that is known to pass, in the order in which they run."""
        self.lines: dict[str, set[tuple[str, int]]] = {}
        self.common: set[tuple[str, int]] = set()
        """Lines that run as something is imported, for whichever test."""
        self.wanted: set[tuple[str, int]] = set()
        """Lines of the mutants: no other has to be watched."""
        self.shared: dict[str, set[tuple[str, int]]] = {}
        """Lines of fixtures, by the start of the ids of the tests that may use them."""
        self.load = _LOADING / _PATIENCE
        self.confirmed: dict[tuple[str, ...], dict[str, float]] = {}
        self.killers: set[str] = set()

    def serve(self) -> None:
        os.chdir(self.root)
        texts = {each["path"]: Path(each["path"]).read_bytes() for each in self.spec["mutants"]}
        self.spans = Spans(texts)
        for edit in self.spec["mutants"]:
            self.wanted |= self.spans.list_lines(edit, texts[edit["path"]])
        if self.is_loaded():
            self.write(control="a plugin has loaded the code")
            return
        sys.pycache_prefix = tempfile.mkdtemp()
        pristine = tempfile.mkdtemp() + "/copy"
        shutil.copytree(".", pristine, symlinks=True, ignore=self.list_apart)
        self.copy = self.sealed.Copy(pristine, self.spec["apart"])
        self.sealed.adopt_strays()
        self.sealed.limit_memory()
        gc.collect()
        gc.freeze()
        self.modules: list[str] = []
        if not self.try_all(texts):
            self.write(control="not every test passes")
            return
        ending = self.run([test for test in self.seconds if test in self.killers])
        if not self.killers <= ending.sound.keys():
            self.write(control="tests fail once others have run")

    def list_apart(self, folder: str, names: list[str]) -> Iterable[str]:
        return [name for name in names if name in self.spec["apart"]] if folder == "." else ()

    def write(self, **told: Any) -> None:
        self.sealed.write_line(self.told, told)

    def is_loaded(self) -> bool:
        """Say whether a module is loaded that a mutant changes."""
        modules = list(sys.modules.values())
        return any(os.path.realpath(getattr(each, "__file__", None) or "") in self.files for each in modules)

    def watch(self, tests: list[str], until: float) -> bool:
        """Run tests once and note what each reaches; return whether they pass, those that had time to run."""
        run = self.run(tests, is_watched=True, until=until)
        if not (self.seconds and _NOW() >= until) and not run.sound.keys() >= {*tests}:
            return False
        self.seconds.update(run.sound)
        for test, lines in run.lines.items():
            self.lines.setdefault(test, set()).update(lines)
        self.load = run.load
        for prefix, lines in run.end.get("shared", {}).items():
            known = self.shared.setdefault(prefix, set()) if prefix else self.common
            known.update((path, line) for path, line in lines)
        self.modules += run.end.get("modules", ())
        self.load_others()
        self.is_whole = len(self.seconds) >= len(self.spec["passing"])
        self.write(begun=True)
        return True

    def load_others(self) -> None:
        """Load what the tests load from elsewhere, unless that starts threads, which forks lose."""

        def load() -> None:
            for name in self.modules:
                with contextlib.suppress(BaseException):
                    importlib.import_module(name)

        def look(tell: Callable[[dict[str, Any]], None]) -> None:
            load()
            tell({"is_fit": count_tasks() == 1 and not self.is_loaded()})

        if self.sealed.follow(look, [_LOADING]) == [{"is_fit": True}]:
            load()
            gc.collect()
            gc.freeze()

    def try_all(self, texts: dict[str, bytes]) -> bool:
        """Try each mutant with the tests that prove, and what these let live with all that reach it.

        Where the time does not suffice to watch the rest, what is left was not tried.
        """
        left: list[tuple[dict[str, Any], set[str]]] = []
        for number, edit in enumerate(self.spec["mutants"]):
            raw = texts[edit["path"]]
            edit["number"] = number
            edit["lines"] = self.spans.list_lines(edit, raw)
            if is_code(raw[: edit["start"]] + edit["text"].encode() + raw[edit["end"] :]):
                left.append((edit, set()))
            else:
                self.write(number=number, outcome="invalid")
        for tests in (sorted(self.first), *self.split_rest()):
            end = (
                min(self.deadline, _NOW() + self.spec["seconds"] * _SHARE) if self.seconds else self.deadline
            )
            if tests and any(edit["is_strong"] or not self.seconds for edit, _ in left):
                if not self.watch(tests, end):
                    return False
                left = [each for each in left if self.is_left(*each)]
        self.deadline = min(self.deadline, _NOW() + self.spec["seconds"] * _AGAIN)
        for edit, known in left if self.is_whole else ():
            # a value that one test had computed is there for all
            others = [test for test in self.seconds if test not in known]
            if others and _NOW() + self.load + sum(map(self.seconds.__getitem__, others)) < self.deadline:
                outcome, killers = self.judge(edit, others)
                if outcome == "killed":
                    self.write(number=edit["number"], outcome=outcome, killers=killers)
        return True

    def split_rest(self) -> tuple[list[str], list[str]]:
        """Return the other tests: those in files that name a module of the mutants, and the rest."""
        places = [Path(path) for path in self.files.values()]
        stems = {place.parent.name if place.stem == "__init__" else place.stem for place in places}
        naming: dict[str, bool] = {}
        groups: tuple[list[str], list[str]] = ([], [])
        for test in self.spec["passing"]:
            file = test.partition("::")[0]
            if test not in self.first:
                if file not in naming:
                    place = self.root / file
                    words = set(re.findall(rb"\w+", place.read_bytes())) if place.is_file() else set()
                    naming[file] = not words.isdisjoint(map(os.fsencode, stems))
                groups[not naming[file]].append(test)
        return groups

    def is_left(self, edit: dict[str, Any], known: set[str]) -> bool:
        """Try a mutant with the tests that are known by now; say whether all let it live."""
        outcome, killers = "survived" if known else "no coverage", list[str]()
        for tests in self.choose(edit["lines"], known):
            if tests and outcome in ("survived", "no coverage") and _NOW() < self.deadline:
                outcome, killers = self.judge(edit, tests)
                known.update(tests)
        is_left = outcome in ("survived", "no coverage")
        is_known = not is_left or (self.is_whole and _NOW() < self.deadline)
        self.write(number=edit["number"], outcome=outcome if is_known else "not tried", killers=killers)
        return is_left

    def choose(self, lines: set[tuple[str, int]], known: set[str]) -> tuple[list[str], list[str]]:
        """Return other tests that reach a line, those that prove first, and those that may at a distance.

        What runs as something is imported may reach all of them: to collect hundreds takes seconds.
        """
        prefixes = tuple(prefix for prefix, seen in self.shared.items() if not lines.isdisjoint(seen))
        is_common = not lines.isdisjoint(self.common)
        ranks = {}
        files: dict[str, float] = {}
        for test, took in self.seconds.items():
            seen = self.lines[test]
            is_own = not lines.isdisjoint(seen)
            if test in known:
                continue
            if is_own or is_common or _ANYWHERE in seen or test.startswith(prefixes):
                file = test.partition("::")[0]
                files[file] = files.get(file, 0.0) + took
                ranks[test] = (test not in self.first, not is_own, file)
        found = sorted(ranks, key=lambda test: (*ranks[test][:2], files[ranks[test][2]], ranks[test][2]))
        near = [test for test in found if not all(ranks[test][:2])]
        return near, found[len(near) :]

    def judge(self, edit: dict[str, Any], tests: list[str]) -> tuple[str, list[str]]:
        """Return what the tests make of a mutant, and those that fail on it and pass without it here."""
        run = self.run(tests, edit, until=self.deadline)
        is_late = _NOW() >= self.deadline
        red = [*run.red, *([run.at] if run.at and not is_late and run.at not in run.red else ())]
        if not red:
            is_ended = bool(run.end) and run.ran.keys() >= {*tests}
            late = "not tried" if is_late else "timed out" if run.is_hung else "invalid"
            return "survived" if is_ended else late, []
        sound = self.confirm(tests, max(map(tests.index, red)) + 1)
        if not sound.keys() >= {*red}:
            if _NOW() < self.deadline:
                self.write(control="a test fails where others run before it")
                os._exit(0)
            return "not tried", []
        if run.is_hung and red == [run.at] and sound[run.at] * _ENOUGH > self.limit(run.at)[0]:
            return "timed out", []
        self.killers.update(red)
        return "killed", red

    def confirm(self, tests: list[str], count: int) -> dict[str, float]:
        """Return which of the first of some tests pass without a mutant, one after the other as they did."""
        known = self.confirmed.setdefault(tuple(tests), {})
        if not known.keys() >= {*tests[:count]}:
            known.update(self.run(tests[:count], until=self.deadline).sound)
        return known

    def limit(self, test: str) -> tuple[float, float]:
        """Return the seconds of processor time and of waiting that a test may take."""
        took = (self.seconds.get(test, _LOADING) + (0 if test else self.load)) * _PATIENCE
        return max(_LEAST_BUSY, took), max(_LEAST_WAIT, took)

    def run(
        self,
        tests: list[str],
        edit: dict[str, Any] | None = None,
        *,
        is_watched: bool = False,
        until: float = float("inf"),
    ) -> ChildRun:
        """Run tests in a child of a child, which code under test may kill, and put the copy back."""
        found = ChildRun()
        kept = self.write_edit(edit) if edit else None

        def work(tell: Callable[[dict[str, Any]], None]) -> None:
            number = self.sealed.start_child(lambda: self.run_tests(tests, tell, is_watched, edit))
            tell({"status": os.waitpid(number, 0)[1]})

        with self.sealed.open_child(work) as child:
            lines = self.sealed.Lines(child.reader, 0)
            self.extend(lines, "", is_watched, until)
            for told in lines:
                if "what" not in told:
                    found.end = told if "status" not in told else {}
                    found.is_hung = bool(os.WIFSIGNALED(told.get("status", 0))) and not found.end
                    found.is_hung = found.is_hung and os.WTERMSIG(told["status"]) == signal.SIGPROF
                    break
                found.take(told)
                self.extend(lines, found.at, is_watched, until)
            found.is_hung = found.is_hung or lines.is_late
        if edit and kept is not None:
            self.put_back(edit["path"], *kept)
        if found.end.get("is_touched", True):
            self.copy.restore()
        return found

    def extend(self, lines: Any, test: str, is_watched: bool, until: float) -> None:
        wait = until - _NOW() if is_watched else min(self.limit(test)[1], until - _NOW())
        lines.deadline = time.monotonic() + max(0.0, min(wait, self.spec["seconds"]))

    def write_edit(self, edit: dict[str, Any]) -> tuple[bytes, int]:
        """Write a mutant with a time that no compiled code was made at; return what was there."""
        path = Path(edit["path"])
        time_ns = path.stat().st_mtime_ns
        raw = self.copy.write(edit)
        os.utime(path, (edit["number"], edit["number"]))
        return raw, time_ns

    def put_back(self, path: str, raw: bytes, time_ns: int) -> None:
        self.copy.put_back(path, raw)
        os.utime(path, ns=(time_ns, time_ns))
        self.copy.state[Path(path)] = self.sealed.mark_of(Path(path))

    def run_tests(
        self, tests: list[str], tell: Callable[[dict[str, Any]], None], is_watched: bool, edit: Any
    ) -> None:
        touched: list[str] = []
        self.sealed.watch_changes(touched, None)
        sys.dont_write_bytecode = edit is not None
        os.chdir(self.home)
        runner = (Watcher if is_watched else MutantRunner)(self, tests, tell, touched)
        if self.session is None:
            self.start_pytest(runner)
        else:
            self.session.config.pluginmanager.register(runner)
            self.session.config.hook.pytest_collection(session=self.session)
            self.session.config.hook.pytest_runtestloop(session=self.session)
        runner.finish()

    def start_pytest(self, plugin: object) -> None:
        known = self.config.known_args_namespace
        options = ["-n0"] if hasattr(known, "numprocesses") else []
        options += ["--no-cov"] if hasattr(known, "no_cov") else []
        given = (*self.config.invocation_params.args, "-p", "no:randomly", "--tb=no", "--junitxml=", *options)
        with contextlib.suppress(SystemExit):
            pytest.main([*map(str, given)], plugins=[plugin])


class MutantRunner:
    """The plugin in a child, which runs some tests and tells of each."""

    def __init__(
        self,
        server: MutantServer,
        tests: list[str],
        tell: Callable[[dict[str, Any]], None],
        touched: list[str],
    ) -> None:
        self.server = server
        self.tell, self.touched = tell, touched
        self.wanted = {test: number for number, test in enumerate(tests)}
        self.files = {str(server.root / test.partition("::")[0]) for test in tests}
        self.left = server.first.intersection(tests)
        self.red: set[str] = set()
        self.began = self.since = _NOW()

        top = os.path.relpath(str(server.config.rootpath), str(server.root))
        self.top = "" if top == "." else f"{top}/"

    def identify(self, nodeid: str) -> str:
        """Return the id of a test as seen from the repository's root."""
        return self.top + nodeid

    def pytest_ignore_collect(self, collection_path: Any) -> bool | None:
        """Pass over folders and files that have none of the tests."""
        path = str(collection_path)
        if path in self.files or os.path.basename(path) == "__init__.py":  # noqa: PTH119  # at every file
            return None
        return None if any(file.startswith(path + os.sep) for file in self.files) else True

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> Iterator[None]:
        yield
        ranks = [
            (self.wanted[test], item) for item in items if (test := self.identify(item.nodeid)) in self.wanted
        ]
        items[:] = [item for _, item in sorted(ranks, key=lambda each: each[0])]

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Iterator[None]:
        yield
        self.finish()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        test = self.identify(nodeid)
        self.since = _NOW()
        self.server.sealed.limit_time(self.server.limit(test)[0])
        self.say("begin", test, seconds=self.since - self.began)

    def pytest_runtest_logreport(self, report: Any) -> None:
        test = self.identify(report.nodeid)
        if report.failed and test in self.wanted:
            self.red.add(test)
            self.say("red", test)
        elif report.passed and report.when == "call":
            self.say("passed", test)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        test = self.identify(nodeid)
        self.say("done", test, seconds=_NOW() - self.since, lines=self.end_test())
        self.left -= {test}
        if self.red and (not self.left or len(self.red) >= _MOST_KILLERS):
            self.finish()

    def end_test(self) -> list[tuple[str, int]]:
        return []

    def say(self, what: str, test: str, **more: Any) -> None:
        self.tell({"what": what, "test": test, **more})

    def finish(self, **more: Any) -> None:
        """Tell that all is over, and be gone without what pytest does at its end."""
        self.tell({"is_touched": bool(self.touched), **more})
        os._exit(0)


class Watcher(MutantRunner):
    """Runs all tests, in their own order, on code that notes which of its lines each reaches."""

    def __init__(self, server: MutantServer, *given: Any) -> None:
        super().__init__(server, *given)
        self.lines: dict[str, set[tuple[str, int]]] = {"": set()}
        self.prefix = ""
        self.reached: set[tuple[str, int]] = set()
        self.is_loading = True
        self.unseen = {*server.files.values()}
        """The files that were not loaded in the usual way, so that nothing is known of their lines."""
        vars(builtins)[_REACHED] = self.reached.add
        sys.dont_write_bytecode = True  # what is compiled here is of no use to others
        compile_source: Any = SourceFileLoader.source_to_code
        loader: Any = SourceFileLoader

        def compile_watched(this: Any, code: Any, path: Any, **more: Any) -> Any:
            name = server.files.get(os.path.realpath(os.fsdecode(path)))
            if name is None:
                return compile_source(this, code, path, **more)
            self.unseen.discard(name)
            return compile(watch_lines(name, code, server.wanted), path, "exec", dont_inherit=True)

        loader.source_to_code = compile_watched
        sys.addaudithook(self.hear)

    def begin(self, prefix: str) -> None:
        """Count lines from now on for the tests whose ids begin so."""
        self.lines.setdefault(self.prefix, set()).update(self.reached)
        if self.is_loading:  # what runs as something is loaded runs once, for whichever test comes first
            self.lines[""].update(self.reached)
        self.reached.clear()
        self.prefix, self.is_loading = prefix, False

    def hear(self, event: str, _given: Any) -> None:
        if event in self.server.sealed._STARTS:  # noqa: SLF001
            self.reached.add(_ANYWHERE)
        elif event == "import":
            self.is_loading = True

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> Iterator[None]:
        yield
        items[:] = [item for item in items if self.identify(item.nodeid) in self.wanted]

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Iterator[None]:
        before = self.prefix
        if fixturedef.scope != "function":
            self.begin(self.identify(getattr(request.node, "nodeid", "")).rstrip("./"))
        yield
        if fixturedef.scope != "function":
            self.begin(before)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.begin(self.identify(nodeid))
        super().pytest_runtest_logstart(nodeid)
        self.server.sealed.limit_time(0)

    def end_test(self) -> list[tuple[str, int]]:
        test = self.prefix
        self.begin("")
        return sorted(self.lines.pop(test))

    def finish(self, **more: Any) -> None:
        inside = f"{self.server.root}{os.sep}"
        files = {name: getattr(each, "__file__", None) or inside for name, each in list(sys.modules.items())}
        modules = [name for name, path in files.items() if not os.path.realpath(path).startswith(inside)]
        self.begin("")
        self.lines[""].update(each for each in self.server.wanted if each[0] in self.unseen)
        shared = {prefix: sorted(lines) for prefix, lines in self.lines.items()}
        super().finish(shared=shared, modules=modules, **more)


def watch_lines(path: str, raw: bytes, wanted: set[tuple[str, int]]) -> ast.Module:
    """Return code whose statements on wanted lines note that they are reached, before they run."""
    tree = ast.parse(raw)

    def note(lines: Iterable[int]) -> list[ast.stmt]:
        marks: list[Any] = [(path, line) for line in sorted(lines) if (path, line) in wanted]
        calls = (ast.Call(ast.Name(_REACHED, ast.Load()), [ast.Constant(each)], []) for each in marks)
        return [ast.Expr(call) for call in calls]

    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            rows = getattr(node, field, None)
            if isinstance(rows, list):
                at = count_first(node) if field == "body" else 0
                is_run = field == "body" and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
                own = note(find_head(node)) if is_run else []
                rest = [each for row in rows[at:] for each in (*note(find_reached(row)), row)]
                setattr(node, field, [*rows[:at], *own, *rest])
    return ast.fix_missing_locations(tree)


def count_first(node: Any) -> int:
    """Return how many statements have to stay first: a docstring, and imports of the future."""
    futures = [at for at, row in enumerate(node.body, 1) if getattr(row, "module", "") == "__future__"]
    is_told = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
    docstring = is_told and isinstance(node.body[0] if node.body else None, ast.Expr)
    return max([*futures, int(docstring and isinstance(node.body[0].value, ast.Constant))])


def find_reached(row: Any) -> Iterator[int]:
    """Yield the lines that run as a statement begins, and those of its handlers and cases that may."""
    yield from find_head(row)
    for each in (*getattr(row, "handlers", ()), *getattr(row, "cases", ())):
        yield from range(getattr(each, "pattern", each).lineno, each.body[0].lineno + 1)


class Spans:
    """The statements of some files: a line of one is as good as another."""

    def __init__(self, texts: dict[str, bytes]) -> None:
        self.spans = {path: sorted(find_spans(ast.parse(raw))) for path, raw in texts.items()}

    def list_lines(self, edit: dict[str, Any], raw: bytes) -> set[tuple[str, int]]:
        """Return the lines of the statements that an edit changes; what is inserted has none of its own."""
        start, end = (raw.count(b"\n", 0, edit[side]) + 1 for side in ("start", "end"))
        lines = {*range(start, end + 1), *([edit["line"]] if edit["start"] == edit["end"] else ())}
        found = {line for at in (start, end) for line in self.widen(edit["path"], at)} | lines
        return {(edit["path"], line) for line in found}

    def widen(self, path: str, line: int) -> Iterable[int]:
        around = [(last - first, first, last) for first, last in self.spans[path] if first <= line <= last]
        return range(min(around)[1], min(around)[2] + 1) if around else ()


def find_spans(tree: ast.AST) -> Iterator[tuple[int, int]]:
    """Yield the first and the last line of each statement, of one with a body without that."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.stmt, ast.excepthandler)):
            head = find_head(node)
            yield head[0], head[-1]


def find_head(node: Any) -> range:
    """Return the lines of a statement, of one with a body those before it."""
    body: Any = getattr(node, "body", None) or getattr(node, "cases", None)
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
    begins = getattr(body[0], "pattern", body[0]).lineno if body else 0
    return range(first, (max(node.lineno, begins - 1) if body else node.end_lineno or first) + 1)


def is_code(raw: bytes) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(raw, "mutant", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def count_tasks() -> int:
    """Return the number of threads, those of libraries included, as far as the system tells."""
    tasks = Path("/proc/self/task")
    return len([*tasks.iterdir()]) if tasks.is_dir() else threading.active_count()
