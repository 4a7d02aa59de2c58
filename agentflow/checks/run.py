"""Run one required check and read what it showed."""

import hashlib
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from agentflow.checks.observing import ReadObserver, install_hook, keep_hook, watch_folders
from agentflow.checks.repository import find_pytest_root
from agentflow.checks.results import (
    MINITEST,
    copy_reporters,
    count_findings,
    install_reporters,
    is_refused,
    read_junit,
    read_reports,
)
from agentflow.checks.surroundings import (
    REPORT_FILE,
    Manner,
    make_environment,
    make_other_surroundings,
)
from agentflow.core.check_command import edit_runs, join_parts, split_command
from agentflow.core.evidence import (
    TAIL_CHARS,
    Check,
    CheckName,
    CheckRun,
    Command,
    Execution,
    TestCounts,
    TestResults,
)
from agentflow.core.record import Record, copy_shared
from agentflow.core.test_ids import get_test_file
from agentflow.redact import strip_colours
from agentflow.runners.calls import add_reports
from agentflow.runners.go import ask_for_json, read_go_events, undo_json
from agentflow.runners.javascript import STARTS_NODE
from agentflow.runners.python import add_options, keep_root, read_verbose_unittest
from agentflow.runners.runner import count_outcomes, join_results
from agentflow.runners.scripts import find_watching, parse_manifest
from agentflow.runners.table import (
    drop_colours,
    find_named_runners,
    keep_reports,
    make_variables,
    read_printed,
    tell_each_test,
)
from agentflow.sandbox.environment import find_shell
from agentflow.sandbox.profile import CHECKS
from agentflow.sandbox.run import Sandbox
from agentflow.sandbox.throwaway import make_scratch_folder

_TAIL_LINES = 40
_LOOK_SECONDS = 0.5
_IDLE_SECONDS = 2.0
_ENDED = "ended once it had told its sum, since it watches for changes"
_LONG_SECONDS = 10.0
"""A test is named after so many seconds, then after twice as many, and so on."""
_REPORT_BYTES = 64 << 20
"""A report of a hundred thousand tests has that size; a check may write as much as the disk holds."""


class CheckWatch(Record):
    """The one who waits for a check, and for how long."""

    cancelled: Callable[[], bool] = lambda: False
    tell: Callable[[str, float], object] = lambda _test, _seconds: None
    """Hears of a test that has run for so many seconds, and, by an empty name, that it has ended."""
    longest: float = 0
    """A test that is busy for more seconds, and far longer than any before it, is ended; none by 0."""


def execute(
    check: Check,
    sandbox: Sandbox,
    sink: Path,
    *,
    watch: CheckWatch | None = None,
    env: Mapping[str, str] | None = None,
    manner: Manner = Manner.PLAIN,
) -> CheckRun:
    """Run a check in a repository, its output going to `sink`; it leaves nothing of ours behind.

    `env` is added last, such as the import path of a copy.
    """
    watch = watch or CheckWatch()
    job = _Job(check=check, sandbox=sandbox)
    with make_scratch_folder() as scratch:
        is_observed = manner is Manner.OBSERVED
        is_needed = is_observed or watch.longest
        observer = _observer(sandbox, scratch, env or {}, watch.longest) if is_needed else None
        job = job.replace(observer=observer)
        surroundings = make_other_surroundings(scratch, manner)
        is_watching = check.name is CheckName.TESTS and find_watching(check.command, job.read)
        is_over: Callable[[], bool] = _OverWhenIdle(sink) if is_watching else lambda: False
        with watch_folders(observer, sandbox.folders) if observer and is_observed else nullcontext():
            cancelled = _follow_tests(observer, watch) if observer else watch.cancelled
            given = {**surroundings, **(env or {})}
            finished = _run(job, scratch, sink, lambda: cancelled() or is_over(), given)
        reads = observer.collect_reads() if observer and is_observed else None
        raw = sink.read_text("utf-8", "replace")
        told = (_read_tests(job, scratch, raw) if check.name is CheckName.TESTS else None) or TestResults()
        ended = observer.find_stalled() if observer else ()
        finished = finished.replace(stalled=tuple(test for test in ended if test in told.outcomes))
        if is_over() and not finished.timed_out and (counts := told.counts):
            exit_code = int(counts.failed + counts.errors > 0)
            finished = finished.replace(exit_code=exit_code, notes=(*finished.notes, _ENDED))
    finished = _readable(finished, sink, raw) if job.is_json else finished
    lines = [*strip_colours(finished.tail).splitlines(), *finished.notes]
    tail = "\n".join(lines[-_TAIL_LINES:])[-TAIL_CHARS:]
    finished = finished.replace(
        command=check.command, cwd=str(sandbox.root), tail=tail, sandbox=sandbox.level
    )
    findings = count_findings(check.name, raw.replace(f"{sandbox.place}/", ""))
    return CheckRun(
        check=check, ran=finished, findings=findings, reads=reads, tail=tail, **copy_shared(told, CheckRun)
    )


def read_file(sandbox: Sandbox, name: str) -> str:
    """Return a file of the repository as a check in a sandbox finds it; empty where there is none."""
    places = (each / name for each in reversed(sandbox.folders))
    found = next((place for place in places if place.is_file()), None)
    return found.read_text("utf-8", "replace") if found and not found.is_symlink() else ""


class _Job(Record):
    """A check in its sandbox."""

    check: Check
    sandbox: Sandbox
    observer: ReadObserver | None = None

    @property
    def is_json(self) -> bool:
        """The command is one of `go test`, which is made to print JSON."""
        return self._is_tests and edit_runs(self.check.command, ask_for_json) != self.check.command

    def read(self, name: str) -> str:
        return read_file(self.sandbox, name)

    @property
    def _is_tests(self) -> bool:
        return self.check.name is CheckName.TESTS

    def command(self, scratch: Path) -> str:
        """Return the command with the options by which its runner tells of each test."""
        said = keep_hook(self.check.command, self.observer) if self.observer else self.check.command
        if not self._is_tests:
            return said
        parts = [keep_root(part, partial(find_pytest_root, self.read)) for part in split_command(said)]
        for at, part in enumerate(parts if len(parts) > 1 else ()):
            report = f"--junitxml={shlex.quote(str(_place_report(scratch, at)))}"
            parts[at] = part.replace(command=add_options(part.command, report))
        return keep_reports(tell_each_test(add_reports(join_parts(parts), self.read, scratch)), scratch)

    def set_up_reports(self, scratch: Path) -> dict[str, str]:
        """Return the variables that make runners report; those of node where it may run."""
        if not self._is_tests:
            return {}
        copy_reporters(scratch, MINITEST)
        known = self.sandbox.opened.environment
        found = make_variables(scratch, lambda name: known.get(name, ""))
        if STARTS_NODE.search(self.check.command) or parse_manifest(self.read("package.json")):
            found |= install_reporters(scratch, known.get("NODE_OPTIONS", ""))
        return found


class _OverWhenIdle:
    """Says when a command that watches for changes has told its sum and waits."""

    def __init__(self, sink: Path) -> None:
        self._sink = sink
        self._looked = self._since = time.monotonic()
        self._size = 0
        self._is_over = False

    def __call__(self) -> bool:
        now = time.monotonic()
        if self._is_over or now < self._looked + _LOOK_SECONDS:
            return self._is_over
        self._looked = now
        size = self._sink.stat().st_size if self._sink.exists() else 0
        if size != self._size:
            self._size, self._since = size, now
        elif size and now - self._since >= _IDLE_SECONDS:
            told = read_printed(drop_colours(self._sink.read_text("utf-8", "replace")))
            self._is_over = told is not None and told.counts is not None
            self._since = now
        return self._is_over


def _place_report(scratch: Path, at: int) -> Path:
    return scratch / f"junit-{at}.xml"


def _observer(sandbox: Sandbox, scratch: Path, env: Mapping[str, str], longest: float) -> ReadObserver:
    declared = env.get("PYTHONPATH") or sandbox.opened.environment.get("PYTHONPATH", "")
    return install_hook(scratch, (sandbox.place, sandbox.root), declared, longest)


def _follow_tests(observer: ReadObserver, watch: CheckWatch) -> Callable[[], bool]:
    test, since, looked, due = "", time.monotonic(), 0.0, _LONG_SECONDS

    def ask() -> bool:
        nonlocal test, since, looked, due
        now = time.monotonic()
        if now < looked + _LOOK_SECONDS:
            return watch.cancelled()
        looked, newest = now, observer.find_test()
        if newest != test:
            if due > _LONG_SECONDS:
                watch.tell("", 0)
            test, since, due = newest, now, _LONG_SECONDS
        elif test and now - since >= due:
            watch.tell(test, round(now - since, 1))
            due *= 2
        return watch.cancelled()

    return ask


def _run(
    job: _Job, scratch: Path, sink: Path, cancelled: Callable[[], bool], env: Mapping[str, str]
) -> Execution:
    """Run a check, and once more without our reporters where node will not have them."""
    runs = job.sandbox.of(CHECKS, scratch)
    reporting = job.set_up_reports(scratch)
    command = Command(
        argv=(find_shell(job.sandbox.root), "-c", job.command(scratch)),
        cwd=str(job.sandbox.root),
        timeout=job.check.timeout,
        env={
            **make_environment(job.check, job.sandbox, scratch),
            **reporting,
            **env,
            **(job.observer.env if job.observer else {}),
        },
    )
    finished = runs.run(command, sink, cancelled)
    if reporting and finished.exit_code != 0 and is_refused(sink.read_text("utf-8", "replace")):
        kept = {name: value for name, value in command.env.items() if name not in reporting}
        finished = runs.run(command.replace(env=kept), sink, cancelled)
    return finished


def _readable(finished: Execution, sink: Path, raw: str) -> Execution:
    text = undo_json(raw)
    written = text.encode()
    sink.write_bytes(written)
    sha = hashlib.sha256(written).hexdigest()
    return finished.replace(tail=text[-TAIL_CHARS:], stdout_sha256=sha, bytes=len(written))


def _read_tests(job: _Job, scratch: Path, output: str) -> TestResults | None:
    """Return what the runners of a check told; reports count before what is printed."""
    command, text = job.check.command, drop_colours(output)
    named = find_named_runners(command)
    python = [read_verbose_unittest(text)] if any(each.name == "unittest" for each in named) else []
    python += _read_junit_reports(job, scratch)
    tells_all = any(each.tells_all for each in named)
    own = join_results(python)
    told = [own.replace(counts=count_outcomes(own.outcomes.values()))] if own and own.outcomes else []
    reports = read_reports(scratch, (job.sandbox.place, job.sandbox.root))
    told += [reports] if reports and reports.outcomes else []  # one that names no test may be of half a run
    is_reported = bool(told)
    told += [go] if (go := read_go_events(output)) and job.is_json else []
    is_enough = bool(told or tells_all) and len(job.check.parts) == 1
    printed = None if is_enough else read_printed(text, is_reported=is_reported)
    if printed is None:
        return join_results(told) or reports or (TestResults(counts=TestCounts()) if tells_all else None)
    is_alone = not told and not any(each.read for each in named)
    number = printed.counts and printed.counts.replace(is_printed=is_alone)
    return join_results([*told, printed]) if told else printed.replace(counts=number)


def _read_junit_reports(job: _Job, scratch: Path) -> Iterator[TestResults]:
    parts = job.check.parts
    for at, part in enumerate(parts):
        path = _place_report(scratch, at) if len(parts) > 1 else scratch / REPORT_FILE
        is_whole = path.is_file() and path.stat().st_size <= _REPORT_BYTES
        report = path.read_text("utf-8", "replace") if is_whole else ""
        yield _tell_from_root(read_junit(report), part.folder, job.sandbox.folders)


def _tell_from_root(told: TestResults, folder: str, places: Iterable[Path]) -> TestResults:
    """Return tests by their files as the root sees them, as pytest does by itself with settings there."""
    tops = tuple(places)

    def is_there(path: str) -> bool:
        return any((top / path).is_file() for top in tops)

    paths = {get_test_file(test) for test in told.outcomes} if folder else set[str]()
    below = {path for path in paths if is_there(f"{folder}{path}") or not is_there(path)}
    names = {test: f"{folder}{test}" if get_test_file(test) in below else test for test in told.outcomes}
    return told.replace(
        outcomes={names[test]: each for test, each in told.outcomes.items()},
        import_errors={names[test]: each for test, each in told.import_errors.items()},
        failures={names[test]: each for test, each in told.failures.items()},
    )
