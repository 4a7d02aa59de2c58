"""Delegation, direct answers and handoffs, through the command."""

import json
import os
import shutil
import signal

import pytest

from tests.support import play
from tests.support.plugin import copy_parts
from tests.support.repo import NewRepo, Repo, eventually
from tests.support.subagents import (
    REST,
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


def test_a_delegation_gives_back_nothing_but_the_text(repo: Repo) -> None:
    lead(repo, "Read", "Grep", "Agent")
    used = [{**each, "usage": USED} for each in scout()["turns"]]
    done = repo.task(script=[play.role("explorer", play.turn(delegate()), SUBMIT), scout(*used), *REST])
    assert done.code == 4, done.out + done.err
    (parent,), (child,) = repo.runs("explorer"), repo.runs("scout")
    assert [result["content"] for result in parent.results] == ["calc.py:2", "submitted"]
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
    goal = "let add return the sum: 'one' # 1 🙂"
    look = play.turn(play.call("Grep", pattern="a - b", output_mode="content"), text="I look.")
    repo.task(
        "--plan",
        goal,
        script=[play.role("explorer", look, play.turn(delegate(context=context)), SUBMIT), scout(), *REST],
    )
    (child,) = repo.runs("scout")
    assert child.brief.endswith("where is add?")
    assert (goal in child.brief, "calc.py:2" in child.brief) == seen
    assert ("I look." in child.brief) == seen[1]


def test_the_events_of_a_sub_agent_name_the_run_that_asked(repo: Repo) -> None:
    lead(repo, "Read", "Agent")
    repo.task(script=[play.role("explorer", play.turn(delegate()), SUBMIT), scout(), *REST])
    own = [event for event in repo.events() if event.get("parent")]
    assert {event["run"] for event in own} == {2}
    assert {event["parent"] for event in own} == {1}
    assert [event["type"] for event in own].count("RunEnded") == 1
    (delegated,) = repo.events("Delegated")
    assert (delegated["run"], delegated["child"], delegated["agent"]) == (1, 2, "scout")


def test_a_direct_answer_is_the_answer_and_nobody_is_asked_again(repo: Repo) -> None:
    lead(repo, "Read", "Agent")
    asked = {**play.turn(delegate(direct=True)), "usage": {"input": 300, "output": 40}}
    done = repo.task(script=[play.role("explorer", asked, SUBMIT), scout(), *REST])
    assert done.code == 4, done.out + done.err
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
    repo.task(script=[play.role("explorer", play.turn(delegate()), SUBMIT), scout(), *REST])
    (parent,) = repo.runs("explorer")
    assert [entry["type"] for entry in parent.entries].count("RequestSent") == 2
    assert all(event["saved"] is None for event in repo.events("RunEnded"))


def test_a_handoff_goes_on_with_the_same_conversation(repo: Repo) -> None:
    lead(repo, "Read", "Glob", "handoff_to_scout")
    handing = play.turn(play.call("handoff_to_scout", reason="it is about finding"), text="not mine")
    after = play.turn(
        play.call("Glob", pattern="*"), play.call("Grep", pattern="add"), play.call("Bash", command="true")
    )
    done = repo.task(script=[play.role("explorer", handing, after, SUBMIT), *REST])
    assert done.code == 4, done.out + done.err
    (run,) = repo.runs("explorer")
    (entry,) = (entry for entry in run.entries if entry["type"] == "HandedOver")
    assert entry["system"].startswith("You find one thing")
    offered = {tool["name"] for tool in entry["tools"]} - {"RecallOutput", "Skill"}
    assert offered == {"Read", "Grep", "Glob", "SubmitFindings"}
    said = {call["name"]: result["content"] for call, result in run.calls}
    assert "You do not have Bash" in said["Bash"] or "Bash belongs to" in said["Bash"]
    assert "calc.py" in said["Grep"]
    (handed,) = repo.events("HandedOff")
    assert (handed["source"], handed["to"], handed["reason"]) == ("lead", "scout", "it is about finding")


def test_a_handoff_gives_no_right_that_the_phase_lacks(repo: Repo) -> None:
    lead(repo, "Read", "Grep", "handoff_to_fixer")
    handing = play.turn(play.call("handoff_to_fixer", reason="mend it"))
    grabs = play.turn(*play.MENDED[1]["tools"], play.call("Grep", pattern="add"))
    repo.task(script=[play.role("explorer", handing, grabs, SUBMIT), *REST])
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
        play.turn(play.call("Bash", command="echo once >> made.txt")),
        play.turn(play.call("Bash", command="echo twice >> made.txt; sleep 5")),
        play.turn(text="calc.py:2"),
    )
    script = [
        play.role("explorer", play.turn(delegate()), SUBMIT),
        scout(*work),
        *REST[:2],
        play.verified("ev-0003"),
    ]
    process = repo.start_task(script, "--no-sandbox")
    eventually(lambda: "twice" in repo.read("made.txt"))
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    done = repo.run("resume")
    assert done.code == 4, done.out + done.err  # nothing proves made.txt
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
    done = repo.task(script=[play.role("explorer", play.turn(delegate()), SUBMIT), scout(), *REST])
    assert done.code == 4, done.out + done.err
    given = json.loads(told.read_text("utf-8"))
    assert (given["agent_type"], given["agent"], given["last_assistant_message"]) == (
        "scout",
        {"name": "scout", "depth": 1},
        "calc.py:2",
    )
    assert repo.state()["findings"]["summary"] == "known since long"


def test_the_implementer_may_use_what_the_user_or_the_trusted_repository_brings(new_repo: NewRepo) -> None:
    repo = new_repo(play.LIGHT)
    work = play.call("Agent", subagent_type="Test-Analyzer", prompt="which tests?", description="tests")
    unknown = play.call("Agent", subagent_type="swallowed errors", prompt="look", description="find errors")
    child = play.role(
        "Test-Analyzer", play.turn(play.call("Read", file_path="calc.py")), play.turn(text="none is missing")
    )
    script = [*play.mending(play.turn(work), play.turn(unknown)), child]
    copy_parts(repo.root / ".claude", "agents")
    assert repo.task(script=script).code == 4
    assert "Agent" not in repo.runs("implementer")[0].tools
    for task in repo.tasks:
        shutil.rmtree(task)
    repo.git("checkout", "-q", "calc.py")
    assert repo.run("trust", "--yes").code == 0
    done = repo.task(script=script)
    assert done.code == 4, done.err
    (run,) = repo.runs("implementer")
    assert "- Test-Analyzer: Use this agent to see which" in run.head["system"]
    assert run.results[0]["content"] == "none is missing"
    assert "yours are Silent-Failure-Hunter, " in run.results[1]["content"]
    assert "Agent" not in repo.runs("planner")[0].tools
    (child_run,) = repo.runs("Test-Analyzer")
    assert child_run.tools - {"Skill"} == {"Glob", "Grep", "Read"}


def test_agents_show_says_what_a_public_file_could_do(repo: Repo) -> None:
    copy_parts(repo.home / ".claude", "agents")
    hunter = repo.run("agents", "show", "Silent-Failure-Hunter").out
    commenter = repo.run("agents", "show", "CommentAnalyzer").out
    assert "may        read files only" in hunter
    assert "called by  implementer" in hunter
    assert "without    LS, NotebookRead, WebFetch, TodoWrite, KillShell, BashOutput, which the" in hunter
    assert "as its caller" in hunter
    assert "may        change files or run commands" in commenter
    told = repo.run("agents", "show", "Test-Analyzer", "--json").json
    assert told["offered"] == ["Glob", "Grep", "Read"]
