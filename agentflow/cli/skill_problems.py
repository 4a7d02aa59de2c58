"""What `check` finds in skills: files that are wrong, owners, links that lead nowhere."""

import re
from collections.abc import Iterable, Iterator

from agentflow.core.errors import InvalidFile, ToolError
from agentflow.core.record import Record
from agentflow.library.skill_file import FILE, Skill, file_of, read_skill
from agentflow.library.skills import Place, folders_in

_LINK = re.compile(r"\]\(<?([^)>\s#]+)")
_FENCE = re.compile(r"^\s*(```|~~~)")


class Complaint(Record):
    """Something wrong with a skill; `is_error` where it fails the check."""

    file: str
    line: int
    message: str
    is_error: bool


class Looked(Record):
    """The skills of all places, and what is wrong with them."""

    skills: tuple[Skill, ...]
    folders: int
    complaints: tuple[Complaint, ...]


def look(places: Iterable[Place], roles: frozenset[str]) -> Looked:
    """Look at every skill, also at those that another one of their name replaces."""
    skills: list[Skill] = []
    complaints: list[Complaint] = []
    found = [(place, folder) for place in places for folder in folders_in(place)]
    for place, folder in found:
        try:
            skill, oddities = read_skill(folder, place.root or folder, place.origin)
        except InvalidFile as error:
            broken = Complaint(
                file=str(folder / FILE), line=error.line or 1, message=error.problem, is_error=True
            )
            complaints.append(broken)
            continue
        skills.append(skill)
        complaints.extend(
            Complaint(file=odd.source, line=odd.line, message=odd.problem, is_error=False) for odd in oddities
        )
        complaints.extend((*_of_owners(skill, roles), *_of_links(skill)))
    return Looked(skills=tuple(skills), folders=len(found), complaints=tuple(complaints))


def _of_owners(skill: Skill, roles: frozenset[str]) -> Iterator[Complaint]:
    """Yield what is wrong with who answers for a skill; the user's folder is shared with other tools."""
    known = ", ".join(sorted(roles))
    if not skill.owners:
        message = f"metadata.owner: is missing; name the one role that answers for this skill: {known}"
        yield _at_metadata(skill, message, is_error=skill.origin != "user")
    elif len(skill.owners) > 1:
        owners = ", ".join(skill.owners)
        yield _at_metadata(skill, f"metadata.owner: one role owns a skill, not {owners}", is_error=True)
    for key, names in (("owner", skill.owners), ("consumers", skill.consumers), ("roles", skill.roles)):
        for name in sorted(set(names) - roles):
            message = f"metadata.{key}: there is no role {name}; known are {known}"
            yield _at_metadata(skill, message, is_error=skill.origin != "user")


def _of_links(skill: Skill) -> Iterator[Complaint]:
    """Yield the links of SKILL.md to files that are not in the folder."""
    for number, target in _links(file_of(skill, FILE)):
        try:
            file_of(skill, target)
        except ToolError as error:
            if not (skill.folder / target).is_dir():
                message = f"link to {target}: {str(error).removeprefix(target).lstrip(': ')}"
                yield Complaint(file=skill.source, line=number, message=message, is_error=True)


def _links(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and target of each link that is no address, outside code."""
    in_code = False
    for number, line in enumerate(text.splitlines(), 1):
        in_code ^= _FENCE.match(line) is not None
        bare = "" if in_code else re.sub(r"`[^`]*`", "", line)
        yield from ((number, target) for target in _LINK.findall(bare) if not _is_address(target))


def _is_address(target: str) -> bool:
    return re.match(r"[a-zA-Z][\w+.-]*:", target) is not None or target.startswith("//")


def _at_metadata(skill: Skill, message: str, *, is_error: bool) -> Complaint:
    return Complaint(
        file=skill.source, line=skill.lines.get("metadata", 1), message=message, is_error=is_error
    )
