"""Files that trusted hooks write: trust does not seal them, and they are not the task's change."""

import json
from pathlib import Path

import pytest

from tests.support import play
from tests.support.repo import Repo


def trusted(tmp_path: Path, command: str, *points: str, files: dict[str, str] | None = None) -> Repo:
    """Return a repository whose own hook runs a command at these points, and is trusted."""
    hooks = {point: [{"hooks": [{"type": "command", "command": command}]}] for point in points}
    repo = Repo(tmp_path / "repo", tmp_path / "home").write({**play.QUICK, **(files or {})})
    repo.write({".claude/settings.json": json.dumps({"hooks": hooks})}).commit()
    assert repo.run("trust", "--yes").code == 0
    return repo


def told(repo: Repo) -> str:
    return " ".join(event["message"] for event in repo.events("Warned"))


LOG = 'echo x >> "$CLAUDE_PROJECT_DIR/hooks.log"'
MEND = "make the failing tests pass"


@pytest.mark.parametrize("files", [{}, {"hooks.log": "an old line\n"}], ids=["new", "there"])
def test_a_hook_may_write_the_file_that_its_command_names(tmp_path: Path, files: dict[str, str]) -> None:
    repo = trusted(tmp_path, LOG, "PreToolUse", files=files)
    done = repo.task(MEND, "--json", script=play.mending())
    assert done.code == 0, done.err
    assert "has changed since it was trusted" not in told(repo)
    assert repo.read("hooks.log").count("x\n") > 2


def test_a_file_that_a_hook_writes_and_runs_is_sealed(tmp_path: Path) -> None:
    repo = trusted(tmp_path, "true >> x.sh; sh x.sh", "PreToolUse", files={"x.sh": "true\n"})
    change = play.turn(play.call("Bash", command=f"echo 'touch {tmp_path}/ran' >> x.sh"))
    done = repo.task(MEND, "--json", script=play.crew(change, *play.MENDED, play.submit("calc.py")))
    assert done.code != 0
    assert "x.sh has changed since it was trusted" in str([run.results for run in repo.runs("implementer")])
    assert not (tmp_path / "ran").exists()


def test_a_hook_does_not_write_through_a_link_that_a_command_put_in_its_place(tmp_path: Path) -> None:
    repo = trusted(tmp_path, LOG, "PreToolUse")
    outside = tmp_path / "profile"
    outside.write_text("")
    link = play.turn(play.call("Bash", command=f"ln -sf {outside} hooks.log"))
    repo.task(MEND, script=play.crew(link, *play.MENDED, play.submit("calc.py")))
    assert "is now a link" in str([run.results for run in repo.runs("implementer")])
    assert outside.read_text() == ""


def test_what_a_hook_writes_is_told_and_is_not_the_tasks_change(tmp_path: Path) -> None:
    points = ("SessionStart", "PreToolUse", "PostToolUse", "Stop", "SessionEnd")
    write = "for n in 1 2 3 4 5 6; do mkdir -p cache; echo $n >> cache/$n; done; echo x >> hooks.log"
    repo = trusted(tmp_path, f"sh hook.sh; {LOG}", *points, files={"hook.sh": write})
    done = repo.task(MEND, "--json", "--events", str(tmp_path / "events"), script=play.mending())
    assert done.code == 0, done.err
    assert (done.json["files_changed"], done.json["class"]) == (["calc.py"], "implementation")
    assert "hooks.log" in done.json["hooks_changed"]
    report = (repo.folder / "report.md").read_text()
    assert "- M hooks.log" not in report
    assert "- hooks.log" in report.split("## Changed only by hooks")[1]
    assert "hooks.log" not in report.split("```diff")[1]
    assert "hooks" in repo.run("status").out
    assert repo.run("verify", repo.folder.name).code == 0
    undone = repo.run("undo", repo.folder.name, "--json").json
    assert undone["restored"] == ["calc.py"]
    assert "hooks.log" in undone["kept"]


def test_a_hook_that_formats_what_was_edited_leaves_it_the_tasks_change(tmp_path: Path) -> None:
    repo = trusted(tmp_path, "echo '# formatted' >> calc.py", "PostToolUse")
    done = repo.task(MEND, "--json", script=play.mending())
    assert done.json["files_changed"] == ["calc.py"], done.err
    assert "+# formatted" in (repo.folder / "report.md").read_text()
    assert done.json["hooks_changed"] == []


ATTACKS = {
    "before the hook wrote it": "echo y >> hooks.log",
    "on top of the hook's": "cat hooks.log; echo y >> hooks.log",
    "in its place": "rm -f hooks.log; echo y > hooks.log",
    "only its mode": "chmod 700 hooks.log",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_file_that_a_command_and_a_hook_write_is_the_tasks_change(tmp_path: Path, name: str) -> None:
    repo = trusted(tmp_path, "echo x >> hooks.log", "PreToolUse", "PostToolUse", files={"hooks.log": "-\n"})
    script = play.crew(
        play.turn(play.call("Bash", command=ATTACKS[name])), *play.MENDED, play.submit("calc.py", "hooks.log")
    )
    done = repo.task(MEND, "--json", script=script)
    assert "hooks.log" in done.json["files_changed"], done.err
    assert done.json["hooks_changed"] == []


def test_a_check_that_a_hook_changes_is_judged_as_the_tasks_change(tmp_path: Path) -> None:
    weaken = "sed -i 's/a + b/a - b/' tests/test_calc.sh"
    repo = trusted(tmp_path, weaken, "PostToolUse")
    done = repo.task(
        MEND, "--json", script=play.crew(play.turn(play.call("Bash", command="true")), play.submit("calc.py"))
    )
    assert "tests/test_calc.sh" in done.json["files_changed"]
    assert done.code != 0


def test_what_only_hooks_changed_is_no_change_that_can_be_verified(tmp_path: Path) -> None:
    repo = trusted(tmp_path, LOG, "PreToolUse")
    done = repo.task(
        MEND, "--json", script=play.crew(play.turn(play.call("Read", file_path="calc.py")), play.submit())
    )
    assert (done.json["files_changed"], done.json["hooks_changed"]) == ([], ["hooks.log"])
    assert done.code != 0
    assert "nothing was changed" in (repo.folder / "report.md").read_text()


def test_what_a_command_writes_between_two_processes_of_a_task_is_not_the_hooks(tmp_path: Path) -> None:
    repo = trusted(tmp_path, "echo x >> hooks.log", "PreToolUse", files={"hooks.log": "-\n"})
    stop = ("--json", "--pause-after", "implementation")
    assert repo.task(MEND, *stop, script=play.mending()).json["hooks_changed"] == ["hooks.log"]
    repo.write({"hooks.log": "mine\n"})
    done = repo.run("resume", "--json")
    assert "hooks.log" in done.json["files_changed"], done.err
    assert done.json["hooks_changed"] == []
