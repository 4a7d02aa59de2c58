"""Role files, those of sub-agents among them: Markdown with a head that says what a role may do."""

import difflib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec

from agentflow.core.errors import InvalidFile, UnknownRole
from agentflow.core.fold import DELEGATE
from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.core.role import INHERIT, Limits, Role, ToolRule
from agentflow.core.routing import PIPELINE
from agentflow.core.tool import Effect, Tool
from agentflow.frontmatter import PublicText, find_key_line, find_key_lines, read_public, split
from agentflow.library.skill_file import COLON
from agentflow.parse import Mismatch, fit
from agentflow.permissions.rules import parse_rules
from agentflow.settings import find_bundled
from agentflow.trust import require_text

PART_KEY = "agentflow-role"
"""The key under `metadata` by which a file plays a role of the pipeline."""
DIRECT_KEY = "agentflow-direct"
"""The key for the sub-agents whose answer becomes the answer of the run."""
MERGE_KEY = "agentflow-merge"
"""The key that says how several direct answers become one: `concatenate`."""
HOOKS_KEY = "hooks"
"""The key of a role's own hooks, which `hooks/entries.py` reads."""

_NAME = regex(r"[^\W_](?:[\w .-]{0,62}[\w.])?")
"""Public files also use capitals and spaces."""
_ELSEWHERE = frozenset(
    {
        *("background", "color", "effort", HOOKS_KEY, "initialPrompt", "isolation", "mcpServers", "memory"),
        *("permissionMode", "version"),
    }
)
"""Keys of other tools."""


class RoleHead(Record, rename={"max_turns": "maxTurns", "disallowed_tools": "disallowedTools"}):
    """The keys of a role file that have a meaning here."""

    name: str
    description: str
    tools: Any = None
    model: str | None = None
    disallowed_tools: Any = []
    deny: Any = []
    skills: Any = []
    max_turns: Annotated[int, msgspec.Meta(ge=1)] = Limits().turns
    limits: dict[str, int | float] = {}
    write_paths: tuple[str, ...] = ()
    metadata: dict[str, str] = {}


class Roles(Record):
    all: tuple[Role, ...]
    warnings: tuple[str, ...] = ()

    def find_part(self, name: str) -> Role:
        found = [role for role in self.all if role.part == name]
        if not found:
            raise UnknownRole(
                f"no role file plays the {name}: {find_bundled('agents') / name}.md is missing",
                hint=f"a role file with metadata {{{PART_KEY}: {name}}} is needed",
            )
        return found[-1]


class _File(Record):
    source: str
    origin: str
    text: str

    def wrong(self, key: str, problem: str) -> InvalidFile:
        return InvalidFile(self.source, problem, line=find_key_line(self.text, key) or 1)

    def rules(self, key: str, value: object) -> tuple[ToolRule, ...]:
        try:
            return parse_rules(value, self.source)
        except InvalidFile as error:
            raise self.wrong(key, f"{key}: {error.problem.removeprefix('tools: ')}") from None


def load_roles(user: Path, project: Iterable[Path] = (), calls: int = Limits().tool_calls) -> Roles:
    """Return the shipped roles, the user's and the trusted files of a project; the later ones win.

    A shipped file, and one that claims a part of the pipeline, must be right (InvalidFile). Another one is
    left out with a warning, since those folders are shared with other tools. `calls` is the limit of tool
    calls of a role that names none.
    """
    roles = [read_role(path, "bundled", calls)[0] for path in sorted(find_bundled("agents").glob("*.md"))]
    warnings: list[str] = []
    others = [(path, "user") for path in sorted((user / "agents").glob("**/*.md"))]
    for path, origin in (*others, *((path, "project") for path in project)):
        try:
            role, notes = read_role(path, origin, calls)
        except InvalidFile as error:
            if path.is_file() and PART_KEY in path.read_text("utf-8", "replace"):
                raise
            warnings.append(f"role left out: {error}")
            continue
        roles.append(role)
        warnings.extend(notes if role.part else ())
    # the last file of each role counts; one of the same name that plays no part is another role
    newest = {(role.name, role.part): role for role in roles}
    found = Roles(all=tuple(newest.values()), warnings=tuple(warnings))
    for part in PIPELINE:
        found.find_part(part)
    return found


def read_role(path: Path, origin: str, calls: int = Limits().tool_calls) -> tuple[Role, tuple[str, ...]]:
    """Return the role in a file, and warnings. Raises InvalidFile naming file, line and key."""
    source = str(path)
    text = require_text(path, "utf-8")
    # what plays a part decides what a task may do, so nothing in its head is guessed
    parsed = PublicText(*split(text, source)) if PART_KEY in text else read_public(text, source)
    file = _File(source=source, origin=origin, text=text)
    unknown = [key for key in parsed.head if key not in _KNOWN | _ELSEWHERE]
    for key in unknown:
        if near := difflib.get_close_matches(key, _KNOWN, n=1, cutoff=0.8):
            raise file.wrong(key, f"unknown key {key!r}; did you mean {near[0]!r}?")
    warnings = [f"{source}: key {key!r} has no meaning here" for key in unknown]
    warnings += [f"{source}:{line}: {COLON}" for line in parsed.quoted]
    known = {name: value for name, value in parsed.head.items() if name in _KNOWN}
    if isinstance(given := known.get("metadata"), dict):
        known["metadata"] = {key: str(value) for key, value in given.items()}
    head = _read_head(known, file)
    role = _to_role(head, parsed.body, file, calls)
    if parsed.head.get(HOOKS_KEY):
        role = role.replace(lines={**role.lines, HOOKS_KEY: find_key_line(text, HOOKS_KEY) or 1})
    return role, tuple(warnings)


_KNOWN = frozenset(field.encode_name for field in msgspec.structs.fields(RoleHead))


def _read_head(known: dict[str, Any], file: _File) -> RoleHead:
    try:
        head = fit(RoleHead, known, lax=True)
    except Mismatch as error:
        raise file.wrong(error.key.split(".")[0].split("[")[0], str(error)) from None
    for key, value in (("name", head.name), ("description", head.description)):
        if not value.strip():
            raise file.wrong(key, f"{key}: must not be empty")
    part, merge = head.metadata.get(PART_KEY), head.metadata.get(MERGE_KEY, "concatenate")
    if part is None and not _NAME.fullmatch(head.name):
        raise file.wrong("name", f"name: {head.name!r} must be letters, digits, spaces and hyphens")
    if part is not None and head.tools is None:
        raise file.wrong("tools", "tools: is missing; a role has only the tools it lists")
    if part is not None and part not in PIPELINE:
        raise file.wrong("metadata", f"metadata.{PART_KEY}: {part!r} is none of {', '.join(PIPELINE)}")
    if merge != "concatenate":
        raise file.wrong("metadata", f"metadata.{MERGE_KEY}: {merge!r} is not concatenate")
    return head


def _to_role(head: RoleHead, prompt: str, file: _File, calls: int) -> Role:
    refused = {"disallowedTools": head.disallowed_tools, "deny": head.deny}
    denied = {rule.tool for key, value in refused.items() for rule in file.rules(key, value)}
    tools = file.rules("tools", head.tools or [])
    part = head.metadata.get(PART_KEY)
    if unknown := set(head.limits) - set(Limits.__struct_fields__):
        raise file.wrong("limits", f"limits: unknown limit {min(unknown)}")
    try:
        limits = fit(Limits, {"turns": head.max_turns, "tool_calls": calls, **head.limits})
    except Mismatch as error:
        raise file.wrong("limits", f"limits.{error}") from None
    return Role(
        name=head.name,
        description=head.description,
        model=head.model or (INHERIT if part is None else "fast"),
        tools=tuple(rule for rule in tools if rule.tool not in denied),
        prompt=prompt.strip(),
        source=file.source,
        origin=file.origin,
        part=part,
        denied=tuple(sorted(denied)),
        inherits=head.tools is None,
        skills=tuple(map(str, file.rules("skills", head.skills))),
        limits=limits,
        write_paths=head.write_paths,
        direct=tuple(map(str, file.rules("metadata", head.metadata.get(DIRECT_KEY, "")))),
        concatenates=MERGE_KEY in head.metadata,
        lines={key: line for key, line in find_key_lines(file.text).items() if key in _KNOWN},
    )


def list_subagents(roles: tuple[Role, ...]) -> tuple[Role, ...]:
    return tuple(sorted((role for role in roles if role.part is None), key=lambda role: role.name))


def require_known(role: Role, known: tuple[Role, ...]) -> None:
    """Raise InvalidFile for a role that names a sub-agent which does not exist."""
    names = {each.name for each in known}
    listed = [name for rule in role.list_rules(DELEGATE) for name in rule.names]
    for key, wanted in (("tools", (*listed, *role.handoffs)), ("metadata", role.direct)):
        if missing := sorted(set(wanted) - names):
            raise InvalidFile(
                role.source,
                f"{key}: there is no sub-agent {missing[0]}",
                line=role.lines.get(key),
                hint=f"sub-agents are {', '.join(sorted(names))}" if names else "no role file is a sub-agent",
            )


def find_direct_problems(role: Role, tools: tuple[Tool, ...]) -> Iterator[str]:
    if not role.direct:
        return
    if len(role.direct) > 1 and not role.concatenates:
        yield (
            f"direct: the answers of {', '.join(role.direct)} have to be put together; "
            "name one, or say agentflow-merge: concatenate"
        )
    changing = [tool.name for tool in tools if tool.effect is Effect.WRITE and role.list_rules(tool.name)]
    if changing:
        yield f"direct: only a role that reads can be answered for, and {role.name} has {', '.join(changing)}"
