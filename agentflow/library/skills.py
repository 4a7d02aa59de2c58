"""Skills: found in the folders of the program, the user and the repository, and matched with roles."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path

from agentflow.core.errors import InvalidFile
from agentflow.core.record import Record
from agentflow.core.regex import compile_glob
from agentflow.core.role import Role
from agentflow.core.task import Phase
from agentflow.library.bundled import find_bundled
from agentflow.library.skill_file import SKILL_FILE, Skill, read_skill
from agentflow.redact import one_line

_MAX_DEPTH = 6
_MAX_FOLDERS = 2000


class SkillFolder(Record):
    """A folder of skills and its origin."""

    folder: Path
    origin: str
    root: Path | None = None
    """The repository it belongs to; its skills may not lie elsewhere."""


class Skills(Record):
    """The skills that were found, one of each name, and warnings."""

    all: tuple[Skill, ...] = ()
    warnings: tuple[str, ...] = ()

    def find(self, name: str) -> Skill | None:
        return next((skill for skill in self.all if skill.name == name), None)


class Offer(Record):
    """The skills of one run."""

    listed: tuple[Skill, ...] = ()
    """Named and described in the prompt; the model can open them."""
    opened: tuple[Skill, ...] = ()
    """In the prompt from the beginning."""


def skill_places(claude: Path, config: Path, repository: Path | None) -> tuple[SkillFolder, ...]:
    """Return the folders of skills, the later ones win: shipped, the user's, the repository's."""
    own = (claude.parent / ".agents", claude, config)
    users = [SkillFolder(folder=folder / "skills", origin="user") for folder in own]
    theirs = [repository / name / "skills" for name in (".agents", ".claude")] if repository else []
    projects = [SkillFolder(folder=folder, origin="project", root=repository) for folder in theirs]
    return SkillFolder(folder=find_bundled("skills"), origin="bundled"), *users, *projects


def load_skills(places: Iterable[SkillFolder]) -> Skills:
    """Return the skills of all places; one that cannot be read is left out with a warning.

    A shipped one must be right (InvalidFile).
    """
    found: dict[str, Skill] = {}
    warnings: list[str] = []
    for place in places:
        for folder in find_skill_folders(place):
            try:
                skill, _ = read_skill(folder, place.root or folder, place.origin)
            except InvalidFile as error:
                if place.origin == "bundled":
                    raise
                warnings.append(f"skill left out: {error}")
                continue
            warnings.extend(_add(found, skill))
    if theirs := [skill.name for skill in found.values() if skill.origin == "project"]:
        warnings.append(f"skills of this repository are offered as text: {', '.join(sorted(theirs))}")
    return Skills(all=tuple(found[name] for name in sorted(found)), warnings=tuple(warnings))


def find_skill_folders(place: SkillFolder) -> tuple[Path, ...]:
    """Return the folders that hold a SKILL.md; a repository's only where no link leads to them."""
    folder, root = place.folder, place.root
    if root is not None and folder.resolve() != root.resolve() / folder.relative_to(root):
        return ()
    return tuple(sorted(_walk(place)))


def offer_skills(skills: Skills, role: Role, phase: Phase | None, paths: Iterable[str]) -> Offer:
    """Return the skills of a role in a phase of a task about these files."""
    if "Skill" in role.denied:
        return Offer()
    touched = tuple(paths)
    opened = tuple(skill for skill in skills.all if _is_open(skill, role, phase, touched))
    served = (skill for skill in skills.all if skill not in opened and is_for_role(skill, role))
    return Offer(listed=tuple(skill for skill in served if skill.is_listed), opened=opened)


def is_for_role(skill: Skill, role: Role) -> bool:
    """Return whether a skill is for a role, which owns, consumes or lists it."""
    return skill.name in role.skills or not _names(role).isdisjoint((*skill.owners, *skill.consumers))


def describe_unknown_skill(role: Role, skills: Skills) -> str | None:
    """Return the warning about a skill that a role lists and no folder holds, or None."""
    names = [skill.name for skill in skills.all]
    missing = next((name for name in role.skills if name not in names), None)
    if missing is None:
        return None
    near = get_close_matches(missing, names, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"skills: role {role.name} lists {missing}, which no folder holds{hint}"


def _is_open(skill: Skill, role: Role, phase: Phase | None, paths: tuple[str, ...]) -> bool:
    """Return whether a skill is open from the beginning; a repository's never is."""
    if skill.origin == "project":
        return False
    if not _names(role).isdisjoint(skill.roles) or phase in skill.phases:
        return True
    globs = [compile_glob(pattern) for pattern in skill.paths]
    return any(glob.fullmatch(path) for glob in globs for path in paths)


def _names(role: Role) -> set[str]:
    return {role.name, role.part or role.name}


def _add(found: dict[str, Skill], skill: Skill) -> Iterator[str]:
    """Add a skill, and yield a warning if it replaces another one."""
    before = found.get(skill.name)
    if before is not None and skill.origin == "project" and before.opens_itself:
        yield f"skill left out: {skill.source}: {skill.name} is open by itself in {before.source}"
        return
    if before is not None and before.origin != "bundled":
        yield f"skill {skill.name}: {one_line(str(skill.folder))} replaces {one_line(str(before.folder))}"
    found[skill.name] = skill


def _walk(place: SkillFolder) -> Iterator[Path]:
    """Yield folders with a SKILL.md, within bounds of depth and number, none inside another."""
    ahead, seen = [(place.folder, 0)], 0
    while ahead and seen < _MAX_FOLDERS:
        folder, depth = ahead.pop(0)
        seen += 1
        if depth and (folder / SKILL_FILE).is_file():
            yield folder
        elif depth < _MAX_DEPTH:
            ahead.extend((below, depth + 1) for below in _list_folders(folder, place))


def _list_folders(folder: Path, place: SkillFolder) -> list[Path]:
    try:
        inside = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    except OSError:
        return []
    return [path for path in inside if place.root is None or not path.is_symlink()]
