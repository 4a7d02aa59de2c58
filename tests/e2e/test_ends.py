"""However a task ends, its result says what is on the disk at that moment."""

import json
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import play
from tests.support.repo import NewRepo, Repo, eventually


def hook(point: str, command: str, **more: Any) -> dict[str, Any]:
    return {"hooks": {point: [{**more, "hooks": [{"type": "command", "command": command}]}]}}


def user_hook(repo: Repo, point: str, command: str, **more: Any) -> None:
    repo.write({"../home/.claude/settings.json": json.dumps(hook(point, command, **more))})


def script(*turns: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a script in which the implementer edits calc.py, and then does this."""
    return [play.findings(), play.plan("calc.py"), play.role("implementer", *play.MENDED, *turns)]


def slow() -> list[dict[str, Any]]:
    """Return a script in which the implementer is at work on a command once it has edited calc.py."""
    return script(play.turn(play.call("Bash", command="sleep 300")))


def report(repo: Repo) -> str:
    return (repo.folder / "report.md").read_text("utf-8")


def tree_after(text: str) -> str:
    (said,) = re.findall(r"^- tree after: (\w+)", text, re.MULTILINE)
    return str(said)


def tree_on_disk(repo: Repo) -> str:
    """Return the tree of the files, all of which but our own are named."""
    repo.git("add", "-A", ".", ":!.claude")
    return repo.git("write-tree").strip()


def tells_the_edit(repo: Repo, told: dict[str, Any]) -> None:
    text = report(repo)
    assert told["files_changed"] == ["calc.py"]
    assert "+    return a + b" in text
    assert "- M calc.py" in text
    assert tree_after(text) == tree_on_disk(repo)
    assert json.loads(repo.run("status", "--json").out)["tree"] == tree_after(text)


Way = Callable[[Repo], None]
STOPS = 'echo \'{"continue": false, "stopReason": "enough"}\''
ENDS: dict[str, tuple[list[dict[str, Any]], tuple[str, ...], Way | None, int]] = {
    "the model refuses": (script({"error": 400}), (), None, 6),
    "the model gives up": (script({"error": 529}), (), None, 75),
    "no submission": (script(play.turn(text="done")), (), None, 75),
    "a limit of time": (slow(), ("--timeout", "6"), None, 3),
    "a hook says stop": (
        script(play.submit("calc.py")),
        (),
        lambda repo: user_hook(repo, "PostToolUse", STOPS, matcher="Edit"),
        5,
    ),
}


@pytest.mark.parametrize("name", ["the model gives up", "a limit of time", "a hook says stop"])
def test_an_end_after_an_edit_tells_of_the_edit(new_repo: NewRepo, name: str) -> None:
    turns, options, way, code = ENDS[name]
    repo = new_repo(play.LIGHT)
    if way:
        way(repo)
    done = repo.task("make the failing tests pass", "--json", *options, script=turns)
    assert done.code == code, done.err
    tells_the_edit(repo, done.json)


def is_calling(repo: Repo) -> bool:
    return any(event["tool"] == "Bash" for event in repo.events("ToolStarted"))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_after_an_edit_tells_of_the_edit(new_repo: NewRepo, number: int, code: int) -> None:
    repo = new_repo(play.LIGHT)
    with repo.start_task(slow(), "--json") as process:
        eventually(lambda: is_calling(repo))
        process.send_signal(number)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == code
    tells_the_edit(repo, json.loads(out))


@pytest.mark.parametrize("is_begun", [False, True], ids=["as it begins", "and again as it ends"])
def test_a_signal_that_comes_early_or_twice_is_told_as_well(new_repo: NewRepo, is_begun: bool) -> None:
    repo = new_repo({**play.LIGHT, ".claude/agentflow.yaml": "checks: {tests: pytest}\n"})
    with repo.start_task(slow()) as process:
        assert process.stderr is not None
        assert process.stderr.readline()  # what is said of the settings, before anything is done
        if is_begun:
            eventually(lambda: is_calling(repo))
            process.send_signal(signal.SIGTERM)
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out.splitlines()[:1]) == (143, ["! cancelled: stopped by a signal"]), err


def test_a_task_under_nohup_outlives_its_terminal(new_repo: NewRepo) -> None:
    repo = new_repo(play.LIGHT)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = repo.start_task(slow())
    finally:
        signal.signal(signal.SIGHUP, before)
    with process:
        eventually(lambda: is_calling(repo))
        process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 143


def test_a_change_that_is_gone_again_is_in_no_result(new_repo: NewRepo) -> None:
    repo = new_repo(play.LIGHT)
    back = play.turn(play.call("Bash", command="sed -i 's/a + b/a - b/' calc.py"))
    done = repo.task("make the failing tests pass", "--json", script=script(back, {"error": 400}))
    assert (done.code, done.json["files_changed"]) == (6, [])
    assert "```diff" not in report(repo)


def test_what_was_changed_by_hand_while_a_killed_task_lay_is_told_at_its_end(new_repo: NewRepo) -> None:
    repo = new_repo(play.LIGHT)
    with repo.start_task(slow()) as process:
        eventually(lambda: is_calling(repo))
        process.kill()
        process.communicate()
    repo.write({"notes.txt": "mine\n"})
    repo.scripted([*slow()[:2], play.role("implementer", *([{}] * 3), {"error": 400})])
    done = repo.run("resume", "--json")
    assert (done.code, done.json["files_changed"]) == (6, ["calc.py", "notes.txt"]), done.err


def test_a_task_that_was_cut_short_goes_on_in_the_run_it_had(new_repo: NewRepo) -> None:
    repo = new_repo(play.LIGHT)
    turns = play.mending(play.turn(play.call("Bash", command="echo x > new.txt; sleep 300")))
    with repo.start_task(turns) as process:
        eventually((repo.root / "new.txt").exists)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert "- A new.txt" in report(repo)
    done = repo.run("resume", "--json")
    assert (done.code, done.json["files_changed"]) == (4, ["calc.py", "new.txt"]), done.err
    assert len(repo.runs("implementer")) == 1


def test_what_changes_after_the_verdict_is_not_verified(new_repo: NewRepo, tmp_path: Path) -> None:
    """The session's last hook waits here until somebody else has changed a file."""
    repo = new_repo(play.LIGHT)
    place, asked, changed = repo.root / "calc.py", tmp_path / "asked", tmp_path / "changed"
    user_hook(repo, "SessionEnd", f"touch {asked}; while ! test -e {changed}; do sleep 0.01; done")
    text = place.read_text()
    with repo.start_task(play.mending(), "--json") as process:
        eventually(asked.exists)
        place.write_text(text + "\n# later\n")
        changed.touch()
        out, _ = process.communicate(timeout=60)
    told = json.loads(out)
    assert process.returncode == 1
    assert (told["status"], told["files_changed"]) == ("failed", ["calc.py"])
    assert "changed after the checks began: calc.py" in report(repo)


def test_files_that_cannot_be_looked_at_are_told_as_unknown_and_the_task_ends_as_it_does(
    new_repo: NewRepo,
) -> None:
    repo = new_repo(play.LIGHT)
    user_hook(repo, "SessionEnd", "mv .git gone")
    done = repo.task("make the failing tests pass", "--json", script=script({"error": 400}))
    assert (done.code, done.json["files_changed"]) == (6, None), done.err
    assert "tree after: unknown" in report(repo)
    (repo.root / "gone").rename(repo.root / ".git")
    assert repo.run("status", "--json").json["tree"] is None


def test_a_cost_that_is_not_known_is_told_so_in_the_report_too(new_repo: NewRepo) -> None:
    repo = new_repo(play.LIGHT)
    done = repo.task("make the failing tests pass", "--json", script=[play.role("explorer", {"error": 400})])
    assert done.json["usage"]["cost_usd"] is None
    assert "cost unknown" in report(repo)


def test_cancelling_a_task_that_waits_tells_what_is_on_the_disk_then(new_repo: NewRepo) -> None:
    repo = new_repo(play.LIGHT)
    stop = ("--pause-after", "implementation")
    assert repo.task("make the failing tests pass", *stop, script=play.mending()).code == 75
    repo.write({"notes.txt": "mine\n"})
    done = repo.run("cancel", repo.folder.name)
    assert (done.code, repo.state()["status"]) == (0, "cancelled"), done.err
    text = report(repo)
    assert text.startswith("# cancelled: ")
    assert "- A notes.txt" in text
    assert tree_after(text) == tree_on_disk(repo)


def test_a_task_whose_model_is_gone_can_be_cancelled(new_repo: NewRepo) -> None:
    repo = new_repo(play.LIGHT)
    stop = ("--pause-after", "implementation")
    assert repo.task("make the failing tests pass", *stop, script=play.mending()).code == 75
    (repo.home / "script.yaml").unlink()
    assert repo.run("cancel", repo.folder.name).code == 0
    assert repo.state()["status"] == "cancelled"


def test_cancel_does_not_wait_for_a_process_that_does_not_end(new_repo: NewRepo) -> None:
    repo = new_repo(play.LIGHT)
    with repo.start_task(slow()) as process:
        eventually(lambda: is_calling(repo))
        process.send_signal(signal.SIGSTOP)
        begin = time.monotonic()
        done = repo.run("cancel", repo.folder.name)
        took = time.monotonic() - begin
        process.send_signal(signal.SIGCONT)
        process.communicate(timeout=60)
    assert took < 5
    assert done.out == f"{repo.folder.name} was told to stop and is still ending\n"
    assert (process.returncode, repo.state()["status"]) == (143, "cancelled")


def test_what_the_system_refuses_in_the_middle_of_a_task_has_one_code_and_one_message(
    new_repo: NewRepo,
) -> None:
    repo = new_repo(play.LIGHT)
    user_hook(repo, "PostToolUse", "rm -rf .claude/agentflow/*Z-*/evidence", matcher="Edit")
    done = repo.task("make the failing tests pass", script=play.mending())
    (end,) = repo.events("TaskEnded")
    assert (done.code, end["exit_code"], end["status"]) == (2, 2, "error")
    assert f"agentflow: {end['reason'].removesuffix('…')}" in done.err
    assert "No such file or directory: " in end["reason"]
    assert "- M calc.py" in report(repo)
