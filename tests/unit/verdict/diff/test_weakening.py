import pytest

from agentflow.core.evidence import Check, CheckName, CheckRun, Surface, TestOutcome
from agentflow.core.finding import FileKind
from agentflow.verdict.diff.tampering import TextDiff, find_tampering
from agentflow.verdict.diff.weakening import JudgedCheck, Weakening, find_weakening
from agentflow.verdict.surface import find_kind
from agentflow.wording import describe_all
from tests.support.tampering import CONFTEST
from tests.unit.tools.bench import a_record

BODY = "def test_x():\n    assert f() == 1\n"
PASSED, FAILED, SKIPPED = TestOutcome.PASSED, TestOutcome.FAILED, TestOutcome.SKIPPED


def shown(**outcomes: TestOutcome) -> CheckRun:
    check = Check(name=CheckName.TESTS, command="pytest", timeout=1.0, reason="")
    return CheckRun(
        check=check, outcomes={f"tests/test_a.py::{name}": each for name, each in outcomes.items()}
    )


def change(path: str, before: str, after: str, surface: Surface = Surface()) -> TextDiff:  # noqa: B008
    kind = find_kind(path, surface) or FileKind.RUNNER
    diff = TextDiff(path=path, kind=kind, before=before, after=after)
    return diff.replace(findings=find_tampering([diff]))


def found(*changes: TextDiff, base: CheckRun, final: CheckRun, held: CheckRun) -> Weakening:
    return find_weakening(changes, [JudgedCheck(base=base, final=final, held=held)])


def asked(*changes: TextDiff, base: CheckRun, final: CheckRun, held: CheckRun) -> list[str]:
    return list(describe_all(found(*changes, base=base, final=final, held=held).asked))


GREEN = shown(test_x=PASSED)
ADDED = change("tests/test_b.py", "", "def test_b():\n    assert True\n")
"""A new test, which ran under the checks of now alone."""


def test_a_test_that_is_gone_or_skipped_is_asked_about() -> None:
    base = shown(test_x=PASSED, test_y=PASSED, test_z=FAILED)
    final = shown(test_x=PASSED, test_y=SKIPPED)

    assert asked(base=base, final=final, held=base) == [
        "tests/test_a.py::test_y is skipped now",
        "tests/test_a.py::test_z is gone",
        "tests/test_a.py::test_z still fails with the original files",
    ]


def test_a_test_that_goes_on_under_another_name_is_not_gone() -> None:
    renamed = change("tests/test_a.py", BODY, BODY.replace("test_x", "test_y"))
    other = change("tests/test_a.py", BODY, BODY.replace("test_x", "test_y").replace("== 1", ""))

    assert asked(renamed, base=GREEN, final=shown(test_y=PASSED), held=GREEN) == []
    assert asked(other, base=GREEN, final=shown(test_y=PASSED), held=GREEN) == [
        "tests/test_a.py::test_x is gone",
        "tests/test_a.py: test removed: test_x",
    ]


def test_one_test_of_the_source_is_one_line_however_many_classes_inherit_it() -> None:
    names = ("A::test_x", "B::test_x", "C::test_x[1]")
    base = shown(**dict.fromkeys((*names, "B::test_y"), PASSED))
    held = shown(**dict.fromkeys((*names, "B::test_y"), FAILED))
    mixin = change("tests/mixin.py", BODY, BODY.replace("== 1", "== 2"))

    changed = "tests/mixin.py:1: different result expected: test_x: assert f() == 1 -> assert f() == 2"
    assert asked(mixin, base=base, final=base, held=held) == [
        "tests/mixin.py:1: tests/test_a.py::A::test_x (and 2 more) still fails with the original files",
        "tests/test_a.py::B::test_y still fails with the original files",
        changed,
    ]


LATER = {
    "a weaker assertion": ("tests/test_a.py", BODY, BODY.replace(" == 1", ""), True),
    "one that moved": ("tests/test_a.py", BODY, "def test_y():\n    assert f() == 1\n", False),
    "two in one": (
        "tests/test_a.py",
        BODY + "    assert g() == 2\n",
        "def test_x():\n    assert (f(), g()) == (1, 2)\n",
        False,
    ),
    "another expectation": ("tests/test_a.py", BODY, BODY.replace("== 1", "== 2"), False),
    "a lower threshold": (".coveragerc", "[report]\nfail_under = 95\n", "[report]\nfail_under = 5\n", True),
    "a higher threshold": (".coveragerc", "[report]\nfail_under = 9\n", "[report]\nfail_under = 95\n", False),
    "a step that may fail": (".github/workflows/ci.yml", "a: 1\n", "a: 1\ncontinue-on-error: true\n", True),
    "a step more": (".github/workflows/ci.yml", "a: 1\n", "a: 1\n- run: python -m build\n", False),
}


@pytest.mark.parametrize(("path", "before", "after", "is_weaker"), LATER.values(), ids=LATER)
def test_what_lets_later_faults_pass_is_weaker(path: str, before: str, after: str, is_weaker: bool) -> None:
    seen = found(change(path, before, after), base=GREEN, final=GREEN, held=GREEN)

    assert (seen.asked, seen.is_weaker) == ((), is_weaker)


def test_a_test_that_becomes_parametrised_is_not_gone() -> None:
    cases = {f"tests/test_a.py::test_x[{case}]": PASSED for case in (1, 2)}

    assert asked(base=GREEN, final=GREEN.replace(outcomes=cases), held=GREEN) == []


_CASES = (
    'import pytest\n\n\n@pytest.mark.parametrize("a, b", [{}])\ndef test_x(a, b):\n    assert f(a) == b\n'
)


@pytest.mark.parametrize(
    ("cases", "ids", "is_asked"),
    [
        ('([1], "1"), ([], ""), ([2], "2")', ("a0-1", "a1-", "a2-2"), False),
        ('([], ""), ([2], "2")', ("a0-", "a1-2"), True),
        ('([1], "1"), ([2], "")', ("a0-1", "a1-"), True),
        ('([1], "1"), ([], ""), ([2], "2")', ("a0-1", "a1-"), True),
    ],
)
def test_cases_that_are_only_called_by_another_number_are_not_gone(
    cases: str, ids: tuple[str, ...], is_asked: bool
) -> None:
    base = shown(**{"test_x[a0-1]": PASSED, "test_x[a1-2]": PASSED})
    final = shown(**{f"test_x[{each}]": PASSED for each in ids})
    changed = change("tests/test_a.py", _CASES.format('([1], "1"), ([2], "2")'), _CASES.format(cases))
    assert bool(asked(changed, base=base, final=final, held=base)) is is_asked


def test_a_red_test_that_goes_on_under_another_name_is_still_asked_about() -> None:
    renamed = change("tests/test_a.py", BODY, BODY.replace("test_x", "test_y"))
    red = shown(test_x=FAILED)

    assert asked(renamed, base=red, final=shown(test_y=PASSED), held=red)


def test_a_failure_that_only_the_old_checks_show_is_asked_about() -> None:
    assert asked(base=GREEN, final=GREEN, held=shown(test_x=FAILED)) == [
        "tests/test_a.py::test_x still fails with the original files"
    ]


def test_a_red_test_that_passes_only_as_it_was_changed_is_asked_about() -> None:
    red = shown(test_x=FAILED)

    assert asked(base=red, final=GREEN, held=red) == [
        "tests/test_a.py::test_x still fails with the original files"
    ]
    assert asked(base=red, final=red, held=red) == []
    assert asked(base=red, final=GREEN, held=GREEN) == []


def test_a_test_that_only_its_changed_version_runs_is_asked_about() -> None:
    assert asked(base=GREEN, final=GREEN, held=shown(test_x=SKIPPED)) == [
        "tests/test_a.py::test_x gives no result with the original files"
    ]


def test_a_test_that_the_code_itself_makes_vanish_is_no_change_of_the_checks() -> None:
    base = shown(test_x=PASSED, test_y=PASSED)

    assert asked(base=base, final=GREEN, held=GREEN) == []


def test_a_runner_that_tells_nothing_under_the_checks_from_before_is_asked_about() -> None:
    silent = CheckRun(check=GREEN.check, evidence=a_record("ev-0003", exit_code=0))
    passed = GREEN.replace(evidence=a_record("ev-0002", exit_code=0))

    assert "tests with the original configuration: failed" in asked(base=passed, final=passed, held=silent)


def lint(**findings: int) -> CheckRun:
    check = Check(name=CheckName.LINT, command="ruff", timeout=1.0, reason="")
    evidence = a_record("ev-0002", exit_code=int(bool(findings)))
    return CheckRun(check=check, findings=findings, evidence=evidence)


def test_findings_that_only_the_settings_of_before_show_are_asked_about() -> None:
    assert asked(base=lint(), final=lint(), held=lint(unused=1)) == [
        "lint with the original configuration: failed: unused"
    ]
    assert asked(base=lint(old=1), final=lint(old=1), held=lint(old=1, unused=1)) == [
        "lint with the original configuration: failed: unused"
    ]
    assert asked(base=lint(old=1), final=lint(old=1), held=lint(old=1)) == []


def test_a_check_that_no_longer_runs_with_the_settings_of_before_is_asked_about() -> None:
    assert asked(base=lint(), final=lint(), held=CheckRun(check=lint().check))


SAME_RESULTS = {
    "a weaker assertion": change("tests/test_a.py", BODY, BODY.replace("== 1", "")),
    "another expectation": change("tests/test_a.py", BODY, BODY.replace("== 1", "== 2")),
    "a hook": change("conftest.py", CONFTEST, CONFTEST + "\n\ndef pytest_configure(config):\n    pass\n"),
    "a setting of the runner": change("pytest.ini", "[pytest]\n", "[pytest]\naddopts = -q\n"),
    "a setting of a linter": change("ruff.toml", "", "line-length = 100\n"),
    "a file of CI": change(".github/workflows/ci.yml", "a: 1\n", "a: 2\n"),
    "data": change("tests/fixtures/a.json", "[1]", "[2]"),
}


@pytest.mark.parametrize("changed", SAME_RESULTS.values(), ids=SAME_RESULTS)
def test_what_changes_no_result_of_the_checks_from_before_is_told_and_not_asked(
    changed: TextDiff,
) -> None:
    seen = found(changed, base=GREEN, final=GREEN, held=GREEN)

    assert seen.asked == ()
    assert bool(seen.noted) is bool(changed.before)


STEERING = {
    "a hook": SAME_RESULTS["a hook"],
    "a setting of the runner": SAME_RESULTS["a setting of the runner"],
    "a fixture that no test asks for": change("conftest.py", CONFTEST,
        CONFTEST + "\n\n@pytest.fixture(autouse=True)\ndef empty():\n    return []\n"),
    "another fixture of a name": change("conftest.py", CONFTEST,
        CONFTEST + "\n\n@pytest.fixture\ndef numbers():\n    return []\n"),
    "a statement": change("conftest.py", CONFTEST, CONFTEST + "\nprint(1)\n"),
    "a new conftest": change("tests/conftest.py", "", "def pytest_configure(config):\n    pass\n"),
    "a table of the runner": change("pyproject.toml", "[tool.pytest.ini_options]\n",
        "[tool.pytest.ini_options]\naddopts = '-p x'\n"),
    "scripts": change("package.json", '{"scripts": {"test": "jest"}}', '{"scripts": {"test": "true"}}'),
}  # fmt: skip


@pytest.mark.parametrize("changed", STEERING.values(), ids=STEERING)
def test_what_steers_tests_that_ran_under_nothing_else_is_asked_about(changed: TextDiff) -> None:
    assert asked(changed, ADDED, base=GREEN, final=GREEN, held=GREEN)
    assert asked(changed, base=GREEN, final=GREEN, held=GREEN) == []


PLAIN = {
    "a fixture": change("conftest.py", CONFTEST,
        CONFTEST + "\n\n@pytest.fixture\ndef empty():\n    return []\n"),
    "a fixture of a module": change("conftest.py", CONFTEST,
        CONFTEST + "\n\n@pytest.fixture(scope='module')\ndef empty():\n    return []\n"),
    "an import": change("conftest.py", CONFTEST, CONFTEST + "\nimport json\n"),
    "a function": change("conftest.py", CONFTEST, CONFTEST + "\n\ndef made():\n    return 1\n"),
    "a table of a linter": change("pyproject.toml", "[tool.ruff]\n", "[tool.ruff]\nline-length = 100\n"),
    "a version": change("pyproject.toml", "[project]\nversion = '1'\n", "[project]\nversion = '2'\n"),
    "settings of a linter": SAME_RESULTS["a setting of a linter"],
    "a file of CI": SAME_RESULTS["a file of CI"],
    "a Makefile that the tests do not use": change("Makefile", "test:\n\tpytest\n", "test:\n\tpytest -q\n"),
    "data": SAME_RESULTS["data"],
}  # fmt: skip


@pytest.mark.parametrize("changed", PLAIN.values(), ids=PLAIN)
def test_what_steers_no_test_is_not_asked_about_beside_new_tests(changed: TextDiff) -> None:
    assert asked(changed, ADDED, base=GREEN, final=GREEN, held=GREEN) == []


def test_a_recipe_steers_where_the_tests_start_it() -> None:
    recipe = change("Makefile", "test:\n\tpytest\n", "test:\n\ttrue\n")
    made = GREEN.replace(check=GREEN.check.replace(command="make test"))

    assert asked(recipe, ADDED, base=made, final=made, held=made)


def test_where_tests_have_no_names_a_file_that_lost_something_is_asked_about() -> None:
    uncounted = CheckRun(check=GREEN.check, evidence=a_record("ev-0002", exit_code=0))
    runs = {"base": uncounted, "final": uncounted, "held": uncounted}
    lost = change("a.test.js", "check(1)\ncheck(2)\n", "check(1)\n")
    gained = change("a.test.js", "check(1)\n", "check(1)\ncheck(2)\n")

    assert asked(lost, **runs)
    assert asked(gained, **runs) == []
