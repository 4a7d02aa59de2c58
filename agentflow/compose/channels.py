"""The six channels through which a capability installs itself, and how each settles."""

from typing import Protocol, runtime_checkable

from agentflow.core.errors import ConfigError
from agentflow.core.hook import Hook
from agentflow.core.ports import Model, Observer
from agentflow.core.record import Record
from agentflow.core.tool import Tool


class Settled(Record):
    """What a tool factory builds on: the final model, and all tools that were installed directly."""

    model: Model
    model_id: str
    tools: tuple[Tool, ...]


class ToolFactory(Protocol):
    """Makes one tool once model and tools are settled."""

    def __call__(self, settled: Settled, /) -> Tool: ...


class ToolChannel(Protocol):
    def add(self, *tools: Tool) -> None: ...

    def end_with(self, tool: Tool) -> None:
        """Add the tool that ends the run; a run has one."""


class HookChannel(Protocol):
    def add(self, *hooks: Hook) -> None: ...


class ModelChannel(Protocol):
    def use(self, model: Model, model_id: str) -> None:
        """Let this model answer; the last one that is installed does."""


class ContextChannel(Protocol):
    def add(self, section: str, *, priority: int = 0) -> None:
        """Add a section to the system prompt; higher priority stands further up, ties by insertion."""

    def add_prompt(self, section: str, *, priority: int = 0) -> None:
        """Add one that loses the list items which name, in backticks, a tool that the agent does not get."""


class ToolFactoryChannel(Protocol):
    def add(self, factory: ToolFactory) -> None: ...


class ObserverChannel(Protocol):
    def add(self, observer: Observer) -> None:
        """Tell it what happens; one that raises is dropped."""

    def keep(self, record: Observer) -> None:
        """Have every event written down before anyone is told; a run that cannot be recorded ends."""


@runtime_checkable
class InstallsTools(Protocol):
    def install_tools(self, tools: ToolChannel, /) -> None: ...


@runtime_checkable
class InstallsHooks(Protocol):
    def install_hooks(self, hooks: HookChannel, /) -> None: ...


@runtime_checkable
class InstallsModel(Protocol):
    def install_model(self, model: ModelChannel, /) -> None: ...


@runtime_checkable
class InstallsContext(Protocol):
    def install_context(self, context: ContextChannel, /) -> None: ...


@runtime_checkable
class InstallsToolFactories(Protocol):
    def install_tool_factories(self, factories: ToolFactoryChannel, /) -> None: ...


@runtime_checkable
class InstallsObserver(Protocol):
    def install_observer(self, observers: ObserverChannel, /) -> None: ...


Capability = (
    InstallsTools | InstallsHooks | InstallsModel | InstallsContext | InstallsToolFactories | InstallsObserver
)

CHANNELS = ("tools", "hooks", "model", "context", "tool_factories", "observer")
"""In the order in which a capability installs itself."""
_PREFIX = "install_"


def channels_of(capability: object) -> tuple[str, ...]:
    """Return the channels a capability uses. Raises ConfigError for none, or for one that does not exist."""
    methods = {name for name in dir(capability) if name.startswith(_PREFIX)}
    used = tuple(name for name in CHANNELS if callable(getattr(capability, _PREFIX + name, None)))
    strange = sorted(methods - {_PREFIX + name for name in used})
    if used and not strange:
        return used
    hint = f"a capability has one or more of {', '.join(_PREFIX + name for name in CHANNELS)}"
    name = type(capability).__name__
    problem = f"{', '.join(strange)} leads to no channel" if strange else "it installs nothing"
    raise ConfigError(f"{name} is no capability: {problem}", hint=hint)
