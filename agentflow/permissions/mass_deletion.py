"""Commands over the whole repository, or most of it, counted by what lies at its root.

What a program deletes by itself is not seen here; `undo` puts back what the task found.
"""

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import groupby
from pathlib import Path

from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.permissions.shell_parser import (
    UNKNOWN_TEXT,
    ShellScript,
    ShellWord,
    SimpleCommand,
    TooComplex,
)
from agentflow.permissions.wrappers import (
    INTERPRETERS,
    list_possible_commands,
    name_program,
    unwrap_command,
)
from agentflow.sandbox.profile import is_protected

_DELETING = frozenset({"rm", "shred", "srm", "truncate", "unlink", "rimraf", "mv"})
_MODES = frozenset({"chmod", "chown", "chgrp", "setfacl"})
_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_NAMED = {"-name": "", "-iname": "", "-path": "./", "-ipath": "./", "-wholename": "./"}
_SELECTING = frozenset({"find", "grep", "rg", "fd", "git"})
_BRACKET = regex(rf"{UNKNOWN_TEXT}[^{UNKNOWN_TEXT}/]*\]")
_CALLED = regex(r"rmtree|\brm_rf\b|\brmSync\b|\brmdirSync\b|unlink|\bos\.remove|\bchmod|delete_tree")
_QUOTED = regex(r"'([^'\n]*)'|\"([^\"\n]*)\"")
_VARIABLE = regex(r'"?\$(?:\{(\w+)\}|(\w+))"?')
_LOOP = regex(r"\bfor\s+(\w+)\s+in\s+([^;\n$`]*?)\s*[;\n]\s*do\b")
_TEMPORARY = regex(r"\w+=\"?\$\(mktemp\b[^)]*\)\"?")
_PLAIN = regex(r"[\w./*? -]*")
_SEVERAL = 3
_UNCERTAIN = regex(r"[;(|\n]|(?<!&)&(?!&)")
"""What may run a later command in another folder than the one that `cd` names before it."""
_EVERYTHING = "/"
_ANY = "\ue000"
"""Stands for unknown text in a path: the system takes no name with `UNKNOWN_TEXT` in it."""


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

    def covers(self, targets: list[str]) -> bool:
        """Return whether targets take in the root, any of its entries, or together most of them."""
        taken = set[str]()
        for target in targets:
            parts = [part for part in target.split("/") if part not in ("", ".")]
            if target.startswith(UNKNOWN_TEXT) and len(parts) > 1 and _is_any(parts[0]):
                if all(_is_any(part) or part == ".." for part in parts):
                    return True
                continue  # it leads somewhere else: `$HOME/.cache/x`
            for folder in self.folders:
                left = self._find_below(folder / target.replace(UNKNOWN_TEXT, _ANY))
                if left is not None and all(map(_is_any, left)):
                    return True
                if left and all(map(_is_any, left[1:])):
                    taken |= {name for name in self.entries if _fits(left[0], name)}
        return self.is_most(taken)

    def _find_below(self, target: Path) -> tuple[str, ...] | None:
        """Return the parts of a target below the root, none for what holds it; None if it lies elsewhere."""
        parts, way = Path(os.path.realpath(target)).parts, self.root.parts
        return parts[len(way) :] if all(map(_fits, parts, way)) else None


def find_mass_deletion(script: ShellScript, root: Path) -> str | None:
    """Return the part of a command that is about the whole repository, or about most of it."""
    names = sorted(entry.name for entry in root.iterdir()) if root.is_dir() else ()
    entries = tuple(name for name in names if not is_protected(name))
    place, script = CommandPlace(root=root, folders=(root,), entries=entries), _fill_in(script)
    for simple in script.commands:
        place = _move_place(place, simple, script)
        # what find and xargs run is judged with them
        if simple.words and not re.match(r"\s*(?:find|xargs)\b", simple.source):
            every = list(list_possible_commands(simple))
        else:
            every = [simple.words] if name_program(simple.words) in ("find", "xargs") else []
        if any(place.covers(_list_targets(words, place, script)) for words in every if words):
            return simple.source
    return None


def _fill_in(script: ShellScript) -> ShellScript:
    if "$" not in script.source:
        return script
    values: dict[str, str] = {"PWD": ".", **dict(_LOOP.findall(script.source))}
    for simple in script.commands:
        for name, value in simple.assigned:
            if _TEMPORARY.fullmatch(simple.source):
                values[name] = "/tmp/new"  # noqa: S108  # a name for a folder that the command made
            elif value.is_known and _PLAIN.fullmatch(value.text):
                values[name] = f"{values[name]} {value.text}" if name in values else value.text
    shown = _VARIABLE.sub(lambda found: values.get(found[1] or found[2], found[0]), script.source)
    try:
        return unwrap_command(shown)
    except TooComplex:
        return script


def _move_place(place: CommandPlace, simple: SimpleCommand, script: ShellScript) -> CommandPlace:
    if name_program(simple.words) not in ("cd", "pushd"):
        return place
    target = next((word.text for word in simple.words[1:] if not word.text.startswith("-")), "")
    is_known = target and UNKNOWN_TEXT not in target
    folders = tuple(folder / target for folder in place.folders) if is_known else (place.root,)
    if _UNCERTAIN.search(script.source) or not is_known:
        folders = (*place.folders, *folders)
    return place.replace(folders=tuple(dict.fromkeys(folders)))


def _list_targets(words: tuple[ShellWord, ...], place: CommandPlace, script: ShellScript) -> list[str]:
    name, texts = name_program(words), [_BRACKET.sub(UNKNOWN_TEXT, word.text) for word in words[1:]]
    if name in _DELETING | _MODES | {"rsync", "tar"}:
        return _list_operands(name, texts, place)
    if name == "find":
        return _list_found(texts, place)
    if name == "xargs":
        if not any(name_program((word,)) in _DELETING | _MODES for word in words[1:]):
            return []
        listing = [simple.words for simple in script.commands if name_program(simple.words) in _SELECTING]
        return [] if any(_selects(each, place) for each in listing) else [_EVERYTHING]
    if name == "git":
        return _list_cleaned(texts)
    return _list_in_code(texts, script.document) if INTERPRETERS.fullmatch(name) else []


def _list_operands(name: str, texts: list[str], place: CommandPlace) -> list[str]:
    operands = [text for text in texts if not text.startswith("-")]
    flags = " ".join(text for text in texts if text.startswith("-"))
    is_recursive = re.search(r"(?<!\S)(?:--recursive|-\w*[rR]\w*)(?!\S)", flags) is not None
    if name in _MODES:
        return operands[1:] if is_recursive else []
    if name == "mv":
        target = operands.pop() if operands else ""
        inside = (Path(os.path.normpath(folder / target)) for folder in place.folders)
        return [] if all(path.is_relative_to(place.root) for path in inside) else operands
    if name in ("rsync", "tar"):
        if "--remove-" in flags:
            return operands
        return operands[-1:] if "--del" in flags else []
    is_whole = is_recursive or name == "rimraf"
    return operands if is_whole else [text for text in operands if UNKNOWN_TEXT in text]


def _is_any(part: str) -> bool:
    return bool({UNKNOWN_TEXT, _ANY} & {*part}) and not part.strip(f"{UNKNOWN_TEXT}{_ANY}.")


def _fits(part: str, name: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, part.split(_ANY))), name) is not None


def _list_found(texts: list[str], place: CommandPlace) -> list[str]:
    begin = next((at for at, text in enumerate(texts) if text[:1] in ("-", "(", "!")), len(texts))
    starts, tests = texts[:begin] or ["."], texts[begin:]
    runs = [tests[at + 1].rpartition("/")[2] for at, text in enumerate(tests[:-1]) if text in _RUNS]
    deletes = "-delete" in tests or any(name in _DELETING | _MODES for name in runs)
    return starts if deletes and not _is_narrow(tests, place) else []


def _is_narrow(tests: list[str], place: CommandPlace) -> bool:
    groups = groupby(tests, lambda text: text in ("-o", "-or", ","))
    parts = [list(group) for is_or, group in groups if not is_or]
    return bool(parts) and all(any(_is_named(part, at, place) for at in range(len(part))) for part in parts)


def _is_named(tests: list[str], at: int, place: CommandPlace) -> bool:
    if tests[at - 1 : at] in (["!"], ["-not"]):
        return False
    if tests[at] == "-empty":
        return True
    if tests[at] not in _NAMED or at + 1 >= len(tests):
        return False
    pattern, before = tests[at + 1].replace(UNKNOWN_TEXT, "*"), _NAMED[tests[at]]
    matching = {name for name in place.entries if fnmatchcase(before + name, pattern)}
    return bool(pattern.strip("*?./")) and not place.is_most(matching)


def _selects(words: tuple[ShellWord, ...], place: CommandPlace) -> bool:
    texts = [word.text for word in words[1:]]
    if name_program(words) == "find":
        return not place.covers(_list_found([*texts, "-delete"], place))
    patterns = [text for text in texts if not text.startswith("-") and text.strip(f"{UNKNOWN_TEXT}./")]
    return len(patterns) > (name_program(words) == "git")


def _list_cleaned(texts: list[str]) -> list[str]:
    given = texts[texts.index("clean") + 1 :] if "clean" in texts else []
    flags = "".join(text for text in given if re.fullmatch(r"-\w+", text))
    if not {"x", "X"} & set(flags) or "n" in flags or "--dry-run" in given:
        return []
    return [text for text in given if not text.startswith("-")] or [_EVERYTHING]


def _list_in_code(texts: list[str], document: str) -> list[str]:
    """Return what code that deletes names; everything where it names nothing that narrows it down."""
    lines = (line for line in document.splitlines() if _CALLED.search(line))
    targets = [text for line in lines for text in _list_quoted(line)]
    code = next((text for text in texts if _CALLED.search(text)), None)
    if code is None:
        return targets
    named = list(_list_quoted(code))
    if "glob(" in code:
        narrow = [text for text in named if text.strip("*?./")]
        is_chosen = any("*" in text or text.startswith("__") for text in narrow)
        return targets if is_chosen else [_EVERYTHING]
    return [*targets, *(text.replace("*", UNKNOWN_TEXT) for text in named)] or [_EVERYTHING]


def _list_quoted(code: str) -> Iterator[str]:
    yield from (one or other for one, other in _QUOTED.findall(code) if one or other)
