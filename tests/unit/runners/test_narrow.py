import subprocess
import sys
from pathlib import Path

import pytest

from agentflow.core.evidence import Check, CheckName
from agentflow.runners.selection import narrow, narrow_quietly, read_tests

UNITTEST = "python3 -m unittest discover -v"
PART = ".venv/bin/python -m pytest -q"
SEVERAL = f"r=0; {{ {UNITTEST} -s a; }} || r=1; {{ {UNITTEST} -s b -p '*_test.py'; }} || r=1; exit $r"
NARROW = {
    "a test": (PART, {"t/test_a.py::test_x"}, f"{PART} t/test_a.py -k test_x"),
    "cases of a test": (PART, {"a.py::test_x[1-2]", "a.py::test_x[::]"}, f"{PART} a.py -k test_x"),
    "a test of a class": (PART, {"a.py::TestA::test_x"}, f"{PART} a.py -k test_x"),
    "tests of files": (
        PART,
        {"a.py::test_x", "b c.py::test_y"},
        f"{PART} a.py 'b c.py' -k 'test_x or test_y'",
    ),
    "a file that cannot be loaded": (PART, {"a.py", "b.py::test_y"}, f"{PART} a.py b.py"),
    "an odd name": (PART, {"a.py::test x"}, f"{PART} a.py"),
    "many tests": (PART, {f"a.py::test_{number}" for number in range(99)}, f"{PART} a.py"),
    "beside another runner": (
        f"r=0; {{ {PART}; }} || r=1; {{ npm test; }} || r=1; exit $r",
        {"a.py::test_x"},
        f"{PART} a.py -k test_x",
    ),
    "only the other runner's": (
        f"r=0; {{ {PART}; }} || r=1; {{ npm test; }} || r=1; exit $r",
        {"web/a.test.js::adds"},
        "npm test",
    ),
    "a project in a folder": (f"cd a && {PART}", {"a/t/a.py::test_x"}, f"cd a && {PART} t/a.py -k test_x"),
    "one of several projects": (
        f"r=0; {{ {PART} --ignore=a; }} || r=1; (cd a && {PART}) || r=1; (cd b && {PART}) || r=1; exit $r",
        {"b/a.py::test_x"},
        f"cd b && {PART} a.py -k test_x",
    ),
    "the root and a project": (
        f"r=0; {{ {PART} --ignore=a; }} || r=1; (cd a && {PART}) || r=1; exit $r",
        {"a.py::test_x", "a/a.py::test_y"},
        f"r=0; {{ {PART} a.py -k test_x; }} || r=1; (cd a && {PART} a.py -k test_y) || r=1; exit $r",
    ),
    "unittest": (UNITTEST, {"test_a.A.test_x"}, f"{UNITTEST} -k test_a.A.test_x"),
    "what unittest cannot load": (
        UNITTEST,
        {"unittest.loader._FailedTest.tests.test_a", "test_b.B.setUpClass"},
        f"{UNITTEST} -k test_b.B. -k tests.test_a.",
    ),
    "several searches": (
        SEVERAL,
        {"m.A.test_x"},
        SEVERAL.replace("-s a", "-s a -k m.A.test_x").replace("_test.py'", "_test.py' -k m.A.test_x"),
    ),
}
WHOLE = {
    "no test": (PART, set[str]()),
    "another runner": ("npm test", {"a.py::test_x"}),
    "a command of the user's own": (f"{PART} --lf tests/unit", {"a.py::test_x"}),
    "what would be an option": (PART, {"-p.py::test_x"}),
    "what would be a file of options": (PART, {"@a.py::test_x"}),
    "more than a command may hold": (UNITTEST, {f"m.A.test_{number}" for number in range(9_999)}),
}
FORGED = ["{} -p evil", "{} a.py --co", "{} a.py -k test_x -k test_y", "{} a.py; true", "{} 'a.py", "true"]


def a_check(command: str, name: CheckName = CheckName.TESTS) -> Check:
    return Check(name=name, command=command, timeout=1.0, reason="")


@pytest.mark.parametrize(("whole", "tests", "part"), NARROW.values(), ids=NARROW)
def test_a_check_runs_only_some_tests(whole: str, tests: set[str], part: str) -> None:
    found = narrow(a_check(whole), tests)

    assert found.command == part
    assert narrow(a_check(whole), read_tests(part)) == found


@pytest.mark.parametrize(("whole", "tests"), WHOLE.values(), ids=WHOLE)
def test_a_check_stays_whole(whole: str, tests: set[str]) -> None:
    assert narrow(a_check(whole), tests) == a_check(whole)


def test_only_narrowed_pytest_is_kept_from_describing_failures() -> None:
    assert narrow_quietly(a_check(PART), {"a.py::test_x"}).command == f"{PART} a.py -k test_x --tb=no"
    for whole in (UNITTEST, f"{PART} tests; true"):
        assert narrow_quietly(a_check(whole), {"a.A.test_x"}) == narrow(a_check(whole), {"a.A.test_x"})


def test_no_other_check_is_narrowed() -> None:
    assert narrow(a_check(PART, CheckName.LINT), {"a.py::test_x"}).command == PART


@pytest.mark.parametrize("command", FORGED)
def test_no_other_command_is_taken_for_a_part(command: str) -> None:
    said = command.format(PART)

    assert narrow(a_check(PART), read_tests(said)).command != said


def test_a_name_that_is_not_there_ends_no_run(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("def test_x():\n    pass\n")
    check = narrow(a_check(f"{sys.executable} -m pytest -q"), {"test_a.py::test_x", "test_a.py::test_new"})

    done = subprocess.run(
        ["bash", "-c", check.command], cwd=tmp_path, env={}, capture_output=True, text=True, check=False
    )

    assert "1 passed" in done.stdout
