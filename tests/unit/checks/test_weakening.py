import pytest

from agentflow.checks.mixed import is_shared, mix
from agentflow.checks.surface import Kind, kind_of
from agentflow.checks.tamper import Changed, name_changes
from agentflow.checks.weakening import Judged, SurfaceChange, to_approve
from agentflow.core.evidence import Check, CheckName, CheckRun, Surface, TestOutcome
from tests.support.tampering import BASE, CONFTEST, TAMPERING, Change
from tests.unit.tools.bench import a_record

PASSED, FAILED, SKIPPED = TestOutcome.PASSED, TestOutcome.FAILED, TestOutcome.SKIPPED


def shown(**outcomes: TestOutcome) -> CheckRun:
    check = Check(name=CheckName.TESTS, command="pytest", timeout=1.0, reason="")
    return CheckRun(
        check=check, outcomes={f"tests/test_a.py::{name}": each for name, each in outcomes.items()}
    )


def change(path: str, before: str, after: str, surface: Surface = Surface()) -> SurfaceChange:  # noqa: B008
    kind = kind_of(path, surface) or Kind.RUNNER
    found = name_changes([Changed(path=path, before=before, after=after, surface=kind)])
    return SurfaceChange(path=path, kind=kind, before=before, after=after, findings=found)


def said(task: str, *changes: SurfaceChange, base: CheckRun, final: CheckRun, held: CheckRun) -> list[str]:
    return [each.said for each in to_approve(task, changes, [Judged(base=base, final=final, held=held)])]


GREEN = shown(test_x=PASSED)


def test_a_test_that_is_gone_or_skipped_is_asked_about() -> None:
    base = shown(test_x=PASSED, test_y=PASSED, test_z=FAILED)
    final = shown(test_x=PASSED, test_y=SKIPPED)

    assert said("fix it", base=base, final=final, held=base) == [
        "tests/test_a.py::test_y is skipped now",
        "tests/test_a.py::test_z is gone",
        "tests/test_a.py::test_z fails as it stood before the task",
    ]


def test_a_failure_that_only_the_old_checks_show_is_asked_about() -> None:
    held = shown(test_x=FAILED)

    assert said("fix it", base=GREEN, final=GREEN, held=held) == [
        "tests/test_a.py::test_x fails as it stood before the task"
    ]


def test_a_red_test_that_passes_only_as_it_was_changed_is_asked_about() -> None:
    red = shown(test_x=FAILED)

    assert said("fix it", base=red, final=GREEN, held=red) == [
        "tests/test_a.py::test_x fails as it stood before the task"
    ]
    assert said("fix it", base=red, final=red, held=red) == []
    assert said("fix it", base=red, final=GREEN, held=GREEN) == []


def test_a_test_that_the_code_itself_makes_vanish_is_no_change_of_the_checks() -> None:
    base = shown(test_x=PASSED, test_y=PASSED)

    assert said("fix it", base=base, final=GREEN, held=GREEN) == []


def test_a_runner_that_tells_nothing_under_the_checks_from_before_is_asked_about() -> None:
    silent = CheckRun(check=GREEN.check, evidence=a_record("ev-0003", exit_code=0))
    passed = GREEN.replace(evidence=a_record("ev-0002", exit_code=0))

    assert said("fix it", base=passed, final=passed, held=silent) == [
        "tests fails with the settings from before the task"
    ]


@pytest.mark.parametrize(
    "task",
    [
        "rename test_x to test_z",
        "update the snapshot. delete test_x, it is obsolete",
        "fix the wrong expectation in test_x",
        "tidy up tests/test_a.py",
    ],
)
def test_what_a_task_asks_for_by_name_needs_no_approval(task: str) -> None:
    held = shown(test_x=FAILED)

    assert said(task, base=GREEN, final=shown(test_z=PASSED), held=held) == []


@pytest.mark.parametrize(
    "task",
    [
        "fix the failing test test_x",
        "make test_x pass",
        "change pages() so that test_x passes",
        "fix all failing tests in tests/test_a.py",
        "update pages(); test_x is red",
        "rename test_xy",
        "rename pages to count",
    ],
)
def test_a_task_about_results_allows_no_change_of_checks(task: str) -> None:
    assert said(task, base=GREEN, final=shown(test_z=PASSED), held=GREEN) == [
        "tests/test_a.py::test_x is gone"
    ]


@pytest.mark.parametrize(
    "added",
    [
        "\n\n@pytest.fixture\ndef empty():\n    return []\n",
        "\n\n@pytest.fixture(scope='module')\ndef empty():\n    return []\n",
        "\nimport json\n",
    ],
)
def test_a_fixture_that_a_test_has_to_ask_for_is_no_weakening(added: str) -> None:
    assert (
        said("t", change("conftest.py", CONFTEST, CONFTEST + added), base=GREEN, final=GREEN, held=GREEN)
        == []
    )


@pytest.mark.parametrize(
    "added",
    [
        "\n\n@pytest.fixture(autouse=True)\ndef empty():\n    return []\n",
        "\n\n@pytest.fixture\ndef numbers():\n    return []\n",
        "\n\ndef pytest_configure(config):\n    pass\n",
        "\nprint(1)\n",
    ],
)
def test_anything_else_in_a_conftest_is_asked_about(added: str) -> None:
    assert said("t", change("conftest.py", CONFTEST, CONFTEST + added), base=GREEN, final=GREEN, held=GREEN)


def surface_changes(changed: Change) -> list[SurfaceChange]:
    before = {name: text or "" for name, text in {**BASE, **changed.base}.items()}
    named = Surface(named=("scripts/check.sh", "pager/quiet.py"))
    return [
        change(path, before.get(path, ""), text or "", named)
        for path, text in changed.files.items()
        if kind_of(path, named) or (is_shared(path) and mix(path, before[path], text or "") != text)
    ]


@pytest.mark.parametrize(
    "case",
    [case for case in TAMPERING if surface_changes(case)],
    ids=lambda case: case.name.replace(" ", "-"),
)
def test_every_change_of_the_checks_against_them_is_asked_about_by_its_words_alone(case: Change) -> None:
    found = to_approve(case.task, surface_changes(case), ())

    assert found
    assert any(word in each.said for each in found for word in case.said)
