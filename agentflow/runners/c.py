"""C and C++: CTest, Meson, and what programs of tests print themselves."""

from collections.abc import Sequence

from agentflow.core.evidence import TestCounts, TestOutcome, TestResults
from agentflow.core.languages import CheckRule
from agentflow.core.regex import regex
from agentflow.runners.runner import FAILED, PASSED, SKIPPED, TestRunner, add_counts, count_sum, count_tests

_TEST = regex(
    r" *\d+/\d+ +Test +#\d+: (?P<test>.+?) \.*(?P<word> +Passed|\*\*\*[A-Za-z]+(?: [A-Za-z]+)*"
    r"(?: \(Disabled\))?) +\d+\.\d+ sec"
)
_END = regex(r"\d+% tests passed, (?P<failed>\d+) tests? failed out of (?P<number>\d+)")
_SUMS = tuple(
    regex(each)
    for each in (
        # GoogleTest, Catch2, Catch2 and doctest, Unity, greatest, Check
        r"\[  (?:PASSED  \] (?P<passed>\d+)|FAILED  \] (?P<failed>\d+)) tests?(?:\.|, listed below:)",
        r"All tests passed \(\d+ assertions? in (?P<passed>\d+) test cases?\)",
        r"(?:\[.*\] )?test cases: +\d+(?: \| +(?P<passed>\d+) passed)?(?: \| +(?P<failed>\d+) failed)?.*",
        r"(?P<total>\d+) Tests (?P<failed>\d+) Failures (?P<skipped>\d+) Ignored ?",
        r"Pass: (?P<passed>\d+), fail: (?P<failed>\d+), skip: (?P<skipped>\d+)\.",
        r"\d+%: Checks: (?P<total>\d+), Failures: (?P<failed>\d+), Errors: (?P<errors>\d+)",
        # a program of the project's own
        r"(?i)(?:tests? )?passed ?[:=] *(?P<passed>\d+)(?:\W+(?:tests? )?failed ?[:=] *(?P<failed>\d+))?",
        r"(?i)(?:tests? )?failed ?[:=] *(?P<failed>\d+)",
    )
)
_NONE = regex(r"No tests were found!!!")


def _read(rows: Sequence[str]) -> TestResults | None:
    ends = [end for row in rows if (end := _END.fullmatch(row))]
    if not ends:
        return count_tests({}) if any(map(_NONE.fullmatch, rows)) else None
    found = {test["test"]: _find_outcome(test["word"]) for row in rows if (test := _TEST.fullmatch(row))}
    failed, number = int(ends[-1]["failed"]), int(ends[-1]["number"])
    red = sum(outcome is FAILED for outcome in found.values())
    if red == failed and len(found) >= number:
        return count_tests(found)
    return TestResults(counts=TestCounts(passed=number - failed, failed=failed))


def read_sums(rows: Sequence[str]) -> TestResults | None:
    """Return the sums of all programs of tests that ran, which no runner started."""
    found = [count_sum(told) for row in rows for each in _SUMS if (told := each.fullmatch(row.strip()))]
    return TestResults(counts=add_counts(found)) if found else None


def _find_outcome(word: str) -> TestOutcome:
    if word.strip() == "Passed":
        return PASSED
    return SKIPPED if "Skipped" in word or "Disabled" in word else FAILED


CTEST = TestRunner(
    name="CTest",
    language="C++",
    rules=(
        CheckRule(
            command="cmake -S . -B build && cmake --build build "
            "&& ctest --test-dir build --output-on-failure",
            manifest=("CMakeLists.txt",),
            unless=("Makefile", "makefile", "GNUmakefile"),
            says=r"(?im)^\s*(?:enable_testing|add_test|\w+_discover_tests|include\s*\(\s*CTest)\b",
            programs=(("cmake", "python3 -m pip install cmake"),),
        ),
    ),
    named=r"\bctest\b",
    program="ctest",
    one={"ctest": "{} -R NAME"},
    several="|",
    read=_read,
)
MESON = TestRunner(
    name="Meson",
    language="C++",
    rules=(
        CheckRule(
            command="meson setup build && meson test -C build",
            manifest=("meson.build",),
            unless=("Makefile", "makefile", "GNUmakefile"),
            says=r"(?m)^\s*(?:test\s*\(|subdir\s*\(\s*'\w*tests?/?')",
            programs=(("meson", "python3 -m pip install meson ninja"),),
        ),
    ),
    program="meson test",
    leaves="*/meson-logs/testlog.junit.xml",
    one={"meson test": "{} NAME"},
    several=" ",
)
