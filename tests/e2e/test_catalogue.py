"""The lists of roles and tools, and `check`, which examines every file."""

import json
from typing import Any

import pytest

from tests.support import play
from tests.support.plugin import SKILLS, copy_parts, copy_plugin
from tests.support.repo import NewRepo, Repo


@pytest.fixture
def repo(new_repo: NewRepo) -> Repo:
    return new_repo(play.QUICK)


def test_the_five_roles_are_listed_with_their_tiers(repo: Repo) -> None:
    listed = repo.run("agents", "list", "--json").json
    assert all(role.keys() == {"name", "description", "tier", "tools", "skills", "source"} for role in listed)
    assert {role["name"]: role["tier"] for role in listed} == {
        "explorer": "deep",
        "planner": "deep",
        "implementer": "fast",
        "reviewer": "fast",
        "verifier": "fast",
    }
    assert {role["source"] for role in listed} == {"bundled"}


def test_the_tools_are_listed_with_what_they_can_do(repo: Repo) -> None:
    listed = repo.run("tools", "list", "--json").json
    assert all(tool.keys() == {"name", "category", "effect", "description", "roles"} for tool in listed)
    effects = {tool["name"]: tool["effect"] for tool in listed}
    assert effects == {
        **dict.fromkeys(("Read", "Glob", "Grep", "Skill", "RecallOutput", "WebFetch", "WebSearch"), "read"),
        **dict.fromkeys(("Symbols", "References"), "read"),
        **dict.fromkeys(
            ("AskUserQuestion", "Edit", "Escalate", "MultiEdit", "Remember", "Rename", "Write"), "write"
        ),
        **dict.fromkeys(("TodoWrite", "TodoUpdate", "Write"), "write"),
        **{name: effects[name] for name in effects if name.startswith("Submit")},
        **dict.fromkeys(("Bash", "Mutants", "RunTests", "TryTest"), "execute"),
    }
    assert sum(name.startswith("Submit") for name in effects) == 5
    assert all(tool["description"] for tool in listed)
    roles = {tool["name"]: tool["roles"] for tool in listed}
    assert roles["RecallOutput"] == ["implementer", "reviewer", "verifier"]
    assert roles["SubmitPlan"] == ["planner"]
    assert roles["Mutants"] == ["implementer", "verifier"]


def test_the_shipped_files_are_in_order(repo: Repo) -> None:
    done = repo.run("check", "--json")
    assert done.code == 0
    counts = {"agents": 5, "skills": 6, "hooks": 6, "commands": 0}
    assert done.json == {"problems": [], "counts": counts, "extensions": []}


def test_check_says_of_each_part_of_the_repository_whether_it_counts(repo: Repo) -> None:
    copy_parts(repo.root / ".claude", "agents", "skills", "commands")
    copy_plugin(repo.root / "kit")
    (repo.root / "kit/.mcp.json").rename(repo.root / ".mcp.json")
    hooks = {"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}]}
    repo.write({".claude/settings.json": json.dumps({"hooks": hooks})})
    before = standings(repo)
    assert before["skill", "rounding-money"] == "counts"
    assert before["agent", "Code-Reviewer"] == before["hook", "PreToolUse: true"] == "waits for trust"
    assert {kind for kind, _ in before} == {"skill", "agent", "command", "hook", "MCP server"}
    assert repo.run("trust", "--yes").code == 0
    after = standings(repo)
    assert after["agent", "Code-Reviewer"] == after["hook", "PreToolUse: true"] == "counts"
    assert len([name for kind, name in after if kind == "skill"]) == len(SKILLS)
    said = repo.run("check").out
    assert "agent Code-Reviewer: counts  [.claude/agents/code-reviewer.md]" in said


def standings(repo: Repo) -> dict[tuple[str, str], str]:
    """Return what `check` says of each part of the repository, by kind and name."""
    parts = repo.run("check", "--json").json["extensions"]
    return {(part["kind"], part["name"]): part["standing"] for part in parts}


REVIEWER = """---
name: reviewer
description: d
tools: [Read, {}]
{}metadata: {{agentflow-role: reviewer}}
---
Review.
"""
RIGHTS = {
    "a second writer": ("Write", "one-writer"),
    "a category that writes": ("fs", "one-writer"),
    "a second reader of the web": ("WebFetch", "web-for-explorer"),
    "a second owner of todos": ("TodoWrite", "todos-for-planner"),
    "an unknown tool": ("Wriet", "did you mean Write?"),
}


@pytest.mark.parametrize(("tool", "said"), RIGHTS.values(), ids=RIGHTS)
def test_a_role_with_a_right_of_another_fails_the_check(new_repo: NewRepo, tool: str, said: str) -> None:
    repo = new_repo({"notes.txt": "x\n"})
    path = repo.give_role("reviewer", REVIEWER.format(tool, ""))
    done = repo.run("check", "--json")
    assert done.code == 2
    (problem,) = done.json["problems"]
    assert problem.keys() == {"file", "line", "key", "message", "severity"}
    assert (problem["file"], problem["line"], problem["key"]) == (str(path), 4, "tools")
    assert problem["severity"] == "error"
    assert said in problem["message"]
    assert f"{path}:4: error: " in repo.run("check").out


def test_a_second_writer_with_paths_of_its_own_passes_the_check(new_repo: NewRepo) -> None:
    repo = new_repo({"notes.txt": "x\n"})
    repo.give_role("reviewer", REVIEWER.format("Write", 'write_paths: ["docs/**"]\n'))
    assert repo.run("check").code == 0


def hooked(event: str, command: str, **entry: Any) -> dict[str, Any]:
    handler = {"type": "command", "command": command, **entry}
    return {"hooks": {event: [{"matcher": "*", "hooks": [handler]}]}}


HOOKS: dict[str, tuple[dict[str, Any], int | None, str, str]] = {
    "a near miss of an event": (hooked("PreToolUes", "true"), 3, "did you mean PreToolUse?", "error"),
    "an event nobody knows": (hooked("OnMoonrise", "true"), 3, "is not a known event", "warning"),
    "a script that is not there": (hooked("Stop", "./gone.sh"), 3, "./gone.sh is not there", "error"),
    "a script that cannot run": (hooked("Stop", "./plain.sh -x"), 3, "./plain.sh is not executable", "error"),
    "a script below the project": (
        hooked("Stop", '"$CLAUDE_PROJECT_DIR"/.claude/gone.py'),
        3,
        "gone.py is not there",
        "error",
    ),
    "a script of an interpreter": (
        hooked("Stop", "python3 hooks/gone.py"),
        3,
        "gone.py is not there",
        "error",
    ),
    "a program without a shell": (
        hooked("Stop", "no-such-prog", args=[]),
        3,
        "no program no-such-prog",
        "error",
    ),
    "quotes": (hooked("Stop", "echo 'a"), 3, "quotes", "error"),
    "a rule that does not parse": (
        {"permissions": {"deny": ["Read", "Bash(rm"]}},
        5,
        "'Bash(rm' is not a rule",
        "error",
    ),
    "rules that are none": ({"permissions": []}, 2, "must be an object", "error"),
}


@pytest.mark.parametrize("name", ["settings.json", "settings.local.json", "home"])
@pytest.mark.parametrize(("found", "line", "said", "severity"), HOOKS.values(), ids=HOOKS)
def test_settings_files_are_checked(
    new_repo: NewRepo, found: dict[str, Any], line: int, said: str, severity: str, name: str
) -> None:
    repo = new_repo({"plain.sh": "true\n"})
    path = (repo.home if name == "home" else repo.root) / ".claude" / name.replace("home", "settings.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1))
    done = repo.run("check", "--json")
    assert done.code == (2 if severity == "error" else 0)
    (problem,) = done.json["problems"]
    assert (repo.root / problem["file"], problem["line"], problem["severity"]) == (path, line, severity)
    assert problem["key"].split(".")[0] in {"hooks", "permissions"}
    assert said in problem["message"]


GOOD_COMMANDS = (
    "./run.sh a",
    "bash plain.sh",
    "X=1 ./run.sh",
    "exit 2",
    "cd /tmp && ./x",
    '"$HOME"/x',
    "jq -r .x",
)


@pytest.mark.parametrize("command", GOOD_COMMANDS)
def test_hooks_in_order_are_counted(new_repo: NewRepo, command: str) -> None:
    repo = new_repo({"plain.sh": "true\n", "run.sh": "#!/bin/sh\n"})
    (repo.root / "run.sh").chmod(0o755)
    settings = {**hooked("PreToolUse", command), "permissions": {"allow": ["Bash(git diff *)"], "deny": None}}
    repo.write({".claude/settings.json": json.dumps(settings)})
    done = repo.run("check", "--json")
    assert done.json["problems"] == []
    assert (done.code, done.json["counts"]["hooks"]) == (0, 7)  # six are shipped


def test_wrong_settings_of_the_user_hide_nothing_of_the_repository(new_repo: NewRepo) -> None:
    repo = new_repo({".claude/agentflow.yaml": "checks: {tests: {skip: ''}}\n"})
    path = repo.home / ".config/agentflow/config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("hooks: [notfy]\n")
    mine, theirs = repo.run("check", "--json").json["problems"]
    assert mine["message"] == "hooks: there is no shipped hook notfy"
    assert mine["file"] == str(path)
    assert theirs["message"].endswith("write it as in `checks: {tests: python -m pytest -q}`")


def test_a_folder_below_the_root_is_checked_as_the_repository_it_lies_in(new_repo: NewRepo) -> None:
    repo = new_repo({".claude/agentflow.yaml": "checks: [pytest]\n", "below/a.txt": ""})
    here, below = repo.run("check"), repo.run("check", "-C", "below")
    assert (below.code, below.out) == (2, here.out)
    for command in ("check", "config"):
        away = repo.run(command, "-C", "away")
        assert (away.code, away.err) == (2, "agentflow: away is not a folder\n")


def test_every_problem_of_all_files_is_told(new_repo: NewRepo) -> None:
    both = {**hooked("PreToolUes", "true"), "permissions": {"deny": ["Bash("], "ask": [3]}}
    repo = new_repo({".claude/settings.json": json.dumps(both), ".claude/settings.local.json": "{"})
    done = repo.run("check", "--json")
    assert done.code == 2
    keys = [problem["key"] for problem in done.json["problems"]]
    assert keys == ["permissions.deny", "permissions.ask", "hooks.PreToolUes", None]


BROKEN: dict[str, tuple[str, int, Any]] = {
    "no head": ("Review.\n", 1, None),
    "an open head": ("---\nname: reviewer\n", 2, None),
    "a near miss": (REVIEWER.format("Grep", "").replace("tools:", "tool:"), 4, None),
    "no description": (REVIEWER.format("Grep", "").replace("description: d\n", ""), 1, "description"),
}


@pytest.mark.parametrize(("text", "line", "key"), BROKEN.values(), ids=BROKEN)
def test_a_broken_role_file_fails_the_check_with_its_line(
    new_repo: NewRepo, text: str, line: int, key: str | None
) -> None:
    repo = new_repo({"notes.txt": "x\n"})
    path = repo.give_role("reviewer", text)
    done = repo.run("check", "--json")
    assert done.code == 2
    (problem,) = done.json["problems"]
    assert (problem["file"], problem["line"]) == (str(path), line)
    assert key is None or key in problem["message"]


def test_a_role_that_is_not_trusted_yet_is_named_where_roles_are_looked_at(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    assert repo.run("agents", "new", "release-notes").code == 0
    listed, shown = repo.run("agents", "list"), repo.run("agents", "show", "release-notes")
    assert "release-notes" not in listed.out
    assert "not used until you run `agentflow trust`: .claude/agents/release-notes.md" in listed.err
    assert (shown.code, "until you trust .claude/agents/release-notes.md" in shown.err) == (2, True)
    assert repo.run("trust", "--yes").code == 0
    assert "release-notes" in repo.run("agents", "list").out
