"""The end of a task, by its verdict and its last run."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from agentflow.core.errors import Exit
from agentflow.core.evidence import Evidence
from agentflow.core.messages import ToolCall, ToolResult
from agentflow.core.run import Run, RunOutcome
from agentflow.core.task import Ending, GateStatus, Phase, Status, TaskState
from agentflow.core.verdict import Caveat, Verdict
from agentflow.redact import to_one_line
from agentflow.wording import describe_all

_REFUSAL = 200
FindEvidence = Callable[[str | None], Evidence | None]
"""Returns the record of an id."""


def conclude(task: TaskState) -> Ending:
    """Return how a task ends whose phases are over."""
    if task.reads_only:
        return _end_answered(task)
    verdict = task.verdict
    if verdict is None:
        return fail("there was no change to judge")
    why = "; ".join((*describe_all(verdict.reasons), *_objections(task)))
    if verdict.passed and not why:
        return _end_verified(task, verdict)
    if task.is_stalled:
        return fail(f"no progress, the same failure on the same tree twice: {why}")
    return _limit(f"{task.iteration} of {task.max_iterations} iterations used: {why}")


def _end_verified(task: TaskState, verdict: Verdict) -> Ending:
    gate = task.get_gate(Phase.REVIEW)
    # a reviewer that gave nothing which could be taken leaves a caveat
    is_waived = gate.status is GateStatus.SKIPPED and (
        task.options.wants_review is False or gate.agent is not None
    )
    if not (gate.status is GateStatus.PASSED or is_waived or not task.routing.review_required):
        return fail("a task of this class needs a review, and none passed")
    if verdict.caveats:
        found = "every required check passes"
        if any(Caveat.CHECK_NOT_RUN.is_named_in(caveat) for caveat in verdict.caveats):
            found = "every check that can run here passes"
        if not any(item.evidence and item.check.name not in task.blocked for item in task.final):
            found = "no check can run here as a whole"
        if Caveat.ALREADY_RED in verdict.caveats:
            found = "no new failures"
        reason = f"{found}, with a caveat: {', '.join(verdict.caveats)}"
        return Ending(status=Status.VERIFIED_WITH_CAVEAT, exit_code=Exit.CAVEAT, reason=reason)
    reason = "every required check passes on the final tree"
    if not verdict.evidence:
        reason = "only documents or comments changed, and there is no check to run"
    return Ending(status=Status.VERIFIED, exit_code=Exit.VERIFIED, reason=reason)


def _end_answered(task: TaskState) -> Ending:
    open_phases = [
        phase for phase in task.routing.steps if task.get_gate(phase).status is not GateStatus.PASSED
    ]
    if open_phases:
        return fail(f"{', '.join(open_phases)} did not pass")
    return Ending(status=Status.ANSWERED, exit_code=Exit.VERIFIED, reason="answered; nothing was changed")


def _objections(task: TaskState) -> tuple[str, ...]:
    if task.get_gate(Phase.REVIEW).status is not GateStatus.FAILED:
        return ()
    said = [failure.reasons for failure in task.failures if failure.phase is Phase.REVIEW]
    return describe_all(said[-1]) if said else ("the review did not pass",)


def fail(reason: str) -> Ending:
    return Ending(status=Status.FAILED, exit_code=Exit.NOT_VERIFIED, reason=reason)


_NO_SUBMISSION = "the {role} gave no valid result: it ended without a submission{refused}"


def block(reason: str) -> Ending:
    """Return the end of a task that a hook stopped."""
    return Ending(status=Status.BLOCKED, exit_code=Exit.BLOCKED, reason=reason)


def _limit(reason: str) -> Ending:
    return Ending(status=Status.LIMIT, exit_code=Exit.LIMIT, reason=reason)


def _use_up(what: str) -> Ending:
    return _limit(f"the {{role}} used up its {what} without a result")


_WITHOUT_RESULT: Mapping[RunOutcome, Ending] = MappingProxyType(
    {
        RunOutcome.ERROR: Ending(
            status=Status.FAILED, exit_code=Exit.NO_MODEL, reason="the {role} got no usable reply"
        ),
        RunOutcome.HALTED: block("a hook stopped the task: {why}"),
        RunOutcome.STOPPED: block("a hook stopped the {role}: {why}"),
        RunOutcome.TURN_LIMIT: _use_up("turns"),
        RunOutcome.PAUSE_LIMIT: _limit(
            "the model kept pausing its reply (pause_turn), and the {role} gave no result"
        ),
        RunOutcome.TOOL_LIMIT: _use_up("tool calls"),
        RunOutcome.TOKEN_LIMIT: _use_up("tokens"),
        RunOutcome.TIME_LIMIT: _use_up("seconds"),
        RunOutcome.COST_LIMIT: _use_up("money"),
        RunOutcome.INVALID_SUBMISSION: fail(
            "the {role} gave no valid result: it submitted an invalid result twice{refused}"
        ),
        RunOutcome.CONFUSED: fail(
            "stopped: {by} refused each of the {role}'s last three tool calls: {words}"
        ),
        RunOutcome.NO_SUBMISSION: fail(_NO_SUBMISSION),
        RunOutcome.ANSWERED: fail(_NO_SUBMISSION),
        RunOutcome.SUBMITTED: fail("the {role} gave no result"),
    }
)
"""The ends of a run's task, with places for the role and a hook's words.

The codes are those of the command; a submission that came is judged by the gate of its phase.
"""


def end_without_result(run: Run) -> Ending:
    """Return how a task ends if its role gave no usable result."""
    ending = _WITHOUT_RESULT[run.outcome or RunOutcome.ERROR]
    why = run.halt or run.stop or ""
    words = to_one_line(next(iter(run.refused_by.values()), "they did not fit"), _REFUSAL)
    by = " and ".join(run.refused_by) or "agentflow"
    refused = _find_refusal(run)
    who = f"{by} refused its last one" if run.refused_by else "its last one was refused"
    refused = f"; {who}: {refused}" if refused else ""
    places = {"{role}": run.head.role, "{by}": by, "{words}": words, "{refused}": refused, "{why}": why}
    reason = ending.reason
    for place, text in places.items():
        reason = reason.replace(place, text)
    return ending.replace(reason=reason)


def _find_refusal(run: Run) -> str:
    parts = [part for message in run.messages for part in message.parts]
    calls = {part.id for part in parts if isinstance(part, ToolCall) and part.name == run.head.submit}
    results = [part for part in parts if isinstance(part, ToolResult) and part.call_id in calls]
    return to_one_line(results[-1].content, _REFUSAL) if results and results[-1].is_error else ""
