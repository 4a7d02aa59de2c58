"""What came of a command."""

from agentflow.core.record import Record


class Execution(Record):
    """A command that came to an end, whoever ran it."""

    command: str
    cwd: str
    exit_code: int | None
    """None when a signal ended it."""
    timed_out: bool
    started_at: str
    seconds: float
    stdout_sha256: str
    """Of everything it printed, stdout and stderr as they came."""
    bytes: int
    output: str
    """Path of the file that holds what it printed."""
    tail: str = ""
    """The last part of the output, decoded."""
    changed: tuple[str, ...] = ()
    """What it changed in a throw-away view of the repository: A, M or D, and the path."""
    notes: tuple[str, ...] = ()
    """What is to be said of it beside its output."""
    sandbox: str = "none"
    """How well it was kept in."""


class Exchanged(Record):
    """What a program answered."""

    exit_code: int | None
    """None when a signal ended it."""
    timed_out: bool
    stdout: bytes
    """The first 64 KiB, as of stderr."""
    stderr: bytes
    flooded: bool
    """There was more on stdout, or so much that it was ended."""
