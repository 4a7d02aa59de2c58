"""What briefs quote of the repository."""

from agentflow.core.record import Record


class Instruction(Record):
    """A file in which the repository says how to work on it."""

    path: str
    text: str
    """Without comments; cut where it is very long."""
    size: int
    """Characters before it was cut."""
    folder: str = ""
    """It counts for files below; empty for all."""
    globs: tuple[str, ...] = ()
    """If any, it counts only for files that one of them names."""


class Excerpt(Record):
    """Lines of a file as a role saw them."""

    path: str
    first: int
    """The number of the first line, from 1."""
    lines: tuple[str, ...]
    is_whole: bool = False
    """These are all lines of the file."""
