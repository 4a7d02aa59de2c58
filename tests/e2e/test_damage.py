"""Damaged and hand-edited task files are refused by name, or taken and told; nothing is lost in silence."""

import json
import os
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support import play
from tests.support.repo import Repo

Damage = Callable[[Path], object]
TEXT = "- by hand: no lambdas"
NOTE = "Ask Ada before touching `double`."


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """A task that waits for a person in its implementation, as a template to be copied."""
    folder = tmp_path_factory.mktemp("waiting")
    repo = Repo(folder / "repo", folder / "home").write(play.QUICK).commit()
    settings = repo.home / ".claude/settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"permissions": {"ask": ["Edit(calc.py)"]}}))
    assert repo.task(script=play.mending()).code == 75
    return repo


@pytest.fixture
def repo(waiting: Repo, tmp_path: Path) -> Repo:
    shutil.copytree(waiting.root, tmp_path / "repo", symlinks=True)
    return Repo(tmp_path / "repo", waiting.home)


def text(old: str, new: str, file: str = "task.md") -> Damage:
    """Replace a text once."""

    def damage(folder: Path) -> None:
        path = folder / file
        found = path.read_text("utf-8")
        assert old in found
        path.write_text(found.replace(old, new, 1), "utf-8")

    return damage


def whole(change: Callable[[bytes], bytes], file: str = "task.md") -> Damage:
    return lambda folder: (folder / file).write_bytes(change((folder / file).read_bytes()))


def lines(change: Callable[[list[bytes]], list[bytes]], file: str = "events.jsonl") -> Damage:
    return whole(lambda raw: b"".join(change(raw.splitlines(keepends=True))), file)


def gone(file: str) -> Damage:
    return lambda folder: (folder / file).unlink()


def in_its_place(file: str, make: Callable[[Path], Any]) -> Damage:
    def damage(folder: Path) -> None:
        (folder / file).unlink()
        make(folder / file)

    return damage


def sealed(change: Callable[[dict[str, Any]], dict[str, Any]], number: int = -1) -> Damage:
    """Change an event and seal it again, as a program could that knows how."""

    def damage(folder: Path) -> None:
        path = folder / "events.jsonl"
        raw = path.read_bytes().splitlines()
        event = json.loads(raw[number])
        del event["sum"]
        body = json.dumps(change(event), separators=(",", ":")).encode()
        raw[number] = b'%s,"sum":"%08x"}' % (body[:-1], zlib.crc32(body))
        path.write_bytes(b"\n".join(raw) + b"\n")

    return damage


def later(event: dict[str, Any]) -> dict[str, Any]:
    return {**event, "type": "Foretold", "word": 1}


class Row(NamedTuple):
    damage: Damage
    status: int
    """The exit code of `status`, which only reads."""
    cancel: int
    """The exit code of `cancel`, which writes."""
    said: str
    """On stderr, by both."""


EVENTS, STATE, RUN = "events.jsonl", "task.md", "runs/1-explorer.jsonl"
TABLE: dict[str, Row] = {
    # task.md: what a person may write
    "body: a note at its end": Row(whole(lambda raw: raw + f"\n{NOTE}\n".encode()), 0, 0, "is kept under"),
    "body: a note before the log": Row(text("## Log\n", f"{NOTE}\n\n## Log\n"), 0, 0, "is kept under"),
    "body: a note in the log": Row(
        text("\n### Iteration", f"\n{NOTE}\n### Iteration"), 0, 0, "is kept under"
    ),
    "body: all of it a note": Row(
        whole(lambda raw: raw.partition(b"## Log\n")[0] + NOTE.encode()), 0, 0, "is kept under"
    ),
    "intent": Row(text("constraints: ''", f"constraints: '{TEXT}'"), 0, 0, "the intent was edited by hand"),
    # task.md: what has no force
    "status": Row(text("status: suspended", "status: verified"), 0, 0, 'to "verified"; it stays "suspended"'),
    "an unknown status": Row(text("status: suspended", "status: banana"), 0, 0, 'to "banana"; it stays'),
    "iteration": Row(text("iteration: 1", "iteration: 9"), 0, 0, "iteration was edited by hand to 9"),
    "an iteration in words": Row(text("iteration: 1", "iteration: many"), 0, 0, "iteration was edited"),
    "the limit": Row(text("max_iterations: 10", "max_iterations: 999"), 0, 0, "max_iterations was edited"),
    "the phase": Row(
        text("current_phase: implementation", "current_phase: complete"), 0, 0, "current_phase was edited"
    ),
    "a gate": Row(text("  planning:\n    status: ", "  planning:\n    status: x"), 0, 0, "gates was edited"),
    "the usage": Row(text("usage:\n  input: ", "usage:\n  input: 9"), 0, 0, "usage was edited by hand"),
    "the model": Row(text("model: script:", "model: scrap:"), 0, 0, "model was edited by hand"),
    "the task": Row(text("task: make", "task: unmake"), 0, 0, "task was edited by hand"),
    "the id": Row(text("task_id: ", "task_id: x"), 0, 0, "task_id was edited by hand"),
    "an older version": Row(text("version: 2\n", "version: 0\n"), 0, 0, "version was edited by hand to 0"),
    "a missing key": Row(text("sandbox: ", "sandpit: "), 0, 0, "sandbox was removed by hand"),
    "an unknown key": Row(text("active:", "colour: blue\nactive:"), 0, 0, "colour is none of its keys"),
    # task.md: what cannot be read; whoever reads the task refuses, and undo goes on
    "a newer version": Row(text("version: 2\n", "version: 3\n"), 2, 2, "version 3 was written by a newer"),
    "no UTF-8": Row(whole(lambda raw: raw + b"\xff\xfe\n"), 2, 2, "byte 0xff is not UTF-8"),
    "UTF-16": Row(whole(lambda raw: raw.decode().encode("utf-16")), 2, 2, "task.md:1: byte 0xff is not"),
    "an empty file": Row(whole(lambda _: b""), 2, 2, "task.md:1: must begin with a line '---'"),
    "an open fence": Row(whole(lambda raw: raw.replace(b"\n---\n", b"\n")), 2, 2, "is not closed"),
    "a key twice": Row(text("active:", "status: x\nactive:"), 2, 2, "key 'status' stands twice"),
    "no YAML": Row(text("active:", "active: [\nx:"), 2, 2, "task.md:"),
    "NUL bytes": Row(text("active:", "\0active:"), 2, 2, "control character"),
    "an intent of no keys": Row(text("intent:\n", "intent: 3\nold:\n"), 2, 2, "intent: expected `object`"),
    "a strange key of the intent": Row(text("  goal:", "  gaol:"), 2, 2, "unknown field `gaol`"),
    "a folder in its place": Row(in_its_place(STATE, Path.mkdir), 2, 2, "task.md"),
    "a pipe in its place": Row(in_its_place(STATE, os.mkfifo), 2, 2, "is not a regular file"),
    "a missing file": Row(gone(STATE), 0, 0, "task.md was missing and is written again"),
    "a byte order mark and other line ends": Row(
        whole(lambda raw: b"\xef\xbb\xbf" + raw.replace(b"\n", b"\r\n")), 0, 0, ""
    ),
    # events.jsonl: the truth
    "a torn last line": Row(whole(lambda raw: raw[:-9], EVENTS), 0, 0, "was cut off when it was written"),
    "half a line more": Row(whole(lambda raw: raw + b'{"seq":', EVENTS), 0, 0, "was cut off when it"),
    "a changed letter": Row(text("refinement", "refinemend", EVENTS), 2, 2, ": the line is damaged"),
    "a line gone": Row(lines(lambda rows: rows[:3] + rows[4:]), 2, 2, "events.jsonl:4: event 5 stands here"),
    "the first line gone": Row(lines(lambda rows: rows[1:]), 2, 2, "events.jsonl:1: event 2 stands here"),
    "a line twice": Row(lines(lambda rows: [*rows, rows[-1]]), 2, 2, " stands here"),
    "lines swapped": Row(
        lines(lambda rows: [*rows[:2], rows[3], rows[2], *rows[4:]]), 2, 2, "jsonl:3: event 4"
    ),
    "an empty line": Row(lines(lambda rows: [*rows[:2], b"\n", *rows[2:]]), 2, 2, "events.jsonl:3: the line"),
    "no event left": Row(whole(lambda _: b"", EVENTS), 2, 2, "events.jsonl"),
    "no events file": Row(gone(EVENTS), 2, 2, "events.jsonl: No such file"),
    "a folder for the events": Row(in_its_place(EVENTS, Path.mkdir), 2, 2, "events.jsonl: Is a directory"),
    "a pipe for the events": Row(in_its_place(EVENTS, os.mkfifo), 2, 2, "is not a regular file"),
    "NUL in the events": Row(
        lines(lambda rows: [*rows[:2], b"\0" * 64 + b"\n", *rows[2:]]), 2, 2, "jsonl:3:"
    ),
    "a byte order mark": Row(whole(lambda raw: b"\xef\xbb\xbf" + raw, EVENTS), 2, 2, "jsonl:1: the line"),
    "Windows line ends": Row(whole(lambda raw: raw.replace(b"\n", b"\r\n"), EVENTS), 2, 2, "jsonl:1: the"),
    "a line of 8 MB": Row(lines(lambda rows: [b"x" * 8_000_000 + b"\n", *rows]), 2, 2, "jsonl:1: the line"),
    "events of another task": Row(
        sealed(lambda event: {**event, "task_id": "20200101T000000Z-0000"}), 2, 2, "an event of the task 2020"
    ),
    "a later type of event": Row(sealed(later), 0, 0, ""),
    "a type without its keys": Row(sealed(lambda event: {**event, "type": "Warned"}), 2, 2, "events.jsonl:"),
    "another task's folder name": Row(
        lambda folder: folder.rename(folder.with_name("20990101T000000Z-0000")), 0, 2, ""
    ),
    # evidence
    "a broken record": Row(whole(lambda _: b"{", "evidence/ev-0001.json"), 2, 2, "ev-0001.json"),
    "a record of no UTF-8": Row(whole(lambda _: b'"\xff"', "evidence/ev-0001.json"), 2, 2, "ev-0001.json"),
    "a record renamed": Row(
        lambda folder: (folder / "evidence/ev-0001.json").rename(folder / "evidence/ev-0042.json"),
        *(2, 2, "ev-0042.json"),
    ),
}
assert len(TABLE) > 40


SHORT = (
    *("body: a note before the log", "status", "an unknown key", "a newer version", "a pipe in its place"),
    *("a torn last line", "a changed letter", "lines swapped", "no events file", "a later type of event"),
)
"""What runs each time; all of the table is in tests/soak."""


@pytest.mark.parametrize("named", SHORT)
def test_damage_is_refused_by_name_or_taken_and_told(repo: Repo, named: str) -> None:
    check_damage(repo, named)


def check_damage(repo: Repo, named: str) -> None:
    """Damage a task and look at what commands say of it, and that nothing is lost."""
    row = TABLE[named]
    row.damage(repo.folder)
    before = {path: path.read_bytes() for path in repo.folder.rglob("*.*") if path.is_file()}
    shown = repo.run("status", "--json")
    assert (shown.code, row.said in shown.err) == (row.status, True), shown.err
    assert {path: path.read_bytes() for path in before} == before
    if shown.code == 0:
        assert (shown.json["status"], shown.json["iteration"]) == ("suspended", 1)
    done = repo.run("cancel", repo.folder.name)
    assert (done.code, row.said in done.err) == (row.cancel, True), done.err
    if done.code == 2:
        assert {path: path.read_bytes() for path in before} == before
    else:
        again = repo.run("status", repo.folder.name, "--json")
        assert (again.code, again.err, again.json["status"]) == (0, "", "cancelled")
    logged = repo.run("log", "--json")
    assert logged.code == (0 if "evidence/" in shown.err or "record" in named else shown.code)


@pytest.mark.parametrize("place", [name for name in TABLE if name.startswith("body: ")])
def test_a_note_of_a_person_survives_later_writes(repo: Repo, place: str) -> None:
    TABLE[place].damage(repo.folder)
    for approved in (True, False):
        assert repo.run("cancel", repo.folder.name).code == 0
        found = (repo.folder / "task.md").read_text("utf-8")
        assert found.count(f"## Notes\n{NOTE}\n\n## Plan\n") == found.count(NOTE) == 1, approved
    (edited,) = repo.events("HandEdited")
    assert (edited["part"], edited["text"]) == ("body", NOTE)
    text(NOTE, "Ada agrees.")(repo.folder)
    assert repo.run("cancel", repo.folder.name).code == 0
    assert "## Notes\nAda agrees.\n\n## Plan\n" in (repo.folder / "task.md").read_text("utf-8")


def test_an_edited_intent_counts_and_an_edited_gate_does_not(repo: Repo) -> None:
    TABLE["intent"].damage(repo.folder)
    TABLE["a gate"].damage(repo.folder)
    gates = repo.state()["gates"]
    done = repo.run("cancel", repo.folder.name)
    assert (done.code, repo.state()["intent"]["constraints"]) == (0, TEXT)
    assert repo.state()["gates"] == gates
    (edited,) = repo.events("HandEdited")
    assert (edited["part"], edited["text"]) == ("intent", "constraints")
    assert any("gates was edited by hand" in event["message"] for event in repo.events("Warned"))


def test_an_untouched_task_says_nothing(repo: Repo) -> None:
    for word in ("status", "log", "evidence", "cancel", "status"):
        done = repo.run(word, repo.folder.name)
        assert (done.code, done.err) == (0, ""), word
    assert repo.events("HandEdited") == []


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (whole(lambda raw: raw[:-9], RUN), ""),
        (lines(lambda rows: rows[1:], RUN), "begins with RunOpened"),
        (lines(lambda rows: [*rows[:1], b"{}\n", *rows[1:]], RUN), f"{RUN}:2: "),
        (lines(lambda rows: [*rows[:1], b"\xff\n", *rows[1:]], RUN), f"{RUN}:2: "),
        (lines(lambda rows: [*rows, rows[-1]], RUN), RUN),
        (in_its_place(RUN, os.mkfifo), "is not a regular file"),
    ],
)
def test_a_damaged_run_is_named_and_nothing_is_changed(repo: Repo, damage: Damage, said: str) -> None:
    damage(repo.folder)
    events = (repo.folder / EVENTS).read_bytes()
    done = repo.run("resume", "--yes")
    assert said in done.err
    assert done.code == (2 if said else 0), done.err
    if said:
        assert (repo.folder / EVENTS).read_bytes().startswith(events)
        assert repo.read("calc.py") == play.CALC["calc.py"]


def test_a_task_that_cannot_be_read_keeps_nobody_from_deciding_in_another(repo: Repo) -> None:
    newest = repo.folder
    for name in ("20200101T000000Z-aaaa", "20990101T000000Z-aaaa"):
        shutil.copytree(newest, newest.with_name(name))
        (newest.with_name(name) / EVENTS).write_text("no event\n")
    (waiting,) = repo.run("status", newest.name, "--json").json["pending"]
    done = repo.run("approve", waiting["id"])
    assert done.code == 0, done.err
    assert repo.run("resume", newest.name).code == 0
