"""What a task prints: how much of it, and not into what it is judged by."""

from pathlib import Path

import pytest

from tests.support import play
from tests.support.repo import NewRepo, Repo


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "repo", tmp_path / "home").write(play.CALC).commit()


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_output_into_the_tree_is_refused_before_anything_begins(repo: Repo, stream: str) -> None:
    path = repo.root / "out.txt"
    with path.open("w") as file:
        running = repo.start("task", play.TEXT, **{stream: file})
        said = "".join(part for part in running.communicate() if part) + path.read_text()
    assert running.returncode == 2
    assert "the output would go to out.txt" in said
    assert repo.tasks == []


def test_events_into_the_tree_are_refused_and_the_file_is_not_made(repo: Repo) -> None:
    done = repo.task(play.TEXT, "--events", "events.jsonl")
    assert (done.code, done.out) == (2, "")
    assert "events.jsonl" in done.err
    assert not (repo.root / "events.jsonl").exists()
    assert repo.tasks == []


def test_a_file_that_git_ignores_takes_the_output(repo: Repo) -> None:
    repo.write({".gitignore": "*.txt\n"}).commit()
    with (repo.root / "out.txt").open("w") as file:
        running = repo.start("task", play.TEXT, stdout=file)
        running.communicate()
    assert running.returncode == 0
    assert "verified" in (repo.root / "out.txt").read_text()


def test_a_fix_of_one_line_is_told_in_twelve_lines(repo: Repo) -> None:
    done = repo.task(play.TEXT)
    assert done.code == 0, done.err
    assert len((done.err + done.out).splitlines()) <= 12
    assert done.out.splitlines()[0] == "✓ verified: 1 failing check now passes; no new failures."
    assert "    +    return a + b" in done.out.splitlines()


def test_more_is_told_with_v_and_only_the_verdict_with_q(repo: Repo) -> None:
    told = repo.task(play.TEXT, "-v")
    assert "confirmed: fails without the change" in told.err
    assert "report     .claude/agentflow/" in told.out
    repo.git("checkout", "-q", ".")
    asked = repo.run("task", "-q", play.TEXT)
    assert (asked.code, asked.err) == (0, "")
    assert asked.out == "✓ verified: 1 failing check now passes; no new failures.\n"


def test_the_two_switches_exclude_each_other(repo: Repo) -> None:
    done = repo.task(play.TEXT, "-q", "-v")
    assert (done.code, "-q and -v exclude each other" in done.err) == (2, True)


def test_a_failed_task_is_told_in_short_with_its_reason(repo: Repo) -> None:
    repo.write({"tests/test_calc.py": repo.read("tests/test_calc.py") + "\n\nraise SystemExit\n"}).commit()
    done = repo.task(play.TEXT)
    assert done.code != 0
    assert done.out.splitlines()[0].startswith("✗ Not mended: none of ")


def test_several_commands_of_a_check_are_shown_as_they_are_run(new_repo: NewRepo) -> None:
    tests = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_a(self):\n        assert 1 == 2\n"
    repo = new_repo({"tests/test_a.py": tests, "tests/deep/test_b.py": tests.replace("2", "1")})
    begin = "python3 -m unittest discover -v -s tests"
    shown = f"{begin}/deep; {begin}"
    assert shown in repo.run("verify", "--dry-run").out
    repo.task(play.TEXT)
    for words in (["status"], ["evidence"], ["log"], ["report"]):
        page = repo.run(*words).out
        assert shown in page, words
        assert "r=0; {" not in page
