"""How a task ended: a pure function of its state."""

from agentflow.core.exits import Exit
from agentflow.core.task import Ending, Status, TaskState
from agentflow.workflow.route import is_stalled


def conclude(task: TaskState) -> Ending:
    """Return the end of a task whose phases are over, from the verdict on its last change."""
    verdict = task.verdict
    if verdict is None:
        return Ending(status=Status.FAILED, exit_code=Exit.NOT_VERIFIED, reason="no change came to be judged")
    if verdict.passed and verdict.caveats:
        reason = f"every required check holds, with a caveat: {', '.join(verdict.caveats)}"
        return Ending(status=Status.VERIFIED_WITH_CAVEAT, exit_code=Exit.CAVEAT, reason=reason)
    if verdict.passed:
        reason = "every required check holds on the final tree"
        return Ending(status=Status.VERIFIED, exit_code=Exit.VERIFIED, reason=reason)
    why = "; ".join(verdict.reasons)
    if is_stalled(task):
        reason = f"no progress, the same failure on the same tree twice: {why}"
        return Ending(status=Status.FAILED, exit_code=Exit.NOT_VERIFIED, reason=reason)
    reason = f"{task.iteration} of {task.max_iterations} iterations used: {why}"
    return Ending(status=Status.LIMIT, exit_code=Exit.LIMIT, reason=reason)
