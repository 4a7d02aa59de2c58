from typing import Any

import pytest

from agentflow.core.evidence import By, CheckRun, Side, TestCounts
from agentflow.core.finding import FileKind, FindingKind
from agentflow.core.role import Claim, Judgement
from agentflow.core.verdict import Caveat, Hunk, ProbeEnd, ProbeKind, ProbeResult
from agentflow.routing.wanted import Wanted
from agentflow.verdict.case import Case
from agentflow.verdict.judge import judge, lower_verdict
from agentflow.verdict.proofs import find_blind_checks
from agentflow.wording import describe_all
from agentflow.workspace.changes import ChangeKind
from tests.unit.verdict.cases import (
    BEFORE,
    BUILD,
    ERROR,
    FAILED,
    FLAKY,
    LINT,
    PASSED,
    SKIPPED,
    TESTS,
    TYPES,
    a_case,
    a_check,
    a_verdict,
    before,
    changed,
    ran,
)

GREEN = ran(TESTS, {"t1": PASSED, "t2": PASSED})
WAS_RED = before(TESTS, {"t1": FAILED, "t2": PASSED})
WAS_GREEN = before(TESTS, {"t1": PASSED, "t2": PASSED})
WITH_NEW = ran(TESTS, {"t1": PASSED, "t2": PASSED, "t3": PASSED})
NEW_RED = before(TESTS, {"t3": FAILED}, command="run t3")
MENDED = a_case((GREEN,), (WAS_RED,), targets=frozenset({"t1"}))


LINES = (Hunk(path="a.py", line=3, end=3),)


def probed(kind: ProbeKind, end: ProbeEnd = ProbeEnd.SILENT, **changes: Any) -> ProbeResult:
    result = ProbeResult(kind=kind, check=TESTS, end=end, seconds=0.1, subjects=("a.py:3",))
    return result.replace(**changes)


RED_AS_IT_MUST = ProbeEnd.RED_AS_IT_MUST
CANARY = probed(ProbeKind.CANARY)
QUIET = (CANARY, CANARY.replace(code=Side.BASE, end=RED_AS_IT_MUST))
SOFT = probed(ProbeKind.ORACLE, softened=("test_a: 5",))

NO_LINTER = CheckRun(check=a_check(LINT, missing="ruff: pip install ruff"))
PASSES: dict[str, Case] = {
    "a red test is green": MENDED,
    "an erroring test is green": a_case((GREEN,), (before(TESTS, {"t1": ERROR, "t2": PASSED}),)),
    "a red linter is green": a_case(
        (GREEN, ran(LINT)), (WAS_GREEN, before(LINT, findings={"a.py: unused": 1}))
    ),
    "a red test that is gone is green as it stood": a_case(
        (ran(TESTS, {"t2": PASSED}),), (WAS_RED,), held=(ran(TESTS, {"t1": PASSED, "t2": PASSED}),)
    ),
    "no tests at all, and nothing that a test could tell": a_case((), same_behaviour=True),
    "nothing new is asked for": a_case((GREEN,), (WAS_GREEN,), same_behaviour=True),
    "a new test passes beside": a_case(
        (ran(TESTS, {"t1": PASSED, "t2": PASSED, "t3": PASSED}),), (WAS_RED,), targets=frozenset({"t1"})
    ),
    "no test ran before and now some do": a_case((GREEN,), (before(TESTS, exit_code=5, tests=TestCounts()),)),
    "a test was skipped before and still is": a_case(
        (ran(TESTS, {"t1": PASSED, "t2": SKIPPED}),), (before(TESTS, {"t1": FAILED, "t2": SKIPPED}),)
    ),
    "new files appear while the checks run": MENDED.replace(drift=(changed("c.log", ChangeKind.ADDED),)),
    "a new test fails without it, in the same run": a_case(
        (WITH_NEW,), (WAS_GREEN,), fresh=(NEW_RED,), alone=(ran(TESTS, {"t3": PASSED}, command="run t3"),)
    ),
    "a new test fails without it among all": a_case(
        (WITH_NEW,), (WAS_GREEN,), fresh=(before(TESTS, {"t3": FAILED}),)
    ),
    "a new test is not even compiled without it": a_case(
        (WITH_NEW,), (WAS_GREEN,), fresh=(before(TESTS, {"t1": PASSED, "t2": PASSED}),)
    ),
    "a runner that only counts turns green": a_case(
        (ran(TESTS, tests=TestCounts(passed=3)),),
        (before(TESTS, exit_code=1, tests=TestCounts(passed=2, failed=1)),),
    ),
    "other behaviour was asked for, and a test proves it": a_case(
        (GREEN,), (WAS_RED,), wanted=Wanted.BEHAVIOUR
    ),
    "a linter that nobody insists on is missing": a_case((GREEN, NO_LINTER), (WAS_RED, NO_LINTER)),
    "a linter that nobody insists on complains as before": a_case(
        (GREEN, ran(LINT, findings={"m": 2})), (WAS_RED, before(LINT, findings={"m": 2}))
    ),
    "a complaint moves with its code to another file": a_case(
        (GREEN, ran(LINT, findings={"b.py: unused": 1})),
        (WAS_RED, before(LINT, findings={"a.py: unused": 1})),
        changed=(*LINES, Hunk(path="b.py", line=3, end=3)),
    ),
    "a linter that nobody insists on cannot begin, as before": a_case(
        (GREEN, ran(LINT, exit_code=127)),
        (WAS_RED, before(LINT, exit_code=127)),
        blocked={LINT: "eslint is not found"},
    ),
    "some tests are skipped": a_case(
        (ran(TESTS, {"t1": PASSED, "t2": SKIPPED}),), (before(TESTS, {"t1": FAILED, "t2": SKIPPED}),)
    ),
}


@pytest.mark.parametrize("name", PASSES)
def test_a_mended_tree_passes_without_caveat(name: str) -> None:
    verdict = judge(PASSES[name])
    assert (verdict.passed, verdict.reasons, verdict.caveats) == (True, (), ())


def by_chance(*, flaky: tuple[str, ...] = ("t2",), **changes: Any) -> CheckRun:
    return ran(TESTS, **{"outcomes": {"t1": PASSED, "t2": FLAKY}, "flaky": flaky, **changes})


STILL_RED = ran(TESTS, {"t1": FAILED, "t2": PASSED})
ABSENT = CheckRun(check=a_check(BUILD, missing="hatch: pip install hatch"))
NO_RUNNER = CheckRun(check=a_check(TESTS, missing="pytest: pip install pytest"))
PARTLY = ran(LINT).replace(check=a_check(LINT, left_out="black: pip install black"))


def insist(run: CheckRun) -> CheckRun:
    return run.replace(check=run.check.replace(required=True))


CAVEATS: dict[str, tuple[Case, tuple[str, ...]]] = {
    "other behaviour may have been asked for": (
        a_case((GREEN,), (WAS_GREEN,), same_behaviour=True, wanted=Wanted.UNCLEAR),
        (Caveat.UNPROVED,),
    ),
    "a runner that counts nothing turns green": (
        a_case((ran(TESTS),), (before(TESTS, exit_code=2),)),
        (Caveat.TESTS_NOT_COUNTED,),
    ),
    "numbers are printed that were not before": (
        a_case((ran(TESTS, tests=TestCounts(passed=3, is_printed=True)),), (before(TESTS, exit_code=2),)),
        (Caveat.TESTS_NOT_COUNTED,),
    ),
    "most tests are skipped": (
        a_case((ran(TESTS, {"t1": PASSED, "t2": SKIPPED, "t3": SKIPPED}),), (before(TESTS, {"t1": FAILED}),)),
        (Caveat.MOSTLY_SKIPPED,),
    ),
    "a tool is missing": (a_case((GREEN, ABSENT), (WAS_RED, ABSENT)), ("check_not_run:build",)),
    "every tool is missing": (
        a_case((ABSENT, NO_RUNNER), (ABSENT, NO_RUNNER)),
        ("check_not_run:build", "check_not_run:tests", Caveat.UNPROVED),
    ),
    "the tests could not run before": (
        a_case((GREEN,), (WAS_RED,), blocked={TESTS: "no module"}),
        ("check_not_run:tests",),
    ),
    "a tool is missing of a check that is new": (
        a_case((GREEN, ABSENT), (WAS_RED,)),
        ("check_not_run:build",),
    ),
    "a tool is missing for a part of a check": (
        a_case((GREEN, insist(PARTLY)), (WAS_RED, before(LINT))),
        ("check_not_run:lint",),
    ),
    "the tests' tool is missing, and something else holds": (
        a_case((ran(LINT), NO_RUNNER), (before(LINT), NO_RUNNER)),
        ("check_not_run:tests", Caveat.UNPROVED),
    ),
    "a check that could not begin before ends so again": (
        a_case(
            (GREEN, insist(ran(LINT, exit_code=127))),
            (WAS_RED, before(LINT, exit_code=127)),
            blocked={LINT: "eslint is not found"},
        ),
        ("check_not_run:lint",),
    ),
    "a red test that is gone is red as it stood": (
        a_case((ran(TESTS, {"t2": PASSED}),), (WAS_RED,), held=(ran(TESTS, {"t1": FAILED, "t2": PASSED}),)),
        (Caveat.UNPROVED,),
    ),
    "green to green": (a_case((GREEN,), (WAS_GREEN,)), (Caveat.UNPROVED,)),
    "only a new test": (
        a_case((WITH_NEW,), (WAS_GREEN,), fresh=(before(TESTS, {"t1": PASSED, "t2": PASSED, "t3": PASSED}),)),
        (Caveat.UNPROVED,),
    ),
    "red before in one run": (a_case((GREEN,), (WAS_RED,), fresh=()), (Caveat.UNPROVED,)),
    "red before by luck": (
        a_case((GREEN,), (WAS_RED,), fresh=(before(TESTS, {"t1": FLAKY}, flaky=("t1",)),)),
        (Caveat.FLAKY, Caveat.UNPROVED),
    ),
    "red before, and green there with the tests of now": (
        a_case((GREEN,), (WAS_RED,), fresh=(before(TESTS, {"t1": PASSED}),)),
        (Caveat.UNPROVED,),
    ),
    "a new test fails among others only": (
        a_case((WITH_NEW,), (WAS_GREEN,), fresh=(NEW_RED,)),
        (Caveat.UNPROVED,),
    ),
    "a new test fails alone on any code": (
        a_case(
            (WITH_NEW,), (WAS_GREEN,), fresh=(NEW_RED,), alone=(ran(TESTS, {"t3": FAILED}, command="run t3"),)
        ),
        (Caveat.UNPROVED,),
    ),
    "the first tests of a suite pass without it": (
        a_case(
            (GREEN,),
            (before(TESTS, exit_code=5, tests=TestCounts()),),
            fresh=(before(TESTS, {"t1": PASSED, "t2": PASSED}),),
        ),
        (Caveat.UNPROVED,),
    ),
    "red elsewhere, as before": (
        a_case((STILL_RED,), (WAS_RED,), same_behaviour=True),
        (Caveat.ALREADY_RED,),
    ),
    "one mended, another red as before": (
        a_case(
            (ran(TESTS, {"t1": PASSED, "t2": FAILED}),),
            (before(TESTS, {"t1": FAILED, "t2": FAILED}),),
            targets=frozenset({"t1"}),
        ),
        (Caveat.ALREADY_RED,),
    ),
    "red elsewhere and nothing shown": (
        a_case((STILL_RED,), (WAS_RED,)),
        (Caveat.ALREADY_RED, Caveat.UNPROVED),
    ),
    "findings as before": (
        a_case((GREEN, insist(ran(LINT, findings={"m": 2}))), (WAS_RED, before(LINT, findings={"m": 2}))),
        (Caveat.ALREADY_RED,),
    ),
    "fewer findings than before": (
        a_case(
            (GREEN, insist(ran(LINT, findings={"m": 1}))), (WAS_RED, before(LINT, findings={"m": 2, "n": 1}))
        ),
        (Caveat.ALREADY_RED,),
    ),
    "no check at all": (a_case(()), (Caveat.CHECK_NOT_RUN.of("tests"), Caveat.UNPROVED)),
    "no tests at all, and a linter that is green now": (
        a_case((ran(LINT),), (before(LINT, findings={"m": 1}),)),
        (Caveat.CHECK_NOT_RUN.of("tests"),),
    ),
    "a red test that the task may be about, and another proves it": (
        a_case(
            (ran(TESTS, {"t1": FAILED, "t2": PASSED, "t3": PASSED}, exit_code=1),),
            (before(TESTS, {"t1": FAILED, "t2": PASSED, "t3": FAILED}),),
            guessed=frozenset({"t1"}),
        ),
        (Caveat.ALREADY_RED,),
    ),
    "a linter that cannot read its settings, as before": (
        a_case((GREEN, insist(ran(LINT, exit_code=2))), (WAS_RED, before(LINT, exit_code=2))),
        (Caveat.ALREADY_RED,),
    ),
    "failed and passed on one tree": (a_case((by_chance(),), (WAS_RED,)), (Caveat.FLAKY,)),
    "the last run failed by chance alone": (a_case((by_chance(exit_code=1),), (WAS_RED,)), (Caveat.FLAKY,)),
    "by chance as it stood before": (a_case((GREEN,), (WAS_RED,), held=(by_chance(),)), (Caveat.FLAKY,)),
    "known to fail, by chance": (
        a_case((by_chance(exit_code=1),), (WAS_RED,), known=frozenset({"t2"}), targets=frozenset({"t1"})),
        (),
    ),
    "a red linter was green once": (
        a_case((GREEN, ran(LINT, flaky=("lint",))), (WAS_RED,)),
        (Caveat.FLAKY,),
    ),
    "failed ids with exit 0, as before": (
        a_case((ran(TESTS, {"t1": FAILED}, exit_code=0),), (before(TESTS, {"t1": FAILED}, exit_code=0),)),
        (Caveat.ALREADY_RED, Caveat.UNPROVED),
    ),
}


@pytest.mark.parametrize("name", CAVEATS)
def test_what_is_not_shown_is_a_caveat(name: str) -> None:
    case, caveats = CAVEATS[name]
    verdict = judge(case)
    assert (verdict.passed, verdict.reasons, verdict.caveats) == (True, (), caveats)


def swapped(run: CheckRun, **evidence: Any) -> Case:
    assert run.evidence is not None
    record = run.evidence.replace(**evidence)
    swapped_run = run.replace(evidence=record, counts=record.tests)
    return a_case((swapped_run,), (WAS_RED,), targets=frozenset({"t1"}))


_UNMET = a_case((GREEN,), (WAS_GREEN,), wanted=Wanted.BEHAVIOUR)


def test_a_document_that_a_check_reads_is_asked_about_whatever_was_wanted() -> None:
    verdict = judge(
        _UNMET.replace(
            same_behaviour=True,
            weakened=(FindingKind.CHECK_FILE_CHANGED.of(FileKind.NAMED, path="README.md"),),
        )
    )
    assert (verdict.passed, verdict.to_approve) == (False, True)


REFUSED: dict[str, tuple[Case, str]] = {
    "other behaviour was asked for, and none is other": (
        _UNMET.replace(same_behaviour=True),
        "nothing that was asked for changed: the program does the same as before",
    ),
    "other behaviour was asked for, and only names are other": (
        _UNMET.replace(is_renaming=True),
        "nothing that was asked for changed: only names differ",
    ),
    "nothing was changed": (MENDED.replace(tree=BEFORE), "nothing was changed"),
    "evidence of another tree": (swapped(GREEN, tree_before="other"), "tests: ev-tests ran on another tree"),
    "evidence of the tree before": (
        swapped(GREEN, tree_before=BEFORE),
        "tests: ev-tests ran on another tree",
    ),
    "evidence of no tree": (swapped(GREEN, tree_before=None), "tests: ev-tests ran on another tree"),
    "a red test that the task may be about, and no proof": (
        a_case((STILL_RED,), (WAS_RED,), guessed=frozenset({"t1"})),
        "tests: still failing: t1",
    ),
    "a check that could not begin before complains now": (
        a_case(
            (GREEN, ran(LINT, exit_code=1, findings={"m": 1})),
            (WAS_RED, before(LINT, exit_code=127)),
            blocked={LINT: "eslint is not found"},
        ),
        "new failures in lint: m",
    ),
    "tests that ran in spite of the machine are gone": (
        a_case(
            (ran(LINT), ran(TESTS, {"t1": FAILED})),
            (before(LINT), before(TESTS, {"t1": FAILED, "t2": PASSED})),
            blocked={TESTS: "requires-python >=3.99, running 3.11"},
        ),
        "tests: t2 ran before the task but not after it",
    ),
    "a check that ran before is not found now": (
        a_case((GREEN, ran(LINT, exit_code=127)), (WAS_RED, before(LINT))),
        "lint: exit 127",
    ),
    "fewer tests than before": (
        a_case(
            (ran(TESTS, tests=TestCounts(passed=2)),), (before(TESTS, tests=TestCounts(passed=2, failed=1)),)
        ),
        "tests: 3 tests ran before, 2 now",
    ),
    "tests that were counted are no more": (
        a_case((ran(TESTS),), (before(TESTS, tests=TestCounts(passed=3)),)),
        "tests: 3 tests ran before, 0 now",
    ),
    "a count of failed tests in spite of exit 0": (
        a_case((ran(TESTS, tests=TestCounts(passed=2, failed=1)),), (before(TESTS, exit_code=1),)),
        "tests: exit 0",
    ),
    "tests that had names have none": (
        a_case((ran(TESTS, tests=TestCounts(passed=9)),), (WAS_RED,)),
        "tests: t1, t2 ran before the task but not after it",
    ),
    "zero tests": (a_case((GREEN.replace(counts=TestCounts()),), (WAS_RED,)), "tests: no test ran"),
    "only skipped tests": (a_case((ran(TESTS, {"t1": SKIPPED}),), (WAS_RED,)), "tests: no test ran"),
    "time is over": (swapped(GREEN, timed_out=True, seconds=600.0), "tests: timed out after 600 s"),
    "time is over as before": (
        a_case((ran(TESTS, timed_out=True, seconds=9.0),), (before(TESTS, timed_out=True),)),
        "tests: timed out after 9 s",
    ),
    "the target still fails": (
        a_case((STILL_RED,), (WAS_RED,), targets=frozenset({"t1"})),
        "tests: still failing: t1",
    ),
    "another test fails now": (
        a_case((ran(TESTS, {"t1": PASSED, "t2": FAILED}),), (WAS_RED,)),
        "new failures: t2",
    ),
    "a green suite turns red": (a_case((STILL_RED,), (WAS_GREEN,)), "tests: exit 1: t1"),
    "a test vanished": (
        a_case((ran(TESTS, {"t1": PASSED}),), (WAS_RED,)),
        "tests: t2 ran before the task but not after it",
    ),
    "the target vanished": (
        a_case((ran(TESTS, {"t2": PASSED}),), (WAS_RED,), targets=frozenset({"t1"})),
        "tests: t1 ran before the task but not after it",
    ),
    "the target is skipped": (
        a_case((ran(TESTS, {"t1": SKIPPED, "t2": PASSED}),), (WAS_RED,), targets=frozenset({"t1"})),
        "tests: t1 ran before the task but not after it",
    ),
    "all ids vanished": (
        a_case((ran(TESTS),), (WAS_RED,)),
        "tests: t1, t2 ran before the task but not after it",
    ),
    "failed ids with exit 0": (
        a_case((ran(TESTS, {"t1": PASSED, "t2": FAILED}, exit_code=0),), (WAS_GREEN,)),
        "tests: exit 0: t2",
    ),
    "a bad exit and no failed id": (
        a_case((ran(TESTS, {"t1": PASSED, "t2": PASSED}, exit_code=3),), (WAS_RED,)),
        "tests: exit 3",
    ),
    "killed": (swapped(GREEN, exit_code=None), "tests: killed"),
    "more findings than before": (
        a_case((GREEN, ran(LINT, findings={"m": 3})), (WAS_RED, before(LINT, findings={"m": 2}))),
        "new failures in lint: m",
    ),
    "another finding than before": (
        a_case((GREEN, ran(LINT, findings={"n": 1})), (WAS_RED, before(LINT, findings={"m": 2}))),
        "new failures in lint: n",
    ),
    "a finding moves to a file that nobody changed": (
        a_case(
            (GREEN, ran(LINT, findings={"b.py: m": 1})),
            (WAS_RED, before(LINT, findings={"a.py: m": 1})),
            changed=LINES,
        ),
        "new failures in lint: b.py: m",
    ),
    "the same finding in another file, too": (
        a_case(
            (GREEN, ran(LINT, findings={"a.py: m": 1, "b.py: m": 1})),
            (WAS_RED, before(LINT, findings={"a.py: m": 1})),
            changed=(*LINES, Hunk(path="b.py", line=3, end=3)),
        ),
        "new failures in lint: b.py: m",
    ),
    "a green linter turns red": (
        a_case((GREEN, ran(TYPES, findings={"m": 1})), (WAS_RED, before(TYPES))),
        "types: exit 1: m",
    ),
    "a new check is red": (a_case((GREEN, ran(LINT, findings={"m": 1})), (WAS_RED,)), "lint: exit 1: m"),
    "a check that could not run before is red": (
        a_case((GREEN, ran(LINT, findings={"m": 1})), (WAS_RED, CheckRun(check=a_check(LINT)))),
        "new failures in lint: m",
    ),
    "red before and now, in other words": (
        a_case(
            (GREEN, ran(LINT, exit_code=2).replace(tail="another output")),
            (WAS_RED, before(LINT, exit_code=2)),
        ),
        "lint: exit 2",
    ),
    "red before and now, with another code": (
        a_case((GREEN, ran(BUILD, exit_code=2)), (WAS_RED, before(BUILD, exit_code=1))),
        "build: exit 2",
    ),
    "a build that the task is about fails as before": (
        a_case(
            (GREEN, ran(BUILD, exit_code=1)),
            (WAS_RED, before(BUILD, exit_code=1)),
            targets=frozenset({"build"}),
        ),
        "build: exit 1",
    ),
    "a file changed while the checks ran": (
        MENDED.replace(drift=(changed("a.py"),)),
        "changed after the checks began: a.py",
    ),
    "a file vanished while the checks ran": (
        MENDED.replace(drift=(changed("a.py", ChangeKind.DELETED),)),
        "changed after the checks began: a.py",
    ),
    "a file became a link while the checks ran": (
        MENDED.replace(drift=(changed("a.py", ChangeKind.TYPE),)),
        "changed after the checks began: a.py",
    ),
    "an agent's own command": (swapped(GREEN, by=By.AGENT), "tests: "),
    "the code before the task": (swapped(GREEN, code=Side.BASE, surface=Side.BASE), "tests: "),
    "evidence of another check": (swapped(GREEN, check=LINT), "tests: "),
    "evidence of another command": (swapped(GREEN, command="true"), "tests: "),
    "a target that passes at times": (
        a_case(
            (by_chance(outcomes={"t1": FLAKY, "t2": PASSED}, flaky=("t1",)),),
            (WAS_RED,),
            targets=frozenset({"t1"}),
        ),
        "tests: passes at times, and still fails: t1",
    ),
    "one by chance and one for good": (
        a_case((by_chance(outcomes={"t1": FLAKY, "t2": FAILED}, exit_code=1),), (WAS_GREEN,)),
        "tests: exit 1: t2",
    ),
    "chance and a run that broke off": (
        a_case((by_chance(outcomes={"t1": PASSED, "t2": FLAKY}, exit_code=2),), (WAS_RED,)),
        "tests: exit 2",
    ),
    "a check of before was left out": (
        a_case((GREEN,), (WAS_RED, before(TYPES))),
        "types: not run",
    ),
    "a runner that was not tried": (MENDED.replace(probes=None), "tests: not run with a test that must"),
    "a runner that does not tell": (MENDED.replace(probes=QUIET), "tests: a test that must fail passes"),
    "a test that expects nothing": (
        MENDED.replace(probes=(SOFT,)),
        "tests: passes whatever its tests expect: test_a",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_change_that_is_not_proven_is_refused(name: str) -> None:
    case, reason = REFUSED[name]
    verdict = judge(case)
    assert not verdict.passed
    assert any(found.startswith(reason) for found in describe_all(verdict.reasons)), verdict.reasons
    assert verdict.caveats == ()


PROBED: dict[str, tuple[tuple[ProbeResult, ...], list[str]]] = {
    "a canary that fails": ((probed(ProbeKind.CANARY, RED_AS_IT_MUST),), []),
    "a canary that fails with no code": ((CANARY, CANARY.replace(code=Side.BASE)), []),
    "copies of tests that gave no result": ((probed(ProbeKind.ORACLE, ProbeEnd.NOT_APPLIED),), []),
    "a test that leans on its surroundings": (
        (probed(ProbeKind.ORACLE, RED_AS_IT_MUST, differing=("t1",)),),
        ["depends_on_surroundings"],
    ),
}


@pytest.mark.parametrize(("probes", "caveats"), PROBED.values(), ids=PROBED)
def test_what_had_to_fail_lessens_a_pass(probes: tuple[ProbeResult, ...], caveats: list[str]) -> None:
    verdict = judge(MENDED.replace(probes=probes))
    assert (verdict.passed, list(verdict.caveats)) == (True, caveats)
    told = describe_all((*verdict.notes, *verdict.unproved))
    assert not caveats or any("a.py:3" in note or "t1" in note for note in told)


@pytest.mark.parametrize(
    ("before_it", "lines"),
    [
        (RED_AS_IT_MUST, ["lint: no longer sees an error in a.py:3, with the change of a.py"]),
        (ProbeEnd.SILENT, []),
    ],
)
def test_a_check_that_the_change_switched_off_is_told_from_one_that_never_looked(
    before_it: ProbeEnd, lines: list[str]
) -> None:
    now = probed(ProbeKind.BROKEN_CODE, check=LINT)
    blind = find_blind_checks((now, now.replace(code=Side.BASE, end=before_it)), ["a.py"])
    assert list(describe_all(blind)) == lines


@pytest.mark.parametrize("probes", [None, QUIET])
def test_nobody_is_asked_to_approve_what_such_a_runner_said(probes: tuple[ProbeResult, ...] | None) -> None:
    verdict = judge(MENDED.replace(probes=probes, weakened=(FindingKind.WEAKER.of(path="tests/a.py"),)))
    assert (verdict.passed, verdict.to_approve) == (False, False)


def test_three_hold_and_one_that_is_required_is_missing() -> None:
    verdict = judge(a_case((ran(LINT), ran(TYPES), ABSENT, GREEN), (WAS_RED,)))
    assert (verdict.passed, verdict.caveats) == (True, ("check_not_run:build",))
    assert "build cannot run here: hatch: pip install hatch" in describe_all(verdict.notes)


def test_what_is_wrong_beside_a_missing_tool_is_all_that_has_to_be_mended() -> None:
    verdict = judge(a_case((ABSENT, STILL_RED), (WAS_RED,), targets=frozenset({"t1"})))
    assert (verdict.passed, describe_all(verdict.reasons)) == (False, ("tests: still failing: t1",))


def test_skipped_tests_are_said() -> None:
    some = ran(TESTS, {"t1": PASSED, "t2": SKIPPED})
    assert "tests: 1 of 2 skipped" in describe_all(judge(a_case((some,), (WAS_RED,))).notes)


def test_every_reason_is_given_not_only_the_first() -> None:
    case = a_case(
        (ran(LINT, findings={"m": 1}), ran(TESTS, {"t1": FAILED, "t2": PASSED})),
        (before(LINT), WAS_GREEN),
        drift=(changed("a.py"),),
    )
    assert describe_all(judge(case).reasons) == (
        "changed after the checks began: a.py",
        "lint: exit 1: m",
        "tests: exit 1: t1",
    )


def test_the_verdict_rests_on_the_final_evidence_alone() -> None:
    assert judge(MENDED).evidence == ("ev-tests",)


def test_new_files_and_old_failures_are_noted() -> None:
    case = a_case((STILL_RED,), (WAS_RED,), drift=(changed("c.log", ChangeKind.ADDED),))
    assert describe_all(judge(case).notes) == (
        "new files appeared while the checks ran: c.log",
        "failed before the task and still fails: tests: t1",
    )


def test_what_was_green_before_is_no_old_failure() -> None:
    both = ran(TESTS, {"t1": FAILED, "t2": FAILED})
    known = judge(a_case((both,), (WAS_RED,))).notes
    assert describe_all(known) == ("failed before the task and still fails: tests: t1",)
    assert judge(a_case((ran(TESTS, {"t1": PASSED, "t2": FAILED}),), (WAS_RED,))).notes == ()
    assert judge(a_case((both,), (WAS_GREEN,))).notes == ()


def test_long_lists_are_counted() -> None:
    names = {f"t{number}": FAILED for number in range(8)}
    (reason,) = describe_all(judge(a_case((ran(TESTS, names),))).reasons)
    assert reason == "tests: exit 1: t0, t1, t2, t3, t4 and 3 more"


def said(claim: Claim, *reasons: str, evidence: tuple[str, ...] = ()) -> Judgement:
    return Judgement(verdict=claim, evidence=evidence, reasons=reasons)


HELD = a_verdict()
CHANGED = (changed("src/calc.py"),)


@pytest.mark.parametrize(
    "verdict", [HELD, a_verdict("tests: exit 1"), a_verdict(caveats=(Caveat.ALREADY_RED,))]
)
def test_agreement_changes_nothing(verdict: Any) -> None:
    assert lower_verdict(verdict, said(Claim.VERIFIED, "all well", evidence=("ev-1",)), CHANGED) == verdict


@pytest.mark.parametrize(
    "judgement",
    [
        said(Claim.FAILED, "add is wrong", evidence=("ev-tests",)),
        said(Claim.FAILED, "src/calc.py:2: subtracts"),
        said(Claim.FAILED, "it is wrong", "see src/calc.py:2"),
        said(Claim.FAILED, "wrong (src/calc.py:2)"),
        said(Claim.FAILED, "./src/calc.py:2 is wrong"),
    ],
)
def test_a_cited_failure_goes_back(judgement: Judgement) -> None:
    verdict = lower_verdict(HELD, judgement, CHANGED)
    assert not verdict.passed
    (reason,) = describe_all(verdict.reasons)
    assert reason.startswith("verifier: ")
    assert judgement.reasons[0] in reason


@pytest.mark.parametrize(
    "judgement",
    [
        said(Claim.FAILED),
        said(Claim.FAILED, "I do not like it"),
        said(Claim.FAILED, "src/calc.py is wrong"),
        said(Claim.FAILED, "src/other.py:2: wrong"),
        said(Claim.FAILED, "tests/src/calc.py:2: wrong"),
        said(Claim.FAILED, "src/calcxpy:2: wrong"),
        said(Claim.ENVIRONMENT_BLOCKED, "no network"),
        said(Claim.ENVIRONMENT_BLOCKED, "src/calc.py:2", evidence=("ev-tests",)),
    ],
)
def test_an_uncited_failure_is_a_caveat_that_shows_both_sides(judgement: Judgement) -> None:
    verdict = lower_verdict(a_verdict(caveats=(Caveat.ALREADY_RED,)), judgement, CHANGED)
    assert verdict.passed
    assert verdict.caveats == (Caveat.ALREADY_RED, Caveat.VERIFIER_DISAGREES)
    note = describe_all(verdict.notes)[-1]
    assert "every check passes" in note
    assert all(reason in note for reason in judgement.reasons or ("no reason given",))


@pytest.mark.parametrize("claim", Claim)
@pytest.mark.parametrize("evidence", [(), ("ev-tests",)])
def test_no_word_of_a_verifier_raises_a_verdict(claim: Claim, evidence: tuple[str, ...]) -> None:
    failed = a_verdict("tests: exit 1")
    assert not lower_verdict(failed, said(claim, "all is well", evidence=evidence), CHANGED).passed
