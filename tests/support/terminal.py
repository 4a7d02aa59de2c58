"""A person at a terminal: answers each prompt of the command with the next of their lines."""

import os
import pty
import select
import subprocess
import termios
import time
from collections.abc import Callable
from typing import NamedTuple

from tests.support import play
from tests.support.repo import COMMAND, Repo

CTRL_C = "\x03"
CTRL_D = "\x04"
SILENCE = "\x00"
"""In place of a line: the person does not answer that prompt."""
_PROMPTS = (b"]: ", b"this: ", b"name: ")
SECONDS = 30.0


class Seen(NamedTuple):
    """What the terminal showed, and the exit code."""

    text: str
    code: int
    unused: list[str]


def at_terminal(
    repo: Repo,
    *words: str,
    says: tuple[str, ...] = (),
    stdout: int | None = None,
    columns: int = 0,
    term: str = "dumb",
    editor: str = "",
) -> Seen:
    """Run the command at a terminal of its own; somebody who says no more presses Ctrl-C."""
    person, terminal = pty.openpty()
    if columns:
        termios.tcsetwinsize(terminal, (24, columns))
    process = subprocess.Popen(
        [str(COMMAND), *play.ask_for_crew(words)],
        cwd=repo.root,
        env={**repo.environment, "NO_COLOR": "1", "TERM": term, "EDITOR": editor},
        stdin=terminal,
        stdout=terminal if stdout is None else stdout,
        stderr=terminal,
        start_new_session=True,
        preexec_fn=_take(terminal),  # noqa: PLW1509  # the test has no other thread
    )
    os.close(terminal)
    left, shown = list(says), b""
    end = time.monotonic() + SECONDS
    try:
        while (more := _read(person, end)) is not None:
            shown += more
            if shown.endswith(_PROMPTS):
                said = left.pop(0) if left else CTRL_C
                if said != SILENCE:
                    os.write(person, said.encode() + (b"" if said in {CTRL_C, CTRL_D} else b"\n"))
                shown += b"\n"
        return Seen(shown.decode(errors="replace").replace("\r\n", "\n"), process.wait(SECONDS), left)
    finally:
        process.kill()
        process.wait()
        os.close(person)


def _take(terminal: int) -> Callable[[], None]:
    """Return what makes a terminal the controlling one of a new session."""

    def take() -> None:
        os.close(os.open(os.ttyname(terminal), os.O_RDWR))

    return take


def _read(person: int, end: float) -> bytes | None:
    """Return what the terminal shows next, or None once nobody writes to it any more."""
    ready, _, _ = select.select([person], [], [], max(0.0, end - time.monotonic()))
    assert ready, "the command waits for something nobody was asked"
    try:
        return os.read(person, 65536) or None
    except OSError:
        return None
