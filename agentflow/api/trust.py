"""The files of a repository or plugin that count only when they are trusted, and what each would do."""

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from agentflow.checks.repository import (
    KNOWN_FAILURES,
    SKIP_TESTS,
    TEST_COMMAND,
    WellKnown,
    Word,
    read_well_known,
)
from agentflow.core.errors import ConfigError, InvalidFile
from agentflow.core.evidence import CheckName
from agentflow.core.hook import Hook, Origin, Script
from agentflow.core.record import Record, to_builtins
from agentflow.core.role import Role
from agentflow.hooks.entries import Bearer, HookFile, list_project_places, load_hooks, to_skill_scope
from agentflow.library.roles import HOOKS_KEY, read_role
from agentflow.library.skill_file import SKILL_FILE, Skill, list_commands, read_skill
from agentflow.library.skills import find_skill_folders, list_project_skill_folders
from agentflow.library.substitution import PartKind, split_body
from agentflow.mcp.entries import (
    PLUGIN_ROOT,
    SERVERS_FILE,
    ServerFile,
    ServerSource,
    find_project_file,
    list_server_scripts,
    read_entries,
)
from agentflow.permissions.reading_commands import find_outputs
from agentflow.permissions.rules import Rules, read_rules
from agentflow.redact import to_one_line
from agentflow.settings import (
    LEARNINGS,
    PLUGIN_MANIFEST,
    PROJECT_FILE,
    Project,
    Skip,
    apply_project,
    find_bundled,
    find_folders,
    load_settings,
    read_project,
    tighten,
)
from agentflow.trust import TrustRecord, fingerprint_file, load_trust, read_content
from agentflow.workspace.git import open_repository

if TYPE_CHECKING:
    from agentflow.library.plugins import Plugin
    from agentflow.library.slash_commands import CommandFolder

_CHECK_FILES = (TEST_COMMAND, KNOWN_FAILURES, SKIP_TESTS)
_MAX_FILES = 2_000
_ORIGINS = {"bundled": Origin.BUILT_IN, "plugin": Origin.PLUGIN, "user": Origin.USER}
_HOOKS_LINE = f"\n{HOOKS_KEY}:".encode()
_ROOT = "./"
_PROJECT_DIR = re.compile(r"\$\{?CLAUDE_(?:PROJECT_DIR|PLUGIN_ROOT)\}?/?")
"""A repository with hooks of a plugin is that plugin's root."""


class Item(Record):
    kind: str
    """`hook`, `script`, `role`, `rules`, `settings`, `checks`, `command`, `plugin`, `skill` and the like."""
    file: str
    does: str
    name: str = ""
    needs: tuple[str, ...] = ()
    """Files that have to be trusted too before it counts."""
    sha256: str = ""
    problem: str = ""
    """Why the file is not valid; then it cannot be trusted."""


def load_trust_here(root: Path) -> TrustRecord:
    return load_trust(find_folders(os.environ).config, root)


def load_well_known(root: Path) -> WellKnown:
    said, project = read_well_known(root, load_trust_here(root).covers), load_project(root)
    checks, required = project.checks, apply_project(load_settings(os.environ), project).required
    commands = {name: word for name, word in checks.items() if isinstance(word, str)}
    skips = {name: word.skip for name, word in checks.items() if isinstance(word, Skip)}
    return said.replace(
        commands={**said.commands, **_to_words(commands)},
        skips={**said.skips, **_to_words(skips)},
        # how code is formatted is a part of `lint`
        required=frozenset(CheckName.LINT if name is CheckName.FORMAT else name for name in required),
    )


def _to_words(found: Mapping[CheckName, str]) -> dict[CheckName, Word]:
    return {name: Word(text=text, file=PROJECT_FILE) for name, text in found.items()}


def load_project_at(folder: Path) -> Project:
    """Return the settings that count in a folder, none outside of a repository. Raises ConfigError."""
    root = find_root_of(folder)
    return Project() if root is None else load_project(root)


def find_root_of(folder: Path) -> Path | None:
    """Return the root of the repository that a folder lies in, if any. Raises ConfigError for no folder."""
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder")
    try:
        return open_repository(folder).root
    except ConfigError:
        return None


def load_project(root: Path) -> Project:
    """Return the settings of a repository that count: while untrusted, only the stricter ones.

    Raises InvalidFile for a trusted file that is wrong; an untrusted wrong file is ignored.
    """
    if load_trust_here(root).covers(PROJECT_FILE):
        return read_project_file(root)
    try:
        return tighten(read_project_file(root), load_settings(os.environ))
    except InvalidFile:
        return Project()


def read_project_file(root: Path) -> Project:
    if fingerprint_file(root, PROJECT_FILE) is None:
        return Project()
    return read_project(read_content(root / PROJECT_FILE).decode("utf-8-sig", "replace"))


def list_untrusted(root: Path) -> tuple[Item, ...]:
    known = load_trust_here(root).files
    return tuple(item for item in list_items(root) if known.get(item.file) != item.sha256)


def summarize_untrusted(left: tuple[Item, ...]) -> str | None:
    """Return one line about what is not used, as `2 hooks, 1 role untrusted: agentflow trust`."""
    kinds = [item.kind for item in left]
    counts = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    numbers = ", ".join(
        f"{count} {kind if count == 1 or kind.endswith('s') else f'{kind}s'}"
        for kind, count in counts.items()
    )
    return f"{numbers} untrusted: agentflow trust" if numbers else None


def load_project_hooks(root: Path) -> tuple[tuple[Hook, ...], tuple[str, ...]]:
    """Return the repository's hooks that are trusted with every file they run, and warnings."""
    places = list_project_places(root)
    plugin = read_own_plugin(root) if load_trust_here(root).covers(PLUGIN_MANIFEST) else None
    if plugin is not None:
        own = (HookFile(path=path, origin=Origin.PROJECT, plugin=root) for path in plugin.hooks)
        places = (*places, *own)
    return load_trusted_hooks(places, root)


def load_trusted_hooks(places: Iterable[HookFile], root: Path) -> tuple[tuple[Hook, ...], tuple[str, ...]]:
    """Return the hooks of trusted files of a repository whose scripts are trusted too, and warnings."""
    trusted = load_trust_here(root)
    hooks, warnings = load_hooks(place for place in places if trusted.covers(to_relative(place.path, root)))
    whole = (hook for hook in hooks if all(map(trusted.covers, list_scripts(hook, root))))
    return tuple(_seal(hook, trusted) for hook in whole), warnings


def list_hook_places(root: Path) -> tuple[tuple[HookFile, ...], tuple[Path, ...]]:
    """Return the files that may bring hooks, and parts of the repository's plugin whose hooks do nothing."""
    places = (*list_project_places(root), *list_frontmatter_places(root))
    plugin = read_own_plugin(root)
    if plugin is None:
        return places, ()
    own = (HookFile(path=path, origin=Origin.PROJECT, plugin=root) for path in plugin.hooks)
    parts = (*plugin.agents, *(folder / SKILL_FILE for folder in plugin.skills))
    return (*places, *own), tuple(path for path in parts if _HOOKS_LINE in read_content(path))


def list_hook_notes(root: Path) -> tuple[str, ...]:
    """Return notes on a repository's hooks without effect, such as one at an event that never happens."""
    notes: list[str] = []
    for place in (*list_project_places(root), *list_frontmatter_places(root)):
        try:
            notes.extend(load_hooks((place,))[1])
        except InvalidFile:
            continue  # told where the file itself is listed
    return tuple(notes)


def list_frontmatter_places(root: Path) -> Iterator[HookFile]:
    """Yield the role files and skills of a repository that bring hooks, trusted or not; not wrong ones."""
    for path in filter(_may_bring_hooks, list_role_files(root)):
        with suppress(InvalidFile, OSError):
            if place := place_role(read_role(path, "project")[0]):
                yield place
    for folder in _list_skills(root):
        if _may_bring_hooks(folder / SKILL_FILE):
            with suppress(InvalidFile, OSError):
                if place := place_skill(read_skill(folder, root, "project")[0]):
                    yield place


def _may_bring_hooks(path: Path) -> bool:
    """Return whether it is worth reading: most files bring none, and each start looks at all."""
    try:
        return HOOKS_KEY.encode() in read_content(path)
    except (InvalidFile, OSError):
        return False


def _list_skills(root: Path) -> Iterator[Path]:
    for place in list_project_skill_folders(root):
        yield from find_skill_folders(place)


def list_role_files(root: Path) -> list[Path]:
    return sorted((root / ".claude/agents").glob("**/*.md"))[:_MAX_FILES]


def _seal(hook: Hook, trusted: TrustRecord) -> Hook:
    assert isinstance(hook.body, Script)
    written = list_written(hook)
    paths = (file for file in list_named(hook) if "/" in file or "." in file)
    files = tuple((file, trusted.files.get(file, "")) for file in paths if file not in written)
    return hook.replace(body=hook.body.replace(sealed=files, written=tuple(sorted(written))))


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


def place_role(role: Role) -> HookFile | None:
    if HOOKS_KEY not in role.lines:
        return None
    bearer = Bearer.ROLE if role.part else Bearer.SUBAGENT
    origin = _ORIGINS.get(role.origin, Origin.PROJECT)
    return HookFile(path=Path(role.source), origin=origin, bearer=bearer, scope=role.source)


def place_skill(skill: Skill) -> HookFile | None:
    if HOOKS_KEY not in skill.lines:
        return None
    # those of a plugin have its name before their own
    origin = Origin.PLUGIN if ":" in skill.name else _ORIGINS.get(skill.origin, Origin.PROJECT)
    scope = to_skill_scope(skill.name)
    return HookFile(path=Path(skill.source), origin=origin, bearer=Bearer.SKILL, scope=scope)


def read_own_plugin(root: Path) -> "Plugin | None":
    """Return the plugin that a repository is, if any. Raises InvalidFile where its manifest is wrong."""
    from agentflow.library.plugins import read_plugin

    is_developed = find_bundled("agents").parent.resolve() == root.resolve()
    return None if is_developed or not (root / PLUGIN_MANIFEST).is_file() else read_plugin(root, "project")


def to_relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


def _make_item(kind: str, path: Path, root: Path, explain: Callable[[], tuple[str, str]]) -> Item:
    """Return a file with its name and what it does; one that is not valid cannot be trusted."""
    try:
        name, does = explain()
    except InvalidFile as error:
        return _reject(kind, path, root, error)
    return Item(kind=kind, file=to_relative(path, root), name=name, does=to_one_line(does))


def _reject(kind: str, path: Path, root: Path, error: InvalidFile) -> Item:
    file, name = to_relative(path, root), path.parent.parent.name if kind == "plugin" else path.stem
    place = "" if error.line is None else f" (line {error.line})"
    does = to_one_line(f"do nothing, because it is not valid: {error.problem}{place}")
    return Item(kind=kind, file=file, name=name, does=does, problem=to_one_line(error.problem))


def list_items(root: Path) -> tuple[Item, ...]:
    """Return everything here that can be trusted; only plain files of the repository can."""
    found = (*_list_settings(root), *_list_roles(root), *_list_check_files(root))
    found += (*_list_commands(root), *_list_skill_items(root), *_list_servers(root), *_list_own_plugin(root))
    hashed = ((item, fingerprint_file(root, item.file)) for item in found)
    return tuple(item.replace(sha256=digest) for item, digest in hashed if digest is not None)


def _list_settings(root: Path) -> Iterator[Item]:
    for place in list_project_places(root):
        yield from _describe_place(place, root, read_rules)


def _describe_hooks(hooks: Iterable[Hook], file: str, root: Path) -> Iterator[Item]:
    """Yield what the hooks of a file do once it is trusted, with the files that they run."""
    for hook in hooks:
        assert isinstance(hook.body, Script)
        where = "in the sandbox of read-only roles" if hook.body.sandbox else "outside the sandbox"
        name, scripts = f"{hook.point}: {hook.name}", list_scripts(hook, root)
        does = f"runs at {hook.point}, {where}: {hook.name}"
        yield Item(kind="hook", file=file, name=name, does=does, needs=scripts)
        for script in scripts:
            yield Item(kind="script", file=script, does=f"is run by a hook at {hook.point}")


def _describe_place(
    place: HookFile, root: Path, read: Callable[[Path], Rules] = lambda _: Rules()
) -> Iterator[Item]:
    file = to_relative(place.path, root)
    try:
        hooks, _ = load_hooks((place,))
        allowed = ", ".join(map(str, read(place.path).allow))
    except InvalidFile as error:
        yield _reject("hooks", place.path, root, error)
        return
    yield from _describe_hooks(hooks, file, root)
    if allowed:
        yield Item(kind="rules", file=file, does=f"allows {to_one_line(allowed)}")


def _list_roles(root: Path) -> Iterator[Item]:
    yield from (_describe_role(path, root) for path in list_role_files(root))
    for place in list_frontmatter_places(root):
        yield from _describe_place(place, root)


def _describe_role(path: Path, root: Path) -> Item:
    def explain() -> tuple[str, str]:
        role, _ = read_role(path, "project")
        adds = f"replaces the {role.part} by" if role.part else "adds"
        tools = ", ".join(map(str, role.tools)) or "the tools of its caller"
        return role.name, f"{adds} agent {role.name} ({tools})"

    return _make_item("role", path, root, explain)


def _list_check_files(root: Path) -> Iterator[Item]:
    def explain() -> tuple[str, str]:
        known, default = to_builtins(read_project_file(root)), to_builtins(Project())
        return "", f"sets {', '.join(key for key in known if known[key] != default[key]) or 'nothing'}"

    if (root / PROJECT_FILE).is_file():
        yield _make_item("settings", root / PROJECT_FILE, root, explain)
    for file in _CHECK_FILES:
        if (root / file).is_file():
            yield Item(kind="checks", file=file, does="changes which checks are required")
    if (root / LEARNINGS).is_file():
        yield Item(kind="learnings", file=LEARNINGS, does="is given to roles as instructions")


def _list_commands(root: Path) -> Iterator[Item]:
    folder = root / ".claude/commands"
    if not folder.is_dir():
        return
    from agentflow.library.slash_commands import CommandFolder, list_command_files

    place = CommandFolder(path=folder, root=root, origin="project")
    yield from (_describe_command(path, place) for path in list_command_files(place))


def _describe_command(path: Path, place: "CommandFolder") -> Item:
    """Return what a command may do once it is trusted; its shell lines are run as it is called."""

    def explain() -> tuple[str, str]:
        from agentflow.library.slash_commands import read_command

        command = read_command(path, place)
        lines = [part.text for part in split_body(command.body) if part.kind is PartKind.COMMAND]
        runs = f", which runs in the sandbox: {'; '.join(lines)}" if lines else ""
        return f"/{command.called}", f"adds command /{command.called}{runs}"

    return _make_item("command", path, place.root, explain)


def _list_skill_items(root: Path) -> Iterator[Item]:
    for folder in _list_skills(root):
        if commands := list_commands(folder / SKILL_FILE):
            does = f"runs, when it is opened, in the sandbox of read-only roles: {'; '.join(commands)}"
            file = to_relative(folder / SKILL_FILE, root)
            yield Item(kind="skill commands", file=file, does=to_one_line(does))
    for name in (".claude/skills", ".agents/skills"):
        yield from _list_skill_scripts(sorted((root / name).glob("*/scripts/**/*"))[:_MAX_FILES], root)


def _list_skill_scripts(paths: Iterable[Path], root: Path) -> Iterator[Item]:
    for path in paths:
        if path.is_file():
            yield Item(kind="skill script", file=to_relative(path, root), does="is run by a skill")


def _list_servers(root: Path) -> Iterator[Item]:
    place = find_project_file(root)
    if place.path.is_file():
        found = read_entries((place,), root)
        if not found.all:
            yield Item(kind="MCP server", file=SERVERS_FILE, does="does nothing, because it names no server")
        for entry in found.all:
            does = f"does nothing: {entry.problem}" if entry.problem else entry.does
            yield Item(kind="MCP server", file=SERVERS_FILE, does=to_one_line(does, 400))
            for script in list_server_scripts(entry, root):
                yield Item(kind="script", file=script, does=f"is run by the MCP server {entry.name}")


def _list_own_plugin(root: Path) -> Iterator[Item]:
    if not (root / PLUGIN_MANIFEST).is_file():
        return
    try:
        plugin = read_own_plugin(root)
    except InvalidFile as error:
        yield _reject("plugin", root / PLUGIN_MANIFEST, root, error)
        return
    if plugin is not None:
        yield from list_plugin_items(plugin)


def list_plugin_items(plugin: "Plugin") -> Iterator[Item]:
    from agentflow.library.slash_commands import CommandFolder

    unused = f"; not used here: {', '.join(plugin.unused)}" if plugin.unused else ""
    does = f"adds plugin {plugin.name} {plugin.version}".rstrip() + unused
    yield Item(kind="plugin", file=PLUGIN_MANIFEST, name=plugin.name, does=to_one_line(does))
    yield from (_describe_role(path, plugin.root) for path in plugin.agents)
    for path in plugin.commands:
        place = CommandFolder(path=path, root=plugin.root, origin=plugin.origin, plugin=plugin.name)
        yield _describe_command(path, place)
    for folder in plugin.skills:
        file = to_relative(folder / SKILL_FILE, plugin.root)
        yield Item(kind="skill", file=file, does=f"adds skill {plugin.name}:{folder.name}")
        yield from _list_skill_scripts(sorted(folder.glob("scripts/**/*")), plugin.root)
    for path in plugin.hooks:
        yield from _list_plugin_hooks(path, plugin)
    for servers in place_plugin_servers(plugin):
        if plugin.origin == "project" and servers.path.parent == plugin.root:
            continue  # it is the repository's own file of servers
        for entry in read_entries((servers,), plugin.root).all:
            does = to_one_line(entry.problem or entry.does)
            yield Item(kind="server", file=to_relative(servers.path, plugin.root), does=does)


def place_plugin_servers(plugin: "Plugin") -> tuple[ServerFile, ...]:
    prefix, variables = f"plugin_{plugin.name}_", {PLUGIN_ROOT: str(plugin.root)}
    return tuple(
        ServerFile(path=path, source=ServerSource.PLUGIN, prefix=prefix, variables=variables)
        for path in plugin.servers
    )


def _list_plugin_hooks(path: Path, plugin: "Plugin") -> Iterator[Item]:
    file = to_relative(path, plugin.root)
    try:
        hooks, warnings = load_hooks((HookFile(path=path, origin=Origin.PLUGIN, plugin=plugin.root),))
    except InvalidFile as error:
        if plugin.origin == "plugin":
            raise
        yield _reject("hooks", path, plugin.root, error)
        return
    yield from _describe_hooks(hooks, file, plugin.root)
    for warning in warnings:
        yield Item(kind="hooks", file=file, does=f"is not used completely: {to_one_line(warning)}")
