"""What a review comes to, and what all judges of one tree come to together; pure."""

from collections.abc import Mapping

from agentflow.core.caveat import Caveat
from agentflow.core.events import GatesMerged
from agentflow.core.evidence import Verdict
from agentflow.core.submissions import Issue, Review, ReviewVerdict, Severity
from agentflow.core.task import Gate, GateStatus, Phase, TaskState

_BLOCKING = (Severity.CRITICAL, Severity.MAJOR)


def objections(review: Review, flagged: tuple[str, ...]) -> tuple[str, ...]:
    """Return why a change goes back: the stricter of verdict and issues counts, if the issue is cited.

    A review cannot be outvoted by checks or verifier, so that two judges who contradict each other end in
    the change going back, as often as there are iterations.
    """
    cited = tuple(issue for issue in review.issues if issue.place not in flagged)
    serious = any(issue.severity in _BLOCKING for issue in cited)
    if not serious and review.verdict is ReviewVerdict.APPROVED:
        return ()
    return tuple(told(issue) for issue in cited)


def told(issue: Issue) -> str:
    """Return an issue as the implementer is told it, in the reviewer's own words."""
    return f"{issue.severity} {issue.place}: {issue.kind}: {issue.message}"


def caveats(task: TaskState) -> tuple[str, ...]:
    """Return what a person should know of the review of a change that is otherwise verified."""
    if task.gate(Phase.REVIEW).status is GateStatus.SKIPPED:
        return (Caveat.NOT_REVIEWED,) if task.review_required else ()
    review = task.review
    disagrees = review is not None and (review.verdict is ReviewVerdict.NEEDS_CHANGES or task.flagged_issues)
    return (Caveat.REVIEWER_DISAGREES,) if disagrees else ()


def with_caveats(verdict: Verdict, task: TaskState) -> Verdict:
    """Return a passed verdict with the caveats of the review."""
    return verdict.replace(caveats=(*verdict.caveats, *caveats(task))) if verdict.passed else verdict


def merged(group: str, gates: Mapping[Phase, Gate]) -> GatesMerged:
    """Return what the gates of one tree come to together; one that is not passed is failed."""
    failed = tuple(phase for phase, gate in gates.items() if gate.status is not GateStatus.PASSED)
    words = ", ".join(f"{phase} {gate.status}" for phase, gate in gates.items())
    return GatesMerged(
        group=group, phases=tuple(gates), all_passed=not failed, failed_phases=failed, summary=words
    )
