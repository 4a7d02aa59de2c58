"""Capabilities to build with, each of one kind; all else around the agent is in memory."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from msgspec import structs

from agentflow.compose.builder import AgentBuilder, Audience
from agentflow.compose.capability import (
    Capability,
    ContextChannel,
    FactoryInput,
    HookChannel,
    ModelChannel,
    ObserverChannel,
    ToolChannel,
    ToolFactory,
    ToolFactoryChannel,
)
from agentflow.core.events import Event, Replied, RunEnded, ToolFinished
from agentflow.core.hook import Hook
from agentflow.core.pending import Consent
from agentflow.core.points import HookEvent, Point
from agentflow.core.ports import Model, Observer
from agentflow.core.run import Run
from agentflow.core.task import Phase
from agentflow.core.tool import Output, Tool, ToolContext
from agentflow.loop.agent import Agent, Surroundings
from agentflow.loop.run import run_agent
from agentflow.model.scripted import Turn
from agentflow.workspace.path_guard import PathGuard
from tests.support.boxes import boxed
from tests.unit.loop.stage import Entries, Wanted, a_role, a_tool, call, script, submit, turn
from tests.unit.tools.bench import Records

TURNS = (turn(call("Look")), turn(call("Look"), call("Nowhere")), submit())
"""A short run with a call that fails."""


def look(wanted: Wanted, context: ToolContext) -> Output:
    """Look at something."""
    return Output(content=f"{context.call_id} saw {wanted.word}")


LOOK = a_tool("Look", look)
PEEK = a_tool("Peek", look)


@dataclass(frozen=True)
class Gives:
    tools: tuple[Tool, ...] = (LOOK,)

    def install_tools(self, tools: ToolChannel) -> None:
        tools.add(*self.tools)


@dataclass(frozen=True)
class EndsWith:
    tool: Tool

    def install_tools(self, tools: ToolChannel) -> None:
        tools.end_with(self.tool)


@dataclass(frozen=True)
class Answers:
    model: Model
    model_id: str = "m-1"

    def install_model(self, model: ModelChannel) -> None:
        model.use(self.model, self.model_id)


@dataclass(frozen=True)
class Says:
    text: str
    priority: int = 0

    def install_context(self, context: ContextChannel) -> None:
        context.add(self.text, priority=self.priority)


@dataclass(frozen=True)
class Makes:
    factory: ToolFactory

    def install_tool_factories(self, factories: ToolFactoryChannel) -> None:
        factories.add(self.factory)


@dataclass(frozen=True)
class Hooked:
    hooks: tuple[Hook, ...]

    def install_hooks(self, hooks: HookChannel) -> None:
        hooks.add(*self.hooks)


@dataclass(frozen=True)
class Watches:
    observer: Observer

    def install_observer(self, observers: ObserverChannel) -> None:
        observers.add(self.observer)


class Everything:
    """Uses all six channels and writes down what it was handed."""

    def __init__(self) -> None:
        self.handed: list[tuple[str, Any]] = []
        self.events: list[Event] = []

    def install_observer(self, observers: ObserverChannel) -> None:
        self.handed.append(("observer", observers))
        observers.add(self.events.append)

    def install_tool_factories(self, factories: ToolFactoryChannel) -> None:
        self.handed.append(("tool_factories", factories))
        factories.add(peek)

    def install_context(self, context: ContextChannel) -> None:
        self.handed.append(("context", context))
        context.add("Look twice.")

    def install_model(self, model: ModelChannel) -> None:
        self.handed.append(("model", model))
        model.use(script(*TURNS), "m-2")

    def install_hooks(self, hooks: HookChannel) -> None:
        self.handed.append(("hooks", hooks))
        hooks.add(a_hook("all"))

    def install_tools(self, tools: ToolChannel) -> None:
        self.handed.append(("tools", tools))
        tools.add(LOOK)


def silent(event: HookEvent) -> None:
    """Decide nothing."""


def a_hook(name: str, priority: int = 0) -> Hook:
    return Hook(name=name, point=Point.PRE_TOOL_USE, body=silent, priority=priority)


def peek(settled: FactoryInput) -> Tool:
    """Make a tool that does what the first settled one does."""
    return settled.tools[0].replace(name="Peek")


def around(root: Path) -> Surroundings:
    return Surroundings(
        workspace=PathGuard(root),
        runner=boxed(root),
        ledger=Records(),
        journal=Entries(),
        outputs=root,
        task_id="t",
        number=1,
        iteration=1,
        phase=Phase.IMPLEMENTATION,
        transcript=root / "runs/1-implementer.jsonl",
        consent=Consent.SUSPEND,
        has_asked=False,
        owners={"Edit": "implementer"},
    )


def built(place: Surroundings, *capabilities: Capability) -> Agent:
    builder = AgentBuilder.base(a_role(), place)
    for capability in capabilities:
        builder = builder.with_capability(capability)
    return builder.build()


def parts_of(agent: Agent) -> dict[str, Any]:
    """Return the fields of an agent, its hooks as a tuple."""
    return {**structs.asdict(agent), "hooks": agent.hooks.hooks}


def run(agent: Agent) -> Run:
    return anyio.run(run_agent, agent, "do it")


def talk(*turns: Turn) -> Answers:
    return Answers(model=script(*turns))


def untimed(events: list[Event]) -> list[Event]:
    return [
        event.replace(seconds=0) if isinstance(event, Replied | RunEnded | ToolFinished) else event
        for event in events
    ]


def wiring(agent: Agent) -> dict[str, Any]:
    """Return what is wired into an agent; the system prompt stands as its digest."""
    observe = agent.observe
    audience = observe if isinstance(observe, Audience) else Audience((), (observe,))
    return {
        "role": agent.role.name,
        "model": agent.model.name,
        "model_id": agent.model_id,
        "system": hashlib.sha256(agent.system.encode()).hexdigest()[:12],
        "tools": [tool.name for tool in agent.tools],
        "submit": agent.submit.name if agent.submit else None,
        "hooks": [hook.name for hook in agent.hooks.hooks],
        "records": [name_of(record) for record in audience.records],
        "observers": [name_of(observer) for observer in audience.observers],
    }


def name_of(observer: Observer) -> str:
    return str(getattr(observer, "__qualname__", type(observer).__name__))
