"""From a role and a list of capabilities to an agent, and from the roles of a crew to its agents."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Self

from msgspec import Meta

from agentflow.compose.capability import (
    PREFIX,
    Capability,
    ContextChannel,
    FactoryInput,
    HookChannel,
    ModelChannel,
    ObserverChannel,
    Section,
    ToolChannel,
    ToolFactory,
    ToolFactoryChannel,
    list_channels,
)
from agentflow.compose.standard import Kit, list_standard_capabilities
from agentflow.compose.subagents import SubagentRequest, Subagents, restrict_subagent, restrict_successor
from agentflow.core.errors import ConfigError, ModelRejected, NotAllowed
from agentflow.core.events import Delegated, Event, RunStarted, Warned
from agentflow.core.hook import Hook
from agentflow.core.messages import Reply, Request
from agentflow.core.pending import Answer
from agentflow.core.ports import Model, Observer
from agentflow.core.record import Record, copy_shared
from agentflow.core.role import HANDOFF, Role
from agentflow.core.run import HandOff, Run
from agentflow.core.tool import Category, Effect, Output, Tool, ToolContext
from agentflow.hooks.chain import Chain
from agentflow.library.skills import Offer
from agentflow.loop.agent import Agent, Persona, Surroundings
from agentflow.loop.prompts import read_prompt
from agentflow.loop.run import continue_run, run_agent
from agentflow.redact import redact_text
from agentflow.store.tasks import tell_observers
from agentflow.tools.registry import Toolbox

_ITEM = re.compile(r"^- .*\n?(?:^[ ]+\S.*\n?)*", re.MULTILINE)
"""An item of a Markdown list, with the indented lines that belong to it."""
_NAMED = re.compile(r"`(\w+)`")
MAX_HANDOFFS = 8


@dataclass(frozen=True, slots=True)
class AgentBuilder:
    """A role with capabilities; adding one gives a new builder."""

    _role: Role
    _around: Surroundings
    _capabilities: tuple[Capability, ...] = ()

    @classmethod
    def base(cls, role: Role, around: Surroundings) -> Self:
        return cls(role, around)

    @classmethod
    def standard(cls, role: Role, around: Surroundings, kit: Kit) -> Self:
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
    """The parts that a list of capabilities installs; every build has its own."""

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
        settled = FactoryInput(model=model, model_id=model_id, tools=direct)
        return _sort_tools(*direct, *(factory(settled) for factory in self.factories))

    def write_prompt(self, tools: tuple[Tool, ...]) -> str:
        ordered = sorted(self.sections, key=lambda section: -section.priority)
        offered = {tool.name for tool in tools}

        def drop_items(section: Section) -> str:
            absent = section.absent - offered
            return _ITEM.sub(
                lambda item: item[0] if absent.isdisjoint(_NAMED.findall(item[0])) else "", section.text
            )

        return redact_text("\n\n".join(map(drop_items, ordered)))


class NoModel(Record):
    """The model of an agent for which none was installed; it refuses every request."""

    name: str = "none"

    def explain_refusal(self, task: str) -> str | None:  # noqa: ARG002  # a port's signature
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


def _sort_tools(*tools: Tool) -> tuple[Tool, ...]:
    return tuple(sorted(Toolbox.of(*tools).tools, key=lambda tool: tool.name))


class SubagentPlace(Record):
    """The place of a sub-agent: its folder and its earlier run."""

    around: Surroundings
    events: Observer
    saved: Run | None
    """What an earlier process left of the same run."""
    answer: Answer | None
    """The decision that the saved run waited for."""


class AgentFactory(Record):
    """Builds the agents of one crew."""

    kit: Kit
    capabilities: tuple[Capability, ...]
    """What each agent gets beside the standard ones."""
    known: tuple[Role, ...]
    """The roles that can be given work, or take a conversation over."""
    skills: Callable[[Role], Offer]
    """The skills that a role is offered."""
    place: Callable[[Surroundings, str, str], SubagentPlace]
    """Makes room for a sub-agent of a run, by the sub-agent's name and the call that asks for it."""

    def build_first(self, role: Role, around: Surroundings) -> Agent:
        """Return the agent of a role of the pipeline, with everybody who may take its conversation over."""
        first = self.build(role, around)
        return first.replace(personas=self._build_personas(first, around))

    def build(self, role: Role, around: Surroundings, parents: tuple[Role, ...] = ()) -> Agent:
        run = SubagentRunner(factory=self, around=around, lineage=(*parents, role))
        subagents = Subagents(role=role, depth=len(parents), known=self.known, run=run)
        builder = AgentBuilder.standard(role, around, self.kit.replace(skills=self.skills(role)))
        for capability in (subagents, Handoffs(role=role, known=self.known), *self.capabilities):
            builder = builder.with_capability(capability)
        agent = builder.build()
        return agent.replace(depth=len(parents), within=parents, room=self.kit.room(agent.model_id))

    def _build_personas(self, first: Agent, around: Surroundings) -> dict[str, Persona]:
        personas: dict[str, Persona] = {}
        wanted = list(first.role.handoffs)
        while wanted:
            name = wanted.pop()
            successor = next((role for role in self.known if role.name == name), None)
            if successor is None or name in personas:
                continue
            role, box = restrict_successor(first.role, successor, first.model_id, self.kit.toolbox)
            agent = self.replace(kit=self.kit.replace(toolbox=box)).build(role, around)
            personas[name] = Persona(**copy_shared(agent, Persona))
            wanted.extend(role.handoffs)
        return personas


class SubagentRunner(Record):
    """Runs the sub-agents of one run."""

    factory: AgentFactory
    around: Surroundings
    lineage: tuple[Role, ...]
    """The role whose run it is, after those above it."""

    async def __call__(self, request: SubagentRequest, settled: FactoryInput) -> Run:
        """Run a sub-agent until it ends or waits; a run that an earlier process left goes on."""
        factory, parent = self.factory, self.lineage[-1]
        role, box = restrict_subagent(parent, request.role, settled.model_id, settled.tools)
        place = factory.place(self.around, role.name, request.call_id)
        factory.kit.events(
            Delegated(
                run=self.around.number,
                call_id=request.call_id,
                child=place.around.number,
                agent=role.name,
                description=request.work.description,
            )
        )
        kit = factory.kit.replace(model=settled.model, toolbox=box, events=place.events)
        agent = factory.replace(kit=kit).build(role, place.around, self.lineage)
        agent = agent.replace(parent=request.call_id)
        saved = place.saved
        if saved is None:
            return await run_agent(agent, request.brief)
        return saved if saved.outcome else await continue_run(agent, saved, place.answer)


class Reason(Record):
    reason: Annotated[str, Meta(description="Why it is the other one's work, and where you stand.")]


class Hand(Record):
    """Hand this conversation over: another role goes on in your place and you are not asked again."""

    to: str

    def __call__(self, given: Reason, context: ToolContext) -> Output:
        if context.run.handoffs >= MAX_HANDOFFS:
            raise NotAllowed(f"a run is handed over {MAX_HANDOFFS} times at most: end it yourself")
        return Output(content=f"{self.to} goes on", handoff=HandOff(to=self.to, reason=given.reason))


class Handoffs(Record):
    """Offers the handoff tools that a role lists, and names their roles in the prompt."""

    role: Role
    known: tuple[Role, ...]

    @property
    def _targets(self) -> tuple[Role, ...]:
        return tuple(role for role in self.known if role.name in self.role.handoffs)

    def install_context(self, context: ContextChannel) -> None:
        if self._targets:
            listed = "\n".join(f"- {role.name}: {role.description}" for role in self._targets)
            context.add(read_prompt("handoffs.md").format(listed=listed))

    def install_tool_factories(self, factories: ToolFactoryChannel) -> None:
        for target in self._targets:
            factories.add(partial(_make_tool, target.name))


def _make_tool(to: str, _settled: FactoryInput) -> Tool:
    return Tool(
        name=f"{HANDOFF}{to}", category=Category.AGENT, effect=Effect.WRITE, input=Reason, call=Hand(to=to)
    )
