"""Whatever the phases decide, a task comes to its end, and never past a gate that it did not pass."""

from hypothesis import given
from hypothesis import strategies as st

from agentflow.core.evidence import TestOutcome
from agentflow.core.exits import Exit
from agentflow.core.submissions import Claim, Judgement
from agentflow.core.task import Ending, Gate, GateStatus, Phase, Status, TaskState
from agentflow.workflow.conclusion import conclude
from agentflow.workflow.gate import Case, judge, weigh
from agentflow.workflow.route import DEFAULT_ROUTE, ORDER, TRANSITIONS, enter, next_phase, with_route
from tests.unit.workflow import cases

NOW = "2026-01-02T03:04:05Z"
ENDING = Ending(status=Status.FAILED, exit_code=Exit.NOT_VERIFIED, reason="r")
ROUTES = st.sampled_from(
    [DEFAULT_ROUTE, ORDER, (Phase.REFINEMENT, Phase.EXPLORATION), (Phase.REFINEMENT, *ORDER[3:]), ORDER[:3]]
)
WAYS = st.lists(
    st.tuples(st.sampled_from(["passed", "failed", "ended", "cut"]), st.integers(min_value=0, max_value=2)),
    max_size=60,
)


def decided(task: TaskState, way: str, tree: int) -> TaskState:
    """Return the task as its phase left it."""
    phase = task.current_phase
    if way == "cut":
        return task
    if way == "ended":
        return task.replace(ending=ENDING).with_gate(phase, Gate(status=GateStatus.FAILED))
    if way == "passed":
        task = task.replace(verdict=cases.a_verdict()) if phase is Phase.VERIFICATION else task
        return task.with_gate(phase, Gate(status=GateStatus.PASSED))
    failed = task.with_gate(phase, Gate(status=GateStatus.FAILED))
    if phase is not Phase.VERIFICATION:
        return failed
    return failed.replace(
        failures=(*task.failures, cases.a_failure(tree=str(tree))), verdict=cases.a_verdict("red")
    )


def travelled(route: tuple[Phase, ...], ways: list[tuple[str, int]], most: int) -> list[TaskState]:
    task = cases.a_task(max_iterations=most)
    seen: list[TaskState] = []
    for way, tree in [*ways, *[("failed", number) for number in range(most + 8)]]:
        phase = next_phase(task)
        assert phase is not None
        assert phase in TRANSITIONS[task.current_phase]
        task = enter(task, phase, NOW)
        if phase is Phase.COMPLETE:
            return [*seen, task]
        if phase is Phase.REFINEMENT:
            task = with_route(task, route)
        task = decided(task, way, tree)
        seen.append(task)
    raise AssertionError("the task did not come to its end")


@given(ROUTES, WAYS, st.integers(min_value=1, max_value=4))
def test_a_task_ends_within_its_iterations(
    route: tuple[Phase, ...], ways: list[tuple[str, int]], most: int
) -> None:
    seen = travelled(route, ways, most)
    assert max(task.iteration for task in seen) <= most
    assert [task.iteration for task in seen] == sorted(task.iteration for task in seen)


@given(ROUTES, WAYS, st.integers(min_value=1, max_value=4))
def test_no_way_leads_to_the_end_past_an_open_gate(
    route: tuple[Phase, ...], ways: list[tuple[str, int]], most: int
) -> None:
    task = travelled(route, ways, most)[-1]
    open_gates = [
        phase for phase in route if task.gate(phase).status not in (GateStatus.PASSED, GateStatus.SKIPPED)
    ]
    excused = task.ending is not None or any(gate.status is GateStatus.FAILED for gate in task.gates.values())
    assert not open_gates or excused


@given(ROUTES, WAYS, st.integers(min_value=1, max_value=4))
def test_only_a_passed_verification_ends_verified(
    route: tuple[Phase, ...], ways: list[tuple[str, int]], most: int
) -> None:
    task = travelled(route, ways, most)[-1]
    ending = task.ending or conclude(task)
    verified = ending.exit_code in (Exit.VERIFIED, Exit.CAVEAT)
    assert not verified or task.gate(Phase.VERIFICATION).status is GateStatus.PASSED


OUTCOMES = st.dictionaries(st.sampled_from(["t1", "t2", "t3"]), st.sampled_from(tuple(TestOutcome)))
CASES = st.builds(
    lambda first, last, exits, lint, targets, preserving: cases.a_case(
        (cases.ran(cases.TESTS, last, exit_code=exits[1]), cases.ran(cases.LINT, findings=lint[1])),
        (cases.before(cases.TESTS, first, exit_code=exits[0]), cases.before(cases.LINT, findings=lint[0])),
        targets=frozenset(targets),
        preserving=preserving,
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
    first, last = case.baseline[0], case.final[0]
    red = (cases.FAILED, cases.ERROR)
    assert last.ids(cases.PASSED, *red) >= first.ids(cases.PASSED, *red)
    assert last.ids(*red) <= first.ids(*red)
    assert not case.targets & first.ids(*red) & last.ids(*red)
    assert not last.ids(*red) or "already_red" in verdict.caveats


CLAIMS = st.builds(
    Judgement,
    verdict=st.sampled_from(tuple(Claim)),
    evidence=st.lists(st.text(max_size=5), max_size=2).map(tuple),
    reasons=st.lists(st.text(max_size=20), max_size=2).map(tuple),
)


@given(CASES, CLAIMS)
def test_no_word_raises_a_verdict(case: Case, claim: Judgement) -> None:
    verdict = judge(case)
    weighed = weigh(verdict, claim, (cases.changed("a.py"),))
    assert verdict.passed or not weighed.passed
    assert set(verdict.caveats) <= set(weighed.caveats) or not weighed.passed
