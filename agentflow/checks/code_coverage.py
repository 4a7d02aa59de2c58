"""Counts of Go: how often each block of each file ran."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from agentflow.core.check_command import CommandPart, join_parts, split_command
from agentflow.core.regex import regex

Block = tuple[int, int, int]
"""Start and end in a text, and how often the part between them ran."""
Load = tuple[tuple[Block, ...], ...]
"""A file as the tests ran it: its functions, the whole file first; each begins with a block of its own."""

_GO_TEST = regex(r"go test(?= |$)(?![^;&|]* -cover)")
_GO_ROW = regex(r"(?P<file>.+):(\d{1,9})\.(\d{1,9}),(\d{1,9})\.(\d{1,9}) \d+ (\d{1,20})", re.ASCII)
_GO_MODULE = regex(r"(?m)^module[ \t]+\"?([^\s\"]+)")
_GO_FUNCTION = regex(r"(?ms)^func\b.*?^\}")
_BYTES = 256 << 20
"""The most that Go may tell; beyond that nothing is known."""


def count_go(command: str, scratch: Path, folders: Sequence[Path]) -> str:
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


def _find_modules(parts: Iterable[CommandPart], folders: Sequence[Path]) -> dict[str, str]:
    """Return the folder of each Go module that a command tests, by the module's name, inner ones first."""
    tested = dict.fromkeys(part.folder for part in parts if "go test" in part.command)
    named = {folder: _GO_MODULE.search(_read(folders, f"{folder}go.mod")) for folder in tested}
    found = {name[1]: folder for folder, name in named.items() if name}
    return dict(sorted(found.items(), reverse=True))


def read_go_coverage(command: str, scratch: Path, folders: Sequence[Path]) -> Mapping[str, Load]:
    """Return how the tests of a command ran each file of its Go modules, by its path from the root.

    A file lies in one of the folders, the last that has it. All processes count as one. Nothing is known
    where the tests left something else than a profile.
    """
    parts = split_command(command)
    modules = _find_modules(parts, folders) if "go test" in command else {}
    counted: dict[str, dict[tuple[int, ...], int]] = {}
    for row in _read_profiles([scratch / f"go-{at}.profile" for at in range(len(parts))] if modules else []):
        found = _GO_ROW.fullmatch(row)
        name = next((name for name in modules if found and found["file"].startswith(f"{name}/")), None)
        if found and name is not None:
            path = modules[name] + found["file"].removeprefix(f"{name}/")
            *spot, count = map(int, found.groups()[1:])
            blocks = counted.setdefault(path, {})
            blocks[tuple(spot)] = blocks.get(tuple(spot), 0) + count
    return {path: _load_go(_read(folders, path), blocks) for path, blocks in counted.items()}


def _read_profiles(paths: Iterable[Path]) -> list[str]:
    """Return the rows of all profiles; none where one is no plain file or they are too large."""
    there = [path for path in paths if os.path.lexists(path)]
    is_plain = all(path.is_file() and not path.is_symlink() for path in there)
    if not is_plain or sum(path.stat().st_size for path in there) > _BYTES:
        return []
    return [row for path in there for row in path.read_text("utf-8", "replace").splitlines()]


def _read(folders: Sequence[Path], path: str) -> str:
    """Return the text of a file in the last folder that has it; empty where none can be read."""
    if path.startswith("/") or ".." in path.split("/"):
        return ""
    files = (folder / path for folder in reversed(folders))
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
        starts.append(starts[-1] + len(line))

    def place(line: int, column: int) -> int:
        begin = lines[line - 1].encode()[: column - 1] if line <= len(lines) else b""
        return starts[min(line, len(starts)) - 1] + len(begin.decode("utf-8", "replace"))

    blocks = sorted((place(*spot[:2]), place(*spot[2:]), count) for spot, count in counted.items())
    return (((0, len(text), 1),), *_split_go(text, blocks))


def _split_go(text: str, blocks: list[Block]) -> Iterator[tuple[Block, ...]]:
    for function in _GO_FUNCTION.finditer(text):
        start, end = len(text[: function.start()]), len(text[: function.end()])
        inner = [block for block in blocks if start <= block[0] < end]
        if inner:
            yield (start, end, inner[0][2]), *inner
