"""Role files: Markdown with a head that says what a role may do."""

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from agentflow.core.errors import InvalidFile, UnknownRole
from agentflow.core.record import Record
from agentflow.core.role import INHERIT, PIPELINE, Limits, Role, ToolRule
from agentflow.frontmatter import key_line, split
from agentflow.library.bundled import bundled
from agentflow.parse import Mismatch, fit
from agentflow.permissions.rules import parse_rules
from agentflow.trust import content

PART_KEY = "agentflow-role"
"""The key under `metadata` by which a file plays a role of the pipeline."""
DIRECT_KEY = "agentflow-direct"
"""The key for the sub-agents whose answer is the answer of the run."""
MERGE_KEY = "agentflow-merge"
"""The key that says how several direct answers become one: `concatenate`."""

_NAME = re.compile(r"[a-z][a-z0-9-]{0,50}")


class RoleHead(Record, rename={"max_turns": "maxTurns", "disallowed_tools": "disallowedTools"}):
    """The keys of a role file that have a meaning here."""

    name: str
    description: str
    tools: Any = None
    model: str | None = None
    disallowed_tools: Any = []
    deny: Any = []
    """The same."""
    skills: Any = []
    max_turns: Annotated[int, msgspec.Meta(ge=1)] = Limits().turns
    limits: dict[str, int | float] = {}
    write_paths: tuple[str, ...] = ()
    metadata: dict[str, str] = {}


class Roles(Record):
    """The role files that were found, and what is odd about them."""

    all: tuple[Role, ...]
    warnings: tuple[str, ...] = ()

    def part(self, name: str) -> Role:
        """Return the role that plays a part of the pipeline. Raises UnknownRole."""
        found = [role for role in self.all if role.part == name]
        if not found:
            raise UnknownRole(
                f"no role file plays the {name}: {bundled('agents') / name}.md is missing",
                hint=f"a role file with metadata {{{PART_KEY}: {name}}} is needed",
            )
        return found[-1]


def load_roles(user: Path, project: Iterable[Path] = ()) -> Roles:
    """Return the shipped roles, the user's and the trusted files of a project; the later ones win.

    A shipped file, and one that claims a part of the pipeline, must be right (InvalidFile). Another one is
    left out with a warning, since those folders are shared with other tools.
    """
    shipped = tuple(read_role(path, "bundled")[0] for path in sorted(bundled("agents").glob("*.md")))
    roles, warnings = [*shipped], []
    others = [(path, "user") for path in _files(user)]
    others += [(path, "project") for path in project]
    for path, origin in others:
        try:
            role, notes = read_role(path, origin)
        except InvalidFile as error:
            if path.is_file() and PART_KEY in path.read_text("utf-8", "replace"):
                raise
            warnings.append(f"role left out: {error}")
            continue
        roles.append(role)
        warnings.extend(notes)
    found = Roles(all=_newest(roles), warnings=tuple(warnings))
    for part in PIPELINE:
        found.part(part)
    return found


def _files(folder: Path) -> list[Path]:
    return sorted((folder / "agents").glob("**/*.md"))


def _newest(roles: list[Role]) -> tuple[Role, ...]:
    """Keep the last file of each role; one of the same name that plays no part is another role."""
    return tuple({(role.name, role.part): role for role in roles}.values())


def read_role(path: Path, origin: str) -> tuple[Role, tuple[str, ...]]:
    """Return the role in a file, and warnings. Raises InvalidFile naming file, line and key."""
    source = str(path)
    try:
        text = content(path).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidFile(source, f"cannot be read: {error}") from None
    keys, prompt = split(text, source)
    known = {name: value for name, value in keys.items() if name in _KNOWN}
    warnings = _strange_keys(keys, text, source)
    head = _head(known, text, source)
    part = head.metadata.get(PART_KEY)
    if part is not None and part not in PIPELINE:
        raise InvalidFile(
            source,
            f"metadata.{PART_KEY}: {part!r} is none of {', '.join(PIPELINE)}",
            line=_at(text, "metadata"),
        )
    return _role(head, prompt, text, Place(source=source, origin=origin, part=part)), warnings


class Place(Record):
    """Where a role comes from and which part it plays."""

    source: str
    origin: str
    part: str | None


def _head(known: Mapping[str, Any], text: str, source: str) -> RoleHead:
    try:
        head = fit(RoleHead, dict(known), lax=True)
    except Mismatch as error:
        raise InvalidFile(source, str(error), line=_at(text, error.key.split(".")[0].split("[")[0])) from None
    for key, value in (("name", head.name), ("description", head.description)):
        if not value.strip():
            raise InvalidFile(source, f"{key}: must not be empty", line=_at(text, key))
    if PART_KEY not in head.metadata and not _NAME.fullmatch(head.name):
        problem = f"name: {head.name!r} must be lower case letters, digits and hyphens"
        raise InvalidFile(source, problem, line=_at(text, "name"))
    if head.tools is None and PART_KEY in head.metadata:
        raise InvalidFile(
            source, "tools: is missing; a role has only the tools it lists", line=_at(text, "tools")
        )
    return head


def _role(head: RoleHead, prompt: str, text: str, place: Place) -> Role:
    refused = {"disallowedTools": head.disallowed_tools, "deny": head.deny}
    denied = {rule.tool for key, value in refused.items() for rule in _rules(value, text, place, key)}
    tools = _rules(head.tools or [], text, place, "tools")
    return Role(
        name=head.name,
        description=head.description,
        model=head.model or (INHERIT if place.part is None else "fast"),
        tools=tuple(rule for rule in tools if rule.tool not in denied),
        prompt=prompt.strip(),
        source=place.source,
        origin=place.origin,
        part=place.part,
        denied=tuple(sorted(denied)),
        inherits=head.tools is None,
        skills=tuple(str(rule) for rule in _rules(head.skills, text, place, "skills")),
        limits=_limits(head, text, place.source),
        write_paths=head.write_paths,
        direct=tuple(
            str(rule) for rule in _rules(head.metadata.get(DIRECT_KEY, ""), text, place, "metadata")
        ),
        concatenates=_concatenates(head, text, place),
        lines={key: line for key in _KNOWN if (line := key_line(text, key)) is not None},
    )


def _concatenates(head: RoleHead, text: str, place: Place) -> bool:
    """Return whether direct answers are put one after the other."""
    said = head.metadata.get(MERGE_KEY)
    if said in (None, "concatenate"):
        return said is not None
    raise InvalidFile(
        place.source, f"metadata.{MERGE_KEY}: {said!r} is not concatenate", line=_at(text, "metadata")
    )


def _limits(head: RoleHead, text: str, source: str) -> Limits:
    unknown = set(head.limits) - set(msgspec.structs.asdict(Limits()))
    if unknown:
        raise InvalidFile(source, f"limits: unknown limit {min(unknown)}", line=_at(text, "limits"))
    try:
        return fit(Limits, {"turns": head.max_turns, **head.limits})
    except Mismatch as error:
        raise InvalidFile(source, f"limits.{error}", line=_at(text, "limits")) from None


def _rules(value: object, text: str, place: Place, key: str) -> tuple[ToolRule, ...]:
    try:
        return parse_rules(value, place.source)
    except InvalidFile as error:
        problem = error.problem.removeprefix("tools: ")
        raise InvalidFile(place.source, f"{key}: {problem}", line=_at(text, key)) from None


_KNOWN = frozenset(field.encode_name for field in msgspec.structs.fields(RoleHead))


def _strange_keys(keys: Mapping[str, Any], text: str, source: str) -> tuple[str, ...]:
    """Refuse a key that is nearly one of ours; return a warning for each other unknown one."""
    warnings = []
    for key in keys:
        if key in _KNOWN:
            continue
        near = difflib.get_close_matches(key, _KNOWN, n=1, cutoff=0.8)
        if near:
            raise InvalidFile(source, f"unknown key {key!r}; did you mean {near[0]!r}?", line=_at(text, key))
        warnings.append(f"{source}: key {key!r} has no meaning here")
    return tuple(warnings)


def _at(text: str, key: str) -> int | None:
    return key_line(text, key) or 1
