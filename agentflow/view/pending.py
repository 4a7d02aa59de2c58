"""What waits for a person, as `status` shows it."""

from collections.abc import Iterator

from agentflow.core.pending import APPROVED, Pending, PendingKind, letter_of
from agentflow.core.task import TaskState
from agentflow.redact import one_line
from agentflow.view.text import Line, Style, clip, labelled, line, span
from agentflow.view.words import plural

_MAX_VALUE = 400
_MAX_LINES = 40
_DIFF_LINES = 60
_DIFF_WIDTH = 160


def pending_rows(state: TaskState) -> tuple[Line, ...]:
    """Return what waits for a person: what it is about, and the commands that decide it."""
    rows: list[Line] = []
    for item in state.pending:
        rows.extend(changed_checks(item) if item.kind is PendingKind.SURFACE else _asked(item))
        rows.append(labelled("decide", span(item.decided_by(state.task_id), Style.BOLD)))
        if item.kind in APPROVED:
            rows.append(labelled("then", span(f"agentflow resume {state.task_id}", Style.BOLD)))
    return tuple(rows)


def _asked(item: Pending) -> Iterator[Line]:
    yield labelled("waits", span(f"{item.kind} {item.id}: {item.tool or ''}", Style.WARN))
    for key, value in item.told.items():
        if value != "":
            yield from _value(key, str(value))
    yield from _options(item)


def _value(key: str, text: str) -> Iterator[Line]:
    """Yield a value line by line: what is decided about is what was seen."""
    first, *more = text.split("\n")
    yield labelled("", span(f"{key}: ", Style.DIM), span(one_line(first, _MAX_VALUE)))
    for row in more[:_MAX_LINES]:
        yield labelled("", span(f"  {one_line(row, _MAX_VALUE)}"))
    if len(more) > _MAX_LINES:
        yield labelled("", span(f"  … {len(more) - _MAX_LINES} more lines, see --json", Style.WARN))


def _options(item: Pending) -> Iterator[Line]:
    for question in item.questions:
        if question.text:
            yield labelled("", span(one_line(question.text, _MAX_VALUE)))
        for place, option in enumerate(question.options):
            yield labelled(
                "", span(f"{letter_of(place)}  ", Style.ACCENT), span(one_line(option, _MAX_VALUE))
            )


def changed_checks(item: Pending) -> Iterator[Line]:
    """Yield what was done to the checks, in words and as a diff: enough to decide on."""
    yield labelled("waits", span(f"approval {item.id}: the checks themselves were changed", Style.WARN))
    for change in item.input["changes"]:
        yield labelled("", span("! ", Style.WARN), span(one_line(str(change), _MAX_VALUE)))
    for shown in item.input.get("before", ()):
        yield labelled("", span(f"with the original checks: {shown}"))
    if item.input["why"]:
        yield labelled("said", span(one_line(str(item.input["why"]), _MAX_VALUE)))
    rows = str(item.input["diff"]).splitlines()
    for row in rows[:_DIFF_LINES]:
        yield line(span(f"    {clip(row, _DIFF_WIDTH)}", diff_style(row)), hang=5)
    if len(rows) > _DIFF_LINES:
        yield line(span(f"    … {plural(len(rows) - _DIFF_LINES, 'line')} more in the report", Style.DIM))


def diff_style(row: str) -> Style:
    """Return the colour of a line of a diff."""
    return {"+": Style.GOOD, "-": Style.BAD, "@": Style.ACCENT}.get(row[:1], Style.DIM)
