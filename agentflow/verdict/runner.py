"""Required checks side by side, each job in a copy of its tree; what fails by chance runs again, alone."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
from anyio import from_thread, to_thread

from agentflow.checks.run import CheckWatch, execute, read_file
from agentflow.checks.surroundings import Manner, make_environment, make_other_surroundings
from agentflow.core.errors import AgentflowError
from agentflow.core.events import CheckStarted, TestRunsLong
from agentflow.core.evidence import Check, CheckName, CheckRun, Fault, Side, TestOutcome
from agentflow.core.record import Record
from agentflow.core.task import RequiredCheck, TaskState
from agentflow.core.test_ids import keep_case_ids
from agentflow.mutants.forked import ForkedRun, try_forked
from agentflow.mutants.trial import MutantOrder, TriedMutant
from agentflow.process import check_cancelled
from agentflow.sandbox.profile import CHECKS, Level
from agentflow.sandbox.run import Sandbox
from agentflow.sandbox.throwaway import make_scratch_folder
from agentflow.settings import Patience
from agentflow.store.tasks import TaskStore
from agentflow.verdict.earlier_runs import (
    WHOLE,
    Circumstances,
    EarlierRuns,
    choose_wait,
    explain_retry,
    find_passing,
    mark_surroundings,
)
from agentflow.verdict.surface import is_check_file
from agentflow.workspace.git import Git
from agentflow.workspace.working_copy import LowerDirectory, WorkingCopy, to_pythonpath

Results = tuple[RequiredCheck, ...]


class CheckJob(Record):
    """Checks to run on one tree, and from which side its code and its checks are."""

    checks: tuple[Check, ...]
    tree: str
    surface: Side
    code: Side
    earlier: Mapping[str, TestOutcome] = {}
    """The earlier outcomes of tests on the same code under the same checks."""
    runs_anew: bool = False
    """No earlier run stands for it: only one more tells what is luck."""
    longest: float = 0
    """Seconds of processor time after which a test that does not move may be ended; never where it is 0."""


class Place(Record):
    """The place where checks run: the repository itself, or a copy of one of its trees."""

    sandbox: Sandbox
    imports: str = ""
    """The PYTHONPATH under which a copy tests itself, where it needs one."""
    stage: WorkingCopy | None = None
    """The copy, which tells what a check did to its files."""
    cancelled: Callable[[], bool] = lambda: False
    pause: Callable[[float], None] = time.sleep
    before: Mapping[str, TestOutcome] = {}
    """The tests before the task, by which cases without a fixed name are known."""
    changed: frozenset[str] = frozenset()
    """The files that differ from those before the task."""

    def run(
        self, check: Check, sink: Path, manner: Manner = Manner.PLAIN, watch: CheckWatch | None = None
    ) -> CheckRun:
        """Run a check with its output in `sink`."""
        env = {"PYTHONPATH": self.imports} if self.imports else {}
        watch = (watch or CheckWatch()).replace(cancelled=self.cancelled)
        run = execute(check, self.sandbox, sink, watch=watch, env=env, manner=manner)
        run = keep_case_ids(run, self.before, self.changed) if check.name is CheckName.TESTS else run
        if self.stage is None:
            return run
        changed = (*run.execution.changed, *self.stage.list_changes())
        return run.replace(ran=run.execution.replace(changed=changed))

    def read(self, path: str) -> str:
        """Return a file as a check finds it; empty where there is none."""
        return read_file(self.sandbox, path)

    def list_files(self) -> tuple[str, ...]:
        """Return the files of the copy's tree."""
        return self.stage.list_files() if self.stage else ()

    def try_elsewhere(self, check: Check) -> tuple[CheckRun, str]:
        """Return what a check shows and prints in other surroundings, on which no result may depend."""
        with make_scratch_folder() as scratch:
            shown = self.run(check, sink := scratch / "output", Manner.ELSEWHERE)
            return shown, sink.read_text("utf-8", "replace")

    def try_forked(self, order: MutantOrder) -> tuple[TriedMutant, ...] | None:
        """Return the outcome of each mutant in other surroundings; None where forks cannot try them."""
        return try_forked(order, self.sandbox, partial(self._surround, order.check), self.cancelled)

    def fork(self, run: ForkedRun, check: Check) -> bytes | None:
        """Return what a module of ours tells of the tests that it forks, in other surroundings."""
        return run.run(check, self.sandbox, partial(self._surround, check), self.cancelled)

    def _surround(self, check: Check, scratch: Path) -> dict[str, str]:
        others = make_other_surroundings(scratch, Manner.ELSEWHERE)
        imports = {"PYTHONPATH": self.imports} if self.imports else {}
        return {**make_environment(check, self.sandbox, scratch), **others, **imports}

    def run_again(
        self,
        run: CheckRun,
        known: Circumstances,
        patience: Mapping[Fault, Patience],
        begin: Callable[[int], CheckRun],
        belongs: Callable[[str], bool] = lambda _: False,
    ) -> CheckRun:
        """Run a failed check again as long as that can show that it failed by chance."""
        while run.ran and (fault := explain_retry(run, known, patience)):
            self.pause(choose_wait(fault, [each for each, _ in run.tries], patience))
            if self.stage is not None:
                self.stage.restore(belongs)
            tries = (*run.tries, (fault, run.replace(tries=())))
            run = begin(len(run.runs) + 1).replace(tries=tries)
        return run


class CheckSetup(Record):
    """All that running the checks of a task needs."""

    git: Git
    sandbox: Sandbox
    store: TaskStore
    underlay: LowerDirectory | None
    """The folder that copies are layers above, where the machine can have them."""
    seen: tuple[str, ...]
    """The ignored files that a check may see."""
    places: tuple[str, ...]
    """The folders from which Python imports this repository's packages."""
    patience: Mapping[Fault, Patience]
    before: Mapping[CheckName, CheckRun]
    """The result of each check before the task."""
    marks: Mapping[str, str]
    """The marks of ignored files and environments that a check may see."""
    earlier: EarlierRuns

    def take_over(self, job: CheckJob) -> tuple[CheckRun, ...]:
        """Return earlier results for all checks of a job on the same tree; none if one is missing."""
        if job.runs_anew or self.sandbox.level is Level.NONE:  # there anybody can write a record
            return ()
        found = [self._take_over(job, check) for check in job.checks]
        return tuple(each for each in found if each) if all(found) else ()

    def _take_over(self, job: CheckJob, check: Check) -> CheckRun | None:
        if check.missing is not None:
            return CheckRun(check=check)
        mark = mark_surroundings(self.sandbox, self.marks, check)
        return self.earlier.find(job.tree, job.code, check, mark, self.choose_sink(job, check, 0))

    def choose_sink(self, job: CheckJob, check: Check, number: int) -> Path:
        """Return the file for the output of a run."""
        name = f"check-{check.name}-{job.surface}-{job.code}-{number}.out"
        return self.store.folder / "outputs" / name

    @asynccontextmanager
    async def copy(self, tree: str) -> AsyncIterator[Place]:
        stage = WorkingCopy(self.git.replace(cancelled=check_cancelled), tree, self.seen)
        try:
            await to_thread.run_sync(stage.fill, self.underlay)
            base = self.before.get(CheckName.TESTS)
            since = base.evidence.tree_before if base and base.evidence else None
            changes = self.git.list_changes(since, tree) if since and since != tree else ()
            yield Place(
                before=base.outcomes if base else {},
                changed=frozenset(each.path for each in changes),
                sandbox=self.sandbox.switch_to_view(stage.view),
                imports=to_pythonpath(stage.view.place, self.places),
                stage=stage,
                cancelled=check_cancelled,
                pause=lambda seconds: from_thread.run(anyio.sleep, seconds),  # a cancelled task ends it
            )
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(stage.remove)


class CheckRunner:
    """Runs the jobs of a task at the same time; evidence is numbered in the order of the jobs."""

    def __init__(
        self, setup: CheckSetup, task: TaskState, keep: Callable[[CheckJob, CheckRun], RequiredCheck]
    ) -> None:
        self._setup = setup
        self._belongs = partial(is_check_file, task.surface)
        self._keep = keep
        self._firsts: dict[CheckName, frozenset[str]] = {}
        self._going = 0
        self._idle = anyio.Event()

    async def run(self, *jobs: CheckJob) -> tuple[Results, ...]:
        results: dict[int, Results] = {}
        turns = [anyio.Event() for _ in range(len(jobs) + 1)]
        turns[0].set()
        self._going = sum(1 for job in jobs if job.checks)

        async def follow(place: int, job: CheckJob) -> None:
            results[place] = await self._follow(job, turns[place])
            turns[place + 1].set()

        async with anyio.create_task_group() as group:
            for place, job in enumerate(jobs):
                group.start_soon(follow, place, job)
        return tuple(results[place] for place in range(len(jobs)))

    async def _follow(self, job: CheckJob, turn: anyio.Event) -> Results:
        """Run a job in its own copy; results are recorded when it is the job's turn."""
        if taken := await to_thread.run_sync(self._setup.take_over, job):
            await self._alone(turn)
            return tuple(self._keep(job, each) for each in taken)
        ran: list[CheckRun] = []
        kept: list[RequiredCheck] = []
        async with self._setup.copy(job.tree) as place:
            assert place.stage is not None
            for number, check in enumerate(job.checks):
                if number:
                    await to_thread.run_sync(place.stage.restore, self._belongs)
                begin = partial(self._once, job, check, place)
                first = await self._first(job, check, begin)
                if number == len(job.checks) - 1:
                    await self._alone(turn)
                mark = mark_surroundings(self._setup.sandbox, self._setup.marks, check)
                again = partial(
                    place.run_again,
                    first,
                    self._find_known(job, check),
                    self._setup.patience,
                    begin,
                    self._belongs,
                )
                ran.append((await to_thread.run_sync(again)).replace(surroundings=mark))
                if turn.is_set():
                    kept += [self._keep(job, each) for each in ran[len(kept) :]]
            return tuple(kept)

    async def _alone(self, turn: anyio.Event) -> None:
        """Wait until nothing else runs, since runs at the same time may disturb each other."""
        self._going -= 1
        if not self._going:
            self._idle.set()
        await self._idle.wait()
        await turn.wait()

    async def _first(self, job: CheckJob, check: Check, begin: Callable[[int], CheckRun]) -> CheckRun:
        if check.missing is not None:
            return CheckRun(check=check)
        self._setup.store.emit(
            CheckStarted(check=check.name, command=check.command, surface=job.surface, code=job.code)
        )
        run = await to_thread.run_sync(begin, 1)
        self._firsts[check.name] = self._firsts.get(check.name, frozenset()) | find_passing(run)
        return run

    def _find_known(self, job: CheckJob, check: Check) -> Circumstances:
        """Return what is known of a check beside its own run; on the old code a failure is no news."""
        sandbox, before = self._setup.sandbox, self._setup.before.get(check.name)
        online = sandbox.level is Level.NONE or CHECKS in sandbox.opened.network
        if job.code is Side.BASE or before is None or before.evidence is None:
            return Circumstances(online=online)
        green = {WHOLE} if before.green else set[str]()
        return Circumstances(
            passed=before.list_ids(TestOutcome.PASSED) | green | self._firsts.get(check.name, frozenset()),
            hangs=before.evidence.timed_out,
            online=online,
        )

    def _once(self, job: CheckJob, check: Check, place: Place, number: int) -> CheckRun:
        patient = check.replace(timeout=self._time_for(check))
        longest = job.longest if check.name is CheckName.TESTS else 0

        def tell(test: str, seconds: float) -> None:
            sides = {"surface": job.surface, "code": job.code}
            event = TestRunsLong(check=check.name, test=test, seconds=seconds, **sides)
            from_thread.run_sync(self._setup.store.emit, event)  # events are numbered in one thread

        watch = CheckWatch(tell=tell, longest=longest)
        # which files tests read tells something where code and checks are of one side
        is_telling = check.name is CheckName.TESTS and job.surface is job.code
        manner = Manner.OBSERVED if is_telling else Manner.PLAIN
        run = place.run(patient, self._setup.choose_sink(job, check, number), manner, watch)
        return run.replace(check=check)

    def _time_for(self, check: Check) -> float:
        """Return the seconds a check may take; tests get thrice their base run if that came to its end."""
        before = self._setup.before.get(check.name)
        if check.name is not CheckName.TESTS or before is None or before.evidence is None:
            return check.timeout
        if before.evidence.timed_out:
            return check.timeout
        return max(check.timeout, 3 * before.evidence.seconds)


Result = TypeVar("Result")


async def run_apart(level: Level, *begin: Callable[[], Awaitable[Result]]) -> list[Result]:
    """Return all results in order; run at the same time only where a sandbox separates the commands.

    Elsewhere runs at once may disturb each other, and what is red by that would prove something.
    """
    if level is Level.FULL:
        return await run_together(*begin)
    return [await each() for each in begin]


async def run_together(*begin: Callable[[], Awaitable[Result]]) -> list[Result]:
    """Return all results in order; raise the first error after all have ended."""
    results: dict[int, Result] = {}
    errors: list[AgentflowError] = []

    async def run(place: int) -> None:
        try:
            results[place] = await begin[place]()
        except AgentflowError as error:
            errors.append(error)

    async with anyio.create_task_group() as group:
        for place in range(len(begin)):
            group.start_soon(run, place)
    if errors:
        raise errors[0]
    return [results[place] for place in range(len(begin))]
