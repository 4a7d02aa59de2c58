"""The result at the end of a task: what is proven, what changed, what it cost, what to do next."""

import re
from collections.abc import Iterator, Sequence
from shlex import quote

from agentflow.core.evidence import Side
from agentflow.core.record import Record
from agentflow.core.task import Failure, Phase, Status, TaskState
from agentflow.core.verdict import PLAUSIBLE, MutantResult, explain_caveat
from agentflow.redact import format_count, list_some, make_visible, to_one_line
from agentflow.report.why import Why, explain_task
from agentflow.store.reading import TASKS
from agentflow.view.prose import draw_markdown
from agentflow.view.status import check_rows, draw_pending, plan_rows, style_diff_row
from agentflow.view.tasks import Snapshot
from agentflow.view.text import BLANK, Line, Style, clip, label_row, line, span
from agentflow.view.words import Detail, draw_sandbox, mark_style, style_status

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
            if is_answer:
                return tuple(_draw_answer(state, is_styled))
            return _draw_result(state, explain_task(state, snapshot.find))
        case Detail.BRIEF:
            if is_answer:
                return (*_draw_answer(state, is_styled), *_draw_costs(state))
            return _draw_in_short(snapshot, diff, elsewhere)
        case Detail.FULL:
            return _draw_in_full(snapshot, diff, elsewhere, is_styled)


_COMMAND = re.compile(r"agentflow (status|evidence|log|resume|undo|commit|approve|deny)\b( \d{8}T\S+)?")
_FOLLOW_UP = re.compile(r"agentflow task --follows \S+(?: -C \S+)?")


def name_as_slash_commands(one: Line) -> Line:
    """Return a line of hints as a session reads it: commands begin with a slash, a message follows up."""
    texts = (_FOLLOW_UP.sub("type:", _COMMAND.sub(r"/\1", part.text)) for part in one.spans)
    spans = (part.replace(text=text) for part, text in zip(one.spans, texts, strict=True))
    return one.replace(spans=tuple(spans))


def _draw_in_short(snapshot: Snapshot, diff: str, elsewhere: str) -> tuple[Line, ...]:
    state, why = snapshot.state, _explain(snapshot, elsewhere, is_named=False)
    failures = () if state.status is Status.VERIFIED else state.failures[:-1]  # the headline has the last
    return (
        *_draw_head(state, why),
        *(() if state.pending else _draw_plan(state)),
        *(check_rows(snapshot) if state.final else ()),
        *_draw_changes_in_short(tuple(split_diff(diff))),
        *(row for failure in failures for row in _draw_failure(failure)),
        *_draw_costs(state),
        *_draw_cautions(state, why),
        *_draw_sandbox_in_short(state),
        *_draw_claim(state),
    )


def _draw_in_full(snapshot: Snapshot, diff: str, elsewhere: str, is_styled: bool) -> tuple[Line, ...]:
    state, name = snapshot.state, snapshot.folder.name
    why = _explain(snapshot, elsewhere, is_named=True)
    report = state.document or f"{TASKS}/{name}/report.md"
    footer = (
        label_row("used", span(_describe_usage(state))),
        *_draw_cautions(state, why),
        *([label_row("sandbox", draw_sandbox(state))] if state.sandbox != "full" else []),
        *_draw_claim(state),
        label_row("report", span(f"{elsewhere}/{report}" if elsewhere else report)),
    )
    if state.status is Status.ANSWERED and state.findings is not None:
        return (*_draw_answer(state, is_styled), *footer)
    return (
        *_draw_head(state, why),
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


def draw_why(state: TaskState, why: Why, *, at_work: bool) -> tuple[Line, ...]:
    """Return why a task stands as it does, and what to do next."""
    is_left = state.undone is not None or (state.status is Status.RUNNING and not at_work)
    code = f"exit {int(state.ending.exit_code)}  " if state.ending and not state.undone else ""
    left = (span(f"and {why.more} more: agentflow report", Style.DIM),) if why.more else ()
    rows = _draw_facts(why, why.facts[1:], Style.WARN if is_left else style_status(state.status), code)
    return (*rows, *(line("  ", each) for each in left), *_draw_steps(why))


def _draw_head(state: TaskState, why: Why) -> tuple[Line, ...]:
    """Return what decided how a task ended, and what to do next."""
    return (*_draw_result(state, why), *(draw_pending(state) if state.pending else _draw_steps(why)))


def _draw_result(state: TaskState, why: Why) -> tuple[Line, ...]:
    """Return the result with what decided it; of a task that did not pass with all that its end says."""
    said = state.ending.reason.splitlines()[1:] if state.ending else ()
    is_caveat = state.status is Status.VERIFIED_WITH_CAVEAT
    return _draw_facts(why, why.facts[1:] if is_caveat else said, style_status(state.status))


def _draw_facts(why: Why, more: Sequence[str], style: Style, code: str = "") -> tuple[Line, ...]:
    spans = (mark_style(style), *((span(code, Style.DIM),) if code else ()), span(why.headline, style))
    first = line(*spans, hang=2)
    return (first, *(line("  ", make_visible(fact), hang=4) for fact in more))


def _draw_steps(why: Why) -> tuple[Line, ...]:
    return tuple(label_row("" if place else "next", span(step)) for place, step in enumerate(why.next))


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


def _draw_cautions(state: TaskState, why: Why) -> Iterator[Line]:
    """Yield what a person should know besides the facts that decided."""
    shown = state.verdict
    for caveat in shown.caveats if shown else ():
        said = explain_caveat(caveat)
        yield label_row("caveat", span(to_one_line(caveat), Style.WARN), span(f"  {said}" if said else ""))
    is_open = shown is not None and not shown.approvals and not state.pending
    told = (*shown.approvals, *(shown.weakened if is_open else ())) if shown else ()
    notes = shown.notes[:_NOTES] if shown else ()
    unproved = shown.unproved[:_NOTES] if shown and shown.passed else ()
    for label, texts in (("unproved", unproved), ("checks", told), ("note", notes)):
        style = Style.WARN if label == "checks" else Style.PLAIN
        rows = (to_one_line(text, _REASON) for text in texts)
        yield from (label_row(label, span(row, style)) for row in rows if row not in why.facts)
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
        found = PLAUSIBLE if state.model == "repair" else f"found by the repair engine; {PLAUSIBLE}"
        yield label_row("claim", span(found[:1].upper() + found[1:]))


def _explain(snapshot: Snapshot, elsewhere: str, *, is_named: bool) -> Why:
    place = f" -C {quote(elsewhere)}" if elsewhere else ""
    return explain_task(snapshot.state, snapshot.find, is_named=is_named, place=place)


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
