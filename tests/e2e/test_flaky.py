"""Checks with mixed results on the same tree: never hidden, never plainly verified (A86)."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import play
from tests.support.repo import NewRepo, Repo

ODD = "test_odd.Odd.test_odd"
CHANCE = """import os
import time
import unittest


class Odd(unittest.TestCase):
    def test_odd(self):
        with open({log!r}, "a+") as file:
            file.write("x")
            number = file.tell()
        {body}
"""
FAILS_AT = "self.assertNotIn(number, {!r})"
HANGS_AT = "time.sleep(60 if number in {!r} else 0)"
MENDED = play.mending()
AT_ONCE = "check_retry: {flaky: {times: 3, seconds: 0}, timeout: {times: 2, seconds: 0}}\n"
IN_HASTE = f"{AT_ONCE}timeouts: {{tests: 4}}\n"


def chance(new_repo: NewRepo, files: dict[str, str], body: str, *at: int) -> Repo:
    """A repository in which one test fails at some of its runs, counted outside of every copy."""
    repo = new_repo(files)
    log = str(repo.home / "runs")
    repo.write({"tests/test_odd.py": CHANCE.format(log=log, body=body.format(at))}).commit()
    config = repo.home / ".config/agentflow/config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(IN_HASTE if body is HANGS_AT else AT_ONCE)
    return repo


def task(repo: Repo, script: list[dict[str, Any]] = MENDED) -> Any:
    return repo.task("--no-sandbox", "--json", play.TEXT, script=script)


def count(repo: Repo) -> int:
    return len((repo.home / "runs").read_text())


def test_a_test_that_fails_and_then_passes_is_flaky(new_repo: NewRepo) -> None:
    repo = chance(new_repo, play.CALC, FAILS_AT, 2)
    done = task(repo)
    assert (done.code, done.json["status"]) == (4, "verified_with_caveat"), done.err
    assert done.json["caveats"] == ["flaky"]
    first, second, _ = repo.evidence()
    assert (first["tries"], first["flaky"]) == ([], [])
    assert (second["exit_code"], second["flaky"]) == (0, [ODD])
    (earlier,) = second["tries"]
    assert (earlier["fault"], earlier["exit_code"]) == ("flaky", 1)
    assert "FAILED" in (repo.folder / earlier["output"]).read_text()
    (told,) = [event for event in repo.events("EvidenceRecorded") if event["evidence"] == "ev-0002"]
    assert "flaky (exit 1 before)" in told["summary"]
    assert earlier["output"] in told["files"]
    report = (repo.folder / "report.md").read_text()
    assert f"mixed results on the same tree (ev-0002): {ODD}" in report
    assert ODD in repo.run("evidence", "ev-0002").out


def test_a_failure_that_comes_again_is_no_chance(new_repo: NewRepo) -> None:
    repo = chance(new_repo, play.CALC, FAILS_AT, 2, 3)
    done = task(repo)
    assert done.code == 1
    assert "flaky" not in done.json["caveats"]
    assert count(repo) == 3
    (failure,) = repo.state()["failures"]
    assert failure["reasons"] == [{"kind": "new_failures", "check": "tests", "subjects": [ODD]}]


def test_a_check_that_hangs_once_gets_more_time_and_says_so(new_repo: NewRepo) -> None:
    repo = chance(new_repo, play.CALC, HANGS_AT, 2)
    done = task(repo)
    assert done.code == 4, done.err
    second = repo.evidence()[1]
    assert [(each["fault"], each["timed_out"]) for each in second["tries"]] == [("timeout", True)]
    assert second["flaky"] == ["tests"]


def test_a_check_that_hung_before_is_not_waited_for(new_repo: NewRepo) -> None:
    repo = chance(new_repo, play.CALC, HANGS_AT, *range(1, 9))
    assert task(repo).code == 1
    assert count(repo) == 2


def test_verify_runs_red_tests_once_more_and_tells_chance_from_fault(new_repo: NewRepo) -> None:
    repo = chance(new_repo, play.GREEN, FAILS_AT, 1)
    done = repo.run("verify", "--no-sandbox", "--json")
    (row,) = done.json
    assert (done.code, row["runs"], row["flaky"]) == (4, 2, [ODD])
    (repo.home / "runs").unlink()
    assert f"flaky (exit 1 before): {ODD}" in repo.run("verify", "--no-sandbox").out


def test_verify_of_what_is_red_stays_red(new_repo: NewRepo) -> None:
    repo = chance(new_repo, play.GREEN, FAILS_AT, *range(1, 9))
    assert repo.run("verify", "--no-sandbox").code == 1
    assert count(repo) == 2


def test_a_quick_look_runs_once(new_repo: NewRepo) -> None:
    repo = chance(new_repo, play.GREEN, FAILS_AT, 1)
    assert repo.run("verify", "--quick", "--no-sandbox").code == 1
    assert count(repo) == 1


@pytest.mark.parametrize("text", ["check_retry: {luck: {times: 1, seconds: 1}}", "check_retry: {flaky: 3}"])
def test_a_wrong_setting_is_one_message(new_repo: NewRepo, text: str) -> None:
    repo = chance(new_repo, play.GREEN, FAILS_AT)
    (repo.home / ".config/agentflow/config.yaml").write_text(f"{text}\n")
    done = repo.run("verify")
    assert done.code == 2
    assert "check_retry" in done.err


def test_evidence_of_a_try_is_sealed_too(new_repo: NewRepo) -> None:
    repo = chance(new_repo, play.CALC, FAILS_AT, 2)
    task(repo)
    (earlier,) = (repo.folder / "evidence").glob("*.try-1.out")
    earlier.write_bytes(earlier.read_bytes() + b"x")
    done = repo.run("verify", repo.folder.name, "--no-sandbox")
    assert done.code == 1
    assert Path(earlier).name in done.out


def test_a_true_record_of_chance_holds_when_it_is_looked_at_again(new_repo: NewRepo) -> None:
    repo = chance(new_repo, play.CALC, FAILS_AT, 2)
    assert task(repo).code == 4
    done = repo.run("verify", repo.folder.name, "--no-sandbox", "--json")
    assert done.code == 0, json.dumps(done.json, indent=1)


def test_the_first_test_ever_is_judged_although_nothing_was_there_to_run(new_repo: NewRepo) -> None:
    repo = new_repo({"notes.txt": "nothing to run\n"})
    turns = [play.turn(play.call("Write", file_path=name, content=text)) for name, text in play.GREEN.items()]
    script = [
        *MENDED[:2],
        play.role("implementer", *turns, play.submit(*play.GREEN)),
        play.verified("ev-0001"),
    ]
    done = repo.task("--no-input", "--json", "write calc.py with add and double", script=script)
    assert done.code in (0, 4), done.err
    assert [each["exit_code"] for each in done.json["checks"]][:1] == [0]
