"""A task that an older version left: `version_0` is one whose state names no version and lacks later keys."""

import json
import shutil
from pathlib import Path

import pytest

from agentflow.core.record import encode
from agentflow.store.reading import seal
from tests.support import play
from tests.support.repo import NewRepo, Repo

FOLDER = Path(__file__).with_name("version_0")
LACKING = {"version", "steps", "context", "stop_blocks", "pause_after", "answers", "counted"}


@pytest.fixture
def repo(new_repo: NewRepo) -> Repo:
    """Return the repository of the task, which waits after its planning."""
    repo = new_repo(play.CALC)
    shutil.copytree(FOLDER, repo.root / ".claude/agentflow")
    (repo.root / ".claude/agentflow/.gitignore").write_text("*\n")
    for name in ("runs", "outputs"):
        (repo.folder / name).mkdir()
    return repo


def lines(repo: Repo) -> list[bytes]:
    return (repo.folder / "events.jsonl").read_bytes().splitlines(keepends=True)


def test_reading_it_writes_nothing(repo: Repo) -> None:
    before = lines(repo)
    assert not LACKING & repo.state().keys()
    status = repo.run("status", "--json")
    assert (status.code, status.json["version"], status.json["status"]) == (0, 2, "suspended")
    assert repo.run("log").code == 0
    assert lines(repo) == before


def test_it_gains_the_missing_keys_once(repo: Repo) -> None:
    before, written = lines(repo), repo.state().keys()
    for _ in range(2):
        assert repo.run("cancel", repo.folder.name).code == 0
        gained = [event["changed"] for event in repo.events("StateChanged") if "version" in event["changed"]]
        (only,) = gained
        assert only.keys() >= LACKING
        assert only.keys() & written <= {"baseline"}  # its checks gain a key
    assert lines(repo)[: len(before)] == before
    assert (repo.folder / "task.md").read_text().startswith("---\nversion: 2\n")


def test_it_goes_on_where_it_was(repo: Repo) -> None:
    refused = repo.run("resume")
    assert (refused.code, "no record of having begun it" in refused.err) == (2, True)
    model = repo.state()["model"]
    done = repo.run("resume", repo.folder.name, "--model", model, "--json")
    assert done.code == 0, done.err
    assert done.json["status"] == "verified"
    assert repo.read("calc.py") == play.CALC["calc.py"].replace("a - b", "a + b")
    (folder,) = (each for each in repo.tasks if each.name == done.json["task_id"])
    assert {each.name.split("-")[1] for each in (folder / "runs").glob("*.jsonl")} == {"implementer.jsonl"}


@pytest.mark.parametrize("version", [3, 99, -1, "1", None, True])
def test_a_version_that_is_not_known_is_refused_by_name_and_nothing_is_written(
    repo: Repo, version: object
) -> None:
    seq = len(lines(repo)) + 1
    event = {"seq": seq, "at": "now", "type": "StateChanged", "changed": {"version": version, "new": 1}}
    with (repo.folder / "events.jsonl").open("ab") as file:
        file.write(seal(encode({**event, "task_id": repo.folder.name})) + b"\n")
    before = lines(repo)
    for words in (("resume",), ("status",), ("cancel", repo.folder.name)):
        done = repo.run(*words)
        assert done.code == 2
        assert "events.jsonl: version" in done.err
        assert json.dumps(version).strip('"') in done.err or repr(version) in done.err
        told = done.err.splitlines()
        named = [line for line in told if line.startswith("the newest task, ")]
        assert len(named) == (len(words) == 1)
        assert len(told) - len(named) <= 2
    assert lines(repo) == before
