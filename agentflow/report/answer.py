"""The answer of a route that changes nothing, and the document that keeps it."""

import re
from collections.abc import Collection, Iterator
from pathlib import Path

from agentflow.core.regex import regex
from agentflow.core.role import Finding, Issue
from agentflow.core.task import Ending, Status, TaskState
from agentflow.frontmatter import write_atomic
from agentflow.redact import nest, visible
from agentflow.verdict.ending import describe_issue, fail

_FOLDER = Path(".claude")
_SLUG_CHARS = 40
_ADVICE = regex(r"^[^a-z0-9\n]*(?:plan|recommendations?)[^a-z0-9\n]*$", re.IGNORECASE | re.MULTILINE)
_EMPTY = frozenset(
    {"", "n/a", "na", "none", "nothing", "todo", "tbd", "unknown", "no findings", "nothing found"}
)


def end_without_answer(task: TaskState) -> Ending | None:
    """Return how a reading task ends if its explorer found nothing, else None."""
    if task.findings is None or not _is_real(task.findings.summary):
        return fail("the explorer's summary is empty")
    cited = (one for one in task.findings.findings if one.place not in task.flagged_findings)
    if task.route != "question" and not any(_is_real(one.claim) for one in cited):
        return fail("the explorer found nothing that it could cite")
    return None


def _is_real(text: str) -> bool:
    return text.strip().strip(".-*_ ").lower() not in _EMPTY


def format_answer(task: TaskState) -> str | None:
    """Return the answer of a task that changed nothing, as text."""
    if task.ending is None or task.ending.status is not Status.ANSWERED or task.findings is None:
        return None
    findings = (f"- {one.place}: {one.claim}" for one in task.findings.findings)
    issues = (f"- {describe_issue(issue)}" for issue in (task.review.issues if task.review else ()))
    questions = (f"- open: {question}" for question in task.findings.open_questions)
    return "\n".join((task.findings.summary.strip(), *findings, *issues, *questions))


def keeps_document(task: TaskState) -> bool:
    """Return whether the answer is also written to a file; the answer to a question is not."""
    return (task.route != "question" and task.focus is None) or task.report_requested


def _format_document(task: TaskState) -> str:
    """Return the answer as a document with its five sections."""
    findings = task.findings
    assert findings is not None
    flagged = {*task.flagged_findings, *task.flagged_issues}
    places = dict.fromkeys(_list_places(task))
    said, advised = split_advice(findings.summary)
    sections = (
        ("Summary", [nest(said)], ""),
        ("Findings", [f"- {nest(one.claim)} ({nest(one.place)})" for one in findings.findings], "none"),
        (
            "Plan / Recommendations",
            [f"- {nest(one)}" for one in (*advised, *_list_issues(task))],
            "none: neither the explorer nor a reviewer gave any",
        ),
        ("Open Questions", [f"- {nest(one)}" for one in findings.open_questions], "none were named"),
        (
            "Sources & Evidence",
            [f"- {nest(one)}{_describe_citation(one, flagged, task.unseen_findings)}" for one in places],
            "none cited",
        ),
    )
    parts = [
        f"# {visible(task.task.strip().splitlines()[0])}",
        f"Task {task.task_id}, tree {task.base_tree}.",
    ]
    parts.extend("\n".join((f"## {title}", "", *(lines or [f"- {no}"]))) for title, lines, no in sections)
    return "\n\n".join(parts) + "\n"


def _list_places(task: TaskState) -> Iterator[str]:
    """Yield what was cited: the line, or the address of a web page."""
    found: tuple[Finding | Issue, ...] = (
        *(task.findings.findings if task.findings else ()),
        *(task.review.issues if task.review else ()),
    )
    for one in found:
        yield one.path if "://" in one.path else one.place


def _describe_citation(place: str, flagged: set[str], unseen: Collection[str]) -> str:
    if "://" in place:
        return ": not checked by the program"
    if place in flagged:
        return ": FLAGGED, there is no such line"
    return ": the line exists, but the explorer did not see it" if place in unseen else ": the line exists"


def _list_issues(task: TaskState) -> tuple[str, ...]:
    return tuple(describe_issue(issue) for issue in task.review.issues) if task.review else ()


def split_advice(summary: str) -> tuple[str, tuple[str, ...]]:
    """Return a summary without the recommendations at its end, and these as a list."""
    found = _ADVICE.search(summary)
    if found is None or not summary[: found.start()].strip():
        return summary, ()
    items = (row.strip(" \t-*") for row in summary[found.end() :].splitlines())
    return summary[: found.start()].strip(), tuple(item for item in items if item)


def write_document(root: Path, task: TaskState, stamp: str) -> str:
    """Write the answer to a new file; return its path in the repository."""
    slug = re.sub(r"[^a-z0-9]+", "-", task.task.lower())[:_SLUG_CHARS].strip("-") or "report"
    base = f"research-{slug}-{stamp}"
    names = (f"{base}{suffix}.local.md" for suffix in ("", *(f"-{number}" for number in range(2, 1000))))
    name = next(name for name in names if not (root / _FOLDER / name).exists())
    (root / _FOLDER).mkdir(exist_ok=True)
    write_atomic(root / _FOLDER / name, _format_document(task).encode())
    return str(_FOLDER / name)
