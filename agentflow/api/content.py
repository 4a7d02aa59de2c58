"""The roles, skills, tools, hooks and rules that count in a repository."""

import os
from collections.abc import Iterable
from pathlib import Path

from agentflow.api.trust import (
    list_role_files,
    list_untrusted,
    load_project_hooks,
    load_trust_here,
    load_trusted_hooks,
    place_role,
    place_skill,
    summarize_untrusted,
)
from agentflow.compose.subagents import let_implementer_delegate
from agentflow.core.errors import ConfigError, InvalidFile, UnknownRole, UnknownSkill
from agentflow.core.hook import Hook, Origin
from agentflow.core.record import Record
from agentflow.core.role import Role
from agentflow.hooks.entries import (
    HookFile,
    list_project_places,
    list_user_places,
    load_hooks,
    may_see,
    name_shipped,
)
from agentflow.library.roles import Roles, list_subagents, load_roles, require_known
from agentflow.library.skills import (
    SkillFolder,
    Skills,
    describe_unknown_skill,
    find_named,
    list_skill_places,
    load_skills,
)
from agentflow.permissions.rules import Rules, find_denied_tools, find_named_tools, load_rules
from agentflow.redact import format_count
from agentflow.settings import (
    PLUGIN_MANIFEST,
    Approvals,
    Settings,
    choose_model_name,
    find_bundled,
    find_folders,
    load_settings,
)
from agentflow.store.journal import load_runs
from agentflow.store.reading import find
from agentflow.tools.registry import Toolbox, build_toolbox


class Content(Record):
    roles: Roles
    skills: Skills
    warnings: tuple[str, ...]
    hooks: tuple[Hook, ...] = ()
    """Those in the frontmatter of the roles and skills."""

    def find_role(self, name: str) -> Role:
        found = find_named(self.roles.all, name)
        if found is None:
            raise UnknownRole(f"there is no role {name}", hint="agentflow agents list shows them")
        return found


def open_toolbox(root: Path, model: str | None = None) -> Toolbox:
    """Return the available tools, including those that the provider runs."""
    settings = load_settings(os.environ)
    box = build_toolbox(settings.network)
    name = choose_model_name(model, settings, os.environ)
    if box.find("WebFetch") is None or not _has_search(name, settings, root):
        return box
    from agentflow.tools.web import WEB_SEARCH

    return Toolbox.of(*box.tools, WEB_SEARCH)


def load_rules_here(root: Path) -> Rules:
    own, trusted = find_folders(os.environ).claude / "settings.json", load_trust_here(root)
    paths = tuple(place.path for place in list_project_places(root))
    believed = frozenset(path for path in paths if trusted.covers(path.relative_to(root).as_posix()))
    return load_rules(own, paths, believed)


def load_hooks_here(root: Path) -> tuple[tuple[Hook, ...], tuple[str, ...]]:
    """Return the hooks that count here, with warnings; the repository's own only where they are trusted."""
    hooks, warnings = load_hooks(list_user_places(find_bundled("hooks"), find_folders(os.environ).claude))
    hooks = choose_shipped(hooks, load_settings(os.environ).hooks)
    if has_plugins(root):
        from agentflow.api.plugins import list_plugin_hooks

        brought, notes = load_hooks(list_plugin_hooks(root))
        hooks, warnings = (*hooks, *brought), (*warnings, *notes)
    theirs, notes = load_project_hooks(root)
    left_out = summarize_untrusted(list_untrusted(root))
    return (*hooks, *theirs), (*warnings, *notes, *((left_out,) if left_out else ()))


def choose_shipped(hooks: tuple[Hook, ...], wanted: tuple[str, ...]) -> tuple[Hook, ...]:
    """Return hooks without the shipped ones that the user did not switch on. Raises ConfigError."""
    names = sorted({name for hook in hooks if (name := name_shipped(hook))})
    if unknown := sorted(set(wanted) - set(names)):
        raise ConfigError(
            f"{find_folders(os.environ).config}: hooks: there is no shipped hook {unknown[0]}",
            hint=f"they are {', '.join(names)}",
        )
    return tuple(hook for hook in hooks if not (name := name_shipped(hook)) or name in wanted)


def remove_denied_tools(role: Role, rules: Rules, toolbox: Toolbox) -> Role:
    """Return a role without the tools that a rule denies entirely, so that no model sees them."""
    denied = find_denied_tools(rules, toolbox.tools)
    return role.replace(tools=tuple(rule for rule in role.tools if rule.tool not in denied))


def withhold_provider_tools(
    toolbox: Toolbox, roles: Roles, hooks: Iterable[Hook], rules: Rules, approvals: Approvals
) -> Toolbox:
    """Return the tools without the provider's own where a hook, rule or approval mode must see each call."""
    explorer = roles.find_part("explorer")
    modes = [approvals.roles.get(name, "never") for name in (explorer.name, *explorer.handoffs)]
    served = [tool for tool in toolbox.tools if tool.by_provider]
    named = find_named_tools(rules, served)
    modes += [approvals.tools.get(tool.name, "never") for tool in served]
    is_seen = any(may_see(hook, tool) for hook in hooks for tool in served)
    is_held = is_seen or bool(named) or any(mode != "never" for mode in modes)
    return Toolbox(tools=tuple(tool for tool in toolbox.tools if not (is_held and tool.by_provider)))


def _has_search(model: str, settings: Settings, root: Path) -> bool:
    if model.startswith("replay:"):
        runs = load_runs(find(root, model.removeprefix("replay:")))
        return any(tool.by_provider for run in runs for tool in run.head.tools)
    from agentflow.model.endpoint import can_search

    return can_search(model, settings, os.environ)


def load_content(root: Path, toolbox: Toolbox) -> Content:
    """Return the roles and skills that count here. Raises InvalidFile, UnknownTool or UnknownSkill.

    A wrong file that plays no part of the pipeline may be for other tools: it is left out with a warning.
    """
    calls = load_settings(os.environ).limits.calls
    trusted = load_trust_here(root)
    trusted_roles = tuple(
        path for path in list_role_files(root) if trusted.covers(path.relative_to(root).as_posix())
    )
    roles = load_roles(find_folders(os.environ).claude, trusted_roles, calls)
    skills, notes = load_skills_here(root)
    warnings = [*roles.warnings, *notes]
    if has_plugins(root):
        from agentflow.api.plugins import load_plugin_roles

        brought, notes = load_plugin_roles(root, calls)
        roles = roles.replace(all=(*roles.all, *brought))
        warnings.extend(notes)
    hooks = _FrontmatterHooks(root)
    kept = [role for role in roles.all if hooks.take(place_role(role), is_needed=role.part is not None)]
    skills = skills.replace(
        all=tuple(skill for skill in skills.all if hooks.take(place_skill(skill), is_needed=False))
    )
    warnings.extend(hooks.warnings)
    used: list[Role] = []
    for role in kept:
        if role.part:
            toolbox.select_for(role)
        elif toolbox.is_empty_for(role):
            listed = ", ".join(map(str, role.tools))
            why = f"tools: role {role.name} lists {listed}, and none of them exists here"
            warnings.append(f"role left out: {role.place('tools')}: {why}")
            continue
        used.append(role)
        warnings.extend(f"{role.place('tools')}: {problem}" for problem in toolbox.list_unknown(role))
        if missing := describe_unknown_skill(role, skills):
            if role.part:
                hint = "agentflow skills list shows them"
                raise UnknownSkill(f"{role.place('skills')}: {missing}", hint=hint)
            warnings.append(f"{role.place('skills')}: {missing}")
    for role in used:
        if role.part:
            require_known(role, list_subagents(tuple(used)))
    everyone = let_implementer_delegate(tuple(used))
    return Content(
        roles=roles.replace(all=everyone), skills=skills, warnings=tuple(warnings), hooks=tuple(hooks.found)
    )


def load_skills_here(root: Path) -> tuple[Skills, tuple[str, ...]]:
    trusted, skills = load_trust_here(root).files, load_skills(list_skill_folders(root))
    everyone = [
        skill.replace(trusted=trusted.get(Path(skill.source).relative_to(root).as_posix(), ""))
        if skill.origin == "project"
        else skill
        for skill in skills.all
    ]
    skills = skills.replace(all=tuple(everyone))
    if theirs := [skill for skill in everyone if skill.origin == "project"]:
        is_on = all(skill.trusted for skill in theirs)
        off = "" if is_on else "; their scripts stay off until agentflow trust"
        count = f"{format_count(len(theirs), 'skill')} active{off}"
        skills = skills.replace(warnings=(*skills.warnings, count))
    if not has_plugins(root):
        return skills, skills.warnings
    from agentflow.api.plugins import load_plugin_skills

    brought, notes = load_plugin_skills(root)
    return skills.replace(all=(*skills.all, *brought)), (*skills.warnings, *notes)


def has_plugins(root: Path) -> bool:
    """Return whether the user added a plugin, or the repository may be one."""
    return find_folders(os.environ).plugin_record.is_file() or (root / PLUGIN_MANIFEST).is_file()


def list_skill_folders(root: Path) -> tuple[SkillFolder, ...]:
    found = find_folders(os.environ)
    return list_skill_places(found.claude, found.config.parent, root)


class _FrontmatterHooks:
    """The hooks of roles and skills that count; a repository's only where file and scripts are trusted."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.found: list[Hook] = []
        self.warnings: list[str] = []

    def take(self, place: HookFile | None, *, is_needed: bool) -> bool:
        """Add the hooks of a role or skill, and return whether it can be used.

        With hooks that are wrong it is left out with a warning, as it would run without its guard; that of a
        role of the pipeline raises InvalidFile.
        """
        if place is None:
            return True
        if place.origin is Origin.PLUGIN:
            no_effect = "hooks: those in a plugin's agents and skills have no effect"
            self.warnings.append(f"{place.path}: {no_effect}")
            return True
        try:
            if place.origin is Origin.PROJECT:
                hooks, notes = load_trusted_hooks((place,), self._root)
            else:
                hooks, notes = load_hooks((place,))
        except InvalidFile as error:
            if is_needed:
                raise
            self.warnings.append(f"left out because of its hooks: {error}")
            return False
        self.found.extend(hooks)
        self.warnings.extend(notes)
        return True
