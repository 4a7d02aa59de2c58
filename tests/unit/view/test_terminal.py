import io
import os
import pty
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

import pytest

from agentflow.view.text import (
    Medium,
    Style,
    choose_medium,
    find_width,
    line,
    paint,
    render,
    send,
    span,
    write_lines,
)

PLAIN = Medium(colour=False, ascii=False, live=False)
COLOURED = Medium(colour=True, ascii=False, live=False)
ROW = line(span("✓ ", Style.GOOD), "tests → ", span("ev-0001  ", Style.DIM))


@pytest.fixture
def terminal() -> Iterator[TextIO]:
    master, slave = pty.openpty()
    with os.fdopen(slave, "w", encoding="utf-8") as stream:
        yield stream
    os.close(master)


@pytest.mark.parametrize(
    ("environ", "on_terminal", "elsewhere"),
    [
        ({}, True, False),
        ({"NO_COLOR": ""}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": "0"}, False, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False),
        ({"TERM": "dumb"}, False, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, True),
        ({"TERM": "xterm-256color"}, True, False),
    ],
)
def test_colour_follows_the_conventions(
    environ: Mapping[str, str], on_terminal: bool, elsewhere: bool, terminal: TextIO
) -> None:
    assert choose_medium(terminal, environ).colour is on_terminal
    assert choose_medium(io.StringIO(), environ).colour is elsewhere


@pytest.mark.parametrize(
    ("encoding", "is_ascii"),
    [("utf-8", False), ("UTF-8", False), ("utf8", False), ("ascii", True), ("latin-1", True)],
)
def test_marks_follow_the_encoding_of_the_stream(encoding: str, is_ascii: bool) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    assert choose_medium(stream, {}).ascii is is_ascii


def test_only_a_terminal_that_can_redraw_is_live(terminal: TextIO) -> None:
    assert choose_medium(terminal, {}).live
    assert choose_medium(terminal, {"NO_COLOR": "1"}).live
    assert not choose_medium(terminal, {"TERM": "dumb"}).live
    assert not choose_medium(io.StringIO(), {"FORCE_COLOR": "1"}).live


def test_a_coloured_line_switches_each_colour_off_again() -> None:
    assert paint(ROW, COLOURED) == "\x1b[32m✓ \x1b[0mtests → \x1b[2mev-0001  \x1b[0m"


def test_a_plain_line_has_neither_colour_nor_trailing_blanks() -> None:
    assert render([ROW], PLAIN, None) == "✓ tests → ev-0001\n"


def test_ascii_marks_stand_in_for_the_others() -> None:
    medium = Medium(colour=False, ascii=True, live=False)
    row = line("✓ a ✗ b → c · d … ▸ ○ ─")
    assert render([row], medium, None) == "ok a x  b -> c . d ... >  -  -\n"


def test_lines_are_fitted_to_a_width() -> None:
    assert render([line("one two three", hang=2)], PLAIN, 10) == "one two\n  three\n"


def test_a_terminal_has_a_width_and_a_file_has_none(terminal: TextIO, tmp_path: Path) -> None:
    assert find_width(terminal) in {None, os.get_terminal_size(terminal.fileno()).columns}
    assert find_width(io.StringIO()) is None
    with (tmp_path / "file").open("w") as file:
        assert find_width(file) is None


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_what_an_encoding_lacks_is_written_as_an_escape(encoding: str) -> None:
    kept = io.BytesIO()
    stream = io.TextIOWrapper(kept, encoding=encoding)
    assert write_lines([line("日 and a lone \udc80")], stream, PLAIN)
    shown = kept.getvalue().decode(encoding)
    assert shown.endswith(" and a lone \\udc80\n")
    assert shown.startswith("日" if encoding == "utf-8" else "\\u65e5")


def test_writing_says_whether_anybody_reads() -> None:
    read, wrote = os.pipe()
    with os.fdopen(wrote, "w", encoding="utf-8") as stream:
        assert send("first\n", stream)
        os.close(read)
        assert not send("second\n", stream)
        assert send("third\n", stream)


PROGRAM = """
import sys
from agentflow.view.text import choose_medium, write_lines
from agentflow.view.text import line
row = line("x" * 1000)
for _ in range(10_000):
    if not write_lines([row], sys.stdout, choose_medium(sys.stdout, {})):
        sys.exit(3)
"""


def test_a_closed_pipe_ends_quietly() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=with_path()
    )
    assert child.stdout
    assert child.stderr
    assert child.stdout.readline() == b"x" * 1000 + b"\n"
    child.stdout.close()
    errors = child.stderr.read()
    child.stderr.close()
    assert (child.wait(20), errors) == (3, b"")


def test_drawing_loads_nothing_heavy() -> None:
    program = (
        "import sys, agentflow.view.progress, agentflow.view.verdict;"
        "print({name.partition('.')[0] for name in sys.modules} & {'rich', 'anthropic', 'yaml', 'git'})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=with_path()
    )
    assert done.stdout == "set()\n"


def with_path() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "PYTHONDONTWRITEBYTECODE": "1"}


def test_a_full_disk_is_a_reader_who_has_gone() -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as stream:
        assert not send("first\n", stream)
        assert send("second\n", stream)


def test_a_stream_that_is_not_there_is_a_reader_who_has_gone() -> None:
    assert not send("first\n", None)


def test_a_stream_without_a_descriptor_that_fails_breaks_nothing() -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, text)

    assert not send("first\n", Full())
