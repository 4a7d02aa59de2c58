"""A check's command fitted to the files that are there: projects that are gone, and new ones."""

import posixpath
import shlex
from collections.abc import Collection, Iterable

from agentflow.core.check_command import CommandPart, join_parts, split_command
from agentflow.core.regex import regex
from agentflow.runners.python import read_python_run

_WORD = regex(r"(?<![^\s(;&|])(?:'([\w./][^'\n]*)'|([\w./][\w./@%+:,-]*))(?![^\s);&|])")
"""A word of a command that may be a path; an option is none."""
_ABOVE = regex(r"(?:\.\./)+")
"""The way back from the folder of the part before."""
_OWN_PROGRAM = regex(r"(?:\w+=\S* )*(?!'?\.\./)(?:'[^/']+|[\w.][^/\s]*)/.*")
"""A command that starts a program of the folder that it runs in."""


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
    apart = "".join(f" --ignore={shlex.quote(part.folder[:-1])}" for part in new if _is_pytest(part))
    wide = [part for part in kept if not part.folder and _is_pytest(part)]
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


def _is_pytest(part: CommandPart) -> bool:
    run = read_python_run(part)
    return run is not None and run.is_pytest
