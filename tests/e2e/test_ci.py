"""A pull request verified again in another clone, and a task that a label on an issue asks for."""

import gzip
import hashlib
import io
import json
import re
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import play, tampering
from tests.support.attempts import Attempt
from tests.support.repo import COMMAND, Done, NewRepo, Repo

ACTION = yaml.safe_load((Path(__file__).parents[2] / "action.yml").read_text("utf-8"))
FETCH = "+refs/agentflow/*:refs/agentflow/*"


@pytest.fixture
def server(tmp_path: Path) -> Path:
    """A bare repository, as a host of git keeps it."""
    place = tmp_path / "server.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(place)], check=True)
    return place


def deliver(repo: Repo, server: Path) -> str:
    """Do a task, commit it on a branch, and push commit and record; return the task's id."""
    repo.git("branch", "-M", "main")
    repo.git("remote", "add", "origin", str(server))
    repo.git("push", "-q", "origin", "main")
    assert repo.task(script=play.mending()).code == 0
    task_id = repo.folder.name
    repo.git("config", "user.name", "t")
    repo.git("config", "user.email", "t@localhost")
    assert repo.run("commit", "--branch", "mend").code == 0
    kept = repo.run("export", task_id, "--ref")
    assert kept.code == 0, kept.err
    assert f"git push origin refs/agentflow/{task_id}" in kept.out
    repo.git("push", "-q", "origin", "mend", f"refs/agentflow/{task_id}")
    return task_id


def check_out(server: Path, name: str = "clone", *, fetches: bool = True) -> Repo:
    """Return the clone of a CI job, with the records unless told otherwise."""
    clone = Repo(server.with_name(name), server.with_name(f"{name}-home"))
    clone.git("remote", "add", "origin", str(server))
    clone.git("fetch", "-q", "origin")
    clone.git("checkout", "-q", "-f", "--detach", "origin/mend")
    if fetches:
        clone.git("fetch", "-q", "origin", FETCH)
    return clone


def job(clone: Repo, event: Mapping[str, Any], *words: str, **env: str) -> Done:
    place = clone.home / "event.json"
    place.write_text(json.dumps(event), "utf-8")
    return clone.run("ci", *words, env={"GITHUB_EVENT_PATH": str(place), **env})


def test_a_good_record_passes_and_is_told_as_summary_and_sarif(new_repo: NewRepo, server: Path) -> None:
    task_id = deliver(new_repo(play.QUICK), server)
    clone = check_out(server)
    base = clone.git("rev-parse", "origin/main").strip()
    summary, sarif = clone.home / "summary.md", clone.home / "found.sarif"
    event = {"action": "opened", "pull_request": {"base": {"sha": base}, "body": "x"}, "number": 1}
    done = job(clone, event, "--sarif", str(sarif), GITHUB_STEP_SUMMARY=str(summary), GITHUB_ACTIONS="true")
    assert done.code == 0, done.err + done.out
    assert f"names the task {task_id}" in done.out
    assert "Run again here without a model: every result is as recorded." in summary.read_text("utf-8")
    assert "let add return the sum" in summary.read_text("utf-8")
    assert json.loads(sarif.read_text("utf-8"))["runs"][0]["results"] == []
    assert "::error" not in done.out


def test_what_the_record_does_not_cover_is_refused(new_repo: NewRepo, server: Path) -> None:
    repo = new_repo(play.CALC)
    task_id = deliver(repo, server)
    clone = check_out(server)
    clone.write({"calc.py": clone.read("calc.py").replace("a + b", "b + a")}).commit()
    changed = clone.run("ci", "--base", "origin/main", env={"GITHUB_ACTIONS": "true"})
    assert changed.code == 1
    assert re.search(
        r"::error file=calc\.py,line=1,title=agentflow not_verified::this changed after", changed.out
    )
    clone.git("checkout", "-q", "-f", "origin/mend")
    # a record of which one byte differs, and one whose verdict was written by hand
    for forge in (flip, forge_evidence):
        forged = forge(clone, f"refs/agentflow/{task_id}")
        assert (forged.code, "Traceback" in forged.err) == (2, False), forged.out + forged.err
        assert "damaged" in forged.err or "not a complete record" in forged.err
        clone.git("fetch", "-q", "origin", FETCH)
    without = check_out(server, "bare", fetches=False).run("ci", "--base", "origin/main")
    assert without.code == 2
    assert f"agentflow export {task_id} --ref" in without.err


def begin(repo: Repo) -> Repo:
    """Begin a branch of a pull request, where ci runs too."""
    repo.git("config", "user.name", "t")
    repo.git("config", "user.email", "t@localhost")
    repo.git("branch", "-M", "main")
    repo.git("checkout", "-q", "-b", "work")
    return repo


def commit_task(repo: Repo) -> None:
    assert repo.run("commit", "--accept-caveat").code == 0
    assert repo.run("export", repo.tasks[-1].name, "--ref").code == 0


def test_what_came_before_an_honest_task_is_named_and_never_ends_0(new_repo: NewRepo) -> None:
    gutted = play.CALC["tests/test_calc.py"].replace("self.assertEqual(double(2), 4)", "pass")
    repo = begin(new_repo(play.CALC))
    repo.write(
        {"calc.py": play.CALC["calc.py"].replace("2 * a", "3 * a"), "tests/test_calc.py": gutted}
    ).commit()
    assert repo.task(script=play.mending()).code == 0
    commit_task(repo)
    summary, sarif = repo.home / "summary.md", repo.home / "found.sarif"
    words = ("ci", "--base", "main", "--summary", str(summary), "--sarif", str(sarif))
    done = repo.run(*words, env={"GITHUB_ACTIONS": "true"})
    assert done.code == 4, done.out + done.err
    assert "! tests/test_calc.py: no verified task accounts for this change" in done.out
    assert "2 things not verified. Let a person look at that" in done.out
    assert "::warning file=calc.py,line=1,title=agentflow uncovered::no verified task" in done.out
    assert "**Only a part of this pull request is verified.**" in summary.read_text("utf-8")
    assert "- `tests/test_calc.py`: no verified task accounts" in summary.read_text("utf-8")
    (run,) = json.loads(sarif.read_text("utf-8"))["runs"]
    found = [each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for each in run["results"]]
    assert found == ["calc.py", "tests/test_calc.py"]
    assert {each["ruleId"] for each in run["results"]} == {"uncovered"}


def test_tasks_on_each_other_cover_all_and_a_document_by_hand_is_told(new_repo: NewRepo) -> None:
    repo = begin(new_repo(play.QUICK))
    assert repo.task(script=play.mending()).code == 0
    commit_task(repo)
    typed = [*play.edit("calc.py", "def double(a):", "def double(a: int) -> int:"), play.submit("calc.py")]
    assert repo.task("add type hints to double in calc.py", script=play.crew(*typed)).code == 0
    commit_task(repo)
    done = repo.run("ci", "--base", "main")
    assert done.code == 0, done.out + done.err
    assert all(f"names the task {folder.name}" in done.out for folder in repo.tasks)
    repo.write({"README.md": "It adds.\n"}).commit()
    repo.git("update-ref", "-d", f"refs/agentflow/{repo.tasks[0].name}")
    told = repo.run("ci", "--base", "main")
    assert told.code == 4, told.out
    assert f"names the task {repo.tasks[0].name}, but this clone has no record of it" in told.out
    assert [line for line in told.out.splitlines() if line.startswith("!")] == [
        "! README.md: no verified task accounts for this change",
        "! calc.py: no verified task accounts for this change",
    ]


def test_a_failed_task_whose_record_says_0_fails(new_repo: NewRepo) -> None:
    repo = begin(new_repo(play.QUICK))
    wrong = play.role("implementer", *play.edit("calc.py", "a - b", "b * a"), play.submit("calc.py"))
    script = [*play.mending()[:2], wrong, play.role("implementer", play.submit("calc.py"))]
    assert repo.task(script=script).code == 1

    def praise(event: dict[str, Any]) -> None:
        if ending := event.get("changed", {}).get("ending"):
            ending.update(exit_code=0, status="answered")

    repo.reseal(praise)
    repo.write({}).git("add", "-A")
    repo.git("commit", "-qm", f"mend\n\nAgentflow-Task: {repo.folder.name}")
    assert repo.run("export", repo.folder.name, "--ref").code == 0
    done = repo.run("ci", "--base", "main")
    assert done.code == 1, done.out + done.err
    assert f"! {repo.folder.name} ended with 1: " in done.out


def test_an_approved_change_of_a_check_is_for_a_person_here_too(tmp_path: Path) -> None:
    wrong = tampering.MENDED.replace("size)", "size) if total < 500 else total // size")
    half = tampering.RIGHT.replace(tampering.MENDED, wrong)
    softer = tampering.TESTS.replace("assert pages(905, 10) == 91", "assert pages(905, 10)")
    attempt = Attempt(tmp_path, tampering.BASE)
    repo = begin(attempt.repo)
    assert attempt.run(tampering.TASK, {"pager/core.py": half, "tests/test_core.py": softer}).code == 75
    assert attempt.settle("approve", "--by", "ada").code == 0
    commit_task(repo)
    done = repo.run("ci", "--base", "main")
    assert done.code == 4, done.out + done.err
    assert "! approved by the record's own word: tests/test_core.py" in done.out
    assert "approved by ada at" in done.out


def keep(clone: Repo, ref: str, content: bytes) -> Done:
    """Put a record in the place of the one of a ref, and run the job."""
    path = clone.home / "task.agentflow"
    path.write_bytes(content)
    blob = clone.git("hash-object", "-w", str(path)).strip()
    made = subprocess.run(
        ["git", "mktree"],
        input=f"100644 blob {blob}\ttask.agentflow\n",
        cwd=clone.root,
        capture_output=True,
        text=True,
        check=True,
    )
    commit = clone.git("commit-tree", made.stdout.strip(), "-m", "x").strip()
    clone.git("update-ref", ref, commit)
    return clone.run("ci", "--base", "origin/main")


def read_record(clone: Repo, ref: str) -> bytes:
    shown = ["git", "cat-file", "blob", f"{ref}:task.agentflow"]
    return subprocess.run(shown, cwd=clone.root, capture_output=True, check=True).stdout


def flip(clone: Repo, ref: str) -> Done:
    content = bytearray(read_record(clone, ref))
    content[len(content) // 2] ^= 1
    return keep(clone, ref, bytes(content))


def forge_evidence(clone: Repo, ref: str) -> Done:
    """Write another exit code into the evidence, with a list of hashes that agrees."""
    with tarfile.open(fileobj=io.BytesIO(read_record(clone, ref))) as bundle:
        parts = {one.name: bundle.extractfile(one).read() for one in bundle.getmembers()}  # type: ignore[union-attr]
    name = "evidence/ev-0001.json"
    parts[name] = parts[name].replace(b'"exit_code":1', b'"exit_code":0')
    listed = json.loads(parts["manifest.json"])
    listed["files"][name] = hashlib.sha256(parts[name]).hexdigest()
    parts["manifest.json"] = json.dumps(listed).encode()
    made = io.BytesIO()
    with gzip.GzipFile(fileobj=made, mode="wb") as packed, tarfile.open(fileobj=packed, mode="w") as bundle:
        for each, content in parts.items():
            member = tarfile.TarInfo(each)
            member.size = len(content)
            bundle.addfile(member, io.BytesIO(content))
    return keep(clone, ref, made.getvalue())


def test_a_pull_request_without_a_task_and_one_without_a_base(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    assert repo.run("ci", "--base", "HEAD").code == 0
    assert repo.run("ci", "--base", "HEAD", "--require").code == 1
    nothing = repo.run("ci")
    assert (nothing.code, "--base" in nothing.err) == (2, True)
    gone = repo.run("ci", "--base", "0" * 40)
    assert (gone.code, "fetch-depth" in gone.err) == (2, True)


LOOPED = """def small(numbers):
    found = []
    for number in numbers:
        if number < 10:
            found.append(number)
    return found
"""
SHORTER = "def small(numbers):\n    return [number for number in numbers if number < 10]\n"
PINS = "from small import small\n\n\ndef test_small():\n    assert small([2, 3]) == [2, 3]\n"


def test_survivors_of_a_task_are_shown_and_those_of_all_code_fail_where_that_is_asked(
    new_repo: NewRepo,
) -> None:
    repo = begin(new_repo({"small.py": LOOPED, "test_small.py": PINS}))
    turns = [
        play.turn(play.call("Read", file_path="small.py")),
        play.turn(play.call("Write", file_path="small.py", content=SHORTER)),
        play.submit("small.py"),
    ]
    done = repo.task("refactor small() in small.py", "--prove", "0", script=play.crew(*turns))
    assert done.code == 4, done.err
    commit_task(repo)
    summary, sarif = repo.home / "summary.md", repo.home / "found.sarif"
    words = ("ci", "--base", "main", "--summary", str(summary), "--sarif", str(sarif))
    shown = repo.run(*words, env={"GITHUB_ACTIONS": "true"})
    assert shown.code == 4, shown.out
    said = "number < 10 → True: no test notices"
    assert f"::warning file=small.py,line=2,title=agentflow mutant_survived::{said}" in shown.out
    assert "mutants killed</summary>" in summary.read_text("utf-8")
    assert "- `small.py:2` number &lt; 10 → True: no test notices" in summary.read_text("utf-8")
    (run,) = json.loads(sarif.read_text("utf-8"))["runs"]
    assert said in [each["message"]["text"] for each in run["results"]]
    assert repo.run("ci", "--base", "main", "--require-killed").code == 1
    assert repo.run("report", "--html", "page.html").code == 0
    row = 'mark-unproved"><td colspan="4">! number &lt; 10 → True: no test notices</td>'
    assert row in repo.read("page.html")
    (repo.root / "page.html").unlink()
    repo.write({"test_small.py": PINS.replace("[2, 3]) == [2, 3]", "[2, 10, 9]) == [2, 9]")}).commit()
    repo.git("commit", "-q", "--amend", "-m", "tests")
    done = repo.run("ci", "--base", "main", "--require-killed")
    assert (done.code, "survive" in done.out) == (1, False), done.out  # what came after the task fails


def test_without_a_task_all_changed_code_is_tried_where_that_is_asked(new_repo: NewRepo) -> None:
    repo = begin(new_repo({"small.py": LOOPED, "test_small.py": PINS}))
    repo.write({"small.py": SHORTER}).commit()
    assert repo.run("ci", "--base", "main").code == 0
    done = repo.run("ci", "--base", "main", "--require-killed", "--summary", "summary.md")
    assert done.code == 1, done.err
    assert "! small.py:2  number < 10 → True: no test notices" in done.out
    assert "- `small.py:2` number &lt; 10 → True: no test notices" in repo.read("summary.md")
    repo.write({"test_small.py": PINS.replace("[2, 3]) == [2, 3]", "[2, 10, 9]) == [2, 9]")}).commit()
    done = repo.run("ci", "--base", "main", "--require-killed")
    assert (done.code, "mutants killed" in done.out) == (0, True), done.out


def run_steps(repo: Repo, event: Mapping[str, Any], inputs: Mapping[str, str], base: str = "") -> int:
    """Run what the action does in a shell after the installation; return the first code that is not 0."""
    place, output = repo.home / "event.json", repo.home / "output"
    place.write_text(json.dumps(event), "utf-8")
    output.touch()
    known = {
        **repo.environment,
        "PATH": f"{COMMAND.parent}:{repo.environment['PATH']}",
        "RUNNER_TEMP": str(repo.home),
        "GITHUB_BASE_REF": base,
    }
    env = {**known, "GITHUB_EVENT_PATH": str(place), "GITHUB_OUTPUT": str(output)}
    for step in ACTION["runs"]["steps"][2:]:
        said = dict(line.split("=", 1) for line in output.read_text("utf-8").splitlines())
        if "if" in step and not said:
            continue
        values = {
            **{f"inputs.{key}": value for key, value in inputs.items()},
            **{f"steps.work.outputs.{key}": value for key, value in said.items()},
        }
        given = {key: values[text.strip("${} ")] for key, text in step.get("env", {}).items()}
        code = subprocess.run(
            ["bash", "-e", "-c", step["run"]], cwd=repo.root, env={**env, **given}, check=False
        ).returncode
        if code:
            return code
    return 0


def test_a_label_on_an_issue_runs_a_task_and_pushes_its_branch_with_the_record(
    new_repo: NewRepo, server: Path
) -> None:
    repo = new_repo(play.QUICK)
    repo.git("remote", "add", "origin", str(server))
    issue = {"number": 7, "title": "let add return the sum", "body": "`$(touch pwned)`; touch pwned"}
    event = {"action": "labeled", "issue": issue, "label": {"name": "agentflow"}}
    model = repo.scripted(play.mending())
    inputs = {
        "label": "agentflow",
        "model": model,
        "sarif": "found.sarif",
        "require": "true",
        "require-killed": "false",
    }
    assert run_steps(repo, {**event, "label": {"name": "bug"}}, inputs) == 0
    assert repo.tasks == []
    assert run_steps(repo, event, inputs) == 0
    pushed = subprocess.run(
        ["git", "for-each-ref", "--format=%(refname)"], cwd=server, capture_output=True, text=True, check=True
    )
    assert pushed.stdout.split() == [f"refs/agentflow/{repo.folder.name}", "refs/heads/agentflow/issue-7"]
    assert "Agentflow-Task" in repo.git("log", "-1", "--format=%B")
    assert not list(repo.root.rglob("pwned"))


def test_the_action_trusts_the_checks_of_the_base_and_not_those_of_the_pull_request(
    new_repo: NewRepo, server: Path
) -> None:
    own = {".claude/test-command": "python3 -m unittest -v tests.test_calc\n"}
    repo = new_repo({**play.CALC, **own})
    assert repo.run("trust", "--yes").code == 0
    deliver(repo, server)
    clone = check_out(server, fetches=False)
    inputs = {
        "label": "agentflow",
        "model": "repair",
        "sarif": "found.sarif",
        "require": "false",
        "require-killed": "false",
    }
    event = {"pull_request": {"base": {"sha": clone.git("rev-parse", "origin/main").strip()}}}
    assert run_steps(clone, event, inputs, "main") == 0
    clone.write({".claude/test-command": "true\n"}).commit()
    assert run_steps(clone, event, inputs, "main") == 1
    clone.git("checkout", "-q", "--detach", "origin/main")
    assert run_steps(clone, event, inputs, "main") == 0
    assert run_steps(clone, event, {**inputs, "require": "true"}, "main") == 1
    assert run_steps(clone, event, {**inputs, "require-killed": "true"}, "main") == 0


def test_the_action_gives_no_foreign_text_to_a_shell() -> None:
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
        if "uses" in step:
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step["uses"])
