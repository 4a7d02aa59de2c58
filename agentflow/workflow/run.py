"""The task loop."""

import time

from agentflow.core.errors import Halted, ModelError, ModelUnavailable
from agentflow.core.events import Paused, PhaseEnded, PhaseStarted, TaskEnded, TaskStarted, Warned
from agentflow.core.exits import Exit
from agentflow.core.task import Ending, GateStatus, Phase, Status, TaskState
from agentflow.process import timestamp
from agentflow.store.reading import events, last_sign
from agentflow.store.seals import fingerprint
from agentflow.workflow.budget import cost_unknown, overspent
from agentflow.workflow.crew import Crew
from agentflow.workflow.deciding import decided
from agentflow.workflow.ledger import intent_told
from agentflow.workflow.phases import PHASES
from agentflow.workflow.report import report
from agentflow.workflow.route import enter, next_phase, together
from agentflow.workflow.session import begun, ended
from agentflow.workflow.waiting import paused, suspended


async def run_task(crew: Crew, task: TaskState) -> TaskState:
    """Take a task, new or saved, to its end or to where it waits for a person."""
    crew.past.begin(last_sign(crew.store.folder))
    crew.store.save(task)
    began = time.monotonic()
    crew.store.emit(
        TaskStarted(
            task=task.task, model=task.model, max_iterations=task.max_iterations, sandbox=task.sandbox
        )
    )
    try:
        task = await begun(crew, task)
        while (phase := next_phase(task)) is not None:
            before, task = task.tree, await _step(crew, task, phase)
            if before is not None and task.tree != before:
                crew.past.note()
            crew.store.save(task)
        await ended(crew, task)
        if warning := cost_unknown(task):
            crew.store.emit(Warned(message=warning))
    except Halted as error:
        return cut_short(crew, Status.BLOCKED, Exit.BLOCKED, f"a hook said stop: {error}")
    finally:
        crew.checking.close()
    return finish(crew, task, began)


async def _step(crew: Crew, task: TaskState, phase: Phase) -> TaskState:
    """Run one phase; a model that cannot go on ends the task, it never ends the program."""
    task = enter(task, phase, timestamp())
    crew.store.save(task)
    if phase is Phase.COMPLETE:
        return await PHASES[phase](crew, task)
    phases = together(task, phase)
    for each in phases:
        crew.store.emit(PhaseStarted(phase=each, iteration=task.iteration))
    begin = time.monotonic()
    try:
        task = await PHASES[phase](crew, task)
    except ModelUnavailable as error:
        return suspended(crew.store.task, _reason(error), Exit.NO_MODEL)
    except ModelError as error:
        ending = Ending(status=Status.FAILED, exit_code=Exit.NO_MODEL, reason=_reason(error))
        task = decided(crew.store.task.replace(ending=ending), GateStatus.FAILED, f"- {ending.reason}")
    if task.status is Status.SUSPENDED:
        return task
    task = _bounded(task)
    for each in phases:
        crew.store.emit(_ended(task, each, time.monotonic() - begin))
    passed = [each for each in phases if task.gate(each).status is GateStatus.PASSED]
    return paused(task, task.pause_after) if task.pause_after in passed else task


def _bounded(task: TaskState) -> TaskState:
    """Return the task, ended if it has used up what it may."""
    over = overspent(task)
    return task if over is None else decided(task.replace(ending=over), GateStatus.FAILED, f"- {over.reason}")


def _ended(task: TaskState, phase: Phase, seconds: float) -> PhaseEnded:
    gate = task.gate(phase)
    return PhaseEnded(
        phase=phase,
        iteration=task.iteration,
        status=gate.status,
        message=gate.message,
        seconds=round(seconds, 3),
    )


def _reason(error: ModelError) -> str:
    return f"{error}. {error.hint}" if error.hint else str(error)


def finish(crew: Crew, task: TaskState, began: float | None = None) -> TaskState:
    """Write the report of a task that is over or waits, and say so; `began` is of the monotonic clock."""
    assert task.ending is not None
    crew.past.note(is_over=True)
    told = intent_told(task, events(crew.store.folder))
    written = crew.store.write_report(report(task, crew.material(task), crew.changes(task), told))
    for item in task.pending:
        crew.store.emit(Paused(pending=item.id, kind=item.kind, tool=item.tool))
    crew.store.emit(
        TaskEnded(
            status=task.ending.status,
            exit_code=task.ending.exit_code,
            reason=task.ending.reason,
            seconds=None if began is None else round(time.monotonic() - began, 3),
            report=fingerprint(written),
        )
    )
    return task


def cut_short(crew: Crew, status: Status, exit_code: Exit, reason: str) -> TaskState:
    """End a task from outside its loop, on a signal or a bug; what was saved stays."""
    ending = Ending(status=status, exit_code=exit_code, reason=reason)
    task = crew.store.task.replace(ending=ending, status=status, active=False)
    crew.store.save(task)
    return finish(crew, task)
