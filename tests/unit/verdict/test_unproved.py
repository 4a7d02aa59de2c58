"""What nothing proves, by place, and what would prove it."""

import pytest

from agentflow.core.verdict import Hunk, MutantEnd, MutantResult
from agentflow.routing.wanted import Wanted
from agentflow.verdict.judge import judge
from agentflow.wording import describe_all
from tests.unit.verdict.cases import PASSED, TESTS, a_case, before, ran

GREEN = ran(TESTS, {"t1": PASSED, "t2": PASSED})
WAS_GREEN = before(TESTS, {"t1": PASSED, "t2": PASSED})
LINES = (Hunk(path="a.py", line=3, end=3),)


def test_new_tests_that_prove_nothing_are_told_by_name() -> None:
    old, new = {"adds": PASSED}, {"adds": PASSED, "rounds": PASSED}
    fresh = (before(TESTS, new),)
    case = a_case((ran(TESTS, new),), (before(TESTS, old),), fresh=fresh, tested=("test/cart.test.js",))
    assert describe_all(judge(case).unproved) == (
        "test/cart.test.js: let rounds fail when the code is broken",
    )
    several = case.replace(tested=("test/cart.test.js", "test/more.test.js"))
    assert describe_all(judge(several).unproved)[0].endswith(
        ": let each new or changed test fail when the code is broken"
    )


def test_tests_that_run_compiled_are_no_tests_that_did_not_run() -> None:
    old, new = (
        {"dist/a.test.js::adds": PASSED},
        {"dist/a.test.js::adds": PASSED, "dist/a.test.js::rounds": PASSED},
    )
    fresh = (before(TESTS, new),)
    case = a_case((ran(TESTS, new),), (before(TESTS, old),), fresh=fresh, tested=("src/a.test.ts",))
    assert describe_all(judge(case).unproved) == (
        "src/a.test.ts: let dist/a.test.js::rounds fail when the code is broken",
    )


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (Wanted.FORM, "add a test that notices what it does, and passes before and after"),
        (Wanted.BEHAVIOUR, "add a test that fails without it"),
    ],
)
def test_a_refactoring_needs_no_test_that_fails_without_it(wanted: Wanted, said: str) -> None:
    case = a_case((GREEN,), (WAS_GREEN,), changed=LINES, wanted=wanted)
    assert describe_all(judge(case).unproved) == (f"a.py:3: {said}",)


def test_a_refactoring_whose_edits_took_too_long_needs_a_reader_and_no_test() -> None:
    late = MutantResult(
        path="a.py",
        line=3,
        before="1",
        after="2",
        operator="number moved",
        edit="1 → 2",
        is_strong=True,
        outcome=MutantEnd.NOT_TRIED,
    )
    case = a_case((GREEN,), (WAS_GREEN,), changed=LINES, wanted=Wanted.FORM, mutants=(late,))
    said = "a.py:3: out of time to try all small edits of it: read the diff"
    assert describe_all(judge(case).unproved) == (said,)
