"""The intent ledger: what was understood of a task, and which gaps in it were closed how; from events."""

from collections.abc import Iterable

from agentflow.core.events import Answered, IntentTold, Paused, Stamped
from agentflow.core.pending import PendingKind
from agentflow.core.task import TaskState

_GAPS = (PendingKind.QUESTION, PendingKind.PLAN, PendingKind.ESCALATION)


def intent_told(task: TaskState, happened: Iterable[Stamped]) -> IntentTold:
    """Return the ledger of a task; a gap is what had to be assumed or asked about what is wanted."""
    asked: dict[str, str] = {}
    for one in happened:
        match one.event:
            case Paused(kind=kind, pending=pending) if kind in _GAPS:
                asked.setdefault(pending, f"{kind} {pending}: asked")
            case Answered(pending=pending, by=by) if pending in asked:
                asked[pending] = f"{asked[pending].split(':')[0]}: answered{f' by {by}' if by else ''}"
            case Answered(pending=pending, by="default"):
                asked[pending] = f"question {pending}: the default was assumed"
            case _:
                pass
    intent = task.intent
    rows = (row.removeprefix("- ") for row in intent.assumptions.splitlines())
    assumed = [f"assumed: {row}" for row in rows if row.strip()]
    return IntentTold(
        goal=intent.goal or task.task,
        constraints=intent.constraints,
        assumptions=intent.assumptions,
        gaps=(*assumed, *asked.values()),
    )
