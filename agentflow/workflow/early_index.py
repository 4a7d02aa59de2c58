"""The index of symbols, made or brought up to date beside the checks before the task, and what it shows."""

import math
import os
from collections.abc import Callable, Iterable
from contextlib import suppress

import anyio
from anyio import to_thread

from agentflow.core.errors import ToolError
from agentflow.core.task import TaskState
from agentflow.model.tiers import REPAIR
from agentflow.process import check_cancelled
from agentflow.redact import redact_text
from agentflow.settings import find_folders
from agentflow.workflow.crew import Crew

_GRACE_SECONDS = 0.5
"""How long the first request of a paid model waits for the map."""
_BUILD_SECONDS = 600


class EarlyIndex:
    """Builds the index in the background; a task whose first role cannot wait for it begins without a map."""

    def __init__(self, begin: Callable[..., object]) -> None:
        self._begin = begin
        self._done = anyio.Event()
        self._files: tuple[str, ...] = ()

    def start(self, crew: Crew, task: TaskState) -> None:
        from agentflow.symbols.read import is_worth_indexing  # noqa: PLC0415

        if task.tree is None or task.surroundings or crew.model.name == REPAIR:
            return
        files = crew.git.list_paths(task.tree)
        if is_worth_indexing(files):
            self._files = files
            self._begin(self._build, crew)

    async def _build(self, crew: Crew) -> None:
        from agentflow.symbols.build import build  # noqa: PLC0415  # only where there is source

        with suppress(ToolError, OSError):
            await to_thread.run_sync(
                build,
                find_folders(os.environ).symbols,
                crew.git.root,
                self._files,
                _BUILD_SECONDS,
                check_cancelled,
            )
        self._done.set()

    async def draw(self, crew: Crew, task: TaskState, shown: Iterable[str]) -> str:
        """Return the map for a task without the files that are shown anyhow; empty if it is late."""
        if not self._files:
            return ""
        with anyio.move_on_after(_GRACE_SECONDS if crew.grace is not None else math.inf):
            await self._done.wait()
            return await to_thread.run_sync(_draw, crew, task, tuple(shown), abandon_on_cancel=True)
        return ""


def _draw(crew: Crew, task: TaskState, shown: tuple[str, ...]) -> str:
    from agentflow.symbols.index import open_index  # noqa: PLC0415
    from agentflow.symbols.repo_map import write_repo_map  # noqa: PLC0415

    def read(path: str) -> str | None:
        content = crew.workspace.peek(path)
        return None if content is None else redact_text(content.decode("utf-8", "replace"))

    text = f"{task.task}\n{task.intent.goal}" if task.intent.goal != task.task else task.task
    try:
        with open_index(find_folders(os.environ).symbols, crew.git.root) as index:
            return write_repo_map(index, read, text, shown)
    except ToolError:
        return ""
