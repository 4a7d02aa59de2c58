"""Folders that a command made, which may be as deep as it likes."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from agentflow.process import capture


def walk(root: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield what `os.walk` does, without a call for each level: that ends at the thousandth."""
    todo = [str(root)]
    while todo:
        if listed := next(os.walk(todo.pop()), None):
            yield listed
            place, names, _ = listed
            inner = (f"{place}/{name}" for name in reversed(names))
            todo += [path for path in inner if not os.path.islink(path)]  # noqa: PTH114  # strings from os.walk


def raze(folder: Path) -> None:
    """Delete a folder in which paths may be too long to be named, or that nobody may list, as far as can be.

    Python's own calls itself for each level, and these programs do not.
    """
    locked = ("-type", "d", "!", "-perm", "-700", "-execdir", "chmod", "u+rwx", "{}", ";")
    for words in (("find", str(folder), *locked), ("rm", "-rf", "--", str(folder))):
        with suppress(OSError):
            capture(words, cwd=folder.parent)
