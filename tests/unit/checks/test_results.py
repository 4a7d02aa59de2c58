import pytest

from agentflow.checks.results import (
    count_findings,
    read_junit,
)
from agentflow.core.evidence import CheckName, TestOutcome
from agentflow.runners.runner import count_outcomes, find_worst

PASSED, FAILED, SKIPPED, ERROR, _ = TestOutcome


def document(*cases: str) -> str:
    inside = f"<testsuite>{''.join(cases)}</testsuite>"
    return f'<?xml version="1.0" encoding="utf-8"?><testsuites>{inside}</testsuites>'


def case(
    inside: str = "", name: str = "test_a", owner: str = "tests.test_m", file: str = "tests/test_m.py"
) -> str:
    where = f'file="{file}" ' if file else ""
    return f'<testcase classname="{owner}" name="{name}" {where}line="1" time="0.1">{inside}</testcase>'


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, "tests/test_m.py::test_a"),
        ({"name": "test_a[x/y.z-1::2]"}, "tests/test_m.py::test_a[x/y.z-1::2]"),
        ({"owner": "tests.test_m.TestB.TestC"}, "tests/test_m.py::TestB::TestC::test_a"),
        ({"owner": "test_m", "file": "test_m.py"}, "test_m.py::test_a"),
        ({"owner": "pkg.mod", "file": "pkg/mod.py", "name": "pkg.mod.f"}, "pkg/mod.py::pkg.mod.f"),
        ({"owner": "README.rst", "file": "README.rst", "name": "README.rst"}, "README.rst::README.rst"),
        ({"owner": "tests.test_m.TestB", "file": "tests/base.py"}, "tests/test_m.py::TestB::test_a"),
        ({"owner": "tests.test_m2", "file": "tests/test_m.py"}, "tests/test_m2.py::test_a"),
        ({"owner": "", "file": "", "name": "tests.test_broken"}, "tests/test_broken.py"),
    ],
)
def test_junit_ids(attributes: dict[str, str], expected: str) -> None:
    assert read_junit(document(case(**attributes))).outcomes == {expected: PASSED}


@pytest.mark.parametrize(
    ("inside", "outcome"),
    [
        ("", PASSED),
        ("<system-out>failure</system-out><properties><property/></properties>", PASSED),
        ('<failure message="m">text</failure>', FAILED),
        ("<error>text</error>", ERROR),
        ('<skipped type="pytest.skip"/>', SKIPPED),
        ('<skipped type="pytest.xfail"/>', SKIPPED),
        ("<failure/><error/>", ERROR),
        ("<error/><failure/>", ERROR),
        ("<skipped/><failure/>", FAILED),
    ],
)
def test_junit_outcomes(inside: str, outcome: TestOutcome) -> None:
    assert list(read_junit(document(case(inside))).outcomes.values()) == [outcome]


_LACKS = "ModuleNotFoundError: No module named 'x'"
_TRACEBACK = f"tests/test_m.py:1: in &lt;module&gt;\n    import x\nE   {_LACKS}"


@pytest.mark.parametrize(
    ("inside", "error"),
    [
        (f'<failure message="{_LACKS}">{_TRACEBACK}\n\nlib.py:3: ModuleNotFoundError</failure>', _LACKS),
        (f'<failure message="{_LACKS}"/>', _LACKS),
        (f'<error message="collection failure">ImportError while importing\n{_TRACEBACK}</error>', _LACKS),
        ("<error>E       fixture 'x' not found\n>       available: y</error>", "fixture 'x' not found"),
        (f"<error>{_TRACEBACK}\n\nWhile handling it:\nE   AttributeError: y</error>", ""),
        (f"<failure>{_TRACEBACK}</failure><error>E   OSError: z</error>", ""),
        (f"<failure>E   AssertionError: assert 1 == 2</failure><system-err>{_LACKS}</system-err>", ""),
        (f"<skipped>{_TRACEBACK}</skipped>", ""),
    ],
)
def test_junit_import_errors(inside: str, error: str) -> None:
    found = read_junit(document(case(inside))).import_errors
    assert found == ({"tests/test_m.py::test_a": error} if error else {})


@pytest.mark.parametrize("order", [("", "<failure/>"), ("<failure/>", ""), ("<failure/>", "<skipped/>")])
def test_repeated_id_keeps_the_worst(order: tuple[str, str]) -> None:
    assert list(read_junit(document(*map(case, order))).outcomes.values()) == [FAILED]


def test_failed_call_and_failed_teardown_are_an_error() -> None:
    assert list(read_junit(document(case("<failure/>"), case("<error/>"))).outcomes.values()) == [ERROR]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5 passed",
        document(case())[:-20],
        document(case()) + "<testcase/>",
        f'<!DOCTYPE x [<!ENTITY a "b">]>{document(case()).partition("?>")[2]}',
        f'<!DOCTYPE x SYSTEM "http://127.0.0.1/x">{document(case()).partition("?>")[2]}',
        f"\n<!DOCTYPE x>{document(case()).partition('?>')[2]}",
        document(case("&undefined;")),
        document(case("\x00")),
    ],
)
def test_damaged_or_expandable_document_says_nothing(text: str) -> None:
    assert read_junit(text).outcomes == {}


def test_document_without_tests_has_none() -> None:
    assert read_junit(document()).outcomes == {}


def test_results_outside_a_test_case_belong_to_none() -> None:
    assert list(read_junit(document("<failure/>", case())).outcomes.values()) == [PASSED]


def test_counts_leave_skipped_tests_out_of_those_that_ran() -> None:
    counted = count_outcomes([PASSED, FAILED, SKIPPED, SKIPPED, ERROR])
    assert (counted.passed, counted.failed, counted.skipped, counted.errors) == (1, 1, 2, 1)
    assert counted.ran == 3
    assert count_outcomes([]).ran == 0


def test_no_outcome_at_all_is_an_error() -> None:
    assert find_worst([]) is ERROR


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("a.py:1:8: F401 [*] `os` imported but unused", "a.py: F401 [*] `os` imported but unused"),
        ("pkg/a.py:12: error: Bad thing  [misc]", "pkg/a.py: error: Bad thing  [misc]"),
        (
            'a.py:3: error: Name "x" already defined on line 1',
            'a.py: error: Name "x" already defined on line',
        ),
        ("a.py:1:1: E302 expected 2 blank lines", "a.py: E302 expected 2 blank lines"),
        ("  a.py:3:5 - error: no attribute (reportX)", "a.py: error: no attribute (reportX)"),
        ("src/a.ts(3,5): error TS2322: no", "src/a.ts: error TS2322: no"),
        ("./a.go:3:2: unused variable", "./a.go: unused variable"),
        ("my folder/a.js:3:2: semi", "my folder/a.js: semi"),
        (
            "error[E0554]: not on stable\n --> benches/a.rs:1:1\n  |",
            "benches/a.rs: error[E0554]: not on stable",
        ),
        ("F401 [*] `os` imported but unused\n --> a.py:1:8\n  |", "a.py: F401 [*] `os` imported but unused"),
    ],
)
def test_findings_lose_their_line_numbers(line: str, found: str) -> None:
    assert count_findings(CheckName.LINT, line) == {found: 1}


@pytest.mark.parametrize(
    "line",
    [
        "Found 3 errors in 1 file (checked 2 source files)",
        "a.py:3: note: See the documentation",
        "12:30:45: a message",
        '  File "a.py", line 3, in f',
        "http://127.0.0.1:80: refused",
        "All checks passed!",
        "a.py:3:",
        "warning: unused variable: `x`\n --> src/a.rs:1:1\n  |",
        "note: the lint level is defined here\n --> src/a.rs:1:1\n  |",
    ],
)
def test_other_lines_are_no_findings(line: str) -> None:
    assert count_findings(CheckName.LINT, line) == {}


def test_equal_findings_are_counted() -> None:
    assert count_findings(
        CheckName.LINT, "a.py:1:1: E501 long\nb.py:1:1: E501 long\na.py:9:1: E501 long\n"
    ) == {
        "a.py: E501 long": 2,
        "b.py: E501 long": 1,
    }


def test_hostile_lines_are_read_in_linear_time() -> None:
    hostile = [".a" * 50_000, "a" * 100_000, "a.py(" * 20_000, " " * 100_000]
    assert count_findings(CheckName.LINT, "\n".join(hostile)) == {}
