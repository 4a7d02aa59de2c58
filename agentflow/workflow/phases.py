"""The phases: each takes the crew and the task, and returns the task with its gate decided."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from agentflow.core.evidence import RED, CheckRun, Side, Verdict
from agentflow.core.run import Run, RunOutcome
from agentflow.core.task import Failure, Gate, GateStatus, Intent, Phase, Status, TaskState
from agentflow.process import timestamp
from agentflow.workflow.conclusion import conclude
from agentflow.workflow.crew import Crew
from agentflow.workflow.gate import Case, judge, weigh
from agentflow.workflow.intent import preserves_behaviour, targets
from agentflow.workflow.outcomes import without_result
from agentflow.workflow.route import DEFAULT_ROUTE, ROLE_OF, with_route
from agentflow.workflow.session import stopped
from agentflow.workflow.waiting import waiting


async def refine(crew: Crew, task: TaskState) -> TaskState:
    """Write down what is asked, and how the repository's checks stand before anything changes."""
    tree = crew.git.tree()
    intent = task.intent if task.intent.goal else Intent(goal=task.task)
    task = with_route(task.replace(intent=intent, base_tree=tree, tree=tree), DEFAULT_ROUTE)
    crew.store.save(task)
    checks = crew.checking.required(task, crew.workspace.files())
    task = task.replace(baseline=await crew.checking.run(task, checks, Side.BASE))
    lines = [_check_line(run) for run in crew.checking.runs(task.baseline)]
    return decided(task, GateStatus.PASSED, "\n".join(lines) or "- no check found in this repository")


async def work(crew: Crew, task: TaskState) -> TaskState:
    """Run the role of the phase and take its submission."""
    phase = task.current_phase
    task, run = await crew.dispatch(task, phase)
    if run.pause is not None:
        return waiting(task, run.pause.pending)
    task = task.replace(tree=crew.git.tree())
    if run.outcome is not RunOutcome.SUBMITTED:
        return _without_result(task, run)
    return decided(task, GateStatus.PASSED, _summary(task, phase), agent=run.head.agent)


async def verify(crew: Crew, task: TaskState) -> TaskState:
    """Run the required checks on the tree as it is, judge, and ask the verifier only if all hold."""
    task = task.replace(tree=crew.git.tree())
    if task.tree == task.base_tree:
        return _judged(task.replace(final=()), judge(_case(crew, task)))
    if not crew.checking.holds_for(task):
        checks = crew.checking.required(task, crew.workspace.files())
        task = task.replace(final=await crew.checking.run(task, checks, Side.FINAL))
    verdict = judge(_case(crew, task))
    if verdict.passed:
        task, run = await crew.dispatch(task, Phase.VERIFICATION)
        if run.pause is not None:
            return waiting(task, run.pause.pending)
        if run.outcome is not RunOutcome.SUBMITTED or task.judgement is None:
            return _without_result(task, run)
        verdict = judge(_case(crew, task))
        verdict = weigh(verdict, task.judgement, crew.changes(task)) if verdict.passed else verdict
    if verdict.passed:
        task, verdict = await stopped(crew, task, verdict)
    return _judged(task, verdict, _red_lines(crew, task))


async def complete(_: Crew, task: TaskState) -> TaskState:
    """Decide how the task ended, and write the report."""
    ending = task.ending or conclude(task)
    return task.replace(ending=ending, status=ending.status, active=ending.status is Status.SUSPENDED)


PHASES: Mapping[Phase, Callable[[Crew, TaskState], Awaitable[TaskState]]] = MappingProxyType(
    {
        Phase.REFINEMENT: refine,
        Phase.EXPLORATION: work,
        Phase.PLANNING: work,
        Phase.IMPLEMENTATION: work,
        Phase.REVIEW: work,
        Phase.VERIFICATION: verify,
        Phase.COMPLETE: complete,
    }
)


def decided(task: TaskState, status: GateStatus, message: str, *, agent: str | None = None) -> TaskState:
    """Return the task with the gate of its phase decided."""
    gate = Gate(status=status, agent=agent, tree=task.tree, timestamp=timestamp(), message=message)
    return task.with_gate(task.current_phase, gate)


def _case(crew: Crew, task: TaskState) -> Case:
    """Gather what the verdict rests on, with the tree as it is at this very moment."""
    assert task.base_tree is not None
    assert task.tree is not None
    baseline = crew.checking.runs(task.baseline)
    failing = frozenset[str]().union(*(run.ids(*RED) for run in baseline))
    return Case(
        base_tree=task.base_tree,
        tree=task.tree,
        drift=(
            *crew.git.changes(task.tree, crew.git.tree()),
            *crew.git.counted(crew.store.ledger.altered(task.iteration)),
        ),
        baseline=baseline,
        final=crew.checking.runs(task.final),
        targets=targets(task.task, failing),
        preserving=preserves_behaviour(task.task),
    )


def _judged(task: TaskState, verdict: Verdict, lines: tuple[str, ...] = ()) -> TaskState:
    """Return the task with its verdict; a failed one is what the implementer is told next."""
    task = task.replace(verdict=verdict)
    agent = ROLE_OF[Phase.VERIFICATION] if task.judgement else None
    if verdict.passed:
        caveats = f" with caveat: {', '.join(verdict.caveats)}" if verdict.caveats else ""
        message = f"- every required check holds (evidence {', '.join(verdict.evidence)}){caveats}"
        return decided(task, GateStatus.PASSED, message, agent=agent)
    failure = Failure(
        iteration=task.iteration,
        phase=task.current_phase,
        tree=task.tree or "",
        signature=hashlib.sha256("\n".join(verdict.reasons).encode()).hexdigest()[:16],
        reasons=verdict.reasons,
        evidence=verdict.evidence,
    )
    message = "\n".join((*(f"- {reason}" for reason in verdict.reasons), *lines))
    return decided(task.replace(failures=(*task.failures, failure)), GateStatus.FAILED, message, agent=agent)


def _without_result(task: TaskState, run: Run) -> TaskState:
    """Return the task ended by a role that gave no result."""
    ending = without_result(run)
    return decided(task.replace(ending=ending), GateStatus.FAILED, f"- {ending.reason}", agent=run.head.agent)


def _summary(task: TaskState, phase: Phase) -> str:
    results = {
        Phase.EXPLORATION: task.findings,
        Phase.PLANNING: task.plan,
        Phase.IMPLEMENTATION: task.change,
    }
    found = results.get(phase)
    return f"- {found.summary}" if found else "- done"


def _check_line(run: CheckRun) -> str:
    evidence = run.evidence
    if evidence is None:
        return f"- {run.check.name}: not run ({run.check.missing})"
    code = "timed out" if evidence.timed_out else f"exit {evidence.exit_code}"
    failing = sorted(run.ids(*RED))
    names = f": {', '.join(failing[:5])}" if failing else ""
    hint = f"\n  {run.hint}" if run.hint else ""
    return f"- `{run.check.command}` {code} (evidence {evidence.id}){names}{hint}"


def _red_lines(crew: Crew, task: TaskState) -> tuple[str, ...]:
    return tuple(_check_line(run) for run in crew.checking.runs(task.final) if not run.green)
