"""The command of a check as its parts, each in a folder: written as one line for a shell, and read back."""

import posixpath
import re
import shlex
from collections.abc import Callable, Iterable

from agentflow.core.record import Record
from agentflow.core.regex import regex

_IN_FOLDER = regex(r"cd (?P<folder>'[^'\n]+'|[\w./@%+=:,-]+) && (?P<command>[^;&|\n]+)")
_PART = regex(r"(?:\{ (?P<here>.*?); \}|\((?P<below>cd .*?)\)) \|\| r=1; ")
_SEVERAL = "r=0; "
_END = "exit $r"
_WORD = r"""(?:'[^']*'|"[^"]*"|\\.|[^\s'";&|(){}\\])+"""
_WORDS = regex(_WORD)
_RUN = regex(rf"{_WORD}(?:[ \t]+{_WORD})*")
_VARIABLE = regex(r"\w+=.*")
CommandWords = tuple[str, ...]
"""A run of one program as a shell is given it, each word with its quotes."""


class CommandPart(Record):
    """A part of a check's command, and the folder in which it starts."""

    command: str
    folder: str = ""
    """Relative to the root, with a slash at its end; empty for the root itself."""

    @property
    def text(self) -> str:
        return f"cd {shlex.quote(self.folder[:-1])} && {self.command}" if self.folder else self.command

    @property
    def words(self) -> CommandWords:
        """Its words, where it is but one run of a program; none where a shell has more to do."""
        return _split_words(self.command) if _RUN.fullmatch(self.command) else ()


def _split_words(run: str) -> CommandWords:
    return tuple(_WORDS.findall(run))


def edit_runs(command: str, edit: Callable[[CommandWords], CommandWords]) -> str:
    """Return a command with each run of a program in it edited, and all that joins them as it was."""

    def apply(found: re.Match[str]) -> str:
        words = _split_words(found[0])
        edited = edit(words)
        return found[0] if edited == words else " ".join(edited)

    return _RUN.sub(apply, command)


def count_variables(words: CommandWords) -> int:
    return next((at for at, word in enumerate(words) if not _VARIABLE.fullmatch(word)), len(words))


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


def find_part(parts: Iterable[CommandPart], path: str) -> CommandPart | None:
    """Return the part that a file belongs to: the first of those in the innermost folder around it."""
    around = (part for part in parts if path.startswith(part.folder))
    return max(around, key=lambda part: len(part.folder), default=None)


def list_part_folders(command: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.folder for part in split_command(command) if part.folder))


def list_moves(before: str, now: str) -> tuple[tuple[str, str], ...]:
    """Return each folder that a command no longer starts a part in, with each in which it newly does."""
    old, new = list_part_folders(before), list_part_folders(now)
    return tuple((gone, here) for gone in old if gone not in new for here in new if here not in old)


def _read_part(text: str) -> CommandPart:
    found = _IN_FOLDER.fullmatch(text)
    folder = posixpath.normpath(found["folder"].strip("'")) if found else "."
    is_below = not folder.startswith(("/", ".."))
    if found is None or folder == "." or not is_below:
        return CommandPart(command=text)
    return CommandPart(command=found["command"], folder=f"{folder}/")
