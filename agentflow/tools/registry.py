"""The toolbox: which tools there are, and which of them a role is offered."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Self

from agentflow.core.errors import ConfigError, UnknownTool
from agentflow.core.fold import DELEGATE
from agentflow.core.messages import ToolSpec
from agentflow.core.record import Record
from agentflow.core.role import HANDOFF, Plan, Role, ToolRule
from agentflow.core.routing import SUBMITTED_BY
from agentflow.core.tool import Category, Subject, Tool
from agentflow.parse import make_schema
from agentflow.permissions.rules import SERVER_PREFIX, is_about_tool
from agentflow.settings import Caller
from agentflow.tools.files import EDIT, MULTI_EDIT, READ, WRITE
from agentflow.tools.remember import REMEMBER
from agentflow.tools.run_tests import RUN_TESTS, TRY_MUTANTS, TRY_TEST
from agentflow.tools.search import GLOB, GREP
from agentflow.tools.shell import BASH, describe_shell_scope
from agentflow.tools.submit import ASK, ESCALATE, SUBMIT_TOOLS
from agentflow.tools.symbols import INDEX_TOOLS
from agentflow.tools.todos import TODO_WRITE

SUBMITS: Mapping[str, str] = {SUBMITTED_BY[tool.input]: tool.name for tool in SUBMIT_TOOLS}
"""The tool that ends the run of each part of the pipeline."""
WEB = frozenset({"WebSearch", "WebFetch"})
"""A role may list these; they are there once the user opens the network, WebSearch if a model brings it."""
ELSEWHERE = frozenset(
    {
        *("Agent", "Task", "TaskCreate", "TaskGet", "TaskList", "TaskOutput", "TaskStop", "TaskUpdate"),
        *("BashOutput", "KillBash", "KillShell", "LS", "LSP", "NotebookEdit", "NotebookRead"),
        *("ExitPlanMode", "PowerShell", "RecallOutput", "Repair", "SendMessage", "Skill", "SlashCommand"),
        *("ToolSearch", "Monitor", "EnterPlanMode", "EnterWorktree", "ExitWorktree"),
    }
)
"""Names that public role files list and that are no tools a list can give here."""
_SHIPPED = (
    READ,
    EDIT,
    MULTI_EDIT,
    WRITE,
    GLOB,
    GREP,
    BASH,
    RUN_TESTS,
    TRY_MUTANTS,
    TRY_TEST,
    TODO_WRITE,
    REMEMBER,
    ASK,
    ESCALATE,
    *SUBMIT_TOOLS,
    *INDEX_TOOLS,
)
NAMES = frozenset({*(tool.name for tool in _SHIPPED), *WEB, *ELSEWHERE})
"""Every word that means a tool."""
_BY_PREFIX = ("mcp__", HANDOFF)
"""Names that are not known before a run."""
_CATEGORIES = frozenset(category.value for category in Category)


_ON_THE_WEB = Caller.EXPLORER


class Toolbox(Record):
    tools: tuple[Tool, ...]

    @classmethod
    def of(cls, *tools: Tool) -> Self:
        """Return a toolbox. Raises ConfigError when two tools have one name."""
        names = [tool.name for tool in tools]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigError(f"two tools are named {', '.join(twice)}")
        return cls(tools=tools)

    def find(self, name: str) -> Tool | None:
        return next((tool for tool in self.tools if tool.name == name), None)

    def select_for(self, role: Role) -> tuple[Tool, ...]:
        """Return the tools of a role's list and the one it submits with, by name.

        Raises UnknownTool for a role of the pipeline; a sub-agent does without the tools of other programs.
        """
        listed = {rule.tool for rule in role.tools}
        for problem in self.list_unknown(role) if role.part else ():
            known = ", ".join(sorted(self._list_names()))
            raise UnknownTool(f"{role.place('tools')}: tools: {problem}", hint=f"Known are {known}.")
        offered = {tool.name: tool for tool in self._common() if {tool.name, tool.category.value} & listed}
        for tool in tuple(offered.values()):
            is_web = tool.by_provider or tool.rule_subject is Subject.ADDRESS
            if is_web and role.part != _ON_THE_WEB:
                del offered[tool.name]
            elif tool.rule_subject is Subject.COMMAND:
                offered[tool.name] = tool.replace(scope=describe_shell_scope(role, tool))
        submits = (tool for tool in self.tools if SUBMITTED_BY.get(tool.input) == role.part is not None)
        offered.update((tool.name, tool) for tool in submits)
        return tuple(offered[name] for name in sorted(offered))

    def _common(self) -> tuple[Tool, ...]:
        """Return the tools that a role can list; a Submit tool comes with its part only."""
        return tuple(tool for tool in self.tools if tool.input not in SUBMITTED_BY)

    def list_unknown(self, role: Role) -> tuple[str, ...]:
        """Return a problem for each entry of a role's list that names no tool, not one elsewhere either."""
        known, problems = self._list_names(), list[str]()
        for entry in sorted({rule.tool for rule in role.tools} - known - ELSEWHERE):
            if not entry.startswith(_BY_PREFIX):
                near = get_close_matches(entry, sorted(known), n=1)
                advice = f"; did you mean {near[0]}?" if near else ""
                problems.append(f"role {role.name} lists {entry}, which is not a tool or category{advice}")
        return tuple(problems)

    def is_empty_for(self, role: Role) -> bool:
        """Return whether a role lists tools and none of them exists here."""
        known = {*self._list_names(), DELEGATE, "Skill"}
        listed = {rule.tool for rule in role.tools}
        return bool(listed) and not any(entry in known or entry.startswith(_BY_PREFIX) for entry in listed)

    def _list_names(self) -> set[str]:
        return {*(tool.name for tool in self._common()), *WEB, *_CATEGORIES}


def name_server_tools(role: Role, tools: Iterable[Tool], denied: frozenset[str]) -> Role:
    """Return a role whose list names each tool of MCP servers, in place of servers as a whole."""
    rules = [rule for rule in role.tools if not rule.tool.startswith(SERVER_PREFIX)]
    for tool in tools:
        patterns = () if tool.name in denied else _find_patterns(role, tool)
        rules += [ToolRule(tool=tool.name, pattern=pattern, source=role.source) for pattern in patterns]
    return role.replace(tools=tuple(rules))


def _find_patterns(role: Role, tool: Tool) -> tuple[str | None, ...]:
    """Return the patterns under which a role has a tool of a server; a tool about all servers has none."""
    listed = [rule for rule in role.tools if rule.tool.startswith(SERVER_PREFIX)]
    if not tool.name.startswith(SERVER_PREFIX):
        return (None,) if role.part and listed else ()
    found = {rule.pattern for rule in listed if is_about_tool(rule.replace(pattern=None), tool)}
    return (None,) if None in found else tuple(sorted(map(str, found)))


def to_spec(tool: Tool) -> ToolSpec:
    return ToolSpec(
        name=tool.name,
        description=tool.description,
        input_schema=make_schema(tool.input) if tool.schema is None else tool.schema,
        by_provider=tool.by_provider,
    )


def offer_order(toolbox: Toolbox) -> Toolbox:
    """Return tools among which the one for plans asks what each step builds on."""
    shown = make_schema(Plan)
    shown["properties"]["steps"]["items"]["properties"]["after"] = _AFTER
    tools = (tool.replace(schema=shown) if tool.input is Plan else tool for tool in toolbox.tools)
    return toolbox.replace(tools=tuple(tools))


_AFTER = {
    "type": "array",
    "items": {"type": "integer", "minimum": 1},
    "description": "Numbers of the earlier steps whose result this one needs; [] for none.",
}


def make_standard_toolbox() -> Toolbox:
    """Return all tools that are shipped and need nothing to be opened."""
    return Toolbox.of(*_SHIPPED)


def build_toolbox(network: Iterable[Caller]) -> Toolbox:
    """Return the tools where these may reach the network."""
    if _ON_THE_WEB not in network:
        return make_standard_toolbox()
    from agentflow.tools.web import WEB_FETCH  # noqa: PLC0415  # loaded only where it is offered

    return Toolbox.of(*_SHIPPED, WEB_FETCH)
