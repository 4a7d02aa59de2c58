"""`batch`: many tasks, each in a clone of its own; stopped, killed and continued."""

import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from agentflow.process import capture
from tests.support import play
from tests.support.processes import processes
from tests.support.repo import Done, NewRepo, Repo, eventually
from tests.support.terminal import at_terminal

PLAN = "plan.jsonl"
MARKUP = "<img src=x onerror=alert(1)>"
HIDDEN = {
    "command": "python3 -m unittest discover -s tests",
    "files": {
        "tests/test_hidden.py": play.CALC["tests/test_calc.py"].replace("add(1, 2), 3", "add(5, 5), 10")
    },
}


@pytest.fixture
def repo(new_repo: NewRepo) -> Repo:
    return new_repo(play.QUICK)


def plan(repo: Repo, *tasks: dict[str, Any], scripts: dict[str, Any] | None = None) -> Path:
    """Write tasks beside the repository, each in it unless it names another."""
    folder = repo.root.parent / "plans"
    folder.mkdir(exist_ok=True)
    for name, script in (scripts or {"good": play.mending()}).items():
        (folder / f"{name}.yaml").write_text(json.dumps(script))
    common = {"repository": "../repo", "text": "let add return the sum", "model": "script:good.yaml"}
    path = folder / PLAN
    path.write_text("".join(json.dumps({**common, **task}) + "\n" for task in tasks))
    return path


def run(repo: Repo, path: Path, *words: str) -> Done:
    return repo.run("batch", str(path), *words)


def results(done: Done) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.out.splitlines()]


def test_the_bar_shows_what_runs_before_anything_has_ended(repo: Repo) -> None:
    missing = {"commit": "no-such-branch"}
    path = plan(repo, {"id": "first", **missing}, {"id": "second", **missing})
    shown = at_terminal(repo, "batch", str(path), "--jobs", "1", columns=80, term="xterm").text
    drawn = [row.partition(" ")[2] for row in shown.split("\r\x1b[K") if "/2  " in row]
    assert drawn == [
        *("0/2  ", "0/2  running first", "1/2  1 error"),
        *("1/2  1 error; running second", "2/2  2 error"),
    ]


def test_each_task_has_a_clone_of_its_own_and_leaves_patch_record_and_result(repo: Repo) -> None:
    plain = repo.root.parent / "plain"
    repo.write({"later.txt": "not committed"})
    for name, text in play.CALC.items():
        (plain / name).parent.mkdir(parents=True, exist_ok=True)
        (plain / name).write_text(text.replace("a - b", "a * b"))
    planted = {"file": "calc.py", "old": "a * b", "new": "a - b"}
    path = plan(
        repo,
        {"id": "first", "check": HIDDEN},
        {"id": "planted", "repository": "../plain", "edits": [planted], "group": MARKUP},
        {"id": "wrong", "model": "script:wrong.yaml"},
        {"id": "nowhere", "commit": "no-such-branch"},
        scripts={"good": play.mending(), "wrong": [play.role("implementer", play.submit("calc.py"))]},
    )
    junit = path.with_name("junit.xml")
    done = run(repo, path, "--jobs", "2", "--shuffle", "7", "--json", "--junit", str(junit))
    printed = {result["id"]: result for result in results(done)}
    kept = [
        json.loads(line) for line in (path.with_suffix(".batch") / "results.jsonl").read_text().splitlines()
    ]
    found = {result["id"]: printed.pop(result["id"]) for result in kept}
    assert ([*found], printed) == (["first", "planted", "wrong", "nowhere"], {}), done.err
    codes = [result["exit_code"] for result in found.values()]
    assert (done.code, codes) == (1, [0, 0, 1, 2]), done.err
    assert found["first"]["hidden"] == {"resolved": True, "reason": "exit 0"}
    assert "has no commit no-such-branch" in found["nowhere"]["reason"]
    assert [case.get("name") for case in ET.parse(junit).iter("testcase")] == [*found]
    assert len([*ET.parse(junit).iter("failure")]) == 2

    assert repo.git("status", "--porcelain") == "?? later.txt\n"
    assert not repo.tasks
    for name in ("first", "planted"):
        place = Path(found[name]["folder"])
        assert not (place / "work").exists()
        assert "+    return a + b" in (place / "change.patch").read_text()
    repo.git("apply", str(Path(found["first"]["folder"]) / "change.patch"))
    assert "a + b" in repo.read("calc.py")

    again = run(repo, path)
    assert (again.code, "--resume" in again.err) == (2, True)
    stamps = {place: place.stat().st_mtime_ns for place in path.with_suffix(".batch").rglob("result.json")}
    resumed = run(repo, path, "--resume", "--json")
    assert {result["task_id"] for result in results(resumed)} == {one["task_id"] for one in found.values()}
    changed = [place.parent.name for place, stamp in stamps.items() if place.stat().st_mtime_ns != stamp]
    assert changed == ["nowhere"]
    assert run(repo, path, "--retry", "failed").code == 2
    tried = run(repo, path, "--resume", "--retry", "failed", "--retry", "limit", "--json")
    known = {one["task_id"] for one in found.values()}
    assert [one["id"] for one in results(tried) if one["task_id"] not in known] == ["wrong"]
    page = path.with_name("page.html")
    table = run(repo, path, "--resume", "--html", str(page)).out
    assert "4 tasks: 2 verified, 1 failed, 1 error" in table
    shown = page.read_text("utf-8")
    assert "✗ 2 of 4 tasks verified" in shown
    short, whole = shown.partition(">Verified <")[::2]
    assert [f">{name}<" in short for name in found] == [False, False, True, True]
    assert "has no commit no-such-branch" in short
    assert '<a href="./plan.batch/first/change.patch">patch</a>' in whole
    assert "report.html" not in shown  # no clone was kept
    assert (MARKUP in shown, "&lt;img src=x" in whole) == (False, True)


def test_a_batch_that_is_killed_goes_on_and_does_nothing_twice(repo: Repo) -> None:
    slow = [{**entry, "delay": 0.3} for entry in play.mending()]
    path = plan(repo, *({"id": f"t{number}"} for number in range(3)), scripts={"good": slow})
    out = path.with_suffix(".batch")
    process = repo.start("batch", str(path), "--jobs", "2", stderr=subprocess.DEVNULL)
    eventually(lambda: len([*out.glob("*/work/.claude/agentflow/*/events.jsonl")]) >= 2)
    begun = {place.name for place in out.glob("*/work/.claude/agentflow/*Z-*")}
    process.send_signal(signal.SIGKILL)
    process.communicate()
    refused = repo.start("batch", str(path), "--resume", "--out", str(out / "t0"))
    assert "holds no batch" in refused.communicate()[1]

    stopped = repo.start("batch", str(path), "--resume", "--jobs", "2", stderr=subprocess.DEVNULL)
    eventually(lambda: len([*out.glob("*/result.json")]) >= 1)
    stopped.send_signal(signal.SIGTERM)
    stopped.communicate()
    assert stopped.returncode == 143

    done = run(repo, path, "--resume", "--json", "--jobs", "2")
    assert (done.code, [result["exit_code"] for result in results(done)]) == (0, [0] * 3), done.err
    assert begun <= {result["task_id"] for result in results(done)}


def test_a_budget_of_all_tasks_is_set_aside_before_each(repo: Repo) -> None:
    script = play.mending()
    for entry in script:
        for each in entry["turns"]:
            each["usage"] = {"input": 90, "output": 10}
    tasks = ({"id": name, "max_tokens": 1200} for name in ("first", "second"))
    path = plan(repo, *tasks, scripts={"good": script})
    done = run(repo, path, "--max-tokens", "1400", "--jobs", "2")
    assert (done.code, "○ second  not done" in done.out) == (3, True), done.err
    assert "2 tasks: 1 verified, 1 not done" in done.out
    assert "run the same command with --resume and a larger limit." in done.err


def test_fail_fast_begins_nothing_after_the_first_that_is_not_verified(repo: Repo) -> None:
    path = plan(repo, {"id": "a", "commit": "nowhere"}, {"id": "b"})
    early = run(repo, path, "--junit", "nowhere/results.xml")
    assert (early.code, "there is no folder nowhere" in early.err) == (2, True), early.err
    done = run(repo, path, "--fail-fast", "--jobs", "1")
    assert (done.code, "○ b" in done.out) == (1, True)


def test_what_waits_goes_on_after_the_decision_and_never_sees_the_file_of_the_batch(repo: Repo) -> None:
    (repo.home / ".claude").mkdir()
    rule = {"permissions": {"ask": ["Bash(cat *)"]}}
    (repo.home / ".claude/settings.json").write_text(json.dumps(rule))
    look = play.turn(play.call("Bash", command="cat ../../../plan.jsonl ../../batch.json"))
    path = plan(
        repo, {"id": "asks", "check": HIDDEN}, scripts={"good": play.mending(look, evidence="ev-0003")}
    )
    waiting = run(repo, path, "--json")
    (result,) = results(waiting)
    assert (waiting.code, result["status"]) == (75, "suspended"), waiting.err
    clone = Path(result["folder"]) / "work"
    (pending,) = repo.run("status", "--json", "-C", str(clone)).json["pending"]
    assert repo.run("approve", pending["id"], "-C", str(clone)).code == 0
    page = path.with_name("page.html")
    done = run(repo, path, "--resume", "--keep", "--json", "--html", str(page))
    (ended,) = results(done)
    assert (done.code, ended["task_id"]) == (0, result["task_id"]), done.err
    assert ended["hidden"]["resolved"]
    (ran,) = (clone / ".claude/agentflow").glob("*/evidence/ev-0002.out")
    assert ran.read_text().count("No such file") == 2
    assert '<a href="./plan.batch/asks/report.html">report</a>' in page.read_text("utf-8")
    assert "let add return the sum" in (clone.parent / "report.html").read_text("utf-8")


def test_installed_packages_and_trust_of_the_repository_hold_in_the_clones(repo: Repo) -> None:
    files = {".gitignore": ".venv/\n", ".claude/test-command": "python -m ourtool\n"}
    repo.write({**play.CALC, **files}).commit()
    capture(("python3", "-m", "venv", "--without-pip", ".venv"), cwd=repo.root)
    (packages,) = (repo.root / ".venv/lib").glob("python*/site-packages")
    (packages / "ourtool.py").write_text("import unittest\nunittest.main('tests.test_calc')\n")
    assert repo.run("trust", "--yes").code == 0
    done = run(repo, plan(repo, {}), "--json")
    (result,) = results(done)
    assert (done.code, result["caveats"]) == (4, ["tests_not_counted"]), (result, done.err)


@pytest.mark.skipif(not find_spec("ray"), reason="the package ray is not installed")
def test_a_ray_cluster_does_the_same_and_again_only_what_its_machine_lost(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))  # where Ray keeps its token
    path = plan(
        repo,
        {"id": "slow", "check": HIDDEN, "model": "script:slow.yaml"},
        {"id": "wrong", "model": "script:wrong.yaml"},
        {"id": "nowhere", "commit": "no-such-branch"},
        scripts={
            "slow": [{**entry, "delay": 0.5} for entry in play.mending()],
            "wrong": [play.role("implementer", play.submit("calc.py"))],
        },
    )
    words = ("--engine", "ray", "--jobs", "2", "--no-input", "--json")
    process = repo.start("batch", str(path), *words)
    seen = list[set[int]]()

    def is_at_work() -> bool:
        seen[:] = begun_for("slow"), processes("ray::slow")
        return all(seen)

    eventually(is_at_work, 200)
    (lost,), (worker,) = seen
    os.kill(worker, signal.SIGKILL)
    eventually(lambda: lost not in begun_for("slow"))
    out, err = process.communicate()
    found = {result["id"]: result for result in map(json.loads, out.splitlines())}
    assert sorted((name, result["exit_code"]) for name, result in found.items()) == [
        ("nowhere", 2),
        ("slow", 0),
        ("wrong", 1),
    ], err
    assert (process.returncode, len(err.splitlines())) == (1, 3), err
    assert found["slow"]["hidden"] == {"resolved": True, "reason": "exit 0"}
    place = Path(found["slow"]["folder"])
    assert sorted(file.name for file in place.iterdir()) == ["change.patch", "result.json", "task.agentflow"]
    assert repo.run("import", str(place / "task.agentflow")).code == 0
    repo.git("apply", str(place / "change.patch"))
    assert "died" in (place.parent / "ray.log").read_text()


def begun_for(name: str) -> set[int]:
    """Return the processes that do a task of a batch."""
    said = f"/{name}/work".encode()
    found = set()
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes().split(b"\0")
        except OSError:
            continue  # it ended while we looked
        if b"task" in words and any(word.endswith(said) for word in words):
            found.add(int(place.parent.name))
    return found


@pytest.mark.skipif(not find_spec("ray"), reason="the package ray is not installed")
def test_an_address_without_a_cluster_is_one_message_which_erases_the_bar(repo: Repo) -> None:
    words = ("batch", str(plan(repo, {})), "--engine", "ray", "--no-input", "--address", "127.0.0.1:9")
    seen = at_terminal(repo, *words, columns=200, term="xterm")
    assert seen.code == 2
    assert "0/1" in seen.text
    assert "\r\x1b[Kagentflow: no Ray cluster answers at 127.0.0.1:9" in seen.text


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--engine", "ray"), "cannot wait for you"),
        (("--engine", "ray", "--no-input", "--keep"), "--keep"),
        (("--engine", "ray", "--yes", "--rate", "3"), "limit the tasks at once with --jobs"),
        (("--cpus", "2"), "apply only to --engine ray"),
    ],
)
def test_what_a_cluster_cannot_do_is_refused_before_anything_begins(
    repo: Repo, words: tuple[str, ...], why: str
) -> None:
    path = plan(repo, {})
    done = run(repo, path, *words)
    assert (done.code, why in done.err, path.with_suffix(".batch").exists()) == (2, True, False), done.err


def test_without_the_extra_one_line_says_how_to_install_it(repo: Repo, tmp_path: Path) -> None:
    program = tmp_path / "without.py"
    hide = "import importlib.util as u\nu.find_spec = lambda name, *rest: None\n"
    program.write_text(f"{hide}from agentflow.cli.app import main\nmain()\n", "utf-8")
    words = ("batch", str(plan(repo, {})), "--engine", "ray", "--no-input")
    done = repo.run(*words, command=(sys.executable, str(program)))
    assert (done.code, done.err.count("pip install 'agentflow[ray]'")) == (2, 1), done.err


def test_a_shared_cluster_is_not_opened_to_tasks(repo: Repo) -> None:
    words = ("--engine", "ray", "--address", "127.0.0.1:1", "--no-input", "--network")
    refused = run(repo, plan(repo, {"id": "one"}), *words)
    assert (refused.code, "reach the shared cluster" in refused.err) == (2, True)
