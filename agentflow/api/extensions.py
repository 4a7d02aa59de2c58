"""What a repository brings, one row for each kind of part: whether it counts, waits for trust, or cannot."""

import json
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path

from agentflow.api.content import list_skill_folders
from agentflow.api.trust import list_untrusted
from agentflow.core.errors import InvalidFile
from agentflow.core.record import Record
from agentflow.hooks.entries import load_hooks, project_places
from agentflow.library.roles import read_role
from agentflow.library.skill_file import SKILL_FILE, read_skill
from agentflow.library.skills import find_skill_folders
from agentflow.trust import content

MAX_EXTENSIONS = 500
"""The most parts of one kind that are named."""


class Standing(StrEnum):
    """What becomes of a part of the repository."""

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
    """A kind of part, and what lists the parts of that kind."""

    name: str
    list_extensions: Callable[[RepositoryTrust], Iterator[Extension]]


def list_extensions(root: Path) -> tuple[tuple[str, Extension], ...]:
    """Return every part that a repository brings, with its kind."""
    repository = RepositoryTrust(root=root, waiting=frozenset(item.file for item in list_untrusted(root)))
    found = [
        (kind.name, part)
        for kind in EXTENSION_KINDS
        for part in list(kind.list_extensions(repository))[:MAX_EXTENSIONS]
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
            "" if skill.owners else "it names no owner, so every role is offered it",
            "" if repository.is_trusted(file) else "the commands in it wait for trust",
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
    for place in project_places(repository.root):
        file = repository.name_file(place.path)
        try:
            hooks, _ = load_hooks((place,))
        except InvalidFile as error:
            yield Extension(name=place.path.name, file=file, standing=Standing.LEFT_OUT, reason=error.problem)
            continue
        for hook in hooks:
            yield Extension(name=f"{hook.point}: {hook.name}", file=file, standing=_stand(repository, file))


def _list_commands(repository: RepositoryTrust) -> Iterator[Extension]:
    for folder in (".claude/commands", "commands"):
        for path in sorted((repository.root / folder).glob("**/*.md")):
            yield Extension(
                name=f"/{path.stem}", file=repository.name_file(path), standing=Standing.UNSUPPORTED
            )


def _list_plugins(repository: RepositoryTrust) -> Iterator[Extension]:
    manifest = repository.root / ".claude-plugin/plugin.json"
    if manifest.is_file():
        file = repository.name_file(manifest)
        yield Extension(name=_read_name(manifest), file=file, standing=Standing.UNSUPPORTED)


def _list_servers(repository: RepositoryTrust) -> Iterator[Extension]:
    file = repository.root / ".mcp.json"
    found = _read_table(file).get("mcpServers")
    for name in found if isinstance(found, dict) else ():
        yield Extension(name=str(name), file=repository.name_file(file), standing=Standing.UNSUPPORTED)


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
    """Return a JSON object, an empty one where the file is none."""
    try:
        found = json.loads(content(path)) if path.is_file() else {}
    except (InvalidFile, OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
