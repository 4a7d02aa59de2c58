"""How a task ended: a pure function of its state."""

from agentflow.core.evidence import Verdict
from agentflow.core.exits import Exit
from agentflow.core.task import Ending, GateStatus, Phase, Status, TaskState
from agentflow.workflow.deciding import failed
from agentflow.workflow.gate import ALREADY_RED, CHECK_NOT_RUN
from agentflow.workflow.route import is_stalled


def conclude(task: TaskState) -> Ending:
    """Return the end of a task whose phases are over, from the verdict on its last change."""
    if task.reads_only:
        return _read(task)
    verdict = task.verdict
    if verdict is None:
        return failed("no change came to be judged")
    why = "; ".join((*verdict.reasons, *_objections(task)))
    if verdict.passed and not why:
        return _verified(task, verdict)
    if is_stalled(task):
        return failed(f"no progress, the same failure on the same tree twice: {why}")
    reason = f"{task.iteration} of {task.max_iterations} iterations used: {why}"
    return Ending(status=Status.LIMIT, exit_code=Exit.LIMIT, reason=reason)


def _verified(task: TaskState, verdict: Verdict) -> Ending:
    """Return the end of a change that every check and judge let pass."""
    if not _is_reviewed(task):
        return failed("its class counts only with a review, and there is none")
    if verdict.caveats:
        found = "every required check holds"
        if any(caveat.startswith(CHECK_NOT_RUN) for caveat in verdict.caveats):
            found = "every check that can run here holds"
        if ALREADY_RED in verdict.caveats:
            found = "nothing newly fails"
        reason = f"{found}, with a caveat: {', '.join(verdict.caveats)}"
        return Ending(status=Status.VERIFIED_WITH_CAVEAT, exit_code=Exit.CAVEAT, reason=reason)
    reason = "every required check holds on the final tree"
    return Ending(status=Status.VERIFIED, exit_code=Exit.VERIFIED, reason=reason)


def _read(task: TaskState) -> Ending:
    """Return the end of a task that changed nothing."""
    open_phases = [phase for phase in task.steps if task.gate(phase).status is not GateStatus.PASSED]
    if open_phases:
        return failed(f"no answer: {', '.join(open_phases)} did not pass")
    return Ending(status=Status.ANSWERED, exit_code=Exit.VERIFIED, reason="answered; nothing was changed")


def _objections(task: TaskState) -> tuple[str, ...]:
    """Return what the last review sends back, if it does."""
    if task.gate(Phase.REVIEW).status is not GateStatus.FAILED:
        return ()
    said = [failure.reasons for failure in task.failures if failure.phase is Phase.REVIEW]
    return said[-1] if said else ("the review did not pass",)


def _is_reviewed(task: TaskState) -> bool:
    """Return whether a review that the class requires was passed, or left out by the person's own word."""
    status = task.gate(Phase.REVIEW).status
    is_waived = status is GateStatus.SKIPPED and task.wants_review is False
    return status is GateStatus.PASSED or is_waived or not task.review_required
