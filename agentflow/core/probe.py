"""Runs that have to fail, by which is known what the green ones are worth."""

from enum import StrEnum

from agentflow.core.evidence import CheckName, Side
from agentflow.core.proof import Hunk
from agentflow.core.record import Record


class ProbeKind(StrEnum):
    CANARY = "canary"
    """Tests that fail whatever the code does."""
    BROKEN_CODE = "broken_code"
    """A check with the changed code broken."""
    WITHOUT_HUNK = "without_hunk"
    """What proves the change, with a part of it taken back."""
    ORACLE = "oracle"
    """The proving tests, with other values expected."""
    UNTRIED = "untried"
    """The tests, while the changed code tells which of its branches and conditions they try."""
    PLANTED = "planted"
    """A linter or type checker, with an unknown name in each function that it may have complained of."""
    TESTS_ONLY = "tests_only"
    """New and changed tests with all of the code broken, where nothing else changed."""


class ProbeEnd(StrEnum):
    RED_AS_IT_MUST = "red as it must"
    SILENT = "stayed green"
    NOT_APPLIED = "not applied"
    """Nothing shows that what was broken was in place, so that nothing follows."""
    LEFT_OUT = "left out"
    """All probes together would have taken too long."""


class ProbeResult(Record):
    """What one probe came to; it is evidence of nothing else."""

    kind: ProbeKind
    check: CheckName
    end: ProbeEnd
    seconds: float
    subjects: tuple[str, ...] = ()
    """What was broken, changed or taken back, as people call it."""
    hunks: tuple[Hunk, ...] = ()
    """The lines that were taken back."""
    code: Side = Side.FINAL
    """Whether the code of now or from before the task lay below it."""
    tests: tuple[str, ...] = ()
    """Of tests alone: those that each failed."""
    softened: tuple[str, ...] = ()
    """What tests expect that could be anything else."""
    differing: tuple[str, ...] = ()
    """Tests that pass in the final run and fail here, where nothing but the surroundings is another."""
    reached: bool = True
    """Whether broken code was called, and not merely loaded."""
