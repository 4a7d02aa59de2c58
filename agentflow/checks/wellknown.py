"""Three files by which a repository says how it is tested; they count once a person trusts their content."""

from collections.abc import Callable, Iterable
from pathlib import Path

from agentflow.checks.required import require
from agentflow.core.evidence import Check, CheckName
from agentflow.core.record import Record

TEST_COMMAND = ".claude/test-command"
KNOWN_FAILURES = ".claude/known-test-failures"
SKIP_TESTS = ".claude/skip-test-verification"


class WellKnown(Record):
    """What the files say that are trusted."""

    command: str = ""
    """In place of the test command that we would find."""
    known: tuple[str, ...] = ()
    """Ids of tests whose failure does not count."""
    skip: str = ""
    """Why the tests are not run."""


def read_well_known(root: Path, trusted: Callable[[str], bool]) -> WellKnown:
    """Return what counts here; a file that is not trusted is as if it were not there."""
    first = {name: next(iter(_lines(root, name, trusted)), "") for name in (TEST_COMMAND, SKIP_TESTS)}
    return WellKnown(
        command=first[TEST_COMMAND],
        known=tuple(_lines(root, KNOWN_FAILURES, trusted)),
        skip=first[SKIP_TESTS],
    )


def commanded(checks: Iterable[Check], said: WellKnown) -> tuple[Check, ...]:
    """Return checks of which the tests are the repository's own command, where it names one."""
    found = tuple(checks)
    if not said.command:
        return found
    others = tuple(check for check in found if check.name is not CheckName.TESTS)
    return (*others, require(CheckName.TESTS, said.command, TEST_COMMAND))


def _lines(root: Path, name: str, trusted: Callable[[str], bool]) -> list[str]:
    if not trusted(name):
        return []
    rows = (row.strip() for row in (root / name).read_text("utf-8", "replace").splitlines())
    return [row for row in rows if row and not row.startswith("#")]
