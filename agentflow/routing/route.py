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
        Phase.REFINEMENT: frozenset({Phase.REFINEMENT, Phase.COMPLETE, *ORDER[1:5]}),
        Phase.EXPLORATION: frozenset({Phase.EXPLORATION, Phase.COMPLETE, *ORDER[2:5]}),
        Phase.PLANNING: frozenset({Phase.PLANNING, Phase.COMPLETE, Phase.IMPLEMENTATION}),
        Phase.IMPLEMENTATION: frozenset({Phase.IMPLEMENTATION, Phase.COMPLETE, *ORDER[4:]}),
        Phase.REVIEW: frozenset({Phase.REVIEW, Phase.COMPLETE, Phase.VERIFICATION, Phase.IMPLEMENTATION}),
        Phase.VERIFICATION: frozenset({Phase.VERIFICATION, Phase.COMPLETE, Phase.IMPLEMENTATION}),
        Phase.COMPLETE: frozenset({Phase.COMPLETE}),
    }
)
"""Where each phase may lead; a phase may be entered again when it was cut short."""
JUDGING = (Phase.REVIEW, Phase.VERIFICATION)
"""The phases that judge a change, and send it back."""
_DONE = frozenset({GateStatus.PASSED, GateStatus.SKIPPED})
_OPEN = frozenset({GateStatus.PENDING, GateStatus.IN_PROGRESS})


def next_phase(task: TaskState) -> Phase | None:
    """Return the next phase to run, or None when the task is over."""
    if task.status is not Status.RUNNING:
        return None
    if task.ending is not None:
        return Phase.COMPLETE
    due = (phase for phase in ORDER if task.gate(phase).status not in _DONE)
    failed = (phase for phase in JUDGING if task.gate(phase).status is GateStatus.FAILED)
    phase = next(failed, None) or next(due, Phase.COMPLETE)
    if task.gate(phase).status is not GateStatus.FAILED:
        return phase
    goes_back = phase in JUDGING and not task.reads_only and may_retry(task)
    return Phase.IMPLEMENTATION if goes_back else Phase.COMPLETE


def together(task: TaskState, phase: Phase) -> tuple[Phase, ...]:
    """Return the phases that run side by side with a phase: the judges, unless they go one by one."""
    if phase is not Phase.REVIEW or task.sequential or task.gate(Phase.VERIFICATION).status not in _OPEN:
        return (phase,)
    return JUDGING


def may_retry(task: TaskState) -> bool:
    """Return whether a failed change goes back to the implementer."""
    return task.iteration < task.max_iterations and not is_stalled(task)


def is_stalled(task: TaskState) -> bool:
    """Return whether the same failure came twice on the same tree: no progress."""
    phases = {failure.phase for failure in task.failures[-1:]}
    same = [(one.tree, one.signature) for one in task.failures if one.phase in phases]
    return len(same) > 1 and same[-1] == same[-2]


def enter(task: TaskState, phase: Phase, timestamp: str) -> TaskState:
    """Return the task inside a phase; going back to the implementer begins a new iteration.

    Raises CorruptState when the table of transitions has no such step.
    """
    if phase not in TRANSITIONS[task.current_phase]:
        raise CorruptState(f"phase {task.current_phase} does not lead to {phase}")
    if phase is Phase.COMPLETE:
        return task.replace(current_phase=phase)
    if task.current_phase in JUDGING and phase is Phase.IMPLEMENTATION:
        task = _new_iteration(task)
    gate = Gate(status=GateStatus.IN_PROGRESS, timestamp=timestamp)
    opened = dict.fromkeys(together(task, phase), gate)
    return task.replace(current_phase=phase, gates={**task.gates, **opened})


def _new_iteration(task: TaskState) -> TaskState:
    reopened = {
        phase: Gate(status=GateStatus.PENDING)
        for phase in JUDGING
        if task.gate(phase).status is not GateStatus.SKIPPED
    }
    return task.replace(
        iteration=task.iteration + 1,
        gates={**task.gates, **reopened},
        change=None,
        review=None,
        judgement=None,
        verdict=None,
        asked=(),
    )


def with_route(task: TaskState, route: str, steps: tuple[Phase, ...]) -> TaskState:
    """Return the task on a route: the program verifies whatever is changed; other phases are skipped."""
    due = {Phase.REFINEMENT, *steps, *((Phase.VERIFICATION,) if Phase.IMPLEMENTATION in steps else ())}
    gates = {
        phase: Gate(status=GateStatus.PENDING)
        if phase in due
        else Gate(status=GateStatus.SKIPPED, message=_why_skipped(task, route, phase))
        for phase in ORDER
    }
    return task.replace(route=route, steps=steps, gates={**gates, **task.gates})


def _why_skipped(task: TaskState, route: str, phase: Phase) -> str:
    is_unwanted = phase is Phase.REVIEW and task.wants_review is False
    if task.explored and phase is Phase.EXPLORATION:
        return "--context: an earlier exploration is used"
    return "--no-review" if is_unwanted else f"route: {route}"


def with_step(task: TaskState, phase: Phase) -> TaskState:
    """Return the task with one more phase on its way, because it grew; what was decided stays."""
    steps = tuple(one for one in ORDER if one in (*task.steps, phase))
    is_skipped = task.gate(phase).status is GateStatus.SKIPPED
    task = task.with_gate(phase, Gate(status=GateStatus.PENDING)) if is_skipped else task
    return task.replace(steps=steps)
