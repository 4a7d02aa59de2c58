"""What was red in one run of the checks and is green in another."""

from agentflow.checks.narrow import scope
from agentflow.core.evidence import RED, CheckRun, TestOutcome


def turned(before: tuple[CheckRun, ...], now: tuple[CheckRun, ...]) -> list[str]:
    """Return the checks and tests that are green now and were red before."""
    proven = []
    for base in before:
        run = next((run for run in now if run.check.name is base.check.name), None)
        if run is None or base.evidence is None:
            continue
        if not base.outcomes and not base.green and run.green:
            proven.append(str(run.check.name))
        proven.extend((base.ids(*RED) & run.ids(TestOutcome.PASSED)) | loaded_now(base, run))
    return proven


def loaded_now(base: CheckRun, run: CheckRun) -> frozenset[str]:
    """Return what stood for tests that could not be loaded or set up, and of which some pass now."""
    passed = run.ids(TestOutcome.PASSED)
    return frozenset(
        test
        for test in base.ids(*RED) - run.ids(*RED)
        if (begin := scope(test)) and any(name.startswith(begin) for name in passed)
    )


def not_loaded(before: CheckRun, now: CheckRun) -> frozenset[str]:
    """Return the tests that gave a result before and now cannot be loaded."""
    scopes = tuple(begin for test in now.ids(*RED) - before.told if (begin := scope(test)))
    return frozenset(test for test in before.told if scopes and test.startswith(scopes))
