"""`task.md`: the state as frontmatter, and a log that people read."""

from pathlib import Path

from agentflow.core.record import plain
from agentflow.core.task import FRONTMATTER_KEYS, Intent, TaskState
from agentflow.frontmatter import join, split, write_atomic
from agentflow.parse import parse
from agentflow.redact import redacted
from agentflow.store.versions import upgraded


def write_task(path: Path, task: TaskState, log: str) -> None:
    state = plain(task)
    text = join({key: state[key] for key in FRONTMATTER_KEYS}, f"## Log\n{log}")
    write_atomic(path, redacted(text).encode())


def read_task(path: Path) -> TaskState:
    """Return the state that a `task.md` shows. Raises InvalidFile, or CorruptState for a newer version."""
    head, _ = split(path.read_text("utf-8"), str(path))
    return parse(TaskState, upgraded(head, str(path)), str(path), lax=True)


def edited_intent(path: Path) -> Intent | None:
    """Return the intent that a `task.md` shows, or None where it shows none. Raises InvalidFile."""
    if not path.is_file():
        return None
    head, _ = split(path.read_text("utf-8"), str(path))
    return parse(Intent, head["intent"], f"{path}: intent") if "intent" in head else None
