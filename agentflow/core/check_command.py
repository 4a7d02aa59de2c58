"""The command of a check as its parts, each in a folder: written as one line for a shell, and read back."""

import posixpath
import shlex
from collections.abc import Iterable

from agentflow.core.record import Record
from agentflow.core.regex import regex

_IN_FOLDER = regex(r"cd (?P<folder>'[^'\n]+'|[\w./@%+=:,-]+) && (?P<command>[^;&|\n]+)")
_PART = regex(r"(?:\{ (?P<here>.*?); \}|\((?P<below>cd .*?)\)) \|\| r=1; ")
_SEVERAL = "r=0; "
_END = "exit $r"


class CommandPart(Record):
    """A part of a check's command, and the folder in which it starts."""

    command: str
    folder: str = ""
    """Relative to the root, with a slash at its end; empty for the root itself."""

    @property
    def text(self) -> str:
        """The part as a person in the root would type it."""
        return f"cd {shlex.quote(self.folder[:-1])} && {self.command}" if self.folder else self.command


def join_parts(parts: Iterable[CommandPart]) -> str:
    """Return one command that runs all parts and fails if any fails."""
    each = tuple(parts)
    if len(each) == 1:
        return each[0].text
    runs = "".join(
        f"({part.text}) || r=1; " if part.folder else f"{{ {part.text}; }} || r=1; " for part in each
    )
    return f"{_SEVERAL}{runs}{_END}"


def join_commands(commands: Iterable[str]) -> str:
    """Return one command that runs all of some and fails if any fails."""
    return join_parts(part for command in commands for part in split_command(command))


def split_command(command: str) -> tuple[CommandPart, ...]:
    """Return the parts of a command; a command of another form is one part in the root."""
    if command.startswith(_SEVERAL):
        texts = (found["here"] or found["below"] for found in _PART.finditer(command))
        parts = tuple(map(_read_part, texts))
        if parts and join_parts(parts) == command:
            return parts
    return (_read_part(command),)


def format_command(command: str) -> str:
    """Return a command as people are shown it: its parts, without what joins their exit codes."""
    return "; ".join(part.text for part in split_command(command))


def _read_part(text: str) -> CommandPart:
    found = _IN_FOLDER.fullmatch(text)
    folder = posixpath.normpath(found["folder"].strip("'")) if found else "."
    is_below = not folder.startswith(("/", ".."))
    if found is None or folder == "." or not is_below:
        return CommandPart(command=text)
    return CommandPart(command=found["command"], folder=f"{folder}/")
