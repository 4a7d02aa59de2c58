"""Builds the agents of a crew, with their sub-agents and the roles they may hand over to."""

from collections.abc import Callable
from functools import partial
from typing import Annotated

from msgspec import Meta

from agentflow.compose.builder import AgentBuilder
from agentflow.compose.capability import Capability, ContextChannel, Settled, ToolFactoryChannel
from agentflow.compose.standard import Kit
from agentflow.compose.subagents import SubagentRequest, Subagents, restrict_subagent, restrict_successor
from agentflow.core.errors import NotAllowed
from agentflow.core.events import Delegated
from agentflow.core.pending import Answer
from agentflow.core.ports import Observer
from agentflow.core.record import Record, copy_shared
from agentflow.core.role import HANDOFF, Role
from agentflow.core.run import HandOff, Run
from agentflow.core.tool import Category, Effect, Output, Tool, ToolContext
from agentflow.library.skills import Offer
from agentflow.loop.agent import Agent, Persona, Surroundings
from agentflow.loop.prompts import prompt_text
from agentflow.loop.run import continue_run, run_agent


class SubagentPlace(Record):
    """Where a sub-agent runs."""

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
        """Return the agent of a role; the rules of its parents bound it."""
        run = SubagentRunner(factory=self, around=around, lineage=(*parents, role))
        subagents = Subagents(role=role, depth=len(parents), known=self.known, run=run)
        builder = AgentBuilder.standard(role, around, self.kit.replace(skills=self.skills(role)))
        for capability in (subagents, Handoffs(role=role, known=self.known), *self.capabilities):
            builder = builder.with_capability(capability)
        agent = builder.build()
        return agent.replace(depth=len(parents), within=parents, room=self.kit.room(agent.model_id))

    def _build_personas(self, first: Agent, around: Surroundings) -> dict[str, Persona]:
        """Return every role that the conversation can come to, however often it is handed over."""
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

    async def __call__(self, request: SubagentRequest, settled: Settled) -> Run:
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


MAX_HANDOFFS = 8


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
            context.add(prompt_text("handoffs.md").format(listed=listed))

    def install_tool_factories(self, factories: ToolFactoryChannel) -> None:
        for target in self._targets:
            factories.add(partial(_make_tool, target.name))


def _make_tool(to: str, _settled: Settled) -> Tool:
    return Tool(
        name=f"{HANDOFF}{to}", category=Category.AGENT, effect=Effect.WRITE, input=Reason, call=Hand(to=to)
    )
