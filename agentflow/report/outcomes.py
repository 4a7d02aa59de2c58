"""What the result of a role means for its task: the end of a run, and a review."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from agentflow.core.errors import Exit
from agentflow.core.events import GatesMerged
from agentflow.core.role import Issue, Review, ReviewVerdict, Severity
from agentflow.core.run import Run, RunOutcome
from agentflow.core.task import Ending, Gate, GateStatus, Phase, Status, TaskState
from agentflow.core.verdict import Caveat, Verdict

_BLOCKING = (Severity.CRITICAL, Severity.MAJOR)


class Meaning(NamedTuple):
    """How the task of a run ends; the reason has places for the role and a hook's words."""

    status: Status
    exit_code: Exit
    reason: str


def _limit(what: str) -> Meaning:
    return Meaning(Status.LIMIT, Exit.LIMIT, f"the {{role}} used up its {what} without a result")


def _invalid(why: str) -> Meaning:
    return Meaning(Status.FAILED, Exit.NOT_VERIFIED, f"the {{role}} gave no valid result: {why}")


WITHOUT_RESULT: Mapping[RunOutcome, Meaning] = MappingProxyType(
    {
        RunOutcome.ERROR: Meaning(Status.FAILED, Exit.NO_MODEL, "the {role} got no usable reply"),
        RunOutcome.HALTED: Meaning(Status.BLOCKED, Exit.BLOCKED, "a hook stopped the task: {why}"),
        RunOutcome.STOPPED: Meaning(Status.BLOCKED, Exit.BLOCKED, "a hook stopped the {role}: {why}"),
        RunOutcome.TURN_LIMIT: _limit("turns"),
        RunOutcome.PAUSE_LIMIT: Meaning(
            Status.LIMIT,
            Exit.LIMIT,
            "the model kept pausing its reply (pause_turn), and the {role} gave no result",
        ),
        RunOutcome.TOOL_LIMIT: _limit("tool calls"),
        RunOutcome.TOKEN_LIMIT: _limit("tokens"),
        RunOutcome.TIME_LIMIT: _limit("seconds"),
        RunOutcome.COST_LIMIT: _limit("money"),
        RunOutcome.INVALID_SUBMISSION: _invalid("it submitted an invalid result twice"),
        RunOutcome.CONFUSED: Meaning(
            Status.FAILED,
            Exit.NOT_VERIFIED,
            "stopped: every tool call of the {role}'s last three turns was refused{by}",
        ),
        RunOutcome.NO_SUBMISSION: _invalid("it ended without a submission"),
        RunOutcome.ANSWERED: _invalid("it ended without a submission"),
        RunOutcome.SUBMITTED: Meaning(Status.FAILED, Exit.NOT_VERIFIED, "the {role} gave no result"),
    }
)
"""The codes are those of the command; a submission that came is judged by the gate of its phase."""


def end_without_result(run: Run) -> Ending:
    """Return how a task ends if its role gave no usable result."""
    meaning = WITHOUT_RESULT[run.outcome or RunOutcome.ERROR]
    why = run.halt or run.stop or ""
    by = f" (by {', '.join(run.refused_by)})" if run.refused_by else ""
    reason = meaning.reason.replace("{role}", run.head.role).replace("{why}", why).replace("{by}", by)
    return Ending(status=meaning.status, exit_code=meaning.exit_code, reason=reason)


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
    if task.gate(Phase.REVIEW).status is GateStatus.SKIPPED:
        return (Caveat.NOT_REVIEWED,) if task.review_required else ()
    review = task.review
    disagrees = review is not None and (review.verdict is ReviewVerdict.NEEDS_CHANGES or task.flagged_issues)
    return (Caveat.REVIEWER_DISAGREES,) if disagrees else ()


def add_review_caveats(verdict: Verdict, task: TaskState) -> Verdict:
    return (
        verdict.replace(caveats=(*verdict.caveats, *find_review_caveats(task))) if verdict.passed else verdict
    )


def merge_gates(group: str, gates: Mapping[Phase, Gate]) -> GatesMerged:
    """Return the common result of the gates of one tree: passed only if each is."""
    failed = tuple(phase for phase, gate in gates.items() if gate.status is not GateStatus.PASSED)
    words = ", ".join(f"{phase} {gate.status}" for phase, gate in gates.items())
    return GatesMerged(
        group=group, phases=tuple(gates), all_passed=not failed, failed_phases=failed, summary=words
    )
