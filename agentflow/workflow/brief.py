"""What a role is told as its run begins: Markdown, written from the task's state and the evidence."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from agentflow.core.evidence import RED, CheckRun, Side, ended, repeated
from agentflow.core.role import Plan
from agentflow.core.task import Failure, Phase, TaskState
from agentflow.loop.context import prompt_text
from agentflow.report.material import Material, fence_text
from agentflow.report.outcomes import describe_issue
from agentflow.workflow.opening import excerpts, opening

MAX_DIFF_CHARS = 20_000
TAIL_LINES = 20
MAX_FAILING = 20
_RESULTS: Mapping[Phase, Mapping[str, Any]] = MappingProxyType(
    {
        Phase.EXPLORATION: {"findings": None, "cited": ()},
        Phase.PLANNING: {"plan": None},
        Phase.IMPLEMENTATION: {"change": None},
    }
)
"""What a role has not handed in as it begins, where a brief tells of it."""


def brief(task: TaskState, phase: Phase, material: Material) -> str:
    """Return the brief of the role that works in a phase, the same before and after its own result."""
    task = task.replace(**_RESULTS.get(phase, {}))
    head = (opening(task, phase, material), _task(task), _explored(task, phase))
    if task.reads_only:
        parts = [*head, *_reading(task, phase, material)]
    else:
        before = _checks("Checks before the task", material.baseline, material.folder)
        parts = [*head, before, *_changing(task, phase, material)]
    return "\n\n".join(part for part in parts if part)


def failed_brief(task: TaskState, material: Material) -> str:
    """Return what the implementer's conversation is told as a new iteration begins: only what is new."""
    new = (failure for failure in task.failures if failure.iteration == task.iteration - 1)
    head = f"# Iteration {task.iteration} of {task.max_iterations}"
    return "\n\n".join((f"{head}\n{prompt_text('failed.md')}", *(_failure(each, material) for each in new)))


def _explored(task: TaskState, phase: Phase) -> str:
    """Return an earlier exploration for those who find out, plan or change; who judges gets no such help."""
    if not task.explored or phase in (Phase.REVIEW, Phase.VERIFICATION):
        return ""
    return f"## Explored earlier\n{fence_text(task.explored[:MAX_DIFF_CHARS], 'markdown')}"


def _reading(task: TaskState, phase: Phase, material: Material) -> tuple[str, ...]:
    """Return what a role is told that has to find out and to change nothing."""
    if phase is Phase.REVIEW:
        return _findings(task), excerpts(task, material), prompt_text("audit.md")
    wanted = "question.md" if task.route == "question" else "inquiry.md"
    return excerpts(task, material), prompt_text(wanted)


def _changing(task: TaskState, phase: Phase, material: Material) -> tuple[str, ...]:
    seen = excerpts(task, material)
    match phase:
        case Phase.EXPLORATION:
            return (seen,)
        case Phase.PLANNING:
            return _findings(task), seen, _plan(task.rejected_plan, "Plan that the user had corrected")
        case Phase.IMPLEMENTATION:
            known = (_findings(task), seen, _plan(task.plan), _diff("Change so far", material.diff))
            return *known, *_failures(task, material)
        case Phase.REVIEW:  # the checks run beside it
            return _judged(task, material)
        case Phase.VERIFICATION:
            shown = (*material.final, *material.held)
            after = _checks("Checks after the change", shown, material.folder)
            return *_judged(task, material), after, _reviewed(task)
        case Phase.REFINEMENT | Phase.COMPLETE:
            return ()


def _judged(task: TaskState, material: Material) -> tuple[str, ...]:
    """Return what both judges are told: what was planned, what is claimed, what failed, what changed."""
    said = [f"- {reason}" for failure in task.failures for reason in failure.reasons]
    failed = "\n".join(("## Why it was sent back before", *dict.fromkeys(said))) if said else ""
    return _plan(task.plan), _claimed(task, material), failed, _diff("Change", material.diff)


def _claimed(task: TaskState, material: Material) -> str:
    """Return which files the implementer names, and where the tree says otherwise; no other word of it."""
    if task.change is None:
        return ""
    claimed, changed = dict.fromkeys(task.change.files), dict.fromkeys(material.changed)
    lines = (
        ("named", claimed),
        ("named, but unchanged", claimed.keys() - changed.keys()),
        ("changed, but not named", changed.keys() - claimed.keys()),
    )
    told = (f"- {title}: {', '.join(sorted(paths))}" for title, paths in lines if paths)
    return "\n".join(("## Files that the implementer names", *told))


def _reviewed(task: TaskState) -> str:
    """Return what the reviewer said, where it came first and not beside the verifier."""
    if task.review is None or not task.sequential:
        return ""
    issues = (f"- {describe_issue(issue)}" for issue in task.review.issues)
    return "\n".join(("## Review", str(task.review.verdict), *issues))


def _task(task: TaskState) -> str:
    intent = task.intent
    named = (
        ("Description", _beyond(intent.goal, intent.description)),
        ("Actions", _beyond(intent.goal, intent.actions)),
        ("Constraints", intent.constraints),
        ("Assumptions", intent.assumptions),
    )
    said = [f"## {title}\n{text}" for title, text in (*named, ("Context", task.context)) if text]
    return "\n\n".join((f"# Task\n{intent.goal or task.task}", *said))


def _beyond(goal: str, text: str) -> str:
    """Return a text that says more than the goal, which is told word for word anyway."""
    is_more = any(line.removeprefix("- ") not in goal for line in text.split("\n"))
    return text if is_more else ""


def _checks(title: str, runs: tuple[CheckRun, ...], folder: str) -> str:
    if not runs:
        return f"## {title}\nnone: this repository has no check that agentflow can find"
    return "\n".join((f"## {title}", *(_check(run, folder) for run in runs)))


def _check(run: CheckRun, folder: str) -> str:
    """Return a check in a line with its command, and what a red one printed last."""
    printed = "\n".join(run.tail.rstrip().splitlines()[-TAIL_LINES:])
    is_red = run.evidence is not None and not run.green
    return "\n".join((_check_line(run, folder), *((fence_text(printed),) if is_red else ())))


def _check_line(run: CheckRun, folder: str) -> str:
    name, evidence = str(run.check.name), run.evidence
    if evidence is None:
        return f"- {name}: not run ({run.check.missing})"
    if (evidence.surface, evidence.code) == (Side.BASE, Side.FINAL):
        name = f"{name}, as they stood before the task"
    colour = "green" if run.green else "red"
    end = f"{ended(evidence)}{repeated(evidence.tries, evidence.flaky)}{_counted(run)}"
    lines = [
        f"- {name}: {colour}, {end}, evidence {evidence.id}, output in {folder}/evidence/{evidence.id}.out",
        f"  `{run.check.command}`",
    ]
    failing = () if run.green else sorted(run.ids(*RED))
    more = f" and {len(failing) - MAX_FAILING} more" if len(failing) > MAX_FAILING else ""
    if failing:
        lines.append(f"  failing: {', '.join(failing[:MAX_FAILING])}{more}")
    return "\n".join(lines)


def _counted(run: CheckRun) -> str:
    if run.counts is None:
        return ""
    failed = run.counts.failed + run.counts.errors
    return f", {run.counts.passed} passed, {failed} failed, {run.counts.skipped} skipped"


def _findings(task: TaskState) -> str:
    findings = task.findings
    if findings is None:
        return ""
    lines = [f"- {one.place}{_flag(one.place, task)}: {one.claim}" for one in findings.findings]
    questions = [f"- open: {question}" for question in findings.open_questions]
    return "\n".join(("## Findings", findings.summary, *lines, *questions))


def _flag(place: str, task: TaskState) -> str:
    if place in task.flagged_findings:
        return " (no such line)"
    return " (the explorer did not see this line)" if place in task.unseen_findings else ""


def _plan(plan: Plan | None, title: str = "Plan") -> str:
    if plan is None:
        return ""
    steps = [
        f"{number}. {step.title}" + (f" ({', '.join(step.files)})" if step.files else "")
        for number, step in enumerate(plan.steps, 1)
    ]
    acceptance = [f"- must hold: {item}" for item in plan.acceptance]
    risks = [f"- risk: {item}" for item in plan.risks]
    return "\n".join((f"## {title}", plan.summary, *steps, *acceptance, *risks))


def _failures(task: TaskState, material: Material) -> tuple[str, ...]:
    """Return why earlier iterations failed; only the newest with what was printed."""
    newest = max((failure.iteration for failure in task.failures), default=0)
    return tuple(
        _failure(failure, material, _check if failure.iteration == newest else _check_line)
        for failure in task.failures
    )


def _failure(failure: Failure, material: Material, shown: Callable[[CheckRun, str], str] = _check) -> str:
    reasons = [f"- {reason}" for reason in failure.reasons]
    red = (run for run in material.shown(failure.evidence) if not run.green)
    by = f" in {failure.phase}" if failure.phase is Phase.REVIEW else ""
    heading = f"## Iteration {failure.iteration} failed{by}"
    return "\n".join((heading, *reasons, *(shown(run, material.folder) for run in red)))


def _diff(title: str, diff: str) -> str:
    if not diff:
        return ""
    left = len(diff) - MAX_DIFF_CHARS
    note = f"\n({left} more characters left out)" if left > 0 else ""
    return f"## {title}\n{fence_text(diff[:MAX_DIFF_CHARS].rstrip(), 'diff')}{note}"
