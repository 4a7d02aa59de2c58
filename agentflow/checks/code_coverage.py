"""Counts of node and Go: how often each block of each file ran."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from agentflow.core.check_command import CommandPart, join_parts, split_command
from agentflow.core.regex import regex

Block = tuple[int, int, int]
"""Start and end in UTF-16 units, and how often the part between them ran."""
Load = tuple[tuple[Block, ...], ...]
"""A file as one process ran it: its functions, the whole file first; each begins with a block of its own."""

_GO_TEST = regex(r"go test(?= |$)(?![^;&|]* -cover)")
_GO_ROW = regex(r"(?P<file>.+):(\d{1,9})\.(\d{1,9}),(\d{1,9})\.(\d{1,9}) \d+ (\d{1,20})", re.ASCII)
_GO_MODULE = regex(r"(?m)^module[ \t]+\"?([^\s\"]+)")
_GO_FUNCTION = regex(r"(?ms)^func\b.*?^\}")
_BYTES = 256 << 20
"""The most that all processes together may tell; beyond that nothing is known."""


def read_coverage(folder: Path, roots: Iterable[Path]) -> Mapping[str, tuple[Load, ...]]:
    """Return how each process ran each file below the roots, by its path there.

    Nothing is known where one report cannot be read, nor of a file that was translated as it was loaded.
    """
    paths = [path for path in folder.glob("*.json") if path.is_file() and not path.is_symlink()]
    if sum(path.stat().st_size for path in paths) > _BYTES:
        return {}
    begins = tuple(f"file://{place}/" for root in roots for place in (root, root.resolve()))
    found: dict[str, list[Load]] = {}
    translated: set[str] = set()
    try:
        for path in sorted(paths):
            told = json.loads(path.read_bytes())
            translated |= {_place(url, begins) for url in told.get("source-map-cache", ())}
            for script in told["result"]:
                if place := _place(script["url"], begins):
                    found.setdefault(place, []).append(_read_load(script))
    except (OSError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return {}
    return {place: tuple(loads) for place, loads in found.items() if place not in translated}


def _place(url: str, begins: Iterable[str]) -> str:
    """Return a file's path in the repository; empty for one that lies elsewhere or is a package's."""
    path = unquote(url)
    place = next((path.removeprefix(begin) for begin in begins if path.startswith(begin)), "")
    return "" if "node_modules/" in place else place


def _read_load(script: Mapping[str, Any]) -> Load:
    return tuple(
        tuple(
            (int(each["startOffset"]), int(each["endOffset"]), int(each["count"])) for each in told["ranges"]
        )
        for told in script["functions"]
    )


def count_go(command: str, scratch: Path, folders: Iterable[Path]) -> str:
    """Return a command whose runs of `go test`, one a module, count what runs of all packages; else the same.

    Each leaves a profile in the scratch folder.
    """
    parts = split_command(command)
    if any(len(_GO_TEST.findall(part.command)) != ("go test" in part.command) for part in parts):
        return command
    names = tuple(_find_modules(parts, folders))
    packages = ",".join(f"{name}/..." for name in names) if len(names) > 1 else "./..."
    options = f"go test -covermode=atomic -coverpkg={packages} -coverprofile={scratch}/go-{{}}.profile"
    return join_parts(
        part.replace(command=_GO_TEST.sub(options.format(at), part.command)) for at, part in enumerate(parts)
    )


def _find_modules(parts: Iterable[CommandPart], folders: Iterable[Path]) -> dict[str, str]:
    """Return the folder of each Go module that a command tests, by the module's name, inner ones first."""
    places = tuple(folders)[::-1]
    tested = dict.fromkeys(part.folder for part in parts if "go test" in part.command)
    named = {folder: _GO_MODULE.search(_read(places, f"{folder}go.mod")) for folder in tested}
    found = {name[1]: folder for folder, name in named.items() if name}
    return dict(sorted(found.items(), reverse=True))


def read_go_coverage(command: str, scratch: Path, folders: Iterable[Path]) -> Mapping[str, tuple[Load, ...]]:
    """Return how the tests of a command ran each file of its Go modules, by its path from the root.

    A file lies in one of the folders, the last that has it. All processes count as one. Nothing is known
    where the tests left something else than a profile.
    """
    places, parts = tuple(folders)[::-1], split_command(command)
    modules = _find_modules(parts, places[::-1]) if "go test" in command else {}
    counted: dict[str, dict[tuple[int, ...], int]] = {}
    for row in _read_profiles([scratch / f"go-{at}.profile" for at in range(len(parts))] if modules else []):
        found = _GO_ROW.fullmatch(row)
        name = next((name for name in modules if found and found["file"].startswith(f"{name}/")), None)
        if found and name is not None:
            path = modules[name] + found["file"].removeprefix(f"{name}/")
            *spot, count = map(int, found.groups()[1:])
            blocks = counted.setdefault(path, {})
            blocks[tuple(spot)] = blocks.get(tuple(spot), 0) + count
    return {path: (_load_go(_read(places, path), blocks),) for path, blocks in counted.items()}


def _read_profiles(paths: Iterable[Path]) -> list[str]:
    """Return the rows of all profiles; none where one is no plain file or they are too large."""
    there = [path for path in paths if os.path.lexists(path)]
    is_plain = all(path.is_file() and not path.is_symlink() for path in there)
    if not is_plain or sum(path.stat().st_size for path in there) > _BYTES:
        return []
    return [row for path in there for row in path.read_text("utf-8", "replace").splitlines()]


def _read(folders: Iterable[Path], path: str) -> str:
    """Return the text of a file as it is; empty for one that lies elsewhere or cannot be read."""
    if path.startswith("/") or ".." in path.split("/"):
        return ""
    files = (folder / path for folder in folders)
    try:
        found = next((file for file in files if file.is_file() and not file.is_symlink()), None)
        return found.read_bytes().decode("utf-8", "replace") if found else ""
    except OSError:
        return ""


def _load_go(text: str, counted: Mapping[tuple[int, ...], int]) -> Load:
    """Return the blocks of a file, the file itself first, then each function with those that it has."""
    starts = [0]
    lines = [f"{line}\n" for line in text.split("\n")]  # Go knows no other end of a line
    for line in lines:
        starts.append(starts[-1] + count_units(line))

    def place(line: int, column: int) -> int:
        begin = lines[line - 1].encode()[: column - 1] if line <= len(lines) else b""
        return starts[min(line, len(starts)) - 1] + count_units(begin.decode("utf-8", "replace"))

    blocks = sorted((place(*spot[:2]), place(*spot[2:]), count) for spot, count in counted.items())
    return (((0, count_units(text), 1),), *_split_go(text, blocks))


def _split_go(text: str, blocks: list[Block]) -> Iterator[tuple[Block, ...]]:
    for function in _GO_FUNCTION.finditer(text):
        start, end = count_units(text[: function.start()]), count_units(text[: function.end()])
        inner = [block for block in blocks if start <= block[0] < end]
        if inner:
            yield (start, end, inner[0][2]), *inner


def count_units(text: str) -> int:
    """Return how many units a text has where node and Go count."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
