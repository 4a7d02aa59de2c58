"""What waits for a person, as `status` shows it."""

from collections.abc import Iterator

from agentflow.core.pending import Pending, PendingKind, letter_of
from agentflow.core.task import TaskState
from agentflow.redact import one_line
from agentflow.view.text import Line, Style, labelled, span

_MAX_VALUE = 400
_MAX_LINES = 40


def pending_rows(state: TaskState) -> tuple[Line, ...]:
    """Return what waits for a person: what it is about, and the commands that decide it."""
    rows: list[Line] = []
    for item in state.pending:
        said = span(f"{item.kind} {item.id}: {item.tool or ''}", Style.WARN)
        rows.append(labelled("waits", said))
        for key, value in item.told.items():
            rows.extend(_value(key, str(value)))
        rows.extend(_options(item))
        rows.append(labelled("decide", span(item.decided_by(state.task_id), Style.BOLD)))
        if item.kind is PendingKind.APPROVAL:
            rows.append(labelled("then", span(f"agentflow resume {state.task_id}", Style.BOLD)))
    return tuple(rows)


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
