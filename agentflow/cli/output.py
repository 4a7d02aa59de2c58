"""Where a task's output goes: not into the tree that it is judged by."""

from collections.abc import Iterator
from pathlib import Path

from agentflow.core.errors import UsageError
from agentflow.workspace.git import Git

_OURS = (1, 2)


def require_outside(git: Git, events: str | None) -> None:
    """Raise UsageError when the output or the events would change the tree all the time."""
    for place in _places(events):
        if not place.is_relative_to(git.root) or place.is_dir():
            continue
        name = place.relative_to(git.root).as_posix()
        if git.counted([f"A {name}"]):
            raise UsageError(
                f"the output would go to {name} and change the files that are judged",
                hint="write it outside the repository, or let git ignore it",
            )


def _places(events: str | None) -> Iterator[Path]:
    for descriptor in _OURS:
        # only Linux tells where a stream leads
        place = Path(f"/proc/self/fd/{descriptor}")
        if place.is_file():
            yield place.resolve()
    if events not in (None, "-"):
        yield Path(events).resolve()
