"""Hooks: what one is, what it answers, and what all hooks of a point decide."""

from collections.abc import Awaitable, Callable
from enum import IntEnum, StrEnum
from typing import Any

from agentflow.core.messages import Reply, Request
from agentflow.core.points import HookEvent, Point
from agentflow.core.record import Record

RULES = "permission rules"
"""The hook that holds the user's rules."""


class Decision(IntEnum):
    """A hook's decision; of several hooks the highest counts."""

    NONE = 0
    ALLOW = 1
    ASK = 2
    DENY = 3


class HookResult(Record):
    """What one hook answers; `POINTS` says which fields mean something at a point."""

    decision: Decision = Decision.NONE
    reason: str | None = None
    block: str | None = None
    """Why something must not happen."""
    bail: str | None = None
    """The result of the stopping sub-agent, in place of its own."""
    stop: str | None = None
    """Why the run ends here."""
    updated_input: dict[str, Any] | None = None
    """The whole new input."""
    updated_output: str | None = None
    """The result that the model sees instead."""
    request: Request | None = None
    reply: Reply | None = None
    context: str | None = None
    """A text for the model."""
    halt: str | None = None
    """Why the whole task ends."""
    notice: str | None = None
    """For the person."""
    terminal: str | None = None
    """A bell, title or notification for the person's terminal."""


class Origin(IntEnum):
    """The source of a hook; at equal priority they run in this order."""

    BUILT_IN = 0
    PLUGIN = 1
    USER = 2
    PROJECT = 3


class OnError(StrEnum):
    """What counts when a hook fails: go on or block; without it the point decides."""

    OPEN = "open"
    CLOSED = "closed"


class Script(Record):
    """A hook whose body is a process."""

    command: str
    args: tuple[str, ...] | None = None
    """Present: `command` is run without a shell."""
    shell: str = "sh"
    timeout: float | None = None
    """Seconds; None is the default of the point."""
    condition: str | None = None
    """A permission rule; the script runs for the calls it is about."""
    sandbox: bool = False
    """It runs with the rights of a role that only reads, or not at all."""
    plugin: str | None = None
    """Folder that CLAUDE_PLUGIN_ROOT names."""
    sealed: tuple[tuple[str, str], ...] = ()
    """Files of the repository that it may run or read, each with the hash that was trusted."""
    written: tuple[str, ...] = ()
    """Files of the repository that it only writes."""


HookFunction = Callable[[HookEvent], HookResult | Awaitable[HookResult | None] | None]


class Hook(Record):
    """Something that is asked at a point."""

    name: str
    """Its name for people."""
    point: Point
    body: HookFunction | Script
    matcher: str = ""
    priority: int = 0
    """Higher ones come first."""
    origin: Origin = Origin.BUILT_IN
    on_error: OnError | None = None
    source: str = ""
    """The file it was read from."""
    scope: str = ""
    """The role or skill in whose frontmatter it stands: it is asked only while that is active."""
    once: bool = False
    """It is asked once in a run."""


class HookDecision(Record):
    """What the hooks of a point decide together."""

    decision: Decision = Decision.NONE
    reasons: tuple[str, ...] = ()
    """The reasons of the hooks whose decision counts."""
    deciders: tuple[str, ...] = ()
    """The names of those hooks."""
    contexts: tuple[str, ...] = ()
    """Texts for the model."""
    updated_input: dict[str, Any] | None = None
    updated_output: str | None = None
    request: Request | None = None
    reply: Reply | None = None
    bail: str | None = None
    stop: str | None = None
    """Why the run ends, from the first hook that says so."""
    halt: str | None = None
    """Why the whole task ends, from the first hook that says so."""
    notices: tuple[str, ...] = ()
    """For the person; safe to print."""
    signals: tuple[str, ...] = ()
    """Bells, titles and notifications for the person's terminal."""

    @property
    def reason(self) -> str:
        return "\n".join(self.reasons)

    @property
    def context(self) -> str:
        return "\n\n".join(self.contexts)


NO_DECISION = HookDecision()
"""The decision where there is no hook."""
