"""What was red in one run of the checks and is green in another."""

from agentflow.core.evidence import RED, CheckRun, TestOutcome

_UNLOADED = "unittest.loader._FailedTest."
_FIXTURES = frozenset({"setUpClass", "tearDownClass", "setUpModule", "tearDownModule"})


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
        if (scope := _scope(test)) and any(name.startswith(scope) for name in passed)
    )


def not_loaded(before: CheckRun, now: CheckRun) -> frozenset[str]:
    """Return the tests that gave a result before and now cannot be loaded."""
    scopes = tuple(scope for test in now.ids(*RED) - before.told if (scope := _scope(test)))
    return frozenset(test for test in before.told if scopes and test.startswith(scopes))


def _scope(test: str) -> str | None:
    """Return how the ids of the tests begin that a failure to load or set up stands for."""
    if _UNLOADED in test:
        return test.partition(_UNLOADED)[2] + "."
    owner, _, last = test.rpartition(".")
    if last in _FIXTURES:
        return f"{owner}."
    return f"{test}::" if last == "py" and "::" not in test else None
