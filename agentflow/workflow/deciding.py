"""How a phase leaves its task: with its gate decided, or with an end."""

from agentflow.core.evidence import RED, CheckRun, ended, mixed
from agentflow.core.exits import Exit
from agentflow.core.task import Ending, Gate, GateStatus, Phase, Status, TaskState
from agentflow.process import timestamp


def decided(
    task: TaskState, status: GateStatus, message: str, *, agent: str | None = None, phase: Phase | None = None
) -> TaskState:
    """Return the task with the gate of a phase decided, of the current one if none is named."""
    gate = Gate(status=status, agent=agent, tree=task.tree, timestamp=timestamp(), message=message)
    return task.with_gate(phase or task.current_phase, gate)


def failed(reason: str) -> Ending:
    return Ending(status=Status.FAILED, exit_code=Exit.NOT_VERIFIED, reason=reason)


def ended_by(task: TaskState, phase: Phase, ending: Ending, *, agent: str | None = None) -> TaskState:
    """Return the task ended in a phase that has no usable result."""
    task = task.replace(ending=ending)
    return decided(task, GateStatus.FAILED, f"- {ending.reason}", agent=agent, phase=phase)


def check_line(run: CheckRun) -> str:
    """Return one check as a line of Markdown."""
    evidence = run.evidence
    if evidence is None:
        return f"- {run.check.name}: not run ({run.check.missing})"
    failing = sorted(run.ids(*RED))
    names = f": {', '.join(failing[:5])}" if failing else ""
    hint = f"\n  {run.hint}" if run.hint else ""
    return f"- `{run.check.command}` {ended(evidence)}{mixed(evidence)} (evidence {evidence.id}){names}{hint}"
