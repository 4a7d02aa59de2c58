"""The installed command at a pseudo-terminal, driven by what is typed and read there."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.support.repo import COMMAND, Repo

_CONTROL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07|[()][A-Z0-9]|[=>78])|[\x00-\x08\x0b-\x1f]")


class Terminal:
    """A process whose standard streams are a terminal."""

    def __init__(self, process: "subprocess.Popen[bytes]", master: int, slave: int) -> None:
        self.process = process
        self.slave = slave
        self.shown = ""
        self.raw = ""
        """All that was written, control sequences included."""
        self._master = master
        self._seen = 0

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def enter(self, text: str) -> None:
        """Type a line once the prompt waits for it."""
        self.type(f"{text}\r")

    def resize(self, columns: int) -> None:
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.process.send_signal(signal.SIGWINCH)

    def wait_for(self, text: str, seconds: float = 60) -> str:
        """Read until a text is shown after what was waited for last; return what is shown up to it."""
        end = time.monotonic() + seconds
        while (place := self.shown.find(text, self._seen)) < 0:
            new = self.shown[self._seen :]
            assert time.monotonic() < end, f"{text!r} was not shown:\n{new}"
            assert self._read(), f"it ended before {text!r}:\n{new}"
        begin, self._seen = self._seen, place + len(text)
        return self.shown[begin : self._seen]

    def wait_end(self, seconds: float = 30) -> int:
        """Read to the end and return the exit code."""
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            self._read()
        return self.process.wait(1)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], 0.2)
        if not ready:
            return True
        try:
            said = os.read(self._master, 65536)
        except OSError:
            return False
        self.raw += said.decode("utf-8", "replace")
        self.shown += _CONTROL.sub("", said.decode("utf-8", "replace"))
        return bool(said)


@contextmanager
def open_terminal(
    repo: Repo, *words: str, env: Mapping[str, str] | None = None, columns: int = 100
) -> Iterator[Terminal]:
    """Start the command at a new terminal; it is killed at the end if it still runs."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(
        [str(COMMAND), *words],
        cwd=repo.root,
        env={**repo.environment, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", **(env or {})},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509  # the child of one thread
    )
    try:
        yield Terminal(process, master, slave)
    finally:
        process.kill()
        process.wait()
        os.close(master)
        os.close(slave)
