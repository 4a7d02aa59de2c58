"""The program runs the required checks itself, and binds what they show to the tree."""

from functools import partial

from anyio import to_thread

from agentflow.checks.detect import detect
from agentflow.checks.run import execute
from agentflow.core.events import CheckStarted
from agentflow.core.evidence import Check, CheckName, CheckRun, Side
from agentflow.core.task import RequiredCheck, TaskState
from agentflow.loop.threads import stop_asked
from agentflow.store.ledger import Binding
from agentflow.store.tasks import TaskStore
from agentflow.workspace.git import Git


class Checking:
    """Runs required checks for one task and remembers what each showed."""

    def __init__(self, git: Git, store: TaskStore, timeouts: dict[CheckName, float]) -> None:
        self._git = git
        self._store = store
        self._timeouts = timeouts
        self._runs: dict[str, CheckRun] = {}

    def required(self, task: TaskState, files: tuple[str, ...]) -> tuple[Check, ...]:
        """Return the checks that have to hold: as they stood before the task, and any that is new."""
        before = tuple(item.check for item in task.baseline)
        names = {check.name for check in before}
        found = (check for check in detect(self._git.root, files) if check.name not in names)
        return (*before, *(self._limited(check) for check in found))

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
            partial(execute, check, self._git.root, sink, timeout=timeout, cancelled=stop_asked)
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
        sink.unlink()
        self._runs[evidence.id] = CheckRun(
            check=check,
            evidence=evidence,
            outcomes=shown.outcomes,
            findings=shown.findings,
            tail=shown.execution.tail,
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
        return tuple(
            CheckRun(check=item.check) if item.evidence is None else self._runs[item.evidence]
            for item in required
        )

    def shown(self, evidence: tuple[str, ...]) -> tuple[CheckRun, ...]:
        """Return what the program's own evidence of these ids showed."""
        return tuple(self._runs[item] for item in evidence if item in self._runs)
