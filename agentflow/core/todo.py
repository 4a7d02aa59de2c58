"""A step of a task's work, and how it stands."""

from collections.abc import Mapping
from enum import StrEnum

from agentflow.core.record import Record


class TodoStatus(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    BLOCKED = "blocked"

    @classmethod
    def _missing_(cls, value: object) -> "TodoStatus | None":
        """Return what another usual word for a status means."""
        word = value.strip().lower().replace(" ", "_").replace("-", "_") if isinstance(value, str) else ""
        return _SPELLINGS.get(word)


_SPELLINGS: Mapping[str, TodoStatus] = {
    **{status.value: status for status in TodoStatus},
    **dict.fromkeys(("todo", "open", "not_started", "planned"), TodoStatus.PENDING),
    **dict.fromkeys(("doing", "active", "started", "inprogress", "current"), TodoStatus.IN_PROGRESS),
    **dict.fromkeys(("done", "complete", "finished"), TodoStatus.COMPLETED),
    **dict.fromkeys(("stuck", "waiting", "on_hold"), TodoStatus.BLOCKED),
}


class Todo(Record):
    id: int
    title: str
    status: TodoStatus
    evidence: str | None = None


class PlanChanged(Record, tag=True):
    """The todos changed; ids only, the todos themselves are in the state."""

    added: tuple[int, ...]
    changed: tuple[int, ...]
    removed: tuple[int, ...]
