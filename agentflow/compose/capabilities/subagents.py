"""Sub-agents as a tool: a role gives a piece of work to another agent and gets its text."""

from collections.abc import Callable, Coroutine, Iterator
from typing import Annotated, Any, Literal

from anyio import from_thread
from msgspec import Meta

from agentflow.compose.bounds import child_of, only_reads
from agentflow.compose.channels import ContextChannel, Settled, ToolFactoryChannel
from agentflow.core.errors import InvalidInput, ModelRejected, NotAllowed
from agentflow.core.fold import DELEGATE
from agentflow.core.messages import Message, Served, Text, ToolCall, ToolResult
from agentflow.core.record import Record, encode
from agentflow.core.role import Findings, Role
from agentflow.core.run import Delegated, Run, RunOutcome
from agentflow.core.tool import Category, Effect, Output, Tool, ToolContext
from agentflow.loop.context import prompt_text
from agentflow.loop.lifecycle import last_said

MAX_DEPTH = 3
MAX_CHILDREN = 8


Context = Literal["minimal", "scoped", "full"]


class Delegation(Record):
    """A piece of work for a sub-agent."""

    subagent_type: Annotated[str, Meta(description="Which sub-agent.")]
    prompt: Annotated[str, Meta(min_length=1, description="What it has to know and to do.")]
    description: Annotated[str, Meta(description="The work in a few words.")] = ""
    context: Annotated[
        Context, Meta(description="What else it sees: nothing, your task, or all that was said here.")
    ] = "minimal"
    direct: Annotated[bool, Meta(description="Its answer is your answer; you are not asked again.")] = False


class Order(Record):
    """A piece of work, by whom it was given and to whom."""

    role: Role
    """The sub-agent as its file says, not yet bounded by its parent."""
    work: Delegation
    call_id: str
    brief: str
    """What it is told."""


Runs = Callable[[Order, Settled], Coroutine[Any, Any, Run]]
"""Runs a sub-agent until it ends or waits for a person; what an earlier process began goes on."""


class Subagents(Record):
    """Offers the Agent tool to a role that lists it, and tells it of the sub-agents it may use."""

    role: Role
    depth: int
    known: tuple[Role, ...]
    """All sub-agents there are."""
    runs: Runs

    @property
    def offered(self) -> tuple[Role, ...]:
        """The sub-agents that the role's list allows."""
        rules = self.role.rules_for(DELEGATE)
        everyone = any(rule.pattern is None for rule in rules)
        named = {name for rule in rules for name in rule.names}
        return tuple(role for role in self.known if everyone or role.name in named)

    def find(self, name: str) -> Role | None:
        return next((role for role in self.offered if role.name == name), None)

    def install_context(self, context: ContextChannel) -> None:
        if self.offered:
            listed = "\n".join(f"- {role.name}: {role.description}" for role in self.offered)
            context.add(prompt_text("subagents.md").format(listed=listed))

    def install_tool_factories(self, factories: ToolFactoryChannel) -> None:
        if self.offered:
            factories.add(self._tool)

    def _tool(self, settled: Settled) -> Tool:
        return Tool(
            name=DELEGATE,
            category=Category.AGENT,
            effect=Effect.EXECUTE,
            input=Delegation,
            call=Delegate(agents=self, settled=settled),
            reads=OnlyReads(agents=self, settled=settled),
        )


class OnlyReads(Record):
    """Says whether a delegation may run beside others: within this role, the sub-agent could only read."""

    agents: Subagents
    settled: Settled

    def __call__(self, given: dict[str, Any]) -> bool:
        child = self.agents.find(str(given.get("subagent_type")))
        if child is None:
            return False
        try:
            return only_reads(*child_of(self.agents.role, child, self.settled.model_id, self.settled.tools))
        except InvalidInput:  # one without a tool is refused as it is called
            return True


class Delegate(Record):
    """Give a piece of work to a sub-agent; only its final text comes back. Readers run side by side."""

    agents: Subagents
    settled: Settled

    def __call__(self, work: Delegation, context: ToolContext) -> Output:
        role = self._wanted(work, context)
        direct = work.direct or role.name in self.agents.role.direct
        if direct and (why := undirected(self.agents.role, self.settled)) is not None:
            raise NotAllowed(why)
        brief = "\n\n".join((*_shown(work.context, context.run), work.prompt))
        order = Order(role=role, work=work, call_id=context.call_id, brief=brief)
        try:
            run = from_thread.run(self.agents.runs, order, self.settled)
        except ModelRejected as error:
            return Output(content=f"{role.name} got no reply: {error}", is_error=True)
        if run.pause is not None:
            return Output(content=f"{role.name} waits", pending=run.pause.pending)
        can_bail = undirected(self.agents.role, self.settled) is None
        return _output(run, is_direct=direct or (run.bail is not None and can_bail))

    def _wanted(self, work: Delegation, context: ToolContext) -> Role:
        """Return the sub-agent that is asked for. Raises a ToolError when there may be none."""
        names = ", ".join(role.name for role in self.agents.offered)
        role = self.agents.find(work.subagent_type)
        if role is None:
            raise InvalidInput(f"there is no sub-agent {work.subagent_type}; yours are {names}")
        if self.agents.depth >= MAX_DEPTH:
            raise NotAllowed(f"sub-agents go {MAX_DEPTH} levels deep and you are the last: do it yourself")
        if _ordinal(context) > MAX_CHILDREN:
            raise NotAllowed(f"a run has {MAX_CHILDREN} sub-agents at most: go on with what they gave you")
        return role


def _shown(wanted: Context, run: Run) -> Iterator[str]:
    """Yield what a sub-agent sees of its parent's run, as text: data, which its own prompt follows."""
    messages = {"minimal": (), "scoped": run.messages[:1], "full": run.messages[:-1]}
    if said := "\n\n".join(text for message in messages[wanted] if (text := _written(message))):
        yield prompt_text("context.md").format(said=said)


def _written(message: Message) -> str:
    """Return a message as text; what only a provider can read is left out."""
    lines = list[str]()
    for part in message.parts:
        match part:
            case Text():
                lines.append(part.text)
            case ToolCall():
                lines.append(f"{part.name} {encode(part.input).decode()}")
            case ToolResult():
                lines.append(part.content)
            case Served():
                lines.append(f"{part.tool}: {part.said}")
            case _:
                pass
    return "\n".join(line for line in lines if line.strip())


def _ordinal(context: ToolContext) -> int:
    """Return the how many-th sub-agent of its run a call asks for."""
    run = context.run
    newest = [call.id for call in run.messages[-1].calls if call.name == DELEGATE]
    return len(run.delegated) - len(run.returned) + newest.index(context.call_id) + 1


def undirected(role: Role, settled: Settled) -> str | None:
    """Return why no sub-agent may answer in place of a role, or None if one may."""
    changing = [tool.name for tool in settled.tools if _changes(role, tool)]
    if changing:
        return f"direct is for roles that only read, and {role.name} has {', '.join(changing)}"
    submits = [
        tool for tool in settled.tools if tool.name.startswith("Submit") and tool.input is not Findings
    ]
    if submits:
        return f"direct is for an answer in words, and {role.name} ends with {submits[0].name}"
    return None


def _changes(role: Role, tool: Tool) -> bool:
    """Return whether a role can change something by a tool; a shell held to patterns is not counted."""
    if tool.category is Category.STATE or tool.effect is Effect.READ:
        return False
    return tool.effect is Effect.WRITE or any(
        rule.pattern is None for rule in role.rules_of(tool.name, tool.category)
    )


def _output(run: Run, *, is_direct: bool) -> Output:
    """Return what a sub-agent came to: its text, or that it failed."""
    text = run.bail or run.answer or last_said(run)
    answered = run.outcome is RunOutcome.ANSWERED and bool(text.strip())
    delegated = Delegated(
        run=run.head.run,
        agent=run.head.agent,
        usage=run.cost,
        answer=text if is_direct and answered else None,
        halt=run.halt,
    )
    if answered:
        return Output(content=text, delegated=delegated)
    why = run.halt or run.stop or (f"it ended with {run.outcome}" if text else "it said nothing")
    return Output(content=f"{run.head.agent} gave no answer: {why}", is_error=True, delegated=delegated)
