"""The phases: each takes the crew and the task, and returns the task with its gate decided."""

import time
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from agentflow.core.events import Classified
from agentflow.core.pending import OWN_WORDS, Consent, Pending, PendingKind
from agentflow.core.role import Plan
from agentflow.core.run import RunOutcome
from agentflow.core.task import GateStatus, Phase, Status, TaskState
from agentflow.process import timestamp
from agentflow.report.answer import end_without_answer, keeps_document, write_document
from agentflow.report.material import summarize_intent
from agentflow.routing.classify import MOST_FILES
from agentflow.routing.route import (
    phases_beside,
    reclassify_by_plan,
    reclassify_by_size,
)
from agentflow.store.reading import events
from agentflow.verdict.ending import conclude, decide_gate, end_in_phase, end_without_result, fail
from agentflow.workflow.crew import Crew
from agentflow.workflow.deep import explore_deeply
from agentflow.workflow.dispatch import GIVE_UP, dispatch
from agentflow.workflow.refinement import refine
from agentflow.workflow.suspension import decide_or_suspend, suspend_for

PLAN = "plan-1"

CHOICES = ("confirm", f"correct the plan: {OWN_WORDS}", f"adjust the scope: {OWN_WORDS}")


async def work(crew: Crew, task: TaskState) -> TaskState:
    """Run the role of the phase and take its submission."""
    phase = task.current_phase
    answer = task.answers.get(f"lost-{task.runs}")
    if answer is not None and answer.text == GIVE_UP:
        return end_in_phase(task, phase, fail("given up after an interrupted change"))
    run = await dispatch(crew, phase)
    task = crew.store.task
    if run.pause is not None:
        return suspend_for(task, run.pause.pending)
    task = crew.take_tree(task)
    if run.outcome is not RunOutcome.SUBMITTED:
        return end_in_phase(task, phase, end_without_result(run))
    task, event = _reclassify(crew, task, phase)
    if event:
        crew.store.emit(event)
    if task.reads_only and (ending := end_without_answer(task)):
        return end_in_phase(task, phase, ending)
    if phase is Phase.PLANNING and (item := _find_unconfirmed(task)):
        is_asked = phase in task.asked
        task = decide_or_suspend(crew, task, item, Consent.NO if is_asked else crew.consent)
    is_waiting = task.status is Status.SUSPENDED
    return (
        task
        if is_waiting
        else decide_gate(task, GateStatus.PASSED, _summary(task, phase), agent=run.head.agent)
    )


def _reclassify(crew: Crew, task: TaskState, phase: Phase) -> tuple[TaskState, Classified | None]:
    """Return the task in a higher class, if its plan or change needs one."""
    if phase is Phase.PLANNING:
        return reclassify_by_plan(task, crew.table)
    if phase is Phase.IMPLEMENTATION:
        return reclassify_by_size(task, len(crew.changes(task)), crew.table)
    return task, None


def _find_unconfirmed(task: TaskState) -> Pending | None:
    """Return the plan as a pending item, if a person has to confirm it and was not asked yet."""
    if task.plan is None or task.reads_only or PLAN in task.answers:
        return None
    files = {file for step in task.plan.steps for file in step.files}
    if not task.forced and len(files) <= MOST_FILES:
        return None
    intent = task.intent
    shown = {
        "goal": intent.goal,
        "constraints": intent.constraints,
        "assumptions": intent.assumptions,
        "why": "of high risk" if task.forced else f"touches {len(files)} files",
        "plan": _format_plan(task.plan),
    }
    return Pending(
        id=PLAN,
        kind=PendingKind.PLAN,
        tool=None,
        input={key: text for key, text in shown.items() if text},
        options=CHOICES,
        asked_at=timestamp(),
    )


def _format_plan(plan: Plan) -> str:
    steps = (f"{number}. {step.title} ({', '.join(step.files)})" for number, step in enumerate(plan.steps, 1))
    after = (f"must hold: {text}" for text in plan.acceptance)
    return "\n".join((plan.summary, *steps, *after, *(f"risk: {risk}" for risk in plan.risks)))


def _summary(task: TaskState, phase: Phase) -> str:
    results = {
        Phase.EXPLORATION: task.findings,
        Phase.PLANNING: task.plan,
        Phase.IMPLEMENTATION: task.change,
    }
    found = results.get(phase)
    return f"- {found.summary}" if found else "- done"


async def explore(crew: Crew, task: TaskState) -> TaskState:
    """Run one explorer, or one for each angle where exploring is the task."""
    return await (work if task.focus is None else explore_deeply)(crew, task)


async def judge_change(crew: Crew, task: TaskState) -> TaskState:
    """Run the judges of the change, at the same time where both are due."""
    from agentflow.workflow.judging import run_judges  # noqa: PLC0415  # nothing before a change needs it

    return await run_judges(crew, task, phases_beside(task, task.current_phase))


async def complete(crew: Crew, task: TaskState) -> TaskState:
    """Decide how the task ended, and write the document of one that only answers."""
    ending = task.ending or conclude(task)
    crew.store.emit(summarize_intent(task, events(crew.store.folder)))
    if ending.status is Status.ANSWERED and keeps_document(task):
        path = write_document(crew.git.root, task, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()))
        task = task.replace(document=path)
    return task.replace(ending=ending, status=ending.status, active=ending.status is Status.SUSPENDED)


PHASES: Mapping[Phase, Callable[[Crew, TaskState], Awaitable[TaskState]]] = MappingProxyType(
    {
        Phase.REFINEMENT: refine,
        Phase.EXPLORATION: explore,
        Phase.PLANNING: work,
        Phase.IMPLEMENTATION: work,
        Phase.REVIEW: judge_change,
        Phase.VERIFICATION: judge_change,
        Phase.COMPLETE: complete,
    }
)
