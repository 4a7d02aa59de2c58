"""What a task came to: gathered once, for the terminal, the pages, the report, Markdown and JSON to print."""

from collections.abc import Iterator

from agentflow.core.check_command import format_command
from agentflow.core.evidence import CheckName, Evidence
from agentflow.core.record import Record
from agentflow.core.role import Citation, Issue
from agentflow.core.task import Status, TaskState
from agentflow.core.verdict import explain_caveat
from agentflow.report.why import Why, explain_task
from agentflow.verdict.ending import FindEvidence
from agentflow.wording import describe_all, describe_approvals


class CheckPair(Record):
    name: CheckName
    command: str
    missing: str
    before: Evidence | None
    after: Evidence | None
    is_final: bool
    """It was looked for on the change, whether it could run or not."""


class TaskSummary(Record):
    """What a task came to."""

    task: TaskState
    why: Why
    checks: tuple[CheckPair, ...]
    findings: tuple[tuple[Citation, str], ...] = ()
    issues: tuple[tuple[Issue, str], ...] = ()
    caveats: tuple[tuple[str, str], ...] = ()
    unproved: tuple[str, ...] = ()
    """Of a change that passed."""
    check_changes: tuple[str, ...] = ()
    """Changes to the checks that a person approved or has to approve."""
    is_approved: bool = False
    notes: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    """Why the change did not pass."""
    hook_files: tuple[str, ...] = ()
    is_search_result: bool = False
    """The change was found by search, so that only the tests vouch for it."""


def summarize_task(
    task: TaskState, find: FindEvidence, *, at_work: bool = False, is_named: bool = True, place: str = ""
) -> TaskSummary:
    """Return what a task came to; `place` is the option with which commands find its repository."""
    verdict, cited = task.verdict, task.findings.findings if task.findings else ()
    doubts = dict.fromkeys(task.unseen_findings, "not seen by the explorer")
    doubts |= dict.fromkeys(task.flagged_findings, "no such line")
    return TaskSummary(
        task=task,
        why=explain_task(task, find, at_work=at_work, is_named=is_named, place=place),
        checks=tuple(pair_checks(task, find)),
        findings=tuple((one, doubts.get(one.place, "")) for one in cited),
        issues=tuple(
            (one, "no such line" if one.place in task.flagged_issues else "")
            for one in (task.review.issues if task.review else ())
        ),
        caveats=tuple((word, explain_caveat(word)) for word in verdict.caveats) if verdict else (),
        unproved=describe_all(verdict.unproved) if verdict and verdict.passed else (),
        check_changes=(describe_approvals(verdict) or describe_all(verdict.weakened)) if verdict else (),
        is_approved=bool(verdict and verdict.approval),
        notes=describe_all(verdict.notes) if verdict else (),
        reasons=describe_all(verdict.reasons) if verdict and not verdict.passed else (),
        hook_files=tuple(sorted(task.hook_files)),
        is_search_result=task.is_found and task.status in (Status.VERIFIED, Status.VERIFIED_WITH_CAVEAT),
    )


def pair_checks(task: TaskState, find: FindEvidence) -> Iterator[CheckPair]:
    """Yield each required check with its evidence before the task and on the change."""
    base = {one.check.name: one for one in task.baseline}
    final = {one.check.name: one for one in task.final}
    for name in CheckName:
        before, after = base.get(name), final.get(name)
        if newest := after or before:
            yield CheckPair(
                name=name,
                command=format_command(newest.check.command),
                missing=newest.check.missing or "",
                before=find(before.evidence) if before else None,
                after=find(after.evidence) if after else None,
                is_final=after is not None,
            )
