"""The required checks of a task: which must hold, which a person skips, and their runs bound to the tree."""

import getpass
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING

from anyio import to_thread

from agentflow.checks.dependencies import find_blockage, read_required_python
from agentflow.checks.detect import detect, limit_checks
from agentflow.checks.import_errors import find_foreign_errors
from agentflow.checks.python import choose_interpreter, read_python_version
from agentflow.checks.repository import Repository, WellKnown, apply_own_commands
from agentflow.core.errors import CorruptState, UsageError
from agentflow.core.events import Event, Warned
from agentflow.core.evidence import Check, CheckName, CheckRun, Fault, Reads
from agentflow.core.pending import Override
from agentflow.core.ports import Watch
from agentflow.core.record import Record
from agentflow.core.task import RequiredCheck, TaskState
from agentflow.process import check_cancelled
from agentflow.runners.fitting import fit_command
from agentflow.runners.scripts import Watching, find_watching
from agentflow.sandbox.environment import find_build_cache
from agentflow.sandbox.profile import CACHES, Level
from agentflow.sandbox.run import Sandbox, guess_reason
from agentflow.settings import Patience
from agentflow.store.ledger import EvidenceLedger
from agentflow.store.tasks import TaskStore
from agentflow.verdict.case import find_hook_files
from agentflow.verdict.earlier_runs import PATIENCE, EarlierRuns, find_flaky, read_run
from agentflow.verdict.projects import find_added_projects, fit_check, list_tests, may_add_project
from agentflow.verdict.runner import CheckJob, CheckRunner, CheckSetup, Place, Results
from agentflow.workspace.changes import FileChange
from agentflow.workspace.git import Git
from agentflow.workspace.ignored_files import list_unchanged, mark_ignored
from agentflow.workspace.path_guard import PathGuard
from agentflow.workspace.working_copy import LowerDirectory, find_installed_paths

if TYPE_CHECKING:
    from agentflow.verdict.diff.inspection import Inspection

RISKS: Mapping[CheckName, str] = MappingProxyType(
    {
        CheckName.LINT: "mistakes that a linter would report go unnoticed",
        CheckName.FORMAT: "files may be formatted differently from the rest",
        CheckName.TYPES: "type errors go unnoticed",
        CheckName.BUILD: "nothing shows that it can still be built",
        CheckName.TESTS: "nothing shows that the program still does what it did",
    }
)


def make_overrides(names: Iterable[str], reason: str) -> tuple[Override, ...]:
    """Return the checks that `--skip-check` and `--reason` skip. Raises UsageError."""
    found = tuple(dict.fromkeys(names))
    if found and not reason.strip():
        raise UsageError("--skip-check needs --reason: it is recorded beside your name")
    if reason and not found:
        raise UsageError("--reason says why a check is skipped; name it with --skip-check")
    for name in found:
        if name not in RISKS:
            raise UsageError(f"unknown check {name!r}", hint=f"checks: {', '.join(RISKS)}")
    try:
        person = getpass.getuser() if found else ""
    except (OSError, KeyError):
        person = "unknown"
    return tuple(make_override(CheckName(name), reason.strip(), person) for name in found)


def make_override(check: CheckName, reason: str, by: str) -> Override:
    return Override(check=check, reason=reason, by=by, risk=RISKS[check])


class Inspections:
    """Inspects the change of a task once for each of its states; loads the inspection only then."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._known: dict[tuple[str | None, ...], Inspection] = {}

    def of(self, task: TaskState) -> "Inspection":
        """Return the inspection of a task's change."""
        from agentflow.verdict.diff.inspection import inspect_change  # noqa: PLC0415  # nothing before the first change needs it

        surface = task.surface
        late = (path for path in surface.late if path in surface.product)
        trees = (task.base_tree, task.tree, *surface.late, "", *late)
        if trees not in self._known:
            self._known[trees] = inspect_change(self._git, task)
        return self._known[trees]


class Bounds(Record):
    """The time and the repetitions that the user's settings give to checks."""

    timeouts: dict[CheckName, float] = {}
    patience: dict[Fault, Patience] = {}


class Checking:
    """Runs required checks for one task and remembers what each showed."""

    def __init__(
        self,
        git: Git,
        sandbox: Sandbox,
        store: TaskStore,
        bounds: Bounds,
        said: WellKnown,
        is_own: Callable[[Path], bool],
    ) -> None:
        self._git = git
        self._sandbox = sandbox
        self._store = store
        self._bounds = bounds
        self._said = said
        self._earlier = EarlierRuns(store, is_own)
        self._runs: dict[str, CheckRun] = {}
        self._reads: dict[str, Reads] = {}
        self._places: tuple[str, ...] | None = None
        self._underlay = LowerDirectory(git.replace(cancelled=check_cancelled))

    def emit(self, event: Event) -> None:
        """Tell of something that happened as the checks are tried."""
        self._store.emit(event)

    def close(self) -> None:
        """Remove what was laid out for the checks."""
        self._underlay.close()

    def require(self, task: TaskState, files: tuple[str, ...]) -> tuple[Check, ...]:
        """Return the checks that have to pass: those from before the task, and any that is new.

        Where a project is gone, its part of a check is; one that is new has a part of its own.
        """
        before = tuple(item.check for item in task.baseline)
        known = {*(check.name for check in before), *(override.check for override in task.options.overrides)}
        left, earlier = self.list_left(task, files), self._list_earlier(task)
        settled = known - {each.name for each in before if each not in left}
        settled = set() if may_add_project(task.surface, earlier, files) else settled
        added = find_added_projects(task.surface, earlier, files) if earlier else ()
        all_found = apply_own_commands(detect(self._sandbox, files, settled, added), self._said)
        found = (check for check in all_found if check.name not in known)
        tests = list_tests(task.surface, earlier)
        fitted = (fit_check(check, files, all_found, tests) for check in before)
        return (*fitted, *limit_checks(found, self._bounds.timeouts))

    def list_left(self, task: TaskState, files: tuple[str, ...]) -> tuple[Check, ...]:
        """Return the checks from before that can still run, without the parts whose project is gone."""
        tests = list_tests(task.surface, self._list_earlier(task))
        checks = (item.check for item in task.baseline)
        able = (check for check in checks if fit_command(check.command, files, tests=tests))
        return tuple(check.replace(command=fit_command(check.command, files)) for check in able)

    def _list_earlier(self, task: TaskState) -> tuple[str, ...]:
        """Return the files from before the task, where any check is known from then."""
        return self._git.list_paths(task.base_tree) if task.baseline and task.base_tree else ()

    def read_repository(self, files: tuple[str, ...]) -> Repository:
        """Return the repository as check detection reads it."""
        return Repository(sandbox=self._sandbox, files=files, known=frozenset(files))

    def _read_now(self) -> Repository:
        return self.read_repository(PathGuard(self._git.root).list_files())

    def add_wellknown(self, task: TaskState) -> TaskState:
        """Return the task with what the repository's trusted files say about its tests."""
        skipped = (make_override(name, word.text, word.file) for name, word in self._said.skips.items())
        return task.replace(overrides=(*task.options.overrides, *skipped), known_failures=self._said.known)

    def find_blocked(self, required: tuple[RequiredCheck, ...]) -> dict[CheckName, str]:
        """Return the checks that cannot run on this machine whatever the code says, each with the reason."""
        red = [run for run in self.find_runs(required) if not run.green]
        if not red:
            return {}
        repository = self._read_now()
        running = read_python_version(repository) if read_required_python(repository) else None
        task = self._store.task.task
        found = dict[CheckName, str]()
        for run in red:
            output = self._store.ledger.read_output(run.evidence.id) if run.evidence else ""
            if why := find_blockage(run, output, repository, running, task):
                found[run.check.name] = why
        return found

    def find_watching(self, check: Check) -> Watching | None:
        """Return how a test command watches for changes in place of ending, if it does."""
        return find_watching(check.command, self._read_now().read)

    def find_foreign_errors(self, required: tuple[RequiredCheck, ...]) -> tuple[str, ...]:
        """Return the import errors by which tests fail and which no change of the code mends."""
        errors = {error for run in self.find_runs(required) for error in run.import_errors.values()}
        if not errors:
            return ()
        return tuple(sorted(find_foreign_errors(errors, self._read_now(), self._store.task.task)))

    async def run(
        self, task: TaskState, *jobs: CheckJob, ignored: tuple[str, ...] | None = None
    ) -> tuple[Results, ...]:
        """Run the checks of each job one after the other, and the jobs side by side.

        They see the files of `ignored`, or else those that are as they were before the task.
        """
        if not any(job.checks for job in jobs):
            return tuple(() for _ in jobs)
        await self._fill_cache()
        setup = await self._setup(task, ignored)
        return await CheckRunner(setup, task, partial(self._keep, task)).run(*jobs)

    @asynccontextmanager
    async def copy(self, task: TaskState, tree: str) -> AsyncIterator[Place]:
        """Yield a copy of a tree to run things in that are no evidence."""
        async with (await self._setup(task, None)).copy(tree) as place:
            yield place

    async def _fill_cache(self) -> None:
        """Let a compiler do once what it would do in each copy, also one that only the change needs."""
        if self._sandbox.build_cache is None:
            found = await to_thread.run_sync(find_build_cache, self._sandbox.root, os.environ)
            self._sandbox = self._sandbox.replace(build_cache=found)
        if fill := await to_thread.run_sync(self._sandbox.plan_fill):
            self._store.emit(Warned(message=fill.describe()))
            await to_thread.run_sync(self._sandbox.fill_build_cache, check_cancelled)

    async def _setup(self, task: TaskState, ignored: tuple[str, ...] | None) -> CheckSetup:
        if self._places is None:
            self._places = await to_thread.run_sync(self._find_places)
        entries = await to_thread.run_sync(self._git.list_ignored)
        marks = await to_thread.run_sync(mark_ignored, self._git, entries)
        seen = list_unchanged(entries, task.ignored, marks) if ignored is None else ignored
        return CheckSetup(
            git=self._git,
            sandbox=self._sandbox,
            store=self._store,
            underlay=self._underlay if self._sandbox.level is Level.FULL else None,
            seen=seen,
            places=self._places,
            patience={**PATIENCE, **self._bounds.patience},
            before={run.check.name: run for run in self.find_runs(task.baseline)},
            marks={
                name: mark
                for name, mark in marks.items()
                if name.startswith(seen) and CACHES.isdisjoint(PurePosixPath(name).parts)
            },
            earlier=self._earlier,
        )

    def _find_places(self) -> tuple[str, ...]:
        if self._sandbox.level is Level.FULL:
            return ()  # the copy stands at the repository's own place
        repository = self._read_now()
        if not any(name.endswith(".py") for name in repository.files):
            return ()
        return find_installed_paths(self._sandbox, choose_interpreter(repository).words)

    def _keep(self, task: TaskState, job: CheckJob, run: CheckRun) -> RequiredCheck:
        if run.ran is None:
            return RequiredCheck(check=run.check)
        for reads in (each.reads for each in run.runs if each.reads is not None):
            self._reads[job.tree] = reads.join(self._reads.get(job.tree, Reads()))
        touched = tuple(dict.fromkeys(path for each in run.runs for path in each.execution.changed))
        evidence = self._store.ledger.record_check(
            run.replace(checks=job.surface, code=job.code, ran=run.ran.replace(changed=touched)),
            job.tree,
            iteration=task.iteration,
            flaky=find_flaky(run, job.earlier),
        )
        self._runs[evidence.id] = self._explain(run.bind(evidence))
        return RequiredCheck(check=run.check, evidence=evidence.id)

    def find_reads(self, tree: str) -> Reads | None:
        """Return which files the tests read on a tree, if they ran there in this process."""
        return self._reads.get(tree)

    def find_runs(self, required: tuple[RequiredCheck, ...]) -> tuple[CheckRun, ...]:
        """Return what checks showed, in their order."""
        return tuple(self._recall(item) for item in required)

    def recall(self, evidence: tuple[str, ...]) -> tuple[CheckRun, ...]:
        """Return what the program's own evidence of these ids showed."""
        checks = {
            item.check.name: item.check for item in (*self._store.task.baseline, *self._store.task.final)
        }
        records = (self._store.ledger.find(item) for item in evidence)
        return tuple(
            self._recall(RequiredCheck(check=checks[record.check], evidence=record.id))
            for record in records
            if record is not None and record.check in checks
        )

    def _recall(self, item: RequiredCheck) -> CheckRun:
        """Return the result of a check, from its files if another process ran it."""
        if item.evidence is None:
            return CheckRun(check=item.check)
        if (known := self._runs.get(item.evidence)) is not None:
            return known
        evidence = self._store.ledger.find(item.evidence)
        if evidence is None:
            raise CorruptState(f"{self._store.folder}: evidence {item.evidence} is gone")
        run = read_run(self._store.folder, item.check, evidence)
        return self._runs.setdefault(evidence.id, self._explain(run))

    def _explain(self, run: CheckRun) -> CheckRun:
        is_red = run.evidence is not None and run.evidence.exit_code != 0
        return run.replace(hint=guess_reason(self._sandbox, run.tail) if is_red else "")


class JudgeContext(Record):
    """The repository, the checks, and what they showed: all that judging needs."""

    git: Git
    sandbox: Sandbox
    checking: Checking
    inspections: Inspections
    ledger: EvidenceLedger
    watch: Watch
    """Tells what only hooks changed."""

    def take_tree(self, task: TaskState) -> TaskState:
        """Return the task with the tree on disk now, and with the files that only hooks changed."""
        return task.replace(tree=self.git.write_tree(), hook_files=self.watch.list_files())

    def list_changes(self, task: TaskState) -> tuple[FileChange, ...]:
        """Return the files that the task itself changed up to its last recorded tree."""
        if task.base_tree is None or task.tree is None:
            return ()
        apart = find_hook_files(task)
        changes = self.git.list_changes(task.base_tree, task.tree)
        return tuple(change for change in changes if change.path not in apart) if apart else changes
