"""A task that was undone says so wherever it is shown."""

import json

from tests.support import play
from tests.support.repo import NewRepo, Repo


def task_id(repo: Repo) -> str:
    return repo.folder.name


def test_an_undone_task_says_so_wherever_it_is_shown(done: Repo) -> None:
    done.write({"notes.txt": "mine\n"})
    undone = done.run("undo", task_id(done), "--json")
    assert (undone.code, undone.json["state"], undone.json["kept"]) == (0, "undone", ["notes.txt"])
    shown = done.run("status", "--json").json
    assert shown["status"] == "verified"
    assert shown["undone"]["kept"] == ["notes.txt"]
    first = f"undone {shown['undone']['at']} (was: "
    status = done.run("status").out.splitlines()[0]
    assert status.startswith("undone 20")
    assert "kept: notes.txt" in status
    assert "undone (was: verified)" in done.run("log").out.splitlines()[-1]
    assert done.run("log", "--json").out.splitlines()[-1].count('"type":"TaskUndone"') == 1
    (row,) = done.run("tasks", "--json").json
    assert (row["status"], row["verdict"]) == ("undone", "verified")
    assert "! undone" in done.run("tasks").out
    report = (done.folder / "report.md").read_text()
    assert report.startswith(f"# {first}verified): ")
    assert "- notes.txt" in report.split("## Kept")[1].split("- result")[0]
    assert f"at: '{shown['undone']['at']}'" in (done.folder / "task.md").read_text()


def test_to_undo_a_task_is_no_work_on_it(done: Repo) -> None:
    shown = done.run("status").out
    assert done.run("undo").code == 0
    (started,) = (row for row in shown.splitlines() if "worked for" in row)
    assert started in done.run("status").out.splitlines()


def test_a_task_is_undone_once_and_says_when(done: Repo) -> None:
    assert done.run("undo", task_id(done)).code == 0
    when = done.run("status", "--json").json["undone"]["at"]
    again = done.run("undo", task_id(done))
    assert (again.code, when in again.out) == (0, True)
    assert done.run("undo", task_id(done), "--json").json["state"] == "already_undone"
    assert len(done.events("TaskUndone")) == 1


def test_what_would_be_undone_is_not_told_as_undone(done: Repo) -> None:
    assert done.run("undo", task_id(done), "--dry-run").code == 0
    assert done.run("status", "--json").json["undone"] is None
    assert "undone" not in done.run("log").out + (done.folder / "report.md").read_text()


def test_an_undone_task_can_still_be_verified_and_replayed(done: Repo) -> None:
    assert done.run("undo", task_id(done)).code == 0
    verified = done.run("verify", task_id(done))
    assert "report.md" not in verified.out + verified.err
    assert "task.md" not in verified.out + verified.err
    assert "the files here are not those that were judged: calc.py" in verified.out
    assert done.run("replay", task_id(done)).code == 0


def test_a_report_that_somebody_changed_is_not_sealed_by_undoing(done: Repo) -> None:
    path = done.folder / "report.md"
    path.write_text(path.read_text().replace("1 passed", "9 passed") + "\nmore\n")
    assert done.run("undo", task_id(done)).code == 0
    assert "report.md was changed after it was written" in done.run("verify", task_id(done)).out


def test_a_task_that_goes_on_after_it_was_undone_is_not_undone(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    script = play.mending(play.turn(play.call("Write", file_path="new.txt", content="x\n")))
    assert (
        repo.task("make the failing tests pass", "--pause-after", "implementation", script=script).code == 75
    )
    assert repo.run("undo", task_id(repo)).code == 0
    assert not (repo.root / "new.txt").exists()
    assert repo.run("status", "--json").json["undone"] is not None
    repo.run("resume")
    assert json.loads(repo.run("status", "--json").out)["undone"] is None


def test_a_task_file_that_cannot_be_read_is_kept_and_no_obstacle(done: Repo) -> None:
    path = done.folder / "task.md"
    path.write_bytes(path.read_bytes() + b"mine: \xff\n")
    damaged = path.read_bytes()
    undone = done.run("undo", task_id(done))
    assert (undone.code, done.diff()) == (0, ""), undone.err
    (kept,) = done.folder.glob("task.md.unreadable-*")
    assert kept.read_bytes() == damaged
    assert any(kept.name in event["message"] for event in done.events("Warned"))
    status = done.run("status", task_id(done))
    assert (status.code, status.err, status.out.startswith("undone ")) == (0, "", True)


def test_damaged_evidence_is_no_obstacle(done: Repo) -> None:
    (done.folder / "evidence/ev-0001.json").write_text("{")
    undone = done.run("undo", task_id(done))
    assert (undone.code, done.diff()) == (0, ""), undone.err
    (row,) = done.run("tasks", "--json").json
    assert row["status"] == "undone"


def test_what_cannot_be_marked_as_undone_is_not_undone(done: Repo) -> None:
    changed = done.diff()
    (done.folder / "link").symlink_to("/")
    undone = done.run("undo", task_id(done))
    assert (undone.code, "link is a link" in undone.err) == (2, True), undone.err
    assert done.diff() == changed


def test_nothing_to_undo_is_nothing_undone(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    repo.task("explain add", script=[play.findings()])
    for _ in range(2):
        assert repo.run("undo", task_id(repo), "--json").json["state"] == "nothing_to_undo"


def test_what_the_user_changed_while_a_task_waited_is_not_undone_after_it_was_cancelled(
    new_repo: NewRepo,
) -> None:
    repo = new_repo({**play.QUICK, "notes.txt": "old\n"})
    paused = repo.task(
        "--pause-after", "implementation", "make the failing tests pass", script=play.mending()
    )
    assert paused.code == 75, paused.err
    repo.write({"notes.txt": "my own work\n", "mine.txt": "mine\n"})
    assert repo.run("cancel", task_id(repo)).code == 0
    undone = repo.run("undo", task_id(repo), "--json").json
    assert (undone["restored"], undone["removed"]) == (["calc.py"], [])
    assert (repo.read("notes.txt"), repo.read("mine.txt")) == ("my own work\n", "mine\n")
