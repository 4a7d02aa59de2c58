"""Events as lines of a log, for `log` and for a running task, with one live line on a terminal."""

import threading
import time
from types import TracebackType
from typing import Self, TextIO

from agentflow.core.events import (
    Asked,
    CheckStarted,
    Event,
    EvidenceRecorded,
    PhaseEnded,
    PhaseStarted,
    Replied,
    RunEnded,
    RunStarted,
    Signalled,
    Stamped,
    TaskEnded,
    ToolFinished,
    ToolStarted,
)
from agentflow.core.record import Record
from agentflow.redact import one_line
from agentflow.view.rows import Memory, Row, brief_rows, rows
from agentflow.view.text import (
    Line,
    Medium,
    Style,
    cut,
    in_ascii,
    line,
    paint,
    render,
    send,
    span,
    width_of,
)
from agentflow.view.words import clock, seconds_between, side_words, whole_seconds

_TICK = 0.1
"""Seconds between two redraws, at least."""
_ERASE = "\r\x1b[K"
_NARROW = 80
_WIDE = 120
"""Columns of a row in short, where the stream is no terminal."""


class Doing(Record):
    """What is going on at a moment."""

    phase: str = ""
    role: str = ""
    what: str = ""
    since: float = 0.0
    """When `what` began, on the monotonic clock."""


def after(doing: Doing, event: Event, now: float) -> Doing:
    """Return what is going on once an event has happened."""
    match event:
        case PhaseStarted():
            now_doing = Doing(phase=event.phase, since=now)
        case RunStarted():
            now_doing = doing.replace(role=event.role, what="", since=now)
        case RunEnded():
            now_doing = doing.replace(role="", what="", since=now)
        case Asked() | ToolStarted() | CheckStarted():
            now_doing = doing.replace(what=_what(event), since=now)
        case Replied() | ToolFinished() | EvidenceRecorded():
            now_doing = doing.replace(what="", since=now)
        case PhaseEnded() | TaskEnded():
            now_doing = Doing()
        case _:
            now_doing = doing
    return now_doing


def _what(event: Asked | ToolStarted | CheckStarted) -> str:
    match event:
        case Asked():
            return "thinking"
        case ToolStarted():
            return f"{event.tool} {one_line(event.subject)}"
        case CheckStarted():
            return one_line(event.command) + side_words(event.surface, event.code)


def status_line(doing: Doing, now: float) -> Line:
    """Return what is going on as one line."""
    parts = " · ".join(filter(None, (doing.role, doing.what)))
    return line(
        span("▸ ", Style.ACCENT),
        span(f"{doing.phase}  ", Style.BOLD),
        span(f"{whole_seconds(now - doing.since)}  ", Style.DIM),
        span(parts),
    )


class Progress:
    """An observer that writes what it is told; to be closed, so that the live line goes away."""

    def __init__(self, stream: TextIO, medium: Medium, *, is_brief: bool = False) -> None:
        self._stream = stream
        self._medium = medium
        self._is_brief = is_brief
        self._tell = Story(is_brief=is_brief)
        self._live = _Live(stream, medium) if medium.live else None

    def __call__(self, stamped: Stamped) -> None:
        if isinstance(stamped.event, Signalled):
            if self._stream.isatty():
                send(stamped.event.sequence, self._stream)
            return
        lines = self._tell(stamped)
        if self._is_brief and isinstance(stamped.event, PhaseEnded):
            lines = tuple(cut(one, width_of(self._stream) or _WIDE) for one in lines)
        if self._live is None:
            if lines:
                send(render(lines, self._medium, None), self._stream)
        else:
            self._live.show(stamped.event, lines)

    def close(self) -> None:
        """Take the live line away; nothing is written afterwards."""
        if self._live:
            self._live.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None
    ) -> None:
        self.close()


class _Live:
    """One line at the bottom of a terminal, drawn by a thread of its own."""

    def __init__(self, stream: TextIO, medium: Medium) -> None:
        self._stream = stream
        self._medium = medium
        self._lock = threading.Lock()
        self._doing = Doing()
        self._drawn = ""
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="agentflow-progress", daemon=True)
        self._thread.start()

    def show(self, event: Event, lines: tuple[Line, ...]) -> None:
        with self._lock:
            self._doing = after(self._doing, event, time.monotonic())
            if lines and not self._closed.is_set():
                self._put(self._erase() + render(lines, self._medium, width_of(self._stream)))

    def close(self) -> None:
        self._closed.set()
        self._thread.join()
        with self._lock:
            self._put(self._erase())

    def _run(self) -> None:
        while not self._closed.wait(_TICK):
            with self._lock:
                self._draw()

    def _draw(self) -> None:
        wanted = self._paint_live() if self._doing.phase else ""
        if wanted != self._drawn:
            self._put(self._erase() + wanted)
            self._drawn = wanted

    def _paint_live(self) -> str:
        one = status_line(self._doing, time.monotonic())
        shown = in_ascii(one) if self._medium.ascii else one
        return paint(cut(shown, (width_of(self._stream) or _NARROW) - 1), self._medium)

    def _erase(self) -> str:
        """Return what takes the live line away, if it is there."""
        erase = _ERASE if self._drawn else ""
        self._drawn = ""
        return erase

    def _put(self, text: str) -> None:
        if text and not send(text, self._stream):
            self._closed.set()


_CLOCK_WIDTH = 8


class Siblings:
    """Tells runs apart that go on side by side."""

    def __init__(self) -> None:
        self._going: dict[int | None, set[int]] = {}
        """The runs that go on, by the run that asked for them."""
        self._crowds: set[int | None] = set()
        """Who has had more than one at once in this phase."""

    def number(self, stamped: Stamped) -> Row:
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

    def __init__(self, *, is_brief: bool = False) -> None:
        self._rows = brief_rows if is_brief else rows
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
        whose = self._siblings.number(stamped)
        found = self._rows(stamped.event, self._memory)
        if not found:
            return ()
        seconds = seconds_between(self._began, stamped.at)
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
