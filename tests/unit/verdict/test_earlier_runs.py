"""Which failures are worth another run, and what mixed results come to (A86)."""

from typing import Any

import pytest

from agentflow.core.evidence import CheckName, CheckRun, Execution, Fault, TestOutcome
from agentflow.verdict.earlier_runs import PATIENCE, Circumstances, choose_wait, explain_retry, find_flaky
from tests.unit.verdict.cases import a_check

PASSED, FAILED = TestOutcome.PASSED, TestOutcome.FAILED
RED, GREEN = {"t1": FAILED, "t2": PASSED}, {"t1": PASSED, "t2": PASSED}
HUNG: dict[str, Any] = {"timed_out": True}
PASSED_BEFORE = Circumstances(passed=frozenset({"t1", "t2", ""}), hangs=False)


def shown(outcomes: dict[str, TestOutcome] | None = None, said: str = "", **changes: Any) -> CheckRun:
    found = outcomes or {}
    code = int(FAILED in found.values() or bool(changes.get("timed_out") or said))
    ended: dict[str, Any] = {
        "command": "c",
        "cwd": ".",
        "started_at": "",
        "seconds": 1.0,
        "stdout_sha256": "",
        "bytes": 0,
    }
    run = Execution(
        **{**ended, "exit_code": code, "timed_out": False, "output": "o", "tail": said, "bytes": 0, **changes}
    )
    return CheckRun(check=a_check(), ran=run, outcomes=found, tail=said)


def in_turn(*runs: CheckRun, faults: tuple[Fault, ...] = ()) -> CheckRun:
    """Return the last of some runs of a check, with those before it."""
    *before, last = runs
    return last.replace(tries=tuple(zip(faults or [Fault.FLAKY] * len(before), before, strict=True)))


FAULTS: dict[str, tuple[CheckRun, Circumstances, Fault | None]] = {
    "green": (shown(GREEN), PASSED_BEFORE, None),
    "a test that passed before": (shown(RED), PASSED_BEFORE, Fault.FLAKY),
    "a test that was red before": (shown(RED), Circumstances(passed=frozenset({"t2"})), None),
    "a new test": (shown({"new": FAILED}), PASSED_BEFORE, None),
    "a check without tests that was green": (shown(exit_code=1), PASSED_BEFORE, Fault.FLAKY),
    "a check without tests that was red": (shown(exit_code=1), Circumstances(), None),
    "a hang that is new": (shown(**HUNG), PASSED_BEFORE, Fault.TIMEOUT),
    "a hang as before": (shown(**HUNG), Circumstances(), None),
    "no room": (shown(said="OSError: No space left on device"), Circumstances(), Fault.RESOURCES),
    "a lost connection": (shown(said="read ECONNRESET"), Circumstances(online=True), Fault.NETWORK),
    "a network that is closed anyway": (shown(said="Network is unreachable"), Circumstances(), None),
    "a green run that talks of the network": (
        shown(said="ECONNRESET", exit_code=0),
        Circumstances(online=True),
        None,
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_only_what_may_pass_by_itself_is_run_again(name: str) -> None:
    run, known, fault = FAULTS[name]
    assert explain_retry(run, known, PATIENCE) is fault


def test_the_patience_is_that_of_the_kind() -> None:
    said = {fault: (each.times, each.seconds) for fault, each in PATIENCE.items()}
    assert said == {
        Fault.TIMEOUT: (2, 30),
        Fault.FLAKY: (3, 5),
        Fault.NETWORK: (3, 10),
        Fault.RESOURCES: (1, 60),
    }


@pytest.mark.parametrize(("fault", "times"), [(Fault.TIMEOUT, 2), (Fault.RESOURCES, 1)])
def test_it_ends_when_the_patience_does(fault: Fault, times: int) -> None:
    run = shown(**HUNG) if fault is Fault.TIMEOUT else shown(said="ENOSPC")
    faults, known = tuple[Fault, ...](), PASSED_BEFORE.replace(passed=frozenset())
    while found := explain_retry(in_turn(*[run] * (len(faults) + 1), faults=faults), known, PATIENCE):
        faults += (found,)
    assert faults == (fault,) * times


def test_a_failure_that_comes_again_as_it_was_stands() -> None:
    assert explain_retry(in_turn(shown(RED), shown(RED)), PASSED_BEFORE, PATIENCE) is None


def test_failures_that_move_are_looked_at_until_each_test_passed_once() -> None:
    other = {"t1": PASSED, "t2": FAILED}
    assert explain_retry(in_turn(shown(RED), shown(other)), PASSED_BEFORE, PATIENCE) is None
    both, one = {"t1": FAILED, "t2": FAILED}, {"t1": FAILED, "t2": PASSED}
    assert explain_retry(in_turn(shown(both), shown(one)), PASSED_BEFORE, PATIENCE) is Fault.FLAKY


def test_whether_it_is_flaky_is_asked_at_once_and_then_with_pauses() -> None:
    assert choose_wait(Fault.FLAKY, [], PATIENCE) == 0
    assert choose_wait(Fault.FLAKY, [Fault.FLAKY], PATIENCE) == 5
    assert choose_wait(Fault.TIMEOUT, [], PATIENCE) == 30


def test_what_failed_and_passed_is_named() -> None:
    assert find_flaky(in_turn(shown(RED), shown(GREEN))) == ("t1",)
    assert find_flaky(in_turn(shown(**HUNG), shown(GREEN))) == ("tests",)
    assert find_flaky(in_turn(shown(exit_code=1), shown().replace(check=a_check(CheckName.LINT)))) == (
        "lint",
    )


@pytest.mark.parametrize(
    "runs", [[shown(RED), shown(RED)], [shown(GREEN)], [shown(RED)], [shown(**HUNG)] * 3]
)
def test_one_result_is_not_mixed(runs: list[CheckRun]) -> None:
    assert find_flaky(in_turn(*runs)) == ()
