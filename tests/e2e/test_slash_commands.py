"""Commands that are called as `/name arguments`: what they become, and what they may do on the way."""

import json

import pytest

from tests.support import play
from tests.support.repo import NewRepo, Repo

FIX = """---
description: Find a function
argument-hint: [name] [file]
allowed-tools: Read, Grep, Bash(git status:*), Bash(echo:*), Bash(touch:*)
---
Where is $1 of $2 defined? All: $ARGUMENTS

!`echo "arg <$1>"`
!`grep -rhs KEY .; touch made`
```
!`echo in a block`
```
Read @calc.py, @.env and ask @nobody.
"""
COMMAND = ".claude/commands/code/find.md"
ANSWER = [
    play.role(
        "explorer",
        play.turn(play.call("SubmitFindings", summary="In calc.py.", findings=[], open_questions=[])),
    )
]
EVIL = '"add; echo PWNED"'


@pytest.fixture
def repo(new_repo: NewRepo) -> Repo:
    return new_repo({**play.LIGHT, COMMAND: FIX}).write({".env": "KEY=hunter2hunter2\n"})


def ask(repo: Repo, *words: str) -> "tuple[int, str]":
    done = repo.run("ask", *words, "--model", repo.scripted(ANSWER))
    return done.code, done.err


def allow(repo: Repo) -> None:
    assert repo.run("trust", "--yes").code == 0


def test_a_command_of_a_repository_counts_after_trust_and_until_it_changes(repo: Repo) -> None:
    code, said = ask(repo, f"/find {EVIL} calc.py")
    assert (code, repo.tasks) == (2, [])
    assert f"/find is not trusted: {COMMAND}" in said
    shown = repo.run("trust").out
    assert 'adds command /find, which runs in the sandbox: echo "arg <$1>"; grep -rhs KEY .; touch' in shown
    allow(repo)
    assert ask(repo, f"/find {EVIL} calc.py")[0] == 0
    repo.write({COMMAND: FIX + "\n!`echo more`\n"})
    code, said = ask(repo, "/find add calc.py")
    assert (code, len(repo.tasks)) == (2, 1)
    assert "is not trusted" in said


def test_everything_in_a_command_is_filled_in_and_kept_beside_what_was_typed(repo: Repo) -> None:
    allow(repo)
    typed = f"/find {EVIL} calc.py"
    code, said = ask(repo, typed)
    assert code == 0, said
    state = repo.state()
    text = state["task"]
    assert state["invoked"]["typed"] == typed
    assert state["invoked"]["file"].endswith(COMMAND)
    assert f"Where is add; echo PWNED of calc.py defined? All: {EVIL} calc.py" in text
    assert "\narg <add; echo PWNED>\n" in text  # one word of the shell, whatever it holds
    assert not (repo.root / "made").exists()  # it was made in a layer that is gone
    assert "hunter2" not in text
    assert "!`echo in a block`" in text
    assert '<file path="calc.py">\ndef add' in text
    assert "Read @calc.py, @.env and ask @nobody." in text
    assert "/find: @.env is not read" in said
    (run,) = repo.runs("explorer")
    assert text in json.dumps(run.entries, ensure_ascii=False).replace("\\n", "\n").replace('\\"', '"')
    assert {"Read", "Grep"} <= run.tools
    assert "Glob" not in run.tools
    assert f"task       {typed}" in repo.run("status").out


def test_a_shell_line_obeys_the_rules_and_the_list_of_its_command(repo: Repo) -> None:
    repo.write({".claude/commands/out.md": "---\nallowed-tools: Bash(git log:*)\n---\n!`python3 -c 1`\n"})
    allow(repo)
    code, said = ask(repo, "/out")
    assert (code, repo.tasks) == (5, [])
    assert "/out may not run python3 -c 1" in said
    repo.write({".claude/commands/out.md": "!`cat .env`\n"})
    allow(repo)
    code, said = ask(repo, "/out")
    assert (code, repo.tasks) == (5, [])
    assert ".env has the name of a secret" in said
    rules = {"permissions": {"deny": ["Bash(echo:*)"]}}
    (repo.home / ".claude").mkdir(exist_ok=True)
    (repo.home / ".claude/settings.json").write_text(json.dumps(rules), "utf-8")
    code, said = ask(repo, "/find add calc.py")
    assert (code, repo.tasks) == (5, [])
    assert "Bash(echo:*)" in said


def test_a_name_is_a_command_a_skill_or_else_text(repo: Repo) -> None:
    mine = repo.home / ".claude/commands/hello.md"
    mine.parent.mkdir(parents=True)
    mine.write_text("Say hello to $ARGUMENTS[0], version $0.\n", "utf-8")
    repo.write(
        {".claude/skills/money/SKILL.md": "---\nname: money\ndescription: M.\n---\nCents. !`echo ran`\n"}
    )
    code, said = ask(repo, "/fined")
    assert (code, repo.tasks) == (2, [])
    assert "there is no command /fined; did you mean /find?" in said
    wanted = {
        "/hello you": "Say hello to you, version you.",
        "/money for $1": "Cents. !`echo ran`\n\nARGUMENTS: for $1",
        "/etc/hosts is read wrongly": "/etc/hosts is read wrongly",
        "/api/users answers 500": "/api/users answers 500",
        "/calc.py is wrong": "/calc.py is wrong",
    }
    for typed, text in wanted.items():
        assert ask(repo, typed)[0] == 0
        newest = (repo.tasks[-1] / "task.md").read_text("utf-8")
        assert text.split("\n")[0] in newest
        (repo.tasks[-1]).rename(repo.home / repo.tasks[-1].name)


def test_commands_are_listed_with_what_they_need(repo: Repo) -> None:
    (row,) = repo.run("commands", "list", "--json").json
    assert (row["name"], row["argument_hint"], row["folder"]) == ("find", "[name] [file]", "code")
    assert (row["source"], row["trusted"], row["description"]) == ("project", False, "Find a function")
    shown = repo.run("commands", "list").out
    assert "/find [name] [file]" in shown
    assert "not trusted: agentflow trust" in shown


def test_a_command_of_the_user_is_replaced_by_a_trusted_one_only(repo: Repo) -> None:
    mine = repo.home / ".claude/commands/find.md"
    mine.parent.mkdir(parents=True)
    mine.write_text("Mine.\n", "utf-8")
    assert ask(repo, "/find")[0] == 0
    assert repo.state()["task"] == "Mine."
    repo.folder.rename(repo.home / "first")
    allow(repo)
    assert ask(repo, "/find add calc.py")[0] == 0
    assert repo.state()["task"].startswith("Where is add of calc.py")


def test_a_wrong_command_is_named_and_never_runs(repo: Repo) -> None:
    repo.write({".claude/commands/bad.md": "---\nallowed-tools: Bash(rm\n---\n!`echo x`\n"})
    code, said = ask(repo, "/bad")
    assert (code, repo.tasks) == (2, [])
    assert "bad.md:2: allowed-tools: the parentheses" in said


def test_hooks_may_add_to_a_command_or_refuse_it(repo: Repo) -> None:
    allow(repo)
    settings = repo.home / ".claude/settings.json"
    settings.parent.mkdir(parents=True, exist_ok=True)

    def hook(matcher: str, command: str) -> None:
        entry = {"matcher": matcher, "hooks": [{"type": "command", "command": command}]}
        settings.write_text(json.dumps({"hooks": {"UserPromptExpansion": [entry]}}))

    hook("find", "echo not now >&2; exit 2")
    code, said = ask(repo, "/find add calc.py")
    assert (code, repo.tasks) == (5, [])
    assert "a hook refused /find: not now" in said
    hook("find", "./none.sh")
    assert ask(repo, "/find add calc.py")[0] == 5
    answer = {"hookEventName": "UserPromptExpansion", "additionalContext": "It is a sum."}
    hook("find", f"echo '{json.dumps({'hookSpecificOutput': answer})}'")
    assert ask(repo, "/find add calc.py")[0] == 0
    assert repo.state()["task"].endswith("It is a sum.")
    repo.folder.rename(repo.home / "first")
    hook("other", "exit 2")
    assert ask(repo, "/find add calc.py")[0] == 0
    assert "It is a sum." not in repo.state()["task"]


def test_the_text_of_a_command_is_neither_title_nor_class_of_the_task(repo: Repo) -> None:
    body = "Fix, refactor and migrate everything. Add tests, rewrite the database schema and deploy it.\n"
    commands = repo.home / ".claude/commands"
    commands.mkdir(parents=True)
    (commands / "why.md").write_text(
        f"---\ndescription: Explain how a function works\n---\n{body}\n$ARGUMENTS\n"
    )
    done = repo.run("task", "/why add", "--model", repo.scripted(ANSWER))
    assert done.code == 0, done.err
    assert (repo.folder / "report.md").read_text().splitlines()[0] == "# answered: /why add"
    assert repo.run("tasks", "--json").json[0]["task"] == "/why add"
    assert repo.state()["task"].startswith("Fix, refactor")
