"""The capabilities of a standard agent, as a list that can be printed."""

import sys
from collections.abc import Callable, Mapping

from agentflow.compose.capability import (
    Capability,
    ContextChannel,
    HookChannel,
    ModelChannel,
    ObserverChannel,
    ToolChannel,
    list_channels,
)
from agentflow.compose.skills import UseSkills
from agentflow.core.hook import RULES, Decision, Hook, HookResult
from agentflow.core.messages import DEFAULT_ROOM, ContextLimits
from agentflow.core.points import HookEvent, Point, ToolUse
from agentflow.core.ports import Model, Observer, Runner
from agentflow.core.record import Record
from agentflow.core.role import Change, Role, Todo
from agentflow.core.routing import PIPELINE, SUBMITTED_BY
from agentflow.core.tool import Category, Tool
from agentflow.library.skills import Offer
from agentflow.loop.prompts import read_prompt
from agentflow.mcp.tools import name_tool
from agentflow.model.tiers import choose_model_id
from agentflow.permissions.rules import Rules
from agentflow.permissions.user_rules import (
    CallToApprove,
    Modes,
    apply_rules,
    find_approval_reason,
    find_obeyed_file_question,
)
from agentflow.redact import to_one_line
from agentflow.tools.registry import SUBMITS, Toolbox
from agentflow.tools.shell import RECALL
from agentflow.tools.todos import make_todo_update

FIRST = 100
"""The priority of the role's own prompt; other sections stand below it."""
_TODOS = -50
"""Below the skills, because todos are different in each run."""
LAST = -100
"""The priority of the submission protocol."""


class Kit(Record):
    """The parts of a standard agent beside its role."""

    model: Model
    models: Mapping[str, str]
    """Tier to model id, where the user overrides it."""
    toolbox: Toolbox
    events: Observer
    """Writes down what happens."""
    hooks: tuple[Hook, ...] = ()
    skills: Offer = Offer()
    reader: Runner | None = None
    """Runs commands with the rights of a role that only reads."""
    todos: tuple[Todo, ...] = ()
    """Those of the task, for a role that works on them."""
    repair: Tool | None = None
    """Searches for a repair, for an implementer whose tests fail."""
    room: Callable[[str], ContextLimits] = lambda _: DEFAULT_ROOM
    """The limits of a conversation with a model, by its id."""


def list_standard_capabilities(role: Role, kit: Kit) -> tuple[Capability, ...]:
    submit = kit.toolbox.find(SUBMITS.get(role.part or "", ""))
    implements = role.part == SUBMITTED_BY[Change]
    # the tools of a run never change, which would empty the provider's cache; the explorer has no room for it
    offered = {tool.category for tool in kit.toolbox.select_for(role)}
    is_clipped = Category.MCP in offered or (role.part != PIPELINE[0] and Category.SHELL in offered)
    return (
        UseModel(model=kit.model, model_id=choose_model_id(role.model, kit.models)),
        RolePrompt(role=role),
        RoleTools(role=role, toolbox=kit.toolbox),
        *((RecallOutputs(),) if is_clipped else ()),
        UseSkills(offer=kit.skills, reader=kit.reader),
        *((CurrentTodo(todos=kit.todos),) if kit.todos and implements else ()),
        *((SearchRepairs(tool=kit.repair),) if kit.repair is not None and implements else ()),
        *((Submission(tool=submit),) if submit else ()),
        UseHooks(hooks=kit.hooks),
        EventLog(record=kit.events),
    )


def describe_capabilities(capabilities: tuple[Capability, ...]) -> tuple[str, ...]:
    return tuple(f"{type(each).__name__}: {', '.join(list_channels(each))}" for each in capabilities)


class UseModel(Record):
    model: Model
    model_id: str

    def install_model(self, model: ModelChannel) -> None:
        model.use(self.model, self.model_id)


class RecallOutputs(Record):
    """Offers the tool that reads what was left out of a long result."""

    def install_tools(self, tools: ToolChannel) -> None:
        tools.add(RECALL)


class SearchRepairs(Record):
    """Offers the tool that searches for a small edit which makes the failing tests pass."""

    tool: Tool

    def install_tools(self, tools: ToolChannel) -> None:
        tools.add(self.tool)


class UseHooks(Record):
    """Installs hooks, from settings files or from code."""

    hooks: tuple[Hook, ...]

    def install_hooks(self, hooks: HookChannel) -> None:
        hooks.add(*self.hooks)


class EventLog(Record):
    """Writes every event down before any observer gets it."""

    record: Observer

    def install_observer(self, observers: ObserverChannel) -> None:
        observers.keep(self.record)


class RolePrompt(Record):
    """Puts the body of the role file at the head of the system prompt."""

    role: Role

    def install_context(self, context: ContextChannel) -> None:
        context.add_prompt(self.role.prompt, priority=FIRST)


class RoleTools(Record):
    """Offers the tools that the role file lists."""

    role: Role
    toolbox: Toolbox

    def install_tools(self, tools: ToolChannel) -> None:
        offered = self.toolbox.select_for(self.role)
        tools.add(*(tool for tool in offered if tool.input not in SUBMITTED_BY))


class Submission(Record):
    """Offers the tool that ends the run, and explains it in the prompt of every role."""

    tool: Tool

    def install_tools(self, tools: ToolChannel) -> None:
        tools.end_with(self.tool)

    def install_context(self, context: ContextChannel) -> None:
        context.add(read_prompt("protocol.md").format(submit=self.tool.name), priority=LAST)


class CurrentTodo(Record):
    """Shows the todos of the task, with the tool that updates the current one."""

    todos: tuple[Todo, ...]

    def install_tools(self, tools: ToolChannel) -> None:
        tools.add(make_todo_update(self.todos))

    def install_context(self, context: ContextChannel) -> None:
        lines = "\n".join(f"{todo.id}. {to_one_line(todo.title, 200)} ({todo.status})" for todo in self.todos)
        context.add(read_prompt("todos.md").format(todos=lines), priority=_TODOS)


class Approval(Record):
    """The user's permission rules, as a hook behind all others."""

    rules: Rules

    def install_hooks(self, hooks: HookChannel) -> None:
        last = -sys.maxsize  # after every hook that may change the input
        hooks.add(Hook(name=RULES, point=Point.PRE_TOOL_USE, body=self._apply_rules, priority=last))

    def _apply_rules(self, event: HookEvent) -> HookResult:
        assert isinstance(event.payload, ToolUse)
        assert event.scene.tool is not None
        use, tool = event.payload, event.scene.tool
        use = use.replace(tool_input=event.scene.to_repository(use.tool_input))
        found = apply_rules(self.rules, tool, use.tool_input, event.scene.root)
        why = find_obeyed_file_question(self.rules, tool, use.tool_input, event.scene.root)
        if found.decision < Decision.ASK and why is not None:
            return HookResult(decision=Decision.ASK, reason=why)
        return HookResult(decision=found.decision, reason=f"rule {found.rule}" if found.rule else None)


class ApprovalModes(Record):
    """When a person is asked about a call, as a hook behind all others.

    A mode is `never`, `always`, a condition, or a function of the call; one that raises asks.
    """

    tools: Modes = {}
    roles: Modes = {}
    servers: Modes = {}
    """By the name of an MCP server."""

    def install_hooks(self, hooks: HookChannel) -> None:
        name, last = "approval modes", -sys.maxsize
        hooks.add(Hook(name=name, point=Point.PRE_TOOL_USE, body=self._find_reason, priority=last))

    def _find_reason(self, event: HookEvent) -> HookResult | None:
        assert isinstance(event.payload, ToolUse)
        use, scene = event.payload, event.scene
        given = scene.to_repository(use.tool_input)
        asked = CallToApprove(tool=use.tool_name, role=scene.actor.name, args=given)
        served = (mode for name, mode in self.servers.items() if asked.tool.startswith(name_tool(name, "")))
        modes = (self.tools.get(asked.tool), self.roles.get(asked.role), *served)
        reasons = (find_approval_reason(mode, asked, scene.tool, scene.root) for mode in modes)
        why = next(filter(None, reasons), None)
        return HookResult(decision=Decision.ASK, reason=why) if why else None
