"""What a repository says of its checks, in files that count once a person trusts their content."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from agentflow.checks.required import require
from agentflow.core.evidence import Check, CheckName
from agentflow.core.record import Record

TEST_COMMAND = ".claude/test-command"
KNOWN_FAILURES = ".claude/known-test-failures"
SKIP_TESTS = ".claude/skip-test-verification"


class Word(Record):
    """What a file says, and which."""

    text: str
    file: str


class WellKnown(Record):
    """What the files say that are trusted."""

    commands: Mapping[CheckName, Word] = {}
    """In place of the commands that we would find."""
    known: tuple[str, ...] = ()
    """Ids of tests whose failure does not count."""
    skips: Mapping[CheckName, Word] = {}
    """Why a check is not run."""


def read_well_known(root: Path, trusted: Callable[[str], bool]) -> WellKnown:
    """Return what counts here; a file that is not trusted is as if it were not there."""

    def first(name: str) -> dict[CheckName, Word]:
        lines = _lines(root, name, trusted)
        return {CheckName.TESTS: Word(text=lines[0], file=name)} if lines else {}

    known = tuple(_lines(root, KNOWN_FAILURES, trusted))
    return WellKnown(commands=first(TEST_COMMAND), known=known, skips=first(SKIP_TESTS))


def apply_own_commands(checks: Iterable[Check], said: WellKnown) -> tuple[Check, ...]:
    """Return checks of which those are the repository's own commands that it names."""
    others = (check for check in checks if check.name not in said.commands)
    named = (require(name, word.text, word.file) for name, word in said.commands.items())
    return tuple(sorted((*others, *named), key=lambda check: list(CheckName).index(check.name)))


def _lines(root: Path, name: str, trusted: Callable[[str], bool]) -> list[str]:
    if not trusted(name):
        return []
    rows = (row.strip() for row in (root / name).read_text("utf-8", "replace").splitlines())
    return [row for row in rows if row and not row.startswith("#")]
