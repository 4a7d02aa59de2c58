"""The files of a repository that count only when they are trusted, and what each would do."""

import os
import re
import shlex
from collections.abc import Iterator, Mapping
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
from agentflow.core.hook import Hook, Script
from agentflow.core.record import Record, plain
from agentflow.hooks.entries import load_hooks, project_places
from agentflow.library.roles import read_role
from agentflow.library.skill_file import SKILL_FILE, list_commands
from agentflow.library.skills import find_skill_folders, list_project_skill_folders
from agentflow.mcp.entries import SERVERS_FILE, ServerFile, ServerSource, list_server_scripts, read_entries
from agentflow.permissions.rules import read_rules
from agentflow.permissions.written_files import find_outputs
from agentflow.redact import one_line
from agentflow.settings import (
    PROJECT_FILE,
    Project,
    Skip,
    folders,
    load_settings,
    read_project,
    tighten,
)
from agentflow.trust import Trusted, content, fingerprint, load_trust
from agentflow.workspace.git import open_repository

if TYPE_CHECKING:
    from agentflow.library.slash_commands import CommandFolder

CHECK_FILES = (TEST_COMMAND, KNOWN_FAILURES, SKIP_TESTS)
_MAX_FILES = 2_000
_ROOT = "./"
_PROJECT_DIR = re.compile(r"\$\{?CLAUDE_PROJECT_DIR\}?/?")


class Item(Record):
    """One file, and what it may do once it is trusted."""

    kind: str
    """`hooks`, `script`, `role`, `rules`, `settings`, `checks`, `command`, `skill script` or `MCP server`."""
    file: str
    does: str
    sha256: str = ""


def load_trust_here(root: Path) -> Trusted:
    return load_trust(folders(os.environ).config, root)


def load_well_known(root: Path) -> WellKnown:
    """Return what the repository's trusted files say about its checks."""
    said, checks = read_well_known(root, load_trust_here(root).covers), load_project(root).checks
    commands = {name: word for name, word in checks.items() if isinstance(word, str)}
    skips = {name: word.skip for name, word in checks.items() if isinstance(word, Skip)}
    return said.replace(
        commands={**said.commands, **_to_words(commands)}, skips={**said.skips, **_to_words(skips)}
    )


def _to_words(found: Mapping[CheckName, str]) -> dict[CheckName, Word]:
    return {name: Word(text=text, file=PROJECT_FILE) for name, text in found.items()}


def load_project_at(folder: Path) -> Project:
    """Return the settings that count in a folder, none outside of a repository. Raises InvalidFile."""
    try:
        root = open_repository(folder).root
    except ConfigError:
        return Project()
    return load_project(root)


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
    if fingerprint(root, PROJECT_FILE) is None:
        return Project()
    return read_project(content(root / PROJECT_FILE).decode("utf-8-sig", "replace"))


def list_items(root: Path) -> tuple[Item, ...]:
    """Return everything here that can be trusted; only plain files of the repository can."""
    found = (*_list_settings(root), *_list_roles(root), *_list_check_files(root))
    found += (*_list_commands(root), *_list_skill_scripts(root), *_list_servers(root))
    hashed = ((item, fingerprint(root, item.file)) for item in found)
    return tuple(item.replace(sha256=digest) for item, digest in hashed if digest is not None)


def list_untrusted(root: Path) -> tuple[Item, ...]:
    """Return what does not count here, because it was never trusted or has changed."""
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
    places = [place for place in project_places(root) if trusted.covers(_to_relative(place.path, root))]
    hooks, warnings = load_hooks(places)
    return tuple(_seal(hook, trusted) for hook in hooks if _is_whole(hook, trusted, root)), warnings


def list_trusted_roles(root: Path) -> tuple[Path, ...]:
    """Return the role files of a repository that are trusted."""
    trusted = load_trust_here(root)
    return tuple(path for path in _list_role_files(root) if trusted.covers(_to_relative(path, root)))


def _list_role_files(root: Path) -> list[Path]:
    return sorted((root / ".claude/agents").glob("**/*.md"))[:_MAX_FILES]


def _is_whole(hook: Hook, trusted: Trusted, root: Path) -> bool:
    return all(map(trusted.covers, list_scripts(hook, root)))


def _seal(hook: Hook, trusted: Trusted) -> Hook:
    """Return a hook that runs only while its scripts are unchanged."""
    assert isinstance(hook.body, Script)
    written = _list_written(hook)
    paths = (file for file in _list_named(hook) if "/" in file or "." in file)
    files = tuple((file, trusted.files.get(file, "")) for file in paths if file not in written)
    return hook.replace(body=hook.body.replace(sealed=files, written=tuple(sorted(written))))


def list_scripts(hook: Hook, root: Path) -> tuple[str, ...]:
    """Return the files of a repository that a hook's command may run or read, relative to it."""
    written = _list_written(hook)
    return tuple(name for name in _list_named(hook) if name not in written and (root / name).is_file())


def _list_written(hook: Hook) -> frozenset[str]:
    """Return the files of the repository that a hook's command only writes."""
    assert isinstance(hook.body, Script)
    if hook.body.args is not None or hook.body.shell == "powershell":
        return frozenset()
    outputs = find_outputs(_PROJECT_DIR.sub(_ROOT, hook.body.command))
    named = (os.path.normpath(path.removeprefix(_ROOT)) for path in outputs)
    return frozenset(name for name in named if name != "." and not name.startswith(("/", "..")))


def _list_named(hook: Hook) -> tuple[str, ...]:
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


def _list_settings(root: Path) -> Iterator[Item]:
    for place in project_places(root):
        file = _to_relative(place.path, root)
        try:
            hooks, _ = load_hooks((place,))
            rules = read_rules(place.path).allow
        except InvalidFile as error:
            yield Item(kind="hooks", file=file, does=f"do nothing, as it is not valid: {error.problem}")
            continue
        for hook in hooks:
            yield Item(kind="hook", file=file, does=f"run at {hook.point}, outside the sandbox: {hook.name}")
            for script in list_scripts(hook, root):
                yield Item(kind="script", file=script, does=f"be run by a hook at {hook.point}")
        if rules:
            allowed = ", ".join(map(str, rules))
            yield Item(kind="rules", file=file, does=f"allow {one_line(allowed)}")


def _list_roles(root: Path) -> Iterator[Item]:
    for path in _list_role_files(root):
        try:
            role, _ = read_role(path, "project")
            part = f"play the {role.part} with" if role.part else f"be the role {role.name} with"
            does = f"{part} {', '.join(map(str, role.tools))}"
        except InvalidFile as error:
            does = f"do nothing, as it is not valid: {error.problem}"
        yield Item(kind="role", file=_to_relative(path, root), does=one_line(does))


def _list_check_files(root: Path) -> Iterator[Item]:
    if (root / PROJECT_FILE).is_file():
        try:
            said = plain(read_project_file(root))
            keys = [key for key, value in said.items() if value != plain(Project())[key]]
            does = f"set {', '.join(keys) or 'nothing'}"
        except InvalidFile as error:
            does = f"nothing, as it is not valid: {error.problem}"
        yield Item(kind="settings", file=PROJECT_FILE, does=one_line(does))
    for file in CHECK_FILES:
        if (root / file).is_file():
            yield Item(kind="checks", file=file, does="change which checks are required")


def _list_commands(root: Path) -> Iterator[Item]:
    folder = root / ".claude/commands"
    if not folder.is_dir():
        return
    from agentflow.library.slash_commands import CommandFolder, list_command_files

    place = CommandFolder(path=folder, root=root, origin="project")
    for path in list_command_files(place):
        yield describe_command(path, place, root)


def describe_command(path: Path, place: "CommandFolder", root: Path) -> Item:
    """Return what a command may do once it is trusted; its shell lines are run as it is called."""
    from agentflow.library.slash_commands import read_command
    from agentflow.library.substitution import PartKind, split_body

    try:
        command = read_command(path, place)
        lines = [part.text for part in split_body(command.body) if part.kind is PartKind.COMMAND]
        runs = f", which runs in the sandbox: {'; '.join(lines)}" if lines else ""
        does = f"be called as /{command.called}{runs}"
    except InvalidFile as error:
        does = f"do nothing, as it is not valid: {error.problem}"
    return Item(kind="command", file=_to_relative(path, root), does=one_line(does))


def _list_skill_scripts(root: Path) -> Iterator[Item]:
    for place in list_project_skill_folders(root):
        for skill in find_skill_folders(place):
            if commands := list_commands(skill / SKILL_FILE):
                does = f"run, as it is opened, in the sandbox of roles that read: {'; '.join(commands)}"
                file = _to_relative(skill / SKILL_FILE, root)
                yield Item(kind="skill commands", file=file, does=one_line(does))
    for folder in (".claude/skills", ".agents/skills"):
        for path in sorted((root / folder).glob("*/scripts/**/*"))[:_MAX_FILES]:
            if path.is_file():
                yield Item(kind="skill script", file=_to_relative(path, root), does="be run by a skill")


def _list_servers(root: Path) -> Iterator[Item]:
    place = ServerFile(path=root / SERVERS_FILE, source=ServerSource.PROJECT)
    if place.path.is_file():
        found = read_entries((place,), root)
        if not found.all:
            yield Item(kind="MCP server", file=SERVERS_FILE, does="do nothing, as it names no server")
        for entry in found.all:
            does = f"do nothing: {entry.problem}" if entry.problem else entry.does
            yield Item(kind="MCP server", file=SERVERS_FILE, does=one_line(does, 400))
            for script in list_server_scripts(entry, root):
                yield Item(kind="script", file=script, does=f"be run by the MCP server {entry.name}")


def _to_relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()
