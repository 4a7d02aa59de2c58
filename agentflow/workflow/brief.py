"""What a role is told as its run begins: Markdown, written from the task's state and the evidence."""

from agentflow.core.evidence import RED, CheckRun, Side, ended, mixed
from agentflow.core.submissions import Plan
from agentflow.core.task import Failure, Phase, TaskState
from agentflow.loop.context import prompt_text
from agentflow.report.material import Material, fenced

MAX_DIFF_CHARS = 20_000
TAIL_LINES = 20
MAX_FAILING = 20


def brief(task: TaskState, phase: Phase, material: Material) -> str:
    """Return the brief of the role that works in a phase."""
    if task.reads_only:
        parts = [_task(task), _explored(task, phase), *_reading(task, phase)]
    else:
        before = _checks("Checks before the task", material.baseline, material.folder)
        parts = [_task(task), _explored(task, phase), before, *_changing(task, phase, material)]
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
    return f"## Explored earlier\n{fenced(task.explored[:MAX_DIFF_CHARS], 'markdown')}"


def _reading(task: TaskState, phase: Phase) -> tuple[str, ...]:
    """Return what a role is told that has to find out and to change nothing."""
    if phase is Phase.REVIEW:
        return _findings(task), prompt_text("audit.md")
    return (prompt_text("question.md" if task.route == "question" else "inquiry.md"),)


def _changing(task: TaskState, phase: Phase, material: Material) -> tuple[str, ...]:
    match phase:
        case Phase.PLANNING:
            return _findings(task), _plan(task.rejected_plan, "Plan that the user had corrected")
        case Phase.IMPLEMENTATION:
            failures = (_failure(failure, material) for failure in task.failures)
            return _findings(task), _plan(task.plan), _diff("Change so far", material.diff), *failures
        case Phase.REVIEW:  # the checks run beside it
            return (_diff("Change", material.diff),)
        case Phase.VERIFICATION:
            shown = (*material.final, *material.held)
            after = _checks("Checks after the change", shown, material.folder)
            return _diff("Change", material.diff), after
        case Phase.REFINEMENT | Phase.EXPLORATION | Phase.COMPLETE:
            return ()


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
    name, evidence = str(run.check.name), run.evidence
    if evidence is None:
        return f"- {name}: not run ({run.check.missing})"
    if (evidence.surface, evidence.code) == (Side.BASE, Side.FINAL):
        name = f"{name}, as they stood before the task"
    colour = "green" if run.green else "red"
    end = f"{ended(evidence)}{mixed(evidence)}"
    lines = [
        f"- {name}: {colour}, {end}, evidence {evidence.id}, output in {folder}/evidence/{evidence.id}.out",
        f"  `{run.check.command}`",
    ]
    if not run.green:
        failing = sorted(run.ids(*RED))
        more = f" and {len(failing) - MAX_FAILING} more" if len(failing) > MAX_FAILING else ""
        if failing:
            lines.append(f"  failing: {', '.join(failing[:MAX_FAILING])}{more}")
        lines.append(fenced("\n".join(run.tail.rstrip().splitlines()[-TAIL_LINES:])))
    return "\n".join(lines)


def _findings(task: TaskState) -> str:
    findings = task.findings
    if findings is None:
        return ""
    lines = [
        f"- {one.place}{' (no such line)' if one.place in task.flagged_findings else ''}: {one.claim}"
        for one in findings.findings
    ]
    questions = [f"- open: {question}" for question in findings.open_questions]
    return "\n".join(("## Findings", findings.summary, *lines, *questions))


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


def _failure(failure: Failure, material: Material) -> str:
    reasons = [f"- {reason}" for reason in failure.reasons]
    checks = [_check(run, material.folder) for run in material.shown(failure.evidence) if not run.green]
    by = f" in {failure.phase}" if failure.phase is Phase.REVIEW else ""
    return "\n".join((f"## Iteration {failure.iteration} failed{by}", *reasons, *checks))


def _diff(title: str, diff: str) -> str:
    if not diff:
        return ""
    left = len(diff) - MAX_DIFF_CHARS
    note = f"\n({left} more characters left out)" if left > 0 else ""
    return f"## {title}\n{fenced(diff[:MAX_DIFF_CHARS].rstrip(), 'diff')}{note}"
