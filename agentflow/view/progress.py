"""What `task` shows on stderr while it runs: the log, and on a terminal one live line below it."""

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
    Stamped,
    TaskEnded,
    ToolFinished,
    ToolStarted,
)
from agentflow.core.record import Record
from agentflow.redact import one_line
from agentflow.view.story import Story
from agentflow.view.terminal import Medium, in_ascii, paint, rendered, send, width_of
from agentflow.view.text import Line, Style, cut, line, span
from agentflow.view.words import side_words, whole_seconds

_TICK = 0.1
"""Seconds between two redraws, at least."""
_ERASE = "\r\x1b[K"
_NARROW = 80


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

    def __init__(self, stream: TextIO, medium: Medium) -> None:
        self._stream = stream
        self._medium = medium
        self._tell = Story()
        self._live = _Live(stream, medium) if medium.live else None

    def __call__(self, stamped: Stamped) -> None:
        lines = self._tell(stamped)
        if self._live is None:
            if lines:
                send(rendered(lines, self._medium, None), self._stream)
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
                self._put(self._erased() + rendered(lines, self._medium, width_of(self._stream)))

    def close(self) -> None:
        self._closed.set()
        self._thread.join()
        with self._lock:
            self._put(self._erased())

    def _run(self) -> None:
        while not self._closed.wait(_TICK):
            with self._lock:
                self._draw()

    def _draw(self) -> None:
        wanted = self._painted() if self._doing.phase else ""
        if wanted != self._drawn:
            self._put(self._erased() + wanted)
            self._drawn = wanted

    def _painted(self) -> str:
        one = status_line(self._doing, time.monotonic())
        shown = in_ascii(one) if self._medium.ascii else one
        return paint(cut(shown, (width_of(self._stream) or _NARROW) - 1), self._medium)

    def _erased(self) -> str:
        """Return what takes the live line away, if it is there."""
        erase = _ERASE if self._drawn else ""
        self._drawn = ""
        return erase

    def _put(self, text: str) -> None:
        if text and not send(text, self._stream):
            self._closed.set()
