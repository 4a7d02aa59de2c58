"""Repositories that hold more than one project: each is tested in its folder, as a person would there."""

import pytest

from tests.support import play, projects
from tests.support.repo import NewRepo

needs_go = pytest.mark.needs("go")
needs_npm = pytest.mark.needs("npm")


def test_a_project_in_a_folder_is_tested_there_by_its_own_python(new_repo: NewRepo) -> None:
    project = projects.lay_project("backend", **{"tests/test_python.py": projects.BY_ITS_OWN})
    repo = new_repo({**project, ".gitignore": ".venv/\n"})
    projects.own_python(repo, "backend")
    done = projects.write_calc(repo, "backend", projects.RIGHT)
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
    repo = new_repo(projects.lay_several())
    (row,) = repo.run("verify", "--json").json
    assert (row["exit_code"], row["tests"]["passed"]) == (0, 5), row
    (repo.root / "two/app/calc.py").write_text(projects.CALC)
    told = repo.run("verify")
    assert told.code == 1
    assert "exit 1, 4 passed, 1 failed" in told.out
    (quick,) = repo.run("verify", "--quick", "--json").json
    assert quick["command"].count(" -q tests/test_calc.py") == 2


def test_one_of_several_projects_is_proved_by_its_own_tests(new_repo: NewRepo) -> None:
    repo = new_repo({**projects.lay_several(), "two/app/calc.py": projects.CALC})
    done = projects.write_calc(repo, "two", projects.RIGHT)
    assert done.code == 0, done.out
    alone = repo.evidence()[-1]["command"]
    assert "cd two && " in alone
    assert "cd one && " not in alone
    assert "canary" in (repo.folder / "report.md").read_text("utf-8")


def test_code_that_silences_its_runner_is_caught_in_any_project(new_repo: NewRepo) -> None:
    repo = new_repo({**projects.lay_several(), "one/app/calc.py": projects.CALC})
    done = projects.write_calc(repo, "one", projects.SILENT + projects.CALC)
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


def test_a_project_that_is_removed_with_its_tests_is_asked_about(new_repo: NewRepo) -> None:
    repo = new_repo(projects.lay_several())
    done = projects.run_command(repo, "rm -r two", "remove the project two, nobody uses it")
    assert done.code == 75, done.out
    report = (repo.folder / "report.md").read_text("utf-8")
    assert "two/tests/test_calc.py::test_add is gone" in report
    assert "one/tests/test_calc.py::" not in report


@pytest.mark.parametrize("command", ["python3 -m pytest -q", "echo fine"], ids=["named", "uncounted"])
def test_a_folder_that_the_users_own_command_needs_is_asked_about_once_it_is_gone(
    command: str, new_repo: NewRepo
) -> None:
    repo = new_repo({**projects.lay_several(), ".claude/test-command": f"cd two && {command}\n"})
    assert repo.run("trust", "--yes").code == 0
    done = projects.run_command(repo, "rm -r two", "remove the project two, nobody uses it")
    assert done.code == 75, done.out
    assert "tests no longer runs: its folder is gone: two" in (repo.folder / "report.md").read_text("utf-8")


def test_a_folder_of_unittest_tests_that_is_removed_is_asked_about(new_repo: NewRepo) -> None:
    files = {f"{name}/test_{name}.py": play.CALC["tests/test_calc.py"] for name in ("one", "two")}
    done = projects.run_command(
        new_repo({**play.GREEN, **files}), "rm -r two", "remove the folder two, nobody needs it"
    )
    assert done.code == 75, done.out
    assert "test_two.CalcTest.test_add is gone" in done.out


def test_a_project_that_moves_with_its_tests_is_proved_by_them(new_repo: NewRepo) -> None:
    repo = new_repo(projects.lay_several())
    done = projects.run_command(repo, "mkdir libs && mv two libs/two", "move the project two to libs/two")
    assert done.code == 0, done.out
    again = repo.run("verify", repo.folder.name)
    assert again.code == 0, again.out


def test_a_project_that_a_task_adds_is_tested_at_once(new_repo: NewRepo) -> None:
    repo = new_repo(projects.ROOTS["beside"])
    done = projects.add_files(repo, projects.lay_second(**{"tests/more.json": "{}\n"}))
    assert done.code == 0, done.out
    (proof,) = done.json["proof"]
    assert proof["tests"] == ["two/tests/test_calc.py"]
    assert "the checks changed" not in (repo.folder / "report.md").read_text("utf-8")
    again = repo.run("verify", repo.folder.name)
    assert again.code == 0, again.out


@pytest.mark.parametrize(("other", "code"), projects.WRONG.values(), ids=projects.WRONG)
def test_a_project_that_a_task_adds_with_a_fault_does_not_pass(
    other: dict[str, str], code: int, new_repo: NewRepo
) -> None:
    done = projects.add_files(new_repo(projects.ROOTS["beside"]), projects.lay_second(**other))
    assert done.code == code, done.out


def test_settings_that_leave_out_a_test_of_the_new_project_are_asked_about(new_repo: NewRepo) -> None:
    settings = projects.PROJECT["pyproject.toml"].replace("markers =", "testpaths = ['tests']\nmarkers =")
    repo = new_repo(projects.ROOTS["beside"])
    hidden = {"app/test_more.py": projects.PROJECT["tests/test_calc.py"].replace("== 3", "== 4")}
    done = projects.add_files(repo, projects.lay_second(**{"pyproject.toml": settings, **hidden}))
    assert done.code == 75, done.out


@pytest.mark.parametrize("name", ["tests/pyproject.toml", "pytest.ini"])
def test_settings_that_a_task_puts_among_tests_are_asked_about(name: str, new_repo: NewRepo) -> None:
    toml, ini = '[tool.pytest.ini_options]\naddopts = "-k two"\n', "[pytest]\naddopts = -k two\n"
    settings = ini if name.endswith("ini") else toml
    repo = new_repo(projects.ROOTS["below"])
    done = projects.add_files(
        repo, {name: settings, "tests/test_two.py": "def test_two():\n    assert True\n"}
    )
    assert done.code == 75, done.out


@needs_go
@pytest.mark.parametrize(("code", "end"), [("return a + b", 0), ("return a - b", 3)])
def test_a_go_module_that_a_task_adds_is_tested_at_once(code: str, end: int, new_repo: NewRepo) -> None:
    repo = new_repo(projects.TOP)
    files = {"two/go.mod": "module two\n\ngo 1.19\n", **projects.lay_module("two/", "two", code)}
    done = projects.add_files(repo, files, evidence="ev-0004")
    assert done.code == end, done.out
    assert any("(cd two && go test ./...)" in each["command"] for each in repo.evidence())


@needs_go
def test_a_go_module_laid_over_packages_with_tests_takes_none_of_them_away(new_repo: NewRepo) -> None:
    repo = new_repo(projects.TOP)
    done = projects.add_files(
        repo, {"sub/go.mod": "module top/sub\n\ngo 1.19\n", **projects.lay_module("sub/two/", "two")}
    )
    assert done.code == 3, done.out
    assert "top/sub::TestAdd" in done.out


def test_a_module_that_is_renamed_in_a_project_is_proved(new_repo: NewRepo) -> None:
    repo = new_repo(projects.lay_several())
    done = projects.run_command(repo, projects.RENAMED, "rename two/app/calc.py to two/app/sums.py")
    assert done.code == 0, done.out
    assert [each["kind"] for each in done.json["proof"]] == ["rename"]


@needs_npm
@pytest.mark.parametrize("script", projects.SCRIPTS.values(), ids=projects.SCRIPTS)
def test_packages_of_a_workspace_are_tested_and_proved(script: str, new_repo: NewRepo) -> None:
    top = {"package.json": f'{{"name": "top", "workspaces": ["packages/*"]{script}}}\n'}
    repo = new_repo({**top, **projects.lay_package("one"), **projects.lay_package("two", "a - b")})
    turns = play.edit("packages/two/index.js", "a - b", "a + b")
    done = projects.run_turns(repo, play.TEXT, *turns)
    assert done.code == 0, done.out
    (proof,) = done.json["proof"]
    assert proof["tests"] == ["packages/two/test/two.test.js::adds"]


@needs_npm
@pytest.mark.parametrize(("code", "end"), [("a + b", 0), ("a - b", 3)])
def test_a_package_that_a_task_adds_to_a_workspace_is_tested_at_once(
    code: str, end: int, new_repo: NewRepo
) -> None:
    top = {"package.json": f'{{"name": "top", "workspaces": ["packages/*"]{projects.SCRIPTS["said"]}}}\n'}
    done = projects.add_files(
        new_repo({**top, **projects.lay_package("one")}), projects.lay_package("two", code)
    )
    assert done.code == end, done.out
