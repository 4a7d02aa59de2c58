"""Events as the lines of a log: what `agentflow log` prints and `task` shows while it runs."""

from agentflow.core.events import Stamped
from agentflow.view.rows import Memory, Row, rows
from agentflow.view.text import Line, Style, line, span
from agentflow.view.words import clock, elapsed

_CLOCK_WIDTH = 8


class Story:
    """Tells a task event by event; time counts from the first one it is told."""

    def __init__(self) -> None:
        self._began: str | None = None
        self._memory = Memory()

    def __call__(self, stamped: Stamped) -> tuple[Line, ...]:
        """Return the lines of one event, none for what only machines care about."""
        self._began = self._began or stamped.at
        found = rows(stamped.event, self._memory)
        if not found:
            return ()
        seconds = elapsed(self._began, stamped.at)
        time = "" if seconds is None else clock(seconds)
        return tuple(_entry(time if number == 0 else "", row) for number, row in enumerate(found))


def _entry(time: str, row: Row) -> Line:
    lead = row[0].text
    indent = len(lead) - len(lead.lstrip(" "))
    return line(span(f"{time:>{_CLOCK_WIDTH}}  ", Style.DIM), *row, hang=_CLOCK_WIDTH + indent + 4)
