"""A passing change that no test notices goes back to the implementer once, who proves it or does not."""

import json
from typing import Any

import pytest

from agentflow.core.finding import Finding
from agentflow.parse import fit
from agentflow.wording import describe_all
from tests.support import play
from tests.support.repo import Done, NewRepo, Repo, eventually

FEATURE = "add rate(table, default) to calc.py"
OLD = "def double(a):\n    return 2 * a\n"
RATE = "\n\ndef rate(table, default=0):\n    if not table:\n        return default\n    return max(table)\n"
HOLLOW = "    def test_rate(self):\n        self.assertIsNotNone(rate([1]))\n"
TRUE = """    def test_rate(self):
        self.assertEqual(rate([1, 7, 3]), 7)

    def test_default(self):
        self.assertEqual((rate([]), rate([], 5)), (0, 5))
"""
WRONG = "    def test_rate(self):\n        self.assertEqual(rate([1]), 2)\n"
TESTS = "tests/test_calc.py"
BOTH = play.submit("calc.py", TESTS)
CLAIM = {"place": "calc.py:9", "why": "rate() is never given an empty table"}
CLAIMED = play.turn(play.call("SubmitChange", summary="as before", files=["calc.py"], equivalent=[CLAIM]))


def write(path: str, text: str) -> list[dict[str, Any]]:
    whole = play.call("Write", file_path=path, content=text)
    return [play.turn(play.call("Read", file_path=path)), play.turn(whole)]


def add_tests(tests: str) -> list[dict[str, Any]]:
    known = play.GREEN[TESTS].replace("import add, double", "import add, double, rate")
    return [*write(TESTS, f"{known}\n{tests}"), BOTH]


WEAKENED = [
    *write("calc.py", play.GREEN["calc.py"].replace(OLD, OLD.replace("2", "3") + RATE)),
    *write(TESTS, play.GREEN[TESTS].replace("(double(2), 4)", "(double(2), 6)")),
    BOTH,
]
"""Another behaviour of what was there, and the test of it that expects it now."""


def script(*proving: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a crew does that adds rate() without a test, and then this in its proving round."""
    first = play.role("implementer", *play.edit("calc.py", OLD, OLD + RATE), play.submit("calc.py"))
    return [first, *([play.role("implementer", *proving)] if proving else []), play.verified("ev-0003")]


def prove(repo: Repo, *proving: dict[str, Any], rounds: str = "1", words: tuple[str, ...] = ()) -> Done:
    limits = ("--json", "--max-iterations", "1", "--prove", rounds)
    return repo.task(FEATURE, *limits, *words, script=script(*proving))


def end(done: Done) -> tuple[int, int, list[str]]:
    return done.code, done.json["proving_rounds"], done.json["caveats"]


def notes(repo: Repo) -> str:
    found = fit(tuple[Finding, ...], repo.state()["verdict"]["notes"])
    return "\n".join(describe_all(found))


def test_the_missing_tests_prove_it_in_the_same_conversation(new_repo: NewRepo) -> None:
    repo = new_repo(play.GREEN)
    done = prove(repo, *add_tests(TRUE))
    assert end(done) == (0, 1, []), done.err
    assert (done.json["iterations"], done.json["unproved"]) == (1, [])
    first, second = repo.runs("implementer")
    assert (first.head["iteration"], second.head["iteration"], second.head["continues"]) == (1, 1, 1)
    (told,) = repo.events("ProvingStarted")
    assert (told["round"], told["rounds"]) == (1, 1)
    asked = (repo.folder / "runs/2-implementer.jsonl").read_text("utf-8")
    assert "# Proving round 1 of 1" in asked
    assert all(json.dumps(line, ensure_ascii=False)[1:-1] in asked for line in told["places"])
    assert "proving round 1 of 1: " in repo.run("log").out
    assert repo.run("verify", repo.folder.name).code == 0


def test_hollow_tests_leave_the_places_as_they_were(new_repo: NewRepo) -> None:
    repo = new_repo(play.GREEN)
    done = prove(repo, *add_tests(HOLLOW))
    assert (done.code, done.json["proving_rounds"]) == (4, 1)
    assert "unproved" in done.json["caveats"]
    assert done.json["unproved"]
    assert "test_rate" in repo.read(TESTS)


def test_what_no_test_can_notice_is_shown_as_a_claim(new_repo: NewRepo) -> None:
    repo = new_repo(play.GREEN)
    done = prove(repo, CLAIMED, rounds="2")
    assert done.code == 4
    assert done.json["proving_rounds"] == 1  # the same files would be judged the same
    assert done.json["equivalent"] == [CLAIM]
    assert len(repo.runs("implementer")) == 2
    said = "the implementer says that no test can notice calc.py:9: rate() is never given an empty table"
    assert said in notes(repo)
    assert said in (repo.folder / "report.md").read_text("utf-8")
    assert len(repo.events("EvidenceRecorded")) == 2


def test_a_weakened_test_asks_and_a_no_leaves_the_change_as_it_stood(new_repo: NewRepo) -> None:
    repo = new_repo(play.GREEN)
    assert prove(repo, *WEAKENED).code == 75
    (waiting,) = repo.run("status", "--json").json["pending"]
    assert waiting["kind"] == "surface"
    assert repo.run("deny", waiting["id"], "--reason", "no").code == 0
    assert repo.run("resume").code == 4
    assert repo.read(TESTS) == play.GREEN[TESTS]
    assert "rate" in repo.read("calc.py")
    assert "proving round 1 was undone, the change before it stands: the checks were changed" in notes(repo)


@pytest.mark.parametrize("where", ["option", "settings", "repository"])
def test_without_rounds_the_task_ends_at_once(new_repo: NewRepo, where: str) -> None:
    repo = new_repo(play.GREEN)
    words: tuple[str, ...] = ("--prove", "0")
    if where != "option":
        words = ("--",)
        path = repo.home / ".config/agentflow/config.yaml"
        path = path if where == "settings" else repo.root / ".claude/agentflow.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("prove_rounds: 0\n")
        repo.commit()
    model = repo.scripted(script(*add_tests(TRUE)))
    done = repo.run("task", "--json", "--model", model, *words, FEATURE)
    assert (done.code, done.json["proving_rounds"]) == (4, 0)
    assert len(repo.runs("implementer")) == 1


ENDS = {
    "a check fails": (add_tests(WRONG), "1 of 1 iterations used"),
    "nothing is submitted": ([play.turn(text="I cannot.")], "it ended without a submission"),
    "the model is gone": ([{"error": 529}], "error 529"),
    "the change is taken back": (
        [*write("calc.py", play.GREEN["calc.py"]), play.submit()],
        "nothing was changed",
    ),
}


@pytest.mark.parametrize(("turns", "why"), ENDS.values(), ids=ENDS)
def test_a_round_that_ends_badly_loses_nothing(
    new_repo: NewRepo, turns: list[dict[str, Any]], why: str
) -> None:
    repo = new_repo(play.GREEN)
    done = prove(repo, *turns)
    assert (done.code, done.json["proving_rounds"]) == (4, 1), done.err
    assert done.json["files_changed"] == ["calc.py"]
    assert repo.read("calc.py") == play.GREEN["calc.py"].replace(OLD, OLD + RATE)
    assert repo.read(TESTS) == play.GREEN[TESTS]
    assert why in notes(repo)
    assert repo.run("verify", repo.folder.name).code == 0
    assert repo.run("undo").code == 0
    assert repo.diff() == ""


def test_a_failure_in_the_round_goes_back_as_any_other(new_repo: NewRepo) -> None:
    repo = new_repo(play.GREEN)
    rest = [play.role("implementer", *add_tests(TRUE), iteration=2), play.verified("ev-0005")]
    entries = [*script(*add_tests(WRONG))[:2], *rest]
    done = repo.task(FEATURE, "--json", "--prove", "1", script=entries)
    assert (done.code, done.json["iterations"], done.json["proving_rounds"]) == (0, 2, 1), done.err


@pytest.mark.parametrize("entry", [1, 2], ids=["at work", "being judged"])
def test_a_round_that_is_killed_goes_on_where_it_was(new_repo: NewRepo, entry: int) -> None:
    repo = new_repo(play.GREEN)
    entries = script(*add_tests(TRUE))
    entries[entry]["delay"] = 60
    model = repo.scripted(entries)
    role = entries[entry]["match"]["role"]
    with repo.start("task", FEATURE, "--model", model) as running:
        eventually(lambda: len(repo.tasks) == 1 and len(list_begun(repo, role)) == 3 - entry, 60)
        running.kill()
    del entries[entry]["delay"]
    repo.scripted(entries)
    done = repo.run("resume", "--json")
    assert (done.code, done.json["proving_rounds"]) == (0, 1), done.err
    assert len(repo.events("ProvingStarted")) == 1
    assert {run.head["continues"] for run in repo.runs("implementer")[1:]} == {1}


def list_begun(repo: Repo, role: str) -> list[dict[str, Any]]:
    return [event for event in repo.events("RunStarted") if event["role"] == role]


NEVER = {
    "no tests": ({"calc.py": play.GREEN["calc.py"]}, FEATURE, "calc.py", OLD, OLD + RATE),
    "only settings": ({**play.GREEN, "ci.yml": "os: 22\n"}, "use os 24 in ci.yml", "ci.yml", "22", "24"),
    "only comments": (play.GREEN, "add a remark to double in calc.py", "calc.py", OLD, f"# twice\n{OLD}"),
}


@pytest.mark.parametrize("case", NEVER.values(), ids=NEVER)
def test_no_round_where_no_test_could_prove_it(
    new_repo: NewRepo, case: tuple[dict[str, str], str, str, str, str]
) -> None:
    files, text, path, old, new = case
    repo = new_repo(files)
    entries = [play.role("implementer", *play.edit(path, old, new), play.submit(path))]
    done = repo.task(text, "--json", "--prove", "1", "--max-iterations", "1", script=entries)
    assert done.json["proving_rounds"] == 0, done.out


def test_no_round_where_a_limit_is_nearly_used_up(new_repo: NewRepo) -> None:
    repo = new_repo(play.GREEN)
    entries = script(*add_tests(TRUE))
    entries[0]["turns"][0]["usage"] = {"input": 900, "output": 1}
    done = repo.task(FEATURE, "--json", "--prove", "1", "--max-tokens", "1000", script=entries)
    assert (done.code, done.json["proving_rounds"]) == (4, 0)
    assert "no proving round: 90% of --max-tokens is used" in notes(repo)
