import os
import sys
from pathlib import Path
from typing import Any

import pytest

from agentflow.checks.detect import detect
from agentflow.sandbox.environment import find_program, find_search_path

TESTS = {"test_a.py": "def test_a():\n    pass\n"}


def command(checkout: Any) -> str:
    (tests,) = detect(checkout.sandbox, checkout.files)
    assert tests.missing is None
    return str(tests.command)


@pytest.fixture
def project(checkout: Any) -> Any:
    checkout.write(TESTS)
    checkout.fake_python(checkout.programs / "python3", "pytest")
    return checkout


def test_path_comes_last(project: Any) -> None:
    assert command(project) == "python3 -m pytest -q"


def test_python_when_there_is_no_python3(project: Any) -> None:
    (project.programs / "python3").rename(project.programs / "python")
    assert command(project) == "python -m pytest -q"


def test_environment_of_the_repository(project: Any) -> None:
    project.own_python()
    assert command(project) == ".venv/bin/python -m pytest -q"


def test_broken_environment_is_passed_over(project: Any) -> None:
    (project.root / ".venv" / "bin").mkdir(parents=True)
    (project.root / ".venv" / "bin" / "python").symlink_to("/nowhere/python")
    assert command(project) == "python3 -m pytest -q"


def test_active_environment_leads(project: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    project.own_python()
    project.fake_python(tmp_path / "my env" / "bin" / "python", "pytest")
    (tmp_path / "my env" / "pyvenv.cfg").touch()
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "my env"))
    assert command(project) == f"'{tmp_path}/my env/bin/python' -m pytest -q"


def test_active_environment_inside_is_shown_relative(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    project.own_python("env")
    monkeypatch.setenv("VIRTUAL_ENV", str(project.root / "env"))
    assert command(project) == "env/bin/python -m pytest -q"


@pytest.mark.parametrize(
    ("lock", "tool", "shown"),
    [
        ("uv.lock", "uv", "uv run --no-sync python -m pytest -q"),
        ("poetry.lock", "poetry", "poetry run python -m pytest -q"),
    ],
)
def test_project_tool_by_its_lock_file(lock: str, tool: str, shown: str, project: Any) -> None:
    project.write({lock: ""})
    assert command(project) == "python3 -m pytest -q"
    project.program(tool, "echo importable: pytest")
    assert command(project) == shown


@pytest.mark.skipif(sys.prefix == sys.base_prefix, reason="we are not in an environment of our own")
class TestOurOwnEnvironment:
    def test_is_the_project_s_if_it_is_active_and_has_pytest(
        self, project: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
        assert command(project) == f"{sys.prefix}/bin/python -m pytest -q"
        project.own_python()
        assert command(project) == ".venv/bin/python -m pytest -q"

    def test_is_found_on_path_where_no_other_has_pytest(
        self, checkout: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        own = str(Path(sys.prefix, "bin"))
        checkout.write(TESTS)
        monkeypatch.setenv("PATH", os.pathsep.join([own, str(checkout.programs)]))
        assert find_search_path(checkout.root) == os.pathsep.join([own, str(checkout.programs)])
        (tests,) = detect(checkout.sandbox, checkout.files)
        assert (tests.command, tests.missing) == ("python3 -m pytest -q", None)

        checkout.program("pytest")
        assert find_search_path(checkout.root) == str(checkout.programs)
        assert find_program("python3", checkout.root) is None

    def test_is_not_where_a_hint_installs_what_another_python_lacks(
        self, checkout: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        checkout.write({**TESTS, ".flake8": ""})
        monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.prefix, "bin")), str(checkout.programs)]))
        checkout.program("pytest")
        python = checkout.fake_python(checkout.programs / "python3", "pytest")
        missing = {str(check.name): check.missing for check in detect(checkout.sandbox, checkout.files)}
        assert missing == {"lint": f"flake8: {python} -m pip install flake8", "tests": None}

    def test_is_used_where_it_is_the_repository_s_too(
        self, checkout: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        checkout.write(TESTS)
        (checkout.root / ".venv").symlink_to(sys.prefix)
        monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
        monkeypatch.setenv("PATH", str(Path(sys.prefix, "bin")))
        assert find_search_path(checkout.root) == str(Path(sys.prefix, "bin"))
        assert command(checkout).endswith("/bin/python -m pytest -q")


def test_real_probe_knows_installed_from_absent(checkout: Any) -> None:
    checkout.own_python()
    checkout.write({**TESTS, ".flake8": ""})
    missing = {str(check.name): check.missing for check in detect(checkout.sandbox, checkout.files)}
    assert missing == {"lint": "flake8: .venv/bin/python -m pip install flake8", "tests": None}


def test_probe_neither_runs_nor_believes_files_of_the_repository(checkout: Any) -> None:
    checkout.own_python()
    trap = "open('ran', 'w').close()\n"
    names = (
        "contextlib.py",
        "importlib/__init__.py",
        "importlib/util.py",
        "types.py",
        "warnings.py",
        "flake8.py",
    )
    checkout.write({**dict.fromkeys(names, trap), ".flake8": ""})
    (lint,) = detect(checkout.sandbox, checkout.files)
    assert lint.missing is not None
    assert not (checkout.root / "ran").exists()


def test_noise_of_an_interpreter_names_no_tool(checkout: Any) -> None:
    checkout.write(TESTS)
    checkout.program("python3", "echo warning: pytest is old; echo importable:; exit 0")
    (tests,) = detect(checkout.sandbox, checkout.files)
    assert tests.missing is not None


def test_no_entry_of_path_lies_in_the_repository_but_its_own_environment(
    checkout: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, programs = checkout.root, checkout.programs
    (root / "way-out").symlink_to(programs)
    (programs / "way-in").symlink_to(root)
    inside = ("", ".", "bin", "../x", str(root), f"{root}/bin", f"{programs}/../repository/bin")
    links = (f"{root}/way-out", f"{programs}/way-in/bin")
    kept = (f"{root}/.venv/bin", f"{root}-beside/bin", str(programs))
    monkeypatch.setenv("PATH", os.pathsep.join((*inside, *links, *kept)))
    assert find_search_path(root).split(os.pathsep) == list(kept)


def test_path_is_never_empty(checkout: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "bin")
    assert find_search_path(checkout.root) == os.defpath
