"""Every event of a hook that agentflow names fires, with its payload; and what a hook can refuse there."""

import json
from pathlib import Path
from typing import Any

import pytest

from agentflow.core.hook import POINTS
from agentflow.core.points import Point
from tests.support import play
from tests.support.live import configure
from tests.support.repo import NewRepo, Repo
from tests.support.subagents import SUBMIT, delegate, lead, scout, with_subagents

SCRIPTED = sorted(point for point, rules in POINTS.items() if rules.takes_scripts)
COMMON = {"session_id", "transcript_path", "cwd", "permission_mode", "hook_event_name", "task_id", "agent"}


def hooked(repo: Repo, commands: dict[str, str], **more: Any) -> Repo:
    """Give the person hooks, one command for each event."""
    hooks = {point: [{"hooks": [{"type": "command", "command": text}]}] for point, text in commands.items()}
    path = repo.home / ".claude/settings.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"hooks": hooks, **more}))
    return repo


def test_a_hook_that_refuses_everything_is_named_with_its_words_at_the_end(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    script = {"type": "command", "command": "python3 .claude/hooks/gone.py"}
    hooks = {"PreToolUse": [{"matcher": "Glob|SubmitVerdict", "hooks": [script]}]}
    (repo.home / ".claude").mkdir(parents=True)
    (repo.home / ".claude/settings.json").write_text(json.dumps({"hooks": hooks}))
    look = play.turn(play.call("Glob", pattern="*"))
    done = repo.task(script=play.crew(look, look, look, look, play.submit("calc.py")))
    report = (repo.tasks[-1] / "report.md").read_text()
    assert done.code == 1
    for said in (done.err, report):
        assert "hook python3 .claude/hooks/gone.py refused each of the " in said
    assert "can't open file" in report
    repo.task(script=play.mending())
    report = (repo.tasks[-1] / "report.md").read_text()
    assert "hook python3 .claude/hooks/gone.py refused its last one: " in report


def told(repo: Repo) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (repo.home / "told").read_text().splitlines()]


def test_every_event_fires_in_a_task_with_its_payload(new_repo: NewRepo) -> None:
    """One task: two tools, one sub-agent, one approval, one denial, one failing call, one lost model."""
    numbers = "\n".join(f"{n} some words that take up room" for n in range(900))
    repo = with_subagents(new_repo({**play.QUICK, "CLAUDE.md": "Be brief.\n", "big.txt": numbers}))
    configure(repo, limits={"context": 9_000, "result_chars": 12_000})
    lead(repo, "Read", "Grep", "Agent")
    tell = f"cat >> {repo.home}/told"
    allow = (
        '{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}'
    )
    rules = {"ask": ["Edit(calc.py)"], "deny": ["Bash(curl *)"]}
    commands = dict.fromkeys(SCRIPTED, tell) | {"PermissionRequest": f"{tell}; echo '{allow}'"}
    hooked(repo, commands, permissions=rules)
    explorer = play.role("explorer", play.turn(delegate(), play.call("Grep", pattern="add")), SUBMIT)
    broken = play.turn(play.call("Bash", command="curl x"), play.call("Read", file_path="none.py"))
    pages = [play.turn(play.call("Read", file_path="big.txt", offset=n, limit=250)) for n in (1, 250, 500)]
    script = [
        explorer,
        scout(),
        play.plan("calc.py"),
        play.role("implementer", broken, *pages, *play.MENDED, play.submit("calc.py")),
    ]
    done = repo.task(script=[*script, play.verified("ev-0002")])
    assert done.code == 0, done.out + done.err
    commands_folder = repo.home / ".claude/commands"
    commands_folder.mkdir(parents=True)
    (commands_folder / "look.md").write_text("Look at $1.\n")
    repo.task("/look calc.py", script=[play.role("explorer", {"error": 400})])
    said = told(repo)
    seen = {each["hook_event_name"]: each for each in said}
    assert set(SCRIPTED) == set(seen)
    for name, given in seen.items():
        payload = set(POINTS[Point(name)].payload.__struct_fields__)
        assert set(given) - {"agent_id", "agent_type"} >= (COMMON | payload) - {"agent_id", "agent_type"}, (
            name
        )
    assert (seen["UserPromptExpansion"]["command_name"], seen["UserPromptExpansion"]["command_args"]) == (
        "look",
        "calc.py",
    )
    assert seen["PermissionDenied"]["reason"] == "rule Bash(curl *)"
    batches = [each for each in said if each["hook_event_name"] == "PostToolBatch"]
    assert ["Agent", "Grep"] in [[call["tool_name"] for call in each["tool_calls"]] for each in batches]
    assert seen["InstructionsLoaded"]["file_path"].endswith("/CLAUDE.md")
    assert seen["StopFailure"]["error"] == "invalid_request"
    created = [each["task_subject"] for each in said if each["hook_event_name"] == "TaskCreated"]
    assert created[:4] == ["exploration", "planning", "implementation", "verification"]
    assert seen["SubagentStop"]["agent_type"] == "scout"
    assert Path(seen["SubagentStop"]["agent_transcript_path"]).name == "2-scout.jsonl"
    noticed = [each["notification_type"] for each in said if each["hook_event_name"] == "Notification"]
    assert noticed == ["idle_prompt", "idle_prompt"]


REFUSED = {
    "UserPromptSubmit": (5, "a hook refused the task: not today"),
    "TaskCreated": (5, "a hook refused the implementation: not today"),
    "TaskCompleted": (5, "TaskCompleted hooks blocked 8 times: not today"),
    "PostToolBatch": (5, "blocked at PostToolBatch: not today"),
}


@pytest.mark.parametrize("event", REFUSED)
def test_a_hook_that_ends_with_2_refuses_where_something_can_be_refused(
    new_repo: NewRepo, event: str
) -> None:
    repo = hooked(new_repo(play.QUICK), {event: "echo not today >&2; exit 2"})
    again = [play.submit("calc.py")] * 9
    done = repo.task("make the failing tests pass", "--json", script=play.crew(*play.MENDED, *again))
    code, reason = REFUSED[event]
    assert done.code == code, done.out + done.err
    assert reason in str(repo.events("TaskEnded"))


def test_a_hook_sends_a_result_back_with_its_reason_and_then_lets_it_pass(new_repo: NewRepo) -> None:
    once = "test -e seen && exit 0; touch seen; echo add a note >&2; exit 2"
    command = f'grep -q \'"phase":"implementation"\' || exit 0; {once}'
    repo = hooked(new_repo({**play.QUICK, ".gitignore": "seen\n"}), {"TaskCompleted": command})
    done = repo.task(
        "make the failing tests pass",
        script=play.crew(*play.MENDED, play.submit("calc.py"), play.submit("calc.py")),
    )
    assert done.code == 0, done.out + done.err
    (run,) = repo.runs("implementer")
    assert "add a note" in str(run.entries)
    assert [entry["type"] for entry in run.entries].count("RunClosed") == 1
