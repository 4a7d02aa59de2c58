"""`status` and `evidence`: where a task stands, and the commands that were run for it."""

from collections.abc import Iterator

from agentflow.core.check_command import format_command
from agentflow.core.events import TaskEnded
from agentflow.core.evidence import By, CheckName, Evidence, Side, describe_counts, describe_end
from agentflow.core.pending import APPROVED, Pending, PendingKind, to_letter
from agentflow.core.role import PlanStep
from agentflow.core.task import GateStatus, Phase, RequiredCheck, Status, TaskState
from agentflow.redact import format_count, list_some, to_one_line
from agentflow.view.tasks import Snapshot
from agentflow.view.text import BLANK, Line, Span, Style, clip, column, fill_columns, label_row, line, span
from agentflow.view.words import (
    RESUMABLE,
    count_seconds,
    describe_tree,
    draw_sandbox,
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
"""The name of an unfinished phase once the task has stopped."""
_PHASES = tuple(phase for phase in Phase if phase is not Phase.COMPLETE)


def draw_status(snapshot: Snapshot, *, at_work: bool) -> tuple[Line, ...]:
    """Return where a task stands: its text, its phases, its checks and its end.

    Without a process at work in the repository, a task that has no end was interrupted.
    """
    state = snapshot.state
    left = state.status is Status.RUNNING and not at_work
    route = state.route.replace("_", " ") or "not chosen"
    iteration = f"{state.iteration} of {state.max_iterations}"
    return (
        _draw_interruption(state) if left else _draw_standing(state),
        label_row("task", span(to_one_line(state.title, _TEXT), Style.BOLD)),
        *((label_row("prompt", span(to_one_line(state.task, _TEXT))),) if state.invoked else ()),
        label_row("started", span(_describe_time(snapshot, at_work=at_work))),
        label_row("class", span(f"{state.task_complexity}, route {route}")),
        label_row("model", span(state.model)),
        label_row("sandbox", draw_sandbox(state)),
        *(() if state.reads_only else (label_row("iteration", span(iteration)),)),
        *_draw_end(state),
        *_draw_hooks(state),
        *draw_pending(state),
        BLANK,
        *(_draw_phase(state, phase) for phase in _PHASES),
        *plan_rows(state),
        *_draw_check_table(snapshot),
    )


def _draw_standing(state: TaskState) -> Line:
    if state.undone is not None:
        was = state.status.replace("_", " ")
        names = list_some([to_one_line(path) for path in state.undone.kept], _KEPT)
        kept = f"; kept: {names}" if names else ""
        return line(
            span(f"undone {format_local(state.undone.at)} (was: {was})", Style.WARN),
            span(f"{kept}  {state.task_id}", Style.DIM),
        )
    return line(
        mark_status(state.status),
        span(state.status.replace("_", " "), style_status(state.status)),
        span(f"  {state.task_id}", Style.DIM),
    )


def _draw_interruption(state: TaskState) -> Line:
    return line(
        span("! interrupted", Style.WARN),
        span(f"  agentflow resume {state.task_id} continues it"),
    )


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


def _draw_end(state: TaskState) -> tuple[Line, ...]:
    if state.ending is None:
        return ()
    reason = span(to_one_line(state.ending.reason, _TEXT) or state.ending.status.replace("_", " "))
    shown = label_row("ended", reason, span(f"  exit {int(state.ending.exit_code)}", Style.DIM))
    if state.status in RESUMABLE and not state.pending:
        return shown, label_row("next", span(f"agentflow resume {state.task_id}", Style.ACCENT))
    return (shown,)


def _draw_hooks(state: TaskState) -> tuple[Line, ...]:
    names = [to_one_line(path) for path in sorted(state.hook_files)]
    return (label_row("hooks", span(f"changed: {list_some(names, _KEPT)}")),) if names else ()


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


def plan_rows(state: TaskState) -> tuple[Line, ...]:
    """Return the plan: what is to be done in which files, what has to hold afterwards, what may go wrong.

    A plan that waits for confirmation is among the pending items instead.
    """
    plan = state.plan
    if plan is None or any(item.kind is PendingKind.PLAN for item in state.pending):
        return ()
    return (
        BLANK,
        line(span("plan", Style.BOLD), f"  {to_one_line(plan.summary, _TEXT)}", hang=6),
        *(_draw_step(number, step) for number, step in enumerate(plan.steps, 1)),
        *(_draw_remark("must hold", text, Style.DIM) for text in plan.acceptance),
        *(_draw_remark("risk", text, Style.WARN) for text in plan.risks),
    )


def _draw_step(number: int, step: PlanStep) -> Line:
    files = to_one_line(", ".join(step.files), _TEXT)
    return line(f"  {number:>2}. ", to_one_line(step.title, _TEXT), span(f"  {files}", Style.ACCENT), hang=6)


def _draw_remark(label: str, text: str, style: Style) -> Line:
    return line("      ", span(f"{label}: ", style), to_one_line(text, _TEXT), hang=8)


def _draw_check_table(snapshot: Snapshot) -> tuple[Line, ...]:
    rows = check_rows(snapshot)
    return (BLANK, line(span("checks", Style.BOLD)), *rows) if rows else ()


def check_rows(snapshot: Snapshot) -> tuple[Line, ...]:
    base = {one.check.name: one for one in snapshot.state.baseline}
    final = {one.check.name: one for one in snapshot.state.final}
    return tuple(
        _draw_check(snapshot, base.get(name), final.get(name))
        for name in CheckName
        if name in base or name in final
    )


def _draw_check(snapshot: Snapshot, base: RequiredCheck | None, final: RequiredCheck | None) -> Line:
    newest = final or base
    assert newest is not None
    before = snapshot.find(base.evidence) if base else None
    after = snapshot.find(newest.evidence)
    name = column(newest.check.name, 7, Style.BOLD)
    command = span(f"  {to_one_line(format_command(newest.check.command), _COMMAND)}", Style.DIM)
    if after is None:
        why = to_one_line(newest.check.missing or "no evidence", _COMMAND)
        return line(
            span("  ! ", Style.WARN), name, span(f"could not run: {why}", Style.WARN), command, hang=6
        )
    shown = _draw_change(before, after) if final else (span(f"{describe_end(after)} at the start"),)
    is_empty = after.tests is not None and after.tests.ran == 0
    mark = pass_mark(after.exit_code == 0 and not is_empty) if final else span("○ ", Style.DIM)
    tests = f"  {describe_counts(after.tests)}" if after.tests else ""
    return line("  ", mark, name, *shown, tests, command, span(f"  {after.id}", Style.DIM), hang=6)


def _draw_change(before: Evidence | None, after: Evidence) -> tuple[Span, ...]:
    first = span(describe_end(before) if before else "not run", _result_style(before))
    return first, span(" → ", Style.DIM), span(describe_end(after), _result_style(after))


def _result_style(evidence: Evidence | None) -> Style:
    if evidence is None:
        return Style.DIM
    return Style.GOOD if evidence.exit_code == 0 else Style.BAD


_MAX_VALUE = 400
_MAX_LINES = 40
_DIFF_LINES = 60
_DIFF_WIDTH = 160


def draw_pending(state: TaskState) -> tuple[Line, ...]:
    rows: list[Line] = []
    for item in state.pending:
        is_about_checks = item.kind is PendingKind.SURFACE
        rows.extend(draw_changed_checks(item) if is_about_checks else _draw_item(item))
        rows.append(label_row("decide", span(item.tell_how_to_decide(state.task_id), Style.BOLD)))
        if item.kind in APPROVED:
            rows.append(label_row("then", span(f"agentflow resume {state.task_id}", Style.BOLD)))
        rows.extend(draw_check_diff(item) if is_about_checks else ())
    return tuple(rows)


def _draw_item(item: Pending) -> Iterator[Line]:
    yield label_row("waits", span(item.tell_what_waits(), Style.WARN))
    for key, value in item.shown_input.items():
        if value != "":
            yield from _draw_value(key, str(value))
    yield from _draw_options(item)


def _draw_value(key: str, text: str) -> Iterator[Line]:
    """Yield a value line by line, exactly as it will be used once it is approved."""
    first, *more = text.split("\n")
    yield label_row("", span(f"{key}: ", Style.DIM), span(to_one_line(first, _MAX_VALUE)))
    for row in more[:_MAX_LINES]:
        yield label_row("", span(f"  {to_one_line(row, _MAX_VALUE)}"))
    if len(more) > _MAX_LINES:
        yield label_row("", span(f"  … {len(more) - _MAX_LINES} more lines, see --json", Style.WARN))


def _draw_options(item: Pending) -> Iterator[Line]:
    for question in item.questions:
        if question.text:
            yield label_row("", span(to_one_line(question.text, _MAX_VALUE)))
        for place, option in enumerate(question.options):
            yield label_row(
                "", span(f"{to_letter(place)}  ", Style.ACCENT), span(to_one_line(option, _MAX_VALUE))
            )


def draw_changed_checks(item: Pending) -> Iterator[Line]:
    """Yield in words how the checks were changed, for a person who decides on it."""
    yield label_row("waits", span(item.tell_what_waits(), Style.WARN))
    for change in item.input["changes"]:
        yield label_row("", span("! ", Style.WARN), span(to_one_line(str(change), _MAX_VALUE)))
    for shown in item.input.get("before", ()):
        yield label_row("", span(f"with the original checks: {shown}"))
    if item.input["why"]:
        yield label_row("said", span(to_one_line(str(item.input["why"]), _MAX_VALUE)))


def draw_check_diff(item: Pending, most: int | None = _DIFF_LINES) -> Iterator[Line]:
    rows = str(item.input["diff"]).splitlines()
    for row in rows[:most]:
        shown = row if most is None else clip(row, _DIFF_WIDTH)
        yield line(span(f"    {shown}", style_diff_row(row)), hang=5)
    if most is not None and len(rows) > most:
        yield line(span(f"    … {format_count(len(rows) - most, 'line')} more in the report", Style.DIM))


def style_diff_row(row: str) -> Style:
    return {"+": Style.GOOD, "-": Style.BAD, "@": Style.ACCENT}.get(row[:1], Style.DIM)


_OUTPUT_LINES = 60
_WHEN = {Side.BASE: "before", Side.FINAL: "after"}
"""The change."""
_HEADS = ("id", "check", "exit", "tree", "code", "pass", "fail", "time")


def format_evidence_table(snapshot: Snapshot) -> tuple[Line, ...]:
    """Return one row for each executed command, in the order they were run."""
    if not snapshot.evidence:
        return (line(span("no command was run", Style.DIM)),)
    titles = tuple(span(head, Style.DIM) for head in _HEADS)
    heads, *rows = fill_columns((titles, *map(_fill_cells, snapshot.evidence)))
    return (
        line("  ", *heads, span("command", Style.DIM), hang=4),
        *(
            line(mark_evidence(one), *row, span(to_one_line(format_command(one.command), _COMMAND)), hang=4)
            for one, row in zip(snapshot.evidence, rows, strict=True)
        ),
    )


def _fill_cells(evidence: Evidence) -> tuple[Span, ...]:
    code = "time" if evidence.timed_out else "-" if evidence.exit_code is None else str(evidence.exit_code)
    tests = evidence.tests
    failed = tests.failed + tests.errors if tests else 0
    return (
        span(evidence.id, Style.ACCENT),
        span("agent" if evidence.by is By.AGENT else evidence.check or "-"),
        span(f"{code} flaky" if evidence.flaky else code, _result_style(evidence)),
        span(describe_tree(evidence.tree_before), Style.DIM),
        span(_name_side(evidence)),
        span(str(tests.passed) if tests else "-"),
        span(str(failed) if tests else "-", Style.BAD if failed else Style.PLAIN),
        span(format_duration(evidence.seconds), Style.DIM),
    )


def _name_side(evidence: Evidence) -> str:
    if evidence.by is By.AGENT:
        return "-"
    is_held = evidence.code is Side.FINAL and evidence.surface is Side.BASE
    return "mixed" if is_held else _WHEN[evidence.code]


def _describe_side(evidence: Evidence) -> str:
    if evidence.by is By.AGENT:
        return "-"
    if evidence.code is evidence.surface:
        return _WHEN[evidence.code]
    return "after, original checks" if evidence.surface is Side.BASE else "before, current tests"


def _draw_tries(evidence: Evidence) -> tuple[Line, ...]:
    runs = (f"{describe_end(each)} ({each.fault}), output in {each.output}" for each in evidence.tries)
    mixed = (", ".join(to_one_line(name, _TEXT) for name in evidence.flaky),) if evidence.flaky else ()
    return (
        *(label_row("before", span(run, Style.WARN)) for run in runs),
        *(label_row("flaky", span(name, Style.WARN)) for name in mixed),
    )


def format_evidence(evidence: Evidence, output: str) -> tuple[Line, ...]:
    """Return all of one record, and the end of what the command printed."""
    chosen = f"{evidence.by}, {evidence.check or evidence.role or 'no check'}"
    trees = f"{describe_tree(evidence.tree_before)} → {describe_tree(evidence.tree_after)}"
    printed = output.rstrip("\n").split("\n")
    left_out = len(printed) - _OUTPUT_LINES
    return (
        line(
            mark_evidence(evidence),
            span(evidence.id, Style.BOLD),
            f"  {to_one_line(evidence.command, _TEXT)}",
        ),
        label_row(
            "exit",
            span(describe_end(evidence), _result_style(evidence)),
            span(f"  {describe_counts(evidence.tests) if evidence.tests else ''}"),
        ),
        *_draw_tries(evidence),
        label_row("chosen by", span(chosen), span(f"  iteration {evidence.iteration}", Style.DIM)),
        label_row("code", span(_describe_side(evidence)), span(f"  tree {trees}", Style.DIM)),
        label_row("where", span(evidence.cwd), span(f"  sandbox {evidence.sandbox}", Style.DIM)),
        label_row(
            "when", span(evidence.started_at), span(f"  {format_duration(evidence.seconds)}", Style.DIM)
        ),
        label_row(
            "output",
            span(f"{format_count(evidence.bytes, 'byte')}  sha256 {evidence.stdout_sha256}", Style.DIM),
        ),
        BLANK,
        *((line(span(f"… {left_out} lines above …", Style.DIM)),) if left_out > 0 else ()),
        *(line(row) for row in printed[-_OUTPUT_LINES:] if output),
    )
