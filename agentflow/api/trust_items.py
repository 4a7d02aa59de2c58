"""The effects that one file of a repository or plugin may have once a person trusts it."""

import os
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from agentflow.core.errors import InvalidFile
from agentflow.core.hook import Hook, Origin, Script
from agentflow.core.record import Record
from agentflow.core.role import Role
from agentflow.hooks.entries import Bearer, HookFile, load_hooks, to_skill_scope
from agentflow.library.roles import HOOKS_KEY, read_role
from agentflow.library.skill_file import SKILL_FILE, Skill, read_skill
from agentflow.library.substitution import PartKind, split_body
from agentflow.permissions.reading_commands import find_outputs
from agentflow.redact import to_one_line
from agentflow.settings import PLUGIN_MANIFEST, find_bundled
from agentflow.trust import read_content

if TYPE_CHECKING:
    from agentflow.library.plugins import Plugin, PluginServers
    from agentflow.library.slash_commands import CommandFolder

_ROOT = "./"
_PROJECT_DIR = re.compile(r"\$\{?CLAUDE_(?:PROJECT_DIR|PLUGIN_ROOT)\}?/?")
"""A repository with hooks of a plugin is that plugin's root."""


class Item(Record):
    """One file, and what it may do once it is trusted."""

    kind: str
    """`hook`, `script`, `role`, `rules`, `settings`, `checks`, `command`, `plugin`, `skill` and the like."""
    file: str
    does: str
    sha256: str = ""
    problem: str = ""
    """Why the file is not valid; then it cannot be trusted."""


def reject_item(kind: str, file: str, error: InvalidFile) -> Item:
    """Return a file that cannot be trusted, as it is not valid."""
    place = "" if error.line is None else f" (line {error.line})"
    does = f"do nothing, because it is not valid: {error.problem}{place}"
    return Item(kind=kind, file=file, does=to_one_line(does), problem=to_one_line(error.problem))


def list_scripts(hook: Hook, root: Path) -> tuple[str, ...]:
    """Return the files of a repository that a hook's command may run or read, relative to it."""
    written = list_written(hook)
    return tuple(name for name in list_named(hook) if name not in written and (root / name).is_file())


def list_written(hook: Hook) -> frozenset[str]:
    """Return the files of the repository that a hook's command only writes."""
    assert isinstance(hook.body, Script)
    if hook.body.args is not None or hook.body.shell == "powershell":
        return frozenset()
    outputs = find_outputs(_PROJECT_DIR.sub(_ROOT, hook.body.command))
    named = (os.path.normpath(path.removeprefix(_ROOT)) for path in outputs)
    return frozenset(name for name in named if name != "." and not name.startswith(("/", "..")))


def list_named(hook: Hook) -> tuple[str, ...]:
    """Return the words of a hook's command as paths below the repository."""
    assert isinstance(hook.body, Script)
    words = [word for text in (hook.body.command, *(hook.body.args or ())) for word in _split_words(text)]
    named = dict.fromkeys(os.path.normpath(_PROJECT_DIR.sub("", word)) for word in words if word)
    return tuple(name for name in named if name != "." and not name.startswith(("/", "..")))


def _split_words(text: str) -> list[str]:
    try:
        return [piece for word in shlex.split(text) for piece in (word, *re.split(r"[\s;|&()<>=]+", word))]
    except ValueError:
        return re.split(r"[\s;|&()<>=\"']+", text)


def describe_hooks(hooks: Iterable[Hook], file: str, root: Path) -> Iterator[Item]:
    """Yield what the hooks of a file do once it is trusted, with the files that they run."""
    for hook in hooks:
        assert isinstance(hook.body, Script)
        where = "in the sandbox of read-only roles" if hook.body.sandbox else "outside the sandbox"
        yield Item(kind="hook", file=file, does=f"runs at {hook.point}, {where}: {hook.name}")
        for script in list_scripts(hook, root):
            yield Item(kind="script", file=script, does=f"is run by a hook at {hook.point}")


def _describe_role(path: Path, root: Path) -> Item:
    try:
        role, _ = read_role(path, "project")
        adds = f"replaces the {role.part} by" if role.part else "adds"
        does = f"{adds} agent {role.name} ({', '.join(map(str, role.tools)) or 'the tools of its caller'})"
    except InvalidFile as error:
        return reject_item("role", to_relative(path, root), error)
    return Item(kind="role", file=to_relative(path, root), does=to_one_line(does))


def list_role_items(path: Path, root: Path) -> Iterator[Item]:
    """Yield what a role file of a repository may do once it is trusted, including its hooks."""
    yield _describe_role(path, root)
    place = find_role_place(path)
    if place is not None:
        yield from _describe_place(place, root)


def find_role_place(path: Path) -> HookFile | None:
    """Return the role file of a repository if it brings hooks."""
    try:
        if HOOKS_KEY.encode() not in read_content(path):
            return None  # most bring none, and all of them are looked at as a command starts
        return place_role(read_role(path, "project")[0])
    except (InvalidFile, OSError):
        return None


def list_skill_hooks(folder: Path, root: Path) -> Iterator[Item]:
    """Yield what the hooks of a repository's skill do once its file is trusted."""
    place = find_skill_place(folder, root)
    if place is not None:
        yield from _describe_place(place, root)


def find_skill_place(folder: Path, root: Path) -> HookFile | None:
    """Return the file of a repository's skill if it brings hooks."""
    try:
        if HOOKS_KEY.encode() not in read_content(folder / SKILL_FILE):
            return None
        return place_skill(read_skill(folder, root, "project")[0])
    except (InvalidFile, OSError):
        return None


def _describe_place(place: HookFile, root: Path) -> Iterator[Item]:
    file = to_relative(place.path, root)
    try:
        hooks, _ = load_hooks((place,))
    except InvalidFile as error:
        yield reject_item("hooks", file, error)
        return
    yield from describe_hooks(hooks, file, root)


_ORIGINS = {"bundled": Origin.BUILT_IN, "plugin": Origin.PLUGIN, "user": Origin.USER}


def place_role(role: Role) -> HookFile | None:
    """Return the file of a role if it brings hooks."""
    if HOOKS_KEY not in role.lines:
        return None
    bearer = Bearer.ROLE if role.part else Bearer.SUBAGENT
    origin = _ORIGINS.get(role.origin, Origin.PROJECT)
    return HookFile(path=Path(role.source), origin=origin, bearer=bearer, scope=role.source)


def place_skill(skill: Skill) -> HookFile | None:
    """Return the file of a skill if it brings hooks."""
    if HOOKS_KEY not in skill.lines:
        return None
    # those of a plugin have its name before their own
    origin = Origin.PLUGIN if ":" in skill.name else _ORIGINS.get(skill.origin, Origin.PROJECT)
    scope = to_skill_scope(skill.name)
    return HookFile(path=Path(skill.source), origin=origin, bearer=Bearer.SKILL, scope=scope)


def describe_command(path: Path, place: "CommandFolder", root: Path) -> Item:
    """Return what a command may do once it is trusted; its shell lines are run as it is called."""
    from agentflow.library.slash_commands import read_command

    try:
        command = read_command(path, place)
        lines = [part.text for part in split_body(command.body) if part.kind is PartKind.COMMAND]
        runs = f", which runs in the sandbox: {'; '.join(lines)}" if lines else ""
        does = f"adds command /{command.called}{runs}"
    except InvalidFile as error:
        return reject_item("command", to_relative(path, root), error)
    return Item(kind="command", file=to_relative(path, root), does=to_one_line(does))


def read_own_plugin(root: Path) -> "Plugin | None":
    """Return the plugin that a repository is, if any. Raises InvalidFile where its manifest is wrong."""
    from agentflow.library.plugins import read_plugin

    is_developed = find_bundled("agents").parent.resolve() == root.resolve()
    return None if is_developed or not (root / PLUGIN_MANIFEST).is_file() else read_plugin(root, "project")


def list_plugin_items(plugin: "Plugin") -> Iterator[Item]:
    """Yield an item for each part of a plugin, the files that it runs among them."""
    unused = f"; not used here: {', '.join(plugin.unused)}" if plugin.unused else ""
    does = f"adds plugin {plugin.name} {plugin.version}".rstrip() + unused
    yield Item(kind="plugin", file=PLUGIN_MANIFEST, does=to_one_line(does))
    yield from (_describe_role(path, plugin.root) for path in plugin.agents)
    from agentflow.library.slash_commands import CommandFolder

    for path in plugin.commands:
        place = CommandFolder(path=path, root=plugin.root, origin=plugin.origin, plugin=plugin.name)
        yield describe_command(path, place, plugin.root)
    for folder in plugin.skills:
        yield Item(
            kind="skill",
            file=to_relative(folder / SKILL_FILE, plugin.root),
            does=f"adds skill {plugin.name}:{folder.name}",
        )
        for script in sorted(folder.glob("scripts/**/*")):
            if script.is_file():
                yield Item(
                    kind="skill script", file=to_relative(script, plugin.root), does="is run by a skill"
                )
    for path in plugin.hooks:
        yield from _list_hooks(path, plugin)
    for servers in plugin.servers:
        yield from _describe_servers(servers, plugin)


def _list_hooks(path: Path, plugin: "Plugin") -> Iterator[Item]:
    file = to_relative(path, plugin.root)
    try:
        hooks, warnings = load_hooks((HookFile(path=path, origin=Origin.PLUGIN, plugin=plugin.root),))
    except InvalidFile as error:
        if plugin.origin == "plugin":
            raise
        yield reject_item("hooks", file, error)
        return
    yield from describe_hooks(hooks, file, plugin.root)
    yield from (
        Item(kind="hooks", file=file, does=f"is not used completely: {to_one_line(said)}")
        for said in warnings
    )


def _describe_servers(servers: "PluginServers", plugin: "Plugin") -> Iterator[Item]:
    if plugin.origin == "project" and servers.path.parent == plugin.root:
        return  # it is the repository's own file of servers
    from agentflow.library.plugins import describe_plugin_servers

    for name, starts in describe_plugin_servers(servers.path).items():
        does = to_one_line(f"starts the MCP server plugin_{plugin.name}_{name}: {starts}")
        yield Item(kind="server", file=to_relative(servers.path, plugin.root), does=does)


def to_relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()
