import fcntl
import io
import os
import pty
import re
import struct
import termios
import time
from collections.abc import Callable, Iterator
from typing import TextIO

import pytest

from agentflow.core.events import (
    Asked,
    CheckStarted,
    Event,
    EvidenceRecorded,
    PhaseEnded,
    PhaseStarted,
    RunEnded,
    RunStarted,
    Stamped,
    TaskEnded,
    ToolFinished,
    ToolStarted,
    Warned,
)
from agentflow.core.evidence import CheckName
from agentflow.core.messages import Usage
from agentflow.core.run import RunOutcome
from agentflow.core.task import GateStatus, Phase, Status
from agentflow.view.progress import Doing, Progress, Story, after, status_line
from agentflow.view.text import Medium, render

PLAIN = Medium(colour=False, ascii=False, live=False)
LIVE = Medium(colour=False, ascii=False, live=True)
ERASE = "\r\x1b[K"
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


def stamped(event: Event) -> Stamped:
    return Stamped(seq=1, at=AT, event=event)


def test_without_a_terminal_the_lines_of_the_log_are_written(
    story: Callable[[str], tuple[Stamped, ...]],
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
    with Progress(screen.stream, LIVE) as progress:
        for event in (PHASE, RUN, CHECK):
            progress(stamped(event))
        shown = screen.wait_for("verifier · python -m pytest -q")
        bottom = shown.rpartition("\n")[2].rpartition(ERASE)[2]
        assert re.fullmatch(r"▸ verification  \d+s  verifier · python -m pytest -q", bottom)
        progress(stamped(Warned(message="careful")))
        assert f"pytest -q{ERASE}  0:00.0  ! careful\n" in screen.wait_for("careful\n")
        screen.wait_for("careful\n▸ verification")
    assert screen.seen().endswith(ERASE)
    settled = screen.seen()
    time.sleep(0.3)
    assert screen.seen() == settled


def test_an_unchanged_line_is_not_drawn_again(screen: Screen) -> None:
    with Progress(screen.stream, LIVE) as progress:
        progress(stamped(PHASE))
        drawn = screen.wait_for("▸ verification  ").rpartition("▸")[2]
        time.sleep(0.4)
        assert screen.seen().count(drawn) == 1


def test_a_storm_of_events_is_drawn_ten_times_a_second_at_most(screen: Screen) -> None:
    with Progress(screen.stream, LIVE) as progress:
        progress(stamped(PHASE))
        begin = time.monotonic()
        number = drawn = 0
        while (number <= 100 or drawn < 5) and time.monotonic() - begin < 20:
            number += 1
            progress(stamped(ToolStarted(run=1, call_id=str(number), tool="Read", subject=f"{number}.py")))
            drawn = screen.seen().count("▸ verification  ")
        spent = time.monotonic() - begin
    assert number > 100
    assert 5 <= drawn <= 10 * spent + 2


def test_the_live_line_never_reaches_the_edge() -> None:
    screen = Screen(24)
    with Progress(screen.stream, LIVE) as progress:
        for event in (PHASE, RUN, ToolStarted(run=1, call_id="c", tool="Bash", subject="日本" * 50)):
            progress(stamped(event))
        shown = screen.wait_for("…")
    screen.close()
    assert all(len(row) <= 23 for row in re.split(r"\n|\r\x1b\[K", shown.rpartition("\n")[2]))


def test_closing_twice_or_without_an_event_is_quiet(screen: Screen) -> None:
    progress = Progress(screen.stream, LIVE)
    progress.close()
    progress.close()
    progress(stamped(Warned(message="late")))
    assert screen.seen() == ""


def test_a_reader_that_left_stops_nothing() -> None:
    read, wrote = os.pipe()
    os.close(read)
    for medium in (PLAIN, LIVE):
        with os.fdopen(os.dup(wrote), "w") as stream, Progress(stream, medium) as progress:
            for _ in range(3):
                progress(stamped(Warned(message="careful")))
    os.close(wrote)


def test_control_sequences_do_not_reach_the_live_line() -> None:
    hostile = ToolStarted(run=1, call_id="c", tool="Bash\x1b[2J", subject="\x1b]0;x\x07\u202e\n")
    doing = after(Doing(phase="review", role="\x1b[1m"), hostile, 0)
    assert status_line(doing, 1).text.isprintable()


DOING = Doing(phase="verification", role="verifier", what="x")


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (PHASE, Doing(phase="verification", since=5)),
        (RUN, DOING.replace(what="", since=5)),
        (Asked(run=1, turn=1), DOING.replace(what="thinking", since=5)),
        (ToolStarted(run=1, call_id="c", tool="Read", subject="a"), DOING.replace(what="Read a", since=5)),
        (CHECK, DOING.replace(what="python -m pytest -q", since=5)),
        (
            ToolFinished(run=1, call_id="c", tool="Read", is_error=False, summary="", seconds=0),
            DOING.replace(what="", since=5),
        ),
        (
            EvidenceRecorded(
                evidence="e", check=None, command="c", exit_code=0, tree=None, summary="", seconds=0
            ),
            DOING.replace(what="", since=5),
        ),
        (
            RunEnded(
                run=1,
                role="verifier",
                outcome=RunOutcome.ANSWERED,
                turns=1,
                tool_calls=0,
                usage=Usage(),
                seconds=0,
            ),
            Doing(phase="verification", since=5),
        ),
        (
            PhaseEnded(phase=Phase.REVIEW, iteration=1, status=GateStatus.PASSED, message="", seconds=0),
            Doing(),
        ),
        (TaskEnded(status=Status.FAILED, exit_code=1, reason=""), Doing()),
        (Warned(message="careful"), DOING),
    ],
)
def test_each_event_leads_to_what_is_going_on(event: Event, expected: Doing) -> None:
    assert after(DOING, event, 5) == expected


@pytest.mark.parametrize(("seconds", "said"), [(0.99, "0s"), (59.9, "59s"), (65, "1m05s"), (3725, "1h02m")])
def test_waiting_is_counted_in_whole_seconds(seconds: float, said: str) -> None:
    assert status_line(DOING, seconds).text == f"▸ verification  {said}  verifier · x"
