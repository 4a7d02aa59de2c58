"""Protected names that a command made although they did not exist: they are set aside, never left standing.

A mount can protect only what exists, and a placeholder would be litter in the user's repository. So the names
at the root are compared before and after; what they were is written down first, so that the next start can do
it where a kill came in between.
"""

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from agentflow.sandbox.profile import protected_names

_NOTE = ".names"
_ASIDE = ".set-aside"


@contextmanager
def watched(root: Path, sink: Path, opened: Iterable[str]) -> Iterator[list[str]]:
    """Let a command run; the list is filled with the names that were set aside."""
    note = sink.with_suffix(_NOTE)
    found: list[str] = []
    note.write_text(json.dumps(sorted(protected_names(root))), "utf-8")
    try:
        yield found
    finally:
        found += _set_aside(root, note, opened)


def settle(root: Path, outputs: Path, opened: Iterable[str]) -> tuple[str, ...]:
    """Set aside what a command made that was killed together with us; return the names."""
    return tuple(
        name for note in sorted(outputs.glob(f"*{_NOTE}")) for name in _set_aside(root, note, opened)
    )


def _set_aside(root: Path, note: Path, opened: Iterable[str]) -> list[str]:
    before = json.loads(note.read_text("utf-8"))
    new = sorted(protected_names(root, opened) - frozenset(before))
    if new:
        place = note.with_suffix(_ASIDE)
        place.mkdir(mode=0o700, exist_ok=True)
        for name in new:
            os.rename(root / name, place / name)  # noqa: PTH104  # a link itself is moved, never followed
    note.unlink()
    return new
