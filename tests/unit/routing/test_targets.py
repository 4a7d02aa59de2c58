import pytest

from agentflow.routing.clauses import find_code_names, find_targets, is_only_about_checks

PYTEST = frozenset(
    {"tests/test_calc.py::test_add", "tests/test_calc.py::test_add_zero", "tests/b.py::C::test_x[1]"}
)
UNITTEST = frozenset({"test_calc.CalcTest.test_add", "test_core.CoreTest.test_x"})
ADD, ZERO, SIZED = (
    "tests/test_calc.py::test_add",
    "tests/test_calc.py::test_add_zero",
    "tests/b.py::C::test_x[1]",
)


def targets(text: str, failing: frozenset[str]) -> frozenset[str]:
    """Those of a text where no test speaks of what it names, asked for or guessed."""
    found = find_targets(text, failing, lambda _: frozenset())
    assert not (found.asked and found.guessed)
    return found.asked | found.guessed


@pytest.mark.parametrize(
    ("text", "is_asked"),
    [
        ("make the failing tests pass", True),
        ("the tests in CI are red", True),
        ("fix the test suite", True),
        ("fix the build", True),
        ("all tests have to pass", True),
        ("fix add_all", False),
        ("fix add_all and add a test that fails without the fix", False),
        ("fix the sum, with a test", False),
        ("pass the rate on, and fix the sum", False),
    ],
)
def test_what_words_ask_for_and_what_they_only_lead_to(text: str, is_asked: bool) -> None:
    found = find_targets(text, PYTEST, lambda _: frozenset())
    assert (found.asked, found.guessed) == ((PYTEST, set()) if is_asked else (set(), PYTEST))


@pytest.mark.parametrize(
    "text", ["fix the typo 'totl' in README.md", "fix the docstring of add()", "correct the spelling in docs"]
)
def test_an_order_about_text_is_about_no_test(text: str) -> None:
    assert targets(text, PYTEST) == set()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("make the failing tests pass", PYTEST),
        ("fix the bug", PYTEST),
        ("The build is red, mend it", PYTEST),
        ("fix test_add", {ADD}),
        ("fix what tests.test_calc tests", {ADD, ZERO}),
        ("fix calc.py", PYTEST),
        ("Fix TEST_ADD.", {ADD}),
        ("fix tests/test_calc.py", {ADD, ZERO}),
        ("fix test_calc.py please", {ADD, ZERO}),
        (f"fix {ADD}", {ADD}),
        ("`test_x[1]` fails", {SIZED}),
        ("test_x fails, why?", {SIZED}),
        ("fix (test_add), then test_x.", {ADD, SIZED}),
        ("add a discount to the cart", set()),
        ("rename Cart to Basket", set()),
        ("", set()),
    ],
)
def test_targets_of_pytest_names(text: str, wanted: set[str]) -> None:
    assert targets(text, PYTEST) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("make the failing tests pass", UNITTEST),
        ("fix CalcTest", {"test_calc.CalcTest.test_add"}),
        ("test_x is red", {"test_core.CoreTest.test_x"}),
        ("fix test_core.CoreTest.test_x", {"test_core.CoreTest.test_x"}),
        ("fix tests/test_core.py", {"test_core.CoreTest.test_x"}),
        ("fix add so that tests.test_calc passes", {"test_calc.CalcTest.test_add"}),
        ("test_core is red", {"test_core.CoreTest.test_x"}),
        ("fix calc.py, its tests fail", UNITTEST),
        ("fix other/core.py, its tests fail", UNITTEST),
    ],
)
def test_targets_of_unittest_names(text: str, wanted: set[str]) -> None:
    assert targets(text, UNITTEST) == wanted


@pytest.mark.parametrize("generic", ["tests", "Tests", "tests pass", "checks", "suite", "broken"])
def test_a_common_word_that_some_test_is_called_by_hides_no_other_failure(generic: str) -> None:
    named = generic.split(maxsplit=1)[0]
    failing = frozenset({f"test_a.{named}.test_one", "test_b.Other.test_two"})
    assert targets(f"make the failing {generic}", failing) == failing


def test_a_failed_import_of_the_folder_called_tests_hides_no_other_failure() -> None:
    failing = frozenset({"unittest.loader._FailedTest.tests.test_a", "tests.test_b.B.test_two"})
    assert targets("make the failing tests pass", failing) == failing


def test_nothing_failing_gives_no_target() -> None:
    assert targets("fix test_add", frozenset()) == frozenset()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("fix pages() in pager/core.py: the last page is not counted", {"pages", "core"}),
        ("fix `Cart.total`", {"Cart", "total"}),
        ("mend src/app/__init__.py", {"app"}),
        ("fix pager.core.pages", {"pager", "core", "pages"}),
        ("fix parse_args and HttpClient", {"parse_args", "HttpClient"}),
        ("fix the login bug, e.g. in version 1.2.3. Then stop", set()),
    ],
)
def test_the_code_that_a_text_names(text: str, names: set[str]) -> None:
    assert find_code_names(text) == names


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("fix add() in calc.py", {ADD}),
        ("fix add() in calc.py, all tests have to pass", PYTEST),
        ("fix the sum", PYTEST),
        ("extend add()", set()),
    ],
)
def test_a_fault_in_code_that_is_named_is_the_matter_of_the_tests_that_speak_of_it(
    text: str, wanted: set[str]
) -> None:
    speaking = {"add": frozenset({ADD})}
    found = find_targets(text, PYTEST, lambda names: speaking[min(names)])
    assert found.asked | found.guessed == wanted


@pytest.mark.parametrize(
    ("text", "is_only"),
    [
        ("make the failing tests pass", True),
        ("Fix all failing tests, please.", True),
        ("fix test_add in tests/test_calc.py so that it passes", True),
        ("fix tests/b.py::C::test_x[1]", True),
        ("The build is red, mend it", True),
        ("fix the failing test in test_calc.py by adding a currency", False),
        ("make the failing tests pass and add a --json option", False),
        ("make the failing tests pass; never round", False),
        ("test_add fails: negative amounts are to be refused", False),
        ("make the failing tests pass and fix export()", False),
        ("fix calc.py, its tests fail", False),
        ("make the tests pass without touching calc.py", False),
        ("make the tests pass — и добавь валюту", False),
    ],
)
def test_a_text_that_may_want_more_than_green_checks(text: str, is_only: bool) -> None:
    assert is_only_about_checks(text) is is_only
