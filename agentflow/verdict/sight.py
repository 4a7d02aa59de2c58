"""The looks at the changes of a task, each taken once."""

from typing import TYPE_CHECKING

from agentflow.core.task import TaskState
from agentflow.workspace.git import Git

if TYPE_CHECKING:
    from agentflow.verdict.look import Look


class Sight:
    """Tells what a change did; how that is found out is loaded when there is one."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._known: dict[tuple[str | None, ...], Look] = {}

    def of(self, task: TaskState) -> "Look":
        """Return what is to be seen of a task's change, with what its runs told of new files."""
        from agentflow.verdict.look import inspect_change  # noqa: PLC0415  # nothing before the first change needs it

        surface = task.surface
        late = (path for path in surface.late if path in surface.product)
        trees = (task.base_tree, task.tree, *surface.late, "", *late)
        if trees not in self._known:
            self._known[trees] = inspect_change(self._git, task)
        return self._known[trees]
