"""Permission rules and role lists, through the installed command."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support import play
from tests.support.boxes import without_bubblewrap
from tests.support.repo import COMMAND, Repo

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
    return Repo(tmp_path / "repo", tmp_path / "home").write(play.QUICK).commit()


@pytest.mark.parametrize("is_full", [True, False], ids=["bubblewrap", "without bubblewrap"])
def test_a_reader_is_refused_by_words_what_no_sandbox_throws_away(
    repo: Repo, tmp_path: Path, *, is_full: bool
) -> None:
    turns = [
        play.turn(play.call("Bash", command=command), play.call("Bash", command="pwd")) for command in ATTACKS
    ]
    turns += [play.turn(play.call("Bash", command=command)) for command in ORDINARY]
    script = [
        play.role("explorer", *turns, *play.findings()["turns"]),
        play.plan("calc.py"),
        play.role("implementer", play.submit()),
    ]
    repo.task(script=script, env={} if is_full else {"PATH": without_bubblewrap(tmp_path)})
    (run,) = repo.runs("explorer")
    refused = {asked["input"].get("command"): said["is_error"] for asked, said in run.calls}
    assert [command for command in ATTACKS if refused[command]] == ([] if is_full else list(ATTACKS))
    assert [command for command in ORDINARY if refused[command]] == []
    assert not (repo.root / "x").exists()
    assert len(repo.events("ToolBlocked")) == (0 if is_full else len(ATTACKS))


def test_a_search_passes_over_files_that_a_rule_denies_to_be_read(repo: Repo) -> None:
    repo.write(
        {"vault/key.txt": "needle one\n", "docs/Vault/b.txt": "needle two\n", "notes.txt": "needle three\n"}
    )
    repo.write({".claude/settings.json": json.dumps({"permissions": {"deny": ["Read(vault/**)"]}})}).commit()
    calls = (
        play.call("Grep", pattern="needle", output_mode="content"),
        play.call("Grep", pattern="needle [a-z]+\n", output_mode="content", multiline=True),
        play.call("Grep", pattern="needle", path="docs", output_mode="content"),
        play.call("Grep", pattern="needle", path="vault/key.txt"),
        play.call("Glob", pattern="**/*.txt"),
        play.call("Glob", pattern="*", path="vault"),
        play.call("Read", file_path="vault/key.txt"),
        play.call("Read", file_path="notes.txt"),
    )
    script = [
        play.role("explorer", play.turn(*calls), *play.findings()["turns"]),
        play.plan("calc.py"),
        play.role("implementer", play.submit()),
    ]
    repo.task(script=script)
    (run,) = repo.runs("explorer")
    said = [result["content"] for _, result in run.calls]
    assert [text for text in said if "needle one" in text or "needle two" in text] == []
    assert said[0] == said[1] == "notes.txt:1:needle three"
    assert (said[2], said[4], said[5]) == ("no matches", "notes.txt", "no files match")
    assert "Read(vault/**)" in said[3]
    assert "Read(vault/**)" in said[6]
    assert "needle three" in said[7]


def test_an_approval_mode_suspends_on_its_condition(repo: Repo) -> None:
    config = repo.home / ".config/agentflow/config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text('approvals: {tools: {Bash: {when: "args.command matches ^touch"}}}\n')
    turns = [play.turn(play.call("Bash", command=command)) for command in ("echo fine", "touch x")]
    done = repo.task(
        script=[play.findings(), play.plan("calc.py"), play.role("implementer", *turns, play.submit())]
    )
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
    asked = ("permissions", "test", "ruff check . ; touch x", "--role", "reviewer")
    held = repo.run(*asked)
    assert held.out.startswith("as the reviewer\nallow: built-in: works on a copy that is thrown away\n")
    config = repo.home / ".config/agentflow/config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("sandbox: off\n")
    reviewer = repo.run(*asked)
    assert reviewer.out.startswith("as the reviewer\ndeny: reviewer may not run touch x")
    assert "agents/reviewer.md" in reviewer.out
    assert repo.run("permissions", "test", "ls", "--role", "nobody").code == 2


def test_a_tool_that_is_denied_as_a_whole_is_not_offered(repo: Repo) -> None:
    settings = repo.root / ".claude/settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"permissions": {"deny": ["Bash"]}}))
    repo.task(script=[play.findings(), play.plan("calc.py"), play.role("implementer", play.submit())])
    offered = [run.tools for name in ("explorer", "implementer") for run in repo.runs(name)]
    assert len(offered) >= 2
    assert [tools for tools in offered if "Bash" in tools] == []


def test_deleting_the_whole_repository_waits_for_a_person(repo: Repo) -> None:
    repo = repo.write({".gitignore": "local.db\n", "local.db": "only here\n"}).commit()
    done = repo.task(script=play.mending(play.turn(play.call("Bash", command="rm -rf /*"))))
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


WHERE = 'command -v python; echo "$VIRTUAL_ENV $TERM $NO_COLOR"; tool-of-the-repository; echo "$PATH"'
FREELY = (
    "python3 - <<'E'\nprint(6 * 7)\nE",
    "cat > note.txt <<E\nat $PWD\nE\nrm note.txt",
    'bash -c "$(echo echo spoken)"',
    "eval echo evaluated",
    "echo 'echo piped' | sh",
    "for f in *.py; do wc -l < $f; done | sort",
    "cat <<A <<B\n1\nA\n2\nB",
    "cd .venv && ls && git log --oneline | head -1",
)
"""What an implementer's shell is used for, parsed with certainty or not."""
ON_A_COPY = (
    "python -m unittest discover -q tests",
    "touch x && ls x",
    "sed -i s/a/b/ .gitignore && git diff --stat",
    *FREELY,
)


def bash(*commands: str) -> dict[str, Any]:
    return play.turn(*(play.call("Bash", command=command) for command in commands))


@pytest.fixture(scope="module")
def at_work(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """A task in a repository with an environment of its own, ours being first on PATH."""
    folder = tmp_path_factory.mktemp("work")
    repo = Repo(folder / "repo", folder / "home").write({**play.CALC, ".gitignore": ".venv\n"}).commit()
    programs = {"python": 'exec python3 "$@"', "tool-of-the-repository": "printf '\\033[31mfound\\033[0m\\n'"}
    for name, body in programs.items():
        repo.write({f".venv/bin/{name}": f"#!/bin/sh\n{body}\n"})
        (repo.root / ".venv/bin" / name).chmod(0o755)
    script = [
        play.role("explorer", bash(WHERE), *play.findings()["turns"]),
        play.plan("calc.py"),
        play.role("implementer", bash(WHERE, *FREELY), *play.MENDED, play.submit("calc.py")),
        play.role("verifier", bash(WHERE, *ON_A_COPY), *play.verified("ev-9999")["turns"]),
    ]
    repo.task(script=script, env={"PATH": f"{COMMAND.parent}{os.pathsep}{repo.environment['PATH']}"})
    return repo


def said(repo: Repo, name: str) -> dict[str, dict[str, Any]]:
    (run,) = repo.runs(name)
    return {made["input"]["command"]: result for made, result in run.calls if made["name"] == "Bash"}


@pytest.mark.parametrize("name", ["explorer", "implementer", "verifier"])
def test_the_environment_of_the_repository_leads_and_ours_is_not_there(at_work: Repo, name: str) -> None:
    program, told, found, path, *_ = said(at_work, name)[WHERE]["content"].splitlines()
    environment = at_work.root.resolve() / ".venv"
    assert (program, told, found) == (f"{environment}/bin/python", f"{environment} dumb 1", "found")
    assert path.split(os.pathsep)[0] == f"{environment}/bin"
    assert str(COMMAND.parent) not in path.split(os.pathsep)


@pytest.mark.parametrize(("name", "commands"), [("implementer", FREELY), ("verifier", ON_A_COPY)])
def test_a_shell_is_used_as_people_use_one(at_work: Repo, name: str, commands: tuple[str, ...]) -> None:
    results = said(at_work, name)
    assert [text for text in commands if "\nexit 0" not in f"\n{results[text]['content']}"] == []
    assert at_work.git("status", "--porcelain") == " M calc.py\n"


@pytest.mark.parametrize(
    "command",
    [
        "eval rm x",
        "echo 'rm x' | sh",
        "bash <<'E'\nrm x\nE",
        "python3 - <<'E'\nimport os; os.system('rm x')\nE",
    ],
)
def test_a_rule_is_not_got_past_by_what_is_hard_to_judge(repo: Repo, command: str) -> None:
    settings = repo.root / ".claude/settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"permissions": {"deny": ["Bash(rm *)"]}}))
    denied = repo.run("permissions", "test", command, "--json").json
    assert (denied["decision"], "Bash(rm *)" in denied["reason"]) == ("deny", True)


def test_only_refusals_three_turns_long_end_a_run_and_the_result_says_whose(repo: Repo) -> None:
    settings = repo.root / ".claude/settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"permissions": {"deny": ["Bash(touch *)"]}}))
    looking = [bash("touch a"), bash("touch b"), bash("ls", "touch c")] * 2
    done = repo.task(
        script=[
            play.role("explorer", *looking, *play.findings()["turns"]),
            play.plan("calc.py"),
            play.role("implementer", *[bash("touch x")] * 3, play.turn(text="nothing to be done")),
        ],
    )
    assert done.code == 1
    reached = [event["phase"] for event in repo.events("PhaseStarted")]
    assert "implementation" in reached, reached
    (run,) = repo.runs("implementer")
    assert run.outcome == "confused"
    assert "rule Bash(touch *)" in repo.read(f".claude/agentflow/{repo.folder.name}/report.md")
