from pathlib import Path
from typing import Any

import pytest

from tests.support import play
from tests.support.repo import Repo

HOSTILE = "x\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp.exe\u2066\u200b\U000e0041\r[bold]"
STEERING = set("\x1b\x07\x9b\u202e\u2066\u200b\U000e0041\r")


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "repo", tmp_path / "home").write(play.QUICK).commit()


def implementer(*calls: dict[str, Any], text: str = "") -> list[dict[str, Any]]:
    last = play.call("SubmitChange", summary=text or "done", files=["calc.py"])
    turns = (play.turn(one, text=text) for one in (*calls, last))
    return [play.findings(), play.plan("calc.py"), play.role("implementer", *turns)]


def test_configuration_that_others_obey_is_written_after_an_approval_only(repo: Repo) -> None:
    script = implementer(play.call("Write", file_path=".vscode/settings.json", content="{}"))
    assert repo.task("set it up", script=script).code == 75
    assert not (repo.root / ".vscode").exists()
    assert "approve" in repo.run("status").out
    repo.run("approve", repo.state()["pending"][0]["id"])
    repo.run("resume")
    assert repo.read(".vscode/settings.json") == "{}"


def test_a_rule_of_the_user_opens_what_it_names(repo: Repo) -> None:
    rules = '{"permissions": {"allow": ["Read", "Edit", "Edit(.vscode/**)", "Read(token.txt)"]}}'
    (repo.home / ".claude").mkdir(parents=True)
    (repo.home / ".claude/settings.json").write_text(rules)
    repo.write({"token.txt": "not one\n", "secret.txt": "hidden\n"})
    read = (play.call("Read", file_path=name) for name in ("token.txt", "secret.txt"))
    repo.task(script=implementer(play.call("Write", file_path=".vscode/a.json", content="{}"), *read))
    assert repo.read(".vscode/a.json") == "{}"
    assert [result["is_error"] for result in repo.runs("implementer")[0].results[:3]] == [False, False, True]


def test_nothing_foreign_steers_the_terminal(repo: Repo) -> None:
    repo.write({HOSTILE: "x"})
    calls = (
        play.call("Bash", command="printf '\\033]0;owned\\007'; ls; rm x*; echo y > y*; touch $'z\\033[2J'"),
        play.call("Read", file_path=HOSTILE),
        play.call("Glob", pattern="*"),
    )
    done = repo.task(f"do it {HOSTILE}", script=implementer(*calls, text=HOSTILE))
    task = repo.folder.name
    asked = (
        "status",
        "status --json",
        "log",
        "log --json",
        "evidence",
        "evidence --json",
        "evidence ev-0002",
    )
    undo = (f"undo {task} --dry-run", f"undo {task} --dry-run --json", f"undo {task}")
    said = [done, *(repo.run(*one.split()) for one in (*asked, *undo))]
    assert "restore" in said[-3].out
    assert [one.out + one.err for one in said if STEERING & set(one.out + one.err)] == []
