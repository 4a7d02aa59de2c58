"""A multi-agent developer assistant whose verdicts come from checks it runs itself.

`run_task` carries out a task, `load_task` reads one; docs/guide/python.md shows how.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentflow.api.boundary import TaskRequest
    from agentflow.api.functions import answer, cancel, decide, load_task, resume, run_task, verify
    from agentflow.api.undo import undo
    from agentflow.compose.builder import AgentBuilder
    from agentflow.compose.capability import Capability
    from agentflow.core.errors import AgentflowError, Exit
    from agentflow.core.hook import Hook, HookResult
    from agentflow.core.points import HookEvent, Point
    from agentflow.core.record import Record
    from agentflow.core.role import Role
    from agentflow.core.tool import Category, Effect, Output, Subject, Tool, ToolContext
    from agentflow.view.tasks import Snapshot

__version__ = "0.1.0"

__all__ = [
    "AgentBuilder",
    "AgentflowError",
    "Capability",
    "Category",
    "Effect",
    "Exit",
    "Hook",
    "HookEvent",
    "HookResult",
    "Output",
    "Point",
    "Record",
    "Role",
    "Snapshot",
    "Subject",
    "TaskRequest",
    "Tool",
    "ToolContext",
    "answer",
    "cancel",
    "decide",
    "load_task",
    "resume",
    "run_task",
    "undo",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that importing the package stays light."""
    if name not in __all__:
        raise AttributeError(f"module 'agentflow' has no attribute {name!r}")
    from agentflow.api import functions  # noqa: PLC0415  # only a program that uses it pays for it

    return getattr(functions, name)


def __dir__() -> list[str]:
    return __all__
