"""From a role and a list of capabilities to an agent."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from agentflow.compose.capability import (
    PREFIX,
    Capability,
    ContextChannel,
    HookChannel,
    ModelChannel,
    ObserverChannel,
    Section,
    Settled,
    ToolChannel,
    ToolFactory,
    ToolFactoryChannel,
    list_channels,
)
from agentflow.compose.standard import Kit, list_standard_capabilities
from agentflow.core.errors import ConfigError, ModelRejected
from agentflow.core.events import Event, RunStarted, Warned
from agentflow.core.hook import Hook
from agentflow.core.messages import Reply, Request
from agentflow.core.ports import Model, Observer
from agentflow.core.record import Record
from agentflow.core.role import Role
from agentflow.core.tool import Tool
from agentflow.hooks.chain import Chain
from agentflow.loop.agent import Agent, Surroundings
from agentflow.redact import redact_text
from agentflow.store.tasks import tell_observers
from agentflow.tools.registry import Toolbox

_ITEM = re.compile(r"^- .*\n?(?:^[ ]+\S.*\n?)*", re.MULTILINE)
"""An item of a Markdown list, with the indented lines that belong to it."""
_NAMED = re.compile(r"`(\w+)`")


@dataclass(frozen=True, slots=True)
class AgentBuilder:
    """A role with capabilities; adding one gives a new builder."""

    _role: Role
    _around: Surroundings
    _capabilities: tuple[Capability, ...] = ()

    @classmethod
    def base(cls, role: Role, around: Surroundings) -> Self:
        """Begin with no tool, no hook, no prompt, no model and no observer."""
        return cls(role, around)

    @classmethod
    def standard(cls, role: Role, around: Surroundings, kit: Kit) -> Self:
        """Begin with the capabilities that `standard.py` lists."""
        return cls(role, around, list_standard_capabilities(role, kit))

    def with_capability(self, capability: Capability) -> Self:
        """Return a builder with one more. Raises ConfigError for what installs nothing."""
        list_channels(capability)
        return type(self)(self._role, self._around, (*self._capabilities, capability))

    def build(self) -> Agent:
        """Return the agent; the same builder always gives an equal one. Raises ConfigError for a conflict."""
        draft = Draft.of(self._capabilities)
        model, model_id = draft.choose_model()
        tools = draft.make_tools(model, model_id)
        return Agent(
            role=self._role,
            model=model,
            model_id=model_id,
            system=draft.write_prompt(tools),
            submit=draft.choose_submit(),
            tools=tools,
            hooks=Chain(draft.hooks, (self._role.source,)),
            observe=Audience(tuple(draft.records), tuple(draft.observers)),
            around=self._around,
        )


@dataclass(slots=True)
class Draft:
    """What a list of capabilities installs; every build has its own."""

    tools: list[Tool] = field(default_factory=list)
    submits: list[Tool] = field(default_factory=list)
    hooks: list[Hook] = field(default_factory=list)
    models: list[tuple[Model, str]] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    factories: list[ToolFactory] = field(default_factory=list)
    records: list[Observer] = field(default_factory=list)
    observers: list[Observer] = field(default_factory=list)

    @classmethod
    def of(cls, capabilities: tuple[Capability, ...]) -> Self:
        """Give each capability the channels that it asks for, and no other."""
        draft = cls()
        channels = {
            "tools": ToolChannel(draft.tools, draft.submits),
            "hooks": HookChannel(draft.hooks),
            "model": ModelChannel(draft.models),
            "context": ContextChannel(draft.sections),
            "tool_factories": ToolFactoryChannel(draft.factories),
            "observer": ObserverChannel(draft.records, draft.observers),
        }
        for capability in capabilities:
            for name in list_channels(capability):
                getattr(capability, PREFIX + name)(channels[name])
        return draft

    def choose_model(self) -> tuple[Model, str]:
        """Return the model that was installed last, and the id by which it is asked."""
        return self.models[-1] if self.models else (NoModel(), "none")

    def choose_submit(self) -> Tool | None:
        """Return the tool that ends the run. Raises ConfigError for two."""
        if len(self.submits) > 1:
            names = ", ".join(sorted(tool.name for tool in self.submits))
            raise ConfigError(f"a run ends with one tool, not with {names}")
        return self.submits[0] if self.submits else None

    def make_tools(self, model: Model, model_id: str) -> tuple[Tool, ...]:
        """Return all tools by name, also those of the factories. Raises ConfigError for two of one name."""
        direct = _sort_tools(*self.tools, *self.submits)
        settled = Settled(model=model, model_id=model_id, tools=direct)
        return _sort_tools(*direct, *(factory(settled) for factory in self.factories))

    def write_prompt(self, tools: tuple[Tool, ...]) -> str:
        """Return the system prompt of an agent with these tools."""
        ordered = sorted(self.sections, key=lambda section: -section.priority)
        offered = {tool.name for tool in tools}
        return redact_text("\n\n".join(_drop_items(each.absent - offered, each.text) for each in ordered))


class NoModel(Record):
    """The model of an agent for which none was installed; it refuses every request."""

    name: str = "none"

    def refusal(self, task: str) -> str | None:  # noqa: ARG002  # a port's signature
        return "no model is installed"

    async def complete(self, request: Request) -> Reply:
        raise ModelRejected(f"no model is installed for {request.agent}")


class Audience:
    """All observers of a run as one: first each event is written down, then each observer gets it.

    An observer that raises gets no more events of that run. What a record raises ends the run.
    """

    def __init__(self, records: tuple[Observer, ...], observers: tuple[Observer, ...]) -> None:
        self.records = records
        self.observers = observers
        self._present = list[Callable[[Event], None]](observers)

    def __call__(self, event: Event, /) -> None:
        if isinstance(event, RunStarted):
            self._present[:] = self.observers
        for record in self.records:
            record(event)
        for message in sorted(tell_observers(self._present, event)):
            self(Warned(message=message))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Audience):
            return NotImplemented
        return (self.records, self.observers) == (other.records, other.observers)

    def __hash__(self) -> int:
        return hash((self.records, self.observers))


def _drop_items(absent: frozenset[str], text: str) -> str:
    """Return Markdown without the list items that name one of these tools in backticks."""
    return _ITEM.sub(lambda item: item[0] if absent.isdisjoint(_NAMED.findall(item[0])) else "", text)


def _sort_tools(*tools: Tool) -> tuple[Tool, ...]:
    return tuple(sorted(Toolbox.of(*tools).tools, key=lambda tool: tool.name))
