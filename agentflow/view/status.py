"""`status` and `evidence`: where a task stands, and the commands that were run for it."""

import difflib
from collections.abc import Iterable, Iterator
from pathlib import Path

from agentflow.core.check_command import format_command
from agentflow.core.events import TaskEnded
from agentflow.core.evidence import By, Evidence, Side, describe_counts, describe_end
from agentflow.core.file_text import decode_file
from agentflow.core.pending import APPROVED, Pending, PendingKind, tell_decision, to_letter
from agentflow.core.task import GateStatus, Phase, Status, TaskState
from agentflow.core.tool import list_edits
from agentflow.redact import format_count, list_some, to_one_line
from agentflow.report.summary import CheckPair, TaskFact, Tone, list_facts, pair_checks
from agentflow.view.tasks import Snapshot
from agentflow.view.text import (
    BLANK,
    LABEL_WIDTH,
    Line,
    Span,
    Style,
    clip,
    column,
    label_row,
    line,
    span,
    tabulate,
)
from agentflow.view.words import (
    RESUMABLE,
    count_seconds,
    describe_tree,
    format_duration,
    format_local,
    mark_evidence,
    mark_gate,
    mark_status,
    pass_mark,
    style_status,
)

_COMMAND = 200
_TEXT = 400
_KEPT = 5
_LEFT = {GateStatus.PENDING: "not run", GateStatus.IN_PROGRESS: "stopped"}


def draw_status(snapshot: Snapshot, *, at_work: bool) -> tuple[Line, ...]:
    """Return where a task stands; without a process at work, one that has no end was interrupted."""
    state = snapshot.state
    checks = tuple(check_rows(pair_checks(state, snapshot.find)))
    return (
        *_draw_head(snapshot, at_work=at_work),
        *draw_pending(state),
        *draw_decisions(state),
        BLANK,
        *(_draw_phase(state, phase) for phase in Phase if phase is not Phase.COMPLETE),
        *plan_rows(state),
        *((BLANK, line(span("checks", Style.BOLD)), *checks) if checks else ()),
    )


def _draw_head(snapshot: Snapshot, *, at_work: bool) -> Iterator[Line]:
    state = snapshot.state
    if state.status is Status.RUNNING and not at_work:
        resume = f"  agentflow resume {state.task_id} continues it"
        yield line(span("! interrupted", Style.WARN), resume)
    else:
        yield _draw_standing(state)
    yield label_row("task", span(to_one_line(state.title, _TEXT), Style.BOLD))
    if state.options.invoked:
        yield label_row("prompt", to_one_line(state.task, _TEXT))
    yield label_row("started", _describe_time(snapshot, at_work=at_work))
    yield label_row("model", state.model)
    yield from map(draw_fact, list_facts(state))
    if state.ending is not None:
        reason = to_one_line(state.ending.reason, _TEXT) or state.ending.status.replace("_", " ")
        yield label_row("ended", reason, span(f"  exit {int(state.ending.exit_code)}", Style.DIM))
        if state.status in RESUMABLE and not state.pending:
            yield label_row("next", span(f"agentflow resume {state.task_id}", Style.ACCENT))
    if state.hook_files:
        names = list_some(map(to_one_line, sorted(state.hook_files)), _KEPT)
        yield label_row("hooks", f"changed: {names}")


def draw_fact(fact: TaskFact) -> Line:
    text = span(fact.text, Style.PLAIN if fact.tone is Tone.PLAIN else Style.WARN)
    return label_row(fact.label, text, width=max(LABEL_WIDTH, len(fact.label) + 1))


def _draw_standing(state: TaskState) -> Line:
    status = state.status.replace("_", " ")
    if state.undone is None:
        words = span(status, style_status(state.status))
        return line(mark_status(state.status), words, span(f"  {state.task_id}", Style.DIM))
    names = list_some([to_one_line(path) for path in state.undone.kept], _KEPT)
    kept = f"; kept: {names}" if names else ""
    undone = span(f"undone {format_local(state.undone.at)} (was: {status})", Style.WARN)
    return line(undone, span(f"{kept}  {state.task_id}", Style.DIM))


def _describe_time(snapshot: Snapshot, *, at_work: bool) -> str:
    started = snapshot.state.started_at
    times = [snapshot.events[0].at, snapshot.events[-1].at] if snapshot.events else [started, started]
    ends = [each.event for each in snapshot.events if isinstance(each.event, TaskEnded)]
    spent = [end.seconds for end in ends if end.seconds is not None]
    # what a task waited for, and what was done with it later, is no work
    seconds = sum(spent) if spent and not at_work else count_seconds(*times)
    verb = "working" if at_work and snapshot.state.ending is None else "worked"
    took = "" if seconds is None else f", {verb} for {format_duration(seconds)}"
    return f"{format_local(started)}{took}"


def _draw_phase(state: TaskState, phase: Phase) -> Line:
    gate = state.get_gate(phase)
    current = state.status is Status.RUNNING and state.current_phase is phase
    told = _LEFT.get(gate.status) if state.ending else None
    said = (gate.agent, gate.tree and describe_tree(gate.tree), to_one_line(gate.message.removeprefix("- ")))
    return line(
        "  ",
        mark_gate(gate.status),
        column(phase, 16, Style.BOLD if current else Style.PLAIN),
        column(told or gate.status.replace("_", " "), 13, Style.DIM),
        span("  ".join(filter(None, said)), Style.DIM),
        hang=6,
    )


def plan_rows(state: TaskState) -> Iterator[Line]:
    """Yield the plan, unless it waits for confirmation and so is among the pending items."""
    plan = state.plan
    if plan is None or any(item.kind is PendingKind.PLAN for item in state.pending):
        return
    yield BLANK
    yield line(span("plan", Style.BOLD), f"  {to_one_line(plan.summary, _TEXT)}", hang=6)
    for number, step in enumerate(plan.steps, 1):
        files = span(f"  {to_one_line(', '.join(step.files), _TEXT)}", Style.ACCENT)
        yield line(f"  {number:>2}. ", to_one_line(step.title, _TEXT), files, hang=6)
    remarks = (("must hold", plan.acceptance, Style.DIM), ("risk", plan.risks, Style.WARN))
    for label, texts, style in remarks:
        for text in texts:
            yield line("      ", span(f"{label}: ", style), to_one_line(text, _TEXT), hang=8)


def check_rows(pairs: Iterable[CheckPair]) -> Iterator[Line]:
    for pair in pairs:
        name = column(pair.name, 7, Style.BOLD)
        command = span(f"  {to_one_line(pair.command, _COMMAND)}", Style.DIM)
        newest = pair.after if pair.is_final else pair.before
        if newest is None:
            why = span(f"could not run: {to_one_line(pair.missing or 'no evidence', _COMMAND)}", Style.WARN)
            yield line(span("  ! ", Style.WARN), name, why, command, hang=6)
            continue
        mark, shown = span("○ ", Style.DIM), [span(f"{describe_end(newest)} at the start")]
        if pair.is_final:
            is_empty = newest.tests is not None and newest.tests.ran == 0
            mark = pass_mark(newest.exit_code == 0 and not is_empty)
            first = span(describe_end(pair.before) if pair.before else "not run", _result_style(pair.before))
            shown = [first, span(" → ", Style.DIM), span(describe_end(newest), _result_style(newest))]
        tests = f"  {describe_counts(newest.tests)}" if newest.tests else ""
        yield line("  ", mark, name, *shown, tests, command, span(f"  {newest.id}", Style.DIM), hang=6)


def _result_style(evidence: Evidence | None) -> Style:
    if evidence is None:
        return Style.DIM
    return Style.GOOD if evidence.exit_code == 0 else Style.BAD


_MAX_VALUE = 400
_MAX_LINES = 40
_DIFF_LINES = 60
_DIFF_WIDTH = 160


def draw_pending(state: TaskState) -> Iterator[Line]:
    for item in state.pending:
        is_about_checks = item.kind is PendingKind.SURFACE
        yield from draw_changed_checks(item) if is_about_checks else _draw_item(item)
        if terms := tell_terms(item):
            yield label_row("", span(terms, Style.DIM))
        yield label_row("decide", span(item.tell_how_to_decide(state.task_id), Style.BOLD))
        if item.kind in APPROVED:
            yield label_row("then", span(f"agentflow resume {state.task_id}", Style.BOLD))
        yield from draw_diff(str(item.input["diff"]).splitlines()) if is_about_checks else ()


def tell_terms(item: Pending) -> str:
    """Return who has approved so far, what of it they changed, and until when it can be approved."""
    names = ", ".join(to_one_line(one.author, _MAX_VALUE) for one in item.given)
    so_far = f"{len(item.given)} of {item.needed} approvals" if item.needed > 1 else ""
    names += "; the input was changed" if item.first_input is not None else ""
    so_far += f" ({names})" if names else ""
    until = f"expires {format_local(item.expires_at)}" if item.expires_at else ""
    return "; ".join(filter(None, (so_far, until)))


def draw_decisions(state: TaskState) -> Iterator[Line]:
    """Yield what people decided about calls, with both versions of what they changed."""
    for pending_id, answer in state.waiting.answers.items():
        if answer.tool is None:
            continue
        is_yes = answer.approved
        yield label_row(
            "approved" if is_yes else "denied",
            span(to_one_line(tell_decision(pending_id, answer), _TEXT), Style.GOOD if is_yes else Style.WARN),
        )
        for key, rows in answer.list_edits():
            yield label_row("", span(f"{key}: as asked, and as approved", Style.DIM))
            yield from draw_diff(rows)


def _draw_item(item: Pending) -> Iterator[Line]:
    yield label_row("waits", span(item.tell_what_waits(), Style.WARN))
    for key, value in item.shown_input.items():
        if value != "":
            yield from _draw_value(key, str(value))
    for question in item.questions:
        if question.text:
            yield label_row("", to_one_line(question.text, _MAX_VALUE))
        for place, option in enumerate(question.options):
            letter = span(f"{to_letter(place)}  ", Style.ACCENT)
            yield label_row("", letter, to_one_line(option, _MAX_VALUE))


def _draw_value(key: str, text: str) -> Iterator[Line]:
    """Yield a value line by line, exactly as it will be used once it is approved."""
    first, *more = text.split("\n")
    yield label_row("", span(f"{key}: ", Style.DIM), to_one_line(first, _MAX_VALUE))
    for row in more[:_MAX_LINES]:
        yield label_row("", f"  {to_one_line(row, _MAX_VALUE)}")
    if len(more) > _MAX_LINES:
        yield label_row("", span(f"  … {len(more) - _MAX_LINES} more lines, see --json", Style.WARN))


def diff_call(item: Pending, root: Path) -> list[str]:
    """Return the change by a call that edits or writes as a diff without its heads; empty for others."""
    given = item.input
    try:
        path = root / given["file_path"]
        is_own = path.is_file() and path.resolve().is_relative_to(root)
        before = decode_file(path.read_bytes()).shown if is_own else ""
    except (KeyError, TypeError, OSError, ValueError):
        return []
    after = before
    if item.tool == "Write" and isinstance(given.get("content"), str):
        after = given["content"]
    for each in list_edits(given) if item.tool in ("Edit", "MultiEdit") else ():
        old, new = each.get("old_string"), each.get("new_string")
        if isinstance(old, str) and isinstance(new, str) and old:
            after = after.replace(old, new, -1 if each.get("replace_all") else 1)
    if after == before:
        return []
    rows = difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=2)
    return list(rows)[2:]


def draw_changed_checks(item: Pending) -> Iterator[Line]:
    yield label_row("waits", span(item.tell_what_waits(), Style.WARN))
    for change in item.input["changes"]:
        yield label_row("", span("! ", Style.WARN), to_one_line(str(change), _MAX_VALUE))
    for shown in item.input.get("before", ()):
        yield label_row("", f"with the original checks: {shown}")
    if item.input["why"]:
        yield label_row("said", to_one_line(str(item.input["why"]), _MAX_VALUE))


def draw_diff(rows: list[str], most: int | None = _DIFF_LINES) -> Iterator[Line]:
    for row in rows[:most]:
        shown = row if most is None else clip(row, _DIFF_WIDTH)
        yield draw_diff_row(shown, "    ")
    if most is not None and len(rows) > most:
        yield line(span(f"    … {format_count(len(rows) - most, 'line')} more in the report", Style.DIM))


def draw_diff_row(row: str, indent: str = "") -> Line:
    return line(span(f"{indent}{row}", style_diff_row(row)), hang=len(indent) + 1)


def style_diff_row(row: str) -> Style:
    return {"+": Style.GOOD, "-": Style.BAD, "@": Style.ACCENT}.get(row[:1], Style.DIM)


_OUTPUT_LINES = 60
_SIDES = {
    (Side.BASE, Side.FINAL): ("before", "before, current tests"),
    (Side.FINAL, Side.BASE): ("mixed", "after, original checks"),
    (Side.BASE, Side.BASE): ("before", "before"),
    (Side.FINAL, Side.FINAL): ("after", "after"),
}
"""By the version of the code and that of the checks: in a table, and of one command alone."""
_HEADS = ("id", "check", "exit", "tree", "code", "pass", "fail", "time", "command")


def format_evidence_table(snapshot: Snapshot) -> Iterator[Line]:
    if not snapshot.evidence:
        yield line(span("no command was run", Style.DIM))
        return
    marks = [mark_evidence(one) for one in snapshot.evidence]
    yield from tabulate(_HEADS, map(_fill_cells, snapshot.evidence), marks=marks)


def _fill_cells(evidence: Evidence) -> tuple[Span, ...]:
    code = "time" if evidence.timed_out else "-" if evidence.exit_code is None else str(evidence.exit_code)
    tests = evidence.tests
    failed = tests.failed + tests.errors if tests else 0
    is_agent = evidence.by is By.AGENT
    return (
        span(evidence.id, Style.ACCENT),
        span("agent" if is_agent else evidence.check or "-"),
        span(f"{code} flaky" if evidence.flaky else code, _result_style(evidence)),
        span(describe_tree(evidence.tree_before), Style.DIM),
        span("-" if is_agent else _SIDES[evidence.code, evidence.surface][0]),
        span(str(tests.passed) if tests else "-"),
        span(str(failed) if tests else "-", Style.BAD if failed else Style.PLAIN),
        span(format_duration(evidence.seconds), Style.DIM),
        span(to_one_line(format_command(evidence.command), _COMMAND)),
    )


def format_evidence(evidence: Evidence, output: str) -> Iterator[Line]:
    command = f"  {to_one_line(evidence.command, _TEXT)}"
    yield line(mark_evidence(evidence), span(evidence.id, Style.BOLD), command)
    end = span(describe_end(evidence), _result_style(evidence))
    yield label_row("exit", end, f"  {describe_counts(evidence.tests) if evidence.tests else ''}")
    for each in evidence.tries:
        earlier = f"{describe_end(each)} ({each.fault}), output in {each.output}"
        yield label_row("before", span(earlier, Style.WARN))
    if evidence.flaky:
        mixed = ", ".join(to_one_line(name, _TEXT) for name in evidence.flaky)
        yield label_row("flaky", span(mixed, Style.WARN))
    trees = f"{describe_tree(evidence.tree_before)} → {describe_tree(evidence.tree_after)}"
    side = "-" if evidence.by is By.AGENT else _SIDES[evidence.code, evidence.surface][1]
    size = f"{format_count(evidence.bytes, 'byte')}  sha256 {evidence.stdout_sha256}"
    chosen = f"{evidence.by}, {evidence.check or evidence.role or 'no check'}"
    yield label_row("chosen by", chosen, span(f"  iteration {evidence.iteration}", Style.DIM))
    yield label_row("code", side, span(f"  tree {trees}", Style.DIM))
    yield label_row("where", evidence.cwd, span(f"  sandbox {evidence.sandbox}", Style.DIM))
    took = span(f"  {format_duration(evidence.seconds)}", Style.DIM)
    yield label_row("when", evidence.started_at, took)
    yield label_row("output", span(size, Style.DIM))
    yield BLANK
    printed = output.rstrip("\n").split("\n") if output else []
    if len(printed) > _OUTPUT_LINES:
        yield line(span(f"… {len(printed) - _OUTPUT_LINES} lines above …", Style.DIM))
    yield from map(line, printed[-_OUTPUT_LINES:])
