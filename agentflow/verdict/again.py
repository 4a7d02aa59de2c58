"""Which failures of a check are worth another run on the same tree, how often, and after what wait."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from agentflow.checks.run import Shown
from agentflow.core.evidence import RED, CheckName, Fault, TestOutcome
from agentflow.core.record import Record
from agentflow.sandbox.reasons import NETWORK
from agentflow.settings import Patience

PATIENCE: Mapping[Fault, Patience] = MappingProxyType(
    {
        Fault.TIMEOUT: Patience(times=2, seconds=30),
        Fault.FLAKY: Patience(times=3, seconds=5),
        Fault.NETWORK: Patience(times=3, seconds=10),
        Fault.RESOURCES: Patience(times=1, seconds=60),
    }
)
_CONNECTION = re.compile(rf"{NETWORK.pattern}|ECONNRESET|ETIMEDOUT|Connection reset by peer")
_RESOURCES = re.compile(
    r"No space left on device|ENOSPC|Cannot allocate memory|ENOMEM|[Oo]ut of memory|OutOfMemoryError"
    r"|Too many open files|EMFILE|can't start new thread|Resource temporarily unavailable"
)


_NONE: Mapping[str, TestOutcome] = MappingProxyType({})
WHOLE = ""
"""Stands for the check as a whole, among its tests."""


class Known(Record):
    """What is known of a check beside its runs on this tree."""

    passed: frozenset[str] = frozenset()
    """What passed on the code before, or on this code under other checks."""
    hangs: bool = True
    """It timed out there as well, or there is nothing to compare with."""
    online: bool = False
    """It reaches the network."""


def due(
    runs: Sequence[Shown], faults: Sequence[Fault], known: Known, patience: Mapping[Fault, Patience]
) -> Fault | None:
    """Return why the last of these runs is not to stand; None where it stands."""
    fault = _fault(runs[-1], known)
    if fault is None or fault not in patience or faults.count(fault) >= patience[fault].times:
        return None
    return None if fault is Fault.FLAKY and _is_clear(runs) else fault


def wait(fault: Fault, faults: Sequence[Fault], patience: Mapping[Fault, Patience]) -> float:
    """Return the seconds before the next run; only a second run tells whether a test is flaky at all."""
    return 0 if fault is Fault.FLAKY and fault not in faults else patience[fault].seconds


def flaky(
    runs: Sequence[Shown], name: CheckName, earlier: Mapping[str, TestOutcome] = _NONE
) -> tuple[str, ...]:
    """Return what had mixed results, `earlier` ones too: tests, or the check where a run tells none."""
    reds, passed = (frozenset[str]().union(*map(side, runs)) for side in (_red, passing))
    reds |= {test for test, outcome in earlier.items() if outcome in RED}
    passed |= {test for test, outcome in earlier.items() if outcome is TestOutcome.PASSED}
    return tuple(sorted(test or str(name) for test in reds & passed))


def passing(shown: Shown) -> frozenset[str]:
    """Return the tests that passed, and what stands for the check where all of it did."""
    passed = {test for test, outcome in shown.outcomes.items() if outcome is TestOutcome.PASSED}
    return frozenset(passed if _red(shown) else {*passed, WHOLE})


def _red(shown: Shown) -> frozenset[str]:
    red = frozenset(test for test, outcome in shown.outcomes.items() if outcome in RED)
    return red or frozenset(() if shown.execution.exit_code == 0 else (WHOLE,))


def _fault(shown: Shown, known: Known) -> Fault | None:
    """Return what a failure is put down to; a signature counts only where its cause can pass."""
    red, said = _red(shown), shown.execution.tail
    if shown.execution.timed_out:
        return None if known.hangs else Fault.TIMEOUT
    if red and _RESOURCES.search(said):
        return Fault.RESOURCES
    if red and known.online and _CONNECTION.search(said):
        return Fault.NETWORK
    return Fault.FLAKY if red & known.passed else None


def _is_clear(runs: Sequence[Shown]) -> bool:
    """Return whether another run would add nothing: what is red has passed once, or is red as before."""
    passed = frozenset[str]().union(*map(passing, runs))
    return not _red(runs[-1]) - passed or (len(runs) > 1 and _red(runs[-1]) == _red(runs[-2]))
