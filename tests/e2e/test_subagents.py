"""Delegation, direct answers and handoffs, through the command."""

import json
import os
import signal
from typing import Any

import pytest

from tests.support.repo import (
    CALC,
    MENDED,
    Done,
    NewRepo,
    Repo,
    call,
    eventually,
    plan,
    role,
    submit,
    turn,
    verified,
)

SCOUT = """---
name: scout
description: Use when a thing must be found.
tools: [Read, Grep, Glob, Bash]
---
You find one thing and say where it is.
"""
FIXER = """---
name: fixer
description: Use when a sign is wrong.
tools: [Read, Edit]
maxTurns: 9
---
You mend signs.
"""
EXPLORER = """---
name: lead
description: Use to explore.
model: opus
tools: {tools}
metadata: {metadata}
---
You explore.
"""
PLAYS = {"agentflow-role": "explorer"}
REST = (
    plan("calc.py"),
    role("implementer", *MENDED, submit()),
    verified("ev-0002"),
)
FOUND = [{"claim": "here", "path": "calc.py", "line": 2}]
SUBMIT = turn(call("SubmitFindings", summary="found", findings=FOUND, open_questions=[]))
USED = {"input": 100, "output": 10}


def delegate(prompt: str = "where is add?", **more: Any) -> dict[str, Any]:
    return call("Agent", subagent_type="scout", description="find add", prompt=prompt, **more)


def scout(*turns: dict[str, Any], **match: Any) -> dict[str, Any]:
    return role(
        "scout", *(turns or (turn(call("Read", file_path="calc.py")), turn(text="calc.py:2"))), **match
    )


@pytest.fixture
def repo(new_repo: NewRepo) -> Repo:
    repo = new_repo(CALC)
    repo.give_role("scout", SCOUT)
    repo.give_role("fixer", FIXER)
    return repo


def lead(repo: Repo, *tools: str, **metadata: str) -> None:
    text = EXPLORER.replace("{tools}", json.dumps(tools)).replace(
        "{metadata}", json.dumps({**PLAYS, **metadata})
    )
    repo.give_role("lead", text)


def test_a_delegation_gives_back_nothing_but_the_text(repo: Repo) -> None:
    lead(repo, "Read", "Grep", "Agent")
    used = [{**each, "usage": USED} for each in scout()["turns"]]
    done = repo.task(script=[role("explorer", turn(delegate()), SUBMIT), scout(*used), *REST])
    assert done.code == 0, done.out + done.err
    (parent,), (child,) = repo.runs("explorer"), repo.runs("scout")
    assert [result["content"] for result in parent.results] == ["calc.py:2", "submitted"]
    assert "def add" not in json.dumps(parent.entries)
    assert child.brief == "where is add?"
    assert child.tools == {"Read", "Grep"}
    assert child.head["model"] == parent.head["model"]
    assert child.head["system"] == "You find one thing and say where it is."
    assert repo.state()["usage"]["input"] == 200


SEEN = {
    "minimal": (False, False),
    "scoped": (True, False),
    "full": (True, True),
}


@pytest.mark.parametrize(("context", "seen"), SEEN.items(), ids=SEEN)
def test_a_sub_agent_sees_as_much_of_its_parent_as_the_call_says(
    repo: Repo, context: str, seen: tuple[bool, bool]
) -> None:
    lead(repo, "Read", "Grep", "Agent")
    goal = 'make the failing tests pass: "add" #1 🙂'
    look = turn(call("Grep", pattern="a - b", output_mode="content"), text="I look.")
    repo.task(goal, script=[role("explorer", look, turn(delegate(context=context)), SUBMIT), scout(), *REST])
    (child,) = repo.runs("scout")
    assert child.brief.endswith("where is add?")
    assert (goal in child.brief, "return a - b" in child.brief) == seen
    assert ("I look." in child.brief) == seen[1]


def test_the_events_of_a_sub_agent_name_the_run_that_asked(repo: Repo) -> None:
    lead(repo, "Read", "Agent")
    repo.task(script=[role("explorer", turn(delegate()), SUBMIT), scout(), *REST])
    own = [event for event in repo.events() if event.get("parent")]
    assert {event["run"] for event in own} == {2}
    assert {event["parent"] for event in own} == {1}
    assert [event["type"] for event in own].count("RunEnded") == 1
    (delegated,) = repo.events("Delegated")
    assert (delegated["run"], delegated["child"], delegated["agent"]) == (1, 2, "scout")


def test_a_direct_answer_is_the_answer_and_nobody_is_asked_again(repo: Repo) -> None:
    lead(repo, "Read", "Agent")
    asked = {**turn(delegate(direct=True)), "usage": {"input": 300, "output": 40}}
    done = repo.task(script=[role("explorer", asked, SUBMIT), scout(), *REST])
    assert done.code == 0, done.out + done.err
    (parent,) = repo.runs("explorer")
    assert [entry["type"] for entry in parent.entries].count("RequestSent") == 1
    assert parent.outcome == "submitted"
    assert repo.state()["findings"]["summary"] == "calc.py:2"
    ended = next(event for event in repo.events("RunEnded") if event["run"] == 1)
    assert ended["saved"] == {
        "tokens_not_resent": 340,
        "synthesis_avoided": 2,
        "estimated": ["synthesis_avoided"],
    }


def test_the_same_delegation_not_direct_is_read_once(repo: Repo) -> None:
    lead(repo, "Read", "Agent")
    repo.task(script=[role("explorer", turn(delegate()), SUBMIT), scout(), *REST])
    (parent,) = repo.runs("explorer")
    assert [entry["type"] for entry in parent.entries].count("RequestSent") == 2
    assert all(event["saved"] is None for event in repo.events("RunEnded"))


def test_a_handoff_goes_on_with_the_same_conversation(repo: Repo) -> None:
    lead(repo, "Read", "Glob", "handoff_to_scout")
    handing = turn(call("handoff_to_scout", reason="it is about finding"), text="not mine")
    after = turn(call("Glob", pattern="*"), call("Grep", pattern="add"), call("Bash", command="true"))
    done = repo.task(script=[role("explorer", handing, after, SUBMIT), *REST])
    assert done.code == 0, done.out + done.err
    (run,) = repo.runs("explorer")
    (entry,) = (entry for entry in run.entries if entry["type"] == "HandedOver")
    assert entry["system"].startswith("You find one thing")
    offered = {tool["name"] for tool in entry["tools"]} - {"RecallOutput", "Skill"}
    assert offered == {"Read", "Grep", "Glob", "SubmitFindings"}
    said = {call["name"]: result["content"] for call, result in run.calls}
    assert "there is no tool Bash" in said["Bash"] or "Bash belongs to" in said["Bash"]
    assert "calc.py" in said["Grep"]
    (handed,) = repo.events("HandedOff")
    assert (handed["source"], handed["to"], handed["reason"]) == ("lead", "scout", "it is about finding")


def test_a_handoff_gives_no_right_that_the_phase_lacks(repo: Repo) -> None:
    lead(repo, "Read", "Grep", "handoff_to_fixer")
    handing = turn(call("handoff_to_fixer", reason="mend it"))
    grabs = turn(*MENDED[1]["tools"], call("Grep", pattern="add"))
    repo.task(script=[role("explorer", handing, grabs, SUBMIT), *REST])
    (run,) = repo.runs("explorer")
    said = {call["name"]: result for call, result in run.calls}
    assert said["Edit"]["is_error"]
    assert said["Grep"]["is_error"]


@pytest.mark.parametrize(
    ("tools", "problem"),
    [
        (("Read", "Agent(scuot)"), "there is no sub-agent scuot"),
        (("Read", "handoff_to_nobody"), "there is no sub-agent nobody"),
    ],
)
def test_a_sub_agent_that_is_not_there_is_named_before_anything_runs(
    repo: Repo, tools: tuple[str, ...], problem: str
) -> None:
    lead(repo, *tools)
    done = repo.task(script=[])
    assert done.code == 2
    assert "lead.md:5: tools: " + problem in done.err
    assert problem in repo.run("check").out + repo.run("check").err


def test_a_role_is_shown_with_those_it_can_give_work_to(repo: Repo) -> None:
    lead(repo, "Read", "Agent(scout)", "handoff_to_fixer")
    shown = repo.run("agents", "show", "lead").out
    assert "Agent(scout)" in shown
    assert "- scout: Use when a thing must be found." in shown
    assert "handoff_to_fixer" in json.loads(repo.run("agents", "show", "lead", "--json").out)["offered"]
    assert "Agent" not in repo.run("agents", "show", "planner").out


def test_two_direct_answers_need_a_way_to_become_one(repo: Repo) -> None:
    lead(repo, "Read", "Agent", **{"agentflow-direct": "scout fixer"})
    done = repo.run("check")
    assert done.code == 2
    assert "have to be put together" in done.out + done.err
    lead(repo, "Read", "Agent", **{"agentflow-direct": "scout fixer", "agentflow-merge": "concatenate"})
    assert repo.run("check").code == 0


def test_a_killed_sub_agent_goes_on_in_its_own_file(repo: Repo) -> None:
    lead(repo, "Read", "Bash", "Agent")
    work = (
        turn(call("Bash", command="echo once >> made.txt")),
        turn(call("Bash", command="echo twice >> made.txt; sleep 5")),
        turn(text="calc.py:2"),
    )
    script = [role("explorer", turn(delegate()), SUBMIT), scout(*work), *REST[:2], verified("ev-0003")]
    process = repo.start_task(script, "--no-sandbox")
    eventually(lambda: "twice" in repo.read("made.txt"))
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    done = repo.run("resume")
    assert done.code == 0, done.out + done.err
    (child,) = repo.runs("scout")
    assert repo.read("made.txt") == "once\ntwice\n"
    assert "interrupted" in child.results[1]["content"]
    assert [result["content"] for result in repo.runs("explorer")[0].results] == ["calc.py:2", "submitted"]


def test_a_script_is_told_of_a_sub_agent_and_may_answer_for_it(repo: Repo) -> None:
    lead(repo, "Read", "Agent")
    told = repo.home / "told.json"
    body = f'cat > {told}; echo \'{{"bail": true, "result": "known since long"}}\''
    hooks = {"SubagentStop": [{"matcher": "scout", "hooks": [{"type": "command", "command": body}]}]}
    (repo.home / ".claude/settings.json").write_text(json.dumps({"hooks": hooks}), "utf-8")
    done = repo.task(script=[role("explorer", turn(delegate()), SUBMIT), scout(), *REST])
    assert done.code == 0, done.out + done.err
    given = json.loads(told.read_text("utf-8"))
    assert (given["agent_type"], given["agent"], given["last_assistant_message"]) == (
        "scout",
        {"name": "scout", "depth": 1},
        "calc.py:2",
    )
    assert repo.state()["findings"]["summary"] == "known since long"


ASKING = {"permissions": {"ask": ["Bash(wc *)"]}}
COUNTS = (turn(call("Bash", command="wc -l calc.py")), turn(text="counted"))


def asking(repo: Repo, *words: str, **more: Any) -> Done:
    """Run a task whose sub-agent makes a call that a person is asked about."""
    (repo.home / ".claude/settings.json").write_text(json.dumps(ASKING), "utf-8")
    lead(repo, "Read", "Bash", "Agent")
    begin = [role("explorer", turn(delegate()), SUBMIT), scout(*COUNTS)]
    last = role("verifier", turn(call("SubmitVerdict", verdict="VERIFIED", evidence=["ev-0003"], reasons=[])))
    return repo.task("make the failing tests pass", *words, script=[*begin, *REST[:2], last], **more)


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
    assert done.code == 0, done.out + done.err
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
    middle = call("Agent", subagent_type="middle", description="d", prompt="delegate it")
    script = [
        role("explorer", turn(middle), SUBMIT),
        role("middle", turn(delegate()), turn(text="from below")),
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
    asks = (turn(call("AskUserQuestion", questions=[QUESTION])), turn(text="told"))
    both = turn(delegate("one"), delegate("two"))
    script = [role("explorer", both, SUBMIT), scout(*asks), scout(*asks), *REST]
    done = repo.task(script=script)
    assert done.code == 75, done.out + done.err
    done = repo.run("answer", repo.folder.name, "B")
    assert done.code == 0, done.out + done.err
    first, second = (run.results[0]["content"] for run in repo.runs("scout"))
    assert first == "other"
    assert "nobody is asked twice in one phase" in second


def test_two_sub_agents_side_by_side_that_wait_are_decided_one_after_the_other(repo: Repo) -> None:
    lead(repo, "Read", "Agent")
    repo.give_role("scout", SCOUT.replace(", Bash]", "]"))
    asked = {"permissions": {"ask": ["Read(calc.py)"]}}
    (repo.home / ".claude/settings.json").write_text(json.dumps(asked), "utf-8")
    both = turn(delegate("one"), delegate("two"))
    assert repo.task(script=[role("explorer", both, SUBMIT), scout(), scout()]).code == 75
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
    return {**turn(call("Escalate", **given, options=["cents", "decimals"], recommended="A")), **more}


def test_what_sub_agents_used_is_counted_once_although_their_question_begins_the_step_anew(
    repo: Repo,
) -> None:
    lead(repo, "Read", "Escalate", "Agent")
    for name in ("scout", "middle"):
        text = SCOUT.replace("name: scout", f"name: {name}")
        repo.give_role(name, text.replace("Bash]", "Escalate, Agent]"))
    middle = call("Agent", subagent_type="middle", description="d", prompt="delegate it")
    ended = [{**each, "usage": USED} for each in scout()["turns"]]
    script = [
        role("explorer", {**turn(delegate("one")), "usage": USED}, {**turn(middle), "usage": USED}),
        role("scout", *ended),
        role("middle", {**turn(delegate("two")), "usage": USED}),
        role("scout", escalated(usage=USED)),
        role("explorer", {**SUBMIT, "usage": USED}),
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
    assert done.code == 0, done.out + done.err
    rest = repo.state()["usage"]["output"] - 60
    others = (run for name in ("planner", "implementer", "verifier") for run in repo.runs(name))
    said = (entry["reply"] for run in others for entry in run.entries if entry["type"] == "ReplyReceived")
    assert rest == USED["output"] + sum(reply["usage"]["output"] for reply in said)


def test_what_was_used_for_half_a_change_is_counted(repo: Repo) -> None:
    steps = [{**each, "usage": USED} for each in MENDED]
    rest = role("implementer", {**turn(call("Read", file_path="calc.py")), "usage": USED}, submit("calc.py"))
    script = [role("implementer", *steps, {"error": 529}), rest]
    assert repo.task("fix add in calc.py", script=script).code == 75
    assert repo.state()["usage"]["output"] == 2 * USED["output"]
    assert repo.run("answer", repo.folder.name, "A").code == 0
    assert repo.state()["usage"]["output"] == 3 * USED["output"]


def test_what_a_run_used_before_its_reply_was_lost_is_counted(repo: Repo) -> None:
    seen = {**turn(call("Read", file_path="calc.py")), "usage": USED}
    lost = role("explorer", seen, {"error": 529})
    assert repo.task(script=[lost, role("explorer", {**SUBMIT, "usage": USED}), *REST]).code == 0
    used = repo.events("RunEnded")
    assert repo.state()["usage"]["output"] == 2 * USED["output"] + sum(
        event["usage"]["output"] for event in used if event["role"] != "explorer"
    )
