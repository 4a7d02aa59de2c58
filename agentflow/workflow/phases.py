"""The phases: each takes the crew and the task, and returns the task with its gate decided."""

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from types import MappingProxyType

from agentflow.core.errors import Exit
from agentflow.core.events import Answered, Classified, Warned
from agentflow.core.evidence import RED, CheckName
from agentflow.core.pending import Consent, Pending, decided_now
from agentflow.core.routing import Action
from agentflow.core.run import RunOutcome
from agentflow.core.task import Ending, GateStatus, Phase, Status, TaskState
from agentflow.core.verdict import Caveat, Verdict
from agentflow.report.answer import end_without_answer, keeps_document, write_document
from agentflow.report.material import summarize_intent
from agentflow.report.outcomes import end_without_result
from agentflow.routing.route import (
    classify_task,
    classify_words,
    phases_beside,
    reclassify_by_plan,
    reclassify_by_size,
    shorten_route,
)
from agentflow.store.reading import events
from agentflow.verdict.baseline import examine_base
from agentflow.verdict.case import uncounted
from agentflow.verdict.conclusion import check_line, conclude, decided, ended_by, failed
from agentflow.verdict.targets import aims
from agentflow.workflow.crew import Crew
from agentflow.workflow.deep import explore_deeply
from agentflow.workflow.dispatch import GIVE_UP, dispatch
from agentflow.workflow.intent import QUESTION, gap_of, intent_of, settled, unconfirmed
from agentflow.workflow.survey import surveyed
from agentflow.workflow.waiting import answered, waiting


async def refine(crew: Crew, task: TaskState) -> TaskState:
    """Write down what is asked, the route it takes, and how the checks stand before anything changes."""
    tree = task.base_tree or crew.git.tree()
    intent = task.intent if task.intent.goal else intent_of(task.task, crew.table)
    task, event = classify_task(task.replace(intent=intent, base_tree=tree, tree=tree), crew.table)
    crew.store.emit(event)
    task = _clarified(crew, task)
    crew.store.save(task)
    if task.status is Status.SUSPENDED:
        return task
    if task.reads_only:
        task = surveyed(crew, task)
        return decided(task, GateStatus.PASSED, "- changes nothing, so that no check is needed")
    await crew.reach()
    task = surveyed(crew, await examine_base(crew.judging, crew.checking.told(task)))
    task = task.replace(blocked=crew.checking.blocked(task.baseline))
    able = [item for item in task.baseline if item.check.name not in task.blocked]
    if CheckName.TESTS in task.blocked and not able:
        return _blocked(task, f"tests cannot run: {task.blocked[CheckName.TESTS]}")
    for warning in _limits(crew, task):
        crew.store.emit(Warned(message=warning))
    task = _routed(crew, task)
    lines = [check_line(run) for run in crew.checking.runs(task.baseline)]
    return decided(task, GateStatus.PASSED, "\n".join(lines) or "- no checks found in this repository")


def _routed(crew: Crew, task: TaskState) -> TaskState:
    """Return the task on the route that its failing checks allow."""
    runs = [run for run in crew.checking.runs(task.baseline) if run.evidence is not None and not run.green]
    failing = frozenset[str]().union(*(run.ids(*RED) or {str(run.check.name)} for run in runs))
    wanted = aims(crew.git, task.base_tree, task.task, failing)
    task, event = shorten_route(task, wanted.asked | wanted.guessed, crew.table)
    if event:
        crew.store.emit(event)
    return task


def _limits(crew: Crew, task: TaskState) -> Iterator[str]:
    """Yield what keeps the result below verified on this machine, before anybody has worked for it."""
    at_best = "the result is at best exit code 4"
    for run in crew.checking.runs(task.baseline):
        name = run.check.name
        if why := task.blocked.get(name) or run.check.left_out:
            yield (
                f"{name} cannot run here: {why}; without it {at_best}. "
                f"To leave it out knowingly: --skip-check {name} --reason REASON"
            )
        elif name is CheckName.TESTS and run.green and run.counts is None:
            yield f"{uncounted(run.check)}; {at_best}"


def _clarified(crew: Crew, task: TaskState) -> TaskState:
    """Return the task with what is unclear in it assumed, or waiting where a person can be asked at once."""
    if QUESTION in task.answers or task.focus is not None:
        return settled(task)
    found = classify_words(task, crew.table)
    gap = gap_of(task, found, crew.table)
    if gap is None:
        return task
    if crew.attended and found.action is not Action.ASSUME:
        return waiting(task, gap)
    return settled(_decided_now(crew, task, gap, Consent.NO))


def _decided_now(crew: Crew, task: TaskState, item: Pending, consent: Consent) -> TaskState:
    """Return the task with what waits decided as was said beforehand, or waiting for a person."""
    decision = decided_now(consent, item)
    if decision is None:
        return waiting(task, item)
    crew.store.emit(Answered(pending=item.id, approved=decision.approved, by=decision.by))
    return answered(task, item, decision)


async def work(crew: Crew, task: TaskState) -> TaskState:
    """Run the role of the phase and take its submission."""
    phase = task.current_phase
    answer = task.answers.get(f"lost-{task.runs}")
    if answer is not None and answer.text == GIVE_UP:
        return ended_by(task, phase, failed("given up after an interrupted change"))
    run = await dispatch(crew, phase)
    task = crew.store.task
    if run.pause is not None:
        return waiting(task, run.pause.pending)
    task = crew.look(task)
    if run.outcome is not RunOutcome.SUBMITTED:
        return ended_by(task, phase, end_without_result(run))
    task, event = _grown(crew, task, phase)
    if event:
        crew.store.emit(event)
    if task.reads_only and (ending := end_without_answer(task)):
        return ended_by(task, phase, ending)
    if phase is Phase.PLANNING and (item := unconfirmed(task)):
        is_asked = phase in task.asked
        task = _decided_now(crew, task, item, Consent.NO if is_asked else crew.consent)
    is_waiting = task.status is Status.SUSPENDED
    return (
        task if is_waiting else decided(task, GateStatus.PASSED, _summary(task, phase), agent=run.head.agent)
    )


async def explore(crew: Crew, task: TaskState) -> TaskState:
    """Explore once, as the task needs it, or from every angle where that is the task."""
    return await (work if task.focus is None else explore_deeply)(crew, task)


def _grown(crew: Crew, task: TaskState, phase: Phase) -> tuple[TaskState, Classified | None]:
    """Return the task in the class that its plan or its change turns out to need."""
    if phase is Phase.PLANNING:
        return reclassify_by_plan(task, crew.table)
    if phase is Phase.IMPLEMENTATION:
        return reclassify_by_size(task, len(crew.changes(task)), crew.table)
    return task, None


async def judge_change(crew: Crew, task: TaskState) -> TaskState:
    """Let the judges of the change have their say, side by side where both are due."""
    from agentflow.workflow.judging import judged  # noqa: PLC0415  # nothing before a change needs it

    return await judged(crew, task, phases_beside(task, task.current_phase))


async def complete(crew: Crew, task: TaskState) -> TaskState:
    """Decide how the task ended, and keep the answer of one that changed nothing."""
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


def _blocked(task: TaskState, why: str) -> TaskState:
    """Return the task ended by a machine on which its tests cannot run; nobody is asked to mend that."""
    evidence = tuple(item.evidence for item in task.baseline if item.evidence is not None)
    caveats = (Caveat.ENVIRONMENT_BLOCKED,)
    verdict = Verdict(passed=False, reasons=(), evidence=evidence, caveats=caveats, notes=(why,))
    ending = Ending(
        status=Status.VERIFIED_WITH_CAVEAT,
        exit_code=Exit.CAVEAT,
        reason=f"environment blocked, nothing was changed or verified: {why}",
    )
    return ended_by(task.replace(verdict=verdict), task.current_phase, ending)


def _summary(task: TaskState, phase: Phase) -> str:
    results = {
        Phase.EXPLORATION: task.findings,
        Phase.PLANNING: task.plan,
        Phase.IMPLEMENTATION: task.change,
    }
    found = results.get(phase)
    return f"- {found.summary}" if found else "- done"
