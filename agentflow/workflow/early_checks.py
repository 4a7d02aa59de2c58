"""The checks on the files from before the task, beside the reading with which the first role begins."""

import math
from collections.abc import Callable, Iterator

import anyio

from agentflow.checks.repository import TEST_COMMAND
from agentflow.core.check_command import format_command
from agentflow.core.errors import AgentflowError
from agentflow.core.events import Warned
from agentflow.core.evidence import CheckName, describe_end
from agentflow.core.task import ChecksBeside, Phase, TaskState
from agentflow.routing.clauses import is_only_about_checks
from agentflow.verdict.case import find_faults
from agentflow.verdict.notes import explain_uncounted
from agentflow.verdict.paths import examine_base
from agentflow.workflow.crew import Crew
from agentflow.workflow.gates import format_check
from agentflow.workflow.task_prompt import write_base_news

_FOUND = ("baseline", "surface", "ignored", "blocked", "foreign_errors")
"""The keys of a task that its base run fills in."""


async def examine(crew: Crew, task: TaskState) -> TaskState:
    """Return the task with what the checks show before any change."""
    task = await examine_base(crew.judging, task, ends_stalled=is_only_about_checks(task.task))
    foreign = crew.checking.find_foreign_errors(task.baseline)
    return task.replace(blocked=crew.checking.find_blocked(task.baseline), foreign_errors=foreign)


def describe_base(crew: Crew, task: TaskState) -> str:
    """Warn of what keeps the result below verified; return how the checks stand, as the gate says it."""
    for warning in _list_warnings(crew, task):
        crew.store.emit(Warned(message=warning))
    lines = map(format_check, crew.checking.find_runs(task.baseline))
    return "\n".join(lines) or "- no checks found in this repository"


class EarlyChecks:
    """Runs them in the background; the result joins the task before anything can change a file.

    Until then it is in no saved state, so that a task that is killed meanwhile runs them again.
    """

    def __init__(self, begin: Callable[..., object], grace: float) -> None:
        self._begin = begin
        self._grace = grace
        self._done = anyio.Event()
        self._found: TaskState | None = None
        self._failure: AgentflowError | None = None
        self._news = ""

    def start(self, crew: Crew, task: TaskState) -> None:
        self._begin(self._run, crew, task)

    async def _run(self, crew: Crew, task: TaskState) -> None:
        try:
            self._found = await examine(crew, task)
        except AgentflowError as error:
            self._failure = error
        self._done.set()

    async def wait(self, seconds: float = math.inf) -> TaskState | None:
        """Return the task with the result, or None if that takes longer. Raises what the run raised."""
        with anyio.move_on_after(seconds):
            await self._done.wait()
            if self._failure is not None:
                raise self._failure
            return self._found
        return None

    async def find_soon(self, crew: Crew, task: TaskState) -> TaskState:
        """Return the task with the result, or as one whose first role begins beside the run."""
        self.start(crew, task)
        found = await self.wait(self._grace) if self._grace else None
        return found or task.replace(beside=ChecksBeside(phase=task.steps[0]))

    async def settle(self, crew: Crew) -> None:
        """Wait for the result and save it; nothing where that is done."""
        task = crew.store.task
        if not awaits_base(task):
            return
        found = await self.wait()
        assert found is not None
        assert isinstance(task.beside, ChecksBeside)
        task = crew.store.task.replace(
            beside=task.beside.replace(is_settled=True), **{key: getattr(found, key) for key in _FOUND}
        )
        gate = task.get_gate(Phase.REFINEMENT).replace(message=describe_base(crew, task))
        crew.store.save(task.with_gate(Phase.REFINEMENT, gate))

    def take_news(self, crew: Crew) -> str:
        """Return what the role that began beside the run is told of it, once it is there."""
        if not self._news and not awaits_base(crew.store.task):
            self._news = write_base_news(crew.gather_material(crew.store.task))
        return self._news


def awaits_base(task: TaskState) -> bool:
    """Return whether the first role works, or may go on, without the result of the base run."""
    return isinstance(task.beside, ChecksBeside) and not task.beside.is_settled


def _list_warnings(crew: Crew, task: TaskState) -> Iterator[str]:
    at_best = "the result is at best exit code 4"
    for run in crew.checking.find_runs(task.baseline):
        name = run.check.name
        if name is CheckName.TESTS and (found := crew.checking.find_watching(run.check)):
            yield (
                f"{name}: `{format_command(run.check.command)}` does not end, since {found.option} watches "
                f"for changes: write `{found.instead}` into {TEST_COMMAND}"
            )
        if why := task.blocked.get(name) or run.check.left_out:
            part = " as a whole" if run.tests_with_result else ""
            cost = f"; without it {at_best}. To skip it: --skip-check {name} --reason REASON"
            yield f"{name} cannot run{part} here: {why}{'' if run.check.only_looks else cost}"
        elif run.evidence and not (run.green or run.evidence.timed_out or find_faults(run)):
            cost = "" if run.check.only_looks else f"; {at_best}"
            end = describe_end(run.evidence)
            yield f"{name} fails before the change, without a failing test or finding: {end}{cost}"
        elif name is CheckName.TESTS and run.green and run.counts is None:
            yield f"{explain_uncounted(run.check)}; {at_best}"
