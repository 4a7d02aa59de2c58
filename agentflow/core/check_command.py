"""The command of a check as its parts, each in a folder: written as one line for a shell, and read back."""

import posixpath
import shlex
from collections.abc import Collection, Iterable

from agentflow.core.record import Record
from agentflow.core.regex import regex

_IN_FOLDER = regex(r"cd (?P<folder>'[^'\n]+'|[\w./@%+=:,-]+) && (?P<command>[^;&|\n]+)")
_PART = regex(r"(?:\{ (?P<here>.*?); \}|\((?P<below>cd .*?)\)) \|\| r=1; ")
_SEVERAL = "r=0; "
_END = "exit $r"
PYTEST = regex(
    r"(?P<start>[^{};|&]*\bpytest -q(?: --doctest-modules| --doctest-glob=[^\s;|&]+"
    r"| --import-mode=\w+| -m (?:'[^'\n]*'|\w+))*)(?: --ignore=[^\s;|&]+| [\w./][\w./@%+:,-]*)*"
)
"""A run of pytest with what decides how tests are found; the places where it looks can be replaced."""
_WORD = regex(r"(?<![^\s(;&|])(?:'([\w./][^'\n]*)'|([\w./][\w./@%+:,-]*))(?![^\s);&|])")
"""A word of a command that may be a path; an option is none."""
_ABOVE = regex(r"(?:\.\./)+")
"""The way back from the folder of the part before."""
_OWN_PROGRAM = regex(r"(?:\w+=\S* )*(?!'?\.\./)(?:'[^/']+|[\w.][^/\s]*)/.*")
"""A command that starts a program of the folder that it runs in."""


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


def find_part(parts: Iterable[CommandPart], path: str) -> CommandPart | None:
    """Return the part that a file belongs to: the first of those in the innermost folder around it."""
    around = (part for part in parts if path.startswith(part.folder))
    return max(around, key=lambda part: len(part.folder), default=None)


def list_part_folders(command: str) -> tuple[str, ...]:
    """Return the folders in which the parts of a command start, each with a slash at its end."""
    return tuple(dict.fromkeys(part.folder for part in split_command(command) if part.folder))


def list_moves(before: str, now: str) -> tuple[tuple[str, str], ...]:
    """Return each folder that a command no longer starts a part in, with each in which it newly does."""
    old, new = list_part_folders(before), list_part_folders(now)
    return tuple((gone, here) for gone in old if gone not in new for here in new if here not in old)


def fit_command(command: str, files: Iterable[str], found: str = "", tests: Collection[str] = ()) -> str:
    """Return a command without the parts whose folder is gone, with those of another that are new projects.

    A folder where one of the tests of before still is can be none, and what a new one brings to run its tests
    runs none. It is empty if nothing is left.
    """
    names, parts = frozenset(files), split_command(command)
    gone = list_gone_folders(command, names, tests)
    kept = [part for part in parts if gone.isdisjoint(_list_folders(part))]
    folders, held = {part.folder for part in parts}, [test for test in tests if test in names]
    others = [part for part in split_command(found) if found and part.folder not in folders]
    new = [part for part in others if not _has_tests(part.folder, held, folders)]
    if not new and len(kept) == len(parts):
        return command
    apart = "".join(
        f" --ignore={shlex.quote(part.folder[:-1])}" for part in new if PYTEST.fullmatch(part.command)
    )
    wide = [part for part in kept if not part.folder and PYTEST.fullmatch(part.command)]
    kept = [part.replace(command=part.command + apart) if part in wide else part for part in kept]
    kept += [part for part in new if not _OWN_PROGRAM.fullmatch(part.command)]
    return join_parts(kept) if kept else ""


def list_gone_folders(command: str, files: Collection[str], tests: Collection[str] = ()) -> frozenset[str]:
    """Return the folders without files in which a command starts a part, or which it names and tests were in.

    Each ends with a slash.
    """
    parts = split_command(command)
    named = {folder for part in parts for folder in _list_folders(part)}
    needed = {folder for folder in named if any(test.startswith(folder) for test in tests)}
    needed |= {part.folder for part in parts if part.folder}
    return frozenset(folder for folder in needed if not any(name.startswith(folder) for name in files))


def _list_folders(part: CommandPart) -> frozenset[str]:
    """Return the folder of a part, and what else it names that may be one, each with a slash at its end."""
    words = (found[1] or found[2] for found in _WORD.finditer(part.command))
    paths = (posixpath.normpath(part.folder + word) for word in words)
    return frozenset({part.folder, *(f"{_ABOVE.sub('', path)}/" for path in paths)} - {""})


def _has_tests(folder: str, tests: Iterable[str], others: Iterable[str]) -> bool:
    """Return whether tests lie in a folder, and in none of the others inside it."""
    inside = tuple(other for other in others if other != folder and other.startswith(folder))
    return any(test.startswith(folder) and not test.startswith(inside) for test in tests)


def _read_part(text: str) -> CommandPart:
    found = _IN_FOLDER.fullmatch(text)
    folder = posixpath.normpath(found["folder"].strip("'")) if found else "."
    is_below = not folder.startswith(("/", ".."))
    if found is None or folder == "." or not is_below:
        return CommandPart(command=text)
    return CommandPart(command=found["command"], folder=f"{folder}/")
