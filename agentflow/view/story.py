"""Events as the lines of a log: what `agentflow log` prints and `task` shows while it runs."""

from agentflow.core.events import PhaseStarted, RunEnded, RunStarted, Stamped
from agentflow.view.rows import Memory, Row, rows
from agentflow.view.text import Line, Style, line, span
from agentflow.view.words import clock, elapsed

_CLOCK_WIDTH = 8


class Siblings:
    """Tells runs apart that go on side by side."""

    def __init__(self) -> None:
        self._going: dict[int | None, set[int]] = {}
        """The runs that go on, by the run that asked for them."""
        self._crowds: set[int | None] = set()
        """Who has had more than one at once in this phase."""

    def told(self, stamped: Stamped) -> Row:
        """Return the number of an event's run where it has or had others beside it."""
        event = stamped.event
        if isinstance(event, PhaseStarted):
            self._going.clear()
            self._crowds.clear()
        going = self._going.setdefault(stamped.parent, set())
        if isinstance(event, RunStarted):
            going.add(event.run)
        if len(going) > 1:
            self._crowds.add(stamped.parent)
        run = getattr(event, "run", None)
        if isinstance(event, RunEnded):
            going.discard(event.run)
        return () if run is None or stamped.parent not in self._crowds else (span(f"#{run} ", Style.DIM),)


class Story:
    """Tells a task event by event; time counts from the first one it is told."""

    def __init__(self) -> None:
        self._began: str | None = None
        self._memory = Memory()
        self._depths: dict[int, int] = {}
        """How far each run of a sub-agent stands below the one of its phase."""
        self._siblings = Siblings()

    def __call__(self, stamped: Stamped) -> tuple[Line, ...]:
        """Return the lines of one event, none for what only machines care about."""
        self._began = self._began or stamped.at
        depth = 0 if stamped.parent is None else self._depths.get(stamped.parent, 0) + 1
        if isinstance(stamped.event, RunStarted):
            self._depths[stamped.event.run] = depth
        whose = self._siblings.told(stamped)
        found = rows(stamped.event, self._memory)
        if not found:
            return ()
        seconds = elapsed(self._began, stamped.at)
        time = "" if seconds is None else clock(seconds)
        below = span("  " * depth)
        return tuple(
            _entry(
                time if number == 0 else "",
                (below, row[0], *whose, *row[1:]),
                _indent(row[0].text) + 2 * depth,
            )
            for number, row in enumerate(found)
        )


def _indent(lead: str) -> int:
    return len(lead) - len(lead.lstrip(" "))


def _entry(time: str, row: Row, indent: int) -> Line:
    return line(span(f"{time:>{_CLOCK_WIDTH}}  ", Style.DIM), *row, hang=_CLOCK_WIDTH + indent + 4)
