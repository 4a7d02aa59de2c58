"""The plugins that count in a repository: those that the user added, and a trusted one at its root."""

import os
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TypeVar

from agentflow.api.trust import load_trust_here
from agentflow.api.trust_items import read_own_plugin
from agentflow.core.errors import InvalidFile
from agentflow.core.hook import Origin
from agentflow.core.record import Record
from agentflow.core.role import Role
from agentflow.hooks.entries import HookFile
from agentflow.library.plugin_store import PluginStore
from agentflow.library.plugins import Plugin, PluginServers
from agentflow.library.roles import read_role
from agentflow.library.skill_file import SKILL_FILE, Skill, read_skill
from agentflow.library.slash_commands import CommandFolder
from agentflow.settings import PLUGIN_MANIFEST, folders

T = TypeVar("T")


class Plugins(Record):
    """The plugins that count, those of the user first, and warnings."""

    all: tuple[Plugin, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def distinct(self) -> tuple[Plugin, ...]:
        """The plugins whose parts are called by name: of two of one name, the first."""
        return tuple({plugin.name: plugin for plugin in reversed(self.all)}.values())[::-1]


def open_store() -> PluginStore:
    """Return where the user's plugins are kept."""
    found = folders(os.environ)
    return PluginStore(place=found.plugins, record=found.plugin_record)


def _load_plugins(root: Path) -> Plugins:
    """Return the plugins that count in a repository. Raises ConfigError for one that changed or is wrong."""
    store = open_store()
    found = [store.read(each) for each in store.load()]
    own = _load_own(root)
    if own is None:
        return Plugins(all=tuple(found))
    names = [plugin.name for plugin in found]
    twice = f"two plugins are named {own.name}: of the repository's only the hooks count"
    return Plugins(all=(*found, own), warnings=(twice,) if own.name in names else ())


def _load_own(root: Path) -> Plugin | None:
    """Return the trusted parts of the plugin at a repository's root. Raises InvalidFile if they are wrong."""
    trusted = load_trust_here(root)
    plugin = read_own_plugin(root) if trusted.covers(PLUGIN_MANIFEST) else None
    if plugin is None:
        return None

    def counts(path: Path) -> bool:
        return trusted.covers(path.relative_to(root).as_posix())

    return _select(plugin, counts)


def _select(plugin: Plugin, counts: Callable[[Path], bool]) -> Plugin:
    """Return a plugin with the parts whose file counts; the usual file of servers is the repository's."""
    return plugin.replace(
        agents=tuple(filter(counts, plugin.agents)),
        commands=tuple(filter(counts, plugin.commands)),
        hooks=tuple(filter(counts, plugin.hooks)),
        skills=tuple(folder for folder in plugin.skills if counts(folder / SKILL_FILE)),
        servers=tuple(each for each in plugin.servers if _is_extra(each) and counts(each.path)),
    )


def _is_extra(servers: PluginServers) -> bool:
    return servers.path.parent != servers.root


def list_plugin_servers(root: Path) -> tuple[PluginServers, ...]:
    """Return the files of plugins that configure MCP servers here."""
    return tuple(each for plugin in _load_plugins(root).distinct for each in plugin.servers)


def list_plugin_hooks(root: Path) -> tuple[HookFile, ...]:
    """Return the files with hooks of the plugins that the user added."""
    found = (plugin for plugin in _load_plugins(root).all if plugin.origin == "plugin")
    return tuple(
        HookFile(path=path, origin=Origin.PLUGIN, plugin=plugin.root)
        for plugin in found
        for path in plugin.hooks
    )


def list_plugin_commands(root: Path) -> tuple[CommandFolder, ...]:
    """Return the commands of plugins."""
    return tuple(
        CommandFolder(path=path, root=plugin.root, origin=plugin.origin, plugin=plugin.name)
        for plugin in _load_plugins(root).distinct
        for path in plugin.commands
    )


def load_plugin_roles(root: Path, calls: int) -> tuple[tuple[Role, ...], tuple[str, ...]]:
    """Return the roles of plugins under the plugins' names, none of the pipeline's, and warnings."""
    plugins = _load_plugins(root)
    warnings = list(plugins.warnings)
    roles: dict[str, Role] = {}
    for plugin in plugins.distinct:
        for role in _read_all(plugin.agents, partial(_read_role, calls), warnings):
            name = f"{plugin.name}:{role.name}"
            roles[name] = role.replace(name=name, part=None)
    return tuple(roles.values()), tuple(warnings)


def load_plugin_skills(root: Path) -> tuple[tuple[Skill, ...], tuple[str, ...]]:
    """Return the skills of plugins under the plugins' names, and warnings."""
    warnings: list[str] = []
    skills: dict[str, Skill] = {}
    for plugin in _load_plugins(root).distinct:
        for skill in _read_all(plugin.skills, partial(_read_skill, plugin), warnings):
            name = f"{plugin.name}:{skill.name}"
            skills[name] = skill.replace(name=name)
    return tuple(skills.values()), tuple(warnings)


def _read_role(calls: int, path: Path) -> Role:
    return read_role(path, "plugin", calls)[0]


def _read_skill(plugin: Plugin, folder: Path) -> Skill:
    return read_skill(folder, plugin.root, plugin.origin)[0]


def _read_all(paths: Iterable[Path], read: Callable[[Path], T], warnings: list[str]) -> list[T]:
    found: list[T] = []
    for path in paths:
        try:
            found.append(read(path))
        except InvalidFile as error:
            warnings.append(f"left out of a plugin: {error}")
    return found
