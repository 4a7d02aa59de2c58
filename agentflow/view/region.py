"""The live region of a terminal: where a task stands, drawn by rich and redrawn in place."""

import io
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress_bar import ProgressBar
from rich.text import Text

from agentflow.core.task import GateStatus, Phase
from agentflow.redact import format_count, format_money, make_visible, strip_colours
from agentflow.view.board import Board, RunningCheck, TestCounter, Work
from agentflow.view.text import ASCII, Medium, count_cells, find_width, send
from agentflow.view.words import GATE_MARKS, format_whole_seconds

TICK = 0.1
"""Seconds between two redraws, at least."""
_BAR, _LEAST_BAR = 24, 6
_MOST_WORKS = 4
_STYLES = {"": "none", "1": "bold", "2": "dim", "31": "red", "32": "green", "33": "yellow", "36": "cyan"}


class Screen(Protocol):
    def show(self, board: Board, text: str) -> None: ...

    def close(self) -> None: ...


class Painter:
    """Draws a board as rows of text for a terminal, colours included."""

    def __init__(self, medium: Medium, outputs: Path) -> None:
        self._medium = medium
        self._counter = TestCounter(outputs)

    def paint(self, board: Board, width: int, now: float | None = None) -> tuple[str, ...]:
        if board.phase is None:
            return ()
        now = time.time() if now is None else now
        console = Console(
            file=io.StringIO(),
            force_terminal=True,
            color_system="standard" if self._medium.colour else None,
            width=max(width - 1, 8),
            highlight=False,
            legacy_windows=False,
        )
        with console.capture() as captured:
            for row in self._rows(board, console, now):
                console.print(row, no_wrap=True, overflow="ellipsis", crop=True)
        text = captured.get().rstrip("\n")
        return tuple((text.translate(ASCII) if self._medium.ascii else text).split("\n"))

    def _rows(self, board: Board, console: Console, now: float) -> Iterator[Text]:
        yield _draw_phases(board, console.width, now)
        for work in list(board.works.values())[:_MOST_WORKS]:
            yield _draw_work(work, now)
        if len(board.works) > _MOST_WORKS:
            yield Text(f"  and {len(board.works) - _MOST_WORKS} more", style="dim")
        for check in board.checks.values():
            yield self._draw_check(check, console, now)
        if spent := _draw_spending(board):
            yield spent
        if board.waiting:
            yield Text(f"! waits for you: {', '.join(map(make_visible, board.waiting))}", style="yellow")

    def _draw_check(self, check: RunningCheck, console: Console, now: float) -> Text:
        since = format_whole_seconds(max(0.0, now - check.since))
        name, command = (f"  {check.name} ", "bold"), (make_visible(check.command), "dim")
        if check.slow:
            slow_since = format_whole_seconds(max(0.0, now - check.slow_since))
            command = (f"{slow_since} in {make_visible(check.slow)}", "yellow")
        done = self._counter.count(check)
        if not check.expected:
            return Text.assemble(name, f" {done:,} done " if done else "", f" {since}  ", command)
        told = f" {done:,}/{check.expected:,}  {since}  "
        bar = ProgressBar(
            total=max(check.expected, done),
            completed=done,
            width=min(_BAR, console.width - len(name[0]) - len(told)),
            style="dim",
            complete_style="cyan",
            finished_style="green",
        )
        return Text.assemble(name, _draw_bar(bar, console), told, command)


def _draw_bar(bar: ProgressBar, console: Console) -> Text:
    """Return a bar of its full width, where there is room for one; without colours the rest is dotted."""
    if bar.width is None or bar.width < _LEAST_BAR:
        return Text()
    drawn = Text.assemble(*((one.text.rstrip(), one.style or "") for one in console.render(bar)))
    return drawn.append("·" * (bar.width - drawn.cell_len), "dim")


def _draw_phases(board: Board, width: int, now: float) -> Text:
    assert board.phase is not None
    since = format_whole_seconds(max(0.0, now - board.since))
    again = f" (iteration {board.iteration})" if board.iteration > 1 else ""
    steps = [phase for phase in Phase if phase in board.gates and phase is not Phase.COMPLETE]
    row = Text()
    for phase in steps:
        gate = board.gates[phase]
        is_now = gate is GateStatus.IN_PROGRESS
        mark, style = GATE_MARKS[gate]
        row.append(f"{mark} ", _STYLES[style.value])
        row.append(f"{phase}{again if is_now else ''}", "bold" if is_now else "dim")
        row.append(f" {since}" if is_now else "", "dim")
        row.append("  ")
    row.rstrip()
    if len(steps) > 1 and row.cell_len <= width:
        return row
    place = ""
    if len(steps) > 1 and board.phase in steps:
        place = f"  {steps.index(board.phase) + 1} of {len(steps)}"
    return Text.assemble(("▸ ", "cyan"), (f"{board.phase}{again}", "bold"), (f" {since}{place}", "dim"))


def _draw_work(work: Work, now: float) -> Text:
    row = Text.assemble(("  ▸ ", "cyan"), make_visible(work.role), (f"  {make_visible(work.model)}", "dim"))
    if not work.calls:
        return row
    newest = work.calls[-1]
    row.append(f"  {make_visible(newest.words)}")
    more = f"  and {format_count(len(work.calls) - 1, 'call')} more" if len(work.calls) > 1 else ""
    row.append(f"  {format_whole_seconds(max(0.0, now - newest.since))}{more}", "dim")
    return row


def _draw_spending(board: Board) -> Text | None:
    usage, most = board.usage, board.budget
    if usage is None or not usage.tokens:
        return None
    limit = f" of {most.tokens:,}" if most.tokens is not None else ""
    told = f"  {usage.tokens:,}{limit} tokens"
    if usage.cost_usd is not None:
        limit = f" of {format_money(most.cost)}" if most.cost is not None else ""
        told += f"  {format_money(usage.cost_usd)}{limit}"
    is_near = most.cost is not None and (usage.cost_usd or 0) > 0.8 * most.cost
    return Text(told, style="yellow" if is_near else "dim")


class Region:
    """Rows at the bottom of a terminal, redrawn by their own thread below the printed lines."""

    def __init__(self, stream: TextIO, painter: Painter) -> None:
        self._stream = stream
        self._painter = painter
        self._lock = threading.Lock()
        self._board = Board()
        self._drawn: tuple[str, ...] = ()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="agentflow-region", daemon=True)
        self._thread.start()

    def show(self, board: Board, text: str) -> None:
        with self._lock:
            self._board = board
            kept = self._drawn if board.phase else ()  # a question may follow at once
            if (text or kept != self._drawn) and not self._closed.is_set():
                self._put(text, kept)

    def close(self) -> None:
        self._closed.set()
        self._thread.join()
        with self._lock:
            self._put("", ())

    def _run(self) -> None:
        while not self._closed.wait(TICK):
            with self._lock:
                wanted = self._painter.paint(self._board, find_width(self._stream) or 80)
                if wanted != self._drawn:
                    self._put("", wanted)

    def _put(self, above: str, rows: tuple[str, ...]) -> None:
        """Write lines and the region over the region of before, without a moment at which it is gone."""
        if not (above or rows or self._drawn):
            return
        written = self._go_up() + "".join(f"\x1b[K{line}\n" for line in above.splitlines())
        written += "\n".join(f"\x1b[K{row}" for row in rows) + ("\x1b[K" if not rows else "") + "\x1b[J"
        self._drawn = rows
        if not send(written, self._stream):
            self._closed.set()

    def _go_up(self) -> str:
        """Return the sequence that moves to the first row; a narrowed terminal has broken long rows."""
        if not self._drawn:
            return ""
        width = find_width(self._stream) or 80
        rows = sum(max(1, -(-count_cells(strip_colours(row)) // width)) for row in self._drawn)
        return f"\r\x1b[{rows - 1}A" if rows > 1 else "\r"
