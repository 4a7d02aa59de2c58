"""What repositories with several projects are changed to, beyond the cases that CI runs."""

import pytest

from tests.support import play, projects
from tests.support.repo import NewRepo


def test_the_only_project_that_moves_with_its_tests_is_proved_by_them(new_repo: NewRepo) -> None:
    repo = new_repo(projects.lay_project("two", **{"app/calc.py": projects.RIGHT}))
    done = projects.run_command(repo, "mkdir libs && mv two libs/two", "move the project two to libs/two")
    assert done.code == 0, done.out
    again = repo.run("verify", repo.folder.name)
    assert again.code == 0, again.out


def test_a_project_that_moves_without_one_of_its_tests_is_asked_about(new_repo: NewRepo) -> None:
    repo = new_repo(projects.lay_several())
    weaker = "sed -i 's/== 3/!= 0/' libs/two/tests/test_calc.py"
    done = projects.run_command(
        repo, f"mkdir libs && mv two libs/two && {weaker}", "move the project two to libs/two"
    )
    assert done.code == 75, done.out
    assert "two/tests/test_calc.py::test_add is gone" in (repo.folder / "report.md").read_text("utf-8")


def test_code_that_silences_its_runner_is_caught_in_a_project_that_moved(new_repo: NewRepo) -> None:
    repo = new_repo({**projects.lay_several(), "silent.txt": projects.SILENT})
    wrong = "(cat silent.txt; sed 's/a + b/a - b/' two/app/calc.py) > x && mv x two/app/calc.py"
    done = projects.run_command(
        repo, f"{wrong} && mkdir libs && mv two libs/two", "move the project two to libs/two"
    )
    assert done.code == 3, done.out
    assert "tampers with the test runner" in done.out


@pytest.mark.parametrize("root", ["below", "below unittest"])
def test_a_project_that_a_task_adds_below_another_is_tested_at_once(root: str, new_repo: NewRepo) -> None:
    repo = new_repo(projects.ROOTS[root])
    done = projects.add_files(repo, projects.lay_second())
    assert done.code == 0, done.out
    again = repo.run("verify", repo.folder.name)
    assert again.code == 0, again.out


NAMING = [
    "(cd one && python3 -m pytest -q); (cd two && python3 -m pytest -q)",
    "cd one && true; cd ../two && true",
]


@pytest.mark.parametrize("change", ["rm -r two", "mv two three"])
@pytest.mark.parametrize("command", NAMING)
def test_a_folder_that_the_users_own_command_names_among_others_is_asked_about_once_it_is_gone(
    command: str, change: str, new_repo: NewRepo
) -> None:
    repo = new_repo({**projects.lay_several(), ".claude/test-command": f"{command}\n"})
    assert repo.run("trust", "--yes").code == 0
    wrong = f"sed -i 's/a + b/a - b/' one/app/calc.py && {change}"
    turn = play.turn(play.call("Bash", command=wrong))
    done = projects.run_turns(repo, "take the project two away", turn)
    assert done.code == 75, done.out
    report = (repo.folder / "report.md").read_text("utf-8")
    assert "tests no longer runs: its folder is gone: two" in report
    (waiting,) = repo.state()["pending"]
    assert repo.run("approve", waiting["id"]).code == 0
    assert repo.run("resume").code == 4


SUMS = (
    "const test = require('node:test'), assert = require('node:assert');\n"
    "const {{ add }} = require('../index.js');\n{}\n"
)
LACKING = {
    "fixture": {
        "calc.py": projects.CALC,
        "requirements-dev.txt": "pytest\npytest-mock\n",
        "tests/test_calc.py": "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
        "tests/test_more.py": "def test_more(mocker):\n    assert mocker\n",
    },
    "module": {
        "package.json": '{"scripts": {"test": "node --test"}, "dependencies": {"left-pad": "1"}}\n',
        "index.js": "exports.add = (a, b) => a - b;\n",
        "test/a.test.js": SUMS.format("test('adds', () => assert.equal(add(1, 2), 3));"),
        "test/b.test.js": SUMS.format("require('left-pad');"),
    },
}


@pytest.mark.parametrize(
    ("kind", "sum_of", "end"),
    [
        ("fixture", "a + b", 4),
        ("fixture", "a * b + 9", 3),
        ("module", "a + b", 4),
        ("module", "a * b + 9", 3),
        ("module", "require('left-pad') && a + b", 3),
    ],
)
def test_what_this_machine_lacks_is_no_fault_of_the_change(
    kind: str, sum_of: str, end: int, new_repo: NewRepo
) -> None:
    repo = new_repo(LACKING[kind])
    (path,) = {"calc.py", "index.js"} & LACKING[kind].keys()
    done = projects.run_turns(repo, play.TEXT, *play.edit(path, "a - b", sum_of))
    assert done.code == end, done.out
    report = (repo.folder / "report.md").read_text("utf-8")
    assert "tests cannot run as a whole here" in report


def test_the_built_in_engine_runs_the_tests_of_a_project_in_its_folder(new_repo: NewRepo) -> None:
    test = projects.PROJECT["tests/test_calc.py"].replace("== 3", "== int(Path('sums.txt').read_text()) - 1")
    repo = new_repo(projects.lay_project("backend", **{"tests/test_calc.py": test}))
    done = repo.task(play.TEXT, "--json")
    assert done.code == 0, done.out
    assert repo.read("backend/app/calc.py") == projects.RIGHT


def lay_crate(name: str, code: str = "a + b") -> dict[str, str]:
    test = f"#[test]\nfn adds_{name}() {{\n    assert_eq!({name}::add(1, 2), 3);\n}}\n"
    return {
        f"{name}/Cargo.toml": f'[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2021"\n',
        f"{name}/src/lib.rs": f"pub fn add(a: i32, b: i32) -> i32 {{\n    {code}\n}}\n",
        f"{name}/tests/add.rs": test,
    }


@pytest.mark.needs("cargo")
@pytest.mark.parametrize(("code", "end"), [("a + b", 0), ("a * b", 3)])
def test_crates_without_a_manifest_above_them_are_tested_each_in_its_folder(
    code: str, end: int, new_repo: NewRepo
) -> None:
    files = {".gitignore": "target/\nCargo.lock\n", **lay_crate("one"), **lay_crate("two", "a - b")}
    done = projects.run_turns(
        new_repo(files), play.TEXT, *play.edit("two/src/lib.rs", "a - b", code), evidence="ev-0004"
    )
    assert done.code == end, done.out


@pytest.mark.needs("cargo")
@pytest.mark.parametrize(("code", "end"), [("a + b", 0), ("a * b", 3), ("if a > 9 { 9 } else { a + b }", 4)])
def test_a_crate_that_a_task_adds_beside_others_is_tested_at_once(
    code: str, end: int, new_repo: NewRepo
) -> None:
    two = lay_crate("two", code)
    two["two/src/lib.rs"] += (
        "\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn adds() {\n"
    )
    two["two/src/lib.rs"] += "        assert_eq!(add(1, 2), 3);\n    }\n}\n"
    del two["two/tests/add.rs"]
    repo = new_repo({".gitignore": "target/\nCargo.lock\n", **lay_crate("one")})
    done = projects.add_files(repo, two, evidence="ev-0004")
    assert done.code == end, done.out


SETTINGS = {
    "pyproject.toml": '[tool.pytest.ini_options]\ntestpaths = ["tests"]\n',
    "pytest.ini": "[pytest]\ntestpaths =\n    ./tests/\n",
    "setup.cfg": "[tool:pytest]\naddopts = -ra\n",
}


@pytest.mark.parametrize(
    ("other", "code"), [({}, 0), *projects.WRONG.values()], ids=["right", *projects.WRONG]
)
@pytest.mark.parametrize("settings", SETTINGS)
def test_a_project_that_a_task_adds_below_a_root_with_settings_is_tested_at_once(
    settings: str, other: dict[str, str], code: int, new_repo: NewRepo
) -> None:
    repo = new_repo({**projects.ROOTS["below"], settings: SETTINGS[settings]})
    done = projects.add_files(repo, projects.lay_second(**other))
    assert done.code == code, done.out
    again = repo.run("verify", repo.folder.name)
    assert again.code == 0, again.out


RENAMED_WITH_MORE = {
    "in another project": ("sed -i 's/app.calc/app.sums/' one/tests/*.py", 3),
    "in the code": ("sed -i 's/2 \\* a/a + a/' two/app/sums.py", 75),
}


@pytest.mark.parametrize(("command", "code"), RENAMED_WITH_MORE.values(), ids=list(RENAMED_WITH_MORE))
def test_a_module_that_is_renamed_beside_another_change_is_not_proved(
    command: str, code: int, new_repo: NewRepo
) -> None:
    repo = new_repo(projects.lay_several())
    task = "rename two/app/calc.py to two/app/sums.py"
    done = projects.run_command(repo, f"{projects.RENAMED} && {command}", task)
    assert done.code == code, done.out


def test_a_module_of_a_project_that_a_script_beside_it_names_is_not_proved_by_renaming(
    new_repo: NewRepo,
) -> None:
    script = "import sys\n\nsys.path.insert(0, 'two')\n\nimport app.calc\n\nprint(app.calc.add(1, 2))\n"
    repo = new_repo({**projects.lay_several(), "show.py": script})
    done = projects.run_command(repo, projects.RENAMED, "rename two/app/calc.py to two/app/sums.py")
    assert done.code == 75, done.out


UNTESTED = {
    "a file": {"two/other.go": "package two\n\nfunc Sub(a, b int) int {\n\treturn a + b\n}\n"},
    "a branch": projects.lay_module("two/", "two", "if a > 9 {\n\t\treturn 7\n\t}\n\treturn a + b"),
    "the test": {"two/add_test.go": 'package two\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) {}\n'},
}


@pytest.mark.needs("go")
@pytest.mark.parametrize("wrong", UNTESTED.values(), ids=list(UNTESTED))
def test_a_go_module_that_a_task_adds_proves_no_more_than_its_tests_try(
    wrong: dict[str, str], new_repo: NewRepo
) -> None:
    repo = new_repo(projects.TOP)
    files = {"two/go.mod": "module two\n\ngo 1.19\n", **projects.lay_module("two/", "two")}
    done = projects.add_files(repo, files | wrong, evidence="ev-0004")
    assert done.code == 4, done.out
    assert "no test sees which version" not in done.out
    again = repo.run("verify", repo.folder.name)
    assert again.code == 0, again.out
