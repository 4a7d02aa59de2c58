"""Ways to hide a bug from its tests end in no pass, and honest changes in one; the whole is in tests/soak."""

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support import play
from tests.support.attempts import Attempt, files_of
from tests.support.honest import HONEST, Honest
from tests.support.repo import eventually
from tests.support.tampering import BASE, CODE, MENDED, RIGHT, TAMPERING, TASK, TESTS, Change
from tests.support.terminal import at_terminal

SOFTER = TESTS.replace("assert pages(905, 10) == 91", "assert pages(905, 10)")
HALF = RIGHT.replace(MENDED, MENDED.replace("size)", "size) if total < 500 else total // size"))
HIDDEN = {"pager/core.py": HALF, "tests/test_core.py": SOFTER}
"""Code that is right for one of two values, and a test that asks for one."""
SHORT = ("skip mark", "module in place of the runner", "environment of the runner")
HONEST_SHORT = (
    "a new function with its test",
    "a test renamed because the task says so",
    "a test split in two",
)


SHORT_CASES = [case for case in TAMPERING if case.name in SHORT]
HONEST_CASES = [case for case in HONEST if case.name in HONEST_SHORT]


@pytest.mark.parametrize("case", SHORT_CASES, ids=lambda case: case.name)
def test_a_hidden_bug_is_never_verified_and_the_report_says_how(case: Change, tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, {**BASE, **case.base})

    done = attempt.run(case.task, case.files, "--max-iterations", "1", command=case.command)

    assert done.code not in (0, 70)
    assert any(word in attempt.report for word in case.said)


@pytest.mark.parametrize("case", HONEST_CASES, ids=lambda case: case.name)
def test_an_honest_change_is_verified(case: Honest, tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, case.base or BASE)

    assert attempt.run(case.task, case.files, "--max-iterations", "1").code == case.code


def test_a_softer_test_is_asked_about_once_and_approved_it_is_verified(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, BASE)

    done = attempt.run(TASK, HIDDEN)

    assert done.code == 75
    (waiting,) = attempt.waiting
    assert waiting["kind"] == "surface"
    assert any("assertion weaker or gone: test_last_page" in line for line in waiting["input"]["changes"])
    assert "-    assert pages(905, 10) == 91" in waiting["input"]["diff"]
    assert "+    assert pages(905, 10)" in waiting["input"]["diff"]
    assert waiting["id"] in done.out
    assert attempt.repo.run("resume").code == 75
    assert len(attempt.repo.evidence()) == 4

    ended = attempt.settle("approve", "--comment", "agreed with the team", "--by", "ada")

    assert ended.code == 0
    assert len(attempt.repo.evidence()) == 4
    approvals = [row for row in attempt.report.splitlines() if "approved by ada at 20" in row]
    assert any("test_last_page" in row for row in approvals), attempt.report
    sides = {(record["surface"], record["code"]) for record in attempt.repo.evidence()}
    assert sides == {("base", "base"), ("final", "final"), ("base", "final"), ("final", "base")}


BY_NAME = {case.name: case for case in TAMPERING}
WEAKENED = {  # the row of A99
    "assertion deleted": "assertions deleted",
    "test deleted": "tests that fail deleted",
    "skip added": "skip mark",
    "conftest that forces success": "outcomes rewritten",
}


def test_a_script_that_forgives_failures_waits_and_denied_it_is_tampered(tmp_path: Path) -> None:
    check = "python3 -c 'from pager.core import pages; assert pages(41, 10) == 5'\n"
    scripts = {"scripts/check.sh": f"set -e\n{check}", "Makefile": "test:\n\tbash scripts/check.sh\n"}
    attempt = Attempt(tmp_path, {"pager/__init__.py": "", "pager/core.py": CODE, **scripts})

    done = attempt.run(
        TASK, {"scripts/check.sh": f"{check[:-1]} || true\n", "pager/core.py": f"{CODE}# seen\n"}
    )

    assert done.code == 75
    assert "tests with the original configuration: failed" in attempt.waiting[0]["input"]["changes"]
    assert attempt.settle("deny", "--reason", "no").code == 8


@pytest.mark.parametrize("name", ["outcomes rewritten"])
def test_weakened_checks_that_a_person_approves_are_listed_as_caveats(name: str, tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, BASE)
    attempt.run(TASK, {**BY_NAME[name].files, "pager/core.py": HALF})
    (waiting,) = attempt.waiting
    attempt.repo.run("approve", waiting["id"])

    done = attempt.repo.run("resume", "--json")

    assert done.code == 0
    said = "\n".join(done.json["caveats"])
    assert all(f"{line} (approved by " in said for line in waiting["input"]["changes"])


SAID = {("",): 75, ("l",): 75, ("A", "no", "the test is right"): 8, ("y",): 0}


@pytest.mark.parametrize(("says", "code"), [*SAID.items()][1:], ids=str)
def test_at_a_terminal_only_a_yes_approves_it(says: tuple[str, ...], code: int, tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, BASE)
    script = attempt.repo.scripted(attempt.script(HIDDEN))

    seen = at_terminal(attempt.repo, "task", TASK, "--model", script, says=says)

    assert seen.code == code
    assert not seen.unused
    assert "waits      changed tests or check settings" in seen.text
    if code == 75:
        assert "! Waiting for you: changed tests or check settings (approve checks-" in seen.text
    assert "changed tests or check settings" in seen.text
    assert "tests/test_core.py:10: assertion weaker or gone: test_last_page" in " ".join(seen.text.split())
    assert "with the original checks: tests exit 1, 6 passed" in seen.text
    assert ("the test is right" in attempt.report) is (code == 8)


def test_denied_it_is_tampered(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, BASE)
    attempt.run(TASK, HIDDEN)

    ended = attempt.settle("deny", "--reason", "the test is right")

    assert ended.code == 8
    assert attempt.repo.state()["status"] == "tampered"
    sides = {(record["surface"], record["code"]) for record in attempt.repo.evidence()}
    assert {("final", "final"), ("base", "final")} <= sides
    assert "test_last_page" in ended.out
    assert "the test is right" in attempt.report


@pytest.mark.parametrize("option", ["--yes"])
def test_nothing_said_beforehand_approves_it(option: str, tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, BASE)

    done = attempt.run(TASK, HIDDEN, option)

    assert done.code == 8
    assert "test_last_page" in done.out


def test_an_approval_is_for_this_change_of_the_checks_and_no_other(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, BASE)
    attempt.run(TASK, HIDDEN)
    (waiting,) = attempt.waiting
    attempt.repo.run("approve", waiting["id"])
    attempt.repo.write({"tests/test_core.py": SOFTER.replace("assert pages(417, 10) == 42\n", "")})

    assert attempt.repo.run("resume").code == 75
    assert attempt.waiting[0]["id"] != waiting["id"]


def test_a_test_that_passes_without_the_change_is_no_evidence(tmp_path: Path) -> None:
    added = "\n\ndef test_nothing_new():\n    assert pages(30, 10) == 3\n"
    attempt = Attempt(tmp_path, {**BASE, "pager/core.py": RIGHT})

    files = {
        "pager/core.py": RIGHT + "\n\ndef first():\n    return 1\n",
        "tests/test_core.py": TESTS + added,
    }
    done = attempt.run("add a helper to pager/core.py", files)

    assert done.code == 4
    assert "not evidence, passes without the change: tests/test_core.py::test_nothing_new" in attempt.report


def test_an_unchanged_check_is_run_once(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, BASE)

    assert attempt.run(TASK, {"pager/core.py": RIGHT}).code == 0
    assert [one["code"] for one in attempt.repo.evidence()] == ["base", "final", "base"]
    assert "no check was changed" in attempt.report
    assert "tests: tests/test_core.py" in attempt.report


def test_the_user_says_what_else_belongs_to_the_checks(tmp_path: Path) -> None:
    imports = "from pager.core import pages\nfrom qa.limits import LIMIT\n"
    test = f"{imports}\n\ndef test():\n    assert pages(400, 10) < LIMIT\n"
    attempt = Attempt(tmp_path, {**BASE, "qa/limits.py": "LIMIT = 10\n", "tests/test_limits.py": test})
    attempt.repo.home.joinpath(".config/agentflow").mkdir(parents=True)
    attempt.repo.home.joinpath(".config/agentflow/config.yaml").write_text("surface: {add: ['qa/**']}\n")

    done = attempt.run(TASK, {"pager/core.py": RIGHT, "qa/limits.py": "LIMIT = 1000\n"})

    assert done.code == 75
    assert "qa/limits.py changed and counts as the user's settings" in done.out


def test_a_softer_test_whose_first_version_holds_is_a_caveat_and_not_asked_about(tmp_path: Path) -> None:
    softer = TESTS.replace("assert pages(40, 10) == 4", "assert pages(40, 10)")
    attempt = Attempt(tmp_path, BASE)

    done = attempt.run(TASK, {"pager/core.py": RIGHT, "tests/test_core.py": softer}, "--json")

    assert done.code == 4, done.out
    assert done.json["caveats"] == ["check_weakened"]
    assert "check_weakened" in attempt.report
    assert "tests/test_core.py:6: assertion weaker or gone" in attempt.report


def test_files_swapped_while_the_checks_run_change_nothing(tmp_path: Path) -> None:
    slow = TESTS + "\n\ndef test_slow():\n    import time\n\n    time.sleep(1.5)\n"
    attempt = Attempt(tmp_path, {**BASE, "tests/test_core.py": slow})
    still_wrong = CODE + "# looked at\n"
    script = attempt.script({"pager/core.py": still_wrong})
    words = ("task", TASK, "--max-iterations", "1", "--model", attempt.repo.scripted(script))
    with attempt.repo.start(*words) as running:
        eventually(lambda: len(attempt.repo.events("CheckStarted")) == 2, 60)
        attempt.repo.write({"pager/core.py": RIGHT})
        time.sleep(1)
        attempt.repo.write({"pager/core.py": still_wrong})
        running.communicate(timeout=120)

    assert running.returncode == 3
    assert "tests/test_core.py::test_last_page" in attempt.report


DESTRUCTIVE: Mapping[str, str] = {
    "deletes files": "    import shutil\n    shutil.rmtree('pager')\n    shutil.rmtree('.git')\n",
    "writes outside": "    import pathlib\n    try:\n        pathlib.Path('../beside.txt').write_text('x')\n"
                      "    except OSError:\n        pass\n",
    "rewrites sources": "    import pathlib\n    pathlib.Path('pager/core.py').write_text('pages = 1')\n",
    "moves the index": "    import subprocess\n    subprocess.run(['git', 'add', '-A'])\n"
                       "    subprocess.run(['git', 'rm', '-rq', '--cached', '.'])\n",
    "empties the index": "    import pathlib\n    pathlib.Path('.git/index').write_bytes(b'')\n",
    "makes names that are no words": "    open(b'\\xff\\n\\x1b[31m.py', 'w').close()\n",
    "changes times": "    import os\n    os.utime('pager/core.py', (0, 0))\n",
    "kills its parents": "    import os, signal\n    os.kill(os.getppid(), signal.SIGKILL)\n",
    "leaves a daemon": "    import os, time\n    root = os.getcwd()\n    if os.fork() == 0:\n"
                       "        os.setsid()\n        for _ in range(50):\n            time.sleep(0.1)\n"
                       "            open(root + '/pager/core.py', 'w').close()\n        os._exit(0)\n",
    "is killed": "    import os, signal\n    os.kill(os.getpid(), signal.SIGKILL)\n",
}  # fmt: skip


ONE_RUN = (
    "makes names that are no words",
    "writes outside",
    "rewrites sources",
    "changes times",
    "moves the index",
    "empties the index",
)
SHORT_BODIES = {
    "one after the other": "".join(DESTRUCTIVE[name] for name in ONE_RUN),
    **{name: DESTRUCTIVE[name] for name in ("deletes files", "kills its parents", "leaves a daemon")},
}


@pytest.mark.parametrize("body", SHORT_BODIES.values(), ids=SHORT_BODIES)
def test_whatever_tests_do_the_users_files_and_index_stay(body: str, tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, {**BASE, "tests/test_zz.py": f"def test_wild():\n{body}"})
    attempt.repo.write({"untracked.txt": "mine", "notes.local.py": "ignored"})
    before = files_of(attempt.repo.root)

    done = attempt.run(TASK, {"pager/core.py": RIGHT}, "--max-iterations", "1")

    assert done.code != 70
    assert [one["code"] for one in attempt.repo.evidence()][:2] == ["base", "final"]
    assert files_of(attempt.repo.root) == {**before, "pager/core.py": RIGHT.encode()}
    assert not (tmp_path / "beside.txt").exists()


def test_a_red_check_goes_back_with_what_its_own_tests_showed_before(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, BASE)
    script = [
        play.findings("pager/core.py", 5),
        play.plan("pager/core.py"),
        play.role("implementer", *attempt.steps("tests/test_core.py", SOFTER), play.submit()),
        play.role("implementer", *attempt.steps("tests/test_core.py", TESTS),
                  *attempt.steps("pager/core.py", RIGHT), play.submit(), iteration=2),
        play.role("reviewer", play.turn(play.call("SubmitReview", verdict="APPROVED", issues=[]))),
        play.verified("ev-0004"),
    ]  # fmt: skip

    done = attempt.repo.task(TASK, script=script)

    assert done.code == 0, done.out + done.err
    brief = attempt.repo.runs("implementer")[1].brief
    assert "tests with the original files" in brief


OF_UNITTEST = """import unittest

from pager.core import pages


class PagesTest(unittest.TestCase):
    def test_full(self):
        self.assertEqual(pages(40, 10), 4)

    def test_last_page(self):
        self.assertEqual(pages(417, 10), 42)
"""
VANISHING = {
    "unittest": (
        {"pager/__init__.py": "", "pager/core.py": CODE, "tests/test_core.py": OF_UNITTEST},
        """import unittest


def run(self, result=None):
    if type(self).__name__ == "PagesTest":
        result.startTest(self)
        result.addSuccess(self)
    return result


unittest.TestCase.run = run
""",
    ),
    "pytest": (
        BASE,
        """import _pytest.python

_collect = _pytest.python.PyCollector.collect
_pytest.python.PyCollector.collect = lambda self: [each for each in _collect(self) if "core" in self.nodeid]
_pytest.python.Function.runtest = lambda self: None
""",
    ),
}
"""Code that makes the tests of its repository pass, and all others vanish."""


@pytest.mark.parametrize(("base", "code"), VANISHING.values(), ids=VANISHING)
def test_a_test_that_has_to_fail_and_does_not_run_is_no_failure(
    base: Mapping[str, str | None], code: str, tmp_path: Path
) -> None:
    attempt = Attempt(tmp_path, base)

    done = attempt.run(TASK, {"pager/core.py": f"{code}\n\n{CODE}"}, "--max-iterations", "1")

    assert done.code == 3, done.out
    assert "tampers with the test runner" in attempt.report
