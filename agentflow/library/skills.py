"""Skills: found in all folders, matched with roles and words, and the tests that say when one is offered."""

from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import accumulate
from math import log
from pathlib import Path
from typing import Annotated, Protocol, TypeVar

from msgspec import Meta

from agentflow.core.errors import InvalidFile, ToolError
from agentflow.core.record import Record
from agentflow.core.regex import compile_glob, regex
from agentflow.core.role import Role
from agentflow.core.routing import ROLE_OF
from agentflow.core.task import Phase
from agentflow.frontmatter import read_yaml
from agentflow.library.roles import Roles
from agentflow.library.skill_file import SKILL_FILE, SKILL_TESTS, Skill, read_skill, read_skill_file
from agentflow.redact import make_visible, to_one_line
from agentflow.settings import find_bundled

MAX_LISTING = 4_000
"""Characters of the lines in one prompt, about 1,000 tokens; the others are found by words."""
MAX_ROW_CHARS = 180
_MAX_DEPTH = 6
_MAX_FOLDERS = 2000


class SkillFolder(Record):
    folder: Path
    origin: str
    root: Path | None = None
    """The repository it belongs to; its skills may not lie elsewhere."""


class HasDescription(Protocol):
    """Something with a name, which may begin with that of a plugin, and with a description."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...


T = TypeVar("T", bound=HasDescription)


def find_named(found: Iterable[T], name: str) -> T | None:
    """Return what has a name, or is the only one that has it within a plugin, as in `plugin:name`."""
    found = tuple(found)
    exact = next((each for each in found if each.name == name), None)
    ending = [each for each in found if each.name.endswith(f":{name}")]
    return exact or (ending[0] if len(ending) == 1 else None)


class Skills(Record):
    all: tuple[Skill, ...] = ()
    warnings: tuple[str, ...] = ()

    def find(self, name: str) -> Skill | None:
        """Return the skill of a name; its name within its plugin is enough if no other skill has it."""
        return find_named(self.all, name)


class Offer(Record):
    """The skills of one run."""

    listed: tuple[Skill, ...] = ()
    """Named and described in the prompt; the model can open them."""
    opened: tuple[Skill, ...] = ()
    hidden: tuple[Skill, ...] = ()
    """Found by words and then opened; there is no room for their lines."""

    @property
    def all(self) -> tuple[Skill, ...]:
        return (*self.listed, *self.opened, *self.hidden)


def list_skill_places(claude: Path, config: Path, repository: Path | None) -> tuple[SkillFolder, ...]:
    """Return the folders of skills, the later ones win: shipped, the user's, the repository's."""
    own = (claude.parent / ".agents", claude, config)
    users = [SkillFolder(folder=folder / "skills", origin="user") for folder in own]
    projects = list_project_skill_folders(repository) if repository else ()
    return SkillFolder(folder=find_bundled("skills"), origin="bundled"), *users, *projects


def list_project_skill_folders(repository: Path) -> tuple[SkillFolder, ...]:
    found = (repository / name / "skills" for name in (".agents", ".claude"))
    return tuple(SkillFolder(folder=folder, origin="project", root=repository) for folder in found)


def load_skills(places: Iterable[SkillFolder]) -> Skills:
    """Return the skills of all places; a wrong one is left out, unless it is shipped (InvalidFile)."""
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
            before = found.get(skill.name)
            if before is not None and skill.origin == "project" and before.opens_itself:
                where = f"{skill.name} is open by itself in {before.source}"
                warnings.append(f"skill left out: {skill.source}: {where}")
                continue
            if before is not None and before.origin != "bundled":
                new, old = (to_one_line(str(each.folder)) for each in (skill, before))
                warnings.append(f"skill {skill.name}: {new} replaces {old}")
            found[skill.name] = skill
    if sum(len(format_skill_line(skill)) for skill in found.values()) > MAX_LISTING:
        shown = "each role is shown the nearest to the task, Skill finds the rest"
        warnings.append(f"{len(found)} skills: {shown}")
    return Skills(all=tuple(found[name] for name in sorted(found)), warnings=tuple(warnings))


def find_skill_folders(place: SkillFolder) -> tuple[Path, ...]:
    """Return the folders that hold a SKILL.md; a repository's only where no link leads to them."""
    folder, root = place.folder, place.root
    if root is not None and folder.resolve() != root.resolve() / folder.relative_to(root):
        return ()
    return tuple(sorted(_walk(place)))


def offer_skills(
    skills: Skills, role: Role, phase: Phase | None, paths: Iterable[str], text: str = ""
) -> Offer:
    """Return the skills of a role: those that name it or that it names, then the nearest to the text."""
    if "Skill" in role.denied:
        return Offer()
    touched = tuple(paths)
    opened = tuple(skill for skill in skills.all if _is_open(skill, role, phase, touched))
    served = [skill for skill in skills.all if skill.is_listed and skill not in opened]
    named = [skill for skill in served if is_for_role(skill, role)]
    open_to_all = [skill for skill in served if skill not in named and _may_concern(skill, role, touched)]
    ordered = (*named, *(skill for skill, _ in rank_by_words(text, open_to_all)))
    ends = accumulate(len(format_skill_line(skill)) + 1 for skill in ordered)
    fitting = sum(end <= MAX_LISTING for end in ends)
    return Offer(listed=ordered[:fitting], opened=opened, hidden=ordered[fitting:])


def is_for_role(skill: Skill, role: Role) -> bool:
    return skill.name in role.skills or not _names(role).isdisjoint((*skill.owners, *skill.consumers))


def _may_concern(skill: Skill, role: Role, paths: tuple[str, ...]) -> bool:
    if skill.owners or skill.consumers or skill.roles:
        return False
    # a sub-agent with a list of tools gets one where that list names Skill
    if role.part is None and not role.inherits and not role.list_rules("Skill"):
        return False
    return not (skill.about and paths) or _matches_any(skill.about, paths)


def format_skill_line(skill: Skill) -> str:
    whose = " (of this repository)" if skill.origin == "project" else ""
    line = make_visible(f"- {skill.name}{whose}: {skill.description}")
    return line if len(line) <= MAX_ROW_CHARS else f"{line[: MAX_ROW_CHARS - 1]}…"


def describe_unknown_skill(role: Role, skills: Skills) -> str | None:
    names = [skill.name for skill in skills.all]
    missing = next((name for name in role.skills if name not in names), None)
    if missing is None:
        return None
    near = get_close_matches(missing, names, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"skills: role {role.name} lists {missing}, which no folder holds{hint}"


def _is_open(skill: Skill, role: Role, phase: Phase | None, paths: tuple[str, ...]) -> bool:
    """Return whether a skill is open from the beginning; that of a repository or a plugin never is."""
    if skill.origin in ("project", "plugin"):
        return False
    if not _names(role).isdisjoint(skill.roles) or phase in skill.phases:
        return True
    return _matches_any(skill.paths, paths)


def _matches_any(patterns: tuple[str, ...], paths: tuple[str, ...]) -> bool:
    globs = [compile_glob(pattern) for pattern in patterns]
    return any(glob.fullmatch(path) for glob in globs for path in paths)


def _names(role: Role) -> set[str]:
    return {role.name, role.part or role.name}


def _walk(place: SkillFolder) -> Iterator[Path]:
    """Yield folders with a SKILL.md, within bounds of depth and number, none inside another."""
    ahead, seen = [(place.folder, 0)], 0
    while ahead and seen < _MAX_FOLDERS:
        folder, depth = ahead.pop(0)
        seen += 1
        if depth and (folder / SKILL_FILE).is_file():
            yield folder
        elif depth < _MAX_DEPTH:
            try:
                inside = sorted(path for path in folder.iterdir() if path.is_dir())
            except OSError:
                continue
            shown = (path for path in inside if not path.name.startswith("."))
            # a repository's links are not followed
            ahead.extend((path, depth + 1) for path in shown if place.root is None or not path.is_symlink())


_WORD = regex(r"[^\W_]+")
_ENDINGS = ("ing", "ed", "s", "e")
_LEAST = 3
"""Letters of a word that counts, and of what is left of one without its ending."""
_IN_NAME = 2


def rank_by_words(text: str, items: Iterable[T]) -> tuple[tuple[T, float], ...]:
    """Return the items by score: a word counts more the fewer items have it, and twice in a name."""
    wanted = _stems(text)
    known = [(item, _stems(item.name), _stems(item.description)) for item in items]
    having = Counter(word for _, name, told in known for word in wanted & (name | told))

    def score(name: set[str], told: set[str]) -> float:
        shared = {word: _IN_NAME if word in name else 1 for word in wanted & (name | told)}
        return sum(weight * log(1 + len(known) / having[word]) for word, weight in shared.items())

    scored = [(item, score(name, told)) for item, name, told in known]
    return tuple(sorted(scored, key=lambda each: (-each[1], each[0].name)))


def list_shared_words(text: str, item: HasDescription) -> tuple[str, ...]:
    have = _stems(f"{item.name} {item.description}")
    words = dict.fromkeys(_WORD.findall(text.casefold()))
    return tuple(word for word in words if len(word) >= _LEAST and _stem(word) in have)


def _stems(text: str) -> set[str]:
    return {_stem(word) for word in _WORD.findall(text.casefold()) if len(word) >= _LEAST}


def _stem(word: str) -> str:
    """Return a word without its usual endings, so that `prices` and `price` are one."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST:
            word = word.removesuffix(ending)
    return word


class Situation(Record):
    task: Annotated[str, Meta(min_length=1)]
    role: str = "implementer"
    files: tuple[str, ...] = ()
    offered: bool | None = None
    """True if its line stands in the prompt, or it is open there."""
    fires: bool | None = None
    """True if it is open from the beginning, or the nearest of all to the words of the task."""


class SituationResult(Record):
    skill: str
    task: str
    role: str
    passed: bool
    problem: str
    words: tuple[str, ...]

    @property
    def text(self) -> str:
        said = f": {self.problem}" if self.problem else ""
        shared = f" (shared words: {', '.join(self.words) or 'none'})"
        return f"{'ok    ' if self.passed else 'FAILED'} {self.skill}, {self.role}: {self.task}{said}{shared}"


def run_skill_tests(skill: Skill, skills: Skills, roles: Roles) -> Iterator[SituationResult]:
    """Yield the result of each situation of a skill. Raises InvalidFile for a file that cannot be read."""
    for situation in read_situations(skill):
        played = [role for role in roles.all if situation.role in (role.part, role.name)]
        if not played:
            problem = f"role: there is no role {situation.role}"
            raise InvalidFile(str(skill.folder / SKILL_TESTS), problem)
        role = played[-1]
        phase = next((phase for phase, part in ROLE_OF.items() if part == role.part), None)
        offer = offer_skills(skills, role, phase, situation.files, situation.task)
        ranked = rank_by_words(situation.task, (*offer.listed, *offer.hidden))
        is_nearest = bool(ranked) and ranked[0][0] == skill and ranked[0][1] > 0
        problems = [*_compare("offered", situation.offered, skill in (*offer.listed, *offer.opened))]
        problems += _compare("fired", situation.fires, skill in offer.opened or is_nearest)
        yield SituationResult(
            skill=skill.name,
            task=situation.task,
            role=role.name,
            passed=not problems,
            problem=", ".join(problems),
            words=list_shared_words(situation.task, skill),
        )


def read_situations(skill: Skill) -> tuple[Situation, ...]:
    """Return the situations of a skill, none without a file. Raises InvalidFile."""
    try:
        text = read_skill_file(skill, SKILL_TESTS)
    except ToolError:
        return ()
    return read_yaml(tuple[Situation, ...], text, str(skill.folder / SKILL_TESTS))


def _compare(what: str, wanted: bool | None, found: bool) -> Iterator[str]:
    if wanted is not None and wanted is not found:
        yield f"was {'not ' if wanted else ''}{what}"
