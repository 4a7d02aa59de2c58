import pytest

from agentflow.core.errors import Exit
from agentflow.core.evidence import CheckName
from agentflow.core.finding import FindingKind
from agentflow.core.task import Ending, Status
from agentflow.core.verdict import Caveat, Verdict
from agentflow.report.why import explain_task
from agentflow.view.tasks import Snapshot

said = FindingKind.AS_WORDED.of


@pytest.mark.parametrize("caveat", Caveat)
def test_each_caveat_has_a_reason_and_a_next_step(caveat: Caveat, finished: Snapshot) -> None:
    verdict = Verdict(passed=True, reasons=(), evidence=(), caveats=(caveat.of("tests"),), is_testable=True)
    state = finished.state.replace(status=Status.VERIFIED_WITH_CAVEAT, verdict=verdict)
    told = explain_task(state, finished.find)
    assert len(told.facts) == 1
    assert told.next[-1].endswith(f"read the diff, then agentflow commit {state.task_id} --accept-caveat")
    assert "{" not in "".join(told.next)


def test_no_more_than_two_facts_are_told_one_for_each_caveat_first(finished: Snapshot) -> None:
    verdict = Verdict(
        passed=True,
        reasons=(),
        evidence=(),
        caveats=(Caveat.UNPROVED, Caveat.KNOWS_THE_TESTS),
        unproved=(said("calc.py:1: a"), said("calc.py:2: b")),
        grounds={Caveat.KNOWS_THE_TESTS: (said("calc.py:3: c"),)},
    )
    state = finished.state.replace(status=Status.VERIFIED_WITH_CAVEAT, verdict=verdict)
    told = explain_task(state, finished.find, place=" -C x")
    assert (told.facts, told.more) == (("calc.py:1: a", "calc.py:3: c"), 1)
    assert told.next == (f"read the diff, then agentflow commit {state.task_id} -C x --accept-caveat",)


def test_of_a_check_that_could_not_run_its_own_reason_is_told(finished: Snapshot) -> None:
    lacks = (FindingKind.CANNOT_RUN_HERE.of(f"{name} is missing", check=name) for name in CheckName)
    verdict = Verdict(
        passed=True,
        reasons=(),
        evidence=(),
        caveats=(Caveat.CHECK_NOT_RUN.of("tests"),),
        grounds={Caveat.CHECK_NOT_RUN: tuple(lacks)},
    )
    state = finished.state.replace(status=Status.VERIFIED_WITH_CAVEAT, verdict=verdict)
    told = explain_task(state, finished.find)
    assert (told.facts, told.more) == (("tests cannot run here: tests is missing",), 0)


@pytest.mark.parametrize(
    ("code", "said"),
    [(Exit.INTERNAL, "internal error: KeyError: 'x'"), (Exit.CONFIG, "stopped by an error: KeyError: 'x'")],
)
def test_an_error_is_told_as_a_bug_only_if_it_is_one(code: Exit, said: str, finished: Snapshot) -> None:
    ending = Ending(status=Status.ERROR, exit_code=code, reason="KeyError: 'x'")
    told = explain_task(finished.state.replace(status=Status.ERROR, ending=ending), finished.find)
    assert told.headline == said
    assert told.next == (f"agentflow resume {finished.state.task_id} continues it",)
