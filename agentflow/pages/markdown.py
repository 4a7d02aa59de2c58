"""The page of a task as a comment for a pull request, in the Markdown of GitHub."""

import re
from collections.abc import Iterator, Sequence

from agentflow.core.check_command import format_command
from agentflow.core.evidence import Evidence, summarize_evidence
from agentflow.pages.diff import FileView, JudgedAs
from agentflow.pages.page import CheckView, TaskPage
from agentflow.pages.render import describe_status, explain_outcome
from agentflow.redact import format_count, format_money, make_visible, redact_text, to_one_line
from agentflow.report.material import fence_text, tabulate_markdown
from agentflow.report.summary import SummaryPart, TaskSummary
from agentflow.view.words import format_duration

_MARKS = {"good": "✅", "warn": "⚠️", "bad": "❌", "accent": "⏳"}
_BREAK = "\u200b"
"""Stands, unseen, where a sign would otherwise name a person, an issue or an address."""
_SPECIAL = re.compile(r"[\\`*_{}\[\]#!|~>$]|^(?:[-+=:]|\d+(?=[.)]))")
"""Signs with a meaning in Markdown, anywhere in a line or at its beginning."""
_TAKEN_UP = re.compile(
    r"@|#(?=\d)|(?i:\b(?:GH|[A-Z]{2,10})-)(?=\d)|(?i:(?:https?|ftps?|mailto|xmpp):|\bwww\.)"
)
_MOST_TESTS = 10
_MOST_ROWS = 20
_MOST_FILES = 50
_MOST_DIFF = 300
_LINE = 300
_LIMIT = 60_000
"""Characters; GitHub refuses a comment above 65,536."""


def escape_markdown(text: str, width: int = _LINE) -> str:
    """Return foreign text as nothing but text on GitHub: no HTML, link, picture, mention or reference."""

    def break_up(found: re.Match[str]) -> str:
        sign = found[0]  # one that GitHub would take up
        at = 3 if sign[:1].isalnum() and len(sign) > 3 else len(sign)
        return f"{sign[:at]}{_BREAK}{sign[at:]}"

    shown = to_one_line(text, width).replace("&", "&amp;").replace("<", "&lt;")
    cut = _TAKEN_UP.sub(break_up, shown)
    return _SPECIAL.sub(lambda sign: f"{sign[0]}{_BREAK}" if sign[0].isdigit() else f"\\{sign[0]}", cut)


def to_code(text: str, width: int = _LINE) -> str:
    """Return one line of foreign text as code, which GitHub reads nothing into."""
    shown = to_one_line(text, width)
    ticks = "`" * (max(map(len, re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown[:1] in "` " or shown[-1:] in "` " else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}" if shown else ""


def _to_cell(text: str, width: int = _LINE) -> str:
    """Return the same for a cell of a table, where a bar would begin the next cell."""
    return to_code(text, width).replace("|", "\\|")


def format_comment(page: TaskPage) -> str:
    _, status, tone = describe_status(page)
    title = f": {escape_markdown(page.summary.task.title, 120)}" if page.summary else ""
    parts = [f"### {_MARKS.get(tone, '❌')} {escape_markdown(status)}{title}"]
    parts += [f"Cannot be read: {to_code(problem)}" for problem in page.problems]
    if page.summary is not None:
        parts += filter(None, _list_parts(page, page.summary))
    text = "\n\n".join(parts) + "\n"
    if len(text) <= _LIMIT:
        return text
    kept, room = list[str](), _LIMIT - 200
    for part in parts:
        if len(part) + 2 <= room:
            kept.append(part)
            room -= len(part) + 2
    return "\n\n".join([*kept, "Some parts are left out, because a comment may not be longer."]) + "\n"


def _list_parts(page: TaskPage, summary: TaskSummary) -> Iterator[str]:
    state = summary.task
    yield escape_markdown(explain_outcome(page), 600)
    if state.findings is not None and state.reads_only:
        rows = make_visible(redact_text(state.findings.summary)).strip().split("\n")
        yield "\n".join(f"> {escape_markdown(row, 1000)}".rstrip() for row in rows[:60])
    if page.checks:
        yield _tabulate_checks(page.checks)
    yield from map(format_part, summary.parts)
    if page.files:
        yield _tabulate_files(page.files)
        rows = make_visible(redact_text(page.diff)).rstrip().split("\n")
        more = [f"… {format_count(len(rows) - _MOST_DIFF, 'more line')}"] if len(rows) > _MOST_DIFF else []
        yield _fold("Diff", fence_text("\n".join([*rows[:_MOST_DIFF], *more]), "diff"))
    changed = [test for check in page.checks for test in check.changed]
    if changed:
        tests = [(_to_cell(one.name), one.before or "-", one.after or "-") for one in changed]
        table = tabulate_markdown(("test", "before", "after"), tests, noun="test")
        yield _fold("Tests whose result changed, or that do not pass", table)
    if page.snapshot and page.snapshot.evidence:
        yield _fold("Evidence", _tabulate_evidence(page.snapshot.evidence))
    attempts = "" if state.reads_only else f"attempt {state.iteration} of at most {state.max_iterations}, "
    usage = f"{format_count(state.usage.tokens, 'token')}, cost {format_money(state.usage.cost_usd)}"
    spent = f"{attempts}{format_duration(page.course.seconds)} of work, {usage}"
    model, task = escape_markdown(state.model, 80), to_code(state.task_id)
    yield f"<sub>agentflow task {task}, model {model}, {spent}. The checks were run by the program.</sub>"


def _fold(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"


def _tabulate_checks(checks: tuple[CheckView, ...]) -> str:
    rows = []
    for check in checks:
        before = escape_markdown(summarize_evidence(check.before)) if check.before else "not run"
        after = escape_markdown(summarize_evidence(check.after)) if check.after else "not run"
        is_fine = check.after is not None and check.after.exit_code == 0
        mark = ("✅ " if is_fine else "❌ ") if check.after else ""
        rows.append((check.name, before, f"{mark}{after}", _to_cell(check.command, 100)))
    return tabulate_markdown(("check", "before", "with the change", "command"), rows)


def format_part(part: SummaryPart) -> str:
    lines = list[str]()
    for row in part.rows[:_MOST_ROWS]:
        lead = f"{to_code(row.lead)} " if row.lead else ""
        lines.append(f"- {lead}{escape_markdown(row.text)}{':' if row.names else ''}".rstrip())
        lines += [f"  - {to_code(name)}" for name in row.names[:_MOST_TESTS]]
        if len(row.names) > _MOST_TESTS:
            lines.append(f"  - {format_count(len(row.names) - _MOST_TESTS, 'more test')}")
    if len(part.rows) > _MOST_ROWS:
        lines.append(f"- {format_count(len(part.rows) - _MOST_ROWS, 'more')}")
    if part.is_detail and lines:
        return _fold(part.title, "\n".join(lines))
    return "\n".join((f"**{part.title}**", "", *lines)).rstrip()


def _tabulate_files(files: tuple[FileView, ...]) -> str:
    rows = [
        (_to_cell(file.path), f"+{file.added} -{file.removed}", ", ".join(file.marks) or JudgedAs.OPEN)
        for file in files
    ]
    return tabulate_markdown(("file", "lines", "what is known"), rows, noun="file", most=_MOST_FILES)


def _tabulate_evidence(evidence: Sequence[Evidence]) -> str:
    rows = []
    for one in evidence[-100:]:
        by = "the program" if one.by == "program" else escape_markdown(one.role or "a role")
        result = escape_markdown(summarize_evidence(one))
        rows.append((_to_cell(one.id), by, result, _to_cell(format_command(one.command), 100)))
    return tabulate_markdown(("id", "run by", "result", "command"), rows)
