"""`agents`, `tools`, `skills` and `commands`: roles, what they have, and texts that are called as `/name`."""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from agentflow.cli.printing import say, tell_result
from agentflow.compose.builder import Draft, Handoffs, NoModel
from agentflow.compose.capability import FactoryInput
from agentflow.compose.standard import Kit, list_standard_capabilities
from agentflow.compose.subagents import SubagentRequest, Subagents, is_reader, restrict_subagent
from agentflow.core.errors import (
    ConfigError,
    Exit,
    InvalidInput,
    NotAllowed,
    UnknownRole,
    UnknownSkill,
    UnknownTool,
    UsageError,
)
from agentflow.core.fold import DELEGATE
from agentflow.core.record import Record, to_builtins
from agentflow.core.regex import regex
from agentflow.core.role import INHERIT, Change, Role
from agentflow.core.routing import ROLE_OF, SUBMITTED_BY
from agentflow.core.run import Run
from agentflow.core.tool import Category, Tool
from agentflow.hooks.chain import Chain
from agentflow.library.roles import list_subagents
from agentflow.library.skill_file import Skill, list_skill_files, open_body
from agentflow.library.skills import Skills, find_named, list_shared_words, offer_skills, run_skill_tests
from agentflow.loop.open_skills import SKILL_TOOL, list_opened_names
from agentflow.model.tiers import choose_model_id, find_tier, list_first_ids
from agentflow.redact import list_some, make_visible
from agentflow.settings import choose_model_name, find_folders, load_settings
from agentflow.store.journal import load_runs
from agentflow.store.reading import find
from agentflow.tools.registry import WEB, Toolbox, make_standard_toolbox, to_spec
from agentflow.tools.todos import make_todo_update
from agentflow.view.text import BLANK, Line, Style, draw_entry, label_row, line, send, span, tabulate
from agentflow.workspace.git import open_repository

if TYPE_CHECKING:
    from agentflow.library.slash_commands import PromptCommand

_UNOWNED = "every role, as it names no owner"
_TEMPLATES = Path(__file__).with_name("templates")
_NAME = regex(r"[a-z0-9]+(-[a-z0-9]+)*")
_MAX_NAME = 64
NAME = typer.Argument(..., metavar="NAME", help="A name from `list`.")
NEW_NAME = typer.Argument(..., metavar="NAME", help="Lower-case letters, digits and hyphens.")
ONE_NAME = typer.Argument(None, metavar="NAME", help="A name from `list`; all that have tests by default.")
USED_IN = typer.Argument(None, metavar="TASK", help="A task's id or its beginning.")
USER = typer.Option(False, "--user", help="Write it below your home folder, for all repositories.")
agents = make_group()
tools = make_group()
skills = make_group()
commands = make_group()


def _find_root() -> Path:
    try:
        return open_repository(Path()).root
    except ConfigError:
        return Path.cwd()


def _load_content_here() -> Content:
    return load_content(_find_root(), make_standard_toolbox())


def _warn(warnings: Iterable[str]) -> None:
    send("".join(f"{make_visible(warning)}\n" for warning in warnings), sys.stderr)


def _draw_facts(row: dict[str, Any], *labels: str) -> Iterator[Line]:
    for label in labels:
        value = row[label] or "-"
        text = value if isinstance(value, str) else ", ".join(value)
        yield label_row(label, span(text), width=13)


def _draw_body(text: str) -> Iterator[Line]:
    yield BLANK
    yield from (line(span(row), hang=len(row) - len(row.lstrip(" -"))) for row in text.split("\n"))


def _write_start(template: str, kind: str, name: str, folder: Path, *, is_users: bool) -> Path:
    """Write a template below the folder of the user or the repository. Raises UsageError."""
    claude = find_folders(os.environ).claude if is_users else open_repository(folder).root / ".claude"
    path = claude / kind
    if not _NAME.fullmatch(name) or len(name) > _MAX_NAME:
        hint = "use lower-case letters, digits and single hyphens, at most 64"
        raise UsageError(f"{name!r} is not a valid name", hint=hint)
    if os.path.lexists(path):
        raise UsageError(f"{path} already exists", hint="choose another name, or edit that file")
    title = name.replace("-", " ")
    text = (_TEMPLATES / template).read_text("utf-8")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.format(name=name, title=title, heading=title.capitalize()), "utf-8")
    return path


@agents.command(name="list", epilog="Example: agentflow agents list --json")
def list_agents(json: bool = JSON) -> None:
    """List the roles with their tools and skills."""
    content = _load_content_here()
    rows = [_to_role_row(role) for role in content.roles.all]
    lines: list[Line] = []
    for row in rows:
        given = (f"{key}  {', '.join(row[key])}" for key in ("tools", "skills") if row[key])
        lines += draw_entry(row["name"], row["tier"], (row["description"], *given))
    tell_result(rows, lines, json=json)
    if json:
        return
    _warn(content.warnings)
    if untrusted := _list_untrusted_roles():
        _warn((f"not used until you run `agentflow trust`: {list_some(untrusted)}",))


@agents.command(name="show", epilog="Example: agentflow agents show implementer")
def show_agent(name: str = NAME, json: bool = JSON) -> None:
    """Show a role as it would run, with its prompt and its tools.

    Its hooks, limits and skills are shown as well, and where each comes from.
    """
    content = _load_content_here()
    for path in map(Path, _list_untrusted_roles()):
        if path.stem == name and find_named(content.roles.all, name) is None:
            raise UnknownRole(f"the role {name} is not used until you trust {path}", hint="agentflow trust")
    found = content.find_role(name)
    role = _resolve_role(found, content, _find_root())
    tell_result({**_to_role_row(found), **role.to_plain()}, role.draw(), json=json)


@agents.command(name="new", epilog="Example: agentflow agents new release-notes")
def new_agent(name: str = NEW_NAME, user: bool = USER, folder: Path = FOLDER) -> None:
    """Write a commented role file to start from. `check` accepts it unchanged."""
    path = _write_start("agent.md", f"agents/{name}.md", name, folder, is_users=user)
    say(f"Wrote {path}.")
    say("The implementer can use it at once." if user else "It counts once you run `agentflow trust`.")


def _list_untrusted_roles() -> tuple[str, ...]:
    return tuple(item.file for item in list_untrusted(_find_root()) if item.kind == "role")


def _to_role_row(role: Role) -> dict[str, Any]:
    return {
        "name": role.name,
        "description": role.description,
        "tier": find_tier(role.model),
        "tools": [str(rule) for rule in role.tools],
        "skills": list(role.skills),
        "source": role.origin,
    }


LabelledText = tuple[str, str, str]
"""A label, its value, and the source of the value."""


class ResolvedRole(Record):
    role: Role
    prompt: str
    facts: tuple[LabelledText, ...]
    hooks: tuple[str, ...]
    tools: tuple[Tool, ...]
    """The offered tools, including the one that ends its run."""

    def to_plain(self) -> dict[str, Any]:
        return {
            "limits": to_builtins(self.role.limits),
            "prompt": self.prompt,
            "offered": [tool.name for tool in self.tools],
            "hooks": self.hooks,
            "sources": [
                {"part": part, "value": value, "source": source} for part, value, source in self.facts
            ],
        }

    def draw(self) -> Iterator[Line]:
        """Yield the facts, those of one label and source in a row, and the prompt."""
        grouped: dict[tuple[str, str], list[str]] = {}
        for label, value, source in self.facts:
            grouped.setdefault((label, source), []).append(value)
        for (label, source), values in grouped.items():
            yield label_row(
                label, span(", ".join(values)), span(f"  [{source}]" if source else "", Style.DIM)
            )
        yield from _draw_body(self.prompt)


def _resolve_role(role: Role, content: Content, root: Path) -> ResolvedRole:
    settings = load_settings(os.environ)
    settings = choose_tiers(settings, choose_model_name(None, settings, os.environ))
    rules, ids = load_rules_here(root), list_first_ids(settings.models)
    hooks = (*load_hooks_here(root)[0], *content.hooks)
    toolbox = withhold_provider_tools(open_toolbox(root), content.roles, hooks, rules, settings.approvals)
    role = remove_denied_tools(role, rules, toolbox)
    rights: tuple[LabelledText, ...] = ()
    if role.part is None:
        role, toolbox, rights = _narrow(role, content, root)
    phase = next((phase for phase, part in ROLE_OF.items() if part == role.part), None)
    skills = offer_skills(content.skills, role, phase, ())
    kit = Kit(model=NoModel(), models=ids, toolbox=toolbox, events=ignore_event, skills=skills)
    shared = list_shared_capabilities(hooks, rules, settings.approvals)
    subagents = list_subagents(content.roles.all)
    delegation = (
        Subagents(role=role, depth=0, known=subagents, run=_refuse_to_run),
        Handoffs(role=role, known=subagents),
    )
    draft = Draft.of((*list_standard_capabilities(role, kit), *delegation, *shared))
    tools = draft.make_tools(*draft.choose_model())
    asked = Chain(draft.hooks, (role.source,)).active  # without those of skills
    named = tuple(f"{hook.name} at {hook.point} ({hook.origin.name.lower()})" for hook in asked)
    bounds = ", ".join(
        f"{value} {key.replace('_', ' ')}" for key, value in to_builtins(role.limits).items() if value
    )
    model = (
        "as its caller"
        if role.model == INHERIT
        else f"{find_tier(role.model)}, {choose_model_id(role.model, ids)}"
    )
    facts: tuple[LabelledText, ...] = (
        ("source", role.source, role.origin),
        *rights,
        ("tier", model, role.place("model")),
        *(
            ("tool", ", ".join(map(str, role.list_rules(tool.name))) or tool.name, _find_giver(tool, role))
            for tool in tools
        ),
        *(("skill", f"{skill.name}, open from the beginning", skill.source) for skill in skills.opened),
        *(("skill", skill.name, skill.source) for skill in skills.listed),
        *(("hook", name, "") for name in named),
        ("limits", bounds, role.place("maxTurns" if "maxTurns" in role.lines else "limits")),
    )
    return ResolvedRole(role=role, prompt=draft.write_prompt(tools), facts=facts, hooks=named, tools=tools)


def _narrow(role: Role, content: Content, root: Path) -> tuple[Role, Toolbox, tuple[LabelledText, ...]]:
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
    rights: list[LabelledText] = [("may", change, ""), ("called by", ", ".join(callers), "")]
    if lost:
        rights.append(("without", f"{', '.join(lost)}, which the {parent.name} does not have", ""))
    return narrowed, box, tuple(rights)


def _find_giver(tool: Tool, role: Role) -> str:
    if tool.input in SUBMITTED_BY:
        return f"its part, {role.part}"
    if tool.name == SKILL_TOOL:
        return "skills"
    return "the program" if tool.granted else role.place("tools")


async def _refuse_to_run(request: SubagentRequest, _: FactoryInput) -> Run:
    raise NotAllowed(f"{request.role.name} is shown here and not run")


def ignore_event(_: object) -> None:
    """Ignore an event."""


@tools.command(name="list", epilog="Example: agentflow tools list --json")
def list_tools(json: bool = JSON) -> None:
    """List the tools with category, effect and roles."""
    rows = [{**_to_tool_row(tool), "roles": roles} for tool, roles in _find_tools().values()]
    lines = tabulate(
        ("tool", "kind", "effect", "what it does, and who has it"),
        (
            (
                span(row["name"], Style.BOLD),
                row["category"],
                row["effect"],
                f"{row['description']}  {', '.join(row['roles']) or 'no role here'}",
            )
            for row in rows
        ),
    )
    tell_result(rows, lines, json=json)


def _find_tools() -> dict[str, tuple[Tool, list[str]]]:
    from agentflow.tools.web import WEB_FETCH, WEB_SEARCH

    root, content = _find_root(), _load_content_here()
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
        hint = "network: [explorer] in config.yaml opens the web"
        raise UnknownTool(f"there is no tool {name} here", hint=hint)
    row = {**_to_tool_row(found), "roles": holders, "input": to_spec(found).input_schema}
    tell_result(row, _draw_tool(row), json=json)


def _draw_tool(row: dict[str, Any]) -> Iterator[Line]:
    yield from _draw_facts(row, "name", "category", "effect", "description", "roles")
    yield from (BLANK, line("input"))
    for key, value in row["input"]["properties"].items():
        need = "" if key in row["input"].get("required", ()) else "optional; "
        text = f"{need}{value.get('description') or value.get('type') or ''}"
        yield label_row(f"  {key}", span(text), width=17)


def _to_tool_row(tool: Tool) -> dict[str, Any]:
    return {key: getattr(tool, key) for key in ("name", "category", "effect", "description")}


@skills.command(name="list", epilog="Example: agentflow skills list --json")
def list_skills(task: str | None = USED_IN, json: bool = JSON, folder: Path = FOLDER) -> None:
    """List the skills and the roles that use them.

    With TASK, list the skills that the task opened, and why.
    """
    if task is not None:
        runs = load_runs(find(open_repository(folder).root, task))
        known = _load_content_here().skills
        opened = [row for run in runs for row in _list_opened(run, known)]
        texts = [f"{row.skill}  {row.role}, run {row.run}: {row.why}" for row in opened]
        tell_result([to_builtins(row) for row in opened], texts or ["This task opened no skill."], json=json)
        return
    content = _load_content_here()
    rows = [_to_skill_row(skill, content) for skill in content.skills.all]
    lines: list[Line] = []
    for row in rows:
        users = ", ".join(filter(None, (row["owner"], *row["consumers"]))) or _UNOWNED
        lines += draw_entry(row["name"], row["source"], (row["description"], f"roles  {users}"))
    tell_result(rows, lines, json=json)
    if not json:
        _warn(content.warnings)


@skills.command(name="show", epilog="Example: agentflow skills show verification-gates")
def show_skill(name: str = NAME, json: bool = JSON) -> None:
    """Show a skill: its owner, its files, and the text that a role reads."""
    content = _load_content_here()
    found = content.skills.find(name)
    if found is None:
        raise UnknownSkill(f"there is no skill {name}", hint="agentflow skills list shows them")
    body = open_body(found).text
    row = {**_to_skill_row(found, content), "path": found.source, "files": list_skill_files(found)}
    facts = _draw_facts(row, "description", "owner", "consumers", "source", "path", "files")
    tell_result({**row, "body": body}, (*facts, *_draw_body(body)), json=json)


@skills.command(name="new", epilog="Example: agentflow skills new money")
def new_skill(name: str = NEW_NAME, user: bool = USER, folder: Path = FOLDER) -> None:
    """Write a commented skill to start from, with a test. `check` accepts it unchanged."""
    path = _write_start("skill.md", f"skills/{name}/SKILL.md", name, folder, is_users=user)
    _write_start("skill-tests.yaml", f"skills/{name}/tests.yaml", name, folder, is_users=user)
    say(f"Wrote {path} and tests.yaml.")
    say(f"Edit them, then run `agentflow skills test {name}`.")


@skills.command(name="test", epilog="Example: agentflow skills test money")
def check_skills(name: str | None = ONE_NAME, json: bool = JSON) -> int:
    """Run the tests of skills, which say for which tasks one is offered.

    They are in the skill's tests.yaml. No model is asked.
    """
    content = _load_content_here()
    chosen = [skill for skill in content.skills.all if name in (None, skill.name)]
    if not chosen:
        raise UnknownSkill(f"there is no skill {name}", hint="agentflow skills list shows them")
    tests = [row for skill in chosen for row in run_skill_tests(skill, content.skills, content.roles)]
    end = f"{len(tests)} tests" if tests else "No tests found. Write tests.yaml beside SKILL.md."
    tell_result([to_builtins(row) for row in tests], [*(row.text for row in tests), end], json=json)
    return Exit.VERIFIED if all(row.passed for row in tests) else Exit.NOT_VERIFIED


def _to_skill_row(skill: Skill, content: Content) -> dict[str, Any]:
    listing = (role.name for role in content.roles.all if skill.name in role.skills)
    consumers = {*skill.consumers, *listing} - {skill.owner}
    return {
        "name": skill.name,
        "description": skill.description,
        "owner": skill.owner,
        "consumers": sorted(consumers),
        "source": skill.origin,
    }


class OpenedSkill(Record):
    skill: str
    role: str
    run: int
    why: str


def _list_opened(run: Run, known: Skills) -> Iterator[OpenedSkill]:
    for name, is_from_start in list_opened_names(run):
        skill = known.find(name)
        if is_from_start:
            keys = ("roles", "phases", "paths") if skill else ()
            named = [f"{key} {', '.join(values)}" for key in keys if (values := getattr(skill, key))]
            why = "open from the beginning" + (f" ({'; '.join(named)})" if named else "")
        else:
            words = list_shared_words(run.task_prompt, skill) if skill else ()
            shared = f"; shares the words {', '.join(words[:8])}" if words else ""
            why = f"the role opened it{shared}"
        yield OpenedSkill(skill=name, role=run.head.role, run=run.head.run, why=why)


@commands.command(name="list", epilog="Example: agentflow commands list --json")
def list_prompt_commands(json: bool = JSON, folder: Path = FOLDER) -> None:
    """List the commands with their arguments and where they come from."""
    from agentflow.api.slash_commands import load_commands_here, may_be_called

    root = open_repository(folder).root
    known = load_commands_here(root)
    rows = [_to_command_row(command, counts=may_be_called(root, command)) for command in known.all]
    lines: list[Line | str] = []
    for row in rows:
        called = f"/{row['name']} {row['argument_hint']}".rstrip()
        state = row["source"] if row["trusted"] else f"{row['source']}, not trusted: agentflow trust"
        place = f"{state}, {row['folder']}" if row["folder"] else state
        lines += draw_entry(called, place, [row["description"]])
    if not rows:
        lines.append("There are no commands here. A file .claude/commands/NAME.md is called as /NAME.")
    lines += (line(span(f"! {warning}", Style.WARN), hang=2) for warning in known.warnings)
    tell_result(rows, lines, json=json)


def _to_command_row(command: "PromptCommand", *, counts: bool) -> dict[str, Any]:
    return {
        "name": command.called,
        "description": command.description,
        "argument_hint": command.hint,
        "tools": None if command.tools is None else [str(rule) for rule in command.tools],
        "model": command.model,
        "folder": command.folder,
        "source": f"plugin {command.plugin}" if command.plugin else command.origin,
        "path": str(command.path),
        "trusted": counts,
    }
