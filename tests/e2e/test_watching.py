"""Commands that read: a task's files, the repository's checks, the catalogue; and who reads their output."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support import play
from tests.support.repo import COMMAND, Done, NewRepo, Repo

RESULT = {
    *("task_id", "status", "exit_code", "task", "route", "model", "sandbox", "iterations", "gates", "plan"),
    *("roles", "seconds"),
    *(
        "proof",
        "unproved",
        "mutants",
        "proving_rounds",
        "equivalent",
        "paths",
        "checks",
        "evidence",
        "files_changed",
        "hooks_changed",
        "usage",
        "answer",
        "class",
        "document",
    ),
    *("caveats", "pending", "decisions", "recalled", "judges", "why", "summary", "report"),
}
STATE = {
    *("version", "task_id", "active", "status", "current_phase", "iteration", "max_iterations", "started_at"),
    *(
        "task",
        "task_complexity",
        "report_requested",
        "intent",
        "gates",
        "todos",
        "pending",
        "usage",
    ),
    *("sandbox", "model", "base_tree", "tree", "undone"),
}
EVIDENCE = {
    *("id", "task_id", "iteration", "role", "by", "check", "command", "cwd", "exit_code", "timed_out"),
    *("started_at", "seconds", "stdout_sha256", "bytes", "tree_before", "tree_after", "surface", "code"),
    *("sandbox", "changed", "tests", "tries", "flaky", "surroundings", "reads_file", "taken_from", "stalled"),
    "import_errors",
    "matched",
}
SCRIPT = play.mending()


class Finished:
    """A task that has ended, and what its command printed."""

    def __init__(self, repo: Repo, done: Done) -> None:
        self.repo = repo
        self.done = done
        self.id = repo.folder.name
        self.events = (repo.folder / "events.jsonl").read_text("utf-8")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A task whose result was asked for as JSON and whose events were copied to a file."""
    folder = tmp_path_factory.mktemp("told")
    repo = Repo(folder / "repo", folder / "home").write(play.QUICK).commit()
    copy = str(folder / "copy.jsonl")
    done = repo.task(play.WHOLE_CREW, "--json", "--events", copy, script=SCRIPT)
    assert Path(copy).read_text("utf-8") == (repo.folder / "events.jsonl").read_text("utf-8")
    return Finished(repo, done)


@pytest.fixture(scope="module")
def streamed(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A task whose events went to stdout, while somebody held its stdin open."""
    folder = tmp_path_factory.mktemp("streamed")
    repo = Repo(folder / "repo", folder / "home").write(play.QUICK).commit()
    running = repo.start_task(SCRIPT, "--events", "-")
    assert running.stdout is not None
    assert running.stderr is not None
    out, err = running.stdout.read(), running.stderr.read()
    code = running.wait(timeout=60)
    running.communicate()
    return Finished(repo, Done(subprocess.CompletedProcess([], code, out, err)))


def test_the_result_has_exactly_the_keys_of_the_reference(told: Finished) -> None:
    found = told.done.json
    assert found.keys() == RESULT
    assert (found["status"], found["exit_code"], told.done.code) == ("verified", 0, 0)
    assert found["task_id"] == told.id
    assert (found["files_changed"], found["hooks_changed"]) == (["calc.py"], [])
    assert found["plan"].keys() == {"summary", "steps", "acceptance", "risks"}
    assert found["evidence"] == ["ev-0001", "ev-0002", "ev-0003"]
    assert found["usage"]["cost_usd"] is None
    assert all(
        check.keys() == {"check", "command", "exit_code", "evidence", "surface", "tests"}
        for check in found["checks"]
    )
    assert (told.repo.root / found["report"]).is_file()
    assert told.done.out.count("\n") == 1


def test_events_on_stdout_are_the_lines_of_the_file_and_nothing_else(streamed: Finished) -> None:
    assert streamed.done.code == 0
    assert streamed.done.out == streamed.events
    assert "verified" in streamed.done.err


def test_status_shows_the_state(told: Finished) -> None:
    shown = told.repo.run("status", "--json").json
    assert shown.pop("decisions") == []
    assert shown.keys() == STATE
    state = told.repo.state()
    assert shown == {key: state[key] for key in STATE}
    words = told.repo.run("status").out
    assert told.id in words
    assert "verified" in words


@pytest.mark.parametrize("words", [["status"], ["log"], ["evidence"]], ids=" ".join)
def test_a_task_is_found_by_its_id_and_by_its_beginning(told: Finished, words: Sequence[str]) -> None:
    newest = told.repo.run(*words).out
    assert newest == told.repo.run(*words, told.id).out == told.repo.run(*words, told.id[:12]).out
    unknown = told.repo.run(*words, "20200101T")
    assert (unknown.code, unknown.out) == (2, "")
    assert told.id in unknown.err


def test_the_log_tells_the_story_and_its_json_is_the_events(told: Finished) -> None:
    words = told.repo.run("log").out
    places = [words.index(name) for name in ("explorer", "planner", "implementer", "verifier")]
    assert places == sorted(places)
    assert "ev-0002" in words
    assert told.repo.run("log", "--json").out == told.events


def test_evidence_lists_and_shows_the_records(told: Finished) -> None:
    records = told.repo.run("evidence", "--json").json
    assert [record.keys() for record in records] == [EVIDENCE] * 3
    assert records == told.repo.evidence()
    one = told.repo.run("evidence", told.id, "ev-0001", "--json").json
    assert one == records[0] == told.repo.run("evidence", "ev-0001", "--json").json
    assert one["tests"].keys() == {"passed", "failed", "skipped", "errors", "ids_file", "is_printed"}
    listed = told.repo.run("evidence").out
    for record in records:
        assert record["id"] in listed
        assert record["tree_before"][:7] in listed
    assert "not ok 1 - test_add" in told.repo.run("evidence", "ev-0001").out


@pytest.mark.parametrize("wanted", ["ev-0009", "ev-../../task"])
def test_evidence_that_is_not_there_is_a_usage_error(told: Finished, wanted: str) -> None:
    done = told.repo.run("evidence", wanted)
    assert (done.code, done.out) == (2, "")
    assert "there is no evidence" in done.err


def test_reading_changes_nothing(told: Finished) -> None:
    def stamps() -> dict[Path, int]:
        return {path: path.lstat().st_mtime_ns for path in told.repo.root.rglob("*")}

    before = stamps()
    for words in (["status"], ["log"], ["evidence"], ["verify", "--dry-run"], ["check"]):
        assert told.repo.run(*words).code == 0
    assert stamps() == before


CLOSED: dict[str, tuple[Sequence[str], int]] = {
    "status": (["status"], 0),
    "log as JSON": (["log", "--json"], 0),
    "evidence": (["evidence", "--json"], 0),
    "help": (["--help"], 0),
    "version": (["--version"], 0),
    "checks that fail": (["verify"], 1),
    "a task that fails": (
        ["task", play.WHOLE_CREW, "--max-iterations", "1", "--model", "script:/dev/null"],
        1,
    ),
    "its JSON": (
        ["task", play.WHOLE_CREW, "--json", "--max-iterations", "1", "--model", "script:/dev/null"],
        1,
    ),
    "its events": (["task", play.WHOLE_CREW, "--events", "-", "--model", "script:/dev/null"], 1),
}


@pytest.fixture(scope="module")
def red(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """A repository whose checks fail, with a task that failed."""
    folder = tmp_path_factory.mktemp("red")
    repo = Repo(folder / "repo", folder / "home").write(play.QUICK).commit()
    repo.task(script=[])
    return repo


SHORT = ("log as JSON", "help", "checks that fail", "its events")


@pytest.mark.parametrize(("words", "code"), [CLOSED[name] for name in SHORT], ids=SHORT)
def test_a_reader_who_has_gone_changes_neither_the_code_nor_the_messages(
    red: Repo, words: Sequence[str], code: int
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    running = red.start(*words, stdout=writing)
    os.close(writing)
    _, err = running.communicate(timeout=60)
    assert running.returncode == code, err
    assert "Traceback" not in err
    assert "roken pipe" not in err
    assert "internal error" not in err


def test_the_first_line_of_a_log_can_be_cut_off(told: Finished) -> None:
    piped = ["bash", "-c", '"$@" | head -1; echo "code ${PIPESTATUS[0]}"', "sh"]
    done = told.repo.run("log", "--json", command=[*piped, str(COMMAND)])
    assert done.err.splitlines() == [f"the newest task, {told.repo.folder.name}: {told.repo.state()['task']}"]
    assert json.loads(done.out.splitlines()[0])["seq"] == 1
    assert done.out.splitlines()[1] == "code 0"


def test_verify_runs_the_checks_without_a_model(told: Finished, new_repo: NewRepo) -> None:
    green = told.repo.run("verify", "--json")
    assert green.code == 0
    (row,) = green.json
    assert (row["check"], row["exit_code"], row["missing"]) == ("tests", 0, None)
    assert row["tests"]["passed"] == 3
    repo = new_repo(play.CALC)
    red = repo.run("verify")
    assert red.code == 1
    assert "2 passed, 1 failed" in red.out
    assert "AssertionError: -1 != 3" in red.out
    assert not (repo.root / ".claude").exists()
    assert repo.git("status", "--porcelain") == ""


def test_a_dry_run_lists_the_checks_and_runs_none(new_repo: NewRepo) -> None:
    marking = "open('ran', 'w').close()\n" + play.CALC["tests/test_calc.py"]
    repo = new_repo({**play.CALC, "tests/test_calc.py": marking})
    done = repo.run("verify", "--dry-run", "--json")
    assert done.code == 0
    assert [row["check"] for row in done.json] == ["tests"]
    assert "python3 -m unittest" in done.json[0]["command"]
    assert "python3 -m unittest" in repo.run("verify", "--dry-run").out
    assert not (repo.root / "ran").exists()


@pytest.mark.parametrize("options", [[], ["--dry-run", "--json"]], ids=" ".join)
def test_a_repository_without_checks_does_not_hold(new_repo: NewRepo, options: Sequence[str]) -> None:
    done = new_repo({"notes.txt": "x\n"}).run("verify", *options)
    assert done.code == 1
    assert done.out == "[]\n" or done.out.startswith("sandbox: full\nNo checks found.")
