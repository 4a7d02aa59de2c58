"""The class of a task on its way: from its words, and higher where the plan or the change is larger."""

from agentflow.core.events import Classified
from agentflow.core.routing import Classification, Requirement
from agentflow.core.task import Complexity, Phase, TaskState
from agentflow.routing.aims import concerns_text
from agentflow.routing.classify import (
    DIRECT,
    MOST_FILES,
    SHORTENED,
    as_named,
    class_of,
    classify,
    higher,
    in_full,
    risks_in,
)
from agentflow.routing.route import JUDGING, with_route, with_step
from agentflow.routing.table import Table

DEEP_DIVE = "deep_dive"
_NAMED = 3


def classified(task: TaskState, table: Table) -> tuple[TaskState, Classified]:
    """Return the task on the route that its words ask for, and the event that says so."""
    if task.focus is not None:
        return _deep(task)
    found = found_of(task, table)
    steps = _wanted(task, found)
    task = task.replace(
        task_complexity=found.complexity,
        forced=found.forced,
        report_requested=found.report,
        review_required=Requirement.REVIEW in found.requires,
    )
    event = Classified(
        complexity=found.complexity,
        route=found.route,
        score=found.score,
        reasons=found.reasons,
        steps=steps,
    )
    return with_route(task, found.route, steps), event


def found_of(task: TaskState, table: Table) -> Classification:
    """Return what the words of a task say of it, in the class that the person named, if any."""
    found = classify(task.task, table)
    found = as_named(found, task.named_class, table) if task.named_class else found
    return found if task.spares_tokens else in_full(found, table)


def shortened(task: TaskState, failing: frozenset[str], table: Table) -> tuple[TaskState, Classified | None]:
    """Return the task on the direct route where it is about checks that fail before it, in few files."""
    files = {_file_of(test) for test in failing}
    if not (task.spares_tokens and task.route in SHORTENED and 0 < len(files) <= MOST_FILES):
        return task, None
    kept = {*table.steps(DIRECT, task.task_complexity), *JUDGING}
    steps = tuple(phase for phase in task.steps if phase in kept)
    named = ", ".join(sorted(failing)[:_NAMED]) + (" …" if len(failing) > _NAMED else "")
    event = Classified(
        complexity=task.task_complexity,
        route=DIRECT,
        score=0,
        reasons=(f"failing before the task: {named}",),
        steps=steps,
    )
    decided = {Phase.REFINEMENT: task.gate(Phase.REFINEMENT)}
    return with_route(task.replace(gates=decided), DIRECT, steps), event


def _file_of(test: str) -> str:
    """Return the file or module of a test id."""
    path, _, inside = test.partition("::")
    return path if inside else path.rsplit(".", 2)[0]


def _deep(task: TaskState) -> tuple[TaskState, Classified]:
    """Return the task on the route of a deep exploration, which no words decide."""
    steps = (Phase.EXPLORATION,)
    task = task.replace(task_complexity=Complexity.EXPLORATORY)
    event = Classified(
        complexity=Complexity.EXPLORATORY, route=DEEP_DIVE, score=0, reasons=("explore",), steps=steps
    )
    return with_route(task, DEEP_DIVE, steps), event


def _wanted(task: TaskState, found: Classification) -> tuple[Phase, ...]:
    """Return the steps as the person wants them: a change may be reviewed, or its review left out."""
    steps = {*found.steps}
    if task.wants_review and Phase.IMPLEMENTATION in steps:
        steps.add(Phase.REVIEW)
    if task.wants_review is False:
        steps.discard(Phase.REVIEW)
    if task.explored and Phase.IMPLEMENTATION in steps:
        steps.discard(Phase.EXPLORATION)
    return tuple(phase for phase in Phase if phase in steps)


def planned(task: TaskState, table: Table) -> tuple[TaskState, Classified | None]:
    """Return the task after its plan: more files or a high risk in it raise the class."""
    assert task.plan is not None
    files = {file for step in task.plan.steps for file in step.files}
    words = "\n".join((task.plan.summary, *(step.title for step in task.plan.steps), *sorted(files)))
    found = () if concerns_text(task.task) else risks_in(words, table)
    return _risen(task, len(files), tuple(f"the plan: {reason}" for reason in found), table)


def changed(task: TaskState, files: int, table: Table) -> tuple[TaskState, Classified | None]:
    """Return the task after a change of so many files."""
    return _risen(task, files, (), table)


def _risen(
    task: TaskState, files: int, risks: tuple[str, ...], table: Table
) -> tuple[TaskState, Classified | None]:
    """Return the task in the class of its size or risk, if that is higher, with the judges that it needs."""
    before = task.task_complexity
    complexity = higher(before, Complexity.COMPLEX if risks else class_of(files))
    if complexity is before and not (risks and not task.forced):
        return task, None
    needs_review = Requirement.REVIEW in table.requires(complexity)
    task = task.replace(
        task_complexity=complexity, forced=task.forced or bool(risks), review_required=needs_review
    )
    if needs_review and task.wants_review is not False:
        task = with_step(task, Phase.REVIEW)
    task = with_step(task, Phase.VERIFICATION)
    reasons = risks or (f"{files} files",)
    return task, Classified(
        complexity=complexity, route=task.route, score=0, reasons=reasons, steps=task.steps
    )
