"""The task loop."""

import time

from agentflow.core.errors import ModelError, ModelUnavailable
from agentflow.core.events import PhaseEnded, PhaseStarted, TaskEnded, TaskStarted
from agentflow.core.exits import Exit
from agentflow.core.task import Ending, GateStatus, Phase, Status, TaskState
from agentflow.process import timestamp
from agentflow.workflow.crew import Crew
from agentflow.workflow.phases import PHASES, decided
from agentflow.workflow.report import report
from agentflow.workflow.route import enter, next_phase


async def run_task(crew: Crew, task: TaskState) -> TaskState:
    """Take a task, new or saved, to its end and return how it stands then."""
    crew.store.emit(TaskStarted(task=task.task, model=task.model, max_iterations=task.max_iterations))
    while (phase := next_phase(task)) is not None:
        task = await _step(crew, task, phase)
        crew.store.save(task)
    return finish(crew, task)


async def _step(crew: Crew, task: TaskState, phase: Phase) -> TaskState:
    """Run one phase; a model that cannot go on ends the task, it never ends the program."""
    task = enter(task, phase, timestamp())
    crew.store.save(task)
    if phase is Phase.COMPLETE:
        return await PHASES[phase](crew, task)
    crew.store.emit(PhaseStarted(phase=phase, iteration=task.iteration))
    begin = time.monotonic()
    try:
        task = await PHASES[phase](crew, task)
    except ModelError as error:
        task = _without_model(crew.store.task, error)
    gate = task.gate(phase)
    crew.store.emit(
        PhaseEnded(
            phase=phase,
            iteration=task.iteration,
            status=gate.status,
            message=gate.message,
            seconds=round(time.monotonic() - begin, 3),
        )
    )
    return task


def _without_model(task: TaskState, error: ModelError) -> TaskState:
    status = Status.SUSPENDED if isinstance(error, ModelUnavailable) else Status.FAILED
    reason = f"{error}. {error.hint}" if error.hint else str(error)
    ending = Ending(status=status, exit_code=Exit.NO_MODEL, reason=reason)
    return decided(task.replace(ending=ending), GateStatus.FAILED, f"- {reason}")


def finish(crew: Crew, task: TaskState) -> TaskState:
    """Write the report of a task that is over, and say so."""
    assert task.ending is not None
    crew.store.write_report(report(task, crew.material(task), crew.changes(task)))
    crew.store.emit(
        TaskEnded(status=task.ending.status, exit_code=task.ending.exit_code, reason=task.ending.reason)
    )
    return task


def cut_short(crew: Crew, status: Status, exit_code: Exit, reason: str) -> TaskState:
    """End a task from outside its loop, on a signal or a bug; what was saved stays."""
    ending = Ending(status=status, exit_code=exit_code, reason=reason)
    task = crew.store.task.replace(ending=ending, status=status, active=False)
    crew.store.save(task)
    return finish(crew, task)
