"""What capabilities install together, channel by channel; made anew for each build."""

import re

from agentflow.compose.channels import (
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
    channels_of,
)
from agentflow.compose.observers import Audience
from agentflow.core.errors import ConfigError, ModelRejected
from agentflow.core.hook import Hook
from agentflow.core.messages import Reply, Request
from agentflow.core.ports import Model, Observer
from agentflow.core.record import Record
from agentflow.core.tool import Tool
from agentflow.hooks.chain import Chain
from agentflow.redact import redacted
from agentflow.tools.registry import Toolbox

_ITEM = re.compile(r"^- .*\n?(?:^[ ]+\S.*\n?)*", re.MULTILINE)
"""An item of a Markdown list, with the indented lines that go on with it."""
_NAMED = re.compile(r"`(\w+)`")


class NoModel(Record):
    """Stands where no model was installed; whoever asks it is told so."""

    name: str = "none"

    def refusal(self, task: str) -> str | None:  # noqa: ARG002  # a port's signature
        return "no model is installed"

    async def complete(self, request: Request) -> Reply:
        raise ModelRejected(f"no model is installed for {request.agent}")


class Draft:
    def __init__(self, capabilities: tuple[Capability, ...]) -> None:
        """Hand each capability the channels that it asks for, and nothing else."""
        self._tools: list[Tool] = []
        self._submits: list[Tool] = []
        self._hooks: list[Hook] = []
        self._models: list[tuple[Model, str]] = []
        self._sections: list[Section] = []
        self._factories: list[ToolFactory] = []
        self._records: list[Observer] = []
        self._observers: list[Observer] = []
        channels = {
            "tools": ToolChannel(self._tools, self._submits),
            "hooks": HookChannel(self._hooks),
            "model": ModelChannel(self._models),
            "context": ContextChannel(self._sections),
            "tool_factories": ToolFactoryChannel(self._factories),
            "observer": ObserverChannel(self._records, self._observers),
        }
        for capability in capabilities:
            for name in channels_of(capability):
                getattr(capability, PREFIX + name)(channels[name])

    def model(self) -> tuple[Model, str]:
        return self._models[-1] if self._models else (NoModel(), "none")

    def system(self, tools: tuple[Tool, ...]) -> str:
        """Return the sections of the system prompt of an agent with these tools, joined."""
        ordered = sorted(self._sections, key=lambda section: -section.priority)
        offered = {tool.name for tool in tools}
        return redacted("\n\n".join(_without(each.absent - offered, each.text) for each in ordered))

    def tools(self, model: Model, model_id: str) -> tuple[Tool, ...]:
        """Return all tools by name, the factories' too. Raises ConfigError for two of one name."""
        direct = _by_name(*self._tools, *self._submits)
        settled = Settled(model=model, model_id=model_id, tools=direct)
        return _by_name(*direct, *(factory(settled) for factory in self._factories))

    def submit(self) -> Tool | None:
        """Return the tool that ends the run. Raises ConfigError for two."""
        if len(self._submits) > 1:
            names = ", ".join(sorted(tool.name for tool in self._submits))
            raise ConfigError(f"a run ends with one tool, not with {names}")
        return self._submits[0] if self._submits else None

    def hooks(self) -> Chain:
        return Chain(self._hooks)

    def observer(self) -> Audience:
        return Audience(tuple(self._records), tuple(self._observers))


def _without(absent: frozenset[str], text: str) -> str:
    """Return Markdown without the list items that name one of these tools in backticks."""
    return _ITEM.sub(lambda item: item[0] if absent.isdisjoint(_NAMED.findall(item[0])) else "", text)


def _by_name(*tools: Tool) -> tuple[Tool, ...]:
    return tuple(sorted(Toolbox.of(*tools).tools, key=lambda tool: tool.name))
