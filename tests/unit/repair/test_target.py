import shutil
from pathlib import Path

import pytest

from agentflow.core.errors import ModelRejected
from agentflow.repair.brief import Brief, read_brief
from agentflow.repair.target import Runner, files_of, read_target
from tests.unit.repair.stage import Stage

FILES = ("src/a.py", "tests/test_a.py", "tests/deep/test_a.py", "tests/test_b.py", "test_b.py")


def brief(root: Path, command: str) -> Brief:
    """Return what is told of a red check, whose record lies in the repository."""
    told = Stage(root, {}, command)
    told.keep("ev-0001", 1)
    line = f"- tests: red, evidence ev-0001, output in {told.place('ev-0001')}"
    return read_brief(f"# Task\nfix it\n## Checks before\n{line}\n")


@pytest.mark.parametrize(
    ("command", "interpreter", "runner", "arguments", "env"),
    [
        ("python3 -m pytest -q", "PATH/python3", Runner.PYTEST, ("-q",), {}),
        (
            "PYTHONPATH=src A=b python3 -m unittest",
            "PATH/python3",
            Runner.UNITTEST,
            (),
            {"PYTHONPATH": "src", "A": "b"},
        ),
        (".venv/bin/python -m pytest", "ROOT/.venv/bin/python", Runner.PYTEST, (), {}),
        ("bin/pytest tests -k 'a or b'", "/opt/bin/python3.12", Runner.PYTEST, ("tests", "-k", "a or b"), {}),
        ("other/pytest", "ROOT/other/python3", Runner.PYTEST, (), {}),
    ],
)
def test_a_command_is_understood(
    command: str,
    interpreter: str,
    runner: Runner,
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
    target = read_target(tmp_path, brief(tmp_path, command), FILES)
    assert (target.interpreter, target.runner, target.arguments, target.env) == (
        expected,
        runner,
        arguments,
        env,
    )
    assert target.is_module == (" -m " in command)


@pytest.mark.parametrize(
    "command",
    ["", "make", "python3 test.py", "python3 -m nose", "a && pytest", "pytest 'x", "node -m pytest"],
)
def test_any_other_command_is_refused(command: str, tmp_path: Path) -> None:
    with pytest.raises(ModelRejected, match="pytest and unittest only"):
        read_target(tmp_path, brief(tmp_path, command), FILES)


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
    assert files_of((test,), FILES) == files


def test_one_test_that_cannot_be_placed_means_all_files() -> None:
    assert files_of(("test_a.T.x", "nowhere.T.x"), FILES) == ()


def test_a_missing_tool_is_named_when_nothing_that_ran_fails(tmp_path: Path) -> None:
    missing = Brief(before=(), not_run=("tests (cargo: install Rust)",), failed=(), after=())
    with pytest.raises(ModelRejected, match=r"could not run: tests \(cargo: install Rust\)") as refused:
        read_target(tmp_path, missing, FILES)
    assert refused.value.hint


def test_a_record_that_is_gone_is_named(tmp_path: Path) -> None:
    told = brief(tmp_path, "pytest")
    (tmp_path / str(told.before[0].output)).with_suffix(".json").unlink()
    with pytest.raises(ModelRejected, match="the record ev-0001 cannot be read"):
        read_target(tmp_path, told, FILES)
