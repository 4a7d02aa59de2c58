"""A capability: a part of an agent, which installs itself through one or more of six channels."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from agentflow.core.errors import ConfigError
from agentflow.core.hook import Hook
from agentflow.core.ports import Model, Observer
from agentflow.core.record import Record
from agentflow.core.tool import Tool
from agentflow.tools.registry import NAMES


class FactoryInput(Record):
    """The input of a tool factory: the final model, and the tools that were installed directly."""

    model: Model
    model_id: str
    tools: tuple[Tool, ...]


ToolFactory = Callable[[FactoryInput], Tool]
"""Makes one tool once the model and the other tools are known."""


@dataclass
class ToolChannel:
    _tools: list[Tool]
    _submits: list[Tool]

    def add(self, *tools: Tool) -> None:
        self._tools.extend(tools)

    def end_with(self, tool: Tool) -> None:
        """Add the tool that ends the run; a run has one."""
        self._submits.append(tool)


@dataclass
class HookChannel:
    _hooks: list[Hook]

    def add(self, *hooks: Hook) -> None:
        self._hooks.extend(hooks)


@dataclass
class ModelChannel:
    _models: list[tuple[Model, str]]

    def use(self, model: Model, model_id: str) -> None:
        """Let this model answer; the last one that is installed does."""
        self._models.append((model, model_id))


class Section(Record):
    """A part of the system prompt; its list items on absent tools go."""

    priority: int
    text: str
    absent: frozenset[str] = frozenset()


@dataclass
class ContextChannel:
    _sections: list[Section]

    def add(self, section: str, *, priority: int = 0) -> None:
        """Add a section to the system prompt; higher priority stands further up, ties by insertion."""
        self._sections.append(Section(priority=priority, text=section))

    def add_prompt(self, section: str, *, priority: int = 0) -> None:
        """Add a section without the list items that name, in backticks, a tool that the agent lacks."""
        self._sections.append(Section(priority=priority, text=section, absent=NAMES))


@dataclass
class ToolFactoryChannel:
    _factories: list[ToolFactory]

    def add(self, factory: ToolFactory) -> None:
        self._factories.append(factory)


@dataclass
class ObserverChannel:
    _records: list[Observer]
    _observers: list[Observer]

    def add(self, observer: Observer) -> None:
        """Pass each event to an observer; one that raises is dropped."""
        self._observers.append(observer)

    def keep(self, record: Observer) -> None:
        """Have every event written down before any observer gets it; a run that cannot be recorded ends."""
        self._records.append(record)


class InstallsTools(Protocol):
    def install_tools(self, tools: ToolChannel, /) -> None: ...


class InstallsHooks(Protocol):
    def install_hooks(self, hooks: HookChannel, /) -> None: ...


class InstallsModel(Protocol):
    def install_model(self, model: ModelChannel, /) -> None: ...


class InstallsContext(Protocol):
    def install_context(self, context: ContextChannel, /) -> None: ...


class InstallsToolFactories(Protocol):
    def install_tool_factories(self, factories: ToolFactoryChannel, /) -> None: ...


class InstallsObserver(Protocol):
    def install_observer(self, observers: ObserverChannel, /) -> None: ...


Capability = (
    InstallsTools | InstallsHooks | InstallsModel | InstallsContext | InstallsToolFactories | InstallsObserver
)

PREFIX = "install_"
CHANNELS = ("tools", "hooks", "model", "context", "tool_factories", "observer")
"""In the order in which a capability installs itself."""


def list_channels(capability: object) -> tuple[str, ...]:
    """Return the channels that a capability uses. Raises ConfigError for none, or for an unknown one."""
    methods = {name for name in dir(capability) if name.startswith(PREFIX)}
    used = tuple(name for name in CHANNELS if callable(getattr(capability, PREFIX + name, None)))
    unknown = sorted(methods - {PREFIX + name for name in used})
    if used and not unknown:
        return used
    hint = f"a capability has one or more of {', '.join(PREFIX + name for name in CHANNELS)}"
    problem = f"{', '.join(unknown)} leads to no channel" if unknown else "it installs nothing"
    raise ConfigError(f"{type(capability).__name__} is not a capability: {problem}", hint=hint)
