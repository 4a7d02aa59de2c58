"""A run on a stage: the scripted model, tools that take notes, everything else in memory."""

import time
from collections.abc import Callable
from pathlib import Path
from threading import Barrier
from typing import Annotated, Any, NamedTuple

import anyio
from msgspec import Meta

from agentflow.core.errors import InvalidInput
from agentflow.core.events import Event
from agentflow.core.hook import Hook
from agentflow.core.messages import DEFAULT_ROOM, Reply, Request, ToolCall, ToolResult
from agentflow.core.pending import Consent
from agentflow.core.ports import Journal, Ledger, Model
from agentflow.core.record import Record
from agentflow.core.role import Limits, Role, ToolRule
from agentflow.core.run import CallAnswered, ReplyReceived, Run, RunEntry
from agentflow.core.task import Phase
from agentflow.core.tool import Category, Effect, Output, Tool, ToolContext
from agentflow.hooks.chain import Chain
from agentflow.loop.agent import Agent, Surroundings, open_run
from agentflow.loop.next_step import Step, choose_next_step
from agentflow.loop.run import NODES, run_agent
from agentflow.model.scripted import Entry, ScriptedCall, ScriptedModel, Turn
from agentflow.tools.submit import SUBMIT_TOOLS
from agentflow.workspace.path_guard import PathGuard
from tests.support.boxes import boxed
from tests.unit.tools.bench import Records

SUBMIT = next(tool for tool in SUBMIT_TOOLS if tool.name == "SubmitChange")
CHANGE = {"summary": "done", "files": []}


class Span(NamedTuple):
    word: str
    begin: float
    end: float


class Wanted(Record):
    """What the tools of the stage take."""

    word: str
    seconds: float = 0
    count: Annotated[int, Meta(ge=0)] = 1
    tags: tuple[str, ...] = ()


class Prompter:
    """A model that keeps the requests it was sent."""

    def __init__(self, model: ScriptedModel) -> None:
        self.name = "prompter"
        self.requests: list[Request] = []
        self._model = model

    def explain_refusal(self, task: str) -> str | None:
        return self._model.explain_refusal(task)

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        return await self._model.complete(request)


class Spoken:
    """A model that gives ready-made replies, whatever their shape."""

    def __init__(self, *replies: Reply) -> None:
        self.name = "spoken"
        self._replies = list(replies)

    def explain_refusal(self, task: str) -> str | None:
        return f"no {task}"

    async def complete(self, request: Request) -> Reply:
        return self._replies.pop(0) if self._replies else Reply(parts=(), model=request.model)


class Entries:
    """A journal in memory."""

    def __init__(self) -> None:
        self.entries: list[RunEntry] = []

    def append(self, entry: RunEntry) -> None:
        self.entries.append(entry)


class Stage:
    """One agent with everything it needs, and what could be seen of its run."""

    def __init__(self, root: Path, **limits: int) -> None:
        self.spans: list[Span] = []
        self.events: list[Event] = []
        self.journal = Entries()
        self.root = root / "repository"
        self.outputs = root / "outputs"
        self.root.mkdir(parents=True)
        self.outputs.mkdir()
        self.role = a_role(**limits)
        self.submit: Tool | None = SUBMIT
        self.extra: tuple[Tool, ...] = ()
        self.ledger: Ledger = Records()
        self.hooks: tuple[Hook, ...] = ()
        self.room = DEFAULT_ROOM
        self.meeting: Barrier | None = None
        """Where calls wait for each other; whoever waits in vain fails."""

    def agent(self, model: Model, journal: Journal | None = None) -> Agent:
        submit = self.submit
        own = self._tools() if submit is None else (*self._tools(), submit)
        return Agent(
            role=self.role,
            model=model,
            model_id="model-1",
            system=self.role.prompt,
            tools=(*own, *self.extra),
            submit=submit,
            around=Surroundings(
                owners={"Peek": "explorer", "SubmitPlan": "planner"},
                workspace=PathGuard(self.root),
                runner=boxed(self.root),
                ledger=self.ledger,
                journal=journal or self.journal,
                outputs=self.outputs,
                task_id="t",
                number=1,
                iteration=1,
                phase=Phase.IMPLEMENTATION,
                transcript=self.outputs / "run.jsonl",
                consent=Consent.SUSPEND,
                has_asked=False,
            ),
            observe=self.events.append,
            hooks=Chain(self.hooks),
            room=self.room,
        )

    def play(self, *turns: Turn) -> Run:
        return anyio.run(run_agent, self.agent(script(*turns)), "do it")

    def answer(self, *replies: Reply) -> Run:
        return anyio.run(run_agent, self.agent(Spoken(*replies)), "do it")

    def requests(self, *turns: Turn) -> list[Request]:
        model = Prompter(script(*turns))
        anyio.run(run_agent, self.agent(model), "do it")
        return model.requests

    def steps(self, *turns: Turn) -> list[Step]:
        """Take every step by hand, and write down which it was."""
        agent = self.agent(script(*turns))
        taken: list[Step] = []

        async def walk() -> None:
            run = open_run(agent, "do it")
            while (step := choose_next_step(run, agent.role.limits)) is not Step.END:
                taken.append(step)
                run = await NODES[step](agent, run)

        anyio.run(walk)
        return taken

    @property
    def results(self) -> list[ToolResult]:
        """Results in the order of their calls; those of one turn are kept in the order in which they end."""
        entries = self.journal.entries
        ended = {entry.result.call_id: entry.result for entry in entries if isinstance(entry, CallAnswered)}
        parts = [part for entry in entries if isinstance(entry, ReplyReceived) for part in entry.reply.parts]
        return [ended[part.id] for part in parts if isinstance(part, ToolCall) and part.id in ended]

    def of(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def _tools(self) -> tuple[Tool, ...]:
        def look(wanted: Wanted, context: ToolContext) -> Output:  # noqa: ARG001
            """Look at something."""
            return self._take_note(wanted, "saw")

        def edit(wanted: Wanted, context: ToolContext) -> Output:  # noqa: ARG001
            """Change something."""
            return self._take_note(wanted, "changed")

        return (
            a_tool("Look", look),
            a_tool("Change", edit, Effect.WRITE),
            a_tool("Broken", broken),
            a_tool("Refusing", refusing, Effect.WRITE),
        )

    def _take_note(self, wanted: Wanted, verb: str) -> Output:
        begin = time.monotonic()
        if self.meeting is not None:
            self.meeting.wait()
        time.sleep(wanted.seconds)
        self.spans.append(Span(wanted.word, begin, time.monotonic()))
        return Output(content=f"{verb} {wanted.word}" * wanted.count)


def broken(wanted: Wanted, context: ToolContext) -> Output:
    """Fail as a bug would."""
    time.sleep(wanted.seconds)
    raise KeyError(wanted.word + context.task_id)


def refusing(wanted: Wanted, context: ToolContext) -> Output:
    """Fail as a tool should."""
    raise InvalidInput(f"no {wanted.word} in {context.task_id}")


def a_tool(name: str, call: Callable[[Any, ToolContext], Output], effect: Effect = Effect.READ) -> Tool:
    return Tool(name=name, category=Category.REPO, effect=effect, input=Wanted, call=call)


def a_role(**limits: int) -> Role:
    return Role(
        name="builder",
        description="d",
        model="fast",
        tools=(ToolRule(tool="repo"), ToolRule(tool="shell")),
        prompt="You build.",
        source="builder.md",
        origin="bundled",
        part="implementer",
        limits=Limits(**limits),
    )


def script(*turns: Turn) -> ScriptedModel:
    return ScriptedModel("script:memory", (Entry(turns=turns),))


def call(name: str, word: object = "x", **more: object) -> ScriptedCall:
    return ScriptedCall(name=name, input={"word": word, **more})


def turn(*calls: ScriptedCall, text: str = "") -> Turn:
    return Turn(tools=calls, text=text)


def submit(**changes: Any) -> Turn:
    return turn(ScriptedCall(name="SubmitChange", input={**CHANGE, **changes}))
