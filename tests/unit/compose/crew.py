"""A family of agents in memory: roles by name, one scripted model, every run kept."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import anyio

from agentflow.compose.builder import AgentFactory, SubagentPlace
from agentflow.compose.standard import Kit, UseHooks
from agentflow.core.events import Event
from agentflow.core.fold import advance
from agentflow.core.hook import Hook
from agentflow.core.messages import Reply, Request
from agentflow.core.ports import Model
from agentflow.core.record import Record
from agentflow.core.role import Limits, Role, ToolRule
from agentflow.core.run import CallAnswered, Run
from agentflow.core.tool import Category, Effect, Output, Tool, ToolContext
from agentflow.library.skills import Offer
from agentflow.loop.agent import Agent, Surroundings
from agentflow.loop.run import run_agent
from agentflow.model.scripted import Entry, Match, ScriptedCall, ScriptedModel, Turn
from agentflow.permissions.rules import parse_rules
from agentflow.tools.registry import Toolbox
from agentflow.tools.submit import SUBMIT_TOOLS
from tests.unit.compose.parts import around
from tests.unit.loop.stage import Entries, Wanted, a_tool, turn

NO_SKILLS = Offer()


def unread(_: Role) -> Offer:
    """Offer nobody a skill."""
    return NO_SKILLS


class Line(Record):
    command: str


class Household:
    """Everybody, and what could be seen of them."""

    def __init__(self, root: Path, *roles: Role) -> None:
        self.root = root
        self.roles = roles
        self.requests: list[Request] = []
        self.events: list[tuple[int | None, Event]] = []
        self.journals: dict[int, Entries] = {}
        self.spans: list[tuple[str, float, float]] = []
        self.hooks: tuple[Hook, ...] = ()
        self._calls: dict[str, int] = {}

    def factory(self, model: Model) -> AgentFactory:
        kit = Kit(
            model=Watched(model, self.requests),
            models={},
            toolbox=Toolbox.of(*self._tools(), *SUBMIT_TOOLS),
            events=self._observer(None),
        )
        shared = (UseHooks(hooks=self.hooks),)
        return AgentFactory(kit=kit, capabilities=shared, known=self.roles, skills=unread, place=self._place)

    def agent(self, role: Role, model: Model) -> Agent:
        self.journals[1] = Entries()
        return self.factory(model).build_first(role, around(self.root).replace(journal=self.journals[1]))

    def play(self, role: Role, *entries: Entry) -> Run:
        return self.run(role, ScriptedModel("script:memory", entries))

    def run(self, role: Role, model: Model) -> Run:
        return anyio.run(run_agent, self.agent(role, model), "do it")

    def results(self, number: int = 1) -> list[str]:
        entries = self.journals[number].entries
        return [entry.result.content for entry in entries if isinstance(entry, CallAnswered)]

    def of(self, kind: type[Event]) -> list[Any]:
        return [event for _, event in self.events if isinstance(event, kind)]

    def asked(self, name: str) -> list[Request]:
        return [request for request in self.requests if request.agent == name]

    def folded(self, number: int) -> Run:
        """Return the run that a journal holds."""
        head, *rest = self.journals[number].entries
        run = Run(head=head)  # type: ignore[arg-type]
        for entry in rest:
            run = advance(run, entry)
        return run

    def _observer(self, parent: int | None) -> Callable[[Event], None]:
        return lambda event: self.events.append((parent, event))

    def _place(self, parent: Surroundings, name: str, call_id: str) -> SubagentPlace:
        number = len(self.journals) + 1
        self.journals[number] = Entries()
        child = parent.replace(
            number=number, journal=self.journals[number], transcript=self.root / f"runs/{number}-{name}.jsonl"
        )
        self._calls[call_id] = number
        return SubagentPlace(around=child, events=self._observer(parent.number), saved=None, answer=None)

    def _tools(self) -> tuple[Tool, ...]:
        def look(wanted: Wanted, context: ToolContext) -> Output:  # noqa: ARG001
            """Look at something."""
            return Output(content=f"saw {wanted.word}")

        def change(wanted: Wanted, context: ToolContext) -> Output:  # noqa: ARG001
            """Change something."""
            return Output(content=f"changed {wanted.word}")

        def run(wanted: Line, context: ToolContext) -> Output:  # noqa: ARG001
            """Run something."""
            return Output(content=f"ran {wanted.command}")

        repo = Category.REPO
        return (
            a_tool("Look", look),
            a_tool("Change", change, Effect.WRITE),
            Tool(name="Run", category=repo, effect=Effect.EXECUTE, input=Line, call=run),
            Tool(name="Fetch", category=Category.NET, effect=Effect.READ, input=Wanted, call=look),
        )


class Watched:
    """A model that keeps what it was asked."""

    def __init__(self, model: Model, requests: list[Request]) -> None:
        self.name = "watched"
        self._model = model
        self._requests = requests

    def explain_refusal(self, task: str) -> str | None:
        return self._model.explain_refusal(task)

    async def complete(self, request: Request) -> Reply:
        self._requests.append(request)
        return await self._model.complete(request)


def named(name: str, *tools: str, **more: Any) -> Role:
    return Role(
        name=name,
        description=f"Use as {name}.",
        model=more.pop("model", "inherit"),
        tools=_rules(tools),
        prompt=f"You are {name}.",
        source=f"{name}.md",
        origin="user",
        limits=Limits(**more.pop("limits", {})),
        **more,
    )


def _rules(tools: Iterable[str]) -> tuple[ToolRule, ...]:
    return parse_rules(list(tools), "a.md")


def plays(name: str, *turns: Turn, delay: float = 0) -> Entry:
    return Entry(match=Match(agent=name), turns=turns, delay=delay)


def delegate(name: str, prompt: str = "look", **more: Any) -> ScriptedCall:
    return ScriptedCall(name="Agent", input={"subagent_type": name, "prompt": prompt, **more})


def hand(name: str, reason: str = "its work") -> Turn:
    return turn(ScriptedCall(name=f"handoff_to_{name}", input={"reason": reason}))
