"""When two failed iterations are one and the same: by what was found, never by how it was worded."""

import pytest

from agentflow.core.evidence import CheckRun
from agentflow.core.finding import FindingKind
from agentflow.core.role import Claim, Issue, Judgement, Review, ReviewVerdict, Severity
from agentflow.core.task import Phase, TaskState
from agentflow.workflow.judging import add_failure
from tests.unit.verdict.cases import FAILED, LINT, PASSED, a_task, ran

said = FindingKind.AS_WORDED.of


def hung(seconds: float) -> CheckRun:
    return ran(exit_code=-9, timed_out=True, seconds=seconds)


def reviewed(message: str, line: int = 3) -> TaskState:
    issue = Issue(severity=Severity.MAJOR, kind="logic", path="a.py", line=line, message=message)
    return a_task(review=Review(verdict=ReviewVerdict.NEEDS_CHANGES, issues=(issue,)), tree="t")


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ([hung(601.2)], [hung(600.4)], True),
        ([ran(LINT, exit_code=1)], [ran(LINT, exit_code=2)], False),
        ([ran(outcomes={"a": FAILED, "b": PASSED})], [ran(outcomes={"a": FAILED, "b": FAILED})], False),
        ([hung(601)], [hung(601), ran(LINT, exit_code=1)], False),
    ],
)
def test_a_check_fails_alike_whatever_it_took(
    first: list[CheckRun], second: list[CheckRun], is_same: bool
) -> None:
    task = a_task(tree="t")
    for runs in (first, second):
        seconds = (str(run.evidence.seconds) for run in runs if run.evidence)
        reasons = tuple(map(FindingKind.TIMED_OUT.of, seconds))
        task = add_failure(task, Phase.VERIFICATION, reasons, runs)
    assert task.is_stalled is is_same


def test_a_judge_who_objects_in_other_words_says_the_same() -> None:
    task = add_failure(reviewed("off by one"), Phase.REVIEW, (said("off by one"),))
    same = add_failure(
        reviewed("one too few").replace(failures=task.failures), Phase.REVIEW, (said("one too few"),)
    )
    other = add_failure(
        reviewed("off by one", 9).replace(failures=task.failures), Phase.REVIEW, (said("off by one"),)
    )
    assert (same.is_stalled, other.is_stalled) == (True, False)
    refused = Judgement(verdict=Claim.FAILED, evidence=(), reasons=("a.py:3 is wrong",))
    task = add_failure(a_task(tree="t", judgement=refused), Phase.VERIFICATION, (said("x"),))
    again = refused.replace(reasons=("a.py:3 still is wrong",))
    assert add_failure(task.replace(judgement=again), Phase.VERIFICATION, (said("y"),)).is_stalled


def test_each_time_that_a_stop_hook_blocks_is_another_failure() -> None:
    task = add_failure(a_task(tree="t", stop_blocks=1), Phase.VERIFICATION, (said("stop hook"),))
    assert not add_failure(task.replace(stop_blocks=2), Phase.VERIFICATION, (said("stop hook"),)).is_stalled
