"""Checks that a person says need not hold: who said so, why, and what that leaves open."""

import getpass
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from agentflow.core.errors import UsageError
from agentflow.core.evidence import CheckName
from agentflow.core.pending import Override

RISKS: Mapping[CheckName, str] = MappingProxyType(
    {
        CheckName.LINT: "simple mistakes that a linter sees go unseen",
        CheckName.FORMAT: "files may look otherwise than the rest",
        CheckName.TYPES: "calls that do not fit what they call go unseen",
        CheckName.BUILD: "nothing shows that it can still be built",
        CheckName.TESTS: "nothing shows that the program still does what it did",
    }
)


def overrides_of(names: Iterable[str], reason: str) -> tuple[Override, ...]:
    """Return what `--skip-check` and `--reason` say. Raises UsageError."""
    found = tuple(dict.fromkeys(names))
    if found and not reason.strip():
        raise UsageError("--skip-check needs --reason: it is recorded beside your name")
    if reason and not found:
        raise UsageError("--reason says why a check is skipped; name it with --skip-check")
    for name in found:
        if name not in RISKS:
            raise UsageError(f"unknown check {name!r}", hint=f"checks: {', '.join(RISKS)}")
    return tuple(override(CheckName(name), reason.strip(), _person()) for name in found)


def override(check: CheckName, reason: str, by: str) -> Override:
    return Override(check=check, reason=reason, by=by, risk=RISKS[check])


def _person() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"
