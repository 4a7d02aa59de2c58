"""One skill: a folder with a SKILL.md, read leniently because many tools write such folders."""

import difflib
import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from agentflow.core.errors import InvalidFile, OutsideWorkspace, ToolError
from agentflow.core.record import Record
from agentflow.frontmatter import PublicText, find_key_lines, read_public, split
from agentflow.library.substitution import PartKind, split_body
from agentflow.permissions.rules import parse_rules
from agentflow.redact import to_one_line
from agentflow.trust import require_content
from agentflow.workspace.path_guard import PathGuard

SKILL_FILE = "SKILL.md"
SKILL_TESTS = "tests.yaml"
"""For people; no role is told of it."""
STANDARD_KEYS = frozenset({"name", "description", "license", "compatibility", "metadata", "allowed-tools"})
_ELSEWHERE = frozenset(
    {
        *("agent", "argument-hint", "arguments", "context", "disable-model-invocation", "disallowed-tools"),
        *("effort", "hooks", "model", "paths", "shell", "tools", "user-invocable", "version", "when_to_use"),
    }
)
"""Keys of other tools."""
_OURS = {"owner": "owners", "consumers": "consumers", "roles": "roles", "phases": "phases", "paths": "paths"}
"""The keys under `metadata` that have a meaning here, with the fields that they fill."""
_MAX_FILES = 50
COLON = "a value with a colon needs quotes; it is read as text"
_NAME = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_MAX = {"name": 64, "description": 1024, "compatibility": 500}


class Oddity(Record):
    """A deviation from the standard that does not keep a skill from being used."""

    source: str
    line: int
    problem: str


class Skill(Record):
    """The head of a SKILL.md and its folder; the body is read when the skill is opened."""

    name: str
    description: str
    folder: Path
    root: Path
    """All its files lie below: the repository, or the folder itself."""
    origin: str
    owners: tuple[str, ...] = ()
    """The one role that is responsible for it; more than one is a mistake."""
    consumers: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    """Roles for which it is open from the beginning."""
    phases: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """Globs of files; a task about one of them has it open from the beginning."""
    about: tuple[str, ...] = ()
    """Globs of the files that it is only about, as public files say under `paths`."""
    allowed: tuple[str, ...] = ()
    """The tools that may be called while it is in use; empty for all."""
    arguments: tuple[str, ...] = ()
    is_listed: bool = True
    trusted: str = ""
    """The hash of its file that a person trusts, for one of the repository."""
    lines: dict[str, int] = {}

    @property
    def source(self) -> str:
        return str(self.folder / SKILL_FILE)

    @property
    def owner(self) -> str | None:
        return self.owners[0] if len(self.owners) == 1 else None

    @property
    def opens_itself(self) -> bool:
        return bool(self.roles or self.phases or self.paths)


def read_skill(folder: Path, root: Path, origin: str) -> tuple[Skill, tuple[Oddity, ...]]:
    """Return the skill in a folder, and what is odd about it. Raises InvalidFile naming file and line."""
    source = str(folder / SKILL_FILE)
    text = _text(folder, root)
    parsed = _parse(text, source, origin)
    head = parsed.head
    lines = {**dict.fromkeys((*STANDARD_KEYS, *head), 1), **find_key_lines(text)}
    for key in head.keys() - STANDARD_KEYS - _ELSEWHERE:
        if near := difflib.get_close_matches(key, STANDARD_KEYS, n=1, cutoff=0.8):
            raise InvalidFile(source, f"unknown key {key!r}; did you mean {near[0]!r}?", line=lines[key])
    description = head.get("description")
    if not isinstance(description, str) or not description.strip():
        raise InvalidFile(source, "description: is missing or empty", line=lines["description"])
    given = head.get("name")
    metadata = head["metadata"] if isinstance(head.get("metadata"), dict) else {}
    ours = {field: split_words(metadata.get(key)) for key, field in _OURS.items()}
    found = Skill(
        **ours,  # type: ignore[arg-type]
        name=to_one_line(given if isinstance(given, str) and given.strip() else folder.name, _MAX["name"]),
        description=" ".join(description.split()),
        folder=folder,
        root=root,
        origin=origin,
        about=split_words(head.get("paths")),
        allowed=_split_tools(head.get("allowed-tools")),
        arguments=split_words(head.get("arguments")),
        is_listed=head.get("disable-model-invocation") is not True,
        lines=lines,
    )
    said = [(lines[key], problem) for key, problem in _find_oddities(head, found)]
    said += [(line, COLON) for line in parsed.quoted]
    return found, tuple(Oddity(source=source, line=line, problem=problem) for line, problem in said)


class SkillBody(Record):
    text: str
    is_trusted: bool
    """True if its commands may run: a repository's only while its file is as it was trusted."""


def open_body(skill: Skill) -> SkillBody:
    """Return the current body of a skill. Raises InvalidFile."""
    text = _text(skill.folder, skill.root)
    digest = hashlib.sha256(text.encode()).hexdigest()
    body = _parse(text, skill.source, skill.origin).body.strip()
    return SkillBody(text=body, is_trusted=skill.origin != "project" or skill.trusted == digest)


def list_commands(file: Path) -> tuple[str, ...]:
    """Return the commands that run as a skill is opened; none of a file that cannot be read."""
    try:
        text = require_content(file).decode("utf-8", "replace")
    except InvalidFile:
        return ()
    if "!" not in text or "`" not in text:
        return ()  # most have none, and all of them are looked at as a command starts
    return tuple(part.text for part in split_body(text) if part.kind is PartKind.COMMAND)


def read_skill_file(skill: Skill, name: str) -> str:
    """Return the text of a file in a skill's folder. Raises ToolError for any other file."""
    return _read(skill.folder, skill.root, name).decode("utf-8", "replace")


def list_skill_files(skill: Skill) -> tuple[str, ...]:
    """Return the files beside SKILL.md, two levels deep, without links and hidden ones."""
    names = []
    for path in (path for pattern in ("*", "*/*") for path in skill.folder.glob(pattern)):
        name = path.relative_to(skill.folder).as_posix()
        is_plain = path.is_file() and not path.is_symlink() and not path.parent.is_symlink()
        if is_plain and name not in (SKILL_FILE, SKILL_TESTS) and not name.startswith("."):
            names.append(name)
    return tuple(sorted(names))[:_MAX_FILES]


def _text(folder: Path, root: Path) -> str:
    source = folder / SKILL_FILE
    try:
        return _read(folder, root, SKILL_FILE).decode("utf-8")
    except ToolError as error:
        raise InvalidFile(str(source), str(error).removeprefix(f"{source}: ")) from None
    except UnicodeDecodeError:
        raise InvalidFile(str(source), "is not UTF-8") from None


def _read(folder: Path, root: Path, name: str) -> bytes:
    """Return the bytes of a file in a skill's folder; links may not lead out of it."""
    if root == folder and name == SKILL_FILE and not (folder / name).is_symlink():
        try:
            return require_content(folder / name)  # the user's: read at every start, and no link to follow
        except InvalidFile as error:
            raise OutsideWorkspace(str(error)) from None
    fence, below = PathGuard(root), folder.relative_to(root)
    home, place = fence.to_relative(str(below)), PurePosixPath(fence.to_relative(str(below / name)))
    if home != below.as_posix() or not place.is_relative_to(home):
        raise OutsideWorkspace(f"{name} links outside the skill's folder; not readable")
    return fence.read(str(place))


def _parse(text: str, source: str, origin: str) -> PublicText:
    """Return head and body; those of a shipped skill are read strictly."""
    return PublicText(*split(text, source)) if origin == "bundled" else read_public(text, source)


def split_words(value: object) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(str(word) for word in value)
    return tuple(value.replace(",", " ").split()) if isinstance(value, str) else ()


def _split_tools(value: object) -> tuple[str, ...]:
    """Return the entries of `allowed-tools`; none where it is no list of tools."""
    try:
        return tuple(map(str, parse_rules(value, SKILL_FILE))) if value else ()
    except InvalidFile:
        return ()


def _find_oddities(head: Mapping[str, Any], skill: Skill) -> Iterator[tuple[str, str]]:
    for key, longest in _MAX.items():
        if len(str(head.get(key, ""))) > longest:
            yield key, f"{key}: is longer than {longest} characters"
    if skill.name != skill.folder.name or not _NAME.fullmatch(skill.name):
        yield "name", f"name: must be the folder's name, {skill.folder.name}: letters, digits, single hyphens"
    for key in head:
        if key not in STANDARD_KEYS | _ELSEWHERE:
            yield key, f"key {key!r} has no meaning here"
    if head.get("allowed-tools") and not skill.allowed:
        yield "allowed-tools", "allowed-tools: is no list of tools, so it has no effect"
    metadata = head.get("metadata", {})
    if not isinstance(metadata, dict):
        yield "metadata", "metadata: must be keys and texts"
        return
    for key, value in metadata.items():
        if not isinstance(value, str):
            yield "metadata", f"metadata.{key}: must be a text"
        elif key not in _OURS and (near := difflib.get_close_matches(key, _OURS, n=1, cutoff=0.8)):
            yield "metadata", f"metadata.{key}: did you mean {near[0]!r}?"
