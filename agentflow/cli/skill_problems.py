"""What `check` finds in skills: files that are wrong, owners, links that lead nowhere."""

import re
from collections.abc import Iterable, Iterator

from agentflow.cli.problems import ERROR, WARNING, Problem, named
from agentflow.core.errors import InvalidFile, ToolError
from agentflow.core.record import Record
from agentflow.library.skill_file import FILE, Skill, file_of, read_skill
from agentflow.library.skills import Place, folders_in

_LINK = re.compile(r"\]\(<?([^)>\s#]+)")
_FENCE = re.compile(r"^\s*(```|~~~)")


class Looked(Record):
    """The skills of all places, and what is wrong with them."""

    skills: tuple[Skill, ...]
    folders: int
    problems: tuple[Problem, ...]


def look(places: Iterable[Place], roles: frozenset[str]) -> Looked:
    """Look at every skill, also at those that another one of their name replaces."""
    skills: list[Skill] = []
    problems: list[Problem] = []
    found = [(place, folder) for place in places for folder in folders_in(place)]
    for place, folder in found:
        try:
            skill, oddities = read_skill(folder, place.root or folder, place.origin)
        except InvalidFile as error:
            problems.append(named(str(folder / FILE), error.problem, error.line or 1))
            continue
        skills.append(skill)
        problems.extend(named(odd.source, odd.problem, odd.line, WARNING) for odd in oddities)
        problems.extend((*_of_owners(skill, roles), *_of_links(skill)))
    return Looked(skills=tuple(skills), folders=len(found), problems=tuple(problems))


def _of_owners(skill: Skill, roles: frozenset[str]) -> Iterator[Problem]:
    """Yield what is wrong with who answers for a skill; the user's folder is shared with other tools."""
    known, line = ", ".join(sorted(roles)), skill.lines.get("metadata", 1)
    mild = WARNING if skill.origin == "user" else ERROR
    if not skill.owners:
        message = f"metadata.owner: is missing; name the one role that answers for this skill: {known}"
        yield named(skill.source, message, line, mild)
    elif len(skill.owners) > 1:
        owners = ", ".join(skill.owners)
        yield named(skill.source, f"metadata.owner: one role owns a skill, not {owners}", line)
    for key, names in (("owner", skill.owners), ("consumers", skill.consumers), ("roles", skill.roles)):
        for name in sorted(set(names) - roles):
            message = f"metadata.{key}: there is no role {name}; known are {known}"
            yield named(skill.source, message, line, mild)


def _of_links(skill: Skill) -> Iterator[Problem]:
    """Yield the links of SKILL.md to files that are not in the folder."""
    for number, target in _links(file_of(skill, FILE)):
        try:
            file_of(skill, target)
        except ToolError as error:
            if not (skill.folder / target).is_dir():
                message = f"link to {target}: {str(error).removeprefix(target).lstrip(': ')}"
                yield named(skill.source, message, number)


def _links(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and target of each link that is no address, outside code."""
    in_code = False
    for number, line in enumerate(text.splitlines(), 1):
        in_code ^= _FENCE.match(line) is not None
        bare = "" if in_code else re.sub(r"`[^`]*`", "", line)
        yield from ((number, target) for target in _LINK.findall(bare) if not _is_address(target))


def _is_address(target: str) -> bool:
    return re.match(r"[a-zA-Z][\w+.-]*:", target) is not None or target.startswith("//")
