import shutil
from pathlib import Path

import pytest

from agentflow.core.check_command import join_commands
from agentflow.core.errors import ModelRejected
from agentflow.core.evidence import Check, CheckName, CheckRun
from agentflow.repair.target import RepairRunner, Target, locate_tests, read_target
from tests.unit.repair.stage import make_evidence

FILES = ("src/a.py", "tests/test_a.py", "tests/deep/test_a.py", "tests/test_b.py", "test_b.py")


def target_of(root: Path, command: str) -> Target:
    """Return the target of a check of tests that is red."""
    check = Check(name=CheckName.TESTS, command=command, timeout=100, reason="")
    run = CheckRun(check=check, evidence=make_evidence(command, 1))
    return read_target(root, (run,), {}, FILES)


@pytest.mark.parametrize(
    ("command", "interpreter", "runner", "arguments", "env"),
    [
        ("python3 -m pytest -q", "PATH/python3", RepairRunner.PYTEST, ("-q",), {}),
        (
            "PYTHONPATH=src A=b python3 -m unittest",
            "PATH/python3",
            RepairRunner.UNITTEST,
            (),
            {"PYTHONPATH": "src", "A": "b"},
        ),
        (".venv/bin/python -m pytest", "ROOT/.venv/bin/python", RepairRunner.PYTEST, (), {}),
        (
            "bin/pytest tests -k 'a or b'",
            "/opt/bin/python3.12",
            RepairRunner.PYTEST,
            ("tests", "-k", "a or b"),
            {},
        ),
        ("other/pytest", "ROOT/other/python3", RepairRunner.PYTEST, (), {}),
        (
            "cd api && PYTHONPATH=src .venv/bin/python -m pytest -q",
            "ROOT/api/.venv/bin/python",
            RepairRunner.PYTEST,
            ("--rootdir=.", "-q", "api"),
            {"PYTHONPATH": "api/src:api"},
        ),
    ],
)
def test_a_command_is_understood(
    command: str,
    interpreter: str,
    runner: RepairRunner,
    arguments: tuple[str, ...],
    env: dict[str, str],
    tmp_path: Path,
) -> None:
    for folder, first in (("bin", "#!/opt/bin/python3.12"), ("other", "#!/bin/sh")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "pytest").write_text(f"{first}\n")
    expected = interpreter.replace("ROOT", str(tmp_path)).replace(
        "PATH/python3", str(shutil.which("python3"))
    )
    target = target_of(tmp_path, command)
    assert (target.interpreter, target.runner, target.arguments, target.env) == (
        expected,
        runner,
        arguments,
        env,
    )
    assert target.is_module == (" -m " in command)
    assert target.folder == ("api/" if command.startswith("cd api") else "")


@pytest.mark.parametrize(
    "command",
    [
        "python3 -m unittest discover -s a && python3 -m unittest discover -s b -v",
        join_commands(["python3 -m unittest discover -s a", "python3 -m unittest discover -s b -v"]),
    ],
)
def test_several_folders_of_unittest_are_one_target(command: str, tmp_path: Path) -> None:
    target = target_of(tmp_path, command)
    assert target.arguments == ("discover", "-s", "a", "&&", "discover", "-s", "b", "-v")


@pytest.mark.parametrize(
    "command",
    [
        *("pytest a && pytest b", "python3 -m unittest a && make", "python3 -m unittest a && pytest"),
        "X=1 python3 -m unittest a && python3 -m unittest b",
    ],
)
def test_a_command_of_different_runs_is_refused(command: str, tmp_path: Path) -> None:
    with pytest.raises(ModelRejected, match="tested by one pytest or unittest command"):
        target_of(tmp_path, command)


@pytest.mark.parametrize(
    "command",
    ["", "make", "python3 test.py", "python3 -m nose", "a && pytest", "pytest 'x", "node -m pytest"],
)
def test_any_other_command_is_refused(command: str, tmp_path: Path) -> None:
    with pytest.raises(ModelRejected, match="tested by one pytest or unittest command"):
        target_of(tmp_path, command)


@pytest.mark.parametrize(
    ("test", "files"),
    [
        ("tests/test_a.py::T::test_x[a/b.py::c]", ("tests/test_a.py",)),
        ("tests/test_a.py", ("tests/test_a.py",)),
        ("tests.test_a.T.test_x", ("tests/test_a.py",)),
        ("test_a.T.test_x", ("tests/test_a.py",)),
        ("deep.test_a.T.test_x", ("tests/deep/test_a.py",)),
        ("test_b.T.test_x", ("test_b.py",)),
        ("unittest.loader._FailedTest.test_a", ("tests/test_a.py",)),
        ("setUpClass (test_a.T)", ("tests/test_a.py",)),
        ("nowhere.T.test_x", ()),
        ("", ()),
    ],
)
def test_a_test_is_placed_by_its_id(test: str, files: tuple[str, ...]) -> None:
    assert locate_tests((test,), FILES) == files


def test_one_test_that_cannot_be_placed_means_all_files() -> None:
    assert locate_tests(("test_a.T.x", "nowhere.T.x"), FILES) == ()


TOOL = Check(name=CheckName.TESTS, command="", timeout=1, reason="", missing="cargo: install Rust")
LINT = Check(name=CheckName.LINT, command="", timeout=1, reason="", missing="ruff: install it")


@pytest.mark.parametrize(
    ("checks", "blocked", "said"),
    [
        ((CheckRun(check=TOOL),), {}, r"the tests cannot run here \(cargo: install Rust\)"),
        (
            (CheckRun(check=TOOL.replace(missing=None), evidence=make_evidence("pytest", 1)),),
            {CheckName.TESTS: "no network"},
            r"the tests cannot run here \(no network\)",
        ),
        ((CheckRun(check=LINT),), {}, r"nothing that ran fails; could not run: lint \(ruff: install it\)"),
        ((), {}, "no checks found"),
    ],
)
def test_what_cannot_run_is_named(
    checks: tuple[CheckRun, ...], blocked: dict[CheckName, str], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelRejected, match=said) as refused:
        read_target(tmp_path, checks, blocked, FILES)
    assert refused.value.hint
