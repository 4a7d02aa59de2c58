"""`agentflow plan`: nothing changes before a person agrees; the conversation of the plan then goes on."""

import json
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support import play
from tests.support.repo import Done, Repo
from tests.support.session_terminal import open_terminal
from tests.support.terminal import at_terminal

TEXT = ("let", "add", "return", "the", "sum")
PLAN: dict[str, Any] = {
    "summary": "Let add() add.",
    "steps": [
        {"title": "Turn the sign in add()", "files": ["calc.py"]},
        {"title": "Say so in a docstring", "files": ["calc.py"]},
    ],
    "acceptance": ["tests/test_calc.py passes"],
    "risks": ["callers may have worked around it"],
}
SHORT = {**PLAN, "steps": PLAN["steps"][:1]}
LOOKS = (
    play.turn(play.call("Read", file_path="calc.py")),
    play.turn(play.call("Bash", command="echo planned >> calc.py; cp calc.py new.py; tail -n 1 new.py")),
    play.turn(play.call("Edit", file_path="calc.py", old_string="a - b", new_string="a + b")),
)
EDIT = play.turn(play.call("Edit", file_path="calc.py", old_string="a - b", new_string="a + b"))


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "my repository", tmp_path / "home").write(play.CALC).commit()


def planned(*turns: dict[str, Any], **plan: Any) -> dict[str, Any]:
    return play.role("planner", *turns, play.turn(play.call("SubmitPlan", **(plan or PLAN))))


def carried_out(evidence: str = "ev-0002", *turns: dict[str, Any]) -> list[dict[str, Any]]:
    return [play.role("implementer", *(turns or (EDIT, play.submit("calc.py")))), play.verified(evidence)]


def begin(repo: Repo, *script: dict[str, Any]) -> Done:
    return repo.run("plan", *TEXT, "--model", repo.scripted([*script]))


def entries(repo: Repo, number: int) -> list[dict[str, Any]]:
    (path,) = (repo.folder / "runs").glob(f"{number}-*.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_plan_waits_is_corrected_in_words_and_carried_out_in_its_conversation(repo: Repo) -> None:
    script = (planned(*LOOKS), planned(**SHORT), *carried_out("ev-0003"))
    asked = begin(repo, *script)
    task_id = repo.folder.name
    assert asked.code == 75, asked.err
    assert f"agentflow answer {task_id} A | B WORDS | C WORDS" in asked.out
    results = [each["result"]["content"] for each in entries(repo, 1) if each["type"] == "CallAnswered"]
    assert "planned" in results[1]  # its commands wrote into a copy
    assert "You do not have Edit" in results[2]
    assert (repo.diff(), (repo.root / "new.py").exists()) == ("", False)
    waits = repo.run("resume")
    assert (waits.code, "waiting for you" in waits.err) == (75, True)
    again = repo.run("answer", "leave out step 2")
    assert (again.code, "plan-2" in again.out, repo.diff()) == (75, True, ""), again.err
    assert entries(repo, 2)[0]["continues"] == 1
    assert "leave out step 2" in entries(repo, 2)[1]["message"]["parts"][0]["text"]
    done = repo.run("answer", "A")
    assert done.code == 0, done.out
    head, prompt, *_ = entries(repo, 3)
    said = json.dumps(head["history"])
    assert "a - b" in said
    assert "leave out step 2" in said
    assert "Say so in a docstring" not in prompt["message"]["parts"][0]["text"]
    assert repo.state()["intent"]["constraints"] == ""
    assert repo.run("replay").code == 0
    assert repo.run("verify", task_id).code == 0


def test_a_plan_edited_in_its_file_is_what_is_agreed_to(repo: Repo) -> None:
    assert begin(repo, planned(), *carried_out()).code == 75
    file = repo.folder / "plan-1.md"
    text = file.read_text().replace("2. Say so in a docstring (calc.py)", "2. Leave double() alone")
    file.write_text(f"{text}- it is slow\n")
    done = repo.run("answer", "A")
    assert done.code == 0, done.out
    plan = repo.state()["plan"]
    assert plan["steps"] == [PLAN["steps"][0], {"title": "Leave double() alone", "files": []}]
    assert plan["risks"] == [*PLAN["risks"], "it is slow"]
    assert "Leave double() alone" in entries(repo, 2)[1]["message"]["parts"][0]["text"]
    assert "+2. Leave double() alone" in repo.run("status").out
    assert repo.run("replay").code == 0


def test_at_a_terminal_the_plan_opens_in_the_editor_and_the_task_goes_on(repo: Repo) -> None:
    editor = repo.home / "my editor"
    editor.write_text('#!/bin/sh\nsed -i "s/Turn the sign/Turn only the sign/" "$1"\n')
    editor.chmod(stat.S_IRWXU)
    words = ("plan", *TEXT, "--model", repo.scripted([planned(), *carried_out()]))
    (repo.home / "ed.sh").write_text(f'exec "{editor}" "$@"\n')
    seen = at_terminal(repo, *words, says=("e", "A"), editor=f"sh '{repo.home}/ed.sh'")
    assert seen.code == 0, seen.text
    assert "Turn only the sign" in seen.text
    assert repo.state()["plan"]["steps"][0]["title"] == "Turn only the sign in add()"


def test_an_agreed_plan_is_judged_as_every_task(repo: Repo) -> None:
    lie = play.turn(play.call("SubmitChange", summary="done, all tests pass", files=["calc.py"]))
    begin(repo, planned(), play.role("implementer", lie, lie))
    assert repo.run("answer", "A").code == 1
    assert repo.diff() == ""


@pytest.mark.parametrize("killed_in", ["planner", "implementer"])
def test_a_killed_plan_goes_on_where_it_was(repo: Repo, killed_in: str) -> None:
    script = [planned(LOOKS[0]), *carried_out("ev-0002", LOOKS[0], EDIT, play.submit("calc.py"))]
    slow = next(each for each in script if each["match"]["role"] == killed_in)
    slow["delay"] = 2
    model = repo.scripted(script)
    if killed_in == "implementer":
        assert repo.run("plan", *TEXT, "--model", model).code == 75
        running = repo.start("answer", "A")
    else:
        running = repo.start("plan", *TEXT, "--model", model)
    end = time.monotonic() + 60
    while not any(
        '"CallAnswered"' in path.read_text()
        for path in repo.root.glob(f".claude/agentflow/*/runs/*{killed_in}.jsonl")
    ):
        assert time.monotonic() < end
        time.sleep(0.05)
    running.kill()
    running.wait()
    running.communicate()
    slow["delay"] = 0
    repo.scripted(script)
    ended = repo.run("resume")
    if killed_in == "planner":
        assert (ended.code, repo.diff()) == (75, ""), ended.err
        ended = repo.run("answer", "A")
    assert ended.code == 0, ended.out
    runs = sorted(path.name for path in (repo.folder / "runs").iterdir())
    assert runs == ["1-planner.jsonl", "2-implementer.jsonl", "3-verifier.jsonl"]


def test_words_of_a_question_are_planned_as_a_change(repo: Repo) -> None:
    script = [planned(), *carried_out()]
    asked = repo.run("plan", "how", "could", "add", "return", "the", "sum?", "--model", repo.scripted(script))
    assert (asked.code, repo.state()["task_complexity"]) == (75, "implementation")
    assert repo.run("resume", "--yes").code == 0


def test_without_a_model_there_is_no_plan(repo: Repo) -> None:
    refused = repo.run("plan", "make the failing tests pass")
    assert (refused.code, refused.out, repo.tasks) == (6, "", [])
    assert "Set ANTHROPIC_API_KEY" in refused.err


def test_shift_tab_in_a_session_plans_the_line_first(repo: Repo) -> None:
    model = repo.scripted([planned(), *carried_out()])
    with open_terminal(repo, env={"AGENTFLOW_MODEL": model}) as terminal:
        terminal.wait_for("/help lists commands")
        terminal.wait_for("\n>")
        terminal.type(" ".join(TEXT))
        terminal.type("\x1b[Z")
        terminal.wait_for("/plan")
        terminal.type("\r")
        terminal.wait_for("decide later [A]:")
        assert repo.diff() == ""
        terminal.type("A\r")
        terminal.wait_for("✓ verified")
        terminal.wait_for("\n>")
        terminal.enter("/plan")
        terminal.wait_for("1. Turn the sign in add()")
        terminal.wait_for("\n>")
        terminal.enter("/quit")
        assert terminal.wait_end() == 0
