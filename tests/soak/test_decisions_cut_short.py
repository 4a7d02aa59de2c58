"""A kill between a decision and the run of its call, at each system call that writes the task's files."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.e2e.test_waiting import COUNTING, count, settings
from tests.support import play
from tests.support.repo import Done, NewRepo, Repo

KILLING = """
import os, signal, sys
left, task = int(sys.argv.pop(1)), sys.argv.pop(1)

def find_place(first, named):
    if isinstance(first, int):
        return os.readlink(f"/proc/self/fd/{first}")
    folder = named.get("dir_fd", named.get("src_dir_fd"))
    return os.path.join("" if folder is None else os.readlink(f"/proc/self/fd/{folder}"), os.fsdecode(first))

def deadly(name):
    make = getattr(os, name)
    def call(first, *more, **named):
        global left
        writes = name != "open" or bool(more[0] & os.O_CREAT)
        is_ours = writes and task in find_place(first, named)
        left -= is_ours
        if is_ours and left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return make(first, *more, **named)
    return call

names = "write fsync rename replace unlink symlink open link mkdir rmdir truncate ftruncate"
for name in names.split():
    setattr(os, name, deadly(name))
from agentflow.cli.app import command
command()
"""
"""The command, which is killed before its n-th call that writes below the folder of the task."""
CREW = play.crew(
    play.turn(play.call("Bash", command="echo x >> count")), *play.MENDED, play.submit("calc.py")
)


@pytest.fixture
def waiting(new_repo: NewRepo, tmp_path: Path) -> Repo:
    repo = new_repo(COUNTING)
    settings(repo, permissions={"ask": ["Bash(echo *)"]})
    assert repo.task(script=CREW).code == 75
    shutil.copytree(repo.root, tmp_path / "before", symlinks=True)
    return repo


def put_back(repo: Repo, tmp_path: Path) -> None:
    shutil.rmtree(repo.root)
    shutil.copytree(tmp_path / "before", repo.root, symlinks=True)


def killed(repo: Repo, number: int, *words: str) -> Done:
    argv = (sys.executable, "-P", "-c", KILLING, str(number), repo.folder.name)
    return repo.run(*words, command=argv)


def test_a_decision_is_made_or_not_and_its_call_runs_once_at_most(waiting: Repo, tmp_path: Path) -> None:
    repo = waiting
    for number in range(1, 60):
        put_back(repo, tmp_path)
        cut = killed(
            repo, number, "approve", "p3-1", "--by", "ann", "--args", '{"command": "echo y >> count"}'
        )
        again = repo.run("approve", "p3-1", "--by", "bob")
        assert again.code == 0, (number, again.err)
        assert len(repo.state()["answers"]) == 1
        assert repo.run("resume").code == 4, number
        assert count(repo) == 1
        by = repo.state()["answers"]["p3-1"]["by"]
        assert (repo.read("count") == "y\n") is (by == "ann")
        if cut.code == 0:
            break
    assert cut.code == 0
    assert number > 5


def test_a_call_that_is_decided_runs_once_whenever_its_process_dies(waiting: Repo, tmp_path: Path) -> None:
    repo, number, is_over = waiting, 0, False
    assert repo.run("approve", "p3-1").code == 0
    shutil.rmtree(tmp_path / "before")
    shutil.copytree(repo.root, tmp_path / "before", symlinks=True)
    while not is_over:
        number += 1
        put_back(repo, tmp_path)
        assert killed(repo, number, "resume").code < 0
        was_made = count(repo)
        since = (repo.folder / "events.jsonl").read_text().rpartition('"TaskStarted"')[2]
        done = repo.run("resume")
        assert done.code == 4, (number, done.err)
        assert count(repo) == 1 or (count(repo) == was_made == 0), number
        result = repo.runs("implementer")[0].results[0]["content"]
        assert bool(count(repo)) or result.startswith("interrupted"), (number, result)
        is_over = bool(was_made) and '"ToolFinished"' in since
    assert number > 10
