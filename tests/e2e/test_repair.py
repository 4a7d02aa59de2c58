"""The embedded model at work: the demo, a repository with its own environment, and where it gives up."""

import os
import subprocess
import sys
import time
import venv
from pathlib import Path

import pytest

from tests.support import play
from tests.support.repo import COMMAND, Done, NewRepo, Repo

PAIR = {("base", 1), ("final", 0)}


class Demo:
    """A demo that ran with nothing but PATH and HOME, and the repository that it left."""

    def __init__(self, folder: Path, *words: str, **env: str) -> None:
        home = folder / "home"
        home.mkdir()
        bare = {"PATH": os.environ["PATH"], "HOME": str(home), **env}
        begin = time.monotonic()
        self.done = Done(
            subprocess.run(
                [str(COMMAND), "demo", *words],
                cwd=folder,
                env=bare,
                capture_output=True,
                text=True,
                check=False,
            )
        )
        self.seconds = time.monotonic() - begin
        named = self.done.err.splitlines()[0].removeprefix("demo repository: ")
        self.repo = Repo(Path(named), home)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return Demo(tmp_path_factory.mktemp("demo"), "shop")


def test_the_demo_needs_no_key_and_proves_its_repair(demo: Demo) -> None:
    assert demo.done.code == 0, demo.done.err
    assert demo.seconds < 90  # some five on a quiet machine
    assert demo.repo.root.name == "shop"
    records = [record for record in demo.repo.evidence() if record["check"] == "tests"]
    assert {(record["code"], record["exit_code"]) for record in records} >= PAIR
    red, green = records[0], [record for record in records if record["code"] == "final"][-1]
    assert red["tree_before"] != green["tree_before"]
    assert green["tests"]["passed"] == red["tests"]["passed"] + red["tests"]["failed"]
    for record in records:
        assert record["id"] in demo.done.out
        assert record["tree_before"][:7] in demo.done.out
    assert "NOT SANDBOXED" not in demo.done.out
    assert "Only your tests vouch for this fix" in demo.done.out


def test_the_demo_edits_one_line_and_no_test(demo: Demo) -> None:
    changed = demo.repo.git("diff", "--numstat").splitlines()
    assert len(changed) == 1
    added, removed, path = changed[0].split("\t")
    assert (added, removed) == ("1", "1")
    assert not path.startswith("tests/")
    assert demo.repo.git("status", "--porcelain") == f" M {path}\n"


def test_the_same_repository_twice_gives_the_same_diff(demo: Demo, tmp_path: Path) -> None:
    again = Demo(tmp_path, TMPDIR=str(tmp_path))
    assert again.done.code == 0
    assert again.repo.root.parent == tmp_path
    assert again.repo.git("diff") == demo.repo.git("diff") != ""
    assert [record["tree_before"] for record in again.repo.evidence()] == [
        record["tree_before"] for record in demo.repo.evidence()
    ]


LAYOUT = {
    ".gitignore": ".venv/\n*.egg-info/\n__pycache__/\n.pytest_cache/\n",
    "pyproject.toml": """[project]
name = 'pager'
version = '0.1'
[tool.pytest.ini_options]
testpaths = ['tests']
""",
    "src/pager/__init__.py": "",
    "src/pager/pages.py": """def last_page(items, size):
    full = items // size
    if items % size > 1:
        return full + 1
    return full
""",
    "tests/test_pages.py": """import pager.pages
import pytest


@pytest.mark.parametrize(("items", "pages"), [(9, 1), (10, 1), (11, 2), (12, 2), (19, 2), (20, 2)])
def test_last_page(items, pages):
    assert pager.pages.last_page(items, 10) == pages


def test_where_it_runs():
    import pathlib, sys
    root = pathlib.Path(__file__).parents[1]
    assert pathlib.Path(sys.prefix).name == ".venv"
    assert pathlib.Path(pager.pages.__file__) == root / "src/pager/pages.py"
""",
}


def make_environment(root: Path) -> Path:
    """Make `.venv` as `pip install -e .` leaves it, with the pytest of the running interpreter in reach."""
    folder = root / ".venv"
    venv.create(folder, with_pip=False, symlinks=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    (packages / "__editable__.pager.pth").write_text(f"{root / 'src'}\n")
    (packages / "reachable.pth").write_text(f"{Path(pytest.__file__).parents[1]}\n")
    return folder


def test_an_editable_package_is_tested_by_its_own_environment_on_the_right_tree(new_repo: NewRepo) -> None:
    repo = new_repo(LAYOUT)
    make_environment(repo.root)
    done = repo.task()
    assert done.code == 0, done.err
    tests = [record for record in repo.evidence() if record["check"] == "tests"]
    assert all(".venv/bin/python -m pytest" in record["command"] for record in tests)
    assert {(record["code"], record["exit_code"]) for record in tests} == PAIR
    green = [record for record in tests if record["code"] == "final"][-1]
    assert (tests[0]["tests"]["failed"], green["tests"]["passed"]) == (1, 7)
    assert repo.git("diff", "--numstat") == "1\t1\tsrc/pager/pages.py\n"


TWO_BUGS = {
    "acct.py": """class Account:
    def __init__(self):
        self.balance = 0

    def deposit(self, amount):
        self.balance = amount


def discount(price, rate):
    return price * (1 + rate)
""",
    "tests/test_acct.py": """import unittest

from acct import Account, discount


class AccountTest(unittest.TestCase):
    def test_deposit(self):
        account = Account()
        account.deposit(5)
        account.deposit(7)
        self.assertEqual(account.balance, 12)

    def test_discount(self):
        self.assertEqual([discount(100, 0.5), discount(50, 0.1), discount(8, 0)], [50, 45, 8])
""",
}


def test_two_bugs_with_two_tests_are_both_mended(new_repo: NewRepo) -> None:
    repo = new_repo(TWO_BUGS)
    done = repo.task()
    assert done.code in {0, 4}, done.err
    assert "+        self.balance += amount\n" in repo.diff()
    assert "+    return price * (1 - rate)\n" in repo.diff()


def test_tests_that_cannot_run_here_end_a_task_at_once(new_repo: NewRepo) -> None:
    repo = new_repo({**play.CALC, "calc.py": f"import nosuchmodule\n\n{play.CALC['calc.py']}"})
    done = repo.task()
    assert done.code == 6
    assert "nosuchmodule" in done.out
    assert "tests cannot run here" in done.out
    assert repo.diff() == ""


BEYOND = {
    "calc.py": "def area(shape):\n    return 0\n",
    "tests/test_calc.py": """import unittest

from calc import area


class AreaTest(unittest.TestCase):
    def test_square(self):
        self.assertEqual(area(("square", 3)), 9)

    def test_circle(self):
        self.assertEqual(area(("circle", 2)), "12.57")
""",
}


def test_what_it_cannot_mend_ends_with_advice_and_an_unchanged_tree(new_repo: NewRepo) -> None:
    repo = new_repo(BEYOND)
    done = repo.task(play.TEXT, "--json")
    assert done.code == 6
    assert done.json["exit_code"] == 6
    assert done.json["files_changed"] == []
    assert repo.diff() == ""
    assert repo.git("status", "--porcelain") == ""
    assert "--model" in done.out
    assert "ANTHROPIC_API_KEY" in done.out
    assert "not mended: none of " in done.out
    assert "suspicious lines: calc.py:" in done.out


def test_a_wrong_test_is_not_edited(new_repo: NewRepo) -> None:
    wrong = play.GREEN["tests/test_calc.py"].replace("add(1, 2), 3", "add(1, 2), 'three'")
    repo = new_repo({**play.GREEN, "tests/test_calc.py": wrong})
    done = repo.task()
    assert done.code == 6
    assert repo.git("status", "--porcelain") == ""


def test_a_green_repository_is_left_alone(new_repo: NewRepo) -> None:
    repo = new_repo(play.GREEN)
    done = repo.task()
    assert done.code in {1, 6}
    assert repo.git("status", "--porcelain") == ""
    assert "Nothing to fix: all" in done.out


def test_a_bug_is_mended_by_the_one_edit(new_repo: NewRepo) -> None:
    repo = new_repo(play.CALC)
    done = repo.task("please", "fix", "test_add")
    assert done.code == 0, done.err
    assert "-    return a - b\n+    return a + b\n" in repo.diff()
    assert repo.state()["change"]["files"] == ["calc.py"]


def test_a_name_that_is_no_text_stands_in_nobodys_way(new_repo: NewRepo) -> None:
    repo = new_repo(play.CALC)
    Path(os.fsdecode(os.fsencode(repo.root) + b"/b\xff.py")).write_text("x = 1\n")
    assert repo.commit().task().code == 0
    assert repo.diff().count("\n+    ") == 1


def test_a_repository_without_checks_is_told_so(new_repo: NewRepo) -> None:
    repo = new_repo({"notes.py": "x = 1\n"})
    done = repo.task()
    assert done.code == 6
    assert "No checks found: the built-in repair engine can only fix Python code" in done.out
    assert repo.diff() == ""


def test_a_linter_that_is_not_installed_rejects_no_repair(new_repo: NewRepo) -> None:
    repo = new_repo(
        {**play.CALC, ".claude/agentflow.yaml": "checks: {lint: nosuchlinter --strict calc.py}\n"}
    )
    assert repo.run("trust", "--yes").code == 0
    done = repo.task()
    assert done.code == 0, done.out
    assert repo.read("calc.py") == play.GREEN["calc.py"]
