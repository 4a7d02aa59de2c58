"""`import agentflow`: the same as the command line, without printing."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import play
from tests.support.repo import NewRepo, Repo

APART = {"task_id", "started_at", "usage"}
"""Names and times, which no two tasks share."""


def python(repo: Repo, code: str) -> Any:
    """Run a program in a repository and return what it printed as JSON; nothing else may be printed."""
    ran = subprocess.run(
        [sys.executable, "-c", f"import json, agentflow\n{code}"],
        cwd=repo.root,
        env=repo.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr
    return json.loads(ran.stdout)


def head_of(repo: Repo) -> dict[str, Any]:
    head = yaml.safe_load((repo.folder / "task.md").read_text("utf-8").split("---\n", 2)[1])
    gates = {phase: {**gate, "timestamp": None} for phase, gate in head["gates"].items()}
    return {**{key: value for key, value in head.items() if key not in APART}, "gates": gates}


@pytest.fixture
def twins(tmp_path: Path) -> tuple[Repo, Repo]:
    """Two equal repositories; one script, so that the name of the model is the same in both."""
    one, other = (
        Repo(tmp_path / name / "repo", tmp_path / "home").write(play.QUICK).commit()
        for name in ("one", "other")
    )
    return one, other


def test_a_task_comes_to_the_same_state_from_both(twins: tuple[Repo, Repo]) -> None:
    one, other = twins
    model = one.scripted(play.mending())
    said = one.run(
        "task", "make the failing tests pass", "--model", model, "--no-memory"
    )  # they share one home
    assert said.code == 0
    asked = "request=agentflow.TaskRequest(judges=True)"  # as the command line of a script with a judge
    code = f"done = agentflow.run_task('make the failing tests pass', model={model!r}, {asked})"
    told = python(other, f"{code}\nprint(json.dumps([done.state.status, done.state.ending.exit_code]))")
    assert told == ["verified", 0]
    assert head_of(one) == head_of(other)
    kinds = [[event["type"] for event in repo.events()] for repo in twins]
    judged = len(kinds[0]) - kinds[0][::-1].index("PhaseStarted")  # from there on, work goes on side by side
    assert kinds[0][:judged] == kinds[1][:judged]
    assert sorted(kinds[0]) == sorted(kinds[1])


def test_each_continues_reads_and_undoes_what_the_other_began(new_repo: NewRepo) -> None:
    repo = new_repo(play.CALC)
    settings = repo.home / ".claude/settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"permissions": {"ask": ["Edit(calc.py)"]}}))
    model = repo.scripted(play.mending())
    code = f"done = agentflow.run_task('make the failing tests pass', model={model!r})"
    said = python(repo, f"{code}\nprint(json.dumps([done.state.status, len(done.state.pending)]))")
    assert said == ["suspended", 1]
    assert repo.run("status", "--json").json["status"] == "suspended"
    (item,) = repo.state()["pending"]
    words = f"{item['id']!r}, approved=True, args={item['input'] | {'new_string': 'b + a'}!r}"
    code = f"agentflow.decide({words}, by='ann', comment='turned round'); done = agentflow.resume()"
    assert python(repo, f"{code}\nprint(json.dumps(done.state.status))") == "verified"
    (answer,) = repo.state()["answers"].values()
    assert [answer[key] for key in ("by", "via", "comment")] == ["ann", "through a program", "turned round"]
    assert "b + a" in repo.read("calc.py")
    assert "with another input by ann through a program" in repo.run("status").out
    assert repo.run("verify", repo.folder.name).code == 0
    told = python(repo, "undone = agentflow.undo()\nprint(json.dumps([undone.state, undone.restored]))")
    assert told == ["undone", ["calc.py"]]
    assert repo.read("calc.py") == play.CALC["calc.py"]


def test_what_the_command_line_refuses_is_raised_with_its_code(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    code = """
try:
    agentflow.run_task("explain it", model="script:nowhere.yaml")
except agentflow.AgentflowError as error:
    print(json.dumps([str(error), error.exit_code]))
"""
    message, number = python(repo, code)
    done = repo.task("explain it", "--model", "script:nowhere.yaml")
    assert (done.code, number) == (2, 2)
    assert message in done.err
