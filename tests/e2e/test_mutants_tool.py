"""The tool `Mutants`: which changed lines no test notices, asked by a role before the verdict."""

from typing import Any

import pytest

from tests.support import play
from tests.support.repo import NewRepo, Repo

TEXT = "add a discount for members to rate() in rates.py"
RATES = "def rate(total, member=False):\n    return total\n"
CHANGED = """def rate(total, member=False):
    if member and total >= 100:
        total = total - 10
    return total
"""
TEST = "from rates import rate\n\n\ndef test_rate():\n    assert rate(10) == 10\n"
MEMBER = TEST + "\n\ndef test_member():\n    assert rate(200, True) == 190\n"
OTHERS = (
    MEMBER
    + "\n\ndef test_others():\n    assert (rate(100, True), rate(99, True), rate(200)) == (90, 99, 200)\n"
)
MUTANTS = play.turn(play.call("Mutants"))
SUBMITTED = play.submit("rates.py", "test_rates.py")


def write(path: str, text: str) -> list[dict[str, Any]]:
    whole = play.call("Write", file_path=path, content=text)
    return [play.turn(play.call("Read", file_path=path)), play.turn(whole)]


def play_task(repo: Repo, *turns: dict[str, Any], judge: tuple[dict[str, Any], ...] = ()) -> list[str]:
    """Return what each call of the tool answers, the implementer's first; without a judge it waits then."""
    verdict = play.turn(play.call("SubmitVerdict", verdict="VERIFIED", evidence=["ev-0002"], reasons=[]))
    ends = (SUBMITTED,) if judge else ()
    script = [play.role("implementer", *turns, *ends), play.role("verifier", *judge, verdict)]
    done = repo.task(TEXT, "--prove", "0", script=script)
    assert done.code in ((0, 4) if judge else (75,)), done.err
    runs = (*repo.runs("implementer"), *repo.runs("verifier"))
    return [result["content"] for run in runs for call, result in run.calls if call["name"] == "Mutants"]


def test_a_role_sees_the_lines_that_no_test_notices_until_tests_do(new_repo: NewRepo) -> None:
    repo = new_repo({"rates.py": RATES, "test_rates.py": TEST})
    first, second, third, judges = play_task(
        repo,
        MUTANTS,
        *write("rates.py", CHANGED),
        *write("test_rates.py", MEMBER),
        MUTANTS,
        *write("test_rates.py", OTHERS),
        MUTANTS,
        judge=(MUTANTS,),
    )
    assert first.startswith("No changed code to try")
    assert "! rates.py:2  member and total >= 100 → member: no test notices" in second
    assert second.splitlines()[0].endswith("Add a test that fails on each, or simplify the code.")
    assert "killed" in third
    assert "no test notices" not in third + judges
    assert repo.read("rates.py") == CHANGED


@pytest.mark.parametrize(
    ("test", "path", "said"),
    [
        (TEST.replace("== 10", "== 11"), ".", "no mutant was tried: no test passes here: exit 1"),
        (MEMBER, "docs", "No changed code to try"),
        (
            "import time\n" + MEMBER + "    time.sleep(4)\n",
            "rates.py",
            "no mutant was tried: the tests take longer than 3 s",
        ),
    ],
)
def test_what_was_not_tried_is_said(new_repo: NewRepo, test: str, path: str, said: str) -> None:
    repo = new_repo({"rates.py": RATES, "test_rates.py": TEST})
    asks = play.turn(play.call("Mutants", path=path))
    (found,) = play_task(repo, *write("rates.py", CHANGED), *write("test_rates.py", test), asks)
    assert found.startswith(said)


def test_where_all_tests_take_too_long_those_of_the_change_are_run(new_repo: NewRepo) -> None:
    slow = "import time\n\n\ndef test_slow():\n    time.sleep(4)\n"
    repo = new_repo({"rates.py": RATES, "test_rates.py": TEST, "test_slow.py": slow})
    (found,) = play_task(repo, *write("rates.py", CHANGED), *write("test_rates.py", OTHERS), MUTANTS)
    assert "Only test_rates.py ran: all tests take too long here." in found
    assert "killed" in found


def test_a_rule_of_the_user_takes_the_tool_away(new_repo: NewRepo) -> None:
    repo = new_repo({"rates.py": RATES, "test_rates.py": TEST})
    settings = repo.home / ".claude/settings.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text('{"permissions": {"deny": ["Mutants"]}}')
    (found,) = play_task(repo, *write("rates.py", CHANGED), MUTANTS)
    assert found.startswith("There is no tool Mutants.")
