"""The page of a task as HTML: the parts that a live view replaces one by one, and the whole as one file."""

import hashlib
from base64 import b64encode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agentflow import __version__
from agentflow.core.evidence import Side, describe_end
from agentflow.core.messages import sum_usage
from agentflow.core.pending import Pending, PendingKind, tell_decision
from agentflow.core.run import RunOutcome
from agentflow.core.task import Status, TaskState
from agentflow.core.verdict import PLAUSIBLE
from agentflow.pages.diff import JudgedAs
from agentflow.pages.page import CallEnd, RunView, TaskPage, read_output_end
from agentflow.pages.picture import Plot, Stand, draw_plot, draw_route
from agentflow.pages.templates import fill_template, to_markup
from agentflow.redact import format_count, format_money, to_one_line
from agentflow.report.summary import list_facts
from agentflow.view.status import diff_call, tell_terms
from agentflow.view.words import (
    format_duration,
    format_local,
    is_offline,
    is_without_change,
    mark_status,
    style_status,
)

LOCAL = "#{}"
"""The address of a record within the same page."""
_STANDS: Mapping[Stand, str] = {
    Stand.PASSED: "✓",
    Stand.FAILED: "✗",
    Stand.NOW: "▸",
    Stand.WAITS: "‖",
    Stand.STOPPED: "!",
    Stand.TO_COME: "○",
    Stand.SKIPPED: "─",
}
_ENDS: Mapping[CallEnd, str] = {
    CallEnd.RUNNING: "▸",
    CallEnd.DONE: "✓",
    CallEnd.FAILED: "✗",
    CallEnd.REFUSED: "⊘",
}
_LINE_MARKS: Mapping[JudgedAs, tuple[str, str]] = {
    JudgedAs.PROVED: ("✓", "a test fails without these lines and passes with them"),
    JudgedAs.UNPROVED: ("?", "nothing fails without these lines"),
    JudgedAs.CHECK: ("⚑", "a part of what judges the change"),
    JudgedAs.DOCUMENT: ("¶", "read by people only"),
    JudgedAs.SAME: ("=", "what the program does stays as it was"),
    JudgedAs.OPEN: ("○", "there is no verdict on these lines yet"),
}
_SIDES = {
    (Side.BASE, Side.BASE): "before the task",
    (Side.BASE, Side.FINAL): "without the change",
    (Side.FINAL, Side.BASE): "with the original checks",
}
"""By the version of the code and that of the checks."""
_GOOD_ENDS = (RunOutcome.SUBMITTED, RunOutcome.ANSWERED)


def read_style() -> str:
    return (Path(__file__).parent / "page.css").read_text("utf-8")


def render_parts(page: TaskPage, evidence_link: str = LOCAL) -> Mapping[str, str]:
    """Return the HTML of each element of a page by its id, in the order of the page.

    The element `run-N` is the summary of a run in `runs`, and `turn-N-M` an item of the list `turns-N` there:
    they come as elements of their own, since they change while the others stay. What waits for a person is
    left to the page, which has its own ways to decide it.
    """
    if page.snapshot is None:
        return {"head": _render_head(page, evidence_link)}
    parts = dict(_render_sections(page, evidence_link))
    if page.runs:
        runs = [(run, to_markup(f'<summary id="run-{run.number}"></summary>'), ()) for run in page.runs]
        parts["runs"] = fill_template("pages/runs.html", runs=runs, opened=True)
    for run in page.runs:
        parts[f"run-{run.number}"] = _render_run(page, run)
        parts |= {f"turn-{run.number}-{number}": text for number, text in _render_turns(run)}
    parts["evidence"] = _render_evidence(page, evidence_link)
    parts["cost"] = _render_cost(page)
    return {name: text for name, text in parts.items() if text}


def render_document(page: TaskPage) -> str:
    """Return a page as one file that needs nothing else, with the outputs of its commands."""
    parts = {"head": _render_head(page, LOCAL)}
    if page.snapshot is not None:
        parts |= dict(_render_sections(page, LOCAL))
        runs = [
            (run, to_markup(_render_run(page, run)), [to_markup(text) for _, text in _render_turns(run)])
            for run in page.runs
        ]
        items = [describe_pending(item, page.snapshot.folder) for item in page.snapshot.state.pending]
        parts["waiting"] = fill_template("pages/waiting.html", items=items) if items else ""
        parts["runs"] = fill_template("pages/runs.html", runs=runs, opened=False) if runs else ""
        parts["evidence"] = _render_evidence(page, "")
        parts["cost"] = _render_cost(page)
    begin = ("waiting", "head", "answer", "route", "diff", "checks", "plan", "decisions")
    order = (*begin, "runs", "evidence", "cost")
    body = "\n".join(parts[name] for name in order if parts.get(name))
    words = to_one_line(page.summary.task.title, 80) if page.summary else ""
    title = f"{describe_status(page)[1]}: {words}" if page.summary else page.task_id
    return wrap_document(title, body, f"the files of task {page.task_id}")


def wrap_document(title: str, body: str, source: str) -> str:
    style = read_style()
    return fill_template(
        "pages/document.html",
        title=title,
        style=to_markup(style),
        style_hash=b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        version=__version__,
        source=source,
        body=to_markup(body),
    )


def describe_status(page: TaskPage) -> tuple[str, str, str]:
    """Return mark, name and tone of where a task stands."""
    if page.summary is None:
        return "!", "Cannot be read", "bad"
    state = page.summary.task
    words = page.summary.why.result or state.status
    name = words[:1].upper() + words[1:]
    if state.undone is not None or (state.status is Status.RUNNING and not page.at_work):
        return "!", name, "warn"
    return mark_status(state.status).text.strip(), name, style_status(state.status).name.lower()


def _render_head(page: TaskPage, link: str) -> str:
    mark, status, tone = describe_status(page)
    summary, evidence = page.summary, page.snapshot.evidence if page.snapshot else ()
    first, _, rest = summary.task.task.strip().partition("\n") if summary else ("", "", "")
    return fill_template(
        "pages/head.html",
        page=page,
        mark=mark,
        status=status,
        tone=tone,
        title=first,
        rest=rest.strip(),
        sentence=explain_outcome(page),
        facts=tuple(_list_facts(page, summary.task)) if summary else (),
        known={record.id for record in evidence},
        link=link,
    )


def explain_outcome(page: TaskPage) -> str:
    """Return in one sentence the proof or reason of the result, or what happens next."""
    if page.summary is None:
        return ""
    state, why = page.summary.task, page.summary.why
    if state.status is Status.RUNNING and page.at_work:
        return "Running."
    said = next(iter(why.facts), why.result)
    if state.status is Status.RUNNING and state.undone is None:
        said = f"{said}. {why.next[0]}"
    claim = f" It was found by search: {PLAUSIBLE}." if page.summary.is_search_result else ""
    return f"{said[:1].upper()}{said[1:]}{'' if said.endswith('.') else '.'}{claim}"


_DIFF_TONES = {"+": "came", "-": "gone", "@": "faint"}


def _list_facts(page: TaskPage, state: TaskState) -> Iterator[tuple[str, str, str]]:
    yield "Started", format_local(state.started_at), ""
    yield "Worked", format_duration(page.course.seconds), ""
    ids = dict.fromkeys(run.model for run in page.runs)
    yield "Model", state.model if is_offline(state.model) or not ids else ", ".join(ids), ""
    for fact in list_facts(state):
        yield fact.label.capitalize(), fact.text, fact.tone
    usage = sum_usage(role.usage for role in page.spending.roles) if page.spending.roles else state.usage
    yield "Cost", format_money(usage.cost_usd), ""
    yield "Tokens", f"{usage.tokens - usage.output:,} in, {usage.output:,} out", ""
    if state.ending is not None:
        yield "Exit code", str(int(state.ending.exit_code)), ""
    if state.base_tree and state.tree:
        yield "Trees", f"{state.base_tree[:12]} → {state.tree[:12]}", ""


def _render_sections(page: TaskPage, link: str) -> Iterator[tuple[str, str]]:
    assert page.summary is not None
    state = page.summary.task
    yield "head", _render_head(page, link)
    if state.findings is not None and state.reads_only:
        yield "answer", fill_template("pages/answer.html", state=state, findings=page.summary.findings)
    picture = draw_route(state, page.course, at_work=page.at_work)
    told = ", ".join(f"{box.phase} {box.stand}" for box in picture.boxes)
    yield "route", fill_template("pages/route.html", state=state, picture=picture, told=told, marks=_STANDS)
    if not state.reads_only:
        yield "diff", _render_diff(page, state)
    if page.checks:
        yield "checks", fill_template("pages/checks.html", page=page, probes=state.probes or ())
    if state.plan or state.failures:
        yield "plan", fill_template("pages/plan.html", state=state)
    calls = [(name, one) for name, one in state.waiting.answers.items() if one.tool is not None]
    if calls:
        rows = [(tell_decision(name, one), one, list(one.list_edits())) for name, one in calls]
        yield "decisions", fill_template("pages/decisions.html", told=rows, tones=_DIFF_TONES)


def _render_diff(page: TaskPage, state: TaskState) -> str:
    marks = [mark for mark in JudgedAs if any(mark in file.marks for file in page.files)]
    is_open = state.status in (Status.RUNNING, Status.SUSPENDED)
    return fill_template(
        "pages/diff.html",
        page=page,
        added=sum(file.added for file in page.files),
        removed=sum(file.removed for file in page.files),
        legend=[(mark, _LINE_MARKS[mark][1]) for mark in marks],
        signs={mark: sign for mark, (sign, _) in _LINE_MARKS.items()},
        empty="No changes yet." if is_open else "No file was changed.",
    )


def describe_pending(item: Pending, folder: Path) -> Mapping[str, Any]:
    questions = [one.text for one in item.questions if one.text]
    rows = [("question", text) for text in questions]
    diff = [str(row) for row in str(item.input.get("diff", "")).split("\n") if row]
    if item.kind is PendingKind.SURFACE:
        rows = [("what changed", "\n".join(item.input["changes"])), ("said", item.input["why"] or "")]
    elif diff := diff_call(item, folder.parents[2]):
        rows = [("file", item.input["file_path"])]
    else:
        rows += [(key, str(value)) for key, value in item.shown_input.items() if value not in ("", None)]
    return {
        "title": item.tell_what_waits(),
        "diff": [(_DIFF_TONES.get(row[0], ""), row) for row in diff if row],
        "rows": [row for row in rows if row[1]],
        "terms": tell_terms(item),
        "options": item.questions[0].options,
        "command": item.tell_how_to_decide(folder.name),
    }


def _render_run(page: TaskPage, run: RunView) -> str:
    return fill_template("pages/run.html", page=page, run=run, is_fine=run.outcome in _GOOD_ENDS).strip()


def _render_turns(run: RunView) -> Iterator[tuple[int, str]]:
    for turn in run.turns:
        yield turn.number, fill_template("pages/turn.html", turn=turn, ends=_ENDS).strip()


def _render_evidence(page: TaskPage, link: str) -> str:
    # without a link to them, with the end of what they printed
    assert page.snapshot is not None
    rows = []
    for one in page.snapshot.evidence:
        tone = "plain" if is_without_change(one) else "good" if one.exit_code == 0 else "bad"
        output = None if link else read_output_end(page.snapshot.folder, one.id)
        side = _SIDES.get((one.code, one.surface), f"attempt {one.iteration}")
        rows.append((one, describe_end(one), tone, side, output))
    return fill_template("pages/evidence.html", rows=rows, link=link) if rows else ""


def _render_cost(page: TaskPage) -> str:
    spent, seconds = page.spending, page.course.seconds
    waiting = f"of which {format_duration(spent.model)} waiting for the model."
    time = f"{format_duration(seconds)} of work, {waiting}"
    return fill_template("pages/cost.html", plots=tuple(_list_plots(page)), roles=spent.roles, time=time)


def _list_plots(page: TaskPage) -> Iterator[tuple[str, Plot, str]]:
    used, end = page.course.used, page.course.seconds
    last = used[-1] if used else None
    if last is None or not last.tokens:
        return
    tokens = [*((one.seconds, float(one.tokens)) for one in used), (end, float(last.tokens))]
    form = "{:,.0f} s" if end > 10 else "{:,.1f} s"
    yield f"{format_count(last.tokens, 'token')} over time", draw_plot(tokens, (form, "{:,.0f}")), "tokens"
    if last.cost:
        costs = [*((one.seconds, one.cost or 0.0) for one in used), (end, last.cost)]
        yield f"{format_money(last.cost)} over time", draw_plot(costs, (form, "${:,.4f}")), "costs"
