"""The required checks as values: their time limits, and several commands of one name made one."""

from collections.abc import Iterable, Sequence
from types import MappingProxyType

from agentflow.core.evidence import Check, CheckName

LIMITS = MappingProxyType(
    {
        CheckName.TESTS: 300.0,
        CheckName.TYPES: 120.0,
        CheckName.LINT: 60.0,
        CheckName.FORMAT: 60.0,
        CheckName.BUILD: 180.0,
    }
)
"""Seconds."""
QUICK_LIMITS = MappingProxyType({CheckName.LINT: 30.0, CheckName.FORMAT: 15.0, CheckName.TESTS: 60.0})
"""Seconds, and the only checks of a quick look."""


def require(name: CheckName, command: str, reason: str, missing: str | None = None) -> Check:
    """Return a check with the time limit of its kind."""
    return Check(name=name, command=command, timeout=LIMITS[name], reason=reason, missing=missing)


def every(commands: Sequence[str]) -> str:
    """Return one shell command that runs all of them and fails if any fails."""
    if len(commands) == 1:
        return commands[0]
    runs = "; ".join(f"{{ {command}; }} || r=1" for command in commands)
    return f"r=0; {runs}; exit $r"


def merge_required(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Return what a task requires, one check a name; how code is formatted is a part of `lint`."""
    return merge_checks(
        check.replace(name=CheckName.LINT) if check.name is CheckName.FORMAT else check for check in checks
    )


def quick(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Return what a quick look runs, one check a name."""
    chosen = merge_checks(check for check in checks if check.name in QUICK_LIMITS)
    return tuple(check.replace(timeout=QUICK_LIMITS[check.name]) for check in chosen)


def merge_checks(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Return one check a name, in the order of CheckName."""
    found = tuple(checks)
    groups = ([check for check in found if check.name is name] for name in CheckName)
    return tuple(_one(group) for group in groups if group)


def _one(group: Sequence[Check]) -> Check:
    """Return several checks as one, of which the part runs that this machine has the programs for."""
    absent = "; ".join(check.missing for check in group if check.missing) or None
    able = [check for check in group if not check.missing]
    return Check(
        name=group[0].name,
        command=every([check.command for check in able or group]),
        timeout=sum(check.timeout for check in group),
        reason="; ".join(check.reason for check in group),
        missing=None if able else absent,
        left_out=absent if able else None,
    )
