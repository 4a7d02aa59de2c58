"""The agents of one crew, with those they give work to and those they hand over to."""

from collections.abc import Callable

from agentflow.compose.bounds import child_of, heir_of
from agentflow.compose.builder import AgentBuilder
from agentflow.compose.capabilities.handoffs import Handoffs
from agentflow.compose.capabilities.subagents import Order, Subagents
from agentflow.compose.channels import Capability, Settled
from agentflow.compose.profiles import Kit
from agentflow.core.events import Delegated
from agentflow.core.pending import Answer
from agentflow.core.ports import Observer
from agentflow.core.record import Record, shared
from agentflow.core.role import Role
from agentflow.core.run import Run
from agentflow.library.skills import Offer
from agentflow.loop.agent import Agent, Persona, Surroundings
from agentflow.loop.run import continue_run, run_agent


class Cradle(Record):
    """Where a sub-agent runs."""

    around: Surroundings
    events: Observer
    saved: Run | None
    """What an earlier process left of the same run."""
    answer: Answer | None
    """What was decided about that for which it waited."""


class Family(Record):
    """What the agents of one crew are made from."""

    kit: Kit
    capabilities: tuple[Capability, ...]
    """What each of them gets beside the standard ones."""
    known: tuple[Role, ...]
    """Those that can be given work, or take a conversation over."""
    skills: Callable[[Role], Offer]
    """What each of them is offered to read."""
    place: Callable[[Surroundings, str, str], Cradle]
    """Makes room for a sub-agent of a run, by its name and the call that asks for it."""

    def agent(self, role: Role, around: Surroundings) -> Agent:
        first = self.born(role, around)
        return first.replace(personas=self._personas(first, around))

    def born(self, role: Role, around: Surroundings, parents: tuple[Role, ...] = ()) -> Agent:
        """Return the agent of a role below others, whose rules bound it."""
        runs = Nursery(family=self, around=around, lineage=(*parents, role))
        depth = len(parents)
        agents = Subagents(role=role, depth=depth, known=self.known, runs=runs)
        builder = AgentBuilder.standard(role, around, self.kit.replace(skills=self.skills(role)))
        for capability in (agents, Handoffs(role=role, known=self.known), *self.capabilities):
            builder = builder.with_capability(capability)
        agent = builder.build()
        return agent.replace(depth=depth, within=parents, room=self.kit.room(agent.model_id))

    def _personas(self, first: Agent, around: Surroundings) -> dict[str, Persona]:
        """Return everybody whom the conversation can come to, however often it is handed on."""
        found: dict[str, Persona] = {}
        wanted = list(first.role.handoffs)
        while wanted:
            name = wanted.pop()
            heir = next((role for role in self.known if role.name == name), None)
            if heir is None or name in found:
                continue
            role, box = heir_of(first.role, heir, first.model_id, self.kit.toolbox)
            agent = self.replace(kit=self.kit.replace(toolbox=box)).born(role, around)
            found[name] = Persona(**shared(agent, Persona))
            wanted.extend(role.handoffs)
        return found


class Nursery(Record):
    """Runs the sub-agents of one run."""

    family: Family
    around: Surroundings
    lineage: tuple[Role, ...]
    """The role whose run it is, after those above it."""

    async def __call__(self, order: Order, settled: Settled) -> Run:
        """Run a sub-agent until it ends or waits; what an earlier process began goes on where it was."""
        family = self.family
        role, box = child_of(self.lineage[-1], order.role, settled.model_id, settled.tools)
        cradle = family.place(self.around, role.name, order.call_id)
        family.kit.events(
            Delegated(
                run=self.around.number,
                call_id=order.call_id,
                child=cradle.around.number,
                agent=role.name,
                description=order.work.description,
            )
        )
        kit = family.kit.replace(model=settled.model, toolbox=box, events=cradle.events)
        agent = family.replace(kit=kit).born(role, cradle.around, self.lineage).replace(parent=order.call_id)
        saved = cradle.saved
        if saved is None:
            return await run_agent(agent, order.brief)
        return saved if saved.outcome else await continue_run(agent, saved, cradle.answer)
