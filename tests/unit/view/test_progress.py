import fcntl
import io
import os
import pty
import re
import struct
import termios
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

import pytest

from agentflow.core.events import (
    CheckStarted,
    Event,
    PhaseStarted,
    RunStarted,
    StoredEvent,
    TaskEnded,
    ToolStarted,
    Warned,
)
from agentflow.core.evidence import CheckName
from agentflow.core.task import Phase, Status
from agentflow.view.progress import Progress, Story
from agentflow.view.region import Painter, Region
from agentflow.view.text import Medium, count_cells, render

PLAIN = Medium(colour=False, ascii=False, live=False)
LIVE = Medium(colour=False, ascii=False, live=True)
AT = "2026-01-02T03:04:05.120Z"
PHASE = PhaseStarted(phase=Phase.VERIFICATION, iteration=1)
CHECK = CheckStarted(check=CheckName.TESTS, command="python -m pytest -q")
RUN = RunStarted(run=1, role="verifier", agent="verifier", model="repair", iteration=1)


class Screen:
    """A pseudo-terminal and what was written to it."""

    def __init__(self, columns: int) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.set_blocking(self._master, False)
        self.stream: TextIO = os.fdopen(slave, "w", encoding="utf-8")
        self.text = ""

    def seen(self) -> str:
        try:
            while chunk := os.read(self._master, 65536):
                self.text += chunk.decode().replace("\r\n", "\n")
        except BlockingIOError:
            pass  # all of it was read
        return self.text

    def wait_for(self, text: str) -> str:
        for _ in range(400):
            if text in self.seen():
                return self.text
            time.sleep(0.05)
        pytest.fail(f"{text!r} never came: {self.text!r}")

    def close(self) -> None:
        self.stream.close()
        os.close(self._master)


@pytest.fixture
def screen() -> Iterator[Screen]:
    made = Screen(60)
    yield made
    made.close()


def stamped(event: Event) -> StoredEvent:
    return StoredEvent(seq=1, at=datetime.now(UTC).isoformat(), event=event)


def live(screen: Screen, medium: Medium = LIVE) -> Progress:
    """A task shown at a terminal, with a live region."""
    return Progress(screen.stream, medium, Region(screen.stream, Painter(medium, Path("outputs"))))


def test_without_a_terminal_the_lines_of_the_log_are_written(
    story: Callable[[str], tuple[StoredEvent, ...]],
) -> None:
    stream, tell = io.StringIO(), Story()
    with Progress(stream, PLAIN) as progress:
        for one in story("complete"):
            progress(one)
    expected = render([row for one in story("complete") for row in tell(one)], PLAIN, None)
    assert stream.getvalue() == expected
    assert "\r" not in expected


def test_a_line_is_written_at_once() -> None:
    stream = io.StringIO()
    Progress(stream, PLAIN)(stamped(Warned(message="careful")))
    assert stream.getvalue().endswith("! careful\n")


def test_what_is_going_on_stands_at_the_bottom_and_goes_away(screen: Screen) -> None:
    with live(screen) as progress:
        for event in (PHASE, RUN, CHECK):
            progress(stamped(event))
        screen.wait_for("python -m pytest -q")
        rows = (r"▸ verification \d+s", "  ▸ verifier  repair", r"  tests  \d+s  python -m pytest -q")
        assert re.search(r"\n\x1b\[K".join(rows) + r"\x1b\[J$", screen.seen())
        progress(stamped(Warned(message="careful")))
        assert re.search(r"\r\x1b\[2A\x1b\[K  0:00\.\d  ! careful\n", screen.wait_for("careful\n"))
        screen.wait_for("careful\n\x1b[K▸ verification")
    assert screen.seen().endswith("\r\x1b[2A\x1b[K\x1b[J")
    settled = screen.seen()
    time.sleep(0.3)
    assert screen.seen() == settled


def test_a_task_that_stopped_leaves_no_row_before_the_question_that_follows(screen: Screen) -> None:
    with live(screen) as progress:
        progress(stamped(PHASE))
        screen.wait_for("▸ verification ")
        progress(stamped(TaskEnded(status=Status.SUSPENDED, exit_code=75, reason="waits")))
        screen.stream.write("approve? ")
        screen.stream.flush()
        time.sleep(0.3)
        assert screen.wait_for("approve? ").endswith("\x1b[K\x1b[Japprove? ")


def test_an_unchanged_region_is_not_drawn_again(screen: Screen) -> None:
    with live(screen) as progress:
        progress(stamped(PHASE))
        drawn = screen.wait_for("▸ verification ").rpartition("▸")[2]
        time.sleep(0.4)
        assert screen.seen().count(drawn) == 1


def test_a_storm_of_events_is_drawn_ten_times_a_second_at_most(screen: Screen) -> None:
    with live(screen) as progress:
        progress(stamped(PHASE))
        begin = time.monotonic()
        number = drawn = 0
        while (number <= 100 or drawn < 5) and time.monotonic() - begin < 20:
            number += 1
            progress(stamped(ToolStarted(run=1, call_id=str(number), tool="Read", subject=f"{number}.py")))
            drawn = screen.seen().count("▸ verification ")
        spent = time.monotonic() - begin
    assert number > 100
    assert 5 <= drawn <= 10 * spent + 2


@pytest.mark.parametrize("columns", [10, 20, 80])
def test_no_row_of_the_region_reaches_the_edge(columns: int) -> None:
    screen = Screen(columns)
    region = Region(screen.stream, Painter(LIVE, Path("outputs")))
    with Progress(screen.stream, LIVE, region, is_brief=True) as progress:
        for event in (PHASE, RUN, ToolStarted(run=1, call_id="c", tool="Bash", subject="日本" * 50), CHECK):
            progress(stamped(event))
        shown = screen.wait_for("\x1b[J")
    screen.close()
    rows = re.split(r"\n|\r|\x1b\[\d*[AKJ]", shown)
    assert all(count_cells(row) < columns for row in rows)


def test_a_terminal_that_became_narrow_is_cleared_of_broken_rows(screen: Screen) -> None:
    with live(screen) as progress:
        for event in (PHASE, RUN, CHECK):
            progress(stamped(event))
        screen.wait_for("pytest -q")
        fcntl.ioctl(screen.stream, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 20, 0, 0))
        # 18, 19 and 33 columns wide, so the terminal has broken the last row in two
        assert screen.wait_for("\x1b[3A").count("\x1b[3A") == 1


def test_closing_twice_or_without_an_event_is_quiet(screen: Screen) -> None:
    progress = live(screen)
    progress.close()
    progress.close()
    progress(stamped(Warned(message="late")))
    assert screen.seen() == ""


def test_a_reader_that_left_stops_nothing() -> None:
    read, wrote = os.pipe()
    os.close(read)
    for is_live in (False, True):
        with os.fdopen(os.dup(wrote), "w") as stream:
            region = Region(stream, Painter(LIVE, Path("outputs"))) if is_live else None
            with Progress(stream, LIVE, region) as progress:
                for _ in range(3):
                    progress(stamped(Warned(message="careful")))
    os.close(wrote)
