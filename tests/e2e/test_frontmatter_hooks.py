"""Hooks in the frontmatter of roles, sub-agents and skills count while those are active."""

import json
from pathlib import Path
from typing import Any

from agentflow.settings import find_bundled
from tests.support import play
from tests.support.repo import NewRepo, Repo
from tests.support.subagents import REST, SCOUT, SUBMIT, delegate, lead, scout, with_subagents

TELL = "cat >> .git/told"


def hooks(**events: str) -> str:
    """Return the lines of a head that bring one command for each event."""
    entries = [
        f"  {event}:\n  - hooks:\n    - {{type: command, command: {json.dumps(command)}, timeout: 2.5}}\n"
        for event, command in events.items()
    ]
    return f"hooks:\n{''.join(entries)}"


def with_hooks(text: str, lines: str) -> str:
    head, body = text.removeprefix("---\n").split("---\n", 1)
    return f"---\n{head}{lines}---\n{body}"


def implementer(lines: str) -> str:
    return with_hooks((find_bundled("agents") / "implementer.md").read_text(), lines)


def told(repo: Repo) -> list[tuple[str, str]]:
    place = repo.root / ".git/told"
    said = map(json.loads, place.read_text().splitlines() if place.exists() else ())
    return [(each["hook_event_name"], each["agent"]["name"]) for each in said]


def warnings(repo: Repo) -> str:
    return " ".join(event["message"] for event in repo.events("Warned"))


def results(repo: Repo, name: str) -> str:
    (run,) = repo.runs(name)
    return str([result["content"] for _, result in run.calls])


def delegating(*turns: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        play.role("explorer", play.turn(play.call("Grep", pattern="add"), delegate()), SUBMIT),
        scout(*turns),
        *REST,
    ]


def test_hooks_of_a_role_are_asked_in_its_runs_only(new_repo: NewRepo) -> None:
    repo = new_repo(play.LIGHT)
    repo.give_role("implementer", implementer(hooks(PreToolUse=TELL, TaskCompleted=TELL, SessionStart=TELL)))
    done = repo.task(script=play.mending())
    assert done.code == 4, done.err
    assert set(told(repo)) == {("PreToolUse", "implementer"), ("TaskCompleted", "implementer")}
    assert "hooks.SessionStart: is not supported in the frontmatter of a role" in warnings(repo)
    shown = repo.run("agents", "show", "implementer", "--json").json
    assert any("at TaskCompleted (user)" in each for each in shown["hooks"])
    assert not any("told" in each for each in repo.run("agents", "show", "planner", "--json").json["hooks"])


def test_hooks_of_a_subagent_are_asked_while_it_runs_and_its_stop_is_that_of_a_subagent(
    new_repo: NewRepo,
) -> None:
    repo = with_subagents(new_repo(play.LIGHT))
    lead(repo, "Read", "Grep", "Agent")
    repo.give_role(
        "scout", with_hooks(SCOUT, hooks(PreToolUse=f"{TELL}; echo keep off >&2; exit 2", Stop=TELL))
    )
    done = repo.task(script=delegating())
    assert done.code == 4, done.err
    assert told(repo) == [("PreToolUse", "scout"), ("SubagentStop", "scout")]
    assert "keep off" in results(repo, "scout")
    assert "keep off" not in results(repo, "explorer")


def test_a_guard_of_a_subagent_that_cannot_work_blocks(new_repo: NewRepo) -> None:
    repo = with_subagents(new_repo(play.LIGHT))
    lead(repo, "Read", "Grep", "Agent")
    repo.give_role("scout", with_hooks(SCOUT, hooks(PreToolUse="./none.sh")))
    assert repo.task(script=delegating()).code == 4
    assert "none.sh" in results(repo, "scout")
    assert "def add" not in results(repo, "scout")


def test_a_role_whose_hooks_are_wrong_does_not_run_without_them(new_repo: NewRepo) -> None:
    repo = with_subagents(new_repo(play.LIGHT))
    lead(repo, "Read", "Grep", "Agent")
    repo.give_role("scout", with_hooks(SCOUT, hooks(PreToolUes=TELL)))
    assert repo.task(script=[play.role("explorer", play.turn(delegate()), SUBMIT), *REST]).code == 4
    assert "did you mean PreToolUse?" in warnings(repo)
    assert repo.runs("scout") == []
    repo.give_role("implementer", implementer(hooks(PreToolUes=TELL)))
    refused = repo.task(script=play.mending())
    assert refused.code == 2
    assert "implementer.md" in refused.err
    assert "did you mean PreToolUse?" in refused.err


SKILL = ".claude/skills/money/SKILL.md"
HEAD = "---\nname: money\ndescription: How amounts are kept here.\n---\nAmounts are cents.\n"
GUARD = """hooks:
  SessionStart: [{hooks: [{type: command, command: "true"}]}]
  PreToolUse: [{matcher: Grep, hooks: [{type: command, command: .claude/guard.sh}]}]
  PostToolUse: [{hooks: [{type: command, command: "cat >> .git/told", once: true}]}]
"""
SCRIPT = "#!/bin/sh\necho no search with money >&2\nexit 2\n"
OPEN, CLOSE = play.call("Skill", skill="money"), play.call("Skill", skill="money", close=True)
SEARCH = play.call("Grep", pattern="def")


def with_skill(new_repo: NewRepo) -> Repo:
    repo = new_repo(play.LIGHT).write({SKILL: with_hooks(HEAD, GUARD), ".claude/guard.sh": SCRIPT})
    (repo.root / ".claude/guard.sh").chmod(0o755)
    return repo.commit()


def test_hooks_of_a_trusted_skill_are_asked_while_it_is_open(new_repo: NewRepo) -> None:
    repo = with_skill(new_repo)
    shown = repo.run("trust")
    assert "runs at PreToolUse, outside the sandbox: .claude/guard.sh" in shown.out
    assert "is run by a hook at PreToolUse" in shown.out
    assert "hooks.SessionStart: is not supported in the frontmatter of a skill" in shown.out + shown.err
    assert repo.run("trust", "--yes").code == 0
    turns = [
        play.turn(SEARCH),
        play.turn(OPEN),
        play.turn(SEARCH),
        play.turn(play.call("Read", file_path="calc.py")),
        play.turn(CLOSE),
        play.turn(SEARCH),
    ]
    done = repo.task(script=play.mending(*turns))
    assert done.code == 4, done.err
    (run,) = repo.runs("implementer")
    searches = [result["content"] for made, result in run.calls if made["name"] == "Grep"]
    assert ["no search with money" in text for text in searches] == [False, True, False]
    assert told(repo) == [("PostToolUse", "implementer")]  # of the call that opened it: once means once
    parts = {part["name"]: part["standing"] for part in repo.run("check", "--json").json["extensions"]}
    assert parts["PreToolUse: .claude/guard.sh"] == "counts"
    assert parts["SessionStart"] == "not supported"


def test_hooks_of_a_repository_that_is_not_trusted_are_named_and_not_run(new_repo: NewRepo) -> None:
    repo = with_skill(new_repo)
    repo.write(
        {".claude/agents/helper.md": with_hooks(SCOUT.replace("scout", "helper"), hooks(PreToolUse=TELL))}
    )
    done = repo.task(script=play.mending(play.turn(OPEN), play.turn(SEARCH)))
    assert done.code == 4, done.err
    assert told(repo) == []
    assert "no search with money" not in results(repo, "implementer")
    assert "3 hooks, 1 script" in warnings(repo)
    rows = repo.run("check", "--json").json["extensions"]
    waiting = {row["name"] for row in rows if row["kind"] == "hook" and row["standing"] == "waits for trust"}
    assert waiting == {"PreToolUse: .claude/guard.sh", f"PreToolUse: {TELL}", f"PostToolUse: {TELL}"}
    states = {row["name"]: row["state"] for row in repo.run("hooks", "list", "--json").json}
    assert states[".claude/guard.sh"] == "waits for trust"


def test_check_says_of_each_hook_of_a_repository_whether_it_counts(new_repo: NewRepo) -> None:
    entry = {"hooks": [{"type": "command", "command": "true"}, {"type": "prompt", "prompt": "is it?"}]}
    settings = {"hooks": {"PreToolUse": [entry], "Setup": [entry]}}
    files = {
        ".claude-plugin/plugin.json": json.dumps({"name": "kit", "version": "1.0.0"}),
        "agents/helper.md": with_hooks(SCOUT.replace("scout", "helper"), hooks(PreToolUse=TELL)),
        "hooks/hooks.json": json.dumps(
            {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}
        ),
        ".claude/settings.json": json.dumps(settings),
    }
    repo = new_repo({**play.LIGHT, **files})
    assert repo.run("trust", "--yes").code == 0
    rows = [row for row in repo.run("check", "--json").json["extensions"] if row["kind"] == "hook"]
    assert [(row["name"], row["standing"], Path(row["file"]).name) for row in rows] == [
        ("PreToolUse: true", "counts", "settings.json"),
        ("Stop: true", "counts", "hooks.json"),
        ("PreToolUse[0].hooks[1]", "not supported", "settings.json"),
        ("Setup", "not supported", "settings.json"),
        ("helper", "not supported", "helper.md"),
    ]
    assert "agentflow never runs this event" in rows[3]["reason"]
    repo.task(script=[play.role("explorer", SUBMIT), play.plan("calc.py"), *play.mending()[2:]])
    assert "hooks: those in a plugin's agents and skills have no effect" in warnings(repo)
    assert told(repo) == []
