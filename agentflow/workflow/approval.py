"""The one question about changed checks: asked of a person, who alone can approve them."""

from collections.abc import Sequence

from agentflow.core.errors import Exit
from agentflow.core.events import Answered
from agentflow.core.evidence import CheckRun
from agentflow.core.pending import Answer, Pending, PendingKind, decided_now
from agentflow.core.task import Ending, Status, TaskState
from agentflow.process import timestamp
from agentflow.store.ledger import summary
from agentflow.verdict.look import Look, approval_id
from agentflow.workflow.crew import Crew
from agentflow.workflow.waiting import answered, waiting

_DIFF_CHARS = 20_000


def asked(crew: Crew, task: TaskState) -> TaskState:
    """Return the task waiting for a person to look at its changed checks, or ended if nobody may approve."""
    assert task.verdict is not None
    seen, weakened = crew.sight.of(task), task.verdict.weakened
    pending = Pending(
        id=approval_id(seen, weakened),
        kind=PendingKind.SURFACE,
        tool=None,
        input={
            "why": task.change.summary if task.change else "",
            "changes": list(weakened),
            "before": [f"{run.check.name} {_end(run)}" for run in crew.checking.runs(task.held)],
            "diff": _diff(crew, task, seen),
        },
        options=(),
        asked_at=timestamp(),
    )
    answer = task.answers.get(pending.id)
    if answer is None and (answer := decided_now(crew.consent, pending)):
        answer = answer.replace(at=timestamp())
        task = answered(task, pending, answer)
        crew.store.emit(Answered(pending=pending.id, approved=answer.approved, by=answer.by))
    return waiting(task, pending) if answer is None else task.replace(ending=_tampered(answer, weakened))


def _end(run: CheckRun) -> str:
    return summary(run.evidence) if run.evidence else f"not run ({run.check.missing})"


def _diff(crew: Crew, task: TaskState, seen: Look) -> str:
    assert task.base_tree is not None
    assert task.tree is not None
    paths = [each.path for each in seen.checks]
    return crew.git.diff(task.base_tree, task.tree, *paths)[:_DIFF_CHARS] if paths else ""


def _tampered(answer: Answer, weakened: Sequence[str]) -> Ending:
    said = "; ".join(weakened)
    why = f" ({answer.text})" if answer.text else ""
    reason = f"the checks were changed, not approved by {answer.by or 'a person'}{why}: {said}"
    return Ending(status=Status.TAMPERED, exit_code=Exit.TAMPERED, reason=reason)
