"""Sub-agents that wait for a person, and what is counted of those that begin anew."""

import json
from typing import Any

import pytest

from tests.support import play
from tests.support.repo import Done, NewRepo, Repo
from tests.support.subagents import (
    REST,
    SCOUT,
    SUBMIT,
    USED,
    delegate,
    lead,
    scout,
    with_subagents,
)


@pytest.fixture
def repo(new_repo: NewRepo) -> Repo:
    return with_subagents(new_repo(play.LIGHT))


ASKING = {"permissions": {"ask": ["Bash(wc *)"]}}
COUNTS = (play.turn(play.call("Bash", command="wc -l calc.py")), play.turn(text="counted"))


def asking(repo: Repo, *words: str, **more: Any) -> Done:
    """Run a task whose sub-agent makes a call that a person is asked about."""
    (repo.home / ".claude/settings.json").write_text(json.dumps(ASKING), "utf-8")
    lead(repo, "Read", "Bash", "Agent")
    begin = [play.role("explorer", play.turn(delegate()), SUBMIT), scout(*COUNTS)]
    last = play.role(
        "verifier",
        play.turn(play.call("SubmitVerdict", verdict="VERIFIED", evidence=["ev-0003"], reasons=[])),
    )
    return repo.task(play.WHOLE_CREW, *words, script=[*begin, *REST[:2], last], **more)


def waiting_id(repo: Repo) -> str:
    (item,) = repo.state()["pending"]
    return str(item["id"])


def requests(repo: Repo, name: str) -> int:
    return sum(entry["type"] == "RequestSent" for run in repo.runs(name) for entry in run.entries)


def test_what_a_sub_agent_has_to_ask_suspends_the_task_and_goes_on_at_its_call(repo: Repo) -> None:
    done = asking(repo)
    assert done.code == 75, done.out + done.err
    assert waiting_id(repo).startswith("p2-")
    assert repo.run("resume").code == 75
    assert repo.run("approve", waiting_id(repo)).code == 0
    done = repo.run("resume")
    assert done.code == 4, done.out + done.err
    (child,) = repo.runs("scout")
    assert "calc.py" in child.results[0]["content"]
    assert (requests(repo, "explorer"), requests(repo, "scout")) == (2, 2)
    assert [result["content"] for result in repo.runs("explorer")[0].results] == ["counted", "submitted"]


def test_a_denial_is_told_to_the_sub_agent_and_not_to_its_parent(repo: Repo) -> None:
    assert asking(repo).code == 75
    assert repo.run("deny", waiting_id(repo), "--reason", "not here").code == 0
    repo.run("resume")
    (child,) = repo.runs("scout")
    assert "denied: not here" in child.results[0]["content"]
    assert [result["content"] for result in repo.runs("explorer")[0].results] == ["counted", "submitted"]


def test_no_input_denies_inside_a_sub_agent_at_once(repo: Repo) -> None:
    asking(repo, "--no-input")
    assert "denied" in repo.runs("scout")[0].results[0]["content"]


def test_a_wait_two_levels_down_comes_up_and_its_answer_goes_down(repo: Repo) -> None:
    (repo.home / ".claude/settings.json").write_text(json.dumps(ASKING), "utf-8")
    lead(repo, "Read", "Bash", "Agent")
    repo.give_role("middle", SCOUT.replace("name: scout", "name: middle").replace("Bash]", "Bash, Agent]"))
    middle = play.call("Agent", subagent_type="middle", description="d", prompt="delegate it")
    script = [
        play.role("explorer", play.turn(middle), SUBMIT),
        play.role("middle", play.turn(delegate()), play.turn(text="from below")),
        scout(*COUNTS),
    ]
    assert repo.task(script=script).code == 75
    assert waiting_id(repo).startswith("p3-")
    assert repo.run("approve", waiting_id(repo)).code == 0
    repo.run("resume")
    assert "calc.py" in repo.runs("scout")[0].results[0]["content"]
    assert repo.runs("middle")[0].results[0]["content"] == "counted"
    assert repo.runs("explorer")[0].results[0]["content"] == "from below"
    assert [requests(repo, name) for name in ("explorer", "middle", "scout")] == [2, 2, 2]


QUESTION = {
    "question": "which file?",
    "header": "f",
    "options": [{"label": "calc.py", "description": "a"}, {"label": "other", "description": "b"}],
    "multiSelect": False,
}


def test_two_sub_agents_that_ask_in_one_phase_interrupt_it_once(repo: Repo) -> None:
    lead(repo, "Read", "AskUserQuestion", "Agent")
    repo.give_role("scout", SCOUT.replace("Bash]", "AskUserQuestion]"))
    asks = (play.turn(play.call("AskUserQuestion", questions=[QUESTION])), play.turn(text="told"))
    both = play.turn(delegate("one"), delegate("two"))
    script = [play.role("explorer", both, SUBMIT), scout(*asks), scout(*asks), *REST]
    done = repo.task(script=script)
    assert done.code == 75, done.out + done.err
    done = repo.run("answer", repo.folder.name, "B")
    assert done.code == 4, done.out + done.err
    first, second = (run.results[0]["content"] for run in repo.runs("scout"))
    assert first == "other"
    assert "nobody is asked twice in one phase" in second


def test_two_sub_agents_side_by_side_that_wait_are_decided_one_after_the_other(repo: Repo) -> None:
    lead(repo, "Read", "Agent")
    repo.give_role("scout", SCOUT.replace(", Bash]", "]"))
    asked = {"permissions": {"ask": ["Read(calc.py)"]}}
    (repo.home / ".claude/settings.json").write_text(json.dumps(asked), "utf-8")
    both = play.turn(delegate("one"), delegate("two"))
    assert repo.task(script=[play.role("explorer", both, SUBMIT), scout(), scout()]).code == 75
    first = waiting_id(repo)
    repo.run("approve", first)
    assert repo.run("resume").code == 75
    assert waiting_id(repo) != first
    repo.run("deny", waiting_id(repo), "--reason", "enough")
    repo.run("resume")
    said = {run.head["run"]: run.results[0]["content"] for run in repo.runs("scout")}
    assert sorted("denied: enough" in text for text in said.values()) == [False, True]
    assert [requests(repo, "scout"), len(repo.runs("scout"))] == [4, 2]


def escalated(**more: Any) -> dict[str, Any]:
    given = {"assumption": "amounts are floats", "contradiction": "whole cents", "path": "calc.py", "line": 2}
    return {
        **play.turn(play.call("Escalate", **given, options=["cents", "decimals"], recommended="A")),
        **more,
    }


def test_what_sub_agents_used_is_counted_once_although_their_question_begins_the_step_anew(
    repo: Repo,
) -> None:
    lead(repo, "Read", "Escalate", "Agent")
    for name in ("scout", "middle"):
        text = SCOUT.replace("name: scout", f"name: {name}")
        repo.give_role(name, text.replace("Bash]", "Escalate, Agent]"))
    middle = play.call("Agent", subagent_type="middle", description="d", prompt="delegate it")
    ended = [{**each, "usage": USED} for each in scout()["turns"]]
    script = [
        play.role(
            "explorer", {**play.turn(delegate("one")), "usage": USED}, {**play.turn(middle), "usage": USED}
        ),
        play.role("scout", *ended),
        play.role("middle", {**play.turn(delegate("two")), "usage": USED}),
        play.role("scout", escalated(usage=USED)),
        play.role("explorer", {**SUBMIT, "usage": USED}),
        *REST,
    ]
    assert repo.task(script=script).code == 75
    spent = [
        entry["reply"]["usage"]["output"]
        for name in ("explorer", "middle", "scout")
        for run in repo.runs(name)
        for entry in run.entries
        if entry["type"] == "ReplyReceived"
    ]
    assert spent == [USED["output"]] * 6
    assert repo.state()["usage"]["output"] == 60
    done = repo.run("answer", repo.folder.name, "A")
    assert done.code == 4, done.out + done.err
    rest = repo.state()["usage"]["output"] - 60
    others = (run for name in ("planner", "implementer", "verifier") for run in repo.runs(name))
    said = (entry["reply"] for run in others for entry in run.entries if entry["type"] == "ReplyReceived")
    assert rest == USED["output"] + sum(reply["usage"]["output"] for reply in said)


def test_what_was_used_for_half_a_change_is_counted(repo: Repo) -> None:
    steps = [{**each, "usage": USED} for each in play.MENDED]
    rest = play.role(
        "implementer",
        {**play.turn(play.call("Read", file_path="calc.py")), "usage": USED},
        play.submit("calc.py"),
    )
    script = [play.role("implementer", *steps, {"error": 529}), rest]
    assert repo.task("fix add in calc.py", script=script).code == 75
    assert repo.state()["usage"]["output"] == 2 * USED["output"]
    assert repo.run("answer", repo.folder.name, "A").code == 4
    assert repo.state()["usage"]["output"] == 3 * USED["output"]


def test_what_a_run_used_before_its_reply_was_lost_is_counted(repo: Repo) -> None:
    seen = {**play.turn(play.call("Read", file_path="calc.py")), "usage": USED}
    lost = play.role("explorer", seen, {"error": 529})
    assert repo.task(script=[lost, play.role("explorer", {**SUBMIT, "usage": USED}), *REST]).code == 4
    used = repo.events("RunEnded")
    assert repo.state()["usage"]["output"] == 2 * USED["output"] + sum(
        event["usage"]["output"] for event in used if event["role"] != "explorer"
    )
