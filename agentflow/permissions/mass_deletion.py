"""Counts what a command that deletes names at the root of the repository: all of it, or most, asks a person.

Only the words of the command count. What a variable, a script or a program deletes is not seen here;
`undo` puts back what the task found.
"""

import os
import shlex
from fnmatch import fnmatchcase
from pathlib import Path

from agentflow.permissions.shell_parser import ShellScript
from agentflow.permissions.wrappers import LAUNCHERS, RUNS_OTHERS, name_program
from agentflow.sandbox.profile import is_protected

_DELETING = frozenset({"rm", "shred", "truncate", "unlink", "rimraf", "mv"})
_MODES = frozenset({"chmod", "chown", "chgrp"})
_FINDING = frozenset({"-delete", "-exec", "-execdir"})
_NARROWING = ("-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-empty", "-newer", "-mtime")
_SEVERAL = 3
"""One or two entries are meant by name, also in a small repository."""


def find_mass_deletion(script: ShellScript, root: Path) -> str | None:
    """Return the part of a command that is about the whole repository, or about most of it."""
    names = [entry.name for entry in root.iterdir()] if root.is_dir() else []
    entries = [name for name in names if not is_protected(name)]
    folder = root
    for simple in script.commands:
        try:
            words = shlex.split(simple.source)
        except ValueError:
            continue
        program = name_program(simple.words)
        if program == "cd" and len(simple.words) == 2:
            folder = folder / simple.words[1].text if simple.words[1].is_known else root
            continue
        runs_others = program in RUNS_OTHERS | LAUNCHERS
        wanted = _DELETING | _MODES | {"find", "git"}
        begins = (at for at, word in enumerate(words) if word.rpartition("/")[2] in wanted)
        at = next(begins, None)
        if at is None or not (runs_others or words[at].rpartition("/")[2] == program):
            continue
        if _covers(_list_targets(words[at:]), folder, root, entries):
            return simple.source
    return None


def _list_targets(words: list[str]) -> list[str]:
    """Return what a command deletes, moves away or changes the modes of, as it is written."""
    program, flags = words[0].rpartition("/")[2], [word for word in words[1:] if word[:1] == "-"]
    operands = [word for word in words[1:] if word[:1] != "-"]
    letters = "".join(flag[1:] for flag in flags if flag[:2] != "--")
    if program in _MODES:
        return operands[1:] if "R" in letters or "--recursive" in flags else []
    if program == "mv":
        return operands[:-1]
    if program == "git":
        is_clean = operands[:1] == ["clean"] and {"x", "X"} & set(letters) and "n" not in letters
        return (operands[1:] or ["."]) if is_clean else []
    if program == "find":
        given = zip(words, [*words[1:], ""], strict=True)
        is_narrow = any(word in _NARROWING and not _is_any(value) for word, value in given)
        is_narrow = is_narrow and not {"!", "-not"}.intersection(words)
        deletes = "-delete" in flags or (_FINDING.intersection(flags) and _DELETING.intersection(words))
        first = next((at for at, word in enumerate(words) if word[:1] == "-"), len(words))
        return (words[1:first] or ["."]) if deletes and not is_narrow else []
    return operands


def _covers(targets: list[str], folder: Path, root: Path, entries: list[str]) -> bool:
    """Return whether targets take in the root, any of its entries, or together most of them."""
    taken = set[str]()
    for target in targets:
        if "$" in target or "`" in target:
            continue
        parts, way = Path(os.path.realpath(folder / target)).parts, root.parts
        if not all(fnmatchcase(real, glob) for real, glob in zip(way, parts, strict=False)):
            continue
        left = parts[len(way) :]
        if all(_is_any(part) for part in left):
            return True
        if all(_is_any(part) for part in left[1:]):
            taken |= {name for name in entries if fnmatchcase(name, left[0])}
    return len(taken) >= _SEVERAL and 2 * len(taken) > len(entries)


def _is_any(part: str) -> bool:
    return not part.strip("*?.[]!")
