"""What node tells of the code that ran: how often each block of each file did, process by process."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

Block = tuple[int, int, int]
"""Start and end in UTF-16 units, and how often the part between them ran."""
Load = tuple[tuple[Block, ...], ...]
"""A file as one process ran it: its functions, the whole file first; each begins with a block of its own."""

_BYTES = 256 << 20
"""Of all processes together; where they tell more, nothing is known."""


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
