from pathlib import Path

import pytest

from agentflow.core.evidence import TestCounts, TestOutcome
from agentflow.runners.go import read_go_events, undo_json
from agentflow.runners.table import drop_colours, read_printed, tell_each_test

PASSED, FAILED, SKIPPED, ERROR, _ = TestOutcome


def recorded(name: str) -> str:
    return (Path(__file__).with_name("recorded") / name).read_text("utf-8")


NAMED: dict[str, dict[str, TestOutcome]] = {
    "cargo.txt": {
        "calc::tests::adds": PASSED,
        "calc::tests::later": SKIPPED,
        "calc::tests::fails": FAILED,
        "outer::outer": PASSED,
        "calc::src/lib.rs - add": PASSED,
    },
    "ctest.txt": {"good": PASSED, "bad": FAILED, "skipped": SKIPPED, "off": SKIPPED},
    "tape.txt": {"should be strictly equal": PASSED, "sum": FAILED},
    "go-verbose.txt": {
        "example.com/calc::TestAdd": FAILED,
        "example.com/calc::TestSkip": SKIPPED,
        "example.com/calc::TestSub": PASSED,
        "example.com/calc::TestSub/one": PASSED,
    },
}


@pytest.mark.parametrize("name", NAMED)
def test_what_a_runner_printed_is_read_test_by_test(name: str) -> None:
    told = read_printed(recorded(name))
    assert told is not None
    assert told.outcomes == NAMED[name]


COUNTED = {
    "jest.txt": TestCounts(passed=1, failed=1, skipped=2),
    "vitest.txt": TestCounts(passed=1, failed=1, skipped=2),
    "mocha.txt": TestCounts(passed=1, failed=1, skipped=1),
    "uvu.txt": TestCounts(passed=2, failed=1),
}


@pytest.mark.parametrize("name", COUNTED)
def test_a_runner_that_prints_no_names_is_counted(name: str) -> None:
    told = read_printed(recorded(name))
    assert told is not None
    assert (told.outcomes, told.counts) == ({}, COUNTED[name])
    assert read_printed(recorded(name), is_reported=True) is None


SUMS = {
    "GoogleTest": ("[  PASSED  ] 2 tests.\n[  FAILED  ] 1 test, listed below:\n", (2, 1, 0)),
    "Catch2": ("All tests passed (9 assertions in 3 test cases)\n", (3, 0, 0)),
    "Catch2, with a failure": ("test cases: 3 | 2 passed | 1 failed\nassertions: 9 | 8 passed\n", (2, 1, 0)),
    "doctest": ("[doctest] test cases:  3 |  3 passed | 0 failed | 0 skipped\n", (3, 0, 0)),
    "Unity": ("-----\n4 Tests 1 Failures 1 Ignored\nFAIL\n", (2, 1, 1)),
    "greatest": ("Pass: 3, fail: 1, skip: 0.\n", (3, 1, 0)),
    "Check": ("75%: Checks: 4, Failures: 1, Errors: 0\n", (3, 1, 0)),
    "one of its own": ("Tests failed: 1\nTests passed: 3\n", (3, 1, 0)),
    "two of its own": ("PASSED: 3 FAILED: 0\n\nPASSED: 2\nFAILED: 1\n", (5, 1, 0)),
}


@pytest.mark.parametrize("name", SUMS)
def test_the_sums_that_programs_of_tests_print_are_counted(name: str) -> None:
    text, (passed, failed, skipped) = SUMS[name]
    told = read_printed(text)
    assert told is not None
    assert told.counts == TestCounts(passed=passed, failed=failed, skipped=skipped)
    told = read_printed(f"{text}50% tests passed, 1 tests failed out of 2\n")
    assert told is not None  # what CTest started, it tells of itself
    assert told.counts == TestCounts(passed=1, failed=1)


def test_colours_do_not_matter() -> None:
    told = read_printed(drop_colours("\x1b[1mTests:\x1b[22m       \x1b[32m3 passed\x1b[39m, 3 total\r\n"))
    assert told is not None
    assert told.counts == TestCounts(passed=3)


NOT_TOLD = {
    "nothing": "",
    "words": "all 3 tests passed\nOK\n",
    "a sum that does not add up": "Tests:       3 passed, 4 total\n",
    "a sum inside of a line": "log: Tests:       3 passed, 3 total\n",
    "TAP without a plan": "ok 1 - a\nok 2 - b\n",
    "TAP with fewer points than planned": "1..3\nok 1 - a\nok 2 - b\n",
    "TAP with more points than planned": "1..1\nok 1 - a\nok 2 - b\n",
    "TAP that was given up": "1..1\nok 1 - a\nBail out! no database\n",
    "a cargo run that did not end": "running 2 tests\ntest a ... ok\ntest b ... ok\n",
    "results of Go without an end": "=== RUN   TestA\n--- PASS: TestA (0.00s)\n",
}


@pytest.mark.parametrize("text", NOT_TOLD.values(), ids=NOT_TOLD)
def test_what_only_looks_like_a_result_counts_nothing(text: str) -> None:
    assert read_printed(text) is None


NONE_RAN = {
    "cargo": "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured\n",
    "ctest": "Test project /place\nNo tests were found!!!\n",
    "TAP": "TAP version 13\n1..0\n",
    "jest": "Tests:       0 total\n",
}


@pytest.mark.parametrize("text", NONE_RAN.values(), ids=NONE_RAN)
def test_no_test_is_told_as_none(text: str) -> None:
    told = read_printed(text)
    assert told is not None
    assert told.counts == TestCounts()


def test_the_last_of_several_sums_counts() -> None:
    told = read_printed("Tests:       9 passed, 9 total\nTests:       1 failed, 2 passed, 3 total\n")
    assert told is not None
    assert told.counts == TestCounts(passed=2, failed=1)


def test_a_crate_that_cannot_be_compiled_beside_others_is_an_error() -> None:
    text = (
        "     Running unittests src/lib.rs (target/debug/deps/base-b15)\n\nrunning 1 test\ntest a ... ok\n\n"
        "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n\n"
        "error: could not compile `my-units` (lib test) due to 2 previous errors; 1 warning emitted\n"
    )
    told = read_printed(text)

    assert told is not None
    assert told.outcomes == {"base::a": TestOutcome.PASSED, "my_units::*": TestOutcome.ERROR}
    assert told.counts == TestCounts(passed=1, errors=1)


def test_a_line_among_the_tests_of_cargo_leaves_only_their_number() -> None:
    forged = "running 2 tests\ntest a ... ok\ntest forged ... ok\n"
    end = "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured\n"
    told = read_printed(f"{forged}test b ... FAILED\n{end}")
    assert told is not None
    assert (told.outcomes, told.counts) == ({}, TestCounts(passed=1, failed=1))


def test_failing_points_behind_the_plan_count_as_well() -> None:
    told = read_printed("ok 1 - a\nnot ok 2 - left over\n\n1..1\n")
    assert told is not None
    assert told.outcomes == {"a": PASSED, "left over": FAILED}


def test_points_with_one_name_are_told_apart() -> None:
    told = read_printed("1..3\nok 1 - same\nnot ok 2 - same # TODO later\nnot ok 3 - same\n")
    assert told is not None
    assert told.outcomes == {"same": PASSED, "same #2": SKIPPED, "same #3": FAILED}


def test_go_tells_each_test_and_each_package_that_does_not_load() -> None:
    told = read_go_events(recorded("go.json"))
    assert told is not None
    assert told.outcomes == {**NAMED["go-verbose.txt"], "example.com/calc/broken::*": ERROR}


def test_what_go_told_as_json_can_be_read_by_people() -> None:
    text = undo_json(recorded("go.json"))
    assert "--- FAIL: TestAdd (0.00s)\n" in text
    assert "broken/b_test.go:3:28: undefined: Nothing\n" in text
    assert '"Action"' not in text


ASKED = {
    "go test ./...": "go test -json ./...",
    "CGO_ENABLED=0 go test": "CGO_ENABLED=0 go test -json",
    "r=0; { go vet ./...; } || r=1; { go test ./...; } || r=1; exit $r": (
        "r=0; { go vet ./...; } || r=1; { go test -json ./...; } || r=1; exit $r"
    ),
    "go test -json ./...": "go test -json ./...",
    "make go test": "make go test",
    "go testing": "go testing",
}


@pytest.mark.parametrize("command", ASKED)
def test_go_is_asked_for_json_where_it_is_started(command: str) -> None:
    assert tell_each_test(command) == ASKED[command]
