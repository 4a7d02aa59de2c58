"""Repository to required checks: what must hold here, and the command that shows it."""

from collections.abc import Collection, Iterable, Mapping

from agentflow.checks.other import make_checks, node_checks, table_checks
from agentflow.checks.python import python_checks
from agentflow.checks.repository import Repository
from agentflow.checks.required import quick, required
from agentflow.core.evidence import Check, CheckName
from agentflow.sandbox.run import Sandbox


def detect(
    sandbox: Sandbox, files: tuple[str, ...], settled: Collection[CheckName] = ()
) -> tuple[Check, ...]:
    """Return the required checks, one a name, in the order they are run.

    `files` are those git does not ignore, relative to the root; no other is read. The check of a settled
    name is known already: no program is asked for it, and it may be left out.
    """
    return required(_found(sandbox, files, (), settled))


def detect_quick(sandbox: Sandbox, files: tuple[str, ...], changed: Collection[str]) -> tuple[Check, ...]:
    """Return what is run for a quick look: of the tests those that belong to changed files, if any do."""
    return quick(_found(sandbox, files, changed))


def limited_by(checks: Iterable[Check], timeouts: Mapping[CheckName, float]) -> tuple[Check, ...]:
    """Return checks with other time limits, by their names."""
    return tuple(check.replace(timeout=timeouts.get(check.name, check.timeout)) for check in checks)


def _found(
    sandbox: Sandbox, files: tuple[str, ...], changed: Collection[str], settled: Collection[CheckName] = ()
) -> list[Check]:
    repository = Repository(sandbox=sandbox, files=files, known=frozenset(files))
    found = [*python_checks(repository, changed, settled)]
    found += (*node_checks(repository), *table_checks(repository))
    if not any(check.name is CheckName.TESTS for check in found):
        found += make_checks(repository)
    return found
