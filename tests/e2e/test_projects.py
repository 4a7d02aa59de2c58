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
needs_go = pytest.mark.skipif(not shutil.which("go"), reason="runs go")


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


@needs_go
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


def run_turns(repo: Repo, task: str, *turns: Any, evidence: str = "ev-0002") -> Done:
    """Let a task do what some turns of its implementer do, with a crew that has no objection."""
    path = repo.git("ls-files").split()[-1]
    approving: Any = play.turn(play.call("SubmitReview", verdict="APPROVED", issues=[]))
    script = [
        play.findings(path),
        play.plan(path),
        play.role("implementer", *turns, play.submit(path)),
        play.role("reviewer", approving),
        play.verified(evidence),
    ]
    return repo.task(task, "--json", "--max-iterations", "1", script=script)


def run_command(repo: Repo, command: str, task: str) -> Done:
    """Let a task run one command."""
    return run_turns(repo, task, play.turn(play.call("Bash", command=command)), evidence="ev-0003")


def add_files(repo: Repo, files: dict[str, str], evidence: str = "ev-0002") -> Done:
    """Let a task write files that are new."""
    calls = (play.call("Write", file_path=path, content=text) for path, text in files.items())
    return run_turns(
        repo, "add the project two, which adds and doubles", play.turn(*calls), evidence=evidence
    )


def test_a_project_that_is_removed_with_its_tests_is_asked_about(new_repo: NewRepo) -> None:
    repo = new_repo(lay_several())
    done = run_command(repo, "rm -r two", "remove the project two, nobody uses it")
    assert done.code == 75, done.out
    report = (repo.folder / "report.md").read_text("utf-8")
    assert "two/tests/test_calc.py::test_add is gone" in report
    assert "one/tests/test_calc.py::" not in report


@pytest.mark.parametrize("command", ["python3 -m pytest -q", "echo fine"], ids=["named", "uncounted"])
def test_a_folder_that_the_users_own_command_needs_is_asked_about_once_it_is_gone(
    command: str, new_repo: NewRepo
) -> None:
    repo = new_repo({**lay_several(), ".claude/test-command": f"cd two && {command}\n"})
    assert repo.run("trust", "--yes").code == 0
    done = run_command(repo, "rm -r two", "remove the project two, nobody uses it")
    assert done.code == 75, done.out
    assert "tests no longer runs: its folder is gone: two" in (repo.folder / "report.md").read_text("utf-8")


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


def lay_second(**other: str) -> dict[str, str]:
    """Return a project that a task adds, with all of its code tested."""
    return lay_project("two", **{"app/calc.py": RIGHT, **other})


ROOTS = {
    "beside": {**lay_project("one", **{"app/calc.py": RIGHT})},
    "below": {
        "calc.py": RIGHT,
        "tests/test_root.py": "from calc import add\n\n\ndef test_root():\n    assert add(1, 1) == 2\n",
    },
    "below unittest": play.GREEN,
}


@pytest.mark.parametrize("before", ROOTS.values(), ids=ROOTS)
def test_a_project_that_a_task_adds_is_tested_at_once(before: dict[str, str], new_repo: NewRepo) -> None:
    repo = new_repo(before)
    done = add_files(repo, lay_second(**{"tests/more.json": "{}\n"}))
    assert done.code == 0, done.out
    (proof,) = done.json["proof"]
    assert proof["tests"] == ["two/tests/test_calc.py"]
    again = repo.run("verify", repo.folder.name)
    assert again.code == 0, again.out


WRONG = {
    "a failing test": ({"app/calc.py": CALC}, 3),
    "silenced": ({"app/calc.py": SILENT + CALC}, 3),
    "a silencing conftest": ({"app/calc.py": CALC, "conftest.py": SILENT}, 3),
}


@pytest.mark.parametrize(("other", "code"), WRONG.values(), ids=WRONG)
def test_a_project_that_a_task_adds_with_a_fault_does_not_pass(
    other: dict[str, str], code: int, new_repo: NewRepo
) -> None:
    done = add_files(new_repo(ROOTS["beside"]), lay_second(**other))
    assert done.code == code, done.out


def test_settings_that_leave_out_a_test_of_the_new_project_are_asked_about(new_repo: NewRepo) -> None:
    settings = PROJECT["pyproject.toml"].replace("markers =", "testpaths = ['tests']\nmarkers =")
    repo = new_repo(ROOTS["beside"])
    hidden = {"app/test_more.py": PROJECT["tests/test_calc.py"].replace("== 3", "== 4")}
    done = add_files(repo, lay_second(**{"pyproject.toml": settings, **hidden}))
    assert done.code == 75, done.out


@pytest.mark.parametrize("name", ["tests/pyproject.toml", "pytest.ini"])
def test_settings_that_a_task_puts_among_tests_are_asked_about(name: str, new_repo: NewRepo) -> None:
    toml, ini = '[tool.pytest.ini_options]\naddopts = "-k two"\n', "[pytest]\naddopts = -k two\n"
    settings = ini if name.endswith("ini") else toml
    repo = new_repo(ROOTS["below"])
    done = add_files(repo, {name: settings, "tests/test_two.py": "def test_two():\n    assert True\n"})
    assert done.code == 75, done.out


def lay_module(folder: str, name: str, code: str = "return a + b") -> dict[str, str]:
    """Return the files of a Go package that adds, with its test."""
    test = "func TestAdd(t *testing.T) {\n\tif Add(1, 2) != 3 {\n\t\tt.Fail()\n\t}\n}\n"
    test = f'package {name}\n\nimport "testing"\n\n{test}'
    text = f"package {name}\n\nfunc Add(a, b int) int {{\n\t{code}\n}}\n"
    return {f"{folder}add.go": text, f"{folder}add_test.go": test}


TOP = {"go.mod": "module top\n\ngo 1.19\n", **lay_module("", "top"), **lay_module("sub/", "sub")}


@needs_go
@pytest.mark.parametrize(("code", "end"), [("return a + b", 4), ("return a - b", 3)])
def test_a_go_module_that_a_task_adds_is_tested_at_once(code: str, end: int, new_repo: NewRepo) -> None:
    repo = new_repo(TOP)
    files = {"two/go.mod": "module two\n\ngo 1.19\n", **lay_module("two/", "two", code)}
    done = add_files(repo, files, evidence="ev-0004")
    assert done.code == end, done.out
    assert any("(cd two && go test ./...)" in each["command"] for each in repo.evidence())
    if end == 4:  # no test sees a version that a new go.mod names
        assert done.json["caveats"] == ["unproved"]
        assert repo.run("verify", repo.folder.name).code == 0


@needs_go
def test_a_go_module_laid_over_packages_with_tests_takes_none_of_them_away(new_repo: NewRepo) -> None:
    repo = new_repo(TOP)
    done = add_files(repo, {"sub/go.mod": "module top/sub\n\ngo 1.19\n", **lay_module("sub/two/", "two")})
    assert done.code == 3, done.out
    assert "top/sub::TestAdd" in done.out


RENAMED = "mv two/app/calc.py two/app/sums.py && sed -i 's/app.calc/app.sums/' two/tests/*.py"
RENAMING = {
    "in the project alone": (RENAMED, 0),
    "and in another project": (f"{RENAMED} && sed -i 's/app.calc/app.sums/' one/tests/*.py", 3),
    "and the code changed": (f"{RENAMED} && sed -i 's/2 \\* a/a + a/' two/app/sums.py", 75),
}


@pytest.mark.parametrize(("command", "code"), RENAMING.values(), ids=RENAMING)
def test_a_module_that_is_renamed_in_a_project_is_proved(command: str, code: int, new_repo: NewRepo) -> None:
    done = run_command(new_repo(lay_several()), command, "rename two/app/calc.py to two/app/sums.py")
    assert done.code == code, done.out
    assert code or [each["kind"] for each in done.json["proof"]] == ["rename"]


def test_a_module_of_a_project_that_a_script_beside_it_names_is_not_proved_by_renaming(
    new_repo: NewRepo,
) -> None:
    script = "import sys\n\nsys.path.insert(0, 'two')\n\nimport app.calc\n\nprint(app.calc.add(1, 2))\n"
    repo = new_repo({**lay_several(), "show.py": script})
    done = run_command(repo, RENAMED, "rename two/app/calc.py to two/app/sums.py")
    assert done.code == 75, done.out


def lay_package(name: str, code: str = "a + b") -> dict[str, str]:
    """Return the files of a package of npm that adds, with its test."""
    test = (
        "const test = require('node:test'), assert = require('node:assert');\n"
        "const { add } = require('../index.js');\n\n"
        "test('adds', () => assert.equal(add(1, 2), 3));\n"
    )
    return {
        f"packages/{name}/package.json": f'{{"name": "{name}", "scripts": {{"test": "node --test"}}}}\n',
        f"packages/{name}/index.js": f"exports.add = (a, b) => {code};\n",
        f"packages/{name}/test/{name}.test.js": test,
    }


SCRIPTS = {"said": ', "scripts": {"test": "npm test --workspaces"}', "unsaid": ""}


@pytest.mark.skipif(not shutil.which("npm"), reason="runs npm")
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_packages_of_a_workspace_are_tested_and_proved(script: str, new_repo: NewRepo) -> None:
    top = {"package.json": f'{{"name": "top", "workspaces": ["packages/*"]{script}}}\n'}
    repo = new_repo({**top, **lay_package("one"), **lay_package("two", "a - b")})
    turns = play.edit("packages/two/index.js", "a - b", "a + b")
    done = run_turns(repo, play.TEXT, *turns)
    assert done.code == 0, done.out
    (proof,) = done.json["proof"]
    assert proof["tests"] == ["packages/two/test/two.test.js::adds"]


@pytest.mark.skipif(not shutil.which("npm"), reason="runs npm")
@pytest.mark.parametrize(("code", "end"), [("a + b", 0), ("a - b", 3)])
def test_a_package_that_a_task_adds_to_a_workspace_is_tested_at_once(
    code: str, end: int, new_repo: NewRepo
) -> None:
    top = {"package.json": f'{{"name": "top", "workspaces": ["packages/*"]{SCRIPTS["said"]}}}\n'}
    done = add_files(new_repo({**top, **lay_package("one")}), lay_package("two", code))
    assert done.code == end, done.out
