"""Where a task goes next: a pure function of its state."""

from collections.abc import Mapping
from types import MappingProxyType

from agentflow.core.errors import CorruptState
from agentflow.core.task import Gate, GateStatus, Phase, Status, TaskState

ORDER = (
    Phase.REFINEMENT,
    Phase.EXPLORATION,
    Phase.PLANNING,
    Phase.IMPLEMENTATION,
    Phase.REVIEW,
    Phase.VERIFICATION,
)
DEFAULT_ROUTE = (
    Phase.REFINEMENT,
    Phase.EXPLORATION,
    Phase.PLANNING,
    Phase.IMPLEMENTATION,
    Phase.VERIFICATION,
)
ROLE_OF: Mapping[Phase, str] = MappingProxyType(
    {
        Phase.EXPLORATION: "explorer",
        Phase.PLANNING: "planner",
        Phase.IMPLEMENTATION: "implementer",
        Phase.REVIEW: "reviewer",
        Phase.VERIFICATION: "verifier",
    }
)
"""Who works in a phase."""
TRANSITIONS: Mapping[Phase, frozenset[Phase]] = MappingProxyType(
    {
        Phase.REFINEMENT: frozenset({Phase.REFINEMENT, Phase.COMPLETE, *ORDER[1:4]}),
        Phase.EXPLORATION: frozenset({Phase.EXPLORATION, Phase.COMPLETE, *ORDER[2:5]}),
        Phase.PLANNING: frozenset({Phase.PLANNING, Phase.COMPLETE, Phase.IMPLEMENTATION}),
        Phase.IMPLEMENTATION: frozenset({Phase.IMPLEMENTATION, Phase.COMPLETE, *ORDER[4:]}),
        Phase.REVIEW: frozenset({Phase.REVIEW, Phase.COMPLETE, Phase.VERIFICATION, Phase.IMPLEMENTATION}),
        Phase.VERIFICATION: frozenset({Phase.VERIFICATION, Phase.COMPLETE, Phase.IMPLEMENTATION}),
        Phase.COMPLETE: frozenset({Phase.COMPLETE}),
    }
)
"""Where each phase may lead; a phase may be entered again when it was cut short."""
_JUDGING = frozenset({Phase.REVIEW, Phase.VERIFICATION})
_DONE = frozenset({GateStatus.PASSED, GateStatus.SKIPPED})


def next_phase(task: TaskState) -> Phase | None:
    """Return the next phase to run, or None when the task is over."""
    if task.status is not Status.RUNNING:
        return None
    if task.ending is not None:
        return Phase.COMPLETE
    phase = next((phase for phase in ORDER if task.gate(phase).status not in _DONE), Phase.COMPLETE)
    if task.gate(phase).status is not GateStatus.FAILED:
        return phase
    return Phase.IMPLEMENTATION if phase in _JUDGING and may_retry(task) else Phase.COMPLETE


def may_retry(task: TaskState) -> bool:
    """Return whether a failed change goes back to the implementer."""
    return task.iteration < task.max_iterations and not is_stalled(task)


def is_stalled(task: TaskState) -> bool:
    """Return whether the same failure came twice on the same tree: no progress."""
    if len(task.failures) < 2:
        return False
    before, last = task.failures[-2:]
    return (before.tree, before.signature) == (last.tree, last.signature)


def enter(task: TaskState, phase: Phase, timestamp: str) -> TaskState:
    """Return the task inside a phase; going back to the implementer begins a new iteration.

    Raises CorruptState when the table of transitions has no such step.
    """
    if phase not in TRANSITIONS[task.current_phase]:
        raise CorruptState(f"phase {task.current_phase} does not lead to {phase}")
    if phase is Phase.COMPLETE:
        return task.replace(current_phase=phase)
    if task.current_phase in _JUDGING and phase is Phase.IMPLEMENTATION:
        task = _new_iteration(task)
    gate = Gate(status=GateStatus.IN_PROGRESS, timestamp=timestamp)
    return task.replace(current_phase=phase).with_gate(phase, gate)


def _new_iteration(task: TaskState) -> TaskState:
    reopened = {
        phase: Gate(status=GateStatus.PENDING)
        for phase in _JUDGING
        if task.gate(phase).status is not GateStatus.SKIPPED
    }
    return task.replace(
        iteration=task.iteration + 1,
        gates={**task.gates, **reopened},
        change=None,
        review=None,
        judgement=None,
        verdict=None,
    )


def with_route(task: TaskState, route: tuple[Phase, ...]) -> TaskState:
    """Return the task with the phases outside its route skipped."""
    gates = {
        phase: Gate(status=GateStatus.PENDING)
        if phase in route
        else Gate(status=GateStatus.SKIPPED, message="not in this route")
        for phase in ORDER
    }
    return task.replace(gates={**gates, **task.gates})
