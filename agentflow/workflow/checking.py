"""The program runs the required checks itself, on copies of a tree, and binds what they show to it."""

from functools import partial

import anyio
from anyio import to_thread

from agentflow.checks.detect import detect
from agentflow.checks.environment import blockage, required_python
from agentflow.checks.interpreter import choose, version
from agentflow.checks.repository import Repository
from agentflow.checks.results import findings
from agentflow.checks.run import Shown, execute
from agentflow.checks.surface import belongs
from agentflow.checks.wellknown import SKIP_TESTS, WellKnown, commanded
from agentflow.core.errors import CorruptState
from agentflow.core.events import CheckStarted
from agentflow.core.evidence import Check, CheckName, CheckRun, Evidence, Side
from agentflow.core.record import Record
from agentflow.core.task import RequiredCheck, TaskState
from agentflow.loop.threads import stop_asked
from agentflow.sandbox.profile import Level
from agentflow.sandbox.reasons import likely_reason
from agentflow.sandbox.run import Sandbox
from agentflow.store.ledger import Binding
from agentflow.store.tasks import TaskStore
from agentflow.workflow.overrides import override
from agentflow.workspace.copies import installed_places, paths_for
from agentflow.workspace.fence import Fence
from agentflow.workspace.git import Git
from agentflow.workspace.ignored import fingerprint, unchanged
from agentflow.workspace.stage import Stage

TAIL_CHARS = 8_000
Results = tuple[RequiredCheck, ...]


class Order(Record):
    """Checks to be run on one tree, and whose code stands there under whose checks."""

    checks: tuple[Check, ...]
    tree: str
    surface: Side
    code: Side


class Checking:
    """Runs required checks for one task and remembers what each showed."""

    def __init__(
        self,
        git: Git,
        sandbox: Sandbox,
        store: TaskStore,
        timeouts: dict[CheckName, float],
        said: WellKnown,
    ) -> None:
        self._git = git
        self._sandbox = sandbox
        self._store = store
        self._timeouts = timeouts
        self._said = said
        self._runs: dict[str, CheckRun] = {}
        self._places: tuple[str, ...] | None = None

    def required(self, task: TaskState, files: tuple[str, ...]) -> tuple[Check, ...]:
        """Return the checks that have to hold: as they stood before the task, and any that is new."""
        before = tuple(item.check for item in task.baseline)
        names = {*(check.name for check in before), *(override.check for override in task.overrides)}
        all_found = commanded(detect(self._sandbox, files), self._said)
        found = (check for check in all_found if check.name not in names)
        limits = self._timeouts
        return (*before, *(check.replace(timeout=limits.get(check.name, check.timeout)) for check in found))

    def repository(self, files: tuple[str, ...]) -> Repository:
        """Return the repository as the detection of checks reads it."""
        return Repository(sandbox=self._sandbox, files=files, known=frozenset(files))

    def told(self, task: TaskState) -> TaskState:
        """Return the task with what the repository's trusted files say of its tests."""
        skip = self._said.skip
        skipped = (override(CheckName.TESTS, skip, SKIP_TESTS),) if skip else ()
        return task.replace(overrides=(*task.overrides, *skipped), known_failures=self._said.known)

    def blockage(self, required: tuple[RequiredCheck, ...], files: tuple[str, ...]) -> str:
        """Return why this machine cannot run the tests at all, whatever the code says; or empty."""
        run = next((run for run in self.runs(required) if run.check.name is CheckName.TESTS), None)
        if run is None or run.green:
            return ""
        repository = self.repository(files)
        output = self._store.ledger.output(run.evidence.id) if run.evidence else ""
        running = version(repository) if required_python(repository) else None
        return blockage(run, output, repository, running)

    async def run(self, task: TaskState, *orders: Order) -> tuple[Results, ...]:
        """Run the checks of each order one after the other, and the orders side by side."""
        seen = await to_thread.run_sync(self._seen, task)
        results: dict[int, Results] = {}
        turns = [anyio.Event() for _ in range(len(orders) + 1)]
        turns[0].set()

        async def follow(place: int, order: Order) -> None:
            results[place] = await self._follow(task, order, seen, turns[place])
            turns[place + 1].set()

        async with anyio.create_task_group() as group:
            for place, order in enumerate(orders):
                group.start_soon(follow, place, order)
        return tuple(results[place] for place in range(len(orders)))

    def _seen(self, task: TaskState) -> tuple[str, ...]:
        """Return which ignored files a check may see: those that are as they were before the task."""
        entries = self._git.ignored()
        if self._places is None:
            self._places = self._found_places()
        if not task.baseline:
            return entries
        return unchanged(entries, task.ignored, fingerprint(self._git.root, entries))

    def _found_places(self) -> tuple[str, ...]:
        """Return from where Python imports this repository's packages, for a copy to do likewise."""
        if self._sandbox.level is Level.FULL:
            return ()  # the copy stands at the repository's own place
        files = Fence(self._git.root).files()
        if not any(name.endswith(".py") for name in files):
            return ()
        return installed_places(self._sandbox, choose(self.repository(files)).words)

    async def _follow(
        self, task: TaskState, order: Order, seen: tuple[str, ...], turn: anyio.Event
    ) -> Results:
        """Run an order in a copy of its own; what it shows is kept when it is its turn, for ids in order."""
        stage = Stage(self._git, order.tree, seen)
        shown: list[Shown | None] = []
        kept: list[RequiredCheck] = []
        try:
            await to_thread.run_sync(stage.fill)
            for place, check in enumerate(order.checks):
                if place:
                    await to_thread.run_sync(stage.restore, partial(belongs, task.surface))
                shown.append(await self._one(task, check, order, stage))
                if place == len(order.checks) - 1:
                    await turn.wait()
                if turn.is_set():
                    kept += [self._kept(task, order, at, shown[at]) for at in range(len(kept), len(shown))]
            return tuple(kept)
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(stage.remove)

    async def _one(self, task: TaskState, check: Check, order: Order, stage: Stage) -> Shown | None:
        """Return what a check shows in a copy; None where it cannot run."""
        if check.missing is not None:
            return None
        self._store.emit(
            CheckStarted(check=check.name, command=check.command, surface=order.surface, code=order.code)
        )
        places = paths_for(stage.folder, self._places or ())
        begin = partial(
            execute,
            check,
            self._sandbox.on(stage.folder, stage.shown),
            self._store.folder / "outputs" / f"check-{check.name}-{order.surface}-{order.code}.out",
            timeout=self._time_for(task, check),
            cancelled=stop_asked,
            env={"PYTHONPATH": places} if places else {},
        )
        shown = await to_thread.run_sync(begin)
        changed = await to_thread.run_sync(stage.changed)
        return shown.replace(execution=shown.execution.replace(changed=changed))

    def _kept(self, task: TaskState, order: Order, place: int, shown: Shown | None) -> RequiredCheck:
        check = order.checks[place]
        if shown is None:
            return RequiredCheck(check=check)
        evidence = self._store.ledger.record_check(
            shown.execution,
            Binding(
                check=check.name,
                tree=order.tree,
                surface=order.surface,
                code=order.code,
                counts=shown.counts,
                outcomes=dict(shown.outcomes),
            ),
            iteration=task.iteration,
        )
        self._runs[evidence.id] = CheckRun(
            check=check,
            evidence=evidence,
            outcomes=shown.outcomes,
            findings=shown.findings,
            tail=shown.execution.tail,
            hint=self._hint(evidence, shown.execution.tail),
        )
        return RequiredCheck(check=check, evidence=evidence.id)

    def _time_for(self, task: TaskState, check: Check) -> float:
        """Return the seconds a check may take: for tests at least three times the base run."""
        base = next((run for run in self.runs(task.baseline) if run.check.name is check.name), None)
        if check.name is not CheckName.TESTS or base is None or base.evidence is None:
            return check.timeout
        return max(check.timeout, 3 * base.evidence.seconds)

    def runs(self, required: tuple[RequiredCheck, ...]) -> tuple[CheckRun, ...]:
        """Return what checks showed, in their order."""
        return tuple(self._recalled(item) for item in required)

    def shown(self, evidence: tuple[str, ...]) -> tuple[CheckRun, ...]:
        """Return what the program's own evidence of these ids showed."""
        checks = {
            item.check.name: item.check for item in (*self._store.task.baseline, *self._store.task.final)
        }
        records = (self._store.ledger.find(item) for item in evidence)
        return tuple(
            self._recalled(RequiredCheck(check=checks[record.check], evidence=record.id))
            for record in records
            if record is not None and record.check in checks
        )

    def _recalled(self, item: RequiredCheck) -> CheckRun:
        """Return what a check showed, from the files when another process ran it."""
        if item.evidence is None:
            return CheckRun(check=item.check)
        if item.evidence not in self._runs:
            self._runs[item.evidence] = self._reread(item.check, item.evidence)
        return self._runs[item.evidence]

    def _reread(self, check: Check, evidence_id: str) -> CheckRun:
        evidence = self._store.ledger.find(evidence_id)
        if evidence is None:
            raise CorruptState(f"{self._store.folder}: evidence {evidence_id} is gone")
        output = self._store.ledger.output(evidence_id)
        return CheckRun(
            check=check,
            evidence=evidence,
            outcomes=self._store.ledger.outcomes(evidence),
            findings={} if check.name is CheckName.TESTS else findings(output),
            tail=output[-TAIL_CHARS:],
            hint=self._hint(evidence, output[-TAIL_CHARS:]),
        )

    def _hint(self, evidence: Evidence, tail: str) -> str:
        return likely_reason(self._sandbox, tail) if evidence.exit_code != 0 else ""
