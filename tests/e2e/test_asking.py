"""Where a person sits at a terminal, what waits is asked there; anywhere else nobody waits for an answer."""

import json
import os
import subprocess
from typing import Any

import pytest

from tests.support import play
from tests.support.repo import NewRepo, Repo
from tests.support.terminal import CTRL_C, CTRL_D, Seen, at_terminal

PLANTED = "a + b\nrm -rf / \x1b[2K"
CREW = play.mending()


def asking(repo: Repo, *rules: str) -> None:
    path = repo.home / ".claude/settings.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"permissions": {"ask": list(rules)}}))


@pytest.fixture
def repo(new_repo: NewRepo) -> Repo:
    repo = new_repo(play.LIGHT)
    asking(repo, "Edit(calc.py)", "Bash(echo *)")
    return repo


def task(repo: Repo, *switches: str, says: tuple[str, ...] = (), crew: list[dict[str, Any]] = CREW) -> Seen:
    return at_terminal(repo, "task", play.WHOLE_CREW, *switches, "--model", repo.scripted(crew), says=says)


def test_a_call_is_approved_at_the_terminal_and_the_task_goes_on(repo: Repo) -> None:
    seen = task(repo, says=("y",))
    assert seen.code == 4, seen.text
    shown = "? edit calc.py (approve p3-1)\n  calc.py\n    @@ -1,4 +1,4 @@\n     def add(a, b):\n"
    assert f"{shown}    -    return a - b\n    +    return a + b\n" in seen.text
    assert "verified with caveat: " in seen.text
    (answered,) = repo.events("Answered")
    assert (answered["pending"], answered["approved"], answered["by"]) == (
        "p3-1",
        True,
        "a person at the terminal",
    )
    assert [entry["type"] for entry in repo.runs("implementer")[0].entries].count("RunOpened") == 1


def test_a_denied_call_is_not_made_and_the_model_reads_why(repo: Repo) -> None:
    seen = task(repo, says=("n", "not this file"))
    assert seen.code == 1, seen.text
    assert "denied: not this file" in repo.runs("implementer")[0].results[1]["content"]
    assert repo.diff() == ""


def test_a_half_made_change_is_asked_about_at_the_terminal(repo: Repo) -> None:
    asking(repo)
    half = play.role("implementer", *play.MENDED, {"error": 529})
    seen = task(repo, says=("no", "b"), crew=[play.findings(), play.plan("calc.py"), half])
    assert seen.code == 1, seen.text
    assert "changed: M calc.py" in seen.text
    assert "A  go on from here\n    B  give up" in seen.text
    assert "given up after an interrupted change" in seen.text


@pytest.mark.parametrize("said", ["", "s", CTRL_C, CTRL_D])
def test_who_does_not_decide_leaves_it_waiting(repo: Repo, said: str) -> None:
    seen = task(repo, says=(said,))
    assert seen.code == 75, seen.text
    assert "Traceback" not in seen.text
    assert "  Not decided yet. /resume or agentflow resume asks again.\n" in seen.text
    assert repo.state()["status"] == "suspended"
    assert repo.diff() == ""
    assert repo.run("approve", "p3-1").code == 0
    assert repo.run("resume").code == 4


def test_what_is_no_answer_is_asked_again(repo: Repo) -> None:
    seen = task(repo, says=("perhaps", "yess", " y "))
    assert seen.code == 4
    assert seen.text.count("approve? ") == 3
    assert "  'perhaps' is none of these.\n" in seen.text


def test_the_whole_input_is_seen_and_nothing_of_it_reaches_the_terminal_raw(repo: Repo) -> None:
    crew = [
        play.findings(),
        play.plan("calc.py"),
        play.role("implementer", *play.edit("calc.py", "a - b", PLANTED), play.submit()),
    ]
    seen = task(repo, says=("l",), crew=crew)
    assert "    +    return a + b\n    +rm -rf / \\x1b[2K\n" in seen.text
    assert "\x1b[2K" not in seen.text


def test_several_calls_are_asked_one_after_the_other(repo: Repo) -> None:
    turns = (play.turn(play.call("Bash", command="echo one"), play.call("Bash", command="echo two")),)
    implementer = play.role("implementer", *turns, *play.MENDED, play.submit("calc.py"))
    seen = task(repo, says=("YES", "n", "", "y"), crew=[*CREW[:2], implementer, play.verified("ev-0003")])
    assert seen.code == 4, seen.text
    assert seen.unused == []
    results = [result["content"] for result in repo.runs("implementer")[0].results]
    assert "one" in results[0]
    assert results[1] == "denied: no reason given"


def test_resume_at_a_terminal_asks_what_still_waits(repo: Repo) -> None:
    assert repo.task(play.WHOLE_CREW, script=CREW).code == 75
    assert at_terminal(repo, "resume", says=("l",)).code == 75
    seen = at_terminal(repo, "resume", says=("y",))
    assert seen.code == 4, seen.text
    assert "a + b" in repo.read("calc.py")


def test_a_person_edits_the_call_sees_the_result_and_then_approves_it(repo: Repo) -> None:
    seen = task(repo, says=("e", "b + a", "m", "y"))
    assert seen.code == 4, seen.text
    assert seen.text.count("    +    return b + a\n") == 3  # edited, shown in full, and in the result
    assert "    return b + a\n" in repo.read("calc.py")
    (answer,) = repo.state()["answers"].values()
    assert (answer["input"]["new_string"], answer["via"]) == ("b + a", "at the terminal")


def test_an_edited_call_is_judged_by_the_rules_like_any_other(repo: Repo) -> None:
    path = repo.home / ".claude/settings.json"
    path.write_text(json.dumps({"permissions": {"ask": ["Bash(echo *)"], "deny": ["Bash(touch *)"]}}))
    turns = (play.turn(play.call("Bash", command="echo one")),)
    implementer = play.role("implementer", *turns, *play.MENDED, play.submit("calc.py"))
    crew = [*CREW[:2], implementer, play.verified("ev-0002")]
    seen = task(repo, says=("a", "e", "touch planted", "y"), crew=crew)
    assert seen.code == 4, seen.text  # outside a session a is no choice, and asked again
    assert "    $ touch planted" not in seen.text
    assert "  $ touch planted\n" in seen.text
    result = repo.runs("implementer")[0].results[0]
    assert result["is_error"]
    assert "touch" in result["content"]
    assert not (repo.root / "planted").exists()


OPTIONS = [{"label": "integers"}, {"label": "floats"}]
ANSWERS = {"": "integers", "b": "floats", "2": "floats", "both, rounded": "both, rounded"}


@pytest.mark.parametrize(("said", "content"), ANSWERS.items(), ids=[repr(said) for said in ANSWERS])
def test_a_question_is_answered_at_the_terminal(repo: Repo, said: str, content: str) -> None:
    head = "name: explorer\ndescription: d\ntools: [AskUserQuestion]\nmetadata: {agentflow-role: explorer}"
    repo.give_role("explorer", f"---\n{head}\n---\nLook.\n")
    asks = play.turn(
        play.call("AskUserQuestion", questions=[{"question": "Which numbers?", "options": OPTIONS}])
    )
    explorer = {**CREW[0], "turns": [asks, *CREW[0]["turns"]]}
    seen = task(repo, "--pause-after", "exploration", says=(said,), crew=[explorer, *CREW[1:]])
    assert "  Which numbers?\n    A  integers\n    B  floats\n" in seen.text
    assert seen.code == 75, seen.text
    assert repo.runs("explorer")[0].results[0]["content"] == content


@pytest.mark.parametrize(("switch", "code"), [("--yes", 4), ("--no-input", 1)])
def test_who_decided_beforehand_is_asked_nothing(repo: Repo, switch: str, code: int) -> None:
    seen = task(repo, switch)
    assert seen.code == code, seen.text
    assert "approve? " not in seen.text


def test_stdout_stays_the_answer_alone(repo: Repo) -> None:
    place = repo.home / "answer.json"
    with place.open("wb") as file:
        words = ("task", play.WHOLE_CREW, "--json", "--model", repo.scripted(CREW))
        seen = at_terminal(repo, *words, says=("y",), stdout=file.fileno())
    assert seen.code == 4, seen.text
    assert json.loads(place.read_text())["status"] == "verified_with_caveat"
    assert "approve? " in seen.text


@pytest.mark.parametrize("open_ended", [True, False], ids=["an open pipe", "nothing"])
def test_without_a_terminal_nobody_is_waited_for(repo: Repo, *, open_ended: bool) -> None:
    stdin = subprocess.PIPE if open_ended else subprocess.DEVNULL
    process = repo.start("task", play.WHOLE_CREW, "--model", repo.scripted(CREW), stdin=stdin)
    assert process.wait(90) == 75
    _, err = process.communicate()
    assert "approve? " not in err


def test_a_terminal_for_the_input_alone_is_none(repo: Repo) -> None:
    person, terminal = os.openpty()
    try:
        process = repo.start("task", play.WHOLE_CREW, "--model", repo.scripted(CREW), stdin=terminal)
        _, err = process.communicate(timeout=90)
    finally:
        os.close(person)
        os.close(terminal)
    assert process.returncode == 75
    assert "approve? " not in err
