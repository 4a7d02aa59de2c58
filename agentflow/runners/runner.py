"""What is known of a runner of tests, and the results that runners tell."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from agentflow.core.check_command import CommandWords
from agentflow.core.evidence import TestCounts, TestOutcome, TestResults
from agentflow.core.languages import CheckRule
from agentflow.core.record import Record

PASSED, FAILED, SKIPPED, ERROR, _ = TestOutcome
_WORST_FIRST = (ERROR, FAILED, SKIPPED, PASSED)
Outcomes = dict[str, list[TestOutcome]]


class TestRunner(Record):
    """One runner, or one way to start several."""

    name: str
    language: str = ""
    """Its name in `core/languages.py`, where that has manifests by which the tests are found."""
    rules: tuple[CheckRule, ...] = ()
    """The manifests by which they are, the command, and what it needs; the first that fits counts."""
    named: str = ""
    """An expression for what a command says that starts it, where more than its exit code has to be told."""
    program: str = ""
    """An expression for the words that start it, in a step of a command that is but one run of it."""
    report: str = ""
    """The options by which it writes a report, `{place}` a file without its ending in `{folder}`."""
    prints: str = ""
    """An expression for options by which it prints otherwise than our reporter, which they would replace."""
    variables: dict[str, str] = {}
    """The variables by which it writes one, `{place}` a folder, or runs faster."""
    leaves: str = ""
    """Where it leaves reports in JUnit's form by itself, as a pattern of `find -path`."""
    total: str = ""
    """The line with its sum; its groups are named as outcomes are, or `total`."""
    adds_up: bool = False
    """Each such line is of other tests; else the last one counts."""
    one: dict[str, str] = {}
    """How one test is run, `{}` the command, by a part of the command that shows the runner."""
    several: str = ""
    """What stands between the names of several tests there; a space where each is a word of its own."""
    bare: str = ""
    """Options by which it runs the tests and nothing that only looks, for runs of which nobody reads more."""
    tell: Callable[[CommandWords], CommandWords] | None = None
    """The same run, made to tell of each test."""
    read: Callable[[Sequence[str]], TestResults | None] | None = None
    """The tests that it printed, by its lines without colours; None where it printed none."""
    tells_all: bool = False
    """Where its report and its output name no test, none ran."""
    is_reported: bool = False
    """What it prints is left aside where a report tells of tests."""


def find_worst(outcomes: Iterable[TestOutcome]) -> TestOutcome:
    """Return what a test has come to that gave several outcomes."""
    given = frozenset(outcomes)
    return next((outcome for outcome in _WORST_FIRST if outcome in given), ERROR)


def count_outcomes(outcomes: Iterable[TestOutcome]) -> TestCounts:
    number = Counter(outcomes)
    return TestCounts(
        passed=number[PASSED], failed=number[FAILED], skipped=number[SKIPPED], errors=number[ERROR]
    )


def make_results(
    outcomes: Outcomes,
    errors: Mapping[str, Sequence[str]] = MappingProxyType({}),
    failures: Mapping[str, str] = MappingProxyType({}),
) -> TestResults:
    """Return tests by all that each came to; an import error counts where each failure is one."""
    found = {test: find_worst(several) for test, several in outcomes.items()}
    lacking = {test: told[0] for test, told in errors.items() if all(told)}
    return count_tests(found).replace(import_errors=lacking, failures=failures)


def count_tests(outcomes: Mapping[str, TestOutcome]) -> TestResults:
    return TestResults(outcomes=outcomes, counts=count_outcomes(outcomes.values()))


def add_counts(numbers: Iterable[TestCounts]) -> TestCounts:
    words, each = ("passed", "failed", "skipped", "errors"), list(numbers)
    return TestCounts(**{word: sum(getattr(number, word) for number in each) for word in words})


def count_sum(told: re.Match[str]) -> TestCounts:
    """Return the numbers of a sum; the part that it does not say is the rest."""
    number = {word: int(said or 0) for word, said in told.groupdict().items()}
    failed, errors = number.get("failed", 0), number.get("errors", 0) + number.get("invalid", 0)
    skipped = number.get("skipped", 0) + number.get("omitted", 0)
    total = sum(number.get(word, 0) for word in ("total", "doctests", "properties"))
    if "passed" in number and "failed" not in number:
        failed = max(0, total - number["passed"] - errors - skipped)
    passed = number.get("passed") or max(0, total - failed - errors - skipped)
    return TestCounts(passed=passed, failed=failed, skipped=skipped, errors=errors)


def join_results(parts: Iterable[TestResults]) -> TestResults | None:
    """Return what several runners told as one; None where none told anything."""
    found = list(parts)
    if not found:
        return None
    return TestResults(
        outcomes={test: outcome for each in found for test, outcome in each.outcomes.items()},
        counts=add_counts(each.counts for each in found if each.counts),
        import_errors={test: error for each in found for test, error in each.import_errors.items()},
        failures={test: text for each in found for test, text in each.failures.items()},
    )
