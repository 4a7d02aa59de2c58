"""A person types, pauses, corrects and stops while a role of their session works."""

import json
import os
import signal
import termios
from pathlib import Path
from typing import Any

import pytest

from tests.support import play
from tests.support.repo import Repo, eventually
from tests.support.session_terminal import Terminal, open_terminal

CTRL_C = "\x03"
HOSTILE = "\x1b]0;owned\x07\x1b[2J looked"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    files = {**play.LIGHT, ".gitignore": "*.log\n"}
    return Repo(tmp_path / "a repository", tmp_path / "home").write(files).commit()


def slow(*after: dict[str, Any]) -> list[dict[str, Any]]:
    """A crew whose implementer waits for a file before it goes on."""
    waits = play.turn(play.call("Bash", command="until [ -e go.log ]; do sleep 0.05; done"))
    return play.crew(
        {"text": HOSTILE, **waits}, *after, *play.MENDED, play.submit("calc.py"), evidence="ev-0003"
    )


def begin(repo: Repo, terminal: Terminal) -> None:
    """Let the session work on a task until its implementer waits."""
    terminal.wait_for("leaves.")
    terminal.enter(play.WHOLE_CREW)
    eventually(lambda: bool(repo.tasks) and any(one["tool"] == "Bash" for one in repo.events("ToolStarted")))


def go(repo: Repo) -> None:
    repo.write({"go.log": ""})


@pytest.mark.parametrize("options", [(), ("--plain",)], ids=["redrawn", "plain"])
def test_a_line_is_queued_a_pause_comes_after_the_call_and_a_correction_is_read(
    repo: Repo, options: tuple[str, ...]
) -> None:
    model = repo.scripted(slow())
    with open_terminal(repo, *options, env={"AGENTFLOW_MODEL": model}) as terminal:
        begin(repo, terminal)
        terminal.enter("mind the zero")
        terminal.wait_for("queued: mind the zero")
        terminal.type(CTRL_C)
        terminal.wait_for("pausing after the running call")
        assert repo.events("TaskEnded") == []
        go(repo)
        terminal.wait_for("Paused.")
        terminal.wait_for("paused>")
        assert repo.state()["status"] == "suspended"
        assert [one["is_error"] for one in repo.events("ToolFinished") if one["tool"] == "Bash"] == [False]
        terminal.enter("keep double")
        terminal.wait_for("verified with caveat")
        terminal.wait_for(">")
        terminal.enter("/quit")
        assert terminal.wait_end() == 0
    (run,) = repo.runs("implementer")
    assert [one["text"] for one in repo.events("PersonSaid")] == ["mind the zero", "keep double"]
    assert [entry["type"] for entry in run.entries].count("RunOpened") == 1
    assert HOSTILE not in terminal.raw
    assert ("\x1b[" in terminal.raw) or options


def test_stopped_at_a_pause_the_task_waits_and_a_later_session_goes_on(repo: Repo) -> None:
    model = repo.scripted(slow())
    with open_terminal(repo, env={"AGENTFLOW_MODEL": model}) as terminal:
        begin(repo, terminal)
        terminal.type("\x1b")
        terminal.wait_for("pausing")
        go(repo)
        terminal.wait_for("paused>")
        terminal.enter("s")
        terminal.wait_for("Stopped.")
        terminal.enter("/quit")
        terminal.wait_for("Not finished: let add return the sum. /resume")
        terminal.wait_for("agentflow --continue")
        assert terminal.wait_end() == 0
    assert "a - b" in repo.read("calc.py")
    with open_terminal(repo, "--continue", env={"AGENTFLOW_MODEL": model}) as terminal:
        terminal.wait_for("Not finished")
        terminal.enter("/resume")
        terminal.wait_for("verified with caveat")
        terminal.enter("/quit")
        assert terminal.wait_end() == 0
    assert "a + b" in repo.read("calc.py")


def test_ctrl_c_twice_stops_at_once_and_what_was_typed_stands_in_the_line(repo: Repo) -> None:
    with open_terminal(repo, env={"AGENTFLOW_MODEL": repo.scripted(slow())}) as terminal:
        begin(repo, terminal)
        terminal.enter("mind the zero")
        terminal.wait_for("queued: mind")
        terminal.enter("/cost")
        terminal.wait_for("queued: /cost")
        terminal.type("half a li")
        terminal.type(CTRL_C)
        terminal.wait_for("pausing")
        terminal.type(CTRL_C)
        terminal.wait_for("1 task: ")
        terminal.wait_for("is in the input line")
        terminal.wait_for("mind the zero")
        terminal.wait_for("half a li")
        terminal.type(CTRL_C)
        terminal.type("\x04")
        assert terminal.wait_end() == 0
    assert repo.state()["status"] == "cancelled"
    assert repo.runs("implementer")[0].results == []


@pytest.mark.parametrize("at_work", [True, False], ids=["at work", "at the prompt"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_session_and_leaves_the_terminal_as_it_was(
    repo: Repo, number: int, at_work: bool
) -> None:
    with open_terminal(repo, env={"AGENTFLOW_MODEL": repo.scripted(slow())}) as terminal:
        before = termios.tcgetattr(terminal.slave)
        terminal.wait_for("leaves.")
        if at_work:
            terminal.enter(play.WHOLE_CREW)
            eventually(lambda: bool(repo.tasks) and bool(repo.events("ToolStarted")))
        eventually(lambda: termios.tcgetattr(terminal.slave) != before)
        os.kill(terminal.process.pid, number)
        assert terminal.wait_end() == 143
        assert termios.tcgetattr(terminal.slave) == before
    if at_work:
        assert repo.state()["status"] == "cancelled"
        assert json.loads(repo.run("sessions", "--json").out)[0]["tasks"] == [repo.folder.name]


def test_a_narrow_terminal_that_changes_its_size_and_a_long_paste_break_nothing(repo: Repo) -> None:
    with open_terminal(repo, env={"AGENTFLOW_MODEL": repo.scripted(slow())}, columns=20) as terminal:
        begin(repo, terminal)
        for columns in (70, 12, 120):
            terminal.resize(columns)
        terminal.type("\x1b[200~" + "\n".join(f"line {number}" for number in range(60)) + "\x1b[201~")
        terminal.enter("")
        terminal.wait_for("queued: line 0")
        go(repo)
        terminal.wait_for("verified with caveat")
        terminal.enter("/quit")
        assert terminal.wait_end() == 0
    (said,) = repo.events("PersonSaid")
    assert said["text"].startswith("line 0")


def test_a_second_session_in_the_repository_is_told_that_a_task_works(repo: Repo) -> None:
    model = repo.scripted(slow())
    with open_terminal(repo, env={"AGENTFLOW_MODEL": model}) as first:
        begin(repo, first)
        with open_terminal(repo, env={"AGENTFLOW_MODEL": model}) as second:
            second.wait_for("leaves.")
            second.enter("and now something else")
            second.wait_for("another task")
            second.enter("/quit")
            assert second.wait_end() == 0
        go(repo)
        first.wait_for("verified with caveat")
    assert len(repo.tasks) == 1


def test_the_same_call_is_approved_for_the_session_and_no_other(repo: Repo) -> None:
    path = repo.home / ".claude/settings.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"permissions": {"ask": ["Bash(echo *)"]}}))
    calls = [play.turn(play.call("Bash", command=f"echo {word}")) for word in ("one", "one", "two")]
    model = repo.scripted(play.crew(*calls, *play.MENDED, play.submit("calc.py"), evidence="ev-0005"))
    with open_terminal(repo, "--plain", env={"AGENTFLOW_MODEL": model}) as terminal:
        terminal.wait_for("leaves.")
        terminal.enter(play.WHOLE_CREW)
        terminal.wait_for("$ echo one")
        terminal.wait_for("approve? [l]: ")
        terminal.enter("a")
        assert "$ echo one" not in terminal.wait_for("$ echo two")
        terminal.wait_for("approve? [l]: ")
        terminal.enter("n")
        terminal.wait_for("this: ")
        terminal.enter("not two")
        terminal.wait_for("verified")
        terminal.enter("/quit")
        assert terminal.wait_end() == 0
    said = [(one["approved"], one["by"].partition(", ")[2]) for one in repo.events("Answered")]
    assert said == [(True, ""), (True, "for this session"), (False, "")]
    assert repo.runs("implementer")[0].results[2]["content"] == "denied: not two"


def test_a_session_goes_on_when_its_last_task_cannot_be_read(repo: Repo) -> None:
    model = repo.scripted(play.mending())
    with open_terminal(repo, env={"AGENTFLOW_MODEL": model}) as terminal:
        terminal.wait_for("leaves.")
        terminal.enter(play.WHOLE_CREW)
        terminal.wait_for("verified with caveat")
        (repo.folder / "events.jsonl").write_text("{}\n")
        terminal.enter("/status")
        terminal.wait_for("damaged")
        terminal.enter("/cost")
        terminal.wait_for("cannot be read")
        terminal.enter("/help")
        terminal.wait_for("Decide")
        terminal.enter("/model nonsense=1")
        terminal.wait_for("write deep=ID")
        terminal.enter("/quit")
        assert terminal.wait_end() == 0
