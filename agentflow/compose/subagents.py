"""The Agent tool: a role gives a piece of work to a sub-agent, which has at most the role's own rights."""

from collections.abc import Callable, Coroutine
from itertools import accumulate
from typing import Annotated, Any, Literal

from anyio import from_thread
from msgspec import Meta

from agentflow.compose.capability import ContextChannel, FactoryInput, ToolFactoryChannel
from agentflow.core.errors import InvalidInput, ModelRefused, ModelRejected, NotAllowed
from agentflow.core.fold import DELEGATE
from agentflow.core.messages import Message, ServerToolPart, Text, ToolCall, ToolResult
from agentflow.core.record import Record, encode
from agentflow.core.role import HANDOFF, INHERIT, Change, Findings, Role, ToolRule
from agentflow.core.routing import SUBMITTED_BY
from agentflow.core.run import Run, RunOutcome, SubagentResult
from agentflow.core.tool import Category, Effect, Output, Tool, ToolContext
from agentflow.library.roles import list_subagents
from agentflow.library.skills import find_named, rank_by_words
from agentflow.loop.lifecycle import find_last_text
from agentflow.loop.prompts import read_prompt
from agentflow.redact import list_some, make_visible
from agentflow.tools.registry import Toolbox

_MAX_DEPTH = 3
_MAX_CHILDREN = 8
_MAX_LISTING = 2_400
"""Characters of the sub-agents in a prompt; the others are found by words."""
_MAX_LINE = 180
_MAX_NAMES = 20


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


class SubagentRequest(Record):
    role: Role
    """The sub-agent as its file says, before its parent restricts it."""
    work: Delegation
    call_id: str
    brief: str
    """Its task prompt."""


RunSubagent = Callable[[SubagentRequest, FactoryInput], Coroutine[Any, Any, Run]]
"""Runs a sub-agent until it ends or waits for a person."""


class Subagents(Record):
    """Offers the Agent tool to a role that lists it, and names the sub-agents in its prompt."""

    role: Role
    depth: int
    known: tuple[Role, ...]
    """All sub-agents there are."""
    run: RunSubagent

    @property
    def offered(self) -> tuple[Role, ...]:
        rules = self.role.list_rules(DELEGATE)
        everyone = any(rule.pattern is None for rule in rules)
        named = {name for rule in rules for name in rule.names}
        listed = {role.name for name in named if (role := find_named(self.known, name)) is not None}
        return tuple(role for role in self.known if everyone or role.name in listed)

    def find(self, name: str) -> Role | None:
        return find_named(self.offered, name)

    def install_context(self, context: ContextChannel) -> None:
        if not self.offered:
            return
        whole = (f"- {role.name}: {' '.join(role.description.split())}" for role in self.offered)
        lines = [
            line if len(line) <= _MAX_LINE else f"{line[: _MAX_LINE - 1]}…"
            for line in map(make_visible, whole)
        ]
        fitting = sum(end <= _MAX_LISTING for end in accumulate(len(line) + 1 for line in lines))
        text = read_prompt("subagents.md").format(listed="\n".join(lines[:fitting]))
        left = len(lines) - fitting
        more = read_prompt("more-agents.md").format(count=left) if left else ""
        context.add("\n".join(filter(None, (text, more))))

    def install_tool_factories(self, factories: ToolFactoryChannel) -> None:
        if self.offered:
            factories.add(self._make_tool)

    def _make_tool(self, settled: FactoryInput) -> Tool:
        return Tool(
            name=DELEGATE,
            category=Category.AGENT,
            effect=Effect.EXECUTE,
            input=Delegation,
            call=Delegate(agents=self, settled=settled),
            reads=OnlyReads(agents=self, settled=settled),
        )


def let_implementer_delegate(roles: tuple[Role, ...]) -> tuple[Role, ...]:
    """Return the roles, the shipped implementer with the right to use every sub-agent, if there is any."""
    able = list[Role]()
    for role in roles:
        is_shipped_implementer = role.part == SUBMITTED_BY[Change] and role.origin == "bundled"
        is_due = is_shipped_implementer and not role.list_rules(DELEGATE)
        able.append(role.replace(tools=(*role.tools, ToolRule(tool=DELEGATE))) if is_due else role)
    return tuple(able) if list_subagents(roles) else roles


class OnlyReads(Record):
    """Answers whether a delegation may run beside others: whether the sub-agent can only read."""

    agents: Subagents
    settled: FactoryInput

    def __call__(self, given: dict[str, Any]) -> bool:
        child = self.agents.find(str(given.get("subagent_type")))
        if child is None:
            return False
        try:
            role, box = restrict_subagent(self.agents.role, child, self.settled.model_id, self.settled.tools)
        except InvalidInput:  # the call itself will refuse a sub-agent without tools
            return True
        return is_reader(role, box)


class Delegate(Record):
    """Give a piece of work to a sub-agent; only its final text comes back. Readers run side by side."""

    agents: Subagents
    settled: FactoryInput

    def __call__(self, work: Delegation, context: ToolContext) -> Output:
        role = self._find_role(work, context)
        direct = work.direct or role.name in self.agents.role.direct
        if direct and (why := find_obstacle_to_direct(self.agents.role, self.settled)) is not None:
            raise NotAllowed(why)
        messages = context.run.messages
        seen = {"minimal": (), "scoped": messages[:1], "full": messages[:-1]}[work.context]
        said = "\n\n".join(filter(None, map(_format_message, seen)))
        head = read_prompt("context.md").format(said=said) if said else ""
        brief = "\n\n".join(filter(None, (head, work.prompt)))
        request = SubagentRequest(role=role, work=work, call_id=context.call_id, brief=brief)
        try:
            run = from_thread.run(self.agents.run, request, self.settled)
        except (ModelRefused, ModelRejected) as error:
            return Output(content=f"{role.name} got no reply: {error}", is_error=True)
        if run.pause is not None:
            return Output(content=f"{role.name} waits", pending=run.pause.pending)
        can_bail = find_obstacle_to_direct(self.agents.role, self.settled) is None
        return _to_output(run, is_direct=direct or (run.bail is not None and can_bail))

    def _find_role(self, work: Delegation, context: ToolContext) -> Role:
        role = self.agents.find(work.subagent_type)
        if role is None:
            ranked = rank_by_words(f"{work.subagent_type} {work.description}", self.agents.offered)
            names = list_some((role.name for role, _ in ranked), _MAX_NAMES)
            raise InvalidInput(f"there is no sub-agent {work.subagent_type}; yours are {names}")
        if self.agents.depth >= _MAX_DEPTH:
            raise NotAllowed(f"sub-agents go {_MAX_DEPTH} levels deep and you are the last: do it yourself")
        run = context.run
        newest = [call.id for call in run.messages[-1].calls if call.name == DELEGATE]
        if len(run.delegated) - len(run.returned) + newest.index(context.call_id) >= _MAX_CHILDREN:
            raise NotAllowed(f"a run has {_MAX_CHILDREN} sub-agents at most: go on with what they gave you")
        return role


def _format_message(message: Message) -> str:
    lines = list[str]()
    for part in message.parts:
        match part:
            case Text():
                lines.append(part.text)
            case ToolCall():
                lines.append(f"{part.name} {encode(part.input).decode()}")
            case ToolResult():
                lines.append(part.content)
            case ServerToolPart():
                lines.append(f"{part.tool}: {part.said}")
            case _:
                pass
    return "\n".join(line for line in lines if line.strip())


def find_obstacle_to_direct(role: Role, settled: FactoryInput) -> str | None:
    """Return why no sub-agent may answer in place of this role, or None if one may."""
    changing = [tool.name for tool in settled.tools if _can_change(role, tool)]
    if changing:
        return f"direct is for roles that only read, and {role.name} has {', '.join(changing)}"
    submits = [
        tool for tool in settled.tools if tool.name.startswith("Submit") and tool.input is not Findings
    ]
    if submits:
        return f"direct is for an answer in words, and {role.name} ends with {submits[0].name}"
    return None


def _can_change(role: Role, tool: Tool) -> bool:
    """Return whether a role can change something by a tool; a shell held to patterns is not counted."""
    if tool.category is Category.STATE or tool.effect is Effect.READ:
        return False
    return tool.effect is Effect.WRITE or any(
        rule.pattern is None for rule in role.list_rules_in(tool.name, tool.category)
    )


def _to_output(run: Run, *, is_direct: bool) -> Output:
    text = run.bail or run.answer or find_last_text(run)
    answered = run.outcome is RunOutcome.ANSWERED and bool(text.strip())
    delegated = SubagentResult(
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


_LOOKING = (Category.FS, Category.REPO)


def restrict_subagent(
    parent: Role, child: Role, model_id: str, tools: tuple[Tool, ...]
) -> tuple[Role, Toolbox]:
    """Return a sub-agent with the tools that its parent has too, and the box they are in.

    Raises InvalidInput when none of those it lists is left.
    """
    box = Toolbox(tools=tuple(tool for tool in tools if tool.input not in SUBMITTED_BY and not tool.granted))
    role = _restrict(parent, child, {tool.name for tool in box.tools})
    if child.tools and not role.tools:
        raise InvalidInput(
            f"{child.name} has none of your tools: it lists {', '.join(map(str, child.tools))}"
        )
    return role.replace(model=_choose_model(child, model_id), part=None), box


def restrict_successor(first: Role, successor: Role, model_id: str, box: Toolbox) -> tuple[Role, Toolbox]:
    """Return a role that takes over from the first, with the first's tools and those that only read files."""
    kept = tuple(
        tool
        for tool in box.tools
        if tool.input in SUBMITTED_BY
        or first.list_rules_in(tool.name, tool.category)
        or (tool.effect is Effect.READ and tool.category in _LOOKING)
    )
    handoffs = {rule.tool for rule in successor.tools if rule.tool.startswith(HANDOFF)}
    role = _restrict(first, successor, {tool.name for tool in kept} | handoffs)
    return role.replace(model=_choose_model(successor, model_id), part=first.part), Toolbox(tools=kept)


def is_reader(role: Role, box: Toolbox) -> bool:
    """Return whether a role's tools can change nothing but a run's own notes."""
    return all(tool.effect is Effect.READ or tool.category is Category.STATE for tool in box.select_for(role))


def _restrict(outer: Role, inner: Role, names: set[str]) -> Role:
    known = {*names, *Category, *((DELEGATE,) if outer.list_rules(DELEGATE) else ())}
    listed = inner.tools
    if inner.inherits:
        without = (*inner.denied, *(f"{HANDOFF}{name}" for name in outer.handoffs))
        listed = tuple(rule for rule in outer.tools if rule.tool not in without)
    rules = tuple(rule for rule in listed if rule.tool in known)
    return inner.replace(tools=rules, write_paths=outer.write_paths or inner.write_paths)


def _choose_model(role: Role, model_id: str) -> str:
    return model_id if role.model == INHERIT else role.model
