"""Repositories that hold more than one project: each is tested in its folder, as a person would there."""

import shutil
import sys
from typing import Any

import pytest

from tests.support import play
from tests.support.repo import Done, NewRepo, Repo

CALC = "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return 2 * a\n"
RIGHT = CALC.replace("a - b", "a + b")
PROJECT = {
    "pyproject.toml": '[tool.pytest.ini_options]\nmarkers = ["slow"]\naddopts = "--strict-markers"\n',
    "app/__init__.py": "",
    "app/calc.py": CALC,
    "sums.txt": "4\n",
    "tests/test_calc.py": (
        "from pathlib import Path\n\nimport pytest\n\nfrom app.calc import add, double\n\n\n"
        "@pytest.mark.slow\ndef test_add():\n    assert add(1, 2) == 3\n\n\n"
        "def test_double():\n    assert double(2) == int(Path('sums.txt').read_text())\n"
    ),
}
PYTHON = f'#!/bin/sh\nITS_OWN=1 PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 exec "{sys.executable}" "$@"\n'
BY_ITS_OWN = "import os\n\n\ndef test_python():\n    assert os.environ.get('ITS_OWN')\n"
SILENT = "import _pytest.python\n\n_pytest.python.Function.runtest = lambda self: None\n\n\n"
"""Code that makes every test of pytest pass."""


def lay_project(folder: str, **other: str) -> dict[str, str]:
    return {f"{folder}/{name}": text for name, text in {**PROJECT, **other}.items()}


def lay_several() -> dict[str, str]:
    right = {"app/calc.py": RIGHT}
    beside = {"tests/test_root.py": "def test_root():\n    assert True\n"}
    return {**lay_project("one", **right), **lay_project("two", **right), **beside}


def write_calc(repo: Repo, folder: str, text: str) -> Done:
    """Let a task write the code of one project."""
    path = f"{folder}/app/calc.py"
    turns = (
        play.turn(play.call("Read", file_path=path)),
        play.turn(play.call("Write", file_path=path, content=text)),
    )
    implementer: Any = play.role("implementer", *turns, play.submit(path))
    script = [play.findings(path), play.plan(path), implementer, play.verified("ev-0002")]
    return repo.task(play.TEXT, "--json", "--max-iterations", "1", script=script)


def own_python(repo: Repo, folder: str) -> None:
    """Give a project a Python of its own."""
    place = repo.root / folder / ".venv/bin/python"
    place.parent.mkdir(parents=True)
    place.write_text(PYTHON)
    place.chmod(0o755)


def test_a_project_in_a_folder_is_tested_there_by_its_own_python(new_repo: NewRepo) -> None:
    project = lay_project("backend", **{"tests/test_python.py": BY_ITS_OWN})
    repo = new_repo({**project, ".gitignore": ".venv/\n"})
    own_python(repo, "backend")
    done = write_calc(repo, "backend", RIGHT)
    assert done.code == 0, done.out
    (proof,) = done.json["proof"]
    assert proof["tests"] == ["backend/tests/test_calc.py::test_add"]
    whole, *_, alone = [each["command"] for each in repo.evidence()]
    assert whole == "cd backend && .venv/bin/python -m pytest -q"
    assert alone == f"{whole} tests/test_calc.py -k test_add"
    assert "canary" in (repo.folder / "report.md").read_text("utf-8")
    again = repo.run("verify", repo.folder.name)
    assert again.code == 0, again.out


def test_several_projects_are_tested_each_with_its_own_settings(new_repo: NewRepo) -> None:
    repo = new_repo(lay_several())
    (row,) = repo.run("verify", "--json").json
    assert (row["exit_code"], row["tests"]["passed"]) == (0, 5), row
    (repo.root / "two/app/calc.py").write_text(CALC)
    told = repo.run("verify")
    assert told.code == 1
    assert "exit 1, 4 passed, 1 failed" in told.out
    (quick,) = repo.run("verify", "--quick", "--json").json
    assert quick["command"].count(" -q tests/test_calc.py") == 2


def test_one_of_several_projects_is_proved_by_its_own_tests(new_repo: NewRepo) -> None:
    repo = new_repo({**lay_several(), "two/app/calc.py": CALC})
    done = write_calc(repo, "two", RIGHT)
    assert done.code == 0, done.out
    alone = repo.evidence()[-1]["command"]
    assert "cd two && " in alone
    assert "cd one && " not in alone
    assert "canary" in (repo.folder / "report.md").read_text("utf-8")


@pytest.mark.parametrize("folder", ["one", "two"])
def test_code_that_silences_its_runner_is_caught_in_any_project(folder: str, new_repo: NewRepo) -> None:
    repo = new_repo({**lay_several(), f"{folder}/app/calc.py": CALC})
    done = write_calc(repo, folder, SILENT + CALC)
    assert done.code == 3, done.out


@pytest.mark.skipif(not shutil.which("go"), reason="runs go")
def test_a_go_module_inside_another_is_tested_and_counted(new_repo: NewRepo) -> None:
    test = (
        'package {0}\n\nimport "testing"\n\nfunc Test(t *testing.T) {{\n\tif {1} {{\n\t\tt.Fail()\n\t}}\n}}\n'
    )
    files = {"go.mod": "module top\n\ngo 1.19\n", "e2e/go.mod": "module ends\n\ngo 1.19\n"}
    tests = {"top_test.go": test.format("top", "false"), "e2e/ends_test.go": test.format("ends", "true")}
    repo = new_repo({**files, **tests})
    _, row = repo.run("verify", "--json").json
    assert row["command"] == "r=0; { go test ./...; } || r=1; (cd e2e && go test ./...) || r=1; exit $r"
    assert (row["exit_code"], row["tests"]["passed"], row["tests"]["failed"]) == (1, 1, 1)


def run_command(repo: Repo, command: str, task: str) -> Done:
    """Let a task run one command."""
    path = "two/app/calc.py"
    turns: Any = play.turn(play.call("Bash", command=command))
    approving: Any = play.turn(play.call("SubmitReview", verdict="APPROVED", issues=[]))
    script = [
        play.findings(path),
        play.plan(path),
        play.role("implementer", turns, play.submit(path)),
        play.role("reviewer", approving),
        play.verified("ev-0003"),
    ]
    return repo.task(task, "--json", "--max-iterations", "1", script=script)


def test_a_project_that_is_removed_with_its_tests_is_asked_about(new_repo: NewRepo) -> None:
    repo = new_repo(lay_several())
    done = run_command(repo, "rm -r two", "remove the project two, nobody uses it")
    assert done.code == 75, done.out
    report = (repo.folder / "report.md").read_text("utf-8")
    assert "two/tests/test_calc.py::test_add is gone" in report
    assert "one/tests/test_calc.py::" not in report


@pytest.mark.parametrize("projects", [("two",), ("one", "two")])
def test_a_project_that_moves_with_its_tests_is_proved_by_them(
    projects: tuple[str, ...], new_repo: NewRepo
) -> None:
    repo = new_repo({name: text for name, text in lay_several().items() if name.startswith(projects)})
    done = run_command(repo, "mkdir libs && mv two libs/two", "move the project two to libs/two")
    assert done.code == 0, done.out
    again = repo.run("verify", repo.folder.name)
    assert again.code == 0, again.out


def test_a_project_that_moves_without_one_of_its_tests_is_asked_about(new_repo: NewRepo) -> None:
    repo = new_repo(lay_several())
    weaker = "sed -i 's/== 3/!= 0/' libs/two/tests/test_calc.py"
    done = run_command(repo, f"mkdir libs && mv two libs/two && {weaker}", "move the project two to libs/two")
    assert done.code == 75, done.out
    assert "two/tests/test_calc.py::test_add is gone" in (repo.folder / "report.md").read_text("utf-8")


def test_code_that_silences_its_runner_is_caught_in_a_project_that_moved(new_repo: NewRepo) -> None:
    repo = new_repo({**lay_several(), "silent.txt": SILENT})
    wrong = "(cat silent.txt; sed 's/a + b/a - b/' two/app/calc.py) > x && mv x two/app/calc.py"
    done = run_command(repo, f"{wrong} && mkdir libs && mv two libs/two", "move the project two to libs/two")
    assert done.code == 3, done.out
    assert "tampers with the test runner" in done.out
