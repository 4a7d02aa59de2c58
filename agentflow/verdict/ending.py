"""The end of a task, by its verdict, its review and the end of each run."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from agentflow.core.errors import Exit
from agentflow.core.events import GatesMerged
from agentflow.core.evidence import RED, CheckRun, summarize_evidence
from agentflow.core.messages import ToolCall, ToolResult
from agentflow.core.role import Claim, Issue, Judgement, Review, ReviewVerdict, Severity
from agentflow.core.run import Run, RunOutcome
from agentflow.core.several import describe_several
from agentflow.core.task import Ending, Gate, GateStatus, Phase, Status, TaskState
from agentflow.core.verdict import Caveat, FailReason, Verdict
from agentflow.process import make_timestamp
from agentflow.redact import list_some, to_one_line
from agentflow.routing.route import is_stalled
from agentflow.workspace.changes import FileChange

_REFUSAL = 200


def conclude(task: TaskState) -> Ending:
    """Return how a task ends whose phases are over."""
    if task.reads_only:
        return _end_answered(task)
    verdict = task.verdict
    if verdict is None:
        return fail("there was no change to judge")
    why = "; ".join((*verdict.reasons, *_objections(task)))
    if verdict.passed and not why:
        return _end_verified(task, verdict)
    if is_stalled(task):
        return fail(f"no progress, the same failure on the same tree twice: {why}")
    return _limit(f"{task.iteration} of {task.max_iterations} iterations used: {why}")


def _end_verified(task: TaskState, verdict: Verdict) -> Ending:
    """Return the end of a change that all checks and judges passed."""
    if not _is_reviewed(task):
        return fail("a task of this class needs a review, and none passed")
    if verdict.caveats:
        found = "every required check passes"
        if any(Caveat.CHECK_NOT_RUN.stands_in(caveat) for caveat in verdict.caveats):
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
    open_phases = [phase for phase in task.steps if task.get_gate(phase).status is not GateStatus.PASSED]
    if open_phases:
        return fail(f"{', '.join(open_phases)} did not pass")
    return Ending(status=Status.ANSWERED, exit_code=Exit.VERIFIED, reason="answered; nothing was changed")


def _objections(task: TaskState) -> tuple[str, ...]:
    """Return why the last review failed, if it did."""
    if task.get_gate(Phase.REVIEW).status is not GateStatus.FAILED:
        return ()
    said = [failure.reasons for failure in task.failures if failure.phase is Phase.REVIEW]
    return said[-1] if said else ("the review did not pass",)


def _is_reviewed(task: TaskState) -> bool:
    """Return whether the review that the class requires passed, or the person left it out."""
    status = task.get_gate(Phase.REVIEW).status
    is_waived = status is GateStatus.SKIPPED and task.wants_review is False
    return status is GateStatus.PASSED or is_waived or not task.review_required


def decide_gate(
    task: TaskState, status: GateStatus, message: str, *, agent: str | None = None, phase: Phase | None = None
) -> TaskState:
    """Return the task with a phase's gate decided; the current phase if none is named."""
    gate = Gate(status=status, agent=agent, tree=task.tree, timestamp=make_timestamp(), message=message)
    return task.with_gate(phase or task.current_phase, gate)


def fail(reason: str) -> Ending:
    return Ending(status=Status.FAILED, exit_code=Exit.NOT_VERIFIED, reason=reason)


def end_in_phase(task: TaskState, phase: Phase, ending: Ending, *, agent: str | None = None) -> TaskState:
    """Return the task ended by a phase without a usable result."""
    task = task.replace(ending=ending)
    return decide_gate(task, GateStatus.FAILED, f"- {ending.reason}", agent=agent, phase=phase)


def check_line(run: CheckRun) -> str:
    """Return one check as a line of Markdown."""
    evidence = run.evidence
    if evidence is None:
        return f"- {run.check.name}: not run ({run.check.missing})"
    failing = sorted(run.list_ids(*RED))
    names = f": {list_some(failing)}" if failing else ""
    hint = f"\n  {run.hint}" if run.hint else ""
    command = describe_several(run.check.command)
    return f"- `{command}` {summarize_evidence(evidence)} (evidence {evidence.id}){names}{hint}"


def weigh(verdict: Verdict, judgement: Judgement, changed: tuple[FileChange, ...]) -> Verdict:
    """Return the verdict with the verifier's word, which can only lower it."""
    said = "; ".join(judgement.reasons) or "no reason given"
    match judgement.verdict:
        case Claim.VERIFIED:
            return verdict
        case Claim.FAILED if judgement.evidence or _cites(judgement, changed):
            return verdict.replace(passed=False, reasons=(FailReason.VERIFIER_REFUSED.of(said),), caveats=())
        case Claim.FAILED | Claim.ENVIRONMENT_BLOCKED:
            return verdict.replace(
                caveats=(*verdict.caveats, Caveat.VERIFIER_DISAGREES),
                notes=(*verdict.notes, f"every check passes; the verifier objects without evidence: {said}"),
            )


def _cites(judgement: Judgement, changed: tuple[FileChange, ...]) -> bool:
    """Return whether a reason names a line of a changed file."""
    text = "\n".join(judgement.reasons)
    return any(re.search(rf"(?<![\w./-])(?:\./)?{re.escape(change.path)}:\d+", text) for change in changed)


_NO_SUBMISSION = "the {role} gave no valid result: it ended without a submission{refused}"
_BLOCKING = (Severity.CRITICAL, Severity.MAJOR)


def _stop(reason: str) -> Ending:
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
        RunOutcome.HALTED: _stop("a hook stopped the task: {why}"),
        RunOutcome.STOPPED: _stop("a hook stopped the {role}: {why}"),
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
            "stopped: every tool call of the {role}'s last three turns was refused{by}"
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
    by = f" (by {', '.join(run.refused_by)})" if run.refused_by else ""
    refused = _find_refusal(run)
    refused = f"; its last one was refused: {refused}" if refused else ""
    places = {"{role}": run.head.role, "{by}": by, "{refused}": refused, "{why}": why}
    reason = ending.reason
    for place, text in places.items():
        reason = reason.replace(place, text)
    return ending.replace(reason=reason)


def _find_refusal(run: Run) -> str:
    """Return why the last submission of a run was refused, or nothing where there was none."""
    parts = [part for message in run.messages for part in message.parts]
    calls = {part.id for part in parts if isinstance(part, ToolCall) and part.name == run.head.submit}
    results = [part for part in parts if isinstance(part, ToolResult) and part.call_id in calls]
    return to_one_line(results[-1].content, _REFUSAL) if results and results[-1].is_error else ""


def list_objections(review: Review, flagged: tuple[str, ...]) -> tuple[str, ...]:
    """Return why a review sends a change back: its verdict or its cited issues, whichever is stricter.

    A review cannot be outvoted by checks or verifier, so that two judges who contradict each other end in
    the change going back, as often as there are iterations.
    """
    cited = tuple(issue for issue in review.issues if issue.place not in flagged)
    serious = any(issue.severity in _BLOCKING for issue in cited)
    if not serious and review.verdict is ReviewVerdict.APPROVED:
        return ()
    return tuple(describe_issue(issue) for issue in cited)


def describe_issue(issue: Issue) -> str:
    """Return an issue as the implementer is told it, in the reviewer's own words."""
    return f"{issue.severity} {issue.place}: {issue.kind}: {issue.message}"


def find_review_caveats(task: TaskState) -> tuple[str, ...]:
    """Return the caveats of the review of a change that is otherwise verified."""
    if task.get_gate(Phase.REVIEW).status is GateStatus.SKIPPED:
        return (Caveat.NOT_REVIEWED,) if task.review_required else ()
    review = task.review
    disagrees = review is not None and (review.verdict is ReviewVerdict.NEEDS_CHANGES or task.flagged_issues)
    return (Caveat.REVIEWER_DISAGREES,) if disagrees else ()


def add_role_caveats(verdict: Verdict, task: TaskState) -> Verdict:
    """Return a pass with the caveats of the review, and of a change that has rivals."""
    if not verdict.passed:
        return verdict
    rivals = task.change.rivals if task.change is not None else ()
    ambiguous = (Caveat.AMBIGUOUS_REPAIR,) if rivals else ()
    notes = tuple(f"passes the same tests too: {rival}" for rival in rivals)
    caveats = (*verdict.caveats, *ambiguous, *find_review_caveats(task))
    return verdict.replace(caveats=caveats, notes=(*verdict.notes, *notes))


def merge_gates(group: str, gates: Mapping[Phase, Gate]) -> GatesMerged:
    """Return the common result of the gates of one tree: passed only if each is."""
    failed = tuple(phase for phase, gate in gates.items() if gate.status is not GateStatus.PASSED)
    words = ", ".join(f"{phase} {gate.status}" for phase, gate in gates.items())
    return GatesMerged(
        group=group, phases=tuple(gates), all_passed=not failed, failed_phases=failed, summary=words
    )
