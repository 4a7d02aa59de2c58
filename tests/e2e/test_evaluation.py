"""`eval`: what hidden checks say of verdicts, two runs compared, instances as those of SWE-bench."""

import json
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from agentflow.process import capture
from tests.support import play
from tests.support.repo import NewRepo, Repo

HIDDEN = play.CALC["tests/test_calc.py"].replace("add(1, 2), 3", "add(5, 5), 10")
TEXT = "make add return the sum in calc.py, as the failing tests say"
CHEAT = [
    play.role(
        "implementer", *play.edit("calc.py", "return a - b", "return 3 if b else 1"), play.submit("calc.py")
    )
]


@pytest.fixture
def folder(new_repo: NewRepo, tmp_path: Path) -> Path:
    new_repo(play.CALC)
    hidden = tmp_path / "plans/hidden/tests"
    hidden.mkdir(parents=True)
    (hidden / "test_hidden.py").write_text(HIDDEN)
    return tmp_path / "plans"


def write_plan(folder: Path, *tasks: dict[str, Any]) -> Path:
    path = folder / "tasks.yaml"
    check = {"command": "python3 -m unittest tests.test_hidden", "folder": "hidden"}
    path.write_text(
        json.dumps([{"repository": "../repo", "text": TEXT, "check": check, **task} for task in tasks])
    )
    return path


def test_a_change_that_only_pleases_the_tests_it_sees_is_told_from_one_that_is_right(
    folder: Path, tmp_path: Path
) -> None:
    repo = Repo(tmp_path / "repo", tmp_path / "home")
    (folder / "good.yaml").write_text(json.dumps(play.mending()))
    (folder / "cheat.yaml").write_text(json.dumps(CHEAT))
    path = write_plan(folder, {"id": "one"}, {"id": "two", "commit": "nowhere"})
    before, after = str(folder / "before"), str(folder / "after")
    good = repo.run("eval", str(path), "--out", before, "--model", f"script:{folder}/good.yaml", "--json")
    (score,) = good.json
    assert (good.code, score["resolved"]["count"], score["unbegun"]) == (1, 1, 1), good.err
    files = ("--junit", f"{folder}/junit.xml", "--html", f"{folder}/page.html")
    cheat = repo.run("eval", str(path), "--out", after, "--model", f"script:{folder}/cheat.yaml", *files)
    assert "<testsuite" in (folder / "junit.xml").read_text("utf-8")
    assert "tasks" in (folder / "page.html").read_text("utf-8")
    assert "0/2 [0-66%]" in cheat.out, cheat.out
    assert max(map(len, cheat.out.splitlines())) <= 80
    (told,) = [json.loads(line) for line in (folder / "after/results.jsonl").read_text().splitlines()][:1]
    assert told["hidden"] == {"resolved": False, "reason": "exit 1"}
    assert told["exit_code"] != 0 or "1/1 [21-100%]" in cheat.out

    same = repo.run("eval", "compare", before, before, "--json")
    assert (same.code, same.json["p"], same.json["both"]) == (0, 1.0, 1)
    other = repo.run("eval", "compare", before, f"{after}/results.jsonl")
    assert (other.code, "only the first: 1  one" in other.out) == (0, True), other.out
    assert "2 tasks: both resolve 0, neither 1" in other.out
    assert "paired difference: -50% [" in other.out
    assert max(len(row) for row in other.out.splitlines() if row.endswith("-")) <= 80
    assert "neither better nor worse by more than chance: p = 1.000" in other.out
    for name, resolved in (("low", False), ("high", True)):
        lines = [{**told, "id": f"t{n}", "hidden": {"resolved": resolved, "reason": ""}} for n in range(6)]
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    better = repo.run("eval", "compare", str(folder / "low"), str(folder / "high"))
    assert (better.code, "the second is better by more than chance: p = 0.031" in better.out) == (0, True)


def test_words_that_mean_nothing_are_one_message(folder: Path, tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo", tmp_path / "home")
    path = write_plan(folder, {"id": "one", "check": None})
    damaged = folder / "damaged.jsonl"
    damaged.write_text('{"id": "one"}\n')
    said = {
        (str(path),): "one has no hidden check",
        (str(path), "more"): "name one file of tasks",
        ("compare", "a"): "name the folders of two runs",
        ("compare", "a", "b"): "cannot read a",
        ("compare", str(damaged), str(damaged)): "damaged.jsonl:1: object missing required field",
    }
    for words, message in said.items():
        done = repo.run("eval", *words)
        assert (done.code, message in done.err) == (2, True), done.err


PATCH = """diff --git a/tests/test_more.py b/tests/test_more.py
new file mode 100644
--- /dev/null
+++ b/tests/test_more.py
@@ -0,0 +1,6 @@
+from calc import add
+from only_there import TEN
+
+
+def test_more():
+    assert add(5, 5) == TEN
"""


def test_an_instance_of_swe_bench_runs_in_its_environment_and_says_what_it_needs(
    folder: Path, tmp_path: Path
) -> None:
    repo = Repo(tmp_path / "repo", tmp_path / "home")
    (folder / "good.yaml").write_text(json.dumps(play.mending()))
    (folder / "repositories").mkdir()
    shutil.copytree(repo.root, folder / "repositories/acme__calc", symlinks=True)
    instance = {
        "repo": "acme/calc",
        "base_commit": repo.git("rev-parse", "HEAD").strip(),
        "problem_statement": TEXT,
        "hints_text": "",
        "patch": "the solution, which nobody sees",
        "test_patch": PATCH,
        "FAIL_TO_PASS": json.dumps(["tests/test_more.py::test_more"]),
        "PASS_TO_PASS": ["tests/test_calc.py::CalcTest::test_double"],
    }
    path = folder / "instances.jsonl"
    names = ("acme__calc-1", "acme__calc-2")
    path.write_text("".join(json.dumps({**instance, "instance_id": name}) + "\n" for name in names))
    environment = folder / "environments/acme__calc-1"
    capture((sys.executable, "-m", "venv", "--without-pip", str(environment)), cwd=folder)
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "ours.pth").write_text(sysconfig.get_path("purelib"))
    (packages / "only_there.py").write_text("TEN = 10\n")
    done = repo.run("eval", str(path), "--model", f"script:{folder}/good.yaml", "--jobs", "2")
    found = [json.loads(line) for line in (folder / "instances.batch/results.jsonl").read_text().splitlines()]
    assert found[0]["hidden"] == {"resolved": True, "reason": "2 tests passed"}, (found[0], done.err)
    assert "it needs a Python environment" in found[1]["reason"]
    assert (done.code, "1 could not begin" in done.out) == (1, True)

    path.write_text(json.dumps({**instance, "instance_id": "x", "base_commit": ""}))
    seen = repo.run("eval", str(path), "--out", str(folder / "other"))
    assert (seen.code, "instances.jsonl:1: base_commit: an instance needs a text here" in seen.err) == (
        2,
        True,
    )
