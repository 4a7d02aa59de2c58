"""The parts of a repository for coding assistants, by kind, and whether each takes effect."""

import json
import os
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path

from agentflow.api.content import list_skill_folders
from agentflow.api.servers import UNTRUSTED, load_entries
from agentflow.api.trust import list_frontmatter_places, list_untrusted
from agentflow.api.trust_items import list_scripts, read_own_plugin
from agentflow.core.errors import InvalidFile
from agentflow.core.hook import Origin
from agentflow.core.record import Record
from agentflow.frontmatter import read_public
from agentflow.hooks.entries import HookFile, list_idle_hooks, list_project_places, load_hooks
from agentflow.library.plugins import Plugin, count_parts
from agentflow.library.roles import HOOKS_KEY, read_role
from agentflow.library.skill_file import SKILL_FILE, read_skill
from agentflow.library.skills import find_skill_folders
from agentflow.library.slash_commands import CommandFolder, list_command_files, read_command
from agentflow.mcp.entries import SERVERS_FILE, ServerSource
from agentflow.redact import format_count
from agentflow.settings import PLUGIN_MANIFEST
from agentflow.trust import read_content

_MAX_EXTENSIONS = 500
"""The most parts of one kind that are named."""


class Standing(StrEnum):
    """The effect that a part of the repository has, or why it has none."""

    COUNTS = "counts"
    WAITS = "waits for trust"
    LEFT_OUT = "left out"
    """It is wrong; the problems say why."""
    UNSUPPORTED = "not supported"


class Extension(Record):
    """One thing in a repository that is written for a coding assistant."""

    name: str
    file: str
    standing: Standing
    reason: str = ""


class RepositoryTrust(Record):
    """A repository, and the files of it that wait for trust."""

    root: Path
    waiting: frozenset[str]

    def is_trusted(self, file: str) -> bool:
        return file not in self.waiting

    def name_file(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


class ExtensionKind(Record):
    """A kind of part, and the function that lists the parts of that kind."""

    name: str
    list_extensions: Callable[[RepositoryTrust], Iterator[Extension]]


def list_extensions(root: Path) -> tuple[tuple[str, Extension], ...]:
    """Return every part that a repository brings, with its kind."""
    repository = RepositoryTrust(root=root, waiting=frozenset(item.file for item in list_untrusted(root)))
    found = [
        (kind.name, part)
        for kind in EXTENSION_KINDS
        for part in list(kind.list_extensions(repository))[:_MAX_EXTENSIONS]
    ]
    return tuple(found)


def _list_skills(repository: RepositoryTrust) -> Iterator[Extension]:
    places = [place for place in list_skill_folders(repository.root) if place.origin == "project"]
    for folder in (folder for place in places for folder in find_skill_folders(place)):
        file = repository.name_file(folder / SKILL_FILE)
        try:
            skill, _ = read_skill(folder, repository.root, "project")
        except InvalidFile as error:
            yield Extension(name=folder.name, file=file, standing=Standing.LEFT_OUT, reason=error.problem)
            continue
        notes = (
            "" if skill.owners else "active for all roles",
            "" if repository.is_trusted(file) else "its commands and hooks wait for trust",
        )
        reason = "; ".join(filter(None, notes))
        yield Extension(name=skill.name, file=file, standing=Standing.COUNTS, reason=reason)


def _list_agents(repository: RepositoryTrust) -> Iterator[Extension]:
    for path in sorted((repository.root / ".claude/agents").glob("**/*.md")):
        file = repository.name_file(path)
        try:
            role, _ = read_role(path, "project")
        except InvalidFile as error:
            yield Extension(name=path.stem, file=file, standing=Standing.LEFT_OUT, reason=error.problem)
            continue
        yield Extension(name=role.name, file=file, standing=_stand(repository, file))


def _list_hooks(repository: RepositoryTrust) -> Iterator[Extension]:
    for place in (*list_project_places(repository.root), *list_frontmatter_places(repository.root)):
        yield from _list_hooks_of(place, repository)
    try:
        plugin = read_own_plugin(repository.root)
    except InvalidFile:
        return  # told where plugins are listed
    if plugin is None:
        return
    for path in plugin.hooks:
        place = HookFile(path=path, origin=Origin.PROJECT, plugin=plugin.root)
        yield from _list_hooks_of(place, repository)
    for path in (*plugin.agents, *(folder / SKILL_FILE for folder in plugin.skills)):
        if HOOKS_KEY in _read_head(path):
            file = repository.name_file(path)
            reason = "hooks in the agents and skills of a plugin have no effect"
            yield Extension(name=path.stem, file=file, standing=Standing.UNSUPPORTED, reason=reason)


def _list_hooks_of(place: HookFile, repository: RepositoryTrust) -> Iterator[Extension]:
    file = repository.name_file(place.path)
    try:
        hooks, _ = load_hooks((place,))
        idle = list_idle_hooks(place) if os.path.lexists(place.path) else ()
    except InvalidFile as error:
        yield Extension(name=place.path.name, file=file, standing=Standing.LEFT_OUT, reason=error.problem)
        return
    for hook in hooks:
        waiting = [
            name for name in (file, *list_scripts(hook, repository.root)) if name in repository.waiting
        ]
        yield Extension(
            name=f"{hook.point}: {hook.name}",
            file=file,
            standing=Standing.WAITS if waiting else Standing.COUNTS,
            reason=", ".join(name for name in waiting if name != file),
        )
    for each in idle:
        yield Extension(name=each.where, file=file, standing=Standing.UNSUPPORTED, reason=each.reason)


def _read_head(path: Path) -> dict[str, object]:
    try:
        return dict(read_public(read_content(path).decode("utf-8", "replace"), str(path)).head)
    except (InvalidFile, OSError):
        return {}


def _list_commands(repository: RepositoryTrust) -> Iterator[Extension]:
    place = CommandFolder(path=repository.root / ".claude/commands", root=repository.root, origin="project")
    for path in list_command_files(place):
        file = repository.name_file(path)
        try:
            command = read_command(path, place)
        except InvalidFile as error:
            yield Extension(name=f"/{path.stem}", file=file, standing=Standing.LEFT_OUT, reason=error.problem)
            continue
        yield Extension(name=f"/{command.called}", file=file, standing=_stand(repository, file))


def _list_plugins(repository: RepositoryTrust) -> Iterator[Extension]:
    manifest = repository.root / PLUGIN_MANIFEST
    if not manifest.is_file():
        return
    file = repository.name_file(manifest)
    try:
        plugin = read_own_plugin(repository.root)
    except InvalidFile as error:
        yield Extension(
            name=_read_name(manifest), file=file, standing=Standing.LEFT_OUT, reason=error.problem
        )
        return
    if plugin is None:
        reason = "its parts are those of agentflow itself"
        yield Extension(name=_read_name(manifest), file=file, standing=Standing.COUNTS, reason=reason)
    else:
        reason = _describe_plugin(plugin, repository)
        yield Extension(name=plugin.name, file=file, standing=_stand(repository, file), reason=reason)


def _describe_plugin(plugin: Plugin, repository: RepositoryTrust) -> str:
    brings = ", ".join(format_count(count, part) for part, count in count_parts(plugin).items() if count)
    parts = (*plugin.agents, *plugin.commands, *plugin.hooks, *(one / SKILL_FILE for one in plugin.skills))
    waiting = sum(not repository.is_trusted(repository.name_file(path)) for path in parts)
    left = f"{format_count(waiting, 'file')} of it waiting for trust" if waiting else ""
    unused = f"not used: {', '.join(plugin.unused)}" if plugin.unused else ""
    return "; ".join(filter(None, (brings, left, unused)))


def _list_servers(repository: RepositoryTrust) -> Iterator[Extension]:
    for entry in load_entries(repository.root).all:
        if entry.source is not ServerSource.PROJECT:
            continue
        stands = {"": Standing.COUNTS, UNTRUSTED: Standing.WAITS}
        standing = stands.get(entry.problem, Standing.LEFT_OUT)
        reason = entry.problem if standing is Standing.LEFT_OUT else ""
        yield Extension(name=entry.name, file=SERVERS_FILE, standing=standing, reason=reason)


EXTENSION_KINDS = (
    ExtensionKind(name="skill", list_extensions=_list_skills),
    ExtensionKind(name="agent", list_extensions=_list_agents),
    ExtensionKind(name="command", list_extensions=_list_commands),
    ExtensionKind(name="hook", list_extensions=_list_hooks),
    ExtensionKind(name="plugin", list_extensions=_list_plugins),
    ExtensionKind(name="MCP server", list_extensions=_list_servers),
)
"""All kinds, in the order in which `check` names their parts; a kind that is supported has its row here."""


def _stand(repository: RepositoryTrust, file: str) -> Standing:
    return Standing.COUNTS if repository.is_trusted(file) else Standing.WAITS


def _read_name(manifest: Path) -> str:
    return str(_read_table(manifest).get("name") or manifest.parent.parent.name)


def _read_table(path: Path) -> dict[str, object]:
    try:
        found = json.loads(read_content(path)) if path.is_file() else {}
    except (InvalidFile, OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
