"""Which tasks this user began, and how: kept with the user, because a repository can bring any folder.

A task says which model it asks, what it may use up, and what a person decided. Taken from a folder that
somebody else made, all of that would be theirs to say.
"""

import hashlib
from contextlib import suppress
from pathlib import Path

from agentflow.core.errors import InvalidFile
from agentflow.core.pending import Budget
from agentflow.core.record import Record, encode
from agentflow.core.task import TaskState
from agentflow.frontmatter import write_whole
from agentflow.parse import decode
from agentflow.store.reading import EVENTS


class Begun(Record):
    """How this user began a task, or took it over."""

    size: int
    """Bytes of its events by then."""
    sum: str
    """Their hash."""
    model: str
    max_iterations: int
    budget: Budget


def record_begun(config: Path, folder: Path, task: TaskState) -> None:
    """Write down how a task began; a task runs also where that cannot be written."""
    content = (folder / EVENTS).read_bytes()
    begun = Begun(
        size=len(content),
        sum=hashlib.sha256(content).hexdigest(),
        model=task.model,
        max_iterations=task.max_iterations,
        budget=task.budget,
    )
    place = _place(config, folder)
    with suppress(OSError):
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(place, encode(begun) + b"\n")


def is_own(config: Path, folder: Path, task: TaskState) -> bool:
    """Tell whether a task began as this user recorded it, and has the same model and limits."""
    try:
        place = _place(config, folder)
        begun = decode(Begun, place.read_bytes(), str(place))
        content = (folder / EVENTS).read_bytes()
    except (OSError, InvalidFile):
        return False
    said = (task.model, task.max_iterations, task.budget)
    is_said = said == (begun.model, begun.max_iterations, begun.budget)
    return is_said and hashlib.sha256(content[: begun.size]).hexdigest() == begun.sum


def _place(config: Path, folder: Path) -> Path:
    return config.parent / "tasks" / f"{folder.name}.json"
