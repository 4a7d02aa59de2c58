"""The page of a task as HTML: the parts that a live view replaces one by one, and the whole as one file."""

import hashlib
from base64 import b64encode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agentflow import __version__
from agentflow.core.evidence import Evidence, Side, describe_end
from agentflow.core.messages import sum_usage
from agentflow.core.pending import Pending, PendingKind
from agentflow.core.run import RunOutcome
from agentflow.core.task import Status, TaskState
from agentflow.core.verdict import PLAUSIBLE, describe_probe, explain_caveat
from agentflow.pages.diff import JudgedAs
from agentflow.pages.page import TaskPage, read_output_end
from agentflow.pages.picture import Plot, Stand, draw_plot, draw_route
from agentflow.pages.templates import fill_template, format_money, to_markup
from agentflow.pages.turns import CallEnd, RunView
from agentflow.redact import format_count, to_one_line
from agentflow.report.why import explain_task
from agentflow.view.call_diff import diff_call
from agentflow.view.tasks import Snapshot
from agentflow.view.words import (
    UNSANDBOXED,
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
_SIGNS: Mapping[JudgedAs, str] = {
    JudgedAs.PROVED: "✓",
    JudgedAs.UNPROVED: "?",
    JudgedAs.CHECK: "⚑",
    JudgedAs.DOCUMENT: "¶",
    JudgedAs.SAME: "=",
    JudgedAs.OPEN: "○",
}
_LEGEND: Mapping[JudgedAs, str] = {
    JudgedAs.PROVED: "a test fails without these lines and passes with them",
    JudgedAs.UNPROVED: "nothing fails without these lines",
    JudgedAs.CHECK: "a part of what judges the change",
    JudgedAs.DOCUMENT: "read by people only",
    JudgedAs.SAME: "what the program does stays as it was",
    JudgedAs.OPEN: "there is no verdict on these lines yet",
}
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
        parts["runs"] = _render_runs(page, tuple((run, "", ()) for run in page.runs), is_open=True)
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
        runs = tuple(
            (run, _render_run(page, run), tuple(text for _, text in _render_turns(run))) for run in page.runs
        )
        parts["waiting"] = _render_waiting(page.snapshot)
        parts["runs"] = _render_runs(page, runs, is_open=False) if runs else ""
        parts["evidence"] = _render_evidence(page, "")
        parts["cost"] = _render_cost(page)
    order = ("waiting", "head", "answer", "route", "diff", "checks", "plan", "runs", "evidence", "cost")
    body = "\n".join(parts[name] for name in order if parts.get(name))
    return wrap_document(_make_title(page), body, f"the files of task {page.task_id}")


def wrap_document(title: str, body: str, source: str) -> str:
    """Return rendered parts as one file that needs nothing else; the footer says what it was made from."""
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


def _make_title(page: TaskPage) -> str:
    state = page.snapshot.state if page.snapshot else None
    return f"{describe_status(page)[1]}: {to_one_line(state.title, 80)}" if state else page.task_id


def describe_status(page: TaskPage) -> tuple[str, str, str]:
    """Return mark, name and tone of where a task stands."""
    if page.snapshot is None:
        return "!", "Cannot be read", "bad"
    state = page.snapshot.state
    words = (
        explain_task(state, page.snapshot.find, at_work=page.at_work).result.partition(":")[0] or state.status
    )
    said = words[:1].upper() + words[1:]
    if state.undone is not None or (state.status is Status.RUNNING and not page.at_work):
        return "!", said, "warn"
    return mark_status(state.status).text.strip(), said, style_status(state.status).name.lower()


def _render_head(page: TaskPage, link: str) -> str:
    mark, status, tone = describe_status(page)
    snapshot, state = page.snapshot, page.snapshot.state if page.snapshot else None
    verdict = state.verdict if state else None
    first, _, rest = state.task.strip().partition("\n") if state else ("", "", "")
    return fill_template(
        "pages/head.html",
        page=page,
        state=state,
        verdict=verdict,
        mark=mark,
        status=status,
        tone=tone,
        title=first,
        rest=rest.strip(),
        sentence=explain_outcome(page),
        caveats=[(word, explain_caveat(word)) for word in verdict.caveats] if verdict else [],
        facts=tuple(_list_facts(page, state)) if state else (),
        known={record.id for record in snapshot.evidence} if snapshot else set(),
        link=link,
    )


def explain_outcome(page: TaskPage) -> str:
    """Return in one sentence the proof or reason of the result, or what happens next."""
    if page.snapshot is None:
        return ""
    state = page.snapshot.state
    if state.status is Status.RUNNING and page.at_work:
        return "Running."
    why = explain_task(state, page.snapshot.find)
    said = next(iter(why.facts), why.result)
    if state.status is Status.RUNNING and state.undone is None:
        said = f"{said}. {why.next[0]}"
    is_verified = state.status in (Status.VERIFIED, Status.VERIFIED_WITH_CAVEAT)
    claim = f" It was found by search: {PLAUSIBLE}." if state.is_found and is_verified else ""
    return f"{said[:1].upper()}{said[1:]}{'' if said.endswith('.') else '.'}{claim}"


_DIFF_TONES = {"+": "came", "-": "gone", "@": "faint"}


def _list_facts(page: TaskPage, state: TaskState) -> Iterator[tuple[str, str, str]]:
    yield "Started", format_local(state.started_at), ""
    yield "Worked", format_duration(page.course.seconds), ""
    ids = dict.fromkeys(run.model for run in page.runs)
    yield "Model", state.model if is_offline(state.model) or not ids else ", ".join(ids), ""
    route = f", {state.route.replace('_', ' ')} route" if state.route else ""
    yield "Class", f"{state.task_complexity}{route}", ""
    if not state.reads_only:
        yield "Attempts", f"{state.iteration} of at most {state.max_iterations}", ""
        if state.proving:
            yield "Proving rounds", f"{state.proving} of at most {state.prove_rounds}", ""
    usage = sum_usage(role.usage for role in page.spending.roles) if page.spending.roles else state.usage
    yield "Cost", format_money(usage.cost_usd), ""
    yield "Tokens", f"{usage.tokens - usage.output:,} in, {usage.output:,} out", ""
    if state.sandbox == "none":
        yield "Sandbox", UNSANDBOXED, "bad"
    else:
        gaps = f", not isolated: {', '.join(state.gaps)}" if state.gaps else ""
        yield "Sandbox", f"{state.sandbox}{gaps}", "warn" if gaps else ""
    if state.ending is not None:
        yield "Exit code", str(int(state.ending.exit_code)), ""
    if state.base_tree and state.tree:
        yield "Trees", f"{state.base_tree[:12]} → {state.tree[:12]}", ""


def _render_sections(page: TaskPage, link: str) -> Iterator[tuple[str, str]]:
    assert page.snapshot is not None
    state = page.snapshot.state
    yield "head", _render_head(page, link)
    if state.findings is not None and state.reads_only:
        yield "answer", _render_answer(state)
    picture = draw_route(state, page.course, at_work=page.at_work)
    told = ", ".join(f"{box.phase} {box.stand}" for box in picture.boxes)
    yield "route", fill_template("pages/route.html", picture=picture, told=told, marks=_STANDS)
    if not state.reads_only:
        yield "diff", _render_diff(page, state)
    if page.checks:
        probes = [(probe, describe_probe(probe.end)) for probe in state.probes or ()]
        yield "checks", fill_template("pages/checks.html", page=page, probes=probes)
    if state.plan or state.failures:
        yield "plan", fill_template("pages/plan.html", state=state)


def _render_answer(state: TaskState) -> str:
    assert state.findings is not None
    doubts = {
        **dict.fromkeys(state.unseen_findings, "not seen by the explorer"),
        **dict.fromkeys(state.flagged_findings, "no such line"),
    }
    found = [(finding, doubts.get(finding.place, "")) for finding in state.findings.findings]
    return fill_template("pages/answer.html", state=state, findings=found)


def _render_diff(page: TaskPage, state: TaskState) -> str:
    marks = [mark for mark in JudgedAs if any(mark in file.marks for file in page.files)]
    is_open = state.status in (Status.RUNNING, Status.SUSPENDED)
    return fill_template(
        "pages/diff.html",
        page=page,
        added=sum(file.added for file in page.files),
        removed=sum(file.removed for file in page.files),
        legend=[(mark, _LEGEND[mark]) for mark in marks],
        signs=_SIGNS,
        empty="No changes yet." if is_open else "No file was changed.",
    )


def _render_waiting(snapshot: Snapshot) -> str:
    items = [describe_pending(item, snapshot.folder) for item in snapshot.state.pending]
    return fill_template("pages/waiting.html", items=items) if items else ""


def describe_pending(item: Pending, folder: Path) -> Mapping[str, Any]:
    """Return the values of a pending item that a page shows, the change of a file as a diff."""
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
        "options": item.questions[0].options,
        "command": item.tell_how_to_decide(folder.name),
    }


_Shown = tuple[RunView, str, tuple[str, ...]]


def _render_runs(page: TaskPage, runs: tuple[_Shown, ...], *, is_open: bool) -> str:
    shown = [
        (run, to_markup(summary or f'<summary id="run-{run.number}"></summary>'), map(to_markup, turns))
        for run, summary, turns in runs
    ]
    return fill_template("pages/runs.html", page=page, runs=shown, opened=is_open)


def _render_run(page: TaskPage, run: RunView) -> str:
    return fill_template("pages/run.html", page=page, run=run, is_fine=run.outcome in _GOOD_ENDS).strip()


def _render_turns(run: RunView) -> Iterator[tuple[int, str]]:
    for turn in run.turns:
        yield turn.number, fill_template("pages/turn.html", turn=turn, ends=_ENDS).strip()


def _render_evidence(page: TaskPage, link: str) -> str:
    assert page.snapshot is not None
    records, folder = page.snapshot.evidence, page.snapshot.folder
    if not records:
        return ""
    rows = [
        (one, describe_end(one), _find_tone(one), None if link else read_output_end(folder, one.id))
        for one in records
    ]
    sides = {record.id: _describe_side(record) for record in records}
    return fill_template("pages/evidence.html", rows=rows, sides=sides, link=link)


def _find_tone(record: Evidence) -> str:
    if is_without_change(record):
        return "plain"
    return "good" if record.exit_code == 0 else "bad"


def _describe_side(record: Evidence) -> str:
    match record.code, record.surface:
        case Side.BASE, Side.BASE:
            return "before the task"
        case Side.BASE, Side.FINAL:
            return "without the change"
        case Side.FINAL, Side.BASE:
            return "with the original checks"
        case _:
            return f"attempt {record.iteration}"


def _render_cost(page: TaskPage) -> str:
    spent, seconds = page.spending, page.course.seconds
    time = (
        f"{format_duration(seconds)} of work, of which {format_duration(spent.model)} waiting for the model."
    )
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
