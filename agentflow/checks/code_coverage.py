"""Counts of Go: how often each block of each file ran."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from agentflow.core.regex import regex

Block = tuple[int, int, int]
"""Start and end in a text, and how often the part between them ran."""
Load = tuple[tuple[Block, ...], ...]
"""A file as one process ran it: its functions, the whole file first; each begins with a block of its own."""

_GO_TEST = regex(r"go test(?= |$)(?![^;&|]* -cover)")
_GO_ROW = regex(r"(?P<file>.+):(\d{1,9})\.(\d{1,9}),(\d{1,9})\.(\d{1,9}) \d+ (\d{1,20})", re.ASCII)
_GO_MODULE = regex(r"(?m)^module[ \t]+\"?([^\s\"]+)")
_GO_FUNCTION = regex(r"(?ms)^func\b.*?^\}")
_BYTES = 256 << 20
"""The most that Go may tell; beyond that nothing is known."""


def count_go(command: str, profile: Path) -> str:
    """Return a command whose one `go test` counts what runs of all packages; the same for any other."""
    options = f"go test -covermode=atomic -coverpkg=./... -coverprofile={profile}"
    return _GO_TEST.sub(options, command) if len(_GO_TEST.findall(command)) == 1 else command


def read_go_coverage(profile: Path, folders: Iterable[Path]) -> Mapping[str, tuple[Load, ...]]:
    """Return how the tests ran each file of the module at the root, by its path there.

    A file lies in one of the folders, the last that has it. All processes count as one. Nothing is known
    where the tests left something else than a profile.
    """
    places = tuple(reversed(tuple(folders)))
    named = _GO_MODULE.search(_read(places, "go.mod"))
    is_there = profile.is_file() and not profile.is_symlink()
    if named is None or not is_there or profile.stat().st_size > _BYTES:
        return {}
    counted: dict[str, dict[tuple[int, ...], int]] = {}
    for row in profile.read_text("utf-8", "replace").splitlines():
        if (found := _GO_ROW.fullmatch(row)) and found["file"].startswith(f"{named[1]}/"):
            blocks = counted.setdefault(found["file"].removeprefix(f"{named[1]}/"), {})
            *spot, count = map(int, found.groups()[1:])
            blocks[tuple(spot)] = blocks.get(tuple(spot), 0) + count
    return {path: (_load_go(_read(places, path), blocks),) for path, blocks in counted.items()}


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
