"""Whatever the phases decide, a task comes to its end, and never past a gate that it did not pass."""

from typing import NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentflow.core.errors import Exit
from agentflow.core.evidence import TestOutcome
from agentflow.core.role import Claim, Judgement
from agentflow.core.routing import Routing
from agentflow.core.task import Complexity, Ending, Gate, GateStatus, Phase, Status, TaskState
from agentflow.routing.clauses import load_table
from agentflow.routing.route import (
    JUDGING,
    ORDER,
    TRANSITIONS,
    enter_phase,
    find_next_phase,
    list_phases_beside,
    reclassify_by_size,
    set_route,
)
from agentflow.verdict.case import Case
from agentflow.verdict.ending import conclude
from agentflow.verdict.judge import judge, lower_verdict
from tests.unit.verdict import cases

NOW = "2026-01-02T03:04:05Z"
ENDING = Ending(status=Status.FAILED, exit_code=Exit.NOT_VERIFIED, reason="r")
TABLE = load_table(Routing())
ROUTES = st.sampled_from(sorted(TABLE.routing.routes))
WAYS = st.lists(
    st.tuples(st.sampled_from(["passed", "failed", "ended", "cut"]), st.integers(min_value=0, max_value=2)),
    max_size=60,
)


def decided(task: TaskState, way: str, tree: int) -> TaskState:
    """Return the task as its phase, with those beside it, left it."""
    phases = list_phases_beside(task, task.current_phase)
    if way == "cut":
        return task
    if way == "ended":
        return task.replace(ending=ENDING).with_gate(phases[0], Gate(status=GateStatus.FAILED))
    for phase in phases:
        task = judged(task, phase, way if phase is phases[tree % len(phases)] else "passed", tree)
    return task


def judged(task: TaskState, phase: Phase, way: str, tree: int) -> TaskState:
    if way == "passed":
        task = task.replace(verdict=cases.a_verdict()) if phase is Phase.VERIFICATION else task
        return task.with_gate(phase, Gate(status=GateStatus.PASSED))
    task = task.with_gate(phase, Gate(status=GateStatus.FAILED))
    if phase not in JUDGING:
        return task
    failure = cases.a_failure(tree=str(tree), phase=phase)
    verdict = cases.a_verdict("red") if phase is Phase.VERIFICATION else task.verdict
    return task.replace(failures=(*task.failures, failure), verdict=verdict)


class Journey(NamedTuple):
    """What a task is asked and what happens to it."""

    route: str
    ways: list[tuple[str, int]]
    most: int
    grows: bool
    sequential: bool

    def travelled(self) -> list[TaskState]:
        task = cases.a_task(max_iterations=self.most, sequential=self.sequential)
        seen: list[TaskState] = []
        for way, tree in [*self.ways, *[("failed", number) for number in range(self.most + 8)]]:
            phase = find_next_phase(task)
            assert phase is not None
            assert phase in TRANSITIONS[task.current_phase]
            task = enter_phase(task, phase, NOW)
            if phase is Phase.COMPLETE:
                return [*seen, task]
            task = decided(self.routed(task, phase), way, tree)
            seen.append(task)
        raise AssertionError("the task did not come to its end")

    def routed(self, task: TaskState, phase: Phase) -> TaskState:
        if phase is Phase.REFINEMENT:
            complexity = Complexity.COMPLEX if self.route == "full" else Complexity.IMPLEMENTATION
            task = task.replace(task_complexity=complexity, review_required=self.route == "full")
            return set_route(task, self.route, TABLE.list_steps(self.route, complexity))
        if self.grows and phase is Phase.IMPLEMENTATION:
            task, _ = reclassify_by_size(task, 6, 6, TABLE)
        return task


JOURNEYS = st.builds(
    Journey, ROUTES, WAYS, st.integers(min_value=1, max_value=4), st.booleans(), st.booleans()
)
CALMLY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
CLOSED = (GateStatus.PASSED, GateStatus.SKIPPED)


@CALMLY
@given(JOURNEYS)
def test_a_task_ends_within_its_iterations(journey: Journey) -> None:
    seen = journey.travelled()
    assert max(task.iteration for task in seen) <= journey.most
    assert [task.iteration for task in seen] == sorted(task.iteration for task in seen)


@CALMLY
@given(JOURNEYS)
def test_no_way_leads_to_the_end_past_an_open_gate(journey: Journey) -> None:
    task = journey.travelled()[-1]
    open_gates = [phase for phase in ORDER if task.get_gate(phase).status not in CLOSED]
    excused = task.ending is not None or any(gate.status is GateStatus.FAILED for gate in task.gates.values())
    assert not open_gates or excused


@CALMLY
@given(JOURNEYS)
def test_only_passed_judges_end_verified_and_a_reading_task_never_does(journey: Journey) -> None:
    task = journey.travelled()[-1]
    ending = task.ending or conclude(task)
    if ending.status is Status.ANSWERED:
        assert task.reads_only
        assert all(task.get_gate(phase).status is GateStatus.PASSED for phase in task.routing.steps)
    elif ending.exit_code in (Exit.VERIFIED, Exit.CAVEAT):
        assert task.get_gate(Phase.VERIFICATION).status is GateStatus.PASSED
        assert all(task.get_gate(phase).status is GateStatus.PASSED for phase in task.routing.steps)
        assert not task.routing.review_required or task.get_gate(Phase.REVIEW).status is GateStatus.PASSED


OUTCOMES = st.dictionaries(st.sampled_from(["t1", "t2", "t3"]), st.sampled_from(tuple(TestOutcome)))
CASES = st.builds(
    lambda first, last, exits, lint, targets, same_behaviour: cases.a_case(
        (cases.ran(cases.TESTS, last, exit_code=exits[1]), cases.ran(cases.LINT, findings=lint[1])),
        (cases.before(cases.TESTS, first, exit_code=exits[0]), cases.before(cases.LINT, findings=lint[0])),
        targets=frozenset(targets),
        same_behaviour=same_behaviour,
    ),
    OUTCOMES,
    OUTCOMES,
    st.tuples(st.sampled_from([None, 0, 1]), st.sampled_from([None, 0, 1])),
    st.tuples(*[st.dictionaries(st.sampled_from(["m", "n"]), st.integers(1, 3))] * 2),
    st.sets(st.sampled_from(["t1", "t2", "t3"])),
    st.booleans(),
)


@given(CASES)
def test_a_pass_never_loses_a_test_or_gains_a_failure(case: Case) -> None:
    verdict = judge(case)
    assert verdict.passed is not bool(verdict.reasons)
    if not verdict.passed:
        return
    first, last = case.before[0], case.after[0]
    red = (cases.FAILED, cases.ERROR)
    assert last.tests_with_result >= first.list_ids(cases.PASSED, *red)
    assert last.list_ids(*red) <= first.list_ids(*red)
    assert not case.targets & first.list_ids(*red) & last.list_ids(*red)
    assert not last.list_ids(*red) or "already_red" in verdict.caveats


CLAIMS = st.builds(
    Judgement,
    verdict=st.sampled_from(tuple(Claim)),
    evidence=st.lists(st.text(max_size=5), max_size=2).map(tuple),
    reasons=st.lists(st.text(max_size=20), max_size=2).map(tuple),
)


@given(CASES, CLAIMS)
def test_no_word_raises_a_verdict(case: Case, claim: Judgement) -> None:
    verdict = judge(case)
    weighed = lower_verdict(verdict, claim, (cases.changed("a.py"),))
    assert verdict.passed or not weighed.passed
    assert set(verdict.caveats) <= set(weighed.caveats) or not weighed.passed
