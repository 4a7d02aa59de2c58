"""The program runs the required checks itself, and binds what they show to the tree."""

from functools import partial

from anyio import to_thread

from agentflow.checks.detect import detect
from agentflow.checks.environment import blockage
from agentflow.checks.interpreter import version
from agentflow.checks.repository import Repository
from agentflow.checks.results import findings
from agentflow.checks.run import execute
from agentflow.checks.wellknown import SKIP_TESTS, WellKnown, commanded
from agentflow.core.errors import CorruptState
from agentflow.core.events import CheckStarted
from agentflow.core.evidence import Check, CheckName, CheckRun, Evidence, Side
from agentflow.core.task import RequiredCheck, TaskState
from agentflow.loop.threads import stop_asked
from agentflow.sandbox.reasons import likely_reason
from agentflow.sandbox.run import Sandbox
from agentflow.store.ledger import Binding
from agentflow.store.tasks import TaskStore
from agentflow.workflow.overrides import override
from agentflow.workspace.git import Git

TAIL_CHARS = 8_000


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

    def required(self, task: TaskState, files: tuple[str, ...]) -> tuple[Check, ...]:
        """Return the checks that have to hold: as they stood before the task, and any that is new."""
        before = tuple(item.check for item in task.baseline)
        names = {*(check.name for check in before), *(override.check for override in task.overrides)}
        all_found = commanded(detect(self._sandbox, files), self._said)
        found = (check for check in all_found if check.name not in names)
        return (*before, *(self._limited(check) for check in found))

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
        repository = Repository(sandbox=self._sandbox, files=files, known=frozenset(files))
        output = self._store.ledger.output(run.evidence.id) if run.evidence else ""
        return blockage(run, output, repository, version(repository))

    def _limited(self, check: Check) -> Check:
        return check.replace(timeout=self._timeouts.get(check.name, check.timeout))

    async def run(self, task: TaskState, checks: tuple[Check, ...], side: Side) -> tuple[RequiredCheck, ...]:
        """Run checks on the tree as it is now, one after the other."""
        return tuple([await self._one(task, check, side) for check in checks])

    async def _one(self, task: TaskState, check: Check, side: Side) -> RequiredCheck:
        if check.missing is not None:
            return RequiredCheck(check=check)
        self._store.emit(CheckStarted(check=check.name, command=check.command))
        sink = self._store.folder / "outputs" / f"check-{check.name}.out"
        before = self._git.tree()
        timeout = self._time_for(task, check)
        shown = await to_thread.run_sync(
            partial(execute, check, self._sandbox, sink, timeout=timeout, cancelled=stop_asked)
        )
        evidence = self._store.ledger.record_check(
            shown.execution,
            Binding(
                check=check.name,
                tree_before=before,
                tree_after=self._git.tree(),
                side=side,
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

    def holds_for(self, task: TaskState) -> bool:
        """Return whether every required check was already run on the tree as it is now."""
        known = self.runs(task.final)
        return bool(known) and all(
            run.evidence is None or run.evidence.tree_before == task.tree for run in known
        )
