"""The result at the end of a task: what is proven, what changed, what it cost, what to do next."""

import re
from collections.abc import Iterator
from shlex import quote

from agentflow.core.evidence import Side
from agentflow.core.record import Record
from agentflow.core.task import Failure, Phase, Status, TaskState
from agentflow.core.verdict import PLAUSIBLE, MutantResult, Verdict, explain_caveat
from agentflow.redact import format_count, list_some, make_visible, to_one_line
from agentflow.store.reading import TASKS
from agentflow.verdict.ending import describe_outcome
from agentflow.view.prose import draw_markdown
from agentflow.view.status import check_rows, draw_pending, plan_rows, style_diff_row
from agentflow.view.tasks import Snapshot
from agentflow.view.text import BLANK, Line, Style, clip, label_row, line, span
from agentflow.view.words import RESUMABLE, Detail, draw_sandbox, mark_status, style_status

_DIFF_LINES = 40
_DIFF_WIDTH = 160
_FILES = 12
_FEW = 6
"""Changed lines that are shown in short."""
_REASON = 300
_PER_FAILURE = 3
_NOTES = 8


def describe_survivor(mutant: MutantResult) -> str:
    """Return what no test notices: `default=0 → default=1: no test notices`."""
    where = " in the removed code" if mutant.code is Side.BASE else ""
    return f"{mutant.edit}{where}: no test notices"


class FileDiff(Record):
    """The part of a diff about one file."""

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
    is_answer = state.status is Status.ANSWERED and state.findings is not None
    match detail:
        case Detail.VERDICT:
            return tuple(_draw_answer(state, is_styled)) if is_answer else _draw_headline(snapshot)
        case Detail.BRIEF:
            if is_answer:
                return (*_draw_answer(state, is_styled), *_draw_costs(state))
            return _draw_in_short(snapshot, diff, elsewhere)
        case Detail.FULL:
            return _draw_in_full(snapshot, diff, elsewhere, is_styled)


_COMMAND = re.compile(r"agentflow (status|evidence|log|resume|undo|commit|approve|deny)\b( \d{8}T\S+)?")


def name_as_slash_commands(one: Line) -> Line:
    """Return a line of hints as a session reads it, where each command begins with a slash."""
    return one.replace(spans=tuple(part.replace(text=_COMMAND.sub(r"/\1", part.text)) for part in one.spans))


def _draw_in_short(snapshot: Snapshot, diff: str, elsewhere: str) -> tuple[Line, ...]:
    state = snapshot.state
    failures = () if state.status is Status.VERIFIED else state.failures[:-1]  # the headline has the last
    return (
        *_draw_headline(snapshot),
        *draw_pending(state),
        *(() if state.pending else _draw_plan(state)),
        *(check_rows(snapshot) if state.final else ()),
        *_draw_changes_in_short(tuple(split_diff(diff))),
        *(row for failure in failures for row in _draw_failure(failure)),
        *_draw_costs(state),
        *_draw_cautions(state),
        *_draw_sandbox_in_short(state),
        *_draw_claim(state),
        *_draw_next_in_short(snapshot, elsewhere),
    )


def _draw_in_full(snapshot: Snapshot, diff: str, elsewhere: str, is_styled: bool) -> tuple[Line, ...]:
    state = snapshot.state
    footer = (
        label_row("used", span(_describe_usage(state))),
        *_draw_cautions(state),
        *([label_row("sandbox", draw_sandbox(state))] if state.sandbox != "full" else []),
        *_draw_claim(state),
        *_draw_report_and_next(snapshot, elsewhere),
    )
    if state.status is Status.ANSWERED and state.findings is not None:
        return (*_draw_answer(state, is_styled), *footer)
    return (
        *_draw_headline(snapshot),
        *draw_pending(state),
        *_draw_plan(state),
        *_draw_checks(snapshot),
        BLANK,
        *_draw_changes(tuple(split_diff(diff)), _describe_no_change(state)),
        *_draw_iterations(state),
        *footer,
    )


def _draw_answer(state: TaskState, is_styled: bool) -> Iterator[Line]:
    """Yield the answer of a task that changed nothing: its findings, their places and open questions."""
    findings, review = state.findings, state.review
    if findings is None:
        return
    rows = findings.summary.strip().splitlines()
    yield from (draw_markdown("\n".join(rows)) if is_styled else (line(span(row)) for row in rows))
    yield BLANK
    for one in findings.findings:
        doubt = " (not seen by the explorer)" if one.place in state.unseen_findings else ""
        flag = span(" (no such line)" if one.place in state.flagged_findings else doubt, Style.BAD)
        yield line(
            "  ",
            span(to_one_line(one.place), Style.ACCENT),
            flag,
            f"  {to_one_line(one.claim, _REASON)}",
            hang=4,
        )
    for issue in review.issues if review else ():
        flag = span(" (no such line)" if issue.place in state.flagged_issues else "", Style.BAD)
        said = f"  {to_one_line(issue.message, _REASON)}"
        yield line(
            "  ",
            span(issue.severity, Style.WARN),
            " ",
            span(to_one_line(issue.place), Style.ACCENT),
            flag,
            said,
            hang=4,
        )
    for question in findings.open_questions:
        yield line("  ", span("open  ", Style.WARN), to_one_line(question, _REASON), hang=4)
    if findings.findings or findings.open_questions:
        yield BLANK


def _draw_headline(snapshot: Snapshot) -> tuple[Line, ...]:
    status = snapshot.state.status
    said = ": ".join(filter(None, describe_outcome(snapshot.state, snapshot.find)))
    first = line(mark_status(status), span(said, style_status(status)), hang=2)
    more = snapshot.state.ending.reason.splitlines()[1:] if snapshot.state.ending else []
    return (first, *(line("  ", make_visible(each), hang=4) for each in more))


def _draw_plan(state: TaskState) -> tuple[Line, ...]:
    """Return the plan of a task that waits and has changed nothing yet, to be looked at before it goes on."""
    is_next = state.status is Status.SUSPENDED and state.change is None and not state.failures
    return plan_rows(state) if is_next else ()


def _draw_checks(snapshot: Snapshot) -> tuple[Line, ...]:
    rows = check_rows(snapshot)
    return (BLANK, *rows) if rows else ()


def _describe_no_change(state: TaskState) -> str:
    """Return the text in place of changed files where none is known."""
    if state.base_tree is None or state.tree is not None:
        return "nothing"
    is_paused = state.status is Status.SUSPENDED
    return "not computed yet (task is paused)" if is_paused else "unknown, the files could not be read"


def _draw_changes_in_short(files: tuple[FileDiff, ...]) -> Iterator[Line]:
    """Yield each changed file, with its changed lines where they are few."""
    rows = [row for file in files for row in file.hunks if row[:1] in "+-"]
    for file in files[:_FILES]:
        yield _draw_file(file)
        for row in file.hunks if len(rows) <= _FEW else ():
            if row[:1] in "+-":
                yield line(span(f"    {clip(row, _DIFF_WIDTH)}", style_diff_row(row)), hang=5)
    if len(files) > _FILES:
        yield line(span(f"  … and {format_count(len(files) - _FILES, 'file')} more", Style.DIM))


def _draw_file(file: FileDiff) -> Line:
    return line(
        "  ",
        span(to_one_line(file.path, _DIFF_WIDTH), Style.BOLD),
        span(f"  +{file.added}", Style.GOOD),
        span(f" -{file.removed}", Style.BAD),
        hang=4,
    )


def _draw_changes(files: tuple[FileDiff, ...], none: str) -> Iterator[Line]:
    yield label_row("changed", span(format_count(len(files), "file") if files else none))
    room = _DIFF_LINES
    for file in files[:_FILES]:
        yield _draw_file(file)
        for row in file.hunks[:room]:
            yield line(span(f"    {clip(row, _DIFF_WIDTH)}", style_diff_row(row)), hang=5)
        left_out = len(file.hunks) - room
        if left_out > 0:
            yield line(span(f"    … {format_count(left_out, 'line')} more", Style.DIM))
        room = max(0, -left_out)
    if len(files) > _FILES:
        yield line(span(f"  … and {format_count(len(files) - _FILES, 'file')} more", Style.DIM))
    yield BLANK


def _draw_iterations(state: TaskState) -> Iterator[Line]:
    yield label_row("iterations", span(f"{state.iteration} of {state.max_iterations}"))
    if state.proving:
        yield label_row("proving", span(f"round {state.proving} of {state.prove_rounds}"))
    for failure in state.failures:
        yield from _draw_failure(failure)


def _draw_failure(failure: Failure) -> Iterator[Line]:
    where = "checks" if failure.phase is Phase.VERIFICATION else failure.phase
    for number, reason in enumerate(failure.reasons[:_PER_FAILURE]):
        lead = f"iteration {failure.iteration} failed ({where}): " if number == 0 else "  "
        yield line(
            span("  ✗ ", Style.BAD) if number == 0 else "    ", lead + to_one_line(reason, _REASON), hang=6
        )
    if len(failure.reasons) > _PER_FAILURE:
        yield line(span(f"      … and {len(failure.reasons) - _PER_FAILURE} more reasons", Style.DIM))


def _draw_costs(state: TaskState) -> Iterator[Line]:
    """Yield the usage of a task, if there is any."""
    if state.usage.input or state.usage.output or state.usage.cache_read:
        yield label_row("used", span(_describe_usage(state)))


def _describe_usage(state: TaskState) -> str:
    usage = state.usage
    known = f"${usage.cost_usd:.4f}" if usage.cost_usd else "no cost"
    cost = "cost unknown" if usage.cost_usd is None else known
    read = usage.input + usage.cache_read + usage.cache_write
    if not (read or usage.output):
        return "no tokens, no cost"
    return f"{cost}, {format_count(read, 'token')} in, {usage.output:,} out"


def _draw_cautions(state: TaskState) -> Iterator[Line]:
    shown = state.verdict
    for caveat in shown.caveats if shown else ():
        said = explain_caveat(caveat)
        yield label_row("caveat", span(to_one_line(caveat), Style.WARN), span(f"  {said}" if said else ""))
    yield from (label_row("unproved", span(to_one_line(place, _REASON))) for place in _list_unproved(shown))
    is_open = shown is not None and not shown.approvals and not state.pending
    told = (*shown.approvals, *(shown.weakened if is_open else ())) if shown else ()
    yield from (label_row("checks", span(to_one_line(change, _REASON), Style.WARN)) for change in told)
    for note in shown.notes[:_NOTES] if shown else ():
        yield label_row("note", span(to_one_line(note, _REASON)))
    if state.hook_files:
        names = [to_one_line(path, _DIFF_WIDTH) for path in sorted(state.hook_files)]
        yield label_row("hooks", span(f"changed: {list_some(names, _FILES)}"))


def _draw_sandbox_in_short(state: TaskState) -> Iterator[Line]:
    """Yield in one row that a sandbox leaves things open, each of which the first line of the task names."""
    if state.gaps:
        gaps = "1 thing is" if len(state.gaps) == 1 else f"{len(state.gaps)} things are"
        told = f"{state.sandbox}: {gaps} not isolated; agentflow status names them"
        yield label_row("sandbox", span(told, Style.WARN))
    elif state.sandbox != "full":
        yield label_row("sandbox", draw_sandbox(state))


def _draw_claim(state: TaskState) -> Iterator[Line]:
    if state.is_found and state.status in {Status.VERIFIED, Status.VERIFIED_WITH_CAVEAT}:
        found = f"found by the repair engine; {PLAUSIBLE}" if state.is_first_try else PLAUSIBLE
        yield label_row("claim", span(found[:1].upper() + found[1:]))


def _list_unproved(shown: Verdict | None) -> tuple[str, ...]:
    """Return the unproved places of a change that passed."""
    return shown.unproved[:_NOTES] if shown is not None and shown.passed else ()


def _draw_report_and_next(snapshot: Snapshot, elsewhere: str) -> Iterator[Line]:
    name = snapshot.folder.name
    report = snapshot.state.document or f"{TASKS}/{name}/report.md"
    yield label_row("report", span(f"{elsewhere}/{report}" if elsewhere else report))
    if not snapshot.state.pending:  # else it stands there how to decide
        command, after = _choose_next(snapshot)
        place = f" -C {quote(elsewhere)}" if elsewhere else ""
        yield label_row(
            "next", span(f"agentflow {command} {name}{place}", Style.ACCENT), span(after, Style.DIM)
        )


def _draw_next_in_short(snapshot: Snapshot, elsewhere: str) -> Iterator[Line]:
    """Yield the command that most people want next; it takes the newest task."""
    state = snapshot.state
    if state.pending:
        return
    place = f" -C {quote(elsewhere)}" if elsewhere else ""
    if state.status in RESUMABLE:
        command, after = "resume", "continues it"
    elif state.status in {Status.VERIFIED, Status.VERIFIED_WITH_CAVEAT}:
        command, after = "evidence", f"shows each output; agentflow undo{place} reverts"
    else:
        command, after = "log", "shows each step"
        after += f"; agentflow evidence{place} shows each output" if snapshot.evidence else ""
    yield label_row("next", span(f"agentflow {command}{place}", Style.ACCENT), span(f"  {after}", Style.DIM))


def _choose_next(snapshot: Snapshot) -> tuple[str, str]:
    if snapshot.state.status in RESUMABLE:
        return "resume", "  continues it"
    return ("evidence", "  shows each output") if snapshot.evidence else ("log", "  shows what happened")


_HEAD = re.compile(r'diff --git (?:a/(?P<same>.+) b/(?P=same)|.* "?b/(?P<new>.+?)"?)')


def split_diff(diff: str) -> Iterator[FileDiff]:
    """Yield the files of a git diff, each with its hunks."""
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
    return FileDiff(
        path=_parse_path(rows[0]),
        added=sum(row.startswith("+") for row in hunks),
        removed=sum(row.startswith("-") for row in hunks),
        hunks=tuple(hunks),
    )


def _parse_path(head: str) -> str:
    """Return the file that a line `diff --git a/X b/X` is about."""
    found = _HEAD.fullmatch(head)
    return (found["same"] or found["new"]) if found else head
