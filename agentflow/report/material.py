"""What the state of a task refers to, as a report or a prompt quotes it."""

from collections.abc import Callable, Mapping

from agentflow.core.evidence import CheckRun
from agentflow.core.record import Record
from agentflow.core.role import Role


class Material(Record):
    """What the state refers to and a brief quotes."""

    baseline: tuple[CheckRun, ...]
    final: tuple[CheckRun, ...]
    shown: Callable[[tuple[str, ...]], tuple[CheckRun, ...]]
    """Evidence ids to what the checks showed."""
    diff: str
    """From the tree before the task to the tree now."""
    folder: str
    """The task's folder, relative to the repository."""
    held: tuple[CheckRun, ...] = ()
    """The final code under the checks from before the task, where they were changed."""
    fresh: tuple[CheckRun, ...] = ()
    """Changed tests on the code from before the task."""
    surface: tuple[str, ...] = ()
    """What belonged to the checks before the task, in lines."""
    changed: tuple[str, ...] = ()
    """The files that differ from before the task."""
    roles: Mapping[str, Role] = {}
    """The roles by their part, each with the limits that are left for it."""
    network: tuple[str, ...] = ()
    """Whose commands reach the network."""


def fenced(text: str, language: str = "") -> str:
    """Return text in a fence that nothing inside it can close."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"
