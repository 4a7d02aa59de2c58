"""What proves a change is red on the code from before it, and not by luck (A35, A86)."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.e2e.test_flaky import AT_ONCE, CHANCE, FAILS_AT, ODD
from tests.support import play
from tests.support.attempts import Attempt
from tests.support.repo import Repo
from tests.support.tampering import BASE, RIGHT, TASK, TESTS

NewRepo = Callable[[dict[str, str]], Repo]
CLEARER = "make double clearer in calc.py"


def crew(*turns: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        play.findings(),
        play.plan("calc.py"),
        play.role("implementer", *play.edit("calc.py", "2 * a", "a * 2"), *turns, play.submit("calc.py")),
        play.verified("ev-0002"),
    ]


def odd(repo: Repo, *at: int) -> str:
    """Return a test that fails at some of its runs, counted outside of every copy."""
    config = repo.home / ".config/agentflow/config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(AT_ONCE)
    return CHANCE.format(log=str(repo.home / "runs"), body=FAILS_AT.format(at))


def commands(repo: Repo) -> list[str]:
    return [one["command"].partition(" -m ")[2] for one in repo.evidence()]


def report(repo: Repo) -> str:
    return (repo.folder / "report.md").read_text()


def test_what_was_red_runs_once_more_alone_on_the_code_from_before(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, BASE)

    assert attempt.run(TASK, {"pager/core.py": RIGHT}).code == 0

    *_, last = attempt.repo.evidence()
    alone = "pytest -q tests/test_core.py -k 'test_last_page or test_many'"
    assert commands(attempt.repo) == ["pytest -q", "pytest -q", alone]
    assert (last["surface"], last["code"], last["exit_code"]) == ("final", "base", 1)


def test_a_test_that_was_red_by_luck_proves_nothing_and_is_named_flaky(new_repo: NewRepo) -> None:
    repo = new_repo(play.GREEN)
    repo.write({"tests/test_odd.py": odd(repo, 1)}).commit()

    done = repo.task("--no-sandbox", "--json", CLEARER, script=crew())

    assert (done.code, sorted(done.json["caveats"])) == (4, ["flaky", "unproved"])
    base, _, last = repo.evidence()
    assert last["flaky"] == [ODD]
    assert last["tree_before"] == base["tree_before"]
    assert f"mixed results on the same tree (ev-0003): {ODD}" in report(repo)


def test_a_target_that_is_green_by_luck_is_not_mended(new_repo: NewRepo) -> None:
    repo = new_repo(play.GREEN)
    repo.write({"tests/test_odd.py": odd(repo, 1)}).commit()

    done = repo.task("--no-sandbox", "--json", "fix test_odd in calc.py", script=crew())

    assert (done.code, done.json["caveats"][0]) == (4, "flaky")


def test_a_lucky_test_that_the_task_names_and_the_change_touches_proves_nothing(new_repo: NewRepo) -> None:
    repo = new_repo(play.GREEN)
    text = odd(repo, 1)
    repo.write({"tests/test_odd.py": text}).commit()
    touched = play.call("Write", file_path="tests/test_odd.py", content=f"{text}# said\n")
    turns = [play.turn(play.call("Read", file_path="tests/test_odd.py")), play.turn(touched)]

    done = repo.task("--no-sandbox", "--json", "fix test_odd in calc.py", script=crew(*turns))

    assert (done.code, done.json["caveats"]) == (4, ["unproved"])


def test_a_new_test_that_fails_by_luck_proves_nothing(new_repo: NewRepo) -> None:
    repo = new_repo(play.GREEN)
    new = play.turn(play.call("Write", file_path="tests/test_odd.py", content=odd(repo, 2, 3)))

    done = repo.task("--no-sandbox", "--json", "--no-input", CLEARER, script=crew(new))

    assert done.code == 4, done.out + done.err
    assert "unproved" in done.json["caveats"]
    assert "flaky" in done.json["caveats"]


def test_a_test_that_fails_without_the_others_proves_nothing(new_repo: NewRepo) -> None:
    leaning = """import os
import unittest


class LeaningTest(unittest.TestCase):
    def test_leaning(self):
        self.assertIn("LEAN_ON", os.environ)
"""
    upright = play.GREEN["tests/test_calc.py"].replace(
        "    def test_add(self):\n", '    def test_add(self):\n        os.environ["LEAN_ON"] = "1"\n'
    )
    repo = new_repo({**play.GREEN, "tests/test_calc.py": f"import os\n{upright}"})
    new = play.turn(play.call("Write", file_path="tests/test_leaning.py", content=leaning))

    done = repo.task("--json", "--no-input", CLEARER, script=crew(new))

    assert (done.code, "unproved" in done.json["caveats"]) == (4, True)
    assert [one["code"] for one in repo.evidence()] == ["base", "final", "final", "base", "final"]
    assert "LEAN_ON" not in os.environ


def test_a_new_test_in_a_large_file_proves_a_change(tmp_path: Path) -> None:
    green = TESTS[: TESTS.index("def test_last_page")] + f"MANY = {['x'] * 60_000}\n"
    attempt = Attempt(tmp_path, {**BASE, "tests/test_core.py": green})
    new = "\n\ndef test_part():\n    assert pages(41, 10) == 5\n"

    assert attempt.run(TASK, {"pager/core.py": RIGHT, "tests/test_core.py": green + new}).code == 0
    narrowed = [command for command in commands(attempt.repo) if " -k " in command]
    assert {command.rpartition(" -k ")[2] for command in narrowed} == {"test_part"}
    assert len(narrowed) == 2


def test_the_first_test_of_a_suite_has_to_fail_without_the_change(tmp_path: Path) -> None:
    base = {**BASE, "pager/core.py": RIGHT, "tests/test_core.py": None, "tests/conftest.py": None}
    attempt = Attempt(tmp_path, {**base, "pytest.ini": "[pytest]\n"})
    files = {
        "pager/core.py": f"{RIGHT}\n\ndef first():\n    return 1\n",
        "tests/test_new.py": "def test_nothing():\n    assert True\n",
    }

    assert attempt.run("add first to pager/core.py", files).code == 75
    assert attempt.settle("approve").code == 4
    assert "not evidence, passes without the change: tests/test_new.py::test_nothing" in attempt.report


def test_a_case_that_the_code_itself_brings_in_proves_nothing(tmp_path: Path) -> None:
    tests = TESTS.replace("[(0, 0), (10, 1), (233, 24)]", "CASES").replace(
        "import page,", "import CASES, page,"
    )
    code = f"CASES = [(0, 0), (10, 1)]\n\n\n{RIGHT}"
    attempt = Attempt(tmp_path, {**BASE, "pager/core.py": code, "tests/test_core.py": tests})

    done = attempt.run(
        "speed up pages() in pager/core.py", {"pager/core.py": code.replace("(10, 1)", "(10, 1), (20, 2)")}
    )

    assert done.code == 4
    assert "unproved" in attempt.report


def test_a_new_test_of_a_new_module_proves_it_though_it_cannot_be_loaded_without(tmp_path: Path) -> None:
    test = "from pager.total import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
    files = {"pager/total.py": "def total(sizes):\n    return sum(sizes)\n", "tests/test_total.py": test}
    attempt = Attempt(tmp_path, {**BASE, "pager/core.py": RIGHT})

    assert attempt.run("add total() in pager/total.py", files).code == 0

    narrow = "pytest -q tests/test_total.py -k test_total"
    assert commands(attempt.repo)[-2:] == [narrow, narrow]
    done = attempt.repo.run("verify", attempt.repo.folder.name)
    assert done.code == 0, done.out
    assert attempt.repo.run("replay", attempt.repo.folder.name).code == 0


def test_no_copy_reads_what_a_linked_environment_leads_to(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "token").write_text("private")
    unread = "import os\n\n\ndef test_unread():\n    assert not os.path.exists('node_modules/token')\n"
    attempt = Attempt(tmp_path, {**BASE, "tests/test_unread.py": unread})
    (attempt.repo.root / "node_modules").symlink_to(outside, target_is_directory=True)
    attempt.repo.commit()

    assert attempt.run("fix the last page in pager/core.py", {"pager/core.py": RIGHT}).code == 0

    task = attempt.repo.folder.name
    verified, replayed = attempt.repo.run("verify", task), attempt.repo.run("replay", task)
    assert (verified.code, replayed.code) == (0, 0), (verified.out, replayed.out)


def test_a_new_test_that_the_runner_does_not_find_is_named(new_repo: NewRepo) -> None:
    first = "import unittest\n\nfrom calc import double\n\n\nclass CalcTest(unittest.TestCase):\n"
    repo = new_repo(
        {
            "calc.py": play.GREEN["calc.py"],
            "test_calc.py": f"{first}    def test_double(self):\n        self.assertEqual(double(2), 4)\n",
        }
    )
    new = "from calc import triple\n\n\ndef test_triple():\n    assert triple(2) == 6\n"
    turns = [
        *play.edit("calc.py", "def double", "def triple(a):\n    return 3 * a\n\n\ndef double"),
        play.turn(play.call("Write", file_path="test_triple.py", content=new)),
    ]
    done = repo.task("--json", "add triple to calc.py", script=crew(*turns))

    assert (done.code, done.json["caveats"]) == (4, ["unproved"]), done.err
    assert "test_triple.py: none of its tests ran: `" in str(done.json["unproved"])


READING = """import pathlib

import pytest

from calc import double

LINES = pathlib.Path(__file__).with_name("cases.txt").read_text().split()


@pytest.mark.parametrize("line", LINES)
def test_case(line):
    assert double(int(line)) % 2 == 0
"""


def test_a_test_that_fails_by_luck_proves_no_new_data(new_repo: NewRepo) -> None:
    repo = new_repo({**play.GREEN, "tests/test_cases.py": READING, "tests/cases.txt": "1\n2\n"})
    repo.write({"tests/test_odd.py": odd(repo, 4)}).commit()
    edit = play.edit("tests/cases.txt", "2\n", "2\n3\n")
    script = [play.role("implementer", *edit, play.submit("tests/cases.txt")), play.verified("ev-0002")]

    done = repo.task("--no-sandbox", "--json", "add a case to tests/cases.txt", script=script)

    assert not any("test_odd" in str(each) for each in done.json["proof"])
    assert done.code in (0, 4), done.err
