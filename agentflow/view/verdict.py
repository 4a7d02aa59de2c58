"""The result at the end of a task: what is proven, what changed, what it cost, what to do next."""

import re
from collections.abc import Iterator, Sequence
from shlex import quote

from agentflow.core.record import Record
from agentflow.core.task import Failure, Phase, Status, TaskState
from agentflow.core.verdict import PLAUSIBLE
from agentflow.redact import format_count, format_money, make_visible, to_one_line
from agentflow.report.summary import TaskSummary, Tone, describe_isolation, list_facts, summarize_task
from agentflow.report.why import Why
from agentflow.store.reading import TASKS
from agentflow.view.prose import draw_markdown
from agentflow.view.status import check_rows, draw_diff_row, draw_fact, draw_pending, plan_rows
from agentflow.view.tasks import Snapshot
from agentflow.view.text import BLANK, Line, Style, clip, label_row, line, span
from agentflow.view.words import Detail, mark_style, style_status
from agentflow.wording import describe_all

_DIFF_LINES = 40
_DIFF_WIDTH = 160
_FILES = 12
_FEW = 6
"""Changed lines that are shown in short."""
_REASON = 300
_PER_FAILURE = 3
_NOTES = 8


class FileDiff(Record):
    path: str
    added: int
    removed: int
    hunks: tuple[str, ...]


def draw_verdict(
    snapshot: Snapshot,
    diff: str,
    elsewhere: str = "",
    detail: Detail = Detail.FULL,
    *,
    is_styled: bool = False,
) -> tuple[Line, ...]:
    """Return what a person reads at the end of a task, with its root for a person who is `elsewhere`.

    An answer's Markdown is drawn where it `is_styled`, and else left as it is.
    """
    state = snapshot.state
    place = f" -C {quote(elsewhere)}" if elsewhere and detail is not Detail.VERDICT else ""
    told = summarize_task(state, snapshot.find, is_named=detail is not Detail.BRIEF, place=place)
    is_answer = state.status is Status.ANSWERED and state.findings is not None
    answer = tuple(_draw_answer(told, is_styled)) if is_answer else ()
    match detail:
        case Detail.VERDICT:
            return answer or tuple(_draw_result(told))
        case Detail.BRIEF:
            return (*answer, *_draw_used(state)) if is_answer else tuple(_draw_in_short(told, diff))
        case Detail.FULL:
            body = answer if is_answer else _draw_in_full(told, diff)
            report = state.document or f"{TASKS}/{snapshot.folder.name}/report.md"
            return (*body, *_draw_footer(told, f"{elsewhere}/{report}" if elsewhere else report))


def _draw_in_short(told: TaskSummary, diff: str) -> Iterator[Line]:
    state = told.task
    yield from _draw_head(told)
    if not state.pending:
        yield from _draw_plan(state)
    if state.final:
        yield from check_rows(told.checks)
    yield from _draw_changes_in_short(tuple(split_diff(diff)))
    # the headline has the last failure
    for failure in () if state.status is Status.VERIFIED else state.failures[:-1]:
        yield from _draw_failure(failure)
    yield from _draw_used(state)
    yield from _draw_cautions(told)
    if state.gaps:  # each of them is named in the first line of the task
        gaps = "1 thing is" if len(state.gaps) == 1 else f"{len(state.gaps)} things are"
        text = f"{state.sandbox}: {gaps} not isolated; agentflow status names them"
        yield label_row("sandbox", span(text, Style.WARN))
    elif state.sandbox != "full":
        yield draw_fact(describe_isolation(state))
    yield from _draw_claim(told)


def _draw_in_full(told: TaskSummary, diff: str) -> Iterator[Line]:
    state = told.task
    yield from _draw_head(told)
    yield from _draw_plan(state)
    if told.checks:
        yield BLANK
        yield from check_rows(told.checks)
    yield BLANK
    none = "nothing"
    if state.base_tree is not None and state.tree is None:
        is_paused = state.status is Status.SUSPENDED
        none = "not computed yet (task is paused)" if is_paused else "unknown, the files could not be read"
    yield from _draw_changes(tuple(split_diff(diff)), none)
    yield from (draw_fact(fact) for fact in list_facts(state) if fact.label not in ("class", "sandbox"))
    for failure in state.failures:
        yield from _draw_failure(failure)


def _draw_footer(told: TaskSummary, report: str) -> Iterator[Line]:
    yield from _draw_used(told.task, "no tokens, no cost")
    yield from _draw_cautions(told)
    if told.task.sandbox != "full":
        yield draw_fact(describe_isolation(told.task))
    yield from _draw_claim(told)
    yield label_row("report", report)


def _draw_answer(told: TaskSummary, is_styled: bool) -> Iterator[Line]:
    findings = told.task.findings
    assert findings is not None
    rows = findings.summary.strip().splitlines()
    yield from draw_markdown("\n".join(rows)) if is_styled else map(line, rows)
    yield BLANK
    for one, doubt in told.findings:
        flag = span(f" ({doubt})" if doubt else "", Style.BAD)
        place = span(to_one_line(one.place), Style.ACCENT)
        yield line("  ", place, flag, f"  {to_one_line(one.claim, _REASON)}", hang=4)
    for issue, doubt in told.issues:
        flag = span(f" ({doubt})" if doubt else "", Style.BAD)
        place, severity = span(to_one_line(issue.place), Style.ACCENT), span(issue.severity, Style.WARN)
        yield line("  ", severity, " ", place, flag, f"  {to_one_line(issue.message, _REASON)}", hang=4)
    for question in findings.open_questions:
        yield line("  ", span("open  ", Style.WARN), to_one_line(question, _REASON), hang=4)
    if findings.findings or findings.open_questions:
        yield BLANK


def draw_why(state: TaskState, why: Why, *, at_work: bool) -> Iterator[Line]:
    is_left = state.undone is not None or (state.status is Status.RUNNING and not at_work)
    code = f"exit {int(state.ending.exit_code)}  " if state.ending and not state.undone else ""
    style = Style.WARN if is_left else style_status(state.status)
    yield from _draw_facts(why, why.facts[1:], style, code)
    if why.more:
        yield line("  ", span(f"and {why.more} more: agentflow report", Style.DIM))
    if why.judges:
        yield line("  ", span(make_visible(why.judges), Style.DIM), hang=4)
    yield from _draw_steps(why)


def _draw_head(told: TaskSummary) -> Iterator[Line]:
    yield from _draw_result(told)
    yield from draw_pending(told.task) if told.task.pending else _draw_steps(told.why)


def _draw_result(told: TaskSummary) -> Iterator[Line]:
    """Yield the result with what decided it; of a task that did not pass with all that its end says."""
    state, why = told.task, told.why
    reasons = state.ending.reason.splitlines()[1:] if state.ending else ()
    is_caveat = state.status is Status.VERIFIED_WITH_CAVEAT
    return _draw_facts(why, why.facts[1:] if is_caveat else reasons, style_status(state.status))


def _draw_facts(why: Why, more: Sequence[str], style: Style, code: str = "") -> Iterator[Line]:
    number = (span(code, Style.DIM),) if code else ()
    yield line(mark_style(style), *number, span(why.headline, style), hang=2)
    for fact in more:
        yield line("  ", make_visible(fact), hang=4)


def _draw_steps(why: Why) -> Iterator[Line]:
    return (label_row("" if place else "next", step) for place, step in enumerate(why.next))


def _draw_plan(state: TaskState) -> Iterator[Line]:
    # of a task that waits and has changed nothing yet, the plan is looked at before it goes on
    is_next = state.status is Status.SUSPENDED and state.change is None and not state.failures
    return plan_rows(state) if is_next else iter(())


def _draw_changes_in_short(files: tuple[FileDiff, ...]) -> Iterator[Line]:
    rows = [row for file in files for row in file.hunks if row[:1] in "+-"]
    for file in files[:_FILES]:
        yield _draw_file(file)
        for row in file.hunks if len(rows) <= _FEW else ():
            if row[:1] in "+-":
                yield draw_diff_row(clip(row, _DIFF_WIDTH), "    ")
    yield from _draw_more_files(files)


def _draw_changes(files: tuple[FileDiff, ...], none: str) -> Iterator[Line]:
    yield label_row("changed", format_count(len(files), "file") if files else none)
    room = _DIFF_LINES
    for file in files[:_FILES]:
        yield _draw_file(file)
        yield from (draw_diff_row(clip(row, _DIFF_WIDTH), "    ") for row in file.hunks[:room])
        left_out = len(file.hunks) - room
        if left_out > 0:
            yield line(span(f"    … {format_count(left_out, 'line')} more", Style.DIM))
        room = max(0, -left_out)
    yield from _draw_more_files(files)
    yield BLANK


def _draw_file(file: FileDiff) -> Line:
    path = span(to_one_line(file.path, _DIFF_WIDTH), Style.BOLD)
    return line(
        "  ", path, span(f"  +{file.added}", Style.GOOD), span(f" -{file.removed}", Style.BAD), hang=4
    )


def _draw_more_files(files: tuple[FileDiff, ...]) -> Iterator[Line]:
    if len(files) > _FILES:
        yield line(span(f"  … and {format_count(len(files) - _FILES, 'file')} more", Style.DIM))


def _draw_failure(failure: Failure) -> Iterator[Line]:
    where = "checks" if failure.phase is Phase.VERIFICATION else failure.phase
    for number, reason in enumerate(describe_all(failure.reasons[:_PER_FAILURE])):
        lead = f"iteration {failure.iteration} failed ({where}): " if number == 0 else "  "
        mark = span("  ✗ ", Style.BAD) if number == 0 else "    "
        yield line(mark, lead + to_one_line(reason, _REASON), hang=6)
    if len(failure.reasons) > _PER_FAILURE:
        yield line(span(f"      … and {len(failure.reasons) - _PER_FAILURE} more reasons", Style.DIM))


def _draw_used(state: TaskState, nothing: str = "") -> Iterator[Line]:
    usage = state.usage
    known = format_money(usage.cost_usd) if usage.cost_usd else "no cost"
    cost = "cost unknown" if usage.cost_usd is None else known
    read = usage.input + usage.cache_read + usage.cache_write
    if read or usage.output:
        yield label_row("used", f"{cost}, {format_count(read, 'token')} in, {usage.output:,} out")
    elif nothing:
        yield label_row("used", nothing)


def _draw_cautions(told: TaskSummary) -> Iterator[Line]:
    for part in (part for part in told.parts if part.label):
        style = Style.PLAIN if part.tone is Tone.PLAIN else Style.WARN
        for row in part.rows[:_NOTES]:
            text = to_one_line(row.text, _REASON)
            if row.lead:
                yield label_row(part.label, span(to_one_line(row.lead), style), f"  {text}" if text else "")
            elif text not in told.why.facts:
                yield label_row(part.label, span(text, style))


def _draw_claim(told: TaskSummary) -> Iterator[Line]:
    if told.is_search_result:
        found = PLAUSIBLE if told.task.model == "repair" else f"found by the repair engine; {PLAUSIBLE}"
        yield label_row("claim", found[:1].upper() + found[1:])


_HEAD = re.compile(r'diff --git (?:a/(?P<same>.+) b/(?P=same)|.* "?b/(?P<new>.+?)"?)')


def split_diff(diff: str) -> Iterator[FileDiff]:
    rows: list[str] = []
    for row in [*diff.split("\n"), "diff --git "]:
        if row.startswith("diff --git "):
            if rows and rows[0].startswith("diff --git "):
                yield _parse_file_diff(rows)
            rows = []
        rows.append(row)


def _parse_file_diff(rows: list[str]) -> FileDiff:
    begin = next((number for number, row in enumerate(rows) if row.startswith("@@")), len(rows))
    hunks = [row for row in rows[begin:] if row]
    while hunks and hunks[-1].isspace():
        hunks.pop()
    head = _HEAD.fullmatch(rows[0])
    return FileDiff(
        path=(head["same"] or head["new"]) if head else rows[0],
        added=sum(row.startswith("+") for row in hunks),
        removed=sum(row.startswith("-") for row in hunks),
        hunks=tuple(hunks),
    )
