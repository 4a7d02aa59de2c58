"""What a person may allow, what a machine cannot do, and what no change may bring in (A35 A72 A88 A89)."""

from pathlib import Path
from typing import Any

import pytest

from tests.support import play, tampering
from tests.support.attempts import Attempt
from tests.support.repo import NewRepo

KEY = "AKIA" + "ABCDEFGH12345678"


def test_a_skipped_check_is_recorded_and_never_0(new_repo: NewRepo) -> None:
    repo = new_repo({**play.QUICK, "ruff.toml": "line-length = 100\n"})
    options = ("--skip-check", "lint", "--reason", "ruff is not here", "--json")
    done = repo.task(*options, play.TEXT, script=play.mending())
    assert done.code == 4, done.err
    assert done.json["status"] == "verified_with_caveat"
    assert done.json["caveats"] == ["check_skipped:lint"]
    (kept,) = repo.state()["overrides"]
    assert kept["reason"] == "ruff is not here"
    assert kept["by"]
    assert kept["risk"]
    assert "ruff is not here" in (repo.folder / "report.md").read_text()
    assert repo.run("verify", repo.folder.name).code == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--skip-check", "tests"), "needs --reason"),
        (("--skip-check", "tests", "--reason", " "), "needs --reason"),
        (("--skip-check", "vibes", "--reason", "r"), "unknown check 'vibes'"),
        (("--reason", "r"), "name it with --skip-check"),
    ],
)
def test_an_override_without_reason_or_of_nothing_is_a_usage_error(
    new_repo: NewRepo, options: tuple[str, ...], said: str
) -> None:
    repo = new_repo(play.CALC)
    done = repo.task(*options, play.TEXT, script=[])
    assert done.code == 2
    assert said in done.err
    assert repo.tasks == []


def test_a_skipped_check_lets_no_other_one_go(new_repo: NewRepo) -> None:
    repo = new_repo({**play.QUICK, "ruff.toml": "line-length = 100\n"})
    wrong = play.edit("calc.py", "a - b", "a * b")
    lazy = play.role("implementer", play.submit("calc.py"))
    lines = [*play.crew(*wrong, play.submit("calc.py"))[:3], lazy]
    assert repo.task("--skip-check", "lint", "--reason", "r", play.TEXT, script=lines).code == 1


def test_files_about_tests_count_only_once_trusted(new_repo: NewRepo) -> None:
    repo = new_repo({**play.QUICK, ".claude/test-command": "# ours\ntrue\n"})
    done = repo.task(script=play.mending())
    assert done.code == 0
    assert "untrusted: agentflow trust" in done.err
    assert all("make" in record["command"] for record in repo.evidence())
    named = "ignored until you trust it: .claude/test-command"
    assert named in repo.run("verify", "--dry-run").out
    repo.run("trust", "--yes")
    assert named not in repo.run("verify", "--dry-run").out


def test_a_trusted_test_command_is_the_test_check_until_it_changes(new_repo: NewRepo) -> None:
    command = "python3 -m unittest -v tests.test_calc"
    repo = new_repo({**play.CALC, "tests/__init__.py": "", ".claude/test-command": f"# ours\n\n{command}\n"})
    assert repo.run("trust", "--yes").code == 0
    assert repo.task(script=play.mending()).code == 0
    assert {record["command"] for record in repo.evidence()} == {command}
    assert repo.run("verify", repo.folder.name).code == 0
    assert command in repo.run("verify", "--dry-run").out
    repo.write({".claude/test-command": "true\n"})
    said = repo.run("verify", "--dry-run").out
    assert "discover" in said
    assert "ignored until you trust it: .claude/test-command" in said
    asked = repo.run("trust")
    assert asked.code == 2
    assert ".claude/test-command  checks, changed" in asked.out


def test_trusted_skipping_of_the_tests_is_never_0(new_repo: NewRepo) -> None:
    repo = new_repo({**play.CALC, ".claude/skip-test-verification": "the machine is being moved\n"})
    repo.run("trust", "--yes")
    done = repo.task("--json", play.TEXT, script=play.mending())
    assert done.code == 4, done.err
    assert "check_skipped:tests" in done.json["caveats"]
    assert "the machine is being moved" in (repo.folder / "report.md").read_text()
    assert repo.evidence() == []
    assert repo.run("verify").code == 4


OLD = "import unittest\n\n\nclass Old(unittest.TestCase):\n    def test_old(self):\n        self.fail()\n"
LISTED = {".claude/known-test-failures": "# since March\ntest_old.Old.test_old\n"}


def test_a_listed_failure_does_not_count(new_repo: NewRepo) -> None:
    repo = new_repo({**play.CALC, "tests/test_old.py": OLD, **LISTED})
    repo.run("trust", "--yes")
    done = repo.task(script=play.mending())
    assert done.code == 0, done.out
    assert "known to fail" in done.out
    assert repo.run("verify", repo.folder.name).code == 0


@pytest.mark.parametrize("broken", ["    return 2 + a", "    return missing_name", "    raise SystemExit"])
def test_another_failure_counts_beside_a_listed_one(new_repo: NewRepo, broken: str) -> None:
    repo = new_repo({**play.GREEN, "tests/test_old.py": OLD, **LISTED})
    repo.run("trust", "--yes")
    turns = play.edit("calc.py", "    return 2 * a", broken.replace("2 + a", "3 * a"))
    lazy = play.role("implementer", play.submit("calc.py"))
    lines = [*play.crew(*turns, play.submit("calc.py"))[:3], lazy]
    assert repo.task("implement triple", script=lines).code == 1


def test_a_listed_test_that_cannot_be_loaded_counts(new_repo: NewRepo) -> None:
    listed = {".claude/known-test-failures": "unittest.loader._FailedTest.test_old\ntest_old.Old.test_old\n"}
    repo = new_repo({**play.GREEN, "tests/test_old.py": OLD.replace("self.fail()", "pass"), **listed})
    repo.run("trust", "--yes")
    turns = play.edit("tests/test_old.py", "import unittest\n", "import unittest\nimport calc.nothing\n")
    lines = [
        *play.crew(*turns, play.submit("tests/test_old.py"))[:3],
        play.role("implementer", play.submit("calc.py")),
    ]
    assert repo.task("implement triple", script=lines).code == 1


def project(requires: str) -> dict[str, str]:
    return {
        **play.CALC,
        "pyproject.toml": f'[project]\nname = "x"\nversion = "1"\nrequires-python = "{requires}"\n',
    }


IMPORTING = play.CALC["tests/test_calc.py"].replace("import unittest\n", "import unittest\n\nimport {0}\n")
BLOCKED = {
    "another Python": (project(">=3.99"), "requires-python >=3.99, running 3."),
    "a module of somebody else": (
        {**play.CALC, "tests/test_calc.py": IMPORTING.format("no_such_distribution")},
        "pip install no_such_distribution",
    ),
}


@pytest.mark.parametrize(("files", "signature"), BLOCKED.values(), ids=BLOCKED)
def test_tests_that_cannot_run_here_are_told_before_work_and_send_nothing_back(
    new_repo: NewRepo, files: dict[str, str], signature: str
) -> None:
    repo = new_repo(files)
    done = repo.task("--json", play.TEXT, script=play.mending())
    assert done.code == 4, done.err
    assert done.json["caveats"][:1] == ["check_not_run:tests"]
    assert signature in (repo.folder / "report.md").read_text()
    (warned, *_) = [one["message"] for one in repo.events("Warned")]
    assert signature in warned
    assert "--skip-check tests" in warned
    assert len(repo.runs("implementer")) == 1
    assert repo.run("verify", done.json["task_id"]).code == 0


def test_a_new_test_that_needs_the_same_missing_module_sends_nothing_back(new_repo: NewRepo) -> None:
    """Both files of tests cannot be loaded now, so that more fails than before, for the same reason."""
    repo = new_repo({**play.CALC, "tests/test_calc.py": IMPORTING.format("no_such_distribution")})
    added = play.turn(
        play.call("Write", file_path="tests/test_more.py", content="import no_such_distribution\n")
    )
    lines = [*play.crew(*play.MENDED, added, play.submit("calc.py", "tests/test_more.py"))]
    done = repo.task("--json", play.TEXT, script=lines)
    assert (done.code, done.json["caveats"]) == (4, ["check_not_run:tests", "unproved"]), done.err


FROZEN = "import no_such_distribution\n\n\ndef test_frozen():\n    assert no_such_distribution\n"
PARTLY = {**tampering.BASE, "tests/test_frozen.py": FROZEN}
"""What one module of its tests needs is not installed."""
NEW_TEST = "from pager.core import pages\n\n\ndef test_new():\n    assert pages(41, 10) == 5\n"
HINTED = tampering.CODE.replace("def pages(total, size):", "def pages(total: int, size: int) -> int:")
ON_PARTLY = {
    tampering.TASK: ("fail_to_pass", {"pager/core.py": tampering.RIGHT, "tests/test_new.py": NEW_TEST}),
    "add type hints to pages in pager/core.py": ("same_behaviour", {"pager/core.py": HINTED}),
    "add a test of whole pages": (
        "tests_only",
        {"tests/test_new.py": NEW_TEST.replace("41, 10) == 5", "40, 10) == 4")},
    ),
}


@pytest.mark.parametrize("task", ON_PARTLY)
def test_a_right_change_is_proved_by_the_tests_that_a_missing_tool_spares(tmp_path: Path, task: str) -> None:
    proof, files = ON_PARTLY[task]
    attempt = Attempt(tmp_path, {**PARTLY, "pager/core.py": tampering.RIGHT} if "test" in task else PARTLY)
    done = attempt.run(task, files, "--json")
    assert done.code == 4, done.err
    assert [each["kind"] for each in done.json["proof"]] == [proof]
    also = ["already_red"] if "hints" in task else []
    assert done.json["caveats"] == ["check_not_run:tests", *also]
    assert done.json["why"]["result"] == "verified with caveat"
    assert "tests cannot run as a whole here: ModuleNotFoundError: no_such_distribution" in done.err
    assert "cannot run as a whole here: ModuleNotFoundError: no_such_distribution" in attempt.report
    assert "pip install no_such_distribution: tests/test_frozen.py" in attempt.report
    assert len(attempt.repo.runs("implementer")) == 1


READERS = {"docstrings": "import pager.core\n\nprint(pager.core.pages.__doc__)\n"}
READERS["hints"] = "import pager.core\n\nprint(pager.core.pages.__annotations__)\n"
COMMENTED = f"# Pages of a list.\n{tampering.RIGHT}"
DESCRIBED = tampering.RIGHT.replace("How many pages", "The number of pages")
RIGHT_HINTED = tampering.RIGHT.replace("def pages(total, size):", "def pages(total: int, size: int) -> int:")
TEXTS = [
    ("add type hints", RIGHT_HINTED, ("docstrings",), 0),
    ("add type hints", RIGHT_HINTED, ("hints",), 4),
    ("improve the docstring", DESCRIBED, ("docstrings",), 4),
    ("improve the docstring", DESCRIBED, ("hints",), 0),
    ("add a comment", COMMENTED, ("docstrings", "hints"), 0),
]


@pytest.mark.parametrize(("task", "text", "readers", "code"), TEXTS)
def test_texts_that_a_program_reads_elsewhere_are_only_those_of_the_kind_it_reads(
    tmp_path: Path, task: str, text: str, readers: tuple[str, ...], code: int
) -> None:
    reading = {f"show_{reader}.py": READERS[reader] for reader in readers}
    base = {**tampering.BASE, "pager/core.py": tampering.RIGHT, **reading}
    done = Attempt(tmp_path, base).run(f"{task} in pager/core.py", {"pager/core.py": text}, "--json")
    assert done.code == code, done.out


_SOFT = "class Any(int):\n    def __eq__(self, other):\n        return True\n\n\n"
SPOILT = {
    "wrong code": {"pager/core.py": tampering.CODE.replace("total // size", "total // size + 2")},
    "code that equals all": {"pager/core.py": _SOFT + tampering.CODE.replace("total // size", "Any(0)")},
    "a module of tests that lacks the same": {
        "pager/core.py": tampering.RIGHT,
        "tests/test_core.py": f"import no_such_distribution\n{tampering.TESTS}",
    },
    "code that lacks the same": {"pager/core.py": f"import no_such_distribution\n{tampering.RIGHT}"},
}


@pytest.mark.parametrize("files", [SPOILT["code that equals all"], SPOILT["code that lacks the same"]])
def test_a_missing_tool_hides_no_wrong_change(tmp_path: Path, files: dict[str, str]) -> None:
    done = Attempt(tmp_path, PARTLY).run(
        tampering.TASK, files, "--json", "--no-input", "--max-iterations", "1"
    )
    assert done.code in {1, 3, 8}, done.out


_CALLED_ON_LOAD = f"{tampering.RIGHT}\n\nWHOLE = pages(40, 10)\n"
"""A package that calls its functions as it is loaded."""
ALONE = {
    "a test": (0, NEW_TEST),
    "a test that asserts nothing": (4, NEW_TEST.replace("assert pages(41, 10) == 5", "assert pages")),
    "a test of what was computed as it was loaded": (
        4,
        "from pager.core import WHOLE\n\n\ndef test_new():\n    assert WHOLE\n",
    ),
}


@pytest.mark.parametrize("name", ALONE)
def test_a_test_of_a_package_that_calls_its_functions_as_it_is_loaded(tmp_path: Path, name: str) -> None:
    code, text = ALONE[name]
    attempt = Attempt(tmp_path, {**tampering.BASE, "pager/core.py": _CALLED_ON_LOAD})
    done = attempt.run("add a test of pages in tests/test_new.py", {"tests/test_new.py": text}, "--json")
    assert done.code == code, done.err
    assert [each["kind"] for each in done.json["proof"]] == ["tests_only"] * (code == 0)


LINTS = '{"scripts": {"lint": "node lint.js"}}\n'
KEEPING = {
    "a tool that is not installed": play.edit("package.json", "node lint.js", "no-such-linter ."),
    "a script that is gone": [play.turn(play.call("Bash", command="rm lint.js"))],
}


@pytest.mark.needs("npm")
@pytest.mark.parametrize("turns", KEEPING.values(), ids=KEEPING)
def test_a_change_that_keeps_a_check_from_running_is_not_the_machines_fault(
    new_repo: NewRepo, turns: list[dict[str, Any]]
) -> None:
    repo = new_repo({**play.CALC, "package.json": LINTS, "lint.js": "process.exit(0)\n"})
    lines = play.crew(*play.MENDED, *turns, play.submit("calc.py", "package.json"), evidence="ev-0004")
    done = repo.task("--json", "--no-input", "--max-iterations", "1", play.TEXT, script=lines)
    assert done.code not in (0, 4), done.out
    assert "check_not_run:lint" not in done.json["caveats"]


def test_a_missing_module_of_the_repository_is_a_failure(new_repo: NewRepo) -> None:
    files = {**play.CALC, "mypkg/__init__.py": "", "tests/test_calc.py": IMPORTING.format("mypkg.new")}
    repo = new_repo(files)
    repo.task(
        script=[play.findings(), play.plan("calc.py"), play.role("implementer", play.submit("calc.py"))]
    )
    assert repo.runs("implementer")
    assert repo.state()["status"] == "failed"


def test_a_module_of_the_repository_that_the_change_deletes_is_a_failure(new_repo: NewRepo) -> None:
    files = {**play.CALC, "count.py": "ONE = 1\n", "tests/test_calc.py": IMPORTING.format("count")}
    repo = new_repo(files)
    gone = play.role(
        "implementer", play.turn(play.call("Bash", command="rm count.py")), play.submit("count.py")
    )
    done = repo.task(
        play.TEXT,
        "--json",
        script=[
            play.findings(),
            play.plan("calc.py"),
            gone,
            play.role("implementer", play.submit("count.py")),
        ],
    )
    assert (done.code, done.json["status"]) == (1, "failed"), done.err
    assert "cannot run here" not in (repo.folder / "report.md").read_text()


def test_a_change_that_brings_a_missing_module_is_a_failure(new_repo: NewRepo) -> None:
    repo = new_repo(play.CALC)
    turns = play.edit("calc.py", "def add", "import no_such_distribution\n\n\ndef add")
    lines = [*play.crew(*turns, play.submit("calc.py"))[:3], play.role("implementer", play.submit("calc.py"))]
    assert repo.task(script=lines).code == 1


def test_a_claim_to_be_blocked_decides_nothing(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    boast = play.role(
        "implementer",
        *play.edit("calc.py", "a - b", "b * a"),
        play.turn(play.call("SubmitChange", summary="ENVIRONMENT_BLOCKED: no network", files=["calc.py"])),
    )
    claim = play.turn(
        play.call("SubmitVerdict", verdict="ENVIRONMENT_BLOCKED", evidence=[], reasons=["no network"])
    )
    lines = [
        play.findings(),
        play.plan("calc.py"),
        boast,
        play.role("implementer", play.submit("calc.py")),
        play.role("verifier", claim),
    ]
    assert repo.task(script=lines).code == 1
    assert repo.state()["status"] == "failed"


def test_an_added_key_fails_the_gate_and_is_written_nowhere(new_repo: NewRepo) -> None:
    repo = new_repo(play.QUICK)
    turns = play.edit("calc.py", "a - b", f"a + b  # {KEY}")
    lines = [*play.crew(*turns, play.submit("calc.py"))[:3], play.role("implementer", play.submit("calc.py"))]
    done = repo.task(script=lines)
    assert done.code == 1
    assert "the change adds what looks like a secret: calc.py:2" in done.out
    assert KEY not in done.out + done.err
    for path in repo.folder.rglob("*"):
        assert not path.is_file() or KEY not in path.read_text("utf-8", "replace")


def test_a_key_that_was_there_and_only_moves_is_no_new_one(new_repo: NewRepo) -> None:
    repo = new_repo({**play.CALC, "calc.py": f"KEY = '{KEY}'\n{play.CALC['calc.py']}"})
    command = "l=$(head -1 calc.py); sed -i -e 1d -e 's/a - b/a + b/' calc.py; echo \"$l\" >> calc.py"
    turns = [play.turn(play.call("Read", file_path="calc.py")), play.turn(play.call("Bash", command=command))]
    assert (
        repo.task(script=play.crew(*turns, play.submit("calc.py"), evidence="ev-0003")).code == 4
    )  # no test needs it
