"""The six channels through which a capability installs itself, and how each settles."""

from collections.abc import Callable
from typing import Protocol

from agentflow.core.errors import ConfigError
from agentflow.core.hook import Hook
from agentflow.core.ports import Model, Observer
from agentflow.core.record import Record
from agentflow.core.tool import Tool
from agentflow.tools.registry import NAMES


class Settled(Record):
    """What a tool factory builds on: the final model, and all tools that were installed directly."""

    model: Model
    model_id: str
    tools: tuple[Tool, ...]


ToolFactory = Callable[[Settled], Tool]
"""Makes one tool once model and tools are settled."""


class ToolChannel:
    def __init__(self, tools: list[Tool], submits: list[Tool]) -> None:
        self._tools = tools
        self._submits = submits

    def add(self, *tools: Tool) -> None:
        self._tools.extend(tools)

    def end_with(self, tool: Tool) -> None:
        """Add the tool that ends the run; a run has one."""
        self._submits.append(tool)


class HookChannel:
    def __init__(self, hooks: list[Hook]) -> None:
        self._hooks = hooks

    def add(self, *hooks: Hook) -> None:
        self._hooks.extend(hooks)


class ModelChannel:
    def __init__(self, models: list[tuple[Model, str]]) -> None:
        self._models = models

    def use(self, model: Model, model_id: str) -> None:
        """Let this model answer; the last one that is installed does."""
        self._models.append((model, model_id))


class Section(Record):
    """A part of the system prompt; its list items on absent tools go."""

    priority: int
    text: str
    absent: frozenset[str] = frozenset()


class ContextChannel:
    def __init__(self, sections: list[Section]) -> None:
        self._sections = sections

    def add(self, section: str, *, priority: int = 0) -> None:
        """Add a section to the system prompt; higher priority stands further up, ties by insertion."""
        self._sections.append(Section(priority=priority, text=section))

    def add_prompt(self, section: str, *, priority: int = 0) -> None:
        """Add one that loses the list items which name, in backticks, a tool that the agent does not get."""
        self._sections.append(Section(priority=priority, text=section, absent=NAMES))


class ToolFactoryChannel:
    def __init__(self, factories: list[ToolFactory]) -> None:
        self._factories = factories

    def add(self, factory: ToolFactory) -> None:
        self._factories.append(factory)


class ObserverChannel:
    def __init__(self, records: list[Observer], observers: list[Observer]) -> None:
        self._records = records
        self._observers = observers

    def add(self, observer: Observer) -> None:
        """Tell it what happens; one that raises is dropped."""
        self._observers.append(observer)

    def keep(self, record: Observer) -> None:
        """Have every event written down before anyone is told; a run that cannot be recorded ends."""
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

CHANNELS = ("tools", "hooks", "model", "context", "tool_factories", "observer")
"""In the order in which a capability installs itself."""
PREFIX = "install_"


def channels_of(capability: object) -> tuple[str, ...]:
    """Return the channels a capability uses. Raises ConfigError for none, or for one that does not exist."""
    methods = {name for name in dir(capability) if name.startswith(PREFIX)}
    used = tuple(name for name in CHANNELS if callable(getattr(capability, PREFIX + name, None)))
    strange = sorted(methods - {PREFIX + name for name in used})
    if used and not strange:
        return used
    hint = f"a capability has one or more of {', '.join(PREFIX + name for name in CHANNELS)}"
    name = type(capability).__name__
    problem = f"{', '.join(strange)} leads to no channel" if strange else "it installs nothing"
    raise ConfigError(f"{name} is no capability: {problem}", hint=hint)
