"""A session at a terminal: tasks, follow-ups that are judged with what they follow, commands."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import play
from tests.support.repo import Repo
from tests.support.session_terminal import Terminal, open_terminal

TRIPLE = "\n\ndef triple(a):\n    return 3 * a\n"
TEST = """import unittest

from calc import triple


class TripleTest(unittest.TestCase):
    def test_triple(self):
        self.assertEqual(triple(2), 6)
"""


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "a repository", tmp_path / "home").write(play.CALC).commit()
    made.git("config", "user.name", "t")
    made.git("config", "user.email", "t@localhost")
    return made


def script(repo: Repo, name: str, turns: list[dict[str, Any]]) -> str:
    path = repo.home / name
    path.write_text(json.dumps(turns), "utf-8")
    return f"script:{path}"


def write_triple() -> list[dict[str, Any]]:
    """The turns that add a function and its test."""
    last = "    return 2 * a\n"
    return [
        play.turn(play.call("Read", file_path="calc.py")),
        play.turn(play.call("Edit", file_path="calc.py", old_string=last, new_string=last + TRIPLE)),
        play.turn(play.call("Write", file_path="tests/test_triple.py", content=TEST)),
    ]


def states(repo: Repo) -> list[dict[str, Any]]:
    found = []
    for folder in repo.tasks:
        state: dict[str, Any] = {}
        for row in (folder / "events.jsonl").read_text().splitlines():
            state.update(json.loads(row).get("changed", {}))
        found.append(state)
    return found


def ask(terminal: Terminal, text: str, expected: str) -> str:
    """Type a line and wait for what it leads to, and for the next prompt."""
    terminal.enter(text)
    shown = terminal.wait_for(expected)
    return shown + terminal.wait_for("\n>")


def test_a_follow_up_is_judged_with_the_task_before_it_and_undone_alone(repo: Repo) -> None:
    first = script(repo, "first.yaml", play.mending())
    added = play.crew(*write_triple(), play.submit("calc.py", "tests/test_triple.py"))
    second = script(repo, "second.yaml", added)
    command = repo.home / ".claude/commands/greet.md"
    command.parent.mkdir(parents=True)
    command.write_text("---\ndescription: Say hello.\n---\nAnswer with a greeting.\n")
    idle = script(repo, "idle.yaml", play.crew(play.submit("calc.py")))
    with open_terminal(repo, env={"AGENTFLOW_MODEL": first}) as terminal:
        terminal.wait_for("/help lists commands")
        assert "no task yet" in ask(terminal, "/undo", "no task yet")
        ask(terminal, "/nothing", "there is no command /nothing")
        assert "/greet" in ask(terminal, "/help", "Say hello.")
        ask(terminal, play.WHOLE_CREW, "✓ verified")
        ask(terminal, f"/model {second}", "model: script")
        ask(terminal, "now also add triple with a test", "✓ verified")
        assert "return a + b" in ask(terminal, "/diff", "+def triple")
        ask(terminal, f"/model {idle}", "model: script")
        ask(terminal, "and now do nothing at all", "nothing was changed")
        ask(terminal, "/undo", "left no change")
        terminal.enter("/quit")
        assert terminal.wait_end() == 0
    one, two, three = states(repo)
    assert one["follows"] is None
    assert two["follows"] == one["task_id"]
    assert two["base_tree"] == one["base_tree"] != two["start_tree"] == one["tree"]
    assert two["ending"]["exit_code"] == 0
    assert three["ending"]["exit_code"] == 1
    prompt = (repo.tasks[1] / "runs/2-implementer.jsonl").read_text()
    assert "# Follow-up" in prompt
    assert "return a + b" in prompt
    assert repo.run("replay", two["task_id"]).code == 0
    assert repo.run("verify", two["task_id"]).code == 0
    assert repo.run("undo", two["task_id"]).code == 0
    assert repo.read("calc.py") == play.CALC["calc.py"].replace("a - b", "a + b")
    assert repo.git("status", "--porcelain").split() == ["M", "calc.py"]


def test_a_session_is_continued_and_a_commit_begins_a_new_change(repo: Repo) -> None:
    first = script(repo, "first.yaml", play.mending())
    with open_terminal(repo, "--plain", env={"AGENTFLOW_MODEL": first, "NO_COLOR": "1"}) as terminal:
        terminal.wait_for("/help lists commands")
        ask(terminal, play.WHOLE_CREW, "✓ verified")
        terminal.type("\x04")
        assert terminal.wait_end() == 0
    (saved,) = repo.run("sessions", "--json").json
    assert saved["tasks"] == [repo.folder.name]
    assert saved["said"] == [play.WHOLE_CREW]
    added = play.crew(*write_triple(), play.submit("calc.py", "tests/test_triple.py"))
    second = script(repo, "second.yaml", added)
    with open_terminal(repo, "--continue", env={"AGENTFLOW_MODEL": second}, columns=80) as terminal:
        terminal.wait_for("1 task")
        ask(terminal, "/commit", "committed")
        ask(terminal, "now add triple with a test", "✓ verified")
        terminal.type("\x03")
        terminal.enter("/quit")
        assert terminal.wait_end() == 0
    _, two = states(repo)
    assert two["follows"] is None
    assert repo.git("status", "--porcelain").split() == ["M", "calc.py", "??", "tests/test_triple.py"]


def test_without_a_terminal_the_help_is_shown_and_nothing_is_written(repo: Repo) -> None:
    done = repo.run()
    assert done.code == 2
    assert "Usage: agentflow" in done.err
    goes_on = repo.run("--continue")
    assert goes_on.code == 2
    assert goes_on.err.startswith("agentflow: a session needs a terminal\n")
    assert repo.run("sessions").out.startswith("there is no session")
    assert repo.tasks == []


def test_a_damaged_session_is_named_and_hides_no_other(done: Repo) -> None:
    folder = done.folder.parent / "sessions"
    folder.mkdir()
    head = (
        f"session_id: 20260101T000000Z-aaaa\nstarted_at: '2026-01-01T00:00:00Z'\ntasks: [{done.folder.name}]"
    )
    (folder / "20260101T000000Z-aaaa.md").write_text(f"---\n{head}\n---\n- {done.folder.name}: add it\n")
    (folder / "29990101T000000Z-bbbb.md").write_text("---\nsession_id: [\n---\n")
    listed = done.run("sessions")
    assert (listed.code, listed.out.count("\n")) == (0, 2), listed.out
    assert "add it" in listed.out
    assert "29990101T000000Z-bbbb.md" in listed.err
    (saved,) = done.run("sessions", "--json").json
    assert saved["session_id"] == "20260101T000000Z-aaaa"
    with open_terminal(done, "--plain", env={"NO_COLOR": "1"}) as terminal:
        terminal.wait_for("/help lists commands")
        ask(terminal, "/nothing", "there is no command /nothing")
        terminal.type("\x04")
        assert terminal.wait_end() == 0
