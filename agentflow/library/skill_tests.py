"""Tests of skills: for which tasks one is offered, and comes first; they stand in its tests.yaml."""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from agentflow.core.errors import InvalidFile, ToolError
from agentflow.core.record import Record
from agentflow.core.role import Role
from agentflow.core.routing import ROLE_OF
from agentflow.frontmatter import read_yaml
from agentflow.library.roles import Roles
from agentflow.library.skill_file import SKILL_TESTS, Skill, read_skill_file
from agentflow.library.skills import Offer, Skills, list_shared_words, offer_skills, rank_by_words


class Situation(Record):
    """A task, and what becomes of the skill in it."""

    task: Annotated[str, Meta(min_length=1)]
    role: str = "implementer"
    files: tuple[str, ...] = ()
    """Those that the task is known to be about."""
    offered: bool | None = None
    """Whether its line stands in the prompt, or it is open there."""
    fires: bool | None = None
    """Whether it is open from the beginning, or the nearest of all to the words of the task."""


class SituationResult(Record):
    """What became of a skill in a situation."""

    skill: str
    task: str
    role: str
    passed: bool
    problem: str
    """What is not as expected; empty where it passed."""
    words: tuple[str, ...]
    """The words of the task that the skill has too."""

    @property
    def text(self) -> str:
        said = f": {self.problem}" if self.problem else ""
        shared = f" (shared words: {', '.join(self.words) or 'none'})"
        return f"{'ok    ' if self.passed else 'FAILED'} {self.skill}, {self.role}: {self.task}{said}{shared}"


def run_skill_tests(skill: Skill, skills: Skills, roles: Roles) -> Iterator[SituationResult]:
    """Yield the result of each situation of a skill. Raises InvalidFile for a file that cannot be read."""
    for situation in read_situations(skill):
        role = _find_role(situation, skill, roles)
        phase = next((phase for phase, part in ROLE_OF.items() if part == role.part), None)
        offer = offer_skills(skills, role, phase, situation.files, situation.task)
        problems = [*_compare("offered", situation.offered, skill in (*offer.listed, *offer.opened))]
        problems += _compare("fired", situation.fires, _is_nearest(skill, offer, situation.task))
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


def _find_role(situation: Situation, skill: Skill, roles: Roles) -> Role:
    found = [role for role in roles.all if situation.role in (role.part, role.name)]
    if not found:
        raise InvalidFile(str(skill.folder / SKILL_TESTS), f"role: there is no role {situation.role}")
    return found[-1]


def _is_nearest(skill: Skill, offer: Offer, text: str) -> bool:
    if skill in offer.opened:
        return True
    ranked = rank_by_words(text, (*offer.listed, *offer.hidden))
    return bool(ranked) and ranked[0][0] == skill and ranked[0][1] > 0


def _compare(what: str, wanted: bool | None, found: bool) -> Iterator[str]:
    if wanted is not None and wanted is not found:
        yield f"was {'not ' if wanted else ''}{what}"
