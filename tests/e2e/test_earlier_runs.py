"""What a check showed on a tree stands for one more run there, as long as nothing else is another."""

import json
from pathlib import Path
from typing import Any

from tests.support import play
from tests.support.repo import NewRepo, Repo

SETTINGS = {".gitignore": "local.txt\n", "local.txt": "1\n"}


def task(repo: Repo, **options: Any) -> Path:
    """Return the folder of a task that mends the files, which are put back afterwards."""
    known = set(repo.tasks)
    assert repo.task(script=play.mending(), **options).code == 0
    (folder,) = set(repo.tasks) - known
    assert repo.run("undo", folder.name).code == 0
    return folder


def evidence(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in sorted((folder / "evidence").glob("*.json"))]


def taken(folder: Path) -> list[str]:
    return [one["taken_from"] for one in evidence(folder)]


def test_the_base_run_of_the_same_tree_is_taken_over_and_says_so(new_repo: NewRepo) -> None:
    repo = new_repo({**play.QUICK, **SETTINGS})
    first = task(repo)
    assert taken(first) == ["", "", ""]

    second = task(repo)

    source = f"{first.name}/ev-0001"
    assert taken(second) == [source, "", ""]  # what judges the change and what proves it is run
    known, now = evidence(first)[0], evidence(second)[0]
    for key in ("exit_code", "stdout_sha256", "seconds", "started_at", "tree_before", "surroundings"):
        assert now[key] == known[key]
    assert (second / "evidence/ev-0001.out").read_bytes() == (first / "evidence/ev-0001.out").read_bytes()
    assert (second / "evidence/ev-0001.ids").read_bytes() == (first / "evidence/ev-0001.ids").read_bytes()
    assert f"as {source} showed" in (second / "report.md").read_text()

    (repo.root / "local.txt").write_text("2\n")
    assert taken(task(repo)) == ["", "", ""]  # a check may read what git ignores


def test_no_run_is_taken_over_that_may_be_another(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    path = task(repo) / "evidence/ev-0001.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "exit_code": 0}))
    assert taken(task(repo)) == ["", "", ""]  # a record that somebody changed

    for own in (repo.home / ".config").rglob("tasks/*.json"):
        own.unlink()
    assert taken(task(repo)) == ["", "", ""]  # tasks that the user did not begin

    assert taken(task(repo, env={"SHARDS": "2"})) == ["", "", ""]  # other variables
