"""A plan of high risk or of many files is confirmed by a person once, before anything changes."""

from agentflow.core.pending import OWN_WORDS, Pending, PendingKind
from agentflow.core.submissions import Plan
from agentflow.core.task import Phase, TaskState
from agentflow.process import timestamp
from agentflow.workflow.classify import MOST_FILES

PLAN = "plan-1"
CHOICES = ("confirm", f"correct the plan: {OWN_WORDS}", f"adjust the scope: {OWN_WORDS}")


def unconfirmed(task: TaskState) -> Pending | None:
    """Return what a person has to confirm, or None where nothing has, or somebody was asked already."""
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
        "plan": _written(task.plan),
    }
    return Pending(
        id=PLAN,
        kind=PendingKind.PLAN,
        tool=None,
        input={key: text for key, text in shown.items() if text},
        options=CHOICES,
        asked_at=timestamp(),
    )


def is_kept(task: TaskState, phase: Phase) -> bool:
    """Return whether the one interruption of a phase is kept for the confirmation of its plan."""
    return phase is Phase.PLANNING and task.forced


def _written(plan: Plan) -> str:
    steps = (f"{number}. {step.title} ({', '.join(step.files)})" for number, step in enumerate(plan.steps, 1))
    after = (f"must hold: {text}" for text in plan.acceptance)
    return "\n".join((plan.summary, *steps, *after, *(f"risk: {risk}" for risk in plan.risks)))
