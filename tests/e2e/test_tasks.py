"""The tasks of a repository as a list, and the newest of them where none is named."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import play
from tests.support.repo import NewRepo, Repo
from tests.support.terminal import at_terminal

QUESTION = "where is add defined?"


def ask(repo: Repo, text: str = QUESTION) -> str:
    """Have a question answered; return the id of its task."""
    before = set(repo.tasks)
    assert repo.task(text, script=[play.findings()]).code == 0
    (new,) = set(repo.tasks) - before
    return new.name


def later(folder: Path, name: str) -> Path:
    """Return a copy of a task under another id."""
    return Path(shutil.copytree(folder, folder.with_name(name), symlinks=True))


def test_tasks_are_listed_newest_first_with_what_they_came_to(done: Repo) -> None:
    first = done.folder.name
    asked = ask(done)
    listed = done.run("tasks")
    heads, newest, oldest = listed.out.splitlines()
    assert heads.split() == ["task", "when", "status", "exit", "cost", "first", "words"]
    assert newest.split() == [asked, "just", "now", "✓", "answered", "0", "-", *QUESTION.split()]
    assert oldest.startswith(first)
    assert oldest.endswith("✓ verified  0     -     let add return the sum")
    assert (listed.code, listed.err) == (0, "")


def test_the_same_list_for_programs(done: Repo) -> None:
    asked = ask(done)
    newest, oldest = done.run("tasks", "--json").json
    assert newest == {
        "task_id": asked,
        "started_at": newest["started_at"],
        "task": QUESTION,
        "status": "answered",
        "verdict": "answered",
        "exit_code": 0,
        "cost_usd": None,
        "error": None,
    }
    assert (oldest["status"], oldest["verdict"], oldest["exit_code"]) == ("verified", "verified", 0)


def test_a_repository_without_tasks_has_an_empty_list(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    assert "there is no task" in repo.run("tasks").out
    assert repo.run("tasks", "--json").json == []
    assert not (repo.root / ".claude").exists()


DAMAGES = {
    "a line that was changed": lambda text: text.replace("let add", "let it"),
    "a file that was emptied": lambda _: "",
    "bytes that are no text": lambda text: "\udcff\udcfe\n" + text,
    "a line that is no JSON": lambda text: "x\n" + text,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_task_is_one_line_and_hides_no_other(done: Repo, damage: Callable[[str], str]) -> None:
    broken = later(done.folder, "20250102T030405Z-dead")
    events = broken / "events.jsonl"
    events.write_bytes(damage(events.read_text()).encode("utf-8", "surrogateescape"))
    listed = done.run("tasks")
    assert listed.code == 0, listed.err
    assert play.WHOLE_CREW in listed.out.splitlines()[1]
    *_, count, told = listed.out.splitlines()
    assert count == "! 1 task cannot be read"
    assert told.startswith(f"  {broken.name}  events.jsonl")
    good, bad = done.run("tasks", "--json").json
    assert (good["error"], bad["task_id"], bad["status"]) == (None, broken.name, None)
    assert "events.jsonl" in bad["error"]


@pytest.mark.parametrize("words", [("tasks",), ("status",), ("log",), ("cancel",)], ids=" ".join)
def test_what_lies_in_the_place_of_the_number_of_the_process_holds_nobody_up(
    done: Repo, words: tuple[str, ...]
) -> None:
    os.mkfifo(done.folder.parent / "writer.pid")
    assert done.run(*words).code == 0


@pytest.mark.parametrize("width", [80, 120])
def test_a_row_of_the_list_fits_a_terminal(done: Repo, width: int) -> None:
    long = "explain how the calculator adds, and what happens when one of the numbers is nothing but a word"
    ask(done, long)
    rows = at_terminal(done, "tasks", columns=width).text.splitlines()
    assert len(rows) == 3
    assert all(len(row) <= width for row in rows)
    (asked,) = (row for row in rows if "explain how the" in row)
    assert asked.rstrip().endswith("…")


def test_undo_takes_the_newest_task_and_says_which(done: Repo) -> None:
    newest = done.folder.name
    undone = done.run("undo")
    assert (undone.code, undone.err) == (0, f"the newest task, {newest}: {play.WHOLE_CREW}\n")
    assert done.diff() == ""


def test_replay_takes_the_newest_task_and_says_which(done: Repo) -> None:
    replayed = done.run("replay", "--json")
    assert replayed.code == 0, replayed.err
    assert replayed.json["task_id"] == done.folder.name
    assert replayed.err.startswith(f"the newest task, {done.folder.name}: ")


@pytest.mark.parametrize("command", ["log", "evidence", "status"])
def test_commands_that_show_a_task_say_which_is_the_newest(done: Repo, command: str) -> None:
    told = done.run(command)
    assert told.err == f"the newest task, {done.folder.name}: {play.WHOLE_CREW}\n"
    assert done.run(command, done.folder.name).err == ""


def paused(repo: Repo) -> str:
    """Leave a task that waits to be resumed, and return its id."""
    repo.task("fix add", "--pause-after", "refinement", script=play.mending())
    return next(path.name for path in repo.tasks if "suspended" in (path / "task.md").read_text())


def test_cancel_takes_the_newest_task_that_is_not_over(done: Repo) -> None:
    waits = paused(done)
    over = later(
        done.root / ".claude/agentflow" / min(path.name for path in done.tasks), "29990102T030405Z-beef"
    )
    cancelled = done.run("cancel")
    assert cancelled.code == 0
    assert cancelled.err == f"the newest task, {waits}: fix add\n"
    assert cancelled.out == f"{waits} cancelled\n"
    assert over.name not in cancelled.out


def test_cancel_says_that_an_ended_task_had_ended(done: Repo) -> None:
    cancelled = done.run("cancel")
    assert cancelled.code == 0
    assert cancelled.out == f"{done.folder.name} had ended before: verified; nothing was cancelled\n"


def test_an_unknown_id_is_answered_with_the_newest_one_or_ones(done: Repo) -> None:
    name = done.folder.name
    assert f"the newest is {name}; agentflow tasks lists all\n" in done.run("status", "nosuch").err
    other = later(done.folder, "29990102T030405Z-beef").name
    assert f"the newest are {other}, {name}; agentflow tasks" in done.run("status", "nosuch").err


def test_resume_says_which_task_it_goes_on_with(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    waits = paused(repo)
    resumed = repo.run("resume")
    assert resumed.code == 0, resumed.err
    assert resumed.err.startswith(f"the newest task, {waits}: fix add\n")


ASKS = [
    play.role(
        "explorer",
        play.turn(
            play.call(
                "AskUserQuestion",
                questions=[
                    {
                        "question": "Which one?",
                        "header": "which",
                        "multiSelect": False,
                        "options": [
                            {"label": "the first", "description": ""},
                            {"label": "the second", "description": ""},
                        ],
                    }
                ],
            )
        ),
    ),
    play.findings(),
]


def test_an_answer_goes_to_the_newest_task_that_asks(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    assert repo.task(QUESTION, script=ASKS).code == 75
    asks = repo.folder.name
    later(repo.folder, "20250102T030405Z-beef")
    answered = repo.run("answer", "B")
    assert answered.code == 0, answered.err
    assert answered.err.startswith(f"the newest task, {asks}: {QUESTION}\n")
    assert repo.run("tasks", "--json").json[0]["status"] == "answered"


def test_an_answer_without_words_asks_for_them(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    assert repo.task(QUESTION, script=ASKS).code == 75
    refused = repo.run("answer", repo.folder.name)
    assert refused.code == 2
    assert refused.err.startswith(f"agentflow: say what the answer to {repo.folder.name} is")


def test_a_command_about_the_newest_of_no_tasks_is_refused(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    for command in ("undo", "replay", "cancel", "resume"):
        refused = repo.run(command)
        assert (refused.code, refused.out) == (2, "")
        assert "there is no task in this repository" in refused.err
