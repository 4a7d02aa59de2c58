"""The five roles, the class of a task, and the route through the roles that follows from it."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Self, TypeVar

from agentflow.core.record import Record
from agentflow.core.role import Change, Findings, Judgement, Plan, Review
from agentflow.core.task import Complexity, Phase

K = TypeVar("K")
V = TypeVar("V")


class Access(StrEnum):
    """The fate of a command's writes into the repository."""

    READ = "read"
    """It cannot write there."""
    WRITE = "write"
    """It stays, but for the protected paths."""
    THROW_AWAY = "throw away"
    """It is gone with the command."""
    LAYER = "layer"
    """The same where a layer above the repository can be had; else it cannot write there."""
    COPY = "copy"
    """It cannot write there; it works on a copy beside it, as a check does."""


class PipelineRole(Record):
    """One of the five roles that a task can run."""

    part: str
    phase: Phase
    """Where it works."""
    submits: type[Record]
    """The input of its Submit tool."""
    access: Access = Access.READ
    """What happens to the writes of its commands."""
    may_run: str = ""
    """What it may run where its role file is the shipped one, in words for the model."""


_ON_A_COPY = "Any program, on a copy of the repository that is thrown away after each call."
FIVE_ROLES = (
    PipelineRole(
        part="explorer",
        phase=Phase.EXPLORATION,
        submits=Findings,
        access=Access.LAYER,
        may_run=_ON_A_COPY,
    ),
    PipelineRole(part="planner", phase=Phase.PLANNING, submits=Plan, access=Access.LAYER, may_run=_ON_A_COPY),
    PipelineRole(
        part="implementer",
        phase=Phase.IMPLEMENTATION,
        submits=Change,
        access=Access.WRITE,
        may_run="Any program; .git and .claude are read-only.",
    ),
    PipelineRole(
        part="reviewer",
        phase=Phase.REVIEW,
        submits=Review,
        access=Access.LAYER,
        may_run=f"{_ON_A_COPY} No tests or builds: the checks run by themselves.",
    ),
    PipelineRole(
        part="verifier",
        phase=Phase.VERIFICATION,
        submits=Judgement,
        access=Access.THROW_AWAY,
        may_run=_ON_A_COPY,
    ),
)
"""In the order of the phases."""
PIPELINE = tuple(role.part for role in FIVE_ROLES)
ROLE_OF: Mapping[Phase, str] = {role.phase: role.part for role in FIVE_ROLES}
"""The role that works in a phase."""
MAY_RUN: Mapping[str, str] = {role.part: role.may_run for role in FIVE_ROLES}
SUBMITTED_BY: Mapping[type[Record], str] = {role.submits: role.part for role in FIVE_ROLES}
"""The role that ends with a submission; the input of a Submit tool tells whose it is."""


class Requirement(StrEnum):
    """A requirement of a class of task: a check, where the repository has it, or a review."""

    TESTS = "tests"
    TYPES = "types"
    LINT = "lint"
    BUILD = "build"
    REVIEW = "review"


class RiskRule(Record):
    """Words that make any task complex."""

    words: tuple[str, ...]
    reason: str
    route: str = "full"


class Routing(Record):
    """The rules that settings can extend: `routes` replaces one by name, the others only add."""

    complex_when: tuple[RiskRule, ...] = ()
    keywords: dict[Complexity, tuple[str, ...]] = {}
    requires: dict[Complexity, tuple[Requirement, ...]] = {}
    routes: dict[str, tuple[Phase, ...]] = {}
    """Name to the phases whose role runs; the program's checks run wherever a file changes."""

    def extend(self, extra: Self) -> Self:
        """Return the rules with more of them; only a route is replaced."""
        return self.replace(
            complex_when=(*self.complex_when, *extra.complex_when),
            keywords=_join(self.keywords, extra.keywords),
            requires=_join(self.requires, extra.requires),
            routes={**self.routes, **extra.routes},
        )


def _join(first: Mapping[K, tuple[V, ...]], second: Mapping[K, tuple[V, ...]]) -> dict[K, tuple[V, ...]]:
    return {
        key: tuple(dict.fromkeys((*first.get(key, ()), *second.get(key, ())))) for key in {**first, **second}
    }


class Action(StrEnum):
    """The reaction to the ambiguity of a text."""

    PROCEED = "proceed"
    ASSUME = "assume"
    ASK = "ask"
    SPLIT = "split"
    """Ask, and suggest to make several tasks of it."""


class Classification(Record):
    """The class and route of a task, derived from its words."""

    complexity: Complexity
    route: str
    score: int
    """Of ambiguity, from 0."""
    action: Action
    forced: bool
    """A rule for high risk decided, not the size."""
    report: bool
    """A written report is asked for, and no change."""
    decided: tuple[str, ...]
    """What decided the class and the route, in words."""
    ambiguities: tuple[str, ...]
    """The sources of ambiguity, by the names of the table's weights."""
    steps: tuple[Phase, ...]
    """The phases whose role runs."""
    requires: tuple[Requirement, ...]
    hints: tuple[str, ...] = ()
    """Words that hint at another class without deciding it."""

    @property
    def reasons(self) -> tuple[str, ...]:
        return (*self.decided, *self.hints, *(f"ambiguity: {name}" for name in self.ambiguities))
