import os
import py_compile
import re
import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agentflow.checks.detect import detect
from agentflow.checks.observing import install_hook
from agentflow.checks.run import CheckWatch, execute
from agentflow.core.evidence import Check, CheckName, CheckRun, TestCounts, TestOutcome
from agentflow.sandbox.profile import Level
from agentflow.sandbox.throwaway import make_overlay_view
from tests.support.places import temporary_files_in

PASSED, FAILED, SKIPPED, ERROR, _ = TestOutcome
MIXED = """
import pytest
@pytest.mark.parametrize("n", [1, 2])
def test_number(n):
    assert n == 1
class TestGroup:
    def test_in_class(self): pass
    @pytest.mark.skip
    def test_left_out(self): pass
@pytest.fixture
def broken(): raise OSError
def test_needs(broken): pass
"""


def check(command: str, name: CheckName = CheckName.TESTS, timeout: float = 60) -> Check:
    return Check(name=name, command=command, timeout=timeout, reason="a test")


def shown(checkout: Any, command: str, name: CheckName = CheckName.TESTS, **options: Any) -> CheckRun:
    return execute(check(command, name), checkout.sandbox, checkout.root.parent / "out", **options)


def detected(checkout: Any) -> CheckRun:
    (tests,) = detect(checkout.sandbox, checkout.files)
    return execute(tests, checkout.sandbox, checkout.root.parent / "out")


@pytest.fixture
def project(checkout: Any) -> Any:
    checkout.own_python()
    return checkout


def everything(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_pytest_gives_ids_and_counts_and_leaves_nothing(
    project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch space"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    project.write({"tests/test_m.py": MIXED, "pytest.ini": "[pytest]\naddopts = --ff --junitxml=own.xml\n"})
    before = everything(project.root)
    with temporary_files_in(None):
        result = detected(project)
    assert result.outcomes == {
        "tests/test_m.py::test_number[1]": PASSED,
        "tests/test_m.py::test_number[2]": FAILED,
        "tests/test_m.py::TestGroup::test_in_class": PASSED,
        "tests/test_m.py::TestGroup::test_left_out": SKIPPED,
        "tests/test_m.py::test_needs": ERROR,
    }
    assert result.counts is not None
    assert (result.counts.passed, result.counts.failed, result.counts.ran) == (2, 1, 4)
    assert result.execution.exit_code == 1
    assert "short test summary" in result.execution.tail
    assert result.execution.tail in Path(result.execution.output).read_text()
    assert everything(project.root) == before
    assert not [name for name in everything(scratch) if name.startswith("agentflow-")]


def test_unittest_gives_ids_and_leaves_nothing(project: Any) -> None:
    source = "import p\nimport unittest\nclass T(unittest.TestCase):\n    def test_a(self): print(p.x)\n"
    project.write({"src/p/__init__.py": "x = 1\n", "tests/test_m.py": source})
    before = everything(project.root)
    result = detected(project)
    assert result.outcomes == {"test_m.T.test_a": PASSED}
    assert result.execution.exit_code == 0
    assert everything(project.root) == before


def test_every_folder_is_run_although_the_first_is_red(project: Any) -> None:
    source = "import unittest\nclass {0}(unittest.TestCase):\n    def test_a(self): {1}\n"
    project.write(
        {"a/test_a.py": source.format("A", "self.fail()"), "b/test_b.py": source.format("B", "pass")}
    )
    result = detected(project)
    assert result.outcomes == {"test_a.A.test_a": FAILED, "test_b.B.test_a": PASSED}
    assert result.execution.exit_code == 1


PYTHON = ".venv/bin/python"
DYING_UNITTEST = """
import os, unittest
class T(unittest.TestCase):
    def test_a(self):
        print("ok", flush=True)
        os._exit(0)
"""


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"test_a.py": ""}, f"{PYTHON} -m pytest -q"),
        ({"test_a.py": ""}, f"{PYTHON} -m pytest -q || true"),
        ({"test_a.py": ""}, f"{PYTHON} -m unittest discover -v"),
        ({"test_a.py": "import os\ndef test_a(): os._exit(0)\n"}, f"{PYTHON} -m pytest -q"),
        (
            {"test_a.py": DYING_UNITTEST},
            f"{PYTHON} -m unittest discover -v",
        ),
        ({"conftest.py": "import os\nos._exit(0)\n", "test_a.py": ""}, f"{PYTHON} -m pytest -q"),
        ({"conftest.py": "raise OSError\n", "test_a.py": "def test_a(): pass\n"}, f"{PYTHON} -m pytest -q"),
        (
            {"test_a.py": "import pytest\n@pytest.mark.skip\ndef test_a(): pass\n"},
            f"{PYTHON} -m pytest -q",
        ),
        ({}, "echo '5 passed'; : pytest"),
        ({}, "echo 'Ran 5 tests in 0.1s'; : python -m unittest"),
    ],
)
def test_no_test_is_counted_where_none_ran(files: dict[str, str], command: str, project: Any) -> None:
    project.write(files)
    result = shown(project, command)
    assert result.counts is not None
    assert result.counts.ran == 0


@pytest.mark.parametrize(
    "said", ["5 passed in 0.1s", "Ran 5 tests in 0.1s\n\nOK", "test_a (m.C.test_a) ... ok"]
)
def test_printed_words_are_no_counts(said: str, checkout: Any) -> None:
    result = shown(checkout, f"printf '%s' '{said}'")
    assert (result.counts, result.outcomes, result.execution.exit_code) == (None, {}, 0)


def test_swallowed_exit_code_does_not_hide_the_failures(project: Any) -> None:
    project.write({"test_a.py": "def test_a(): assert False\n"})
    result = shown(project, f"{PYTHON} -m pytest -q || true")
    assert result.execution.exit_code == 0
    assert result.outcomes == {"test_a.py::test_a": FAILED}


def test_report_with_a_doctype_is_no_result(checkout: Any) -> None:
    forged = '<!DOCTYPE x><testsuite><testcase classname="a" name="b" file="a.py"/></testsuite>'
    command = f"""set -- ${{PYTEST_ADDOPTS##*--junitxml=}}; printf '%s' '{forged}' > "$1"; : pytest"""
    result = shown(checkout, command)
    assert result.outcomes == {}
    assert shown(checkout, command.replace("<!DOCTYPE x>", "")).outcomes == {"a.py::b": PASSED}


def test_report_larger_than_memory_is_no_result(project: Any) -> None:
    report = '<testsuite><testcase classname="a" name="b" file="a.py"/></testsuite>'
    write = f"""set -- ${{PYTEST_ADDOPTS##*--junitxml=}}; printf '%s' '{report}' > "$1\""""
    assert shown(project, f"{write}; : pytest").outcomes == {"a.py::b": PASSED}
    more = f"ulimit -S -f hard; {PYTHON} -c 'import os, sys; os.truncate(sys.argv[1], 200 << 30)'"
    result = shown(project, f"""{write}; {more} "$1" && : pytest""")
    assert result.execution.exit_code == 0, result.execution.tail
    assert (result.outcomes, result.counts) == ({}, TestCounts())


def test_pytest_behind_another_program_is_still_counted(project: Any) -> None:
    project.write({"test_a.py": "def test_a(): pass\n", "run.sh": f"exec {PYTHON} -m pytest -q\n"})
    result = shown(project, "bash run.sh")
    assert result.outcomes == {"test_a.py::test_a": PASSED}


def test_findings_are_relative_and_only_of_other_checks(checkout: Any) -> None:
    command = f"echo '{checkout.root}/a.py:3:1: error: bad'; exit 1"
    result = shown(checkout, command, CheckName.TYPES)
    assert result.findings == {"a.py: error: bad": 1}
    assert (result.counts, result.outcomes) == (None, {})
    assert shown(checkout, command).findings == {}


RUFF = Path(sys.prefix, "bin", "ruff")


@pytest.mark.skipif(not RUFF.exists(), reason="ruff stands elsewhere")
def test_linter_gives_findings_and_leaves_nothing(checkout: Any) -> None:
    shutil.copy(RUFF, checkout.programs)  # where the sandbox hides no folder of a clone
    checkout.write({"a.py": "import os\n", "ruff.toml": ""})
    before = everything(checkout.root)
    result = shown(checkout, "ruff check .", CheckName.LINT)
    assert result.findings == {"a.py: F401 [*] `os` imported but unused": 1}
    assert everything(checkout.root) == before


def test_type_checker_leaves_nothing(project: Any) -> None:
    pytest.importorskip("mypy")
    project.write({"a.py": "x: int = ''\n"})
    before = everything(project.root)
    result = shown(project, f"{PYTHON} -m mypy .", CheckName.TYPES)
    assert result.execution.exit_code == 1
    assert everything(project.root) == before


def test_sleeping_check_dies_with_its_children(checkout: Any) -> None:
    begin = time.monotonic()
    hasty = check("sleep 60 & sleep 60").replace(timeout=0.3)
    result = execute(hasty, checkout.sandbox, checkout.root.parent / "out")
    assert time.monotonic() - begin < 30
    assert result.execution.timed_out


def test_cancelled_check_ends_at_once(checkout: Any) -> None:
    begin = time.monotonic()
    result = shown(checkout, "sleep 60", watch=CheckWatch(cancelled=lambda: True))
    assert time.monotonic() - begin < 30
    assert not result.execution.timed_out
    assert result.execution.exit_code != 0


STALLING = """
import os, signal, time
import pytest
class Last:
    def __del__(self, look=signal.getitimer, timer=signal.ITIMER_VIRTUAL, tell=os.write):
        tell(1, f"at the very end: {look(timer)}".encode())
LAST = Last()
@pytest.fixture(scope="module")
def large():
    begin = time.process_time()
    while time.process_time() < begin + 2.5: sum(range(99_999))
def test_before(large): pass
def test_waits(): time.sleep(1.3)
def run_on():
    text = ""
    while True:
        text = text[:9] + "f"
def test_never_ends(): run_on()
def test_nor_does_this(): run_on()
def test_after(large): pass
"""


def test_a_busy_test_that_does_not_move_is_ended_and_the_others_are_known(checkout: Any) -> None:
    (checkout.root / "test_stalling.py").write_text(STALLING, "utf-8")
    command = f"{sys.executable} -m pytest -q test_stalling.py"
    result = shown(checkout, command, watch=CheckWatch(longest=1))
    names = {"test_never_ends", "test_nor_does_this"}  # a plugin may choose their order
    assert {*result.execution.stalled} == {f"test_stalling.py::{name}" for name in names}
    assert {test.partition("::")[2]: outcome for test, outcome in result.outcomes.items()} == {
        "test_before": PASSED,
        "test_waits": PASSED,
        "test_never_ends": FAILED,
        "test_nor_does_this": FAILED,
        "test_after": PASSED,
    }
    after = map(int, re.findall(r"it did not end within (\d+) s", result.execution.tail))
    assert max(after) < 5, "one that was ended is no measure for the next"
    assert "at the very end: (0.0, 0.0)" in result.execution.tail
    assert result.execution.exit_code == 1
    assert not result.execution.timed_out


NAMED = """
import os
def is_told():
    with open(os.environ["PYTHONPATH"].split(os.pathsep)[0] + "/at") as file:
        return file.read().rstrip("\\0") == os.environ["PYTEST_CURRENT_TEST"].removesuffix(" (call)")
def test_of_a_longer_name(): assert is_told()
def test_b(): assert is_told()
"""


def test_the_test_that_runs_is_told_with_no_rest_of_the_one_before(checkout: Any) -> None:
    (checkout.root / "test_named.py").write_text(NAMED, "utf-8")
    command = f"{sys.executable} -m pytest -q -p no:randomly test_named.py"
    result = shown(checkout, command, watch=CheckWatch(longest=1))
    assert result.execution.exit_code == 0, result.execution.tail


def test_the_name_of_a_test_can_be_told_whatever_the_code_under_test_writes(tmp_path: Path) -> None:
    observer = install_hook(tmp_path, [tmp_path], "")
    (tmp_path / "observer/at").write_bytes(b"test_\xff.py::test".ljust(1000, b"\0"))
    assert observer.find_test().encode() == b"test_?.py::test"


def test_tail_is_the_end_and_short(checkout: Any) -> None:
    tail = shown(checkout, "for i in {1..5000}; do echo line $i; done").execution.tail.splitlines()
    assert tail[-1] == "line 5000"
    assert 20 <= len(tail) <= 100
    assert len(shown(checkout, "printf '%0100000d' 0").execution.tail) <= 10_000


def test_check_sees_neither_secrets_nor_our_own_environment(
    checkout: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hidden")
    monkeypatch.setenv("PYTHONPATH", "hidden")
    monkeypatch.setenv("PYTEST_ADDOPTS", "hidden")
    own = str(Path(sys.prefix, "bin"))
    checkout.program("pytest")
    monkeypatch.setenv("PATH", os.pathsep.join([own, str(checkout.programs)]))
    result = shown(checkout, "env", env={"PYTHONPATH": "copy"})
    lines = Path(result.execution.output).read_text().splitlines()
    assert not [line for line in lines if "hidden" in line]
    assert {"PYTHONPATH=copy", "CI=true", "NO_COLOR=1"} <= set(lines)
    if sys.prefix != sys.base_prefix:
        assert {f"PATH={checkout.programs}", "VIRTUAL_ENV="} <= set(lines)


def test_only_tests_get_pytest_options(checkout: Any) -> None:
    assert shown(checkout, 'test -z "$PYTEST_ADDOPTS"', CheckName.LINT).execution.exit_code == 0
    assert shown(checkout, 'test -z "$PYTEST_ADDOPTS"').execution.exit_code == 1


def test_a_test_expected_to_fail_has_not_passed(project: Any) -> None:
    body = "    @unittest.expectedFailure\n    def test_a(self): self.fail()\n    def test_b(self): pass\n"
    project.write({"tests/test_m.py": f"import unittest\nclass T(unittest.TestCase):\n{body}"})
    result = shown(project, "cd tests && ../.venv/bin/python -m unittest -v")
    assert result.outcomes == {"test_m.T.test_a": SKIPPED, "test_m.T.test_b": PASSED}


def test_compiled_code_that_no_longer_fits_its_source_is_not_run(project: Any) -> None:
    source, told = project.root / "answer.py", (1_700_000_000, 1_700_000_000)
    for value in ("1", "2"):
        project.write({"answer.py": f"VALUE = {value}\n"})
        os.utime(source, told)
        if value == "1":
            py_compile.compile(str(source))
    assert list((project.root / "__pycache__").iterdir())
    python = shlex.quote(sys.executable)
    result = shown(project, f"{python} -c 'import answer; raise SystemExit(answer.VALUE)'")
    assert result.execution.exit_code == 2


def test_a_check_writes_no_compiled_code_and_an_environment_keeps_its_own(project: Any) -> None:
    project.write({"answer.py": "VALUE = 2\n", "env/pyvenv.cfg": "", "env/__pycache__/x.pyc": "kept"})
    shown(project, f"{shlex.quote(sys.executable)} -c 'import answer'")
    assert not list(project.root.glob("__pycache__/*"))
    assert (project.root / "env/__pycache__/x.pyc").read_text() == "kept"


def test_programs_of_the_repository_do_not_stand_in_for_others(
    checkout: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = checkout.root / "bin" / "tool"
    evil.parent.mkdir()
    evil.write_text("#!/bin/sh\nexit 9\n")
    evil.chmod(0o755)
    checkout.program("tool", "exit 4")
    entries = ("", "bin", "../repository/bin", str(evil.parent), str(checkout.programs))
    monkeypatch.setenv("PATH", os.pathsep.join(entries))
    assert shown(checkout, "tool").execution.exit_code == 4


def test_compiled_code_is_found_in_a_layer_and_in_what_lies_below_it(checkout: Any, tmp_path: Path) -> None:
    if checkout.sandbox.level is not Level.FULL:
        pytest.skip("no overlay is mounted without bubblewrap")
    (tmp_path / "clean").mkdir()
    (tmp_path / "stale/__pycache__").mkdir(parents=True)
    (tmp_path / "stale/__pycache__/a.pyc").write_bytes(b"")
    views = {
        name: make_overlay_view(tmp_path / name, tmp_path / f"above-{name}") for name in ("clean", "stale")
    }
    prefix = check('echo "$PYTHONPYCACHEPREFIX"', CheckName.LINT)

    def told(name: str) -> str:
        done = execute(prefix, checkout.sandbox.switch_to_view(views[name]), tmp_path / "out")
        return done.execution.tail.strip()

    assert (told("clean"), bool(told("stale"))) == ("", True)
    (views["clean"].top / "made/__pycache__").mkdir(parents=True)
    (views["clean"].top / "made/__pycache__/a.pyc").write_bytes(b"")
    assert told("clean")


NESTED = {
    "pager/pyproject.toml": "[project]\nname = 'pager'\n",
    "pager/tests/test_m.py": "def test_a(): pass\n",
}
OUTER = "[tool.pytest.ini_options]\npythonpath = ['lib']\n"


@pytest.mark.parametrize(
    "files",
    [
        NESTED | {"tests/test_b.py": ""},
        NESTED | {"pyproject.toml": "[project]\nname = 'mono'\n", "pager/setup.py": ""},
        NESTED
        | {"pyproject.toml": OUTER, "lib/kit.py": "", "pager/pytest.ini": "[pytest]\n"}
        | {"pager/tests/test_m.py": "import kit\ndef test_a(): pass\n"},
    ],
    ids=["no settings", "a setup.py below", "settings below"],
)
def test_some_tests_of_a_repository_with_manifests_below_have_the_ids_of_a_whole_run(
    files: dict[str, str], project: Any
) -> None:
    project.write(files)
    whole, some = (
        shown(project, f"{PYTHON} -m pytest -q{words}") for words in ("", " pager/tests/test_m.py -k test_a")
    )
    assert whole.outcomes == some.outcomes == {"pager/tests/test_m.py::test_a": PASSED}
