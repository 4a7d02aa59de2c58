"""Commands that delete, move away or change the modes of the whole repository, or of most of it.

A command is read with what lies at the root: a target that leads there, that holds it, or that takes in
most of its entries. What a program does by itself is not seen here.
"""

import os
import re
from fnmatch import fnmatchcase
from itertools import groupby
from pathlib import Path

from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.permissions.shell_command import (
    UNKNOWN_TEXT,
    ShellScript,
    ShellWord,
    SimpleCommand,
    TooComplex,
)
from agentflow.permissions.shell_parser import parse_command
from agentflow.permissions.wrappers import INTERPRETERS, list_possible_commands, name_program
from agentflow.sandbox.profile import is_protected

_DELETING = frozenset({"rm", "shred", "srm", "truncate", "unlink", "rimraf", "mv"})
_MODES = frozenset({"chmod", "chown", "chgrp", "setfacl"})
_COPYING = frozenset({"rsync", "tar"})
"""What deletes by an option: what is not in the source as well, or the source."""
_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_NAMED = {"-name": "", "-iname": "", "-path": "./", "-ipath": "./", "-wholename": "./"}
_SELECTING = frozenset({"find", "grep", "rg", "fd", "git"})
_BRACKET = regex(rf"{UNKNOWN_TEXT}[^{UNKNOWN_TEXT}/]*\]")
_CALLED = regex(r"rmtree|\brm_rf\b|\brmSync\b|\brmdirSync\b|unlink|\bos\.remove|\bchmod|delete_tree")
_QUOTED = regex(r"'([^'\n]*)'|\"([^\"\n]*)\"")
_LOOP = regex(r"\bfor\s+(\w+)\s+in\s+([^;\n$`]*?)\s*[;\n]\s*do\b")
_TEMPORARY = regex(r"\w+=\"?\$\(mktemp\b[^)]*\)\"?")
_SEVERAL = 3
_UNCERTAIN = regex(r"[;(|\n]|(?<!&)&(?!&)")
"""What may run a later command in another folder than the one that `cd` names before it."""


class CommandPlace(Record):
    """The place of a command: the repository, and the folders it may be in."""

    root: Path
    folders: tuple[Path, ...]
    entries: tuple[str, ...]
    """Names at the root, protected ones left out."""

    def is_most(self, names: set[str]) -> bool:
        """Return whether existing names make up most of the repository; one or two are meant by name."""
        there = names.intersection(self.entries)
        return len(there) >= _SEVERAL and 2 * len(there) > len(self.entries)


def find_mass_deletion(script: ShellScript, root: Path) -> str | None:
    """Return the part of a command that is about the whole repository, or about most of it."""
    names = sorted(entry.name for entry in root.iterdir()) if root.is_dir() else ()
    entries = tuple(name for name in names if not is_protected(name))
    place, values = CommandPlace(root=root, folders=(root,), entries=entries), _values(script)
    for simple in script.commands:
        place = _move_place(place, simple, script)
        known = _with_values(simple, values)
        if _sweeps(known, place, script):
            return simple.source
    return None


def _values(script: ShellScript) -> dict[str, str]:
    """Return what variables of a command hold, as it would be written in their place."""
    values: dict[str, str] = dict(_LOOP.findall(script.source))
    for simple in script.commands:
        for name, value in simple.assigned:
            if _TEMPORARY.fullmatch(simple.source):
                values[name] = "/tmp/new"  # noqa: S108  # a name for a folder that the command made
            elif value.is_known:
                values[name] = f"{values[name]} {value.text}" if name in values else value.text
    return {"PWD": ".", **values}


def _with_values(simple: SimpleCommand, values: dict[str, str]) -> SimpleCommand:
    """Return a command with what its variables hold, where that can be known."""
    if "$" not in simple.source or name_program(simple.words) not in _DELETING | _MODES | {"find", "cd"}:
        return simple
    shown = re.sub(
        r'"?\$(?:\{(\w+)\}|(\w+))"?',
        lambda found: values.get(found[1] or found[2], found[0]),
        simple.source,
    )
    try:
        found = parse_command(shown).commands
    except TooComplex:
        return simple
    name = name_program(simple.words)
    return next((each for each in found if name_program(each.words) == name), simple)


def _move_place(place: CommandPlace, simple: SimpleCommand, script: ShellScript) -> CommandPlace:
    """Return the place after a command that changes the folder."""
    if name_program(simple.words) not in ("cd", "pushd"):
        return place
    given = [word.text for word in _with_values(simple, _values(script)).words[1:]]
    target = next((text for text in given if not text.startswith("-")), "")
    is_known = target and UNKNOWN_TEXT not in target
    folders = tuple(folder / target for folder in place.folders) if is_known else (place.root,)
    if _UNCERTAIN.search(script.source) or not is_known:
        folders = (*place.folders, *folders)
    return place.replace(folders=tuple(dict.fromkeys(folders)))


def _sweeps(simple: SimpleCommand, place: CommandPlace, script: ShellScript) -> bool:
    if not simple.words:
        return False
    is_found = name_program(simple.words) not in ("find", "xargs") and re.match(
        r"\s*(?:find|xargs)\b", simple.source
    )
    if is_found:
        return False  # judged with what runs it
    is_lister = name_program(simple.words) in ("find", "xargs")
    every = (simple.words,) if is_lister else list_possible_commands(simple)
    return any(_is_sweep(words, place, script) for words in every if words)


def _is_sweep(words: tuple[ShellWord, ...], place: CommandPlace, script: ShellScript) -> bool:
    name, rest = name_program(words), words[1:]
    flags = [word.text for word in rest if word.text.startswith("-")]
    if name in _DELETING | _MODES:
        return _takes(name, rest, flags, place)
    if name in _COPYING:
        return _clears(rest, flags, place)
    if name == "find":
        return _finds(rest, place)
    if name == "xargs":
        return _is_fed(rest, place, script)
    if name == "git":
        return _cleans(rest, place)
    if not INTERPRETERS.fullmatch(name):
        return False
    code = next((word.text for word in rest if _CALLED.search(word.text)), None)
    return bool(code and _runs_over(code, place)) or _names_root(script.document, place)


def _takes(name: str, rest: tuple[ShellWord, ...], flags: list[str], place: CommandPlace) -> bool:
    """Return whether the operands of a program are the root, or most of what lies there."""
    operands = [word.text for word in rest if not word.text.startswith("-")]
    is_recursive = any(flag == "--recursive" or re.fullmatch(r"-\w*[rR]\w*", flag) for flag in flags)
    if name in _MODES:
        return is_recursive and _covers(operands[1:], place)
    if name == "mv":
        target = operands.pop() if operands else ""
        inside = (Path(os.path.normpath(folder / target)) for folder in place.folders)
        return not all(path.is_relative_to(place.root) for path in inside) and _covers(operands, place)
    return _covers(operands, place, only_globs=not (is_recursive or name == "rimraf"))


def _clears(rest: tuple[ShellWord, ...], flags: list[str], place: CommandPlace) -> bool:
    """Return whether a copying program also deletes other files in its target, or the copied originals."""
    operands = [word.text for word in rest if not word.text.startswith("-")]
    if any(flag.startswith("--remove-") for flag in flags):
        return _covers(operands, place)
    return any(flag.startswith("--del") for flag in flags) and _covers(operands[-1:], place)


def _covers(targets: list[str], place: CommandPlace, *, only_globs: bool = False) -> bool:
    taken: set[str] = set()
    for target in targets:
        text = _BRACKET.sub(UNKNOWN_TEXT, target)
        if only_globs and UNKNOWN_TEXT not in text:
            continue
        found = _entries_of(text, place)
        if found is None:
            return True
        taken |= found
    return place.is_most(taken)


def _entries_of(target: str, place: CommandPlace) -> set[str] | None:
    """Return the entries at the root that a target takes in; None where it is the root, or any of them."""
    parts = [part for part in target.split("/") if part not in ("", ".")]
    if target.startswith(UNKNOWN_TEXT) and parts and _is_any(parts[0]) and len(parts) > 1:
        return None if all(_is_any(part) or part == ".." for part in parts) else set()
    found: set[str] = set()
    for folder in place.folders:
        start = Path("/") if target.startswith("/") else folder
        taken = _below(start, parts, place)
        if taken is None:
            return None
        found |= taken
    return found


def _below(start: Path, parts: list[str], place: CommandPlace) -> set[str] | None:
    known = next((at for at, part in enumerate(parts) if UNKNOWN_TEXT in part), len(parts))
    base = Path(os.path.realpath(start.joinpath(*parts[:known])))
    rest = parts[known:]
    if not rest:
        if place.root.is_relative_to(base):
            return None
        return {base.name} if base.parent == place.root else set()
    if not place.root.is_relative_to(base):
        return set()
    way = place.root.relative_to(base).parts
    if not all(_fits(part, name) for part, name in zip(rest, way, strict=False)):
        return set()
    left = rest[len(way) :]
    if not left:
        return None
    if not all(_is_any(part) for part in left[1:]):
        return set()
    return None if _is_any(left[0]) else {name for name in place.entries if _fits(left[0], name)}


def _is_any(part: str) -> bool:
    return UNKNOWN_TEXT in part and not part.strip(f"{UNKNOWN_TEXT}.")


def _fits(part: str, name: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, part.split(UNKNOWN_TEXT))), name) is not None


def _finds(rest: tuple[ShellWord, ...], place: CommandPlace) -> bool:
    """Return whether find deletes below the root without saying by name what."""
    texts = [word.text for word in rest]
    begin = next((at for at, text in enumerate(texts) if text[:1] in ("-", "(", "!")), len(texts))
    starts, tests = texts[:begin] or ["."], texts[begin:]
    runs = [tests[at + 1].rpartition("/")[2] for at, text in enumerate(tests[:-1]) if text in _RUNS]
    deletes = "-delete" in tests or any(name in _DELETING | _MODES for name in runs)
    return deletes and _covers(starts, place) and not _is_narrow(tests, place)


def _is_narrow(tests: list[str], place: CommandPlace) -> bool:
    """Return whether what find looks for is given by name, in each of its alternatives that delete."""
    splits = [
        list(group) for is_or, group in groupby(tests, lambda text: text in ("-o", "-or", ",")) if not is_or
    ]
    acting = (
        splits if {"(", "\\("} & set(tests) else [part for part in splits if {"-delete", *_RUNS} & set(part)]
    )
    return bool(acting) and all(any(_is_named(part, at, place) for at in range(len(part))) for part in acting)


def _is_named(tests: list[str], at: int, place: CommandPlace) -> bool:
    if tests[at - 1 : at] in (["!"], ["-not"]):
        return False
    if tests[at] == "-empty":
        return True
    if tests[at] not in _NAMED or at + 1 >= len(tests):
        return False
    pattern, before = tests[at + 1].replace(UNKNOWN_TEXT, "*"), _NAMED[tests[at]]
    is_any = not pattern.strip("*?./")
    return not is_any and not place.is_most(
        {each for each in place.entries if fnmatchcase(before + each, pattern)}
    )


def _is_fed(rest: tuple[ShellWord, ...], place: CommandPlace, script: ShellScript) -> bool:
    """Return whether xargs deletes what another command lists without choosing."""
    if not any(name_program((word,)) in _DELETING | _MODES for word in rest):
        return False
    listing = [simple.words for simple in script.commands if name_program(simple.words) in _SELECTING]
    return not any(_selects(words, place) for words in listing)


def _selects(words: tuple[ShellWord, ...], place: CommandPlace) -> bool:
    texts = [word.text for word in words[1:]]
    if name_program(words) == "find":
        begin = next((at for at, text in enumerate(texts) if text.startswith("-")), len(texts))
        return not _covers(texts[:begin] or ["."], place) or _is_narrow([*texts[begin:], "-delete"], place)
    patterns = [text for text in texts if not text.startswith("-") and text.strip(f"{UNKNOWN_TEXT}./")]
    return len(patterns) > (name_program(words) == "git")


def _cleans(rest: tuple[ShellWord, ...], place: CommandPlace) -> bool:
    """Return whether git clears ignored files away, below no folder that it names."""
    texts = [word.text for word in rest]
    if "clean" not in texts:
        return False
    given = texts[texts.index("clean") + 1 :]
    flags = "".join(text for text in given if re.fullmatch(r"-\w+", text))
    if not {"x", "X"} & set(flags) or "n" in flags or "--dry-run" in given:
        return False
    paths = [text for text in given if not text.startswith("-")]
    return not paths or _covers(paths, place)


def _names_root(document: str, place: CommandPlace) -> bool:
    """Return whether a line of code that deletes names the root."""
    lines = (line for line in document.splitlines() if _CALLED.search(line))
    named = [one or other for line in lines for one, other in _QUOTED.findall(line)]
    return _covers([text for text in named if text], place)


def _runs_over(code: str, place: CommandPlace) -> bool:
    """Return whether code that deletes names the root, or nothing at all."""
    named = [one or other for one, other in _QUOTED.findall(code)]
    globs = re.search(r"glob\(", code)
    narrow = [text for text in named if text.strip("*?./")]
    if globs:
        return not any("*" in text or text.startswith("__") for text in narrow)
    return not named or _covers([text.replace("*", UNKNOWN_TEXT) for text in named if text], place)
