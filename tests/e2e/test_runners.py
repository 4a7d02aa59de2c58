"""Changes judged by tests that are counted in other languages, and by checks that cannot run here."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import play
from tests.support.boxes import without_bubblewrap
from tests.support.repo import NewRepo, Repo
from tests.support.toolchains import NOT_RUN, can_build

needs_node = pytest.mark.needs("node", "npm")
ADDS = "test('adds', () => assert.equal(add(1, 2), 3));\n"
NODE = {
    "package.json": '{"name": "calc", "version": "1.0.0", "scripts": {"test": "node --test"}}\n',
    "calc.js": "exports.add = (a, b) => a - b;\n",
    "test/calc.test.js": (
        "const { test } = require('node:test');\nconst assert = require('node:assert');\n"
        f"const {{ add }} = require('../calc.js');\n{ADDS}"
        "test('keeps zero', () => assert.equal(add(0, 0), 0));\n"
    ),
}
NODE_MENDED = play.edit("calc.js", "a - b", "a + b")
UNCOUNTED = {**play.CALC, "Makefile": "test:\n\t@python3 -c 'import calc; assert calc.add(1, 2) == 3'\n"}
del UNCOUNTED["tests/test_calc.py"]


def crew_of(*turns: dict[str, Any], file: str = "calc.py", evidence: str = "ev-0002") -> list[dict[str, Any]]:
    return [
        play.findings(file, 1),
        play.plan(file),
        play.role("implementer", *turns, play.submit(file)),
        play.verified(evidence),
    ]


def told_before_work(repo: Repo) -> list[str]:
    """Return what the program warned of before the first run of a role."""
    happened = repo.events("Warned", "RunStarted")
    first = next((place for place, one in enumerate(happened) if one["type"] == "RunStarted"), len(happened))
    return [one["message"] for one in happened[:first]]


@needs_node
def test_a_bug_in_javascript_is_mended_and_proven_by_its_test(new_repo: NewRepo) -> None:
    repo = new_repo(NODE)
    done = repo.task(play.TEXT, "--json", script=crew_of(*NODE_MENDED, file="calc.js"))
    assert done.code == 0, done.err
    red, green, again = repo.evidence()
    counted = [{key: each["tests"][key] for key in ("passed", "failed")} for each in (red, green, again)]
    assert counted == [{"passed": 1, "failed": 1}, {"passed": 2, "failed": 0}, {"passed": 1, "failed": 1}]
    ids = (repo.folder / green["tests"]["ids_file"]).read_text()
    assert ids == "passed test/calc.test.js::adds\npassed test/calc.test.js::keeps zero\n"
    assert told_before_work(repo) == []


@needs_node
def test_a_new_test_in_javascript_proves_a_new_function(new_repo: NewRepo) -> None:
    repo = new_repo({**NODE, "calc.js": NODE["calc.js"].replace("a - b", "a + b")})
    more = "test('keeps zero', () => assert.equal(add(0, 0), 0));\n"
    new = "test('doubles', () => assert.equal(require('../calc.js').double(4), 8));\n"
    turns = [
        *play.edit("calc.js", "exports.add", "exports.double = (a) => 2 * a;\nexports.add"),
        *play.edit("test/calc.test.js", more, more + new),
    ]
    done = repo.task("add a function double to calc.js", "--json", script=crew_of(*turns, file="calc.js"))
    assert (done.code, done.json["caveats"]) == (0, []), done.err


CACHING = NODE | {
    ".gitignore": "node_modules/\n",
    "tool.js": "const fs = require('fs');\nconst cache = 'node_modules/.cache/tool';\n"
    "if (fs.existsSync(cache)) throw new Error('another command left its cache');\n"
    "fs.mkdirSync(cache, { recursive: true });\nfs.writeFileSync('node_modules/kit/index.js', 'broken(');\n",
    "package.json": NODE["package.json"].replace("node --test", "node tool.js && node --test"),
}
KEPT = CACHING | {"tool.js": CACHING["tool.js"].rpartition("fs.write")[0] + "require('kit');\n"}


@needs_node
@pytest.mark.parametrize("has_bubblewrap", [True, False], ids=["bubblewrap", "Landlock"])
def test_a_tool_keeps_a_cache_among_installed_packages_for_one_command(
    new_repo: NewRepo, tmp_path: Path, has_bubblewrap: bool
) -> None:
    repo = new_repo(CACHING if has_bubblewrap else KEPT)
    repo.write({"node_modules/kit/index.js": "module.exports = 1;\n"})
    env = {} if has_bubblewrap else {"PATH": without_bubblewrap(tmp_path)}
    done = repo.task(play.TEXT, script=crew_of(*NODE_MENDED, file="calc.js"), env=env)
    assert done.code == 0, done.out + done.err
    assert repo.read("node_modules/kit/index.js") == "module.exports = 1;\n"
    assert not (repo.root / "node_modules/.cache").exists()


LINTING = NODE | {
    "lint.js": "const text = require('fs').readFileSync('calc.js', 'utf8');\n"
    "if (!text.startsWith('/* eslint-disable */') && /function|throw/.test(text)) process.exit(1);\n",
    "package.json": NODE["package.json"].replace("node --test", "node lint.js && node --test"),
}


@needs_node
def test_a_linter_that_runs_before_the_tests_hides_no_branch_that_they_never_try(new_repo: NewRepo) -> None:
    repo = new_repo(LINTING)
    turns = play.edit("calc.js", "a - b", "a > 99 ? 0 : a + b")
    done = repo.task(play.TEXT, "--json", script=crew_of(*turns, file="calc.js"))
    assert (done.code, done.json["caveats"]) == (4, ["unproved"]), done.err
    assert "a > 99" in str(done.json["unproved"])


DELETED = [*NODE_MENDED, *play.edit("test/calc.test.js", ADDS, "")]
SWITCHED_OFF = {
    "true": '"true"',
    "an echo": '"echo ok"',
    "a sum that is printed": '"echo \\"ℹ pass 2\\""',  # noqa: RUF001
    "a filter": '"node --test --test-name-pattern=zero"',
}


@needs_node
def test_a_deleted_test_in_javascript_waits_for_a_person(new_repo: NewRepo) -> None:
    repo = new_repo(NODE)
    done = repo.task(play.TEXT, "--json", script=crew_of(*DELETED, file="calc.js"))
    assert done.code == 75, done.err
    (pending,) = done.json["pending"]
    assert "adds" in str(pending)


@needs_node
@pytest.mark.parametrize("script", [SWITCHED_OFF["a sum that is printed"], SWITCHED_OFF["a filter"]])
def test_a_runner_that_is_switched_off_verifies_nothing(new_repo: NewRepo, script: str) -> None:
    repo = new_repo(NODE)
    turns = play.edit("package.json", '"node --test"', script)
    lines = crew_of(*turns, *play.edit("calc.js", "a - b", "a * b"), file="calc.js")
    done = repo.task(play.TEXT, "--json", "--max-iterations", "1", script=lines)
    assert done.code not in (0, 4), done.out


def test_a_runner_that_nobody_can_count_is_told_at_the_start_and_verifies_at_best_with_caveat(
    new_repo: NewRepo,
) -> None:
    repo = new_repo({**UNCOUNTED, "calc.py": UNCOUNTED["calc.py"].replace("a - b", "a + b")})
    turns = play.edit("calc.py", "def double", "def triple(a):\n    return 3 * a\n\n\ndef double")
    done = repo.task("document", "and", "tidy", "calc.py", "--json", script=crew_of(*turns))
    assert done.code == 4, done.err
    assert "tests_not_counted" in done.json["caveats"]
    (said,) = told_before_work(repo)
    assert said.startswith("the tests of `make test` cannot be counted")


def test_a_change_that_prints_the_numbers_of_a_runner_is_not_counted_by_them(new_repo: NewRepo) -> None:
    repo = new_repo(UNCOUNTED)
    lie = "print('Tests:       3 passed, 3 total')\n\n\ndef add"
    turns = [*play.MENDED, *play.edit("calc.py", "def add", lie)]
    done = repo.task(play.TEXT, "--json", script=crew_of(*turns))
    assert done.code == 4, done.err
    assert "tests_not_counted" in done.json["caveats"]


SUMS = """from calc import add, double

wanted = [add(2, 3) == 5, add(-1, 1) == 0, add(0, 4) == 4, double(3) == 6]
print(f"PASSED: {sum(wanted)}")
print(f"FAILED: {len(wanted) - sum(wanted)}")
"""


def test_a_program_of_tests_is_judged_by_the_sum_that_it_prints_whatever_its_exit_code(
    new_repo: NewRepo,
) -> None:
    repo = new_repo({**UNCOUNTED, "Makefile": "test:\n\tpython3 check.py\n", "check.py": SUMS})
    done = repo.task(play.TEXT, "--json", script=crew_of(*play.MENDED))
    assert (done.code, done.json["caveats"]) == (0, []), done.err + done.out
    assert done.json["mutants"]["killed"] == done.json["mutants"]["tried"] > 0


LINTED = {**play.CALC, "ruff.toml": "line-length = 100\n"}


@pytest.mark.parametrize("is_required", [False, True])
def test_a_missing_linter_is_told_before_work_and_lowers_only_what_requires_it(
    new_repo: NewRepo, is_required: bool
) -> None:
    settings = {".claude/agentflow.yaml": "required: [lint]\n"} if is_required else {}
    repo = new_repo({**LINTED, **settings})
    done = repo.task(play.TEXT, "--json", script=play.mending())
    found = (4, ["check_not_run:lint"]) if is_required else (0, [])
    assert (done.code, done.json["caveats"]) == found, done.err
    (said,) = (each for each in told_before_work(repo) if "lint" in each)
    assert "pip install ruff" in said
    assert ("--skip-check lint" in said) is is_required
    assert "lint cannot run here" in (repo.folder / "report.md").read_text()
    assert len(repo.runs("implementer")) == 1


def test_a_missing_tool_is_not_what_a_wrong_change_is_sent_back_for(new_repo: NewRepo) -> None:
    repo = new_repo(LINTED)
    wrong = play.role("implementer", *play.edit("calc.py", "a - b", "a * b"), play.submit("calc.py"))
    done = repo.task(
        play.TEXT, "--max-iterations", "1", "--json", script=[play.findings(), play.plan("calc.py"), wrong]
    )
    assert done.code in (1, 3), done.err
    (failure,) = repo.state()["failures"]
    assert failure["reasons"]
    assert not any(reason.get("check") == "lint" for reason in failure["reasons"])


def test_a_missing_tool_can_be_left_out_knowingly(new_repo: NewRepo) -> None:
    repo = new_repo(LINTED)
    words = ("--skip-check", "lint", "--reason", "not installed")
    done = repo.task(play.TEXT, *words, "--json", script=play.mending())
    assert (done.code, done.json["caveats"]) == (4, ["check_skipped:lint"]), done.err
    assert told_before_work(repo) == []


def test_a_script_whose_program_is_not_installed_is_told_before_work(new_repo: NewRepo) -> None:
    if not can_build("npm"):
        pytest.skip(NOT_RUN.format("npm"))
    package = '{"name": "calc", "version": "1.0.0", "scripts": {"lint": "no-such-linter ."}}\n'
    repo = new_repo({**play.CALC, "package.json": package})
    done = repo.task(play.TEXT, "--json", script=play.mending(evidence="ev-0004"))
    assert (done.code, done.json["caveats"]) == (0, []), done.err
    (said,) = told_before_work(repo)
    assert "no-such-linter is not found: npm install" in said


LEAVINGS = {
    "caches": "mkdir -p .pytest_cache/v __pycache__ target/debug && touch .pytest_cache/v/x .coverage "
    "__pycache__/calc.cpython-312.pyc target/debug/calc",
    "a test of its own": "echo 'def test_x(): pass' > tests/test_probe.py",
}


@pytest.mark.parametrize("command", LEAVINGS.values(), ids=LEAVINGS)
def test_what_a_verifier_leaves_in_its_own_copy_is_no_change(new_repo: NewRepo, command: str) -> None:
    repo = new_repo(play.CALC)
    verdict = play.call("SubmitVerdict", verdict="VERIFIED", evidence=["ev-0002"], reasons=[])
    verifier = play.role("verifier", play.turn(play.call("Bash", command=command)), play.turn(verdict))
    script = [
        play.findings(),
        play.plan("calc.py"),
        play.role("implementer", *play.MENDED, play.submit("calc.py")),
        verifier,
    ]
    done = repo.task(script=script)
    assert done.code == 0, done.out


def test_what_a_check_leaves_before_the_task_and_after_is_no_change(new_repo: NewRepo) -> None:
    stamp = "\n    def test_z(self):\n        open('stamp.dat', 'a').write('x'); open('seen.dat', 'w')\n"
    repo = new_repo(
        {**play.CALC, "tests/test_calc.py": play.CALC["tests/test_calc.py"] + stamp, "stamp.dat": ""}
    )
    done = repo.task(script=play.mending())
    assert done.code == 0, done.out


RIGHT = play.CALC["calc.py"].replace("a - b", "a + b")
LIMITED = {
    "a tool is missing": ({**LINTED, "calc.py": RIGHT}, 4, "1 of 2 checks passed, with a caveat: lint"),
    "nothing can run": ({"ruff.toml": "line-length = 100\n"}, 1, "not verified: lint"),
    "tests cannot be counted": ({**UNCOUNTED, "calc.py": RIGHT}, 4, "tests cannot be counted"),
}


@pytest.mark.parametrize(("files", "code", "said"), LIMITED.values(), ids=LIMITED)
def test_verify_says_what_limits_its_word(
    new_repo: NewRepo, files: dict[str, str], code: int, said: str
) -> None:
    done = new_repo(files).run("verify")
    assert (done.code, said in done.out) == (code, True), done.out


def test_a_dry_run_says_which_checks_would_not_run(new_repo: NewRepo) -> None:
    done = new_repo(LINTED).run("verify", "--dry-run")
    assert (done.code, done.out.splitlines()[-1]) == (4, "1 of 2 checks would run; not lint")


def test_tests_that_cannot_run_here_let_the_other_checks_judge(new_repo: NewRepo) -> None:
    """The tests need another Python; what builds the program still holds."""
    package = '{"name": "calc", "version": "1.0.0", "scripts": {"build": "true"}}\n'
    if not can_build("npm"):
        pytest.skip(NOT_RUN.format("npm"))
    project = '[project]\nname = "calc"\nversion = "1"\nrequires-python = ">=3.99"\n'
    repo = new_repo({**play.CALC, "pyproject.toml": project, "package.json": package})
    right = play.edit("calc.py", "a - b", "a + b")
    done = repo.task(play.TEXT, "--json", script=crew_of(*right, evidence="ev-0003"))
    assert done.code == 4, done.err
    assert "check_not_run:tests" in done.json["caveats"]
    (said,) = told_before_work(repo)
    assert "requires-python >=3.99" in said
    assert len(repo.runs("implementer")) == 1


@pytest.mark.needs("cargo")
def test_a_bug_in_rust_is_mended_whatever_the_build_leaves(new_repo: NewRepo) -> None:
    files = {
        "Cargo.toml": '[package]\nname = "calc"\nversion = "0.1.0"\nedition = "2021"\n',
        "Cargo.lock": 'version = 3\n\n[[package]]\nname = "calc"\nversion = "0.1.0"\n',
        "src/lib.rs": "pub fn add(a: i64, b: i64) -> i64 {\n    a - b\n}\n",
        "tests/calc.rs": "#[test]\nfn adds() {\n    assert_eq!(calc::add(1, 2), 3);\n}\n",
    }
    repo = new_repo(files)
    turns = play.edit("src/lib.rs", "a - b", "a + b")
    done = repo.task(play.TEXT, "--json", script=crew_of(*turns, file="src/lib.rs", evidence="ev-0004"))
    assert (done.code, done.json["caveats"]) == (0, []), done.err


@pytest.mark.needs("go")
def test_a_bug_in_go_is_mended_where_the_user_has_a_cache_of_builds(new_repo: NewRepo) -> None:
    files = {
        "go.mod": "module calc\n\ngo 1.19\n",
        "calc.go": "package calc\n\nfunc Add(a, b int) int { return a - b }\n",
        "calc_test.go": (
            'package calc\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) {\n'
            '\tif Add(1, 2) != 3 {\n\t\tt.Fatal("not 3")\n\t}\n}\n'
        ),
    }
    repo = new_repo(files)
    turns = play.edit("calc.go", "a - b", "a + b")
    script = crew_of(*turns, file="calc.go", evidence="ev-0004")
    done = repo.task(play.TEXT, "--json", script=script)
    assert (done.code, done.json["caveats"]) == (0, []), done.err


def test_an_environment_that_the_sandbox_hides_is_named_with_what_shows_it(new_repo: NewRepo) -> None:
    repo = new_repo({**play.GREEN, ".gitignore": ".venv\n"})
    elsewhere = repo.home / "venvs/calc"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(elsewhere)], check=True)
    (repo.root / ".venv").symlink_to(elsewhere)
    told = repo.run("verify")
    assert told.code == 1, told.out
    advice = f"`readable: [{elsewhere}]` in config.yaml shows it"
    assert f"not run (.venv/bin/python: the sandbox hides {elsewhere}: {advice})" in told.out
    config = repo.home / ".config/agentflow/config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text(f"readable: [{elsewhere}]\n")
    shown = repo.run("verify")
    assert shown.code == 0, shown.out


GO = {
    "go.mod": "module calc\n\ngo 1.19\n",
    "calc.go": "package calc\n\nfunc Add(a, b int) int { return a + b }\n",
    "calc_test.go": (
        'package calc\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) {\n'
        '\tif Add(1, 2) != 4 {\n\t\tt.Error("wrong")\n\t}\n}\n'
    ),
}


@pytest.mark.needs("go")
def test_a_go_test_that_fails_before_it_is_edited_is_not_taken_for_flaky(new_repo: NewRepo) -> None:
    repo = new_repo(GO)
    turns = play.edit("calc_test.go", "!= 4", "!= 3")
    script = [
        play.findings("calc_test.go"),
        play.plan("calc_test.go"),
        play.role("implementer", *turns, play.submit("calc_test.go")),
        play.verified("ev-0004"),
    ]
    done = repo.task("fix the wrong sum in calc_test.go", "--json", "--max-iterations", "1", script=script)
    assert done.code == 75, done.out
    assert not any(each["flaky"] for each in repo.evidence())
    assert "mixed results" not in (repo.folder / "report.md").read_text("utf-8")


@needs_node
def test_tests_that_watch_for_changes_are_named_ended_and_counted(new_repo: NewRepo) -> None:
    repo = new_repo(NODE | {"package.json": NODE["package.json"].replace("--test", "--test --watch")})
    done = repo.task(play.TEXT, "--json", script=crew_of(*NODE_MENDED, file="calc.js"))
    assert (done.code, done.json["caveats"]) == (0, []), done.err
    (said,) = told_before_work(repo)
    assert said == (
        "tests: `npm test` does not end, since --watch watches for changes: "
        "write `node --test` into .claude/test-command"
    )
    assert all(each["seconds"] < 60 for each in repo.evidence())


CRASHING = NODE | {
    ".gitignore": "node_modules/\n",
    "package.json": NODE["package.json"].replace(
        '"test":', '"build": "node node_modules/kit/run.js", "test":'
    ),
}


@needs_node
def test_a_build_that_crashes_with_and_without_the_change_is_no_failure_of_it(new_repo: NewRepo) -> None:
    repo = new_repo(CRASHING)
    repo.write({"node_modules/kit/run.js": "console.error(Date.now()); process.exit(1);\n"})
    done = repo.task(play.TEXT, "--json", script=crew_of(*NODE_MENDED, file="calc.js", evidence="ev-0004"))
    assert (done.code, done.json["caveats"]) == (4, ["already_red"]), done.err
    (said,) = told_before_work(repo)
    assert said.startswith("build fails before the change, without a failing test or finding: exit 1")


@needs_node
def test_a_build_that_crashes_in_another_way_goes_back(new_repo: NewRepo) -> None:
    repo = new_repo(CRASHING)
    repo.write({"node_modules/kit/run.js": "console.error(require('../../calc.js').add); process.exit(1);\n"})
    turns = play.edit("calc.js", "(a, b) => a - b", "function add(a, b) { return a + b; }")
    done = repo.task(play.TEXT, "--json", "--max-iterations", "1", script=crew_of(*turns, file="calc.js"))
    assert done.code in (1, 3), done.err


CLOCK = {
    "calc.py": play.CALC["calc.py"],
    "test_calc.py": """import time
import pytest
from calc import add


def test_add():
    assert add(1, 2) == 3


@pytest.mark.parametrize("word", ["x", str(time.time())])
def test_no_number(word):
    with pytest.raises(TypeError):
        add(word, 1)
""",
}


def test_cases_that_are_called_by_the_time_are_known_by_their_number(new_repo: NewRepo) -> None:
    repo = new_repo(CLOCK)
    done = repo.task(play.TEXT, "--json", script=play.mending())
    assert (done.code, done.json["caveats"]) == (0, []), done.err
    assert "a new name in each run" in (repo.folder / "report.md").read_text("utf-8")
    again = repo.run("verify", done.json["task_id"])
    assert again.code == 0, again.out
