"""Permission rules and role lists, through the installed command."""

import json
from pathlib import Path

import pytest

from tests.support.repo import CALC, Repo, call, findings, mending, plan, role, submit, turn

ATTACKS = (
    "pytest",
    "ruff check . ; touch x",
    "ruff check . > x",
    "ruff check $(touch x)",
    "bash -c 'touch x'",
    "env pytest",
    "ls | xargs touch x",
    "find . -exec touch x ;",
    "eval touch x",
    "echo 'touch x' | sh",
)
ORDINARY = ("git status --short | head -5", "ls -la; pwd", "for f in *.py; do wc -l $f; done")


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "repo", tmp_path / "home").write(CALC).commit()


def test_a_reader_runs_what_reads_and_nothing_else(repo: Repo) -> None:
    turns = [turn(call("Bash", command=command), call("Bash", command="pwd")) for command in ATTACKS]
    turns += [turn(call("Bash", command=command)) for command in ORDINARY]
    script = [role("explorer", *turns, *findings()["turns"]), plan("calc.py"), role("implementer", submit())]
    repo.task(script=script)
    (run,) = repo.runs("explorer")
    refused = {asked["input"].get("command"): said["is_error"] for asked, said in run.calls}
    assert [command for command in ATTACKS if not refused[command]] == []
    assert [command for command in ORDINARY if refused[command]] == []
    assert not (repo.root / "x").exists()
    assert len(repo.events("ToolBlocked")) == len(ATTACKS)


def test_an_approval_mode_suspends_on_its_condition(repo: Repo) -> None:
    config = repo.home / ".config/agentflow/config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text('approvals: {tools: {Bash: {when: "args.command matches ^touch"}}}\n')
    turns = [turn(call("Bash", command=command)) for command in ("echo fine", "touch x")]
    done = repo.task(script=[findings(), plan("calc.py"), role("implementer", *turns, submit())])
    assert done.code == 75
    assert [each["input"]["command"] for each in repo.state()["pending"]] == ["touch x"]
    assert not (repo.root / "x").exists()


def test_the_test_command_explains_each_part(repo: Repo) -> None:
    settings = repo.root / ".claude/settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"permissions": {"deny": ["Bash(rm *)"], "ask": ["Bash(git push:*)"]}}))
    denied = repo.run("permissions", "test", "ls; env /bin/rm x", "--json").json
    assert (denied["decision"], denied["reason"]) == ("deny", "Bash(rm *)")
    (part,) = (part for part in denied["parts"] if part["decision"] == "deny")
    assert (part["part"], part["source"]) == ("env /bin/rm x", str(settings))
    assert repo.run("permissions", "test", "git push", "--json").json["decision"] == "ask"
    reviewer = repo.run("permissions", "test", "ruff check . ; touch x", "--role", "reviewer")
    assert reviewer.out.startswith("as the reviewer\ndeny: reviewer may not run touch x")
    assert "agents/reviewer.md" in reviewer.out
    assert repo.run("permissions", "test", "ls", "--role", "nobody").code == 2


def test_a_tool_that_is_denied_as_a_whole_is_not_offered(repo: Repo) -> None:
    settings = repo.root / ".claude/settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"permissions": {"deny": ["Bash"]}}))
    repo.task(script=[findings(), plan("calc.py"), role("implementer", submit())])
    offered = [run.tools for name in ("explorer", "implementer") for run in repo.runs(name)]
    assert len(offered) >= 2
    assert [tools for tools in offered if "Bash" in tools] == []


def test_deleting_the_whole_repository_waits_for_a_person(repo: Repo) -> None:
    repo = repo.write({".gitignore": "local.db\n", "local.db": "only here\n"}).commit()
    done = repo.task(script=mending(turn(call("Bash", command="rm -rf /*"))))
    assert done.code == 75, done.err
    assert repo.read("local.db") == "only here\n"
    (item,) = repo.state()["pending"]
    assert item["input"]["command"] == "rm -rf /*"

    assert repo.run("deny", item["id"], "--reason", "no").code == 0
    assert repo.run("resume").code == 0
    assert repo.read("local.db") == "only here\n"


def test_permissions_test_says_that_it_asks(repo: Repo) -> None:
    asked = repo.run("permissions", "test", "--role", "implementer", "cd / && rm -rf *")
    assert "is about the whole repository, or most of it" in asked.out
    assert "ask" in asked.out
    for command in (
        "rm -rf build && find . -name '*.pyc' -delete",
        "cd tests && rm -rf *",
        "find . -name '*.orig' -print0 | xargs -0 rm -f",
        'd=$(mktemp -d); rm -rf "$d"',
    ):
        free = repo.run("permissions", "test", "--role", "implementer", command)
        assert "whole repository" not in free.out
    assert repo.run("permissions", "test", "rm -rf build", "--json").json["decision"] == "allow"
