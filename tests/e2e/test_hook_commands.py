"""`hooks list`, `hooks new` and `hooks test`."""

import json

from tests.support import play
from tests.support.repo import NewRepo


def test_a_new_hook_is_tried_then_trusted_then_runs(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    made = repo.run("hooks", "new", "PreToolUse", "--name", "no-marker")
    assert made.code == 0, made.err
    script = repo.read(".claude/hooks/no-marker.py")
    assert repo.run("hooks", "new", "PreToolUse", "--name", "no-marker").code == 2
    assert repo.read(".claude/hooks/no-marker.py") == script
    (waiting,) = (row for row in repo.run("hooks", "list", "--json").json if row["source"] == "project")
    assert (waiting["state"], waiting["runs"]) == ("waits for trust", False)
    (row,) = repo.run("hooks", "test", "no-marker", "--event", "PreToolUse", "--json").json
    assert row["decision"] == "not run"
    assert repo.run("trust", "--yes").code == 0
    (row,) = repo.run("hooks", "test", "no-marker", "--event", "PreToolUse", "--json").json
    assert (row["decision"], row["exit_code"]) == ("go on", 0)
    assert row["environment"]["CLAUDE_PROJECT_DIR"] == str(repo.root)
    assert json.loads(row["input"])["tool_name"] == "Bash"
    repo.write({"call.json": json.dumps({"tool_name": "Bash", "tool_input": {"command": "DO-NOT-DO-THIS"}})})
    given = ("--input", str(repo.root / "call.json"))
    told = repo.run("hooks", "test", "no-marker", "--event", "PreToolUse", *given)
    assert "deny" in told.out
    assert "say what to do instead" in told.out


def test_shipped_hooks_are_off_until_named_and_what_never_happens_is_told(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    path = repo.home / ".claude/settings.json"
    path.parent.mkdir(parents=True)
    entry = [{"hooks": [{"type": "command", "command": "true"}]}]
    path.write_text(json.dumps({"hooks": {"TeammateIdle": entry}}))
    listed = repo.run("hooks", "list")
    assert "hooks.TeammateIdle: agentflow never runs this event" in listed.out
    assert "off: `hooks: [notify]` in config.yaml switches it on" in listed.out
    config = repo.home / ".config/agentflow/config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("hooks: [notify]\n")
    runs = {row["name"]: row["runs"] for row in repo.run("hooks", "list", "--json").json}
    assert runs == {name: name == "notify" for name in runs}
    config.write_text("hooks: [notfy]\n")
    assert "there is no shipped hook notfy" in repo.run("hooks", "list").err
    wrong = repo.run("hooks", "test", "--event", "TeammateIdle")
    assert (wrong.code, "never happens in agentflow" in wrong.err) == (2, True)
