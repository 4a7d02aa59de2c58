"""What capabilities have installed so far, channel by channel; made anew for each build."""

import re

from agentflow.compose.channels import (
    Capability,
    InstallsContext,
    InstallsHooks,
    InstallsModel,
    InstallsObserver,
    InstallsToolFactories,
    InstallsTools,
    Settled,
    ToolFactory,
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
from agentflow.tools.registry import NAMES, Toolbox

_ITEM = re.compile(r"^- .*\n?(?:^[ ]+\S.*\n?)*", re.MULTILINE)
"""An item of a Markdown list, with the indented lines that go on with it."""
_NAMED = re.compile(r"`(\w+)`")


class _Tools:
    def __init__(self, tools: list[Tool], submits: list[Tool]) -> None:
        self._tools = tools
        self._submits = submits

    def add(self, *tools: Tool) -> None:
        self._tools.extend(tools)

    def end_with(self, tool: Tool) -> None:
        self._submits.append(tool)


class _Hooks:
    def __init__(self, hooks: list[Hook]) -> None:
        self._hooks = hooks

    def add(self, *hooks: Hook) -> None:
        self._hooks.extend(hooks)


class _Models:
    def __init__(self, models: list[tuple[Model, str]]) -> None:
        self._models = models

    def use(self, model: Model, model_id: str) -> None:
        self._models.append((model, model_id))


class _Section(Record):
    """A part of the system prompt; its list items on absent tools go."""

    priority: int
    text: str
    absent: frozenset[str] = frozenset()


class _Context:
    def __init__(self, sections: list[_Section]) -> None:
        self._sections = sections

    def add(self, section: str, *, priority: int = 0) -> None:
        self._sections.append(_Section(priority=priority, text=section))

    def add_prompt(self, section: str, *, priority: int = 0) -> None:
        self._sections.append(_Section(priority=priority, text=section, absent=NAMES))


class _Factories:
    def __init__(self, factories: list[ToolFactory]) -> None:
        self._factories = factories

    def add(self, factory: ToolFactory) -> None:
        self._factories.append(factory)


class _Observers:
    def __init__(self, records: list[Observer], observers: list[Observer]) -> None:
        self._records = records
        self._observers = observers

    def add(self, observer: Observer) -> None:
        self._observers.append(observer)

    def keep(self, record: Observer) -> None:
        self._records.append(record)


class NoModel(Record):
    """Stands where no model was installed; whoever asks it is told so."""

    name: str = "none"

    def refusal(self, task: str) -> str | None:  # noqa: ARG002  # a port's signature
        return "no model is installed"

    async def complete(self, request: Request) -> Reply:
        raise ModelRejected(f"no model is installed for {request.agent}")


class Draft:
    def __init__(self) -> None:
        self._tools: list[Tool] = []
        self._submits: list[Tool] = []
        self._hooks: list[Hook] = []
        self._models: list[tuple[Model, str]] = []
        self._sections: list[_Section] = []
        self._factories: list[ToolFactory] = []
        self._records: list[Observer] = []
        self._observers: list[Observer] = []

    def install(self, capability: Capability) -> None:
        """Hand a capability each channel that it asks for, and nothing else."""
        if isinstance(capability, InstallsTools):
            capability.install_tools(_Tools(self._tools, self._submits))
        if isinstance(capability, InstallsHooks):
            capability.install_hooks(_Hooks(self._hooks))
        if isinstance(capability, InstallsModel):
            capability.install_model(_Models(self._models))
        if isinstance(capability, InstallsContext):
            capability.install_context(_Context(self._sections))
        if isinstance(capability, InstallsToolFactories):
            capability.install_tool_factories(_Factories(self._factories))
        if isinstance(capability, InstallsObserver):
            capability.install_observer(_Observers(self._records, self._observers))

    def model(self) -> tuple[Model, str]:
        """Return the last model that was installed and its id."""
        return self._models[-1] if self._models else (NoModel(), "none")

    def system(self, tools: tuple[Tool, ...]) -> str:
        """Return the sections of the system prompt of an agent with these tools, joined."""
        ordered = sorted(self._sections, key=lambda section: -section.priority)
        offered = {tool.name for tool in tools}
        return redacted("\n\n".join(without_absent(each.text, each.absent - offered) for each in ordered))

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
        return Chain.of(*self._hooks)

    def observer(self) -> Audience:
        return Audience(tuple(self._records), tuple(self._observers))


def drafted(capabilities: tuple[Capability, ...]) -> Draft:
    """Return what these capabilities install together."""
    draft = Draft()
    for capability in capabilities:
        draft.install(capability)
    return draft


def without_absent(text: str, absent: frozenset[str]) -> str:
    """Return Markdown without the list items that name one of these tools in backticks."""
    return _ITEM.sub(lambda item: item[0] if absent.isdisjoint(_NAMED.findall(item[0])) else "", text)


def _by_name(*tools: Tool) -> tuple[Tool, ...]:
    return tuple(sorted(Toolbox.of(*tools).tools, key=lambda tool: tool.name))
