"""The result of each role, as the input of its one Submit tool."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from agentflow.core.record import Record


class Finding(Record):
    claim: Annotated[str, Meta(description="What is true of the code.")]
    path: Annotated[str, Meta(description="File, relative to the repository.")]
    line: Annotated[int, Meta(ge=1, description="Line that shows it, from 1.")]

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"


class Findings(Record):
    """What the explorer found."""

    summary: Annotated[str, Meta(min_length=1)]
    findings: tuple[Finding, ...]
    open_questions: tuple[str, ...]


class PlanStep(Record):
    title: Annotated[str, Meta(min_length=1)]
    files: tuple[str, ...]


class Plan(Record):
    """What the planner wants done."""

    summary: Annotated[str, Meta(min_length=1)]
    steps: tuple[PlanStep, ...]
    acceptance: Annotated[tuple[str, ...], Meta(description="Checks that must hold afterwards.")]
    risks: tuple[str, ...]


class Change(Record):
    """What the implementer says it changed; the program looks for itself."""

    summary: Annotated[str, Meta(min_length=1)]
    files: tuple[str, ...]


class ReviewVerdict(StrEnum):
    APPROVED = "APPROVED"
    NEEDS_CHANGES = "NEEDS_CHANGES"


class Severity(StrEnum):
    CRITICAL = "critical"
    MAJOR = "major"
    MINOR = "minor"


class Issue(Record):
    severity: Severity
    kind: str
    path: str
    line: Annotated[int, Meta(ge=1)]
    message: str

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"


class Review(Record):
    """What the reviewer thinks of the change."""

    verdict: ReviewVerdict
    issues: tuple[Issue, ...]


class Claim(StrEnum):
    VERIFIED = "VERIFIED"
    FAILED = "FAILED"
    ENVIRONMENT_BLOCKED = "ENVIRONMENT_BLOCKED"


class Judgement(Record):
    """What the verifier claims; it can lower the program's verdict, never raise it."""

    verdict: Claim
    evidence: Annotated[tuple[str, ...], Meta(description="Ids of evidence records, such as ev-0007.")]
    reasons: tuple[str, ...]


Submission = Findings | Plan | Change | Review | Judgement

SUBMITTED_BY: Mapping[type[Record], str] = {
    Findings: "explorer",
    Plan: "planner",
    Change: "implementer",
    Review: "reviewer",
    Judgement: "verifier",
}
"""The part that ends with each; the input of a Submit tool tells whose it is."""
