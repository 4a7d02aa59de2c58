"""`replay TASK`: a saved task once more, from its recorded replies (F4)."""

import json
import signal
import sys
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from tests.support import play
from tests.support.repo import NewRepo, Repo, eventually

SCRIPT = play.mending()
NO_SOCKETS = """
import socket, sys

def closed(*_):
    raise SystemExit("a socket was opened")

socket.socket.connect = socket.socket.bind = closed
from agentflow.cli.app import main

sys.exit(main())
"""


def test_a_task_comes_to_the_same_without_model_or_network(done: Repo) -> None:
    done.git("checkout", "-q", "calc.py")
    seen = done.run("replay", done.folder.name, "--json", command=(sys.executable, "-c", NO_SOCKETS))
    assert seen.code == 0, seen.out + seen.err
    assert (seen.json["status"], seen.json["exit_code"], seen.json["difference"]) == ("verified", 0, "")
    assert "a - b" in done.read("calc.py")
    assert len(done.tasks) == 1


def test_a_command_that_runs_python_leaves_nothing_that_could_differ(new_repo: NewRepo) -> None:
    repo = new_repo(play.CALC)
    bash = play.turn(play.call("Bash", command="python3 -m unittest discover -s tests; true"))
    done = repo.task("--json", play.TEXT, script=play.mending(bash, evidence="ev-0003"))
    assert (done.code, done.json["files_changed"]) == (0, ["calc.py"]), done.err
    assert repo.run("replay", repo.folder.name).code == 0


def test_a_task_that_failed_twice_comes_to_the_same(new_repo: NewRepo) -> None:
    repo = new_repo(play.CALC)
    wrong = [*play.edit("calc.py", "a - b", "a * b"), play.submit("calc.py")]
    script = [
        play.findings(),
        play.plan("calc.py"),
        play.role("implementer", *wrong),
        play.role("implementer", play.submit("calc.py")),
    ]
    assert repo.task(script=script).code == 1
    seen = repo.run("replay", repo.folder.name)
    assert seen.code == 0, seen.out
    assert "failed (exit 1)" in seen.out


def test_what_a_person_answered_is_answered_again(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    head = "name: explorer\ndescription: d\ntools: [Read, AskUserQuestion]"
    repo.give_role("explorer", f"---\n{head}\nmetadata: {{agentflow-role: explorer}}\n---\nLook.\n")
    questions = [{"question": "Which?", "options": [{"label": "one"}, {"label": "two"}]}]
    explorer = play.findings()
    explorer["turns"].insert(0, play.turn(play.call("AskUserQuestion", questions=questions)))
    assert repo.task(script=[explorer, *SCRIPT[1:]]).code == 75
    assert repo.run("answer", repo.folder.name, "two").code == 0
    seen = repo.run("replay", repo.folder.name)
    assert seen.code == 0, seen.out


def retold(repo: Repo, run: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the entries of a recorded run."""
    (path,) = (repo.folder / "runs").glob(f"*-{run}.jsonl")
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    for entry in entries:
        change(entry)
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))


def test_another_reply_is_where_it_first_differs(done: Repo) -> None:
    def lie(entry: dict[str, Any]) -> None:
        if entry["type"] == "ReplyReceived":
            text = json.dumps(entry["reply"]).replace("a + b", "a * b")
            entry["reply"] = json.loads(text)

    retold(done, "implementer", lie)
    seen = done.run("replay", done.folder.name)
    assert seen.code == 1
    assert seen.out.startswith("differs: the task: ")
    assert "{" not in seen.out


def test_another_request_is_where_it_first_differs(done: Repo) -> None:
    def other(entry: dict[str, Any]) -> None:
        if entry["type"] == "RunOpened":
            entry["system"] += "\nBe bold."

    retold(done, "planner", other)
    seen = done.run("replay", done.folder.name)
    assert seen.code == 1
    assert seen.out.startswith("differs: the task: PhaseEnded planning failed")
    assert (
        "run 2 (planner), turn 1: another request than was recorded: system: '(nothing)' in place of"
        in seen.out
    )


def test_recorded_replies_are_a_model_for_a_task(done: Repo) -> None:
    name = done.folder.name
    done.git("checkout", "-q", "calc.py")
    again = done.run("task", play.WHOLE_CREW, "--model", f"replay:{name}")
    assert again.code == 0, again.out + again.err
    other = done.run("task", "document double", "--model", f"replay:{name}")
    assert other.code == 6
    assert "another request than was recorded" in other.out + other.err


def test_a_task_that_was_cut_short_is_refused(done: Repo) -> None:
    slow = [{**SCRIPT[0], "delay": 60}]
    process = done.start_task(slow)
    while len(done.tasks) < 2 or not list((done.tasks[-1] / "runs").glob("*")):
        assert process.poll() is None
    process.terminate()
    process.communicate(timeout=60)
    seen = done.run("replay", done.tasks[-1].name)
    assert seen.code == 2
    assert "ran to its end" in seen.err


def stop_and_resume(repo: Repo, script: list[dict[str, Any]], at: Callable[[], bool], sign: int) -> None:
    """Run a task, end its process when something holds, and resume it with a script that does not wait."""
    process = repo.start_task(script)
    eventually(at)
    process.send_signal(sign)
    process.communicate(timeout=60)
    (repo.home / "script.yaml").write_text(json.dumps([{**entry, "delay": 0} for entry in script]))
    done = repo.run("resume")
    assert done.code == 0, done.err


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
def test_a_task_that_was_stopped_and_resumed_comes_to_the_same(new_repo: NewRepo, sign: int) -> None:
    repo = new_repo(play.QUICK)
    turns = [play.turn(play.call("Read", file_path="calc.py")), *SCRIPT[1]["turns"]]
    slow = [SCRIPT[0], {**SCRIPT[1], "turns": turns, "delay": 60}, *SCRIPT[2:]]
    stop_and_resume(repo, slow, lambda: len(repo.events("Asked")) == 2, sign)
    seen = repo.run("replay", repo.folder.name)
    assert seen.code == 0, seen.out


def test_a_call_that_was_cut_off_is_why_a_resumed_task_differs(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    bash = play.turn(play.call("Bash", command="test -e /nowhere || sleep 5"))
    script = play.mending(bash, evidence="ev-0002")

    def is_at_work() -> bool:
        return any(event["tool"] == "Bash" for event in repo.events("ToolStarted"))

    stop_and_resume(repo, script, is_at_work, signal.SIGKILL)
    seen = repo.run("replay", repo.folder.name)
    assert seen.code == 1
    assert "stopped and resumed, and what was cut off then runs to its end" in seen.out


def swapped(repo: Repo, kind: str) -> None:
    """Let the first two events of a kind have happened the other way round."""
    path = repo.folder / "events.jsonl"
    told = [json.loads(line) for line in path.read_text().splitlines()]
    one, other = [place for place, event in enumerate(told) if event["type"] == kind][:2]
    told[one], told[other] = ({**told[other], "seq": one + 1}, {**told[one], "seq": other + 1})
    bodies = [json.dumps({**event, "sum": None}, separators=(",", ":")).encode() for event in told]
    cut = [body.removesuffix(b',"sum":null}') for body in bodies]
    path.write_bytes(b"".join(b'%s,"sum":"%08x"}\n' % (body, zlib.crc32(body + b"}")) for body in cut))


@pytest.mark.parametrize(("kind", "code"), [("ToolFinished", 0), ("RunStarted", 1)])
def test_only_calls_of_one_turn_may_end_in_another_order(new_repo: NewRepo, kind: str, code: int) -> None:
    repo = new_repo(play.QUICK)
    reads = play.turn(play.call("Read", file_path="calc.py"), play.call("Read", file_path="test_calc.py"))
    explorer = {**play.findings(), "turns": [reads, *play.findings()["turns"]]}
    assert repo.task(script=[explorer, *SCRIPT[1:]]).code == 0
    swapped(repo, kind)
    seen = repo.run("replay", repo.folder.name)
    assert seen.code == code, seen.out + seen.err
