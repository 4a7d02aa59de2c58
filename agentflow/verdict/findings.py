"""The words for what can be done to checks."""

from enum import StrEnum

from agentflow.core.record import Record


class Tampering(StrEnum):
    """What a change can do to the checks, or to code so that checks no longer tell."""

    TEST_GONE = "test removed"
    FEWER_CASES = "fewer cases of a test"
    SKIPPED = "test no longer runs, or may fail"
    WEAKER = "assertion weaker or gone"
    EXPECTATION = "other result expected"
    SWALLOWED = "exception swallowed"
    FORCED_EXIT = "exit code forced"
    REWRITTEN = "outcome rewritten by a hook"
    PATCHED = "runner, interpreter or product patched"
    EXCLUDED = "less is looked at"
    REFRESHED = "snapshot rewritten"
    LONGER = "time limit changed"
    DETECTS = "code that can tell a test run from another"
    SETTING = "condition on the environment"
    KNOWS_INPUTS = "code that knows the tests"


class Finding(Record):
    """One place where something of this kind was done."""

    kind: Tampering
    path: str
    line: int | None
    """In the file as it is now; None where it is gone."""
    text: str
    """What stands there, or the name of the test."""
    is_sure: bool = True
    """Whether honest code hardly ever looks like this."""

    def describe(self) -> str:
        """Return it as one line for people."""
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{place}: {self.kind}{f': {self.text}' if self.text else ''}"
