"""What proves a change, and what of it nothing proves."""

from enum import StrEnum

from agentflow.core.record import Record


class ProofKind(StrEnum):
    """How a change is known to do what it should."""

    FAIL_TO_PASS = "fail_to_pass"  # noqa: S105  # no password
    SAME_BEHAVIOUR = "same_behaviour"
    TESTS_ONLY = "tests_only"
    RENAME = "rename"

    @property
    def meaning(self) -> str:
        """What it says of a change, in words."""
        match self:
            case ProofKind.FAIL_TO_PASS:
                return "fails without the change and passes with it"
            case ProofKind.SAME_BEHAVIOUR:
                return "only documents, comments, docstrings, formatting or type hints differ"
            case ProofKind.TESTS_ONLY:
                return "only tests changed, and each fails when the code is broken"
            case ProofKind.RENAME:
                return "only names differ, in code and tests alike, and the same tests pass"


class Hunk(Record):
    """Neighbouring changed lines of one file of the product."""

    path: str
    line: int
    """The first of them as the file is now; of lines that are gone, the one before them."""
    end: int
    """The last of them."""
    proved: bool = False
    """Whether a test fails without these lines."""
    wanted: str = "that fails without it"
    """Which test would prove them."""

    @property
    def place(self) -> str:
        """The lines as people write them: `pager/core.py:12-14`."""
        return f"{self.path}:{self.line}" + (f"-{self.end}" if self.end > self.line else "")


class Proof(Record):
    """One reason why a change is taken for proved."""

    kind: ProofKind
    tests: tuple[str, ...] = ()
    """The tests that show it, or checks by name."""
    hunks: tuple[Hunk, ...] = ()
    """The changed lines that it is about, where they were looked at one by one."""
    evidence: tuple[str, ...] = ()
    """Ids of the records of the runs that show it."""
