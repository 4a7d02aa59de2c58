"""Repository to required checks: what must hold here, and the command that shows it."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from agentflow.checks.other import LANGUAGES, make_checks
from agentflow.checks.python import python_checks
from agentflow.checks.repository import Repository
from agentflow.checks.required import merged
from agentflow.core.evidence import Check, CheckName
from agentflow.sandbox.run import Sandbox

_QUICK_LIMITS = MappingProxyType({CheckName.LINT: 30.0, CheckName.TESTS: 60.0})
"""Seconds, and the only checks of a quick run."""


def detect(sandbox: Sandbox, files: tuple[str, ...]) -> tuple[Check, ...]:
    """Return the required checks, one a name, in the order they are run.

    `files` are those git does not ignore, relative to the root; no other is read.
    """
    repository = Repository(sandbox=sandbox, files=files, known=frozenset(files))
    found = [*python_checks(repository)]
    for language in LANGUAGES:
        found += language(repository)
    if not any(check.name is CheckName.TESTS for check in found):
        found += make_checks(repository)
    return merged(found)


def quick(checks: Iterable[Check], timeouts: Mapping[CheckName, float]) -> tuple[Check, ...]:
    """Return what `verify --quick` runs of these; `timeouts` are the user's."""
    chosen = (check for check in checks if check.name in _QUICK_LIMITS)
    return limited_by(chosen, {**_QUICK_LIMITS, **timeouts})


def limited_by(checks: Iterable[Check], timeouts: Mapping[CheckName, float]) -> tuple[Check, ...]:
    """Return checks with other time limits, by their names."""
    return tuple(check.replace(timeout=timeouts.get(check.name, check.timeout)) for check in checks)
