"""Events as lines of a log, for `log` and for a running task, with a live region on a terminal."""

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from agentflow.core import events
from agentflow.view.board import Board, update_board
from agentflow.view.rows import Memory, Row, list_brief_rows, list_rows
from agentflow.view.text import Line, Medium, Style, cut, find_width, line, render, send, span
from agentflow.view.words import count_seconds, format_clock

if TYPE_CHECKING:
    from agentflow.view.region import Region, Screen

_WIDE = 120
"""Columns of a row in short, where the stream is no terminal."""


def open_region(folder: Path, medium: Medium, stream: TextIO) -> "Region | None":
    """Return the live region for a task, where the terminal can redraw; nothing of it is loaded elsewhere."""
    if not medium.live:
        return None
    from agentflow.view.region import Painter, Region  # noqa: PLC0415  # rich is loaded at a terminal alone

    return Region(stream, Painter(medium, folder / "outputs"))


class Progress:
    """An observer that writes events as lines; closing it removes the live region."""

    def __init__(
        self,
        stream: TextIO,
        medium: Medium,
        screen: "Screen | None" = None,
        *,
        is_brief: bool = False,
        board: Board | None = None,
    ) -> None:
        self._stream = stream
        self._medium = medium
        self._is_brief = is_brief
        self._tell = Story(is_brief=is_brief, shows_calls=stream.isatty())
        self._screen = screen
        self._board = board or Board()

    def __call__(self, stamped: events.StoredEvent) -> None:
        if isinstance(stamped.event, events.Signalled):
            if self._stream.isatty():
                send(stamped.event.sequence, self._stream)
            return
        lines = self._tell(stamped)
        width = find_width(self._stream)
        if self._is_brief and isinstance(stamped.event, events.PhaseEnded | events.ToolFinished):
            lines = tuple(cut(one, width or _WIDE) for one in lines)
        if self._screen is not None:
            self._board = update_board(self._board, stamped)
            self._screen.show(self._board, render(lines, self._medium, width))
        elif lines:
            send(render(lines, self._medium, None), self._stream)

    def close(self) -> None:
        if self._screen is not None:
            self._screen.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None
    ) -> None:
        self.close()


_CLOCK_WIDTH = 8


class Siblings:
    def __init__(self) -> None:
        self._going: dict[int | None, set[int]] = {}
        """The runs that go on, by the run that asked for them."""
        self._crowds: set[int | None] = set()
        """The parents that had more than one run at once in this phase."""

    def number(self, stamped: events.StoredEvent) -> Row:
        event = stamped.event
        if isinstance(event, events.PhaseStarted):
            self._going.clear()
            self._crowds.clear()
        going = self._going.setdefault(stamped.parent, set())
        if isinstance(event, events.RunStarted):
            going.add(event.run)
        if len(going) > 1:
            self._crowds.add(stamped.parent)
        run = getattr(event, "run", None)
        if isinstance(event, events.RunEnded):
            going.discard(event.run)
        return () if run is None or stamped.parent not in self._crowds else (span(f"#{run} ", Style.DIM),)


class Story:
    """Turns events into lines; time counts from the first event."""

    def __init__(self, *, is_brief: bool = False, shows_calls: bool = False) -> None:
        self._rows = list_brief_rows if is_brief else list_rows
        self._began: str | None = None
        self._memory = Memory()
        self._memory.shows_calls = shows_calls
        self._depths: dict[int, int] = {}
        """How far each run of a sub-agent stands below the one of its phase."""
        self._siblings = Siblings()

    def __call__(self, stamped: events.StoredEvent) -> tuple[Line, ...]:
        self._began = self._began or stamped.at
        depth = 0 if stamped.parent is None else self._depths.get(stamped.parent, 0) + 1
        if isinstance(stamped.event, events.RunStarted):
            self._depths[stamped.event.run] = depth
        whose = self._siblings.number(stamped)
        found = tuple(self._rows(stamped.event, self._memory))
        if not found:
            return ()
        seconds = count_seconds(self._began, stamped.at)
        time = "" if seconds is None else format_clock(seconds)
        below = span("  " * depth)
        lines = list[Line]()
        for lead, *rest in found:
            clock = span(f"{'' if lines else time:>{_CLOCK_WIDTH}}  ", Style.DIM)
            indent = len(lead.text) - len(lead.text.lstrip(" ")) + 2 * depth
            lines.append(line(clock, below, lead, *whose, *rest, hang=_CLOCK_WIDTH + indent + 4))
        return tuple(lines)
