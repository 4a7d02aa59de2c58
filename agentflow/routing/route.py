"""The route of a task: which one its words and its growth lead to, and which phase comes next; pure."""

from collections.abc import Mapping
from types import MappingProxyType

from agentflow.core.errors import CorruptState
from agentflow.core.events import Classified
from agentflow.core.record import copy_shared
from agentflow.core.routing import Classification, Requirement
from agentflow.core.task import Complexity, Gate, GateStatus, Phase, StandingChange, Status, TaskState
from agentflow.core.verdict import Caveat
from agentflow.routing.classify import (
    choose_higher,
    classify,
    classify_size,
    list_product,
    list_risks,
    use_named_class,
)
from agentflow.routing.clauses import Table, is_about_text

ORDER = (
    Phase.REFINEMENT,
    Phase.EXPLORATION,
    Phase.PLANNING,
    Phase.IMPLEMENTATION,
    Phase.REVIEW,
    Phase.VERIFICATION,
)
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
DEEP_DIVE = "deep_dive"


def find_next_phase(task: TaskState) -> Phase | None:
    if task.status is not Status.RUNNING:
        return None
    if task.ending is not None:
        return Phase.COMPLETE
    due = (phase for phase in ORDER if task.get_gate(phase).status not in _DONE)
    failed = (phase for phase in JUDGING if task.get_gate(phase).status is GateStatus.FAILED)
    phase = next(failed, None) or next(due, Phase.COMPLETE)
    if phase is Phase.COMPLETE and is_to_be_proved(task):
        return Phase.IMPLEMENTATION
    if task.get_gate(phase).status is not GateStatus.FAILED:
        return phase
    goes_back = phase in JUDGING and not task.reads_only and may_retry(task)
    return Phase.IMPLEMENTATION if goes_back else Phase.COMPLETE


def list_phases_beside(task: TaskState, phase: Phase) -> tuple[Phase, ...]:
    """Return the phases that run together with a phase: both judges, unless the task is sequential."""
    if (
        phase is not Phase.REVIEW
        or task.options.sequential
        or task.get_gate(Phase.VERIFICATION).status not in _OPEN
    ):
        return (phase,)
    return JUDGING


def may_retry(task: TaskState) -> bool:
    return task.iteration < task.max_iterations and not task.is_stalled


def is_to_be_proved(task: TaskState) -> bool:
    """Return whether a change passed, and only for want of tests with a caveat, so that a round is due."""
    verdict = task.verdict
    if verdict is None or not verdict.passed or task.proving >= task.options.prove_rounds or task.is_found:
        return False
    is_last = task.get_gate(Phase.REVIEW).status is not GateStatus.FAILED
    return is_last and verdict.is_testable and all(map(Caveat.UNPROVED.is_named_in, verdict.caveats))


def enter_phase(task: TaskState, phase: Phase, timestamp: str) -> TaskState:
    """Return the task in a phase; going back to the implementer starts a new iteration.

    Raises CorruptState when the table of transitions has no such step.
    """
    if phase not in TRANSITIONS[task.current_phase]:
        raise CorruptState(f"phase {task.current_phase} does not lead to {phase}")
    if phase is Phase.COMPLETE:
        return task.replace(current_phase=phase)
    if task.current_phase in JUDGING and phase is Phase.IMPLEMENTATION:
        again = _new_iteration(task)
        if is_to_be_proved(task):  # what stands is kept; the round counts as part of its iteration
            stands = StandingChange(**task.get_values(StandingChange.__struct_fields__), run=task.runs)
            again = again.replace(iteration=task.iteration, proving=task.proving + 1, stands=stands)
        task = again
    gate = Gate(status=GateStatus.IN_PROGRESS, timestamp=timestamp)
    opened = dict.fromkeys(list_phases_beside(task, phase), gate)
    return task.replace(current_phase=phase, gates={**task.gates, **opened})


def _new_iteration(task: TaskState) -> TaskState:
    reopened = {
        phase: Gate(status=GateStatus.PENDING)
        for phase in JUDGING
        if phase in task.routing.steps or task.get_gate(phase).status is not GateStatus.SKIPPED
    }
    return task.replace(
        iteration=task.iteration + 1,
        gates={**task.gates, **reopened},
        change=None,
        review=None,
        judgement=None,
        judges=None,
        judge_tests=(),
        verdict=None,
        asked=(),
    )


def set_route(task: TaskState, route: str, steps: tuple[Phase, ...]) -> TaskState:
    """Return the task on a route: a change is always verified, phases without a role are skipped."""
    due = {Phase.REFINEMENT, *steps, *((Phase.VERIFICATION,) if Phase.IMPLEMENTATION in steps else ())}
    why = dict.fromkeys(ORDER, f"route: {route}")
    if task.options.explored:
        why[Phase.EXPLORATION] = "--context: an earlier exploration is used"
    if task.options.wants_review is False:
        why[Phase.REVIEW] = "--no-review"
    gates = {phase: Gate(status=GateStatus.SKIPPED, message=why[phase]) for phase in ORDER}
    gates |= {phase: Gate(status=GateStatus.PENDING) for phase in ORDER if phase in due}
    return task.replace(route=route, steps=steps, gates={**gates, **task.gates})


def add_step(task: TaskState, phase: Phase) -> TaskState:
    """Return the task with one more phase; gates that are decided stay so."""
    steps = tuple(one for one in ORDER if one in (*task.routing.steps, phase))
    is_skipped = task.get_gate(phase).status is GateStatus.SKIPPED
    task = task.with_gate(phase, Gate(status=GateStatus.PENDING)) if is_skipped else task
    return task.replace(steps=steps)


def classify_task(task: TaskState, table: Table) -> tuple[TaskState, Classified]:
    """Return the task on the route of its words, and the event of its classification."""
    if task.options.focus is not None:
        return _explore_deeply(task)
    found = classify_words(task, table)
    steps = _steps_for(task, found)
    task = task.replace(
        task_complexity=found.complexity,
        forced=found.forced,
        report_requested=found.report,
        review_required=Requirement.REVIEW in found.requires,
    )
    told = copy_shared(found.replace(steps=steps), Classified)
    return set_route(task, found.route, steps), Classified(**told, reasons=found.decided)


def classify_words(task: TaskState, table: Table) -> Classification:
    """Return the classification of a task's words, in the class that the person named, if any."""
    found = classify((task.options.invoked.purpose if task.options.invoked else "") or task.task, table)
    is_change = Phase.IMPLEMENTATION in found.steps
    named = task.options.named_class or (
        "" if is_change or not task.options.plan_mode else Complexity.IMPLEMENTATION
    )
    return use_named_class(found, named, table) if named else found


def skip_roles_before(task: TaskState) -> tuple[TaskState, Classified]:
    """Return the task without the roles before the implementer, whose change is found already."""
    skipped = (Phase.EXPLORATION, Phase.PLANNING, *((Phase.REVIEW,) if task.model == "repair" else ()))
    steps = tuple(phase for phase in task.routing.steps if phase not in skipped)
    reason = "the built-in repair engine found a change"
    event = Classified(
        complexity=task.task_complexity, route=task.routing.route, score=0, reasons=(reason,), steps=steps
    )
    decided = {Phase.REFINEMENT: task.get_gate(Phase.REFINEMENT)}
    return set_route(task.replace(gates=decided), task.routing.route, steps), event


def _explore_deeply(task: TaskState) -> tuple[TaskState, Classified]:
    steps = (Phase.EXPLORATION,)
    task = task.replace(task_complexity=Complexity.EXPLORATORY)
    event = Classified(
        complexity=Complexity.EXPLORATORY, route=DEEP_DIVE, score=0, reasons=("explore",), steps=steps
    )
    return set_route(task, DEEP_DIVE, steps), event


def _steps_for(task: TaskState, found: Classification) -> tuple[Phase, ...]:
    steps = {*found.steps}
    if task.options.wants_review and Phase.IMPLEMENTATION in steps:
        steps.add(Phase.REVIEW)
    if task.options.wants_review is False:
        steps.discard(Phase.REVIEW)
    if task.options.wants_plan and Phase.IMPLEMENTATION in steps:
        steps |= {Phase.EXPLORATION, Phase.PLANNING}
    if task.options.plan_mode:
        steps.add(Phase.PLANNING)
    if (task.options.explored or task.options.plan_mode) and Phase.IMPLEMENTATION in steps:
        steps.discard(Phase.EXPLORATION)
    return tuple(phase for phase in Phase if phase in steps)


def reclassify_by_plan(task: TaskState, table: Table) -> tuple[TaskState, Classified | None]:
    """Return the task in a higher class, if its plan names more files or a high risk."""
    assert task.plan is not None
    files = {file for step in task.plan.steps for file in step.files}
    words = "\n".join((task.plan.summary, *(step.title for step in task.plan.steps), *sorted(files)))
    found = () if is_about_text(task.task) else list_risks(words, table)
    size = classify_size(len(files), len(list_product(files)))
    return _raise_class(task, size, len(files), tuple(f"the plan: {reason}" for reason in found), table)


def reclassify_by_size(
    task: TaskState, files: int, product: int, table: Table
) -> tuple[TaskState, Classified | None]:
    """Return the task in a higher class, if it changed more files."""
    return _raise_class(task, classify_size(files, product), files, (), table)


def _raise_class(
    task: TaskState, size: Complexity, files: int, risks: tuple[str, ...], table: Table
) -> tuple[TaskState, Classified | None]:
    """Return the task in the class of its size or risk, with the judges of that class, if it is higher."""
    before = task.task_complexity
    complexity = choose_higher(before, Complexity.COMPLEX if risks else size)
    if complexity is before and not (risks and not task.routing.forced):
        return task, None
    needs_review = task.routing.review_required or Requirement.REVIEW in table.list_required(complexity)
    task = task.replace(
        task_complexity=complexity, forced=task.routing.forced or bool(risks), review_required=needs_review
    )
    if needs_review and task.options.wants_review is not False:
        task = add_step(task, Phase.REVIEW)
    task = add_step(task, Phase.VERIFICATION)
    reasons = risks or (f"{files} files",)
    return task, Classified(
        complexity=complexity, route=task.routing.route, score=0, reasons=reasons, steps=task.routing.steps
    )
