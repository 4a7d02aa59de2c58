"""Events as the lines of a log: what `agentflow log` prints and `task` shows while it runs."""

from agentflow.core.events import RunStarted, Stamped
from agentflow.view.rows import Memory, Row, rows
from agentflow.view.text import Line, Style, line, span
from agentflow.view.words import clock, elapsed

_CLOCK_WIDTH = 8


class Story:
    """Tells a task event by event; time counts from the first one it is told."""

    def __init__(self) -> None:
        self._began: str | None = None
        self._memory = Memory()
        self._depths: dict[int, int] = {}
        """How far each run of a sub-agent stands below the one of its phase."""

    def __call__(self, stamped: Stamped) -> tuple[Line, ...]:
        """Return the lines of one event, none for what only machines care about."""
        self._began = self._began or stamped.at
        depth = 0 if stamped.parent is None else self._depths.get(stamped.parent, 0) + 1
        if isinstance(stamped.event, RunStarted):
            self._depths[stamped.event.run] = depth
        found = rows(stamped.event, self._memory)
        if not found:
            return ()
        seconds = elapsed(self._began, stamped.at)
        time = "" if seconds is None else clock(seconds)
        below = span("  " * depth)
        return tuple(
            _entry(time if number == 0 else "", (below, *row), _indent(row[0].text) + 2 * depth)
            for number, row in enumerate(found)
        )


def _indent(lead: str) -> int:
    return len(lead) - len(lead.lstrip(" "))


def _entry(time: str, row: Row, indent: int) -> Line:
    return line(span(f"{time:>{_CLOCK_WIDTH}}  ", Style.DIM), *row, hang=_CLOCK_WIDTH + indent + 4)
