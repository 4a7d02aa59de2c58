"""How a task is classified, and the route that follows from its class."""

from enum import StrEnum

from agentflow.core.record import Record
from agentflow.core.task import Complexity, Phase


class Requirement(StrEnum):
    """What a class of task has to pass: a check, where the repository has it, or a review."""

    TESTS = "tests"
    TYPES = "types"
    LINT = "lint"
    BUILD = "build"
    REVIEW = "review"


class Forced(Record):
    """Words that make a task complex, whatever else is said of it."""

    words: tuple[str, ...]
    reason: str
    route: str = "full"


class Routing(Record):
    """The rules that settings can extend: `routes` replaces one by name, the others only add."""

    complex_when: tuple[Forced, ...] = ()
    keywords: dict[Complexity, tuple[str, ...]] = {}
    requires: dict[Complexity, tuple[Requirement, ...]] = {}
    routes: dict[str, tuple[Phase, ...]] = {}
    """Name to the phases whose role runs; the program's checks run wherever a file changes."""


class Action(StrEnum):
    """What the ambiguity of a text asks for."""

    PROCEED = "proceed"
    ASSUME = "assume"
    ASK = "ask"
    SPLIT = "split"
    """Ask, and suggest to make several tasks of it."""


class Classification(Record):
    """What the words of a task say about it."""

    complexity: Complexity
    route: str
    score: int
    """Of ambiguity, from 0."""
    action: Action
    forced: bool
    """A rule for high risk decided, not the size."""
    report: bool
    """A written report is asked for, and no change."""
    reasons: tuple[str, ...]
    steps: tuple[Phase, ...]
    """The phases whose role runs."""
    requires: tuple[Requirement, ...]
