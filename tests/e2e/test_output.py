"""What a task prints must not be a part of what it is judged by."""

from pathlib import Path

import pytest

from tests.support.repo import CALC, TEXT, Repo


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "repo", tmp_path / "home").write(CALC).commit()


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_output_into_the_tree_is_refused_before_anything_begins(repo: Repo, stream: str) -> None:
    path = repo.root / "out.txt"
    with path.open("w") as file:
        running = repo.start("task", TEXT, **{stream: file})
        said = "".join(part for part in running.communicate() if part) + path.read_text()
    assert running.returncode == 2
    assert "the output would go to out.txt" in said
    assert repo.tasks == []


def test_events_into_the_tree_are_refused_and_the_file_is_not_made(repo: Repo) -> None:
    done = repo.task(TEXT, "--events", "events.jsonl")
    assert (done.code, done.out) == (2, "")
    assert "events.jsonl" in done.err
    assert not (repo.root / "events.jsonl").exists()
    assert repo.tasks == []


def test_a_file_that_git_ignores_takes_the_output(repo: Repo) -> None:
    repo.write({".gitignore": "*.txt\n"}).commit()
    with (repo.root / "out.txt").open("w") as file:
        running = repo.start("task", TEXT, stdout=file)
        running.communicate()
    assert running.returncode == 0
    assert "verified" in (repo.root / "out.txt").read_text()
