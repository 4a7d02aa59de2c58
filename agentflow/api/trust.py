"""The files of a repository that count only when they are trusted, and what each would do."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from agentflow.api.trust_items import (
    Item,
    describe_command,
    describe_hooks,
    find_role_place,
    find_skill_place,
    list_named,
    list_plugin_items,
    list_role_items,
    list_scripts,
    list_skill_hooks,
    list_written,
    read_own_plugin,
    reject_item,
    to_relative,
)
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
from agentflow.core.record import to_builtins
from agentflow.hooks.entries import HookFile, list_project_places, load_hooks
from agentflow.library.skill_file import SKILL_FILE, list_commands
from agentflow.library.skills import find_skill_folders, list_project_skill_folders
from agentflow.mcp.entries import SERVERS_FILE, find_project_file, list_server_scripts, read_entries
from agentflow.permissions.rules import read_rules
from agentflow.redact import to_one_line
from agentflow.settings import (
    PLUGIN_MANIFEST,
    PROJECT_FILE,
    Project,
    Skip,
    apply_project,
    find_folders,
    load_settings,
    read_project,
    tighten,
)
from agentflow.trust import TrustRecord, fingerprint_file, load_trust, read_content
from agentflow.workspace.git import open_repository

_CHECK_FILES = (TEST_COMMAND, KNOWN_FAILURES, SKIP_TESTS)
_MAX_FILES = 2_000


def load_trust_here(root: Path) -> TrustRecord:
    return load_trust(find_folders(os.environ).config, root)


def load_well_known(root: Path) -> WellKnown:
    """Return what the repository's trusted files say about its checks."""
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
    """Return a repository's settings, trusted or not. Raises InvalidFile."""
    if fingerprint_file(root, PROJECT_FILE) is None:
        return Project()
    return read_project(read_content(root / PROJECT_FILE).decode("utf-8-sig", "replace"))


def list_items(root: Path) -> tuple[Item, ...]:
    """Return everything here that can be trusted; only plain files of the repository can."""
    found = (*_list_settings(root), *_list_roles(root), *_list_check_files(root))
    found += (*_list_commands(root), *_list_skill_scripts(root), *_list_servers(root))
    found += _list_own_plugin(root)
    hashed = ((item, fingerprint_file(root, item.file)) for item in found)
    return tuple(item.replace(sha256=digest) for item, digest in hashed if digest is not None)


def list_untrusted(root: Path) -> tuple[Item, ...]:
    """Return the items that do not count, because they were never trusted or have changed."""
    known = load_trust_here(root).files
    return tuple(item for item in list_items(root) if known.get(item.file) != item.sha256)


def summarize_untrusted(left: tuple[Item, ...]) -> str | None:
    """Return one line about what is not used, as `2 hooks, 1 role untrusted: agentflow trust`."""
    kinds = [item.kind for item in left]
    counts = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    said = ", ".join(f"{count} {_pluralize(kind, count)}" for kind, count in counts.items())
    return f"{said} untrusted: agentflow trust" if said else None


def _pluralize(kind: str, count: int) -> str:
    return kind if count == 1 or kind.endswith("s") else f"{kind}s"


def load_project_hooks(root: Path) -> tuple[tuple[Hook, ...], tuple[str, ...]]:
    """Return the repository's hooks that are trusted with every file they run, and warnings."""
    trusted = load_trust_here(root)
    known = (*list_project_places(root), *_list_plugin_hooks(root, trusted))
    return load_trusted_hooks(known, root)


def load_trusted_hooks(places: Iterable[HookFile], root: Path) -> tuple[tuple[Hook, ...], tuple[str, ...]]:
    """Return the hooks of trusted files of a repository whose scripts are trusted too, and warnings."""
    trusted = load_trust_here(root)
    hooks, warnings = load_hooks(place for place in places if trusted.covers(to_relative(place.path, root)))
    return tuple(_seal(hook, trusted) for hook in hooks if _is_whole(hook, trusted, root)), warnings


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
    """Yield the role files and skills of a repository that bring hooks, trusted or not."""
    yield from filter(None, map(find_role_place, _list_role_files(root)))
    folders_here = (each for place in list_project_skill_folders(root) for each in find_skill_folders(place))
    yield from filter(None, (find_skill_place(folder, root) for folder in folders_here))


def list_trusted_roles(root: Path) -> tuple[Path, ...]:
    """Return the role files of a repository that are trusted."""
    trusted = load_trust_here(root)
    return tuple(path for path in _list_role_files(root) if trusted.covers(to_relative(path, root)))


def _list_role_files(root: Path) -> list[Path]:
    return sorted((root / ".claude/agents").glob("**/*.md"))[:_MAX_FILES]


def _is_whole(hook: Hook, trusted: TrustRecord, root: Path) -> bool:
    return all(map(trusted.covers, list_scripts(hook, root)))


def _seal(hook: Hook, trusted: TrustRecord) -> Hook:
    assert isinstance(hook.body, Script)
    written = list_written(hook)
    paths = (file for file in list_named(hook) if "/" in file or "." in file)
    files = tuple((file, trusted.files.get(file, "")) for file in paths if file not in written)
    return hook.replace(body=hook.body.replace(sealed=files, written=tuple(sorted(written))))


def _list_settings(root: Path) -> Iterator[Item]:
    for place in list_project_places(root):
        file = to_relative(place.path, root)
        try:
            hooks, _ = load_hooks((place,))
            rules = read_rules(place.path).allow
        except InvalidFile as error:
            yield reject_item("hooks", file, error)
            continue
        yield from describe_hooks(hooks, file, root)
        if rules:
            allowed = ", ".join(map(str, rules))
            yield Item(kind="rules", file=file, does=f"allows {to_one_line(allowed)}")


def _list_roles(root: Path) -> Iterator[Item]:
    for path in _list_role_files(root):
        yield from list_role_items(path, root)


def _list_check_files(root: Path) -> Iterator[Item]:
    if (root / PROJECT_FILE).is_file():
        try:
            said = to_builtins(read_project_file(root))
            keys = [key for key, value in said.items() if value != to_builtins(Project())[key]]
            yield Item(kind="settings", file=PROJECT_FILE, does=f"sets {', '.join(keys) or 'nothing'}")
        except InvalidFile as error:
            yield reject_item("settings", PROJECT_FILE, error)
    for file in _CHECK_FILES:
        if (root / file).is_file():
            yield Item(kind="checks", file=file, does="changes which checks are required")


def _list_commands(root: Path) -> Iterator[Item]:
    folder = root / ".claude/commands"
    if not folder.is_dir():
        return
    from agentflow.library.slash_commands import CommandFolder, list_command_files

    place = CommandFolder(path=folder, root=root, origin="project")
    for path in list_command_files(place):
        yield describe_command(path, place, root)


def _list_skill_scripts(root: Path) -> Iterator[Item]:
    for place in list_project_skill_folders(root):
        for skill in find_skill_folders(place):
            yield from list_skill_hooks(skill, root)
            if commands := list_commands(skill / SKILL_FILE):
                does = f"runs, when it is opened, in the sandbox of read-only roles: {'; '.join(commands)}"
                file = to_relative(skill / SKILL_FILE, root)
                yield Item(kind="skill commands", file=file, does=to_one_line(does))
    for folder in (".claude/skills", ".agents/skills"):
        for path in sorted((root / folder).glob("*/scripts/**/*"))[:_MAX_FILES]:
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


def _list_plugin_hooks(root: Path, trusted: TrustRecord) -> tuple[HookFile, ...]:
    if not trusted.covers(PLUGIN_MANIFEST):
        return ()
    plugin = read_own_plugin(root)
    paths = () if plugin is None else plugin.hooks
    return tuple(HookFile(path=path, origin=Origin.PROJECT, plugin=root) for path in paths)


def _list_own_plugin(root: Path) -> tuple[Item, ...]:
    if not (root / PLUGIN_MANIFEST).is_file():
        return ()
    try:
        plugin = read_own_plugin(root)
    except InvalidFile as error:
        return (reject_item("plugin", PLUGIN_MANIFEST, error),)
    return () if plugin is None else tuple(list_plugin_items(plugin))
