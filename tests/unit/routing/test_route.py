from itertools import product

import pytest

from agentflow.core.errors import CorruptState, Exit
from agentflow.core.role import Change, Claim, Judgement, Review, ReviewVerdict
from agentflow.core.task import Ending, Gate, GateStatus, Phase, Status
from agentflow.core.verdict import Caveat
from agentflow.routing.route import (
    ORDER,
    TRANSITIONS,
    enter_phase,
    find_next_phase,
    list_phases_beside,
    may_retry,
    set_route,
)
from agentflow.verdict.ending import conclude
from agentflow.verdict.judge import find_review_caveats
from tests.unit.verdict.cases import a_failure, a_task, a_verdict, gated

NOW = "2026-01-02T03:04:05Z"
DEFAULT = (Phase.EXPLORATION, Phase.PLANNING, Phase.IMPLEMENTATION, Phase.VERIFICATION)
LEADS = {
    "refinement": "refinement exploration planning implementation review complete",
    "exploration": "exploration planning implementation review complete",
    "planning": "planning implementation complete",
    "implementation": "implementation review verification complete",
    "review": "review verification implementation complete",
    "verification": "verification implementation complete",
    "complete": "complete",
}


@pytest.mark.parametrize(("start", "to"), [*product(Phase, Phase)])
def test_a_phase_leads_where_the_table_says_and_nowhere_else(start: Phase, to: Phase) -> None:
    task = a_task(current_phase=start)
    if to in LEADS[start].split():
        assert enter_phase(task, to, NOW).current_phase is to
        return
    with pytest.raises(CorruptState, match=f"{start} does not lead to {to}"):
        enter_phase(task, to, NOW)


def test_the_table_has_every_phase() -> None:
    assert set(TRANSITIONS) == set(Phase)


def test_entering_a_phase_opens_its_gate() -> None:
    gate = enter_phase(a_task(), Phase.EXPLORATION, NOW).get_gate(Phase.EXPLORATION)
    assert gate == Gate(status=GateStatus.IN_PROGRESS, timestamp=NOW)


def test_completion_has_no_gate() -> None:
    assert enter_phase(a_task(), Phase.COMPLETE, NOW).gates == {}


@pytest.mark.parametrize("phase", ORDER)
@pytest.mark.parametrize("status", [GateStatus.PENDING, GateStatus.IN_PROGRESS])
def test_an_open_gate_is_next(phase: Phase, status: GateStatus) -> None:
    assert find_next_phase(gated(phase, status)) is phase


@pytest.mark.parametrize("status", [GateStatus.PASSED, GateStatus.SKIPPED])
@pytest.mark.parametrize("place", range(6))
def test_a_closed_gate_leads_to_the_one_after_it(place: int, status: GateStatus) -> None:
    after = (*ORDER, Phase.COMPLETE)[place + 1]
    assert find_next_phase(gated(ORDER[place], status)) is after


@pytest.mark.parametrize("phase", ORDER)
def test_a_failed_gate_goes_back_only_from_a_judging_phase(phase: Phase) -> None:
    judging = phase in (Phase.REVIEW, Phase.VERIFICATION)
    expected = Phase.IMPLEMENTATION if judging else Phase.COMPLETE
    assert find_next_phase(gated(phase, GateStatus.FAILED)) is expected


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.RUNNING])
def test_a_task_that_does_not_run_has_no_next_phase(status: Status) -> None:
    assert find_next_phase(gated(Phase.PLANNING, GateStatus.PENDING).replace(status=status)) is None


def test_an_ending_leads_to_completion_from_everywhere() -> None:
    ending = Ending(status=Status.FAILED, exit_code=Exit.NOT_VERIFIED, reason="r")
    for phase, status in product(ORDER, GateStatus):
        assert find_next_phase(gated(phase, status, ending=ending)) is Phase.COMPLETE


SAME = (a_failure(), a_failure())


@pytest.mark.parametrize(
    ("failures", "stalled"),
    [
        ((), False),
        ((a_failure(),), False),
        (SAME, True),
        ((a_failure(tree="a"), a_failure(tree="b")), False),
        ((a_failure(signature="a"), a_failure(signature="b")), False),
        ((a_failure(), a_failure(tree="b"), a_failure()), False),
        ((a_failure(tree="b"), *SAME), True),
    ],
)
def test_the_same_failure_on_the_same_tree_twice_is_no_progress(
    failures: tuple[object, ...], stalled: bool
) -> None:
    assert a_task(failures=failures).is_stalled is stalled


@pytest.mark.parametrize(
    ("iteration", "failures", "allowed"),
    [(1, (), True), (2, (), True), (3, (), False), (4, (), False), (1, SAME, False)],
)
def test_a_change_is_tried_again_while_iterations_are_left_and_help(
    iteration: int, failures: tuple[object, ...], allowed: bool
) -> None:
    task = gated(Phase.VERIFICATION, GateStatus.FAILED, iteration=iteration, failures=failures)
    assert may_retry(task) is allowed
    assert find_next_phase(task) is (Phase.IMPLEMENTATION if allowed else Phase.COMPLETE)


@pytest.mark.parametrize("phase", [Phase.REVIEW, Phase.VERIFICATION])
def test_going_back_begins_a_new_iteration_without_the_old_results(phase: Phase) -> None:
    task = gated(
        phase,
        GateStatus.FAILED,
        change=Change(summary="s", files=()),
        review=Review(verdict=ReviewVerdict.APPROVED, issues=()),
        judgement=Judgement(verdict=Claim.FAILED, evidence=(), reasons=()),
        verdict=a_verdict("r"),
        failures=(a_failure(),),
    )
    task = enter_phase(task, Phase.IMPLEMENTATION, NOW)
    assert (task.iteration, task.change, task.review, task.judgement, task.verdict) == (
        2, None, None, None, None,
    )  # fmt: skip
    assert task.failures == (a_failure(),)
    assert {task.get_gate(other).status for other in (Phase.REVIEW, Phase.VERIFICATION)} == {
        GateStatus.PENDING
    }


def test_a_skipped_review_stays_skipped_in_the_next_iteration() -> None:
    task = gated(Phase.VERIFICATION, GateStatus.FAILED).with_gate(
        Phase.REVIEW, Gate(status=GateStatus.SKIPPED)
    )
    assert enter_phase(task, Phase.IMPLEMENTATION, NOW).get_gate(Phase.REVIEW).status is GateStatus.SKIPPED


def test_entering_the_implementation_again_after_a_crash_is_the_same_iteration() -> None:
    task = gated(Phase.IMPLEMENTATION, GateStatus.IN_PROGRESS)
    assert enter_phase(task, Phase.IMPLEMENTATION, NOW).iteration == 1


def test_phases_outside_the_route_are_skipped_with_a_reason() -> None:
    task = set_route(a_task(), "default", DEFAULT)
    skipped = {phase: gate for phase, gate in task.gates.items() if gate.status is GateStatus.SKIPPED}
    assert list(task.gates) == list(ORDER)
    assert skipped == {Phase.REVIEW: Gate(status=GateStatus.SKIPPED, message="route: default")}


def test_a_route_leaves_gates_that_are_set_as_they_are() -> None:
    task = enter_phase(a_task(), Phase.REFINEMENT, NOW)
    assert set_route(task, "default", DEFAULT).get_gate(Phase.REFINEMENT) == task.get_gate(Phase.REFINEMENT)


@pytest.mark.parametrize(
    ("changes", "status", "code", "said"),
    [
        ({}, Status.FAILED, 1, "there was no change to judge"),
        ({"verdict": a_verdict()}, Status.VERIFIED, 0, "every required check passes on the final tree"),
        (
            {"verdict": a_verdict(caveats=("already_red",))},
            Status.VERIFIED_WITH_CAVEAT,
            4,
            "with a caveat: already_red",
        ),
        (
            {"verdict": a_verdict("r1", "r2"), "iteration": 3},
            Status.LIMIT,
            3,
            "3 of 3 iterations used: r1; r2",
        ),
        ({"verdict": a_verdict("r1"), "failures": SAME}, Status.FAILED, 1, "no progress"),
        ({"verdict": a_verdict("r1"), "failures": SAME, "iteration": 3}, Status.FAILED, 1, "no progress"),
    ],
)
def test_the_end_follows_from_the_verdict(
    changes: dict[str, object], status: Status, code: int, said: str
) -> None:
    ending = conclude(a_task(**changes))
    assert (ending.status, int(ending.exit_code)) == (status, code)
    assert said in ending.reason


def test_whatever_is_changed_is_verified_by_the_program() -> None:
    task = set_route(a_task(), "single_file", (Phase.IMPLEMENTATION,))
    assert task.get_gate(Phase.VERIFICATION).status is GateStatus.PENDING
    assert task.routing.steps == (Phase.IMPLEMENTATION,)


def test_a_route_that_only_reads_is_never_sent_back() -> None:
    task = set_route(a_task(), "audit", (Phase.EXPLORATION, Phase.REVIEW))
    for phase in (Phase.REFINEMENT, Phase.EXPLORATION):
        task = task.with_gate(phase, Gate(status=GateStatus.PASSED))
    task = task.with_gate(Phase.REVIEW, Gate(status=GateStatus.FAILED))
    assert find_next_phase(task) is Phase.COMPLETE
    assert conclude(task).exit_code is Exit.NOT_VERIFIED


def test_the_judges_of_one_tree_are_entered_together_unless_one_by_one() -> None:
    task = gated(Phase.REVIEW, GateStatus.PENDING)
    assert list_phases_beside(task, Phase.REVIEW) == (Phase.REVIEW, Phase.VERIFICATION)
    entered = enter_phase(task, Phase.REVIEW, NOW)
    assert {entered.get_gate(phase).status for phase in list_phases_beside(task, Phase.REVIEW)} == {
        GateStatus.IN_PROGRESS
    }
    assert list_phases_beside(task.replace(sequential=True), Phase.REVIEW) == (Phase.REVIEW,)
    assert list_phases_beside(task, Phase.VERIFICATION) == (Phase.VERIFICATION,)
    verified = task.with_gate(Phase.VERIFICATION, Gate(status=GateStatus.PASSED))
    assert list_phases_beside(verified, Phase.REVIEW) == (Phase.REVIEW,)


def test_a_class_that_counts_only_with_a_review_is_not_verified_without_one() -> None:
    task = a_task(verdict=a_verdict(), review_required=True)
    for status in GateStatus:
        ending = conclude(task.with_gate(Phase.REVIEW, Gate(status=status)))
        assert (ending.exit_code is Exit.VERIFIED) is (status is GateStatus.PASSED), status


def test_a_review_that_the_person_left_out_is_a_caveat() -> None:
    task = a_task(review_required=True, wants_review=False)
    task = task.with_gate(Phase.REVIEW, Gate(status=GateStatus.SKIPPED))
    assert find_review_caveats(task) == (Caveat.NOT_REVIEWED,)
    assert (
        conclude(task.replace(verdict=a_verdict(caveats=find_review_caveats(task)))).exit_code is Exit.CAVEAT
    )


@pytest.mark.parametrize("phase", [Phase.REVIEW, Phase.VERIFICATION])
def test_the_same_failure_of_one_judge_is_no_progress_whatever_the_other_says(phase: Phase) -> None:
    other = Phase.VERIFICATION if phase is Phase.REVIEW else Phase.REVIEW
    both = (a_failure(phase=other, signature="x"), a_failure(phase=phase))
    assert a_task(failures=(*both, *both)).is_stalled
    assert not a_task(failures=both).is_stalled
