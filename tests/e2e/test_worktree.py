"""`task --worktree`: the task works in a worktree of its own, and is found from the repository."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support import play
from tests.support.repo import Repo, eventually


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "a repository", tmp_path / "home").write(play.QUICK).commit()
    made.git("config", "user.name", "t")
    made.git("config", "user.email", "t@localhost")
    return made


def find_worktree(repo: Repo) -> Path:
    (only,) = (place for place in (repo.root / ".claude/worktrees").iterdir() if place.is_dir())
    return only


def list_events(repo: Repo) -> list[Path]:
    return list((repo.root / ".claude/worktrees").glob("*Z-*/.claude/agentflow/*/events.jsonl"))


def read_files(root: Path) -> Mapping[str, bytes]:
    places = (place for place in root.rglob("*") if place.is_file())
    return {str(place): place.read_bytes() for place in places if not {".git", ".claude"} & {*place.parts}}


def plant_programs(repo: Repo, ran: Path) -> None:
    """Let git's configuration name programs that leave a mark where they run."""
    hooks = repo.root / ".git/hooks"
    for name in ("post-checkout", "post-index-change", "reference-transaction"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch '{ran}'\n")
        (hooks / name).chmod(0o755)
    for key in ("smudge", "clean", "process"):
        repo.git("config", f"filter.odd.{key}", f"sh -c 'touch \"{ran}\"; cat'")
    repo.git("config", "filter.odd.required", "true")
    repo.git("config", "core.fsmonitor", f"sh -c 'touch \"{ran}\"'")


def test_the_change_is_on_a_branch_of_its_own_and_all_else_is_as_it_was(repo: Repo, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    repo.write(
        {".gitattributes": "*.py filter=odd\n", ".claude/settings.local.json": "{}", ".gitignore": ".venv/\n"}
    )
    repo.git("add", ".gitattributes", ".gitignore", "calc.py")
    repo.git("commit", "-q", "-m", "state")
    repo.write({"new.txt": "mine\n", "calc.py": play.CALC["calc.py"] + "# mine\n", ".venv/pyvenv.cfg": ""})
    plant_programs(repo, ran)
    before, index = read_files(repo.root), (repo.root / ".git/index").read_bytes()
    out = play.turn(
        play.call("Write", file_path="../../../stolen.txt", content="x"),
        play.call("Write", file_path=str(repo.root / "stolen.txt"), content="x"),
        play.call(
            "Bash",
            command=f"echo x >> '{repo.root}/calc.py'; echo x >> ../../../calc.py; true",
            description="x",
        ),
    )
    done = repo.run(
        "task", play.WHOLE_CREW, "--worktree", "--model", repo.scripted(play.mending(out, evidence="ev-0003"))
    )
    assert done.code == 0, done.err
    assert read_files(repo.root) == before
    assert (repo.root / ".git/index").read_bytes() == index
    assert not ran.exists()
    for name in ("post-checkout", "post-index-change", "reference-transaction"):
        (repo.root / ".git/hooks" / name).unlink()
    repo.git("config", "--unset", "core.fsmonitor")
    for key in ("smudge", "clean", "process", "required"):
        repo.git("config", "--unset", f"filter.odd.{key}")
    assert repo.git("status", "--short").splitlines() == [" M calc.py", "?? new.txt"]
    worktree = find_worktree(repo)
    task = worktree.name
    assert (worktree / "calc.py").read_text() == play.CALC["calc.py"].replace("a - b", "a + b")
    assert (worktree / ".claude/settings.local.json").exists()
    assert "not in the worktree, because not committed: calc.py, new.txt" in done.err
    assert "not in the worktree, because git ignores them: .venv" in done.err
    assert f".claude/worktrees/{task} on branch agentflow/{task}" in done.out
    assert_found_from_here(repo, task)
    assert_taken_over(repo, task, done.out)


def assert_found_from_here(repo: Repo, task: str) -> None:
    (row,) = repo.run("tasks", "--json").json
    assert (row["task_id"], row["status"]) == (task, "verified")
    assert repo.run("status", "--json").json["task_id"] == task
    assert len(repo.run("evidence", task[:20], "--json").json) >= 3
    assert f"# verified: {play.WHOLE_CREW}" in repo.run("report", task).out
    assert repo.run("verify", task).code == 0
    assert repo.run("stats", "--json").json["total"]["tasks"] == 1


def assert_taken_over(repo: Repo, task: str, told: str) -> None:
    """Run the commands that the result names."""
    assert f"agentflow commit {task} && git merge agentflow/{task}" in told
    committed = repo.run("commit", task)
    assert committed.code == 0, committed.err
    assert repo.git("show", "--name-only", "--format=", f"agentflow/{task}").split() == ["calc.py"]
    repo.git("stash", "-q", "--", "calc.py")
    repo.git("merge", "-q", f"agentflow/{task}")
    assert "a + b" in repo.read("calc.py")
    remove = next(line for line in told.splitlines() if line.startswith("remove"))
    words = remove.removeprefix("remove").split("  and the")[0].strip()
    subprocess.run(["sh", "-c", words], cwd=repo.root, check=True, capture_output=True)
    assert not (repo.root / ".claude/worktrees" / task).exists()
    assert repo.run("tasks", "--json").json == []


def test_a_killed_task_goes_on_in_its_worktree_and_is_undone_there(repo: Repo) -> None:
    script = play.mending(play.turn(play.call("Bash", command="sleep 30", description="wait")))
    script[2]["match"]["iteration"] = 1
    process = repo.start_task(script, "--worktree")
    eventually(lambda: any(b"sleep 30" in place.read_bytes() for place in list_events(repo)))
    process.kill()
    process.communicate()
    task = find_worktree(repo).name
    shown = repo.run("status")
    assert "interrupted" in shown.out
    again = [
        play.role("implementer", *play.MENDED, play.submit("calc.py")),
        play.verified("ev-0002"),
    ]
    done = repo.run("resume", "--model", repo.scripted(again), "--json")
    assert done.code == 0, done.err
    assert done.json["worktree"]["branch"] == f"agentflow/{task}"
    assert "a - b" in repo.read("calc.py")
    undone = repo.run("undo", task)
    assert undone.code == 0, undone.err
    assert (find_worktree(repo) / "calc.py").read_text() == play.CALC["calc.py"]


def test_an_approval_in_a_worktree_is_given_from_the_repository_and_commit_names_the_branch(
    repo: Repo,
) -> None:
    repo.write(
        {
            "pkg/keep.txt": "x\n",
            ".claude/settings.json": json.dumps({"permissions": {"ask": ["Bash(touch *)"]}}),
        }
    ).commit()
    bash = play.turn(play.call("Bash", command="touch pkg/a", description="x"))
    model = repo.scripted(play.mending(bash, evidence="ev-0003"))
    done = repo.run(
        "task",
        play.WHOLE_CREW,
        "--worktree",
        "--commit",
        "--branch",
        "fix/add",
        "--model",
        model,
        "-C",
        "pkg",
    )
    assert done.code == 75, done.err
    assert "not committed" in done.err
    pending = repo.run("status", "--json").json["pending"][0]["id"]
    assert repo.run("approve", pending).code == 0
    resumed = repo.run("resume")
    assert resumed.code == 0, resumed.err
    assert "on branch fix/add" in resumed.out
    assert repo.run("commit").code == 0
    assert repo.git("show", "--name-only", "--format=", "fix/add").split() == ["calc.py", "pkg/a"]
    assert repo.git("log", "-1", "--format=%s", "HEAD").strip() == "state"


def test_what_cannot_have_a_worktree_is_refused_and_nothing_stays_behind(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "a repository", tmp_path / "home").write(play.QUICK)
    model = repo.scripted(play.mending())
    empty = repo.run("task", play.WHOLE_CREW, "--worktree", "--model", model)
    assert empty.code == 2
    assert "no commit yet" in empty.err
    repo.commit()
    repo.git("branch", "taken")
    taken = repo.run("task", play.WHOLE_CREW, "--worktree", "--branch", "taken", "--model", model)
    assert taken.code == 2
    assert "taken" in taken.err
    wrong = repo.run("task", play.WHOLE_CREW, "--worktree", "--model", "script:/nowhere.yaml")
    assert wrong.code == 2
    assert repo.git("worktree", "list").count("\n") == 1
    assert repo.git("branch", "--list", "agentflow/*") == ""
    outside = tmp_path / "outside"
    outside.mkdir()
    (repo.root / ".claude/worktrees/.gitignore").unlink(missing_ok=True)
    (repo.root / ".claude/worktrees").rmdir()
    (repo.root / ".claude/worktrees").symlink_to(outside)
    linked = repo.run("task", play.WHOLE_CREW, "--worktree", "--model", model)
    assert linked.code == 2
    assert "is a link" in linked.err
    assert list(outside.iterdir()) == []


def test_a_worktree_that_came_with_the_repository_is_not_entered(repo: Repo, tmp_path: Path) -> None:
    """Its `.git` names a repository elsewhere, whose configuration nobody here wrote."""
    other = Repo(tmp_path / "other", tmp_path / "home").write(play.QUICK).commit()
    task = "20300101T000000Z-beef"
    place = repo.root / ".claude/worktrees" / task
    other.git("worktree", "add", "-q", str(place))
    (place / ".claude/agentflow" / task).mkdir(parents=True)
    (place / ".claude/agentflow" / task / "events.jsonl").write_text("{}\n")
    for words in (("status",), ("resume", task), ("undo", task), ("commit", task), ("report", task)):
        done = repo.run(*words)
        assert done.code == 2, words
        assert "is not a worktree of this repository" in done.err


def test_a_worktree_has_submodules_and_what_filters_made_and_runs_no_filter(
    repo: Repo, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    inner = Repo(tmp_path / "inner", tmp_path / "home").write({"deep.txt": "deep\n"}).commit()
    outer = Repo(tmp_path / "outer", tmp_path / "home").write({"lib.txt": "lib\n"}).commit()
    local = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add")
    outer.git(*local, str(inner.root), "inner")
    outer.commit()
    repo.git(*local, str(outer.root), "vendored/outer")
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", "--recursive")
    repo.git("config", "filter.big.clean", "echo pointer")
    repo.git("config", "filter.big.smudge", "echo content")
    repo.write({".gitattributes": "*.big filter=big\n", "a.big": "content\n"})
    os.utime(repo.root / "a.big", (1, 1))  # older than the index, as files are
    repo.commit()
    repo.git("config", "filter.big.smudge", f"touch '{ran}'")

    done = repo.task(play.WHOLE_CREW, "--worktree", script=play.mending())
    assert done.code == 0, done.out + done.err
    made = find_worktree(repo)
    names = ("a.big", "vendored/outer/lib.txt", "vendored/outer/inner/deep.txt")
    assert [(made / name).read_text() for name in names] == ["content\n", "lib\n", "deep\n"]
    assert "submodules" not in done.err
    assert not ran.exists()
