"""`agents` and `tools`: roles and tools with their sources; templates for new roles and skills."""

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

from agentflow.api.content import (
    Content,
    load_content,
    load_hooks_here,
    load_rules_here,
    open_toolbox,
    remove_denied_tools,
    withhold_provider_tools,
)
from agentflow.api.models import choose_tiers
from agentflow.api.trust import list_untrusted
from agentflow.api.wiring import list_shared_capabilities
from agentflow.cli.arguments import FOLDER, JSON, make_group
from agentflow.cli.printing import say, say_json, show
from agentflow.compose.builder import Draft, Handoffs, NoModel
from agentflow.compose.capability import Capability, FactoryInput
from agentflow.compose.standard import Kit, list_standard_capabilities
from agentflow.compose.subagents import SubagentRequest, Subagents, is_reader, restrict_subagent
from agentflow.core.errors import ConfigError, InvalidInput, NotAllowed, UnknownRole, UnknownTool, UsageError
from agentflow.core.fold import DELEGATE
from agentflow.core.hook import Hook
from agentflow.core.record import Record, to_builtins
from agentflow.core.regex import regex
from agentflow.core.role import INHERIT, Change, Role
from agentflow.core.routing import ROLE_OF, SUBMITTED_BY
from agentflow.core.run import Run
from agentflow.core.tool import Category, Tool
from agentflow.hooks.chain import Chain
from agentflow.library.roles import list_subagents
from agentflow.library.skills import Offer, find_named, offer_skills
from agentflow.loop.open_skills import SKILL_TOOL
from agentflow.model.tiers import choose_model_id, find_tier, list_first_ids
from agentflow.redact import list_some, make_visible
from agentflow.settings import choose_model_name, find_folders, load_settings
from agentflow.tools.registry import WEB, Toolbox, make_standard_toolbox, to_spec
from agentflow.tools.todos import make_todo_update
from agentflow.view.text import BLANK, Style, column, label_row, line, send, span
from agentflow.workspace.git import open_repository

NAME = typer.Argument(..., metavar="NAME", help="A name from `list`.")
NEW_NAME = typer.Argument(..., metavar="NAME", help="Lower-case letters, digits and hyphens.")
USER = typer.Option(False, "--user", help="Write it below your home folder, for all repositories.")
agents = make_group()
tools = make_group()


@agents.command(name="list", epilog="Example: agentflow agents list --json")
def list_agents(json: bool = JSON) -> None:
    """List the roles with their tools and skills."""
    content = load_content_here()
    rows = [_to_role_row(role) for role in content.roles.all]
    if json:
        say_json(rows)
        return
    for row in rows:
        tools, skills = ", ".join(row["tools"]), ", ".join(row["skills"])
        show_entry(row["name"], row["tier"], {"": row["description"], "tools": tools, "skills": skills})
    tell_warnings(content)
    if untrusted := _list_untrusted_roles():
        send(
            f"not used until you run `agentflow trust`: {list_some(map(make_visible, untrusted))}\n",
            sys.stderr,
        )


@agents.command(name="show", epilog="Example: agentflow agents show implementer")
def show_agent(name: str = NAME, json: bool = JSON) -> None:
    """Show a role as it would run, with its prompt and its tools.

    Its hooks, limits and skills are shown as well, and where each comes from.
    """
    content = load_content_here()
    for path in map(Path, _list_untrusted_roles()):
        if path.stem == name and find_named(content.roles.all, name) is None:
            raise UnknownRole(f"the role {name} is not used until you trust {path}", hint="agentflow trust")
    found = content.find_role(name)
    role = _resolve_role(found, content, _find_root())
    if json:
        say_json({**_to_role_row(found), **role.to_plain()})
        return
    grouped: dict[tuple[str, str], list[str]] = {}
    for label, value, source in role.facts:
        grouped.setdefault((label, source), []).append(value)
    show(
        label_row(label, span(", ".join(values)), span(f"  [{source}]" if source else "", Style.DIM))
        for (label, source), values in grouped.items()
    )
    show_body(role.prompt)


@agents.command(name="new", epilog="Example: agentflow agents new release-notes")
def new_agent(name: str = NEW_NAME, user: bool = USER, folder: Path = FOLDER) -> None:
    """Write a commented role file to start from. `check` accepts it unchanged."""
    path = find_own_folder("agents", folder, of_user=user) / f"{name}.md"
    write_start("agent.md", path, name)
    say(f"Wrote {path}.")
    say("The implementer can use it at once." if user else "It counts once you run `agentflow trust`.")


@tools.command(name="list", epilog="Example: agentflow tools list --json")
def list_tools(json: bool = JSON) -> None:
    """List the tools with category, effect and roles."""
    rows = [{**_to_tool_row(tool), "roles": roles} for tool, roles in _find_tools().values()]
    if json:
        say_json(rows)
        return
    show(
        line(
            column(row["name"], 17, Style.BOLD),
            column(row["category"], 8, Style.DIM),
            column(row["effect"], 9, Style.DIM),
            span(row["description"]),
            span(f"  {', '.join(row['roles']) or 'no role here'}", Style.DIM),
            hang=4,
        )
        for row in rows
    )


def _find_tools() -> dict[str, tuple[Tool, list[str]]]:
    from agentflow.tools.web import WEB_FETCH, WEB_SEARCH

    root, content = _find_root(), load_content_here()
    known: dict[str, tuple[Tool, list[str]]] = {
        tool.name: (tool, []) for tool in (*open_toolbox(root).tools, WEB_FETCH, WEB_SEARCH)
    }
    for role in content.roles.all:
        for tool in _resolve_role(role, content, root).tools:
            known.setdefault(tool.name, (tool, []))[1].append(role.name)
    update = make_todo_update(())  # offered once a plan has todos
    known[update.name] = (update, [role.name for role in content.roles.all if role.name == "implementer"])
    return known


@tools.command(name="show", epilog="Example: agentflow tools show Edit")
def show_tool(name: str = NAME, json: bool = JSON) -> None:
    """Show a tool: what it does, its input, and the roles that have it."""
    found, holders = _find_tools().get(name, (None, []))
    if found is None:
        raise UnknownTool(f"there is no tool {name} here", hint="agentflow tools list shows them")
    if name in WEB and not holders:
        raise UnknownTool(
            f"there is no tool {name} here", hint="network: [explorer] in config.yaml opens the web"
        )
    row = {**_to_tool_row(found), "roles": holders, "input": to_spec(found).input_schema}
    if json:
        say_json(row)
        return
    show_facts(row, "name", "category", "effect", "description", "roles")
    say("\ninput")
    for key, value in row["input"]["properties"].items():
        need = "" if key in row["input"].get("required", ()) else "optional; "
        told = f"{need}{value.get('description') or value.get('type') or ''}"
        show([label_row(f"  {key}", span(told), width=17)])


def _list_untrusted_roles() -> tuple[str, ...]:
    return tuple(item.file for item in list_untrusted(_find_root()) if item.kind == "role")


def _find_root() -> Any:
    try:
        return open_repository(Path()).root
    except ConfigError:
        return Path.cwd()


def load_content_here() -> Content:
    return load_content(_find_root(), make_standard_toolbox())


def tell_warnings(content: Content) -> None:
    for warning in content.warnings:
        send(f"{make_visible(warning)}\n", sys.stderr)


def _to_role_row(role: Role) -> dict[str, Any]:
    return {
        "name": role.name,
        "description": role.description,
        "tier": find_tier(role.model),
        "tools": [str(rule) for rule in role.tools],
        "skills": list(role.skills),
        "source": role.origin,
    }


def _to_tool_row(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "category": tool.category,
        "effect": tool.effect,
        "description": tool.description,
    }


def show_entry(name: str, note: str, told: dict[str, str]) -> None:
    """Show one entry of a list: its name with a note, and below it labelled texts."""
    show([line(span(name, Style.BOLD), span(f"  {note}", Style.DIM))])
    for label, text in told.items():
        said = [span(f"{label}  ", Style.DIM)] if label else []
        show([line("  ", *said, span(text), hang=4)] if text else [])


def show_facts(row: dict[str, Any], *labels: str) -> None:
    for label in labels:
        value = row[label] or "-"
        text = value if isinstance(value, str) else ", ".join(value)
        show([label_row(label, span(text), width=13)])


def show_body(text: str) -> None:
    """Show a text of Markdown, after an empty line."""
    show([BLANK, *(line(span(row), hang=len(row) - len(row.lstrip(" -"))) for row in text.split("\n"))])


Fact = tuple[str, str, str]
"""A label, its value, and the source of the value."""


class ResolvedRole(Record):
    """A role as it would run here."""

    role: Role
    prompt: str
    facts: tuple[Fact, ...]
    hooks: tuple[str, ...]
    tools: tuple[Tool, ...]
    """The offered tools, including the one that ends its run."""

    def to_plain(self) -> dict[str, Any]:
        """Return the details beyond the role's own file as plain values."""
        return {
            "limits": to_builtins(self.role.limits),
            "prompt": self.prompt,
            "offered": [tool.name for tool in self.tools],
            "hooks": self.hooks,
            "sources": [
                {"part": part, "value": value, "source": source} for part, value, source in self.facts
            ],
        }


def _name_hooks(hooks: Iterable[Hook], role: Role) -> tuple[str, ...]:
    asked = Chain(hooks, (role.source,)).active
    return tuple(f"{hook.name} at {hook.point} ({hook.origin.name.lower()})" for hook in asked)


def _resolve_role(role: Role, content: Content, root: Path) -> ResolvedRole:
    settings = load_settings(os.environ)
    settings = choose_tiers(settings, choose_model_name(None, settings, os.environ))
    rules, ids = load_rules_here(root), list_first_ids(settings.models)
    hooks = (*load_hooks_here(root)[0], *content.hooks)
    toolbox = withhold_provider_tools(open_toolbox(root), content.roles, hooks, rules, settings.approvals)
    role = remove_denied_tools(role, rules, toolbox)
    rights: tuple[Fact, ...] = ()
    if role.part is None:
        role, toolbox, rights = _narrow(role, content, root)
    phase = next((phase for phase, part in ROLE_OF.items() if part == role.part), None)
    skills = offer_skills(content.skills, role, phase, ())
    kit = Kit(model=NoModel(), models=ids, toolbox=toolbox, events=ignore_event, skills=skills)
    shared = list_shared_capabilities(hooks, rules, settings.approvals)
    draft = Draft.of((*list_standard_capabilities(role, kit), *_list_delegation(role, content), *shared))
    tools = draft.make_tools(*draft.choose_model())
    named = _name_hooks(draft.hooks, role)
    bounds = ", ".join(
        f"{value} {key.replace('_', ' ')}" for key, value in to_builtins(role.limits).items() if value
    )
    model = (
        "as its caller"
        if role.model == INHERIT
        else f"{find_tier(role.model)}, {choose_model_id(role.model, ids)}"
    )
    facts: tuple[Fact, ...] = (
        ("source", role.source, role.origin),
        *rights,
        ("tier", model, role.place("model")),
        *(("tool", _spell(tool, role), _find_giver(tool, role)) for tool in tools),
        *(("skill", name, source) for name, source in _list_skills(skills)),
        *(("hook", name, "") for name in named),
        ("limits", bounds, role.place("maxTurns" if "maxTurns" in role.lines else "limits")),
    )
    return ResolvedRole(role=role, prompt=draft.write_prompt(tools), facts=facts, hooks=named, tools=tools)


def _narrow(role: Role, content: Content, root: Path) -> tuple[Role, Toolbox, tuple[Fact, ...]]:
    """Return a sub-agent as the implementer would run it, its tools, and what it may do in words."""
    parent = content.roles.find_part(SUBMITTED_BY[Change])
    offered = _resolve_role(parent, content, root).tools
    tools = tuple(tool for tool in offered if tool.category is not Category.AGENT)
    try:
        narrowed, box = restrict_subagent(parent, role, role.model, tools)
    except InvalidInput as error:
        return role, Toolbox(tools=()), (("may", f"do nothing: {error}", ""),)
    lost = [str(rule) for rule in role.tools if not box.select_for(narrowed.replace(tools=(rule,)))]
    change = "read files only" if is_reader(narrowed, box) else "change files or run commands"
    callers = [each.name for each in content.roles.all if each.list_rules(DELEGATE)]
    rights: list[Fact] = [("may", change, ""), ("called by", ", ".join(callers), "")]
    if lost:
        rights.append(("without", f"{', '.join(lost)}, which the {parent.name} does not have", ""))
    return narrowed, box, tuple(rights)


def _list_delegation(role: Role, content: Content) -> tuple[Capability, ...]:
    known = list_subagents(content.roles.all)
    given = Subagents(role=role, depth=0, known=known, run=_refuse_to_run)
    return given, Handoffs(role=role, known=known)


def _spell(tool: Tool, role: Role) -> str:
    return ", ".join(map(str, role.list_rules(tool.name))) or tool.name


def _find_giver(tool: Tool, role: Role) -> str:
    if tool.input in SUBMITTED_BY:
        return f"its part, {role.part}"
    if tool.name == SKILL_TOOL:
        return "skills"
    return "the program" if tool.granted else role.place("tools")


def _list_skills(skills: Offer) -> list[tuple[str, str]]:
    opened = [(f"{skill.name}, open from the beginning", skill.source) for skill in skills.opened]
    return opened + [(skill.name, skill.source) for skill in skills.listed]


async def _refuse_to_run(request: SubagentRequest, _: FactoryInput) -> Run:
    raise NotAllowed(f"{request.role.name} is shown here and not run")


def ignore_event(_: object) -> None:
    """Ignore an event."""


_TEMPLATES = Path(__file__).with_name("templates")
_NAME = regex(r"[a-z0-9]+(-[a-z0-9]+)*")
_MAX_NAME = 64


def find_own_folder(kind: str, folder: Path, *, of_user: bool) -> Path:
    """Return the folder of the user's or the repository's `skills`, `agents` and the like."""
    claude = find_folders(os.environ).claude if of_user else open_repository(folder).root / ".claude"
    return claude / kind


def write_start(template: str, path: Path, name: str) -> None:
    """Write a template under a name. Raises UsageError for a bad name or a file that is there."""
    if not _NAME.fullmatch(name) or len(name) > _MAX_NAME:
        raise UsageError(
            f"{name!r} is not a valid name",
            hint="use lower-case letters, digits and single hyphens, at most 64",
        )
    if os.path.lexists(path):
        raise UsageError(f"{path} already exists", hint="choose another name, or edit that file")
    title = re.sub("-", " ", name)
    text = (_TEMPLATES / template).read_text("utf-8")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.format(name=name, title=title, heading=title.capitalize()), "utf-8")
