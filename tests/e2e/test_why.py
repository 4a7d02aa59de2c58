"""`agentflow why` says of any task what decided it, and what to do next; from its record alone."""

import json
import signal
from typing import Any, NamedTuple

import pytest

from tests.e2e import test_proving as proving
from tests.e2e.test_ends import STOPS, is_calling, slow, user_hook
from tests.support import play
from tests.support.repo import NewRepo, Repo, eventually

WRONG = [*play.edit("calc.py", "a - b", "a * b"), play.submit("calc.py")]
SOFT = [
    *play.edit(proving.TESTS, "add(1, 2), 3", "add(1, 2), -1"),
    *play.edit("calc.py", "2 * a", "a * 2"),
    play.submit("calc.py", proving.TESTS),
]
RED = {
    **play.GREEN,
    "tests/test_old.py": (
        "import unittest\n\n\nclass OldTest(unittest.TestCase):\n"
        "    def test_old(self):\n        self.assertEqual(1, 2)\n"
    ),
}
SOFTENED = "  tests/test_calc.py:7: test_calc.CalcTest.test_add still fails with the original files"
GOES_ON = [
    "           or agentflow task --follows ID TEXT goes on",
    "           or agentflow undo ID reverts it",
]
ACCEPT = "           or read the diff, then agentflow commit ID --accept-caveat"


class Case(NamedTuple):
    """A task that is played, and the beginnings of the lines that `why ID` prints of it."""

    code: int
    files: dict[str, str]
    script: list[dict[str, Any]]
    lines: list[str]
    options: tuple[str, ...] = ()
    text: str = play.WHOLE_CREW


CASES = {
    "verified": Case(
        0,
        play.CALC,
        play.mending(),
        [
            "✓ exit 0  verified: 1 failing check now passes; no new failures.",
            "  fails without the change and passes with it: test_calc.CalcTest.test_add",
            "next       agentflow commit ID commits it, agentflow undo ID reverts it",
        ],
    ),
    "answered": Case(
        0,
        play.LIGHT,
        [play.findings()],
        ["✓ exit 0  answered: found", "next       agentflow report ID shows the whole answer"],
        text="where is add defined?",
    ),
    "nothing changed": Case(
        1,
        play.GREEN,
        [play.role("implementer", play.submit()) for _ in range(3)],
        [
            "✗ exit 1  not verified: nothing was changed; the implementer says:",
            "  all tests pass",
            "next       agentflow log ID shows each step",
            "           or say it in other words: agentflow task TEXT",
        ],
        text=proving.FEATURE,
    ),
    "a test fails": Case(
        3,
        play.CALC,
        play.crew(*WRONG),
        [
            "! exit 3  not verified: 1 of 1 iterations used: new failures: test_calc.",
            "next       agentflow evidence ID ev-0002 shows what failed",
            *GOES_ON,
        ],
        ("--max-iterations", "1"),
    ),
    "no test": Case(
        4,
        play.GREEN,
        proving.script(),
        [
            "! exit 4  verified with caveat: calc.py:9: no test notices =0 → (left out)",
            "  calc.py:10: no test notices not table → True",
            "  and 5 more: agentflow report",
            "next       agentflow task --follows ID add the missing tests",
            ACCEPT,
        ],
        text=proving.FEATURE,
    ),
    "red before": Case(
        4,
        RED,
        [
            play.role(
                "implementer",
                *play.edit("calc.py", proving.OLD, proving.OLD + proving.RATE),
                *proving.add_tests(proving.TRUE),
            ),
            play.verified("ev-0002"),
        ],
        [
            "! exit 4  verified with caveat: failed before the task and still fails: tests: test_old.",
            "next       agentflow task --follows ID make the failing tests pass",
            ACCEPT,
        ],
        text=f"{proving.FEATURE}, with tests",
    ),
    "skipped": Case(
        4,
        play.LIGHT,
        play.mending(),
        [
            "! exit 4  not verified by any check: tests skipped by ",
            "  calc.py:2: add a test that fails without it",
            "next       agentflow verify runs the check that was skipped",
            ACCEPT,
        ],
        ("--skip-check", "tests", "--reason", "slow"),
    ),
    "a hook": Case(
        5,
        play.LIGHT,
        play.mending(),
        [
            "✗ exit 5  stopped by a rule: a hook stopped the task: enough",
            "next       agentflow log ID shows each step",
            *GOES_ON,
        ],
    ),
    "no model": Case(
        6,
        play.LIGHT,
        [play.findings(), {"match": {"role": "planner"}, "turns": [{"error": 400}]}],
        ["! exit 6  The model answered with error 400", "next       agentflow resume ID continues it"],
    ),
    "a softer test": Case(
        75,
        play.CALC,
        play.crew(*SOFT),
        [
            "! exit 75  Waiting for you: changed tests or check settings (approve checks-",
            SOFTENED,
            "next       agentflow approve checks-",
            "           then agentflow resume ID",
        ],
    ),
    "a softer test that nobody may approve": Case(
        8,
        play.CALC,
        play.crew(*SOFT),
        [
            "✗ exit 8  not verified: the checks were changed, not approved by --no-input (",
            SOFTENED,
            "next       agentflow log ID shows each step",
            *GOES_ON,
        ],
        ("--no-input",),
    ),
    "a question": Case(
        75,
        play.LIGHT,
        [play.findings(), play.plan("calc.py"), play.role("implementer", *play.MENDED, {"error": 529})],
        [
            "! exit 75  Waiting for you: question (answer lost-3)",
            "  the implementer was interrupted: the model answered with error 529",
            "next       agentflow answer ID A | B",
        ],
    ),
    "a pause": Case(
        75,
        play.LIGHT,
        play.mending(),
        ["! exit 75  suspended: paused after planning", "next       agentflow resume ID continues it"],
        ("--pause-after", "planning"),
    ),
}
MOST = 6


def why(repo: Repo, *words: str) -> list[str]:
    done = repo.run("why", *words)
    assert done.code == 0, done.err
    return done.out.replace(repo.folder.name, "ID").splitlines()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_end_is_told_by_what_decided_it_and_the_next_step(case: Case, new_repo: NewRepo) -> None:
    repo = new_repo(case.files)
    if case.code == 5:
        user_hook(repo, "PostToolUse", STOPS, matcher="Edit")
    done = repo.task(case.text, "--json", *case.options, script=case.script)
    assert done.code == case.code, done.err
    lines = why(repo, repo.folder.name)
    assert len(lines) <= MOST
    assert [line[: len(told)] for line, told in zip(lines, case.lines, strict=True)] == case.lines
    told = repo.run("why", "--json").json
    assert (told.pop("task_id"), told.pop("exit_code")) == (repo.folder.name, case.code)
    assert told.pop("status") == done.json["status"]
    assert told == done.json["why"]


def test_the_newest_task_needs_no_name_and_an_unknown_one_is_an_error(done: Repo) -> None:
    told = done.run("why")
    assert "the newest task, " in told.err
    assert told.out.splitlines()[-1] == "next       agentflow commit commits it, agentflow undo reverts it"
    elsewhere = done.run("why", "-C", "../repo")
    assert "agentflow commit -C ../repo commits it" in elsewhere.out
    assert (
        done.run("why", "20000101T000000Z-0000").code == done.run("status", "20000101T000000Z-0000").code == 2
    )
    assert done.run("undo").code == 0
    assert why(done)[0].startswith("! undone: the files were restored to their state before the task, 2")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_task_that_runs_and_one_that_was_stopped_are_told_apart(new_repo: NewRepo, number: int) -> None:
    repo = new_repo(play.LIGHT)
    with repo.start_task(slow()) as process:
        eventually(lambda: is_calling(repo))
        assert why(repo) == [
            "▸ still running: implementation, iteration 1 of 10",
            "next       agentflow watch follows it",
            "           or agentflow cancel stops it",
        ]
        process.send_signal(number)
        process.communicate(timeout=60)
    stopped = "! exit 130  cancelled: stopped by a signal"
    lost = "! interrupted: its process ended before the task did"
    assert why(repo) == [
        stopped if number == signal.SIGINT else lost,
        "next       agentflow resume continues it",
    ]
    assert json.loads(repo.run("why", "--json").out)["status"] == (
        "cancelled" if number == signal.SIGINT else "interrupted"
    )
