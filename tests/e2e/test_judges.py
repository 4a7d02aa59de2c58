"""Judges are asked where the program is not sure; a test of the verifier can lower a verdict, and no more."""

from typing import Any

import pytest

from tests.e2e import test_proving as proving
from tests.support import play
from tests.support.repo import NewRepo, Repo

TWO = {"helper.py": "from calc import double\n\n\ndef four(a):\n    return double(double(a))\n"}
HALF = "\n\ndef half(a):\n    return a // 2\n"
UP = "\n\ndef half(a):\n    return -(-a // 2)\n"
FITTED = "import unittest\n\nfrom calc import half\n\n\nclass HalfTest(unittest.TestCase):\n"
FITTED += "    def test_half(self):\n        self.assertEqual((half(4), half(2), half(0)), (2, 1, 0))\n"
GOAL = FITTED.replace("HalfTest", "GoalTest").replace("(half(4), half(2), half(0)), (2, 1, 0)", "half(3), 2")
FEATURE = "add half(a): half of a, rounded up, with a test"
RATE = "add rate(table, default) to the calculator"


def judge(*turns: dict[str, Any], name: str = "verifier") -> dict[str, Any]:
    """Return what a judge does if it is asked; unlike `play.role` it does not have it asked."""
    return {"match": {"agent": name}, "turns": list(turns)}


def verdict(word: str, *evidence: str, why: str = "") -> dict[str, Any]:
    reasons = [why] if why else []
    return play.turn(play.call("SubmitVerdict", verdict=word, evidence=list(evidence), reasons=reasons))


def acted(repo: Repo) -> list[str]:
    return [event["role"] for event in repo.events("RunStarted")]


def add_half(text: str, old: str = "    return 2 * a\n", tests: str = FITTED) -> dict[str, Any]:
    new = old + text if old.startswith("    ") else text
    return play.role(
        "implementer",
        *play.edit("calc.py", old, new),
        play.turn(play.call("Write", file_path="tests/test_half.py", content=tests)),
        play.submit("calc.py", "tests/test_half.py"),
    )


def test_a_fix_that_standing_tests_prove_is_paid_for_by_the_implementer_alone(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    mend = play.role("implementer", *play.MENDED, play.submit("calc.py"))
    done = repo.task(play.TEXT, "--json", script=[mend])
    assert (done.code, acted(repo)) == (0, ["implementer"]), done.err
    assert done.json["judges"]["asked"] is False
    assert done.json["judges"]["why"][1:] == ["1 product file"]
    said = repo.run("why").out
    assert "no judge was asked: " in said
    assert "mutants noticed, 1 product file" in said
    assert "no judge was asked: " in (repo.folder / "report.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "more", "why"),
    [
        (play.TEXT, ("helper.py", "double(double(a))", "double(2 * a)"), "2 product files"),
        (f"{play.TEXT}, and document add in the guide", None, "no check reads the documents"),
        ("let add return the sum, then rename double to twice", None, "the task has 2 wishes"),
    ],
)
def test_what_a_check_cannot_tell_is_read_by_the_verifier(
    new_repo: NewRepo, text: str, more: tuple[str, str, str] | None, why: str
) -> None:
    repo = new_repo({**play.CALC, **TWO})
    edits = [*play.MENDED, *(play.edit(*more) if more else ())]
    files = ("calc.py", *((more[0],) if more else ()))
    mend = play.role("implementer", *edits, play.submit(*files))
    done = repo.task(text, "--json", script=[mend, judge(verdict("VERIFIED", "ev-0002"))])
    assert acted(repo) == ["implementer", "verifier"], done.err
    assert why in "; ".join(done.json["judges"]["why"])


@pytest.mark.parametrize(
    ("words", "config", "judges"),
    [
        (("--review",), "", ["reviewer", "verifier"]),
        (("--judges",), "", ["verifier"]),
        ((), "judges: always\n", ["verifier"]),
    ],
)
def test_a_person_can_have_judges_asked_however_sure_the_program_is(
    new_repo: NewRepo, words: tuple[str, ...], config: str, judges: list[str]
) -> None:
    repo = new_repo(play.QUICK)
    path = repo.home / ".config/agentflow/config.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(config, "utf-8")
    approved = play.turn(play.call("SubmitReview", verdict="APPROVED", issues=[]))
    script = [
        play.role("implementer", *play.MENDED, play.submit("calc.py")),
        judge(approved, name="reviewer"),
        judge(verdict("VERIFIED", "ev-0002")),
    ]
    done = repo.task(play.TEXT, *words, "--json", script=script)
    assert (done.code, sorted(acted(repo))) == (0, ["implementer", *judges]), done.err


def test_a_fix_that_only_tests_of_the_change_prove_is_read_by_the_verifier(new_repo: NewRepo) -> None:
    repo = new_repo(play.GREEN)
    guard = "def double(a):\n    a = a or 7\n"
    new = "import unittest\n\nfrom calc import double\n\n\nclass NoneTest(unittest.TestCase):\n"
    new += "    def test_none(self):\n        self.assertEqual((double(None), double(2)), (14, 4))\n"
    mend = play.role(
        "implementer",
        *play.edit("calc.py", "def double(a):\n", guard),
        play.turn(play.call("Write", file_path="tests/test_none.py", content=new)),
        play.submit("calc.py", "tests/test_none.py"),
    )
    wrong = judge(verdict("FAILED", why="calc.py:7: nobody asked for 7"))
    done = repo.task(
        "fix double: it crashes on None, which is 3.5",
        "--max-iterations",
        "1",
        "--json",
        script=[mend, wrong],
    )
    assert (done.code, acted(repo)) == (3, ["implementer", "verifier"]), done.err
    why = [
        "only tests of this change show that it is right",
        "no test says 3.5, which the task names",
        "calc.py:6: no test tells a or 7 from (7 if a is None else a)",
    ]
    assert done.json["judges"]["why"] == why
    (run,) = repo.runs("verifier")
    assert "\n- ".join(("## Why judges are asked", *why)) in run.brief


def test_judges_are_asked_after_the_proving_round_about_what_is_left(new_repo: NewRepo) -> None:
    repo = new_repo(play.GREEN)
    first = [*play.edit("calc.py", proving.OLD, proving.OLD + proving.RATE), play.submit("calc.py")]
    script = [
        play.role("implementer", *first),
        play.role("implementer", play.submit("calc.py")),
        judge(verdict("FAILED", why="calc.py:9: nobody asked for it")),
    ]
    done = repo.task(RATE, "--prove", "1", "--max-iterations", "1", "--json", script=script)
    assert acted(repo) == ["implementer", "implementer", "verifier"], done.err
    assert (done.code, done.json["judges"]["asked"]) == (3, True)
    assert "verifier: calc.py:9: nobody asked for it" in done.json["why"]["facts"][0]


def test_a_test_of_the_verifier_stops_a_wrong_feature_whose_own_tests_fit_it(new_repo: NewRepo) -> None:
    repo = new_repo(play.GREEN)
    write = play.turn(play.call("TryTest", file_path="tests/test_goal.py", content=GOAL))
    script = [
        add_half(HALF),
        judge(write, verdict("FAILED", why="half(3) is 1, and the goal says rounded up")),
        add_half(UP.strip(), HALF.strip(), FITTED.replace("half(0)", "half(3)").replace("1, 0", "1, 2")),
        judge(verdict("VERIFIED", "ev-0004")),
    ]
    done = repo.task(FEATURE, "--json", script=script)
    assert acted(repo) == ["implementer", "verifier"] * 2, done.err
    (failure,) = repo.state()["failures"]
    said, tried = failure["reasons"]
    assert said["subjects"] == ["half(3) is 1, and the goal says rounded up"]
    assert (tried["path"], tried["subjects"]) == ("tests/test_goal.py", ["test_goal.GoalTest.test_half"])
    assert "self.assertEqual(half(3), 2)" in repo.runs("implementer")[1].path.read_text("utf-8")
    assert not (repo.root / "tests/test_goal.py").exists()
    assert "test_goal" not in str(done.json["checks"])
    assert done.json["files_changed"] == ["calc.py", "tests/test_half.py"]


def test_a_test_of_the_verifier_raises_nothing_and_enters_nothing(new_repo: NewRepo) -> None:
    repo = new_repo(play.GREEN)
    passing = GOAL.replace("half(3), 2", "half(4), 2")
    writes = {
        "tests/test_goal.py": passing,
        "tests/test_calc.py": passing,
        "calc.py": "def half(a):\n    return 0\n",
        "tests/conftest.py": "",
        "../test_out.py": passing,
        ".claude/test_command.py": passing,
    }
    calls = [play.call("TryTest", file_path=path, content=text) for path, text in writes.items()]
    script = [
        add_half(HALF),
        judge(play.turn(*calls), verdict("VERIFIED", "ev-0004"), verdict("VERIFIED", "ev-0002")),
    ]
    before = repo.read("tests/test_calc.py")
    done = repo.task(FEATURE.replace(", rounded up", ""), "--json", script=script)
    assert (done.code, acted(repo)) == (0, ["implementer", "verifier"]), done.err
    (run,) = repo.runs("verifier")
    refused = [result.get("is_error", False) for result in run.results]
    assert refused == [False, *[True] * 6, False], run.results
    assert repo.read("tests/test_calc.py") == before
    assert repo.read("calc.py").endswith(HALF)
    assert not (repo.root / "tests/test_goal.py").exists()
    assert [test["path"] for test in repo.state()["judge_tests"]] == ["tests/test_goal.py"]
