"""The plugins that count in a repository, and how a person adds, updates and removes them."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from agentflow.api.trust import (
    Item,
    list_plugin_items,
    load_trust_here,
    place_plugin_servers,
    read_own_plugin,
)
from agentflow.core.errors import ConfigError, InvalidFile, UsageError
from agentflow.core.hook import Origin
from agentflow.core.record import Record, encode
from agentflow.core.regex import regex
from agentflow.core.role import Role
from agentflow.hooks.entries import HookFile
from agentflow.library.plugins import (
    InstalledPlugin,
    Plugin,
    PluginStore,
    copy_plugin_files,
    hash_files,
    read_plugin,
)
from agentflow.library.roles import read_role
from agentflow.library.skill_file import SKILL_FILE, Skill, read_skill
from agentflow.library.slash_commands import CommandFolder
from agentflow.mcp.entries import ServerFile
from agentflow.parse import decode, expand_home
from agentflow.redact import list_some
from agentflow.sandbox.throwaway import make_scratch_folder
from agentflow.settings import PLUGIN_MANIFEST, find_folders
from agentflow.trust import read_content
from agentflow.workspace.git_fetch import fetch_files, is_address

T = TypeVar("T")
_PARTS = ("agents", "skills", "commands", "hooks/hooks.json", ".mcp.json")
_MARKETPLACE = ".claude-plugin/marketplace.json"
_MOST_NAMES = 20
_REPOSITORY = regex(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9_][\w.-]*")
_OWN = ("source", "category", "tags", "strict")
"""Keys of an entry that are about the marketplace; the others are a manifest."""


class Plugins(Record):
    """The plugins that count, those of the user first, and warnings."""

    all: tuple[Plugin, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def distinct(self) -> tuple[Plugin, ...]:
        """The plugins whose parts are called by name: of two of one name, the first."""
        return tuple({plugin.name: plugin for plugin in reversed(self.all)}.values())[::-1]


def open_store() -> PluginStore:
    found = find_folders(os.environ)
    return PluginStore(place=found.plugins, record=found.plugin_record)


def _load_plugins(root: Path) -> Plugins:
    store = open_store()
    found = [store.read(each) for each in store.load()]
    trusted = load_trust_here(root)
    own = read_own_plugin(root) if trusted.covers(PLUGIN_MANIFEST) else None
    if own is None:
        return Plugins(all=tuple(found))

    def counts(path: Path) -> bool:
        return trusted.covers(path.relative_to(root).as_posix())

    own = own.replace(
        agents=tuple(filter(counts, own.agents)),
        commands=tuple(filter(counts, own.commands)),
        hooks=tuple(filter(counts, own.hooks)),
        skills=tuple(folder for folder in own.skills if counts(folder / SKILL_FILE)),
        # the usual file of servers is the repository's
        servers=tuple(path for path in own.servers if path.parent != root and counts(path)),
    )
    names = [plugin.name for plugin in found]
    twice = f"two plugins are named {own.name}: of the repository's only the hooks count"
    return Plugins(all=(*found, own), warnings=(twice,) if own.name in names else ())


def list_plugin_servers(root: Path) -> tuple[ServerFile, ...]:
    return tuple(each for plugin in _load_plugins(root).distinct for each in place_plugin_servers(plugin))


def list_plugin_hooks(root: Path) -> tuple[HookFile, ...]:
    found = (plugin for plugin in _load_plugins(root).all if plugin.origin == "plugin")
    return tuple(
        HookFile(path=path, origin=Origin.PLUGIN, plugin=plugin.root)
        for plugin in found
        for path in plugin.hooks
    )


def list_plugin_commands(root: Path) -> tuple[CommandFolder, ...]:
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
        for role in _read_all(plugin.agents, lambda path: read_role(path, "plugin", calls)[0], warnings):
            name = f"{plugin.name}:{role.name}"
            roles[name] = role.replace(name=name, part=None)
    return tuple(roles.values()), tuple(warnings)


def load_plugin_skills(root: Path) -> tuple[tuple[Skill, ...], tuple[str, ...]]:
    warnings: list[str] = []
    skills: dict[str, Skill] = {}
    for plugin in _load_plugins(root).distinct:
        read = partial(read_skill, root=plugin.root, origin=plugin.origin)
        for skill, _ in _read_all(plugin.skills, read, warnings):
            name = f"{plugin.name}:{skill.name}"
            skills[name] = skill.replace(name=name)
    return tuple(skills.values()), tuple(warnings)


def _read_all(paths: Iterable[Path], read: Callable[[Path], T], warnings: list[str]) -> list[T]:
    parts: list[T] = []
    for path in paths:
        try:
            parts.append(read(path))
        except InvalidFile as error:
            warnings.append(f"left out of a plugin: {error}")
    return parts


class PluginSource(Record):
    """The place where a marketplace says that a plugin's files are."""

    address: str = ""
    """Of a git repository; empty for a folder beside the marketplace."""
    reference: str = ""
    folder: str = ""
    """The plugin's folder in there."""
    manifest: dict[str, Any] = {}
    """The marketplace entry, for a plugin without a manifest of its own."""


class PluginCandidate(Record):
    """A plugin as it was fetched, before anybody agreed to it."""

    plugin: Plugin
    record: InstalledPlugin
    items: tuple[Item, ...]
    folder: Path

    def list_differences(self, before: InstalledPlugin | None) -> tuple[str, ...]:
        """Return the files that differ from what was added, each with A, M or D before it."""
        old, new = before.files if before else {}, self.record.files
        marks = {name: "M" if name in old else "A" for name in new if old.get(name) != new[name]}
        marks |= {name: "D" for name in old if name not in new}
        return tuple(f"{marks[name]} {name}" for name in sorted(marks))


class _FetchedSource(Record):
    """A folder with a plugin in it, somewhere below the files that were fetched."""

    folder: Path
    top: Path
    commit: str = ""
    manifest: dict[str, Any] = {}


@contextmanager
def fetch_plugin(source: str, entry: str = "") -> Iterator[PluginCandidate]:
    """Yield the plugin of a folder, a git address or a marketplace, in a copy of its own.

    Raises UsageError for a source that is none, InvalidFile for a wrong plugin, and ConfigError where it
    cannot be fetched.
    """
    with make_scratch_folder() as scratch:
        found = _find(source, entry, scratch)
        if not found.folder.resolve().is_relative_to(found.top.resolve()) or not found.folder.is_dir():
            raise InvalidFile(source, "the plugin's folder does not exist or lies elsewhere")
        folder = scratch / "plugin"
        copy_plugin_files(found.folder, folder, hash_files(found.folder))
        _complete_manifest(folder, found)
        plugin = read_plugin(folder, "plugin")
        record = InstalledPlugin(
            name=plugin.name,
            source=source,
            entry=entry,
            version=plugin.version,
            commit=found.commit,
            files=hash_files(folder),
        )
        items = tuple(list_plugin_items(plugin))
        yield PluginCandidate(plugin=plugin, record=record, items=items, folder=folder)


def _find(source: str, entry: str, scratch: Path) -> _FetchedSource:
    place = expand_home(source)
    if place.exists() and not source.startswith("-"):
        commit, top = "", place
    else:
        address, _, reference = source.partition("#")
        if not is_address(address):
            hint = "name a folder, a marketplace file, or an https, ssh or file address"
            raise UsageError(f"{source} is neither a folder nor a git address", hint=hint)
        top = scratch / "source"
        commit = fetch_files(address, reference, top)
    has_manifest = (top / PLUGIN_MANIFEST).is_file()
    market = top if top.is_file() else top / _MARKETPLACE
    if (has_manifest and not entry) or not market.is_file():
        if entry:
            raise UsageError(f"{source} has no {_MARKETPLACE}, so {entry} cannot be found in it")
        return _FetchedSource(folder=top, top=top, commit=commit, manifest={"name": top.resolve().name})
    top = market.parent.parent if market.name == Path(_MARKETPLACE).name else market.parent
    chosen = _choose_entry(market, entry)
    if chosen.address:
        top = scratch / "entry"
        commit = fetch_files(chosen.address, chosen.reference, top)
    return _FetchedSource(folder=top / chosen.folder, top=top, commit=commit, manifest=chosen.manifest)


def _complete_manifest(folder: Path, found: _FetchedSource) -> None:
    place = folder / PLUGIN_MANIFEST
    if place.exists():
        return
    if not any((folder / part).exists() for part in _PARTS) and "skills" not in found.manifest:
        raise ConfigError(f"{found.folder} is not a plugin: it has no {PLUGIN_MANIFEST} and no {_PARTS[0]}/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(encode(found.manifest) + b"\n")


def require_new_name(candidate: PluginCandidate) -> None:
    """Raise UsageError where another plugin has this one's name."""
    known = open_store().find(candidate.plugin.name)
    same = known and (known.source, known.entry) == (candidate.record.source, candidate.record.entry)
    if known and not same:
        hint = f"agentflow plugins remove {known.name}"
        raise UsageError(f"there is a plugin {known.name} already, from {known.source}", hint=hint)


def require_installed(name: str) -> InstalledPlugin:
    store = open_store()
    found = store.find(name)
    if found is None:
        names = ", ".join(each.name for each in store.load()) or "none"
        raise UsageError(f"there is no plugin {name}; added: {names}")
    return found


def _choose_entry(path: Path, name: str) -> PluginSource:
    top = decode(dict[str, Any], read_content(path), str(path))
    listed = top.get("plugins")
    if not isinstance(listed, list):
        raise InvalidFile(str(path), "plugins: must be a list")
    entries = {str(entry.get("name")): entry for entry in listed if isinstance(entry, dict)}
    if len(entries) < len(listed):
        raise InvalidFile(str(path), "plugins: each needs a name of its own")
    chosen = name or (next(iter(entries)) if len(entries) == 1 else "")
    if chosen not in entries:
        names = list_some(sorted(entries), _MOST_NAMES)
        said = f"there is no plugin {name} in it" if name else "which one"
        raise UsageError(f"{path} lists {names}: {said}", hint="agentflow plugins add SOURCE NAME")
    metadata = top.get("metadata")
    base = metadata.get("pluginRoot", "") if isinstance(metadata, dict) else ""
    return _read_entry(entries[chosen], chosen, str(base), str(path))


def _read_entry(entry: dict[str, Any], name: str, base: str, source: str) -> PluginSource:
    said = entry.get("source")
    manifest = {key: value for key, value in entry.items() if key not in _OWN}
    where = f"plugins.{name}.source"
    if isinstance(said, str):
        folder = said if said.startswith("./") or not base else f"{base}/{said}"
        return PluginSource(folder=_require_below(folder, where, source), manifest=manifest)
    if not isinstance(said, dict):
        raise InvalidFile(source, f"{where}: must be a path or an object")
    kind = said.get("source")
    if kind == "npm":
        raise InvalidFile(source, f"{where}: npm is not supported; name a git address or a folder")
    if kind not in ("github", "url", "git-subdir", "git"):
        raise InvalidFile(source, f"{where}: {kind!r} is none of github, url, git-subdir")
    address = str(said.get("url", ""))
    if kind == "github":
        repository = str(said.get("repo", ""))
        if not _REPOSITORY.fullmatch(repository):
            raise InvalidFile(source, f"{where}.repo: {repository!r} is not owner/name")
        address = f"https://github.com/{repository}.git"
    return PluginSource(
        address=address,
        reference=str(said.get("sha") or said.get("ref") or ""),
        folder=_require_below(str(said.get("path", "")), where, source),
        manifest=manifest,
    )


def _require_below(folder: str, where: str, source: str) -> str:
    pure = PurePosixPath(folder)
    if pure.is_absolute() or ".." in pure.parts or "\0" in folder:
        raise InvalidFile(source, f"{where}: {folder} leads out of the repository")
    return str(pure)
