"""The gates of phases: how one is decided, how those of one tree are merged, and a task that ends in one."""

from collections.abc import Mapping

from agentflow.core.check_command import format_command
from agentflow.core.events import GatesMerged
from agentflow.core.evidence import RED, CheckRun, summarize_evidence
from agentflow.core.task import Ending, Gate, GateStatus, Phase, TaskState
from agentflow.process import make_timestamp
from agentflow.redact import list_some


def decide_gate(
    task: TaskState, status: GateStatus, message: str, *, agent: str | None = None, phase: Phase | None = None
) -> TaskState:
    """Return the task with a phase's gate decided; the current phase if none is named."""
    gate = Gate(status=status, agent=agent, tree=task.tree, timestamp=make_timestamp(), message=message)
    return task.with_gate(phase or task.current_phase, gate)


def end_in_phase(task: TaskState, phase: Phase, ending: Ending, *, agent: str | None = None) -> TaskState:
    """Return the task ended by a phase without a usable result."""
    task = task.replace(ending=ending)
    return decide_gate(task, GateStatus.FAILED, f"- {ending.reason}", agent=agent, phase=phase)


def format_check(run: CheckRun) -> str:
    """Return one check as a line of Markdown."""
    evidence = run.evidence
    if evidence is None:
        return f"- {run.check.name}: not run ({run.check.missing})"
    failing = sorted(run.list_ids(*RED))
    names = f": {list_some(failing)}" if failing else ""
    hint = f"\n  {run.hint}" if run.hint else ""
    command = format_command(run.check.command)
    return f"- `{command}` {summarize_evidence(evidence)} (evidence {evidence.id}){names}{hint}"


def merge_gates(group: str, gates: Mapping[Phase, Gate]) -> GatesMerged:
    """Return the common result of the gates of one tree: passed only if each is."""
    failed = tuple(phase for phase, gate in gates.items() if gate.status is not GateStatus.PASSED)
    words = ", ".join(f"{phase} {gate.status}" for phase, gate in gates.items())
    return GatesMerged(
        group=group, phases=tuple(gates), all_passed=not failed, failed_phases=failed, summary=words
    )
