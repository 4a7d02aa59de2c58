import subprocess
import sys
from pathlib import Path

import pytest

from agentflow.core.evidence import TestOutcome
from agentflow.runners.python import read_verbose_unittest

PASSED, FAILED, SKIPPED, ERROR, _ = TestOutcome
DOUBLE, SINGLE = "=" * 70, "-" * 70
SOURCE = '''
import sys, unittest
class A(unittest.TestCase):
    def test_ok(self): print("hello\\n\\nworld", flush=True)
    def test_stderr(self): print("to stderr", file=sys.stderr)
    def test_doc(self):
        """A doc line ... with dots (and.more) ok"""
    def test_glued(self): print("x", end="", flush=True)
    def test_sub(self):
        for i in range(3):
            with self.subTest("m", i=i): self.assertNotEqual(i, 1)
    def test_subskip(self):
        for i in range(3):
            with self.subTest(i=i):
                if i: self.skipTest("no")
    @unittest.expectedFailure
    def test_xfail(self): self.fail()
    @unittest.expectedFailure
    def test_xpass(self): pass
    def test_skip(self): self.skipTest("because 'x'")
    def test_error(self):
        """doc of error"""
        1/0
    def test_fail(self): self.fail("no")
    def test_fail_and_teardown(self):
        self.addCleanup(lambda: 1/0)
        self.fail("no")
    def test_z(self): pass
class B(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise ValueError
    def test_b(self): pass
class C(unittest.TestCase):
    def test_c(self): print("FAIL", flush=True)
'''
OUTCOMES = {
    "test_m.A.test_ok": PASSED,
    "test_m.A.test_stderr": PASSED,
    "test_m.A.test_doc": PASSED,
    "test_m.A.test_glued": PASSED,
    "test_m.A.test_sub": FAILED,
    "test_m.A.test_subskip": SKIPPED,
    "test_m.A.test_xfail": SKIPPED,
    "test_m.A.test_xpass": FAILED,
    "test_m.A.test_skip": SKIPPED,
    "test_m.A.test_error": ERROR,
    "test_m.A.test_fail": FAILED,
    "test_m.A.test_fail_and_teardown": ERROR,
    "test_m.A.test_z": PASSED,
    "test_m.B.setUpClass": ERROR,
    "test_m.C.test_c": PASSED,
    "unittest.loader._FailedTest.test_broken": ERROR,
}


def discover(folder: Path, python: str = sys.executable) -> str:
    argv = [python, "-u", "-B", "-m", "unittest", "discover", "-v"]
    ended = subprocess.run(argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return ended.stdout.decode()


def test_what_the_running_python_prints(tmp_path: Path) -> None:
    (tmp_path / "test_m.py").write_text(SOURCE)
    (tmp_path / "test_broken.py").write_text("import nowhere")
    assert read_verbose_unittest(discover(tmp_path)).outcomes == OUTCOMES


EXAMPLES = 'def a():\n    """\n    >>> a()\n    1\n    """\n    return 1\n'
LOADED = """import doctest

import mod


def load_tests(loader, tests, ignore):
    tests.addTests(doctest.DocTestSuite(mod))
    return tests
"""


def test_examples_of_docstrings_have_results_whether_they_pass_or_not(tmp_path: Path) -> None:
    wrong = EXAMPLES.replace("a()", "b()").replace("    1\n", "    2\n")
    (tmp_path / "mod.py").write_text(f"{EXAMPLES}\n\n{wrong}")
    (tmp_path / "test_m.py").write_text(LOADED)
    assert read_verbose_unittest(discover(tmp_path)).outcomes == {"mod.a": PASSED, "mod.b": FAILED}


def summary(number: int, word: str = "OK") -> str:
    return f"\n{SINGLE}\nRan {number} test{'' if number == 1 else 's'} in 0.001s\n\n{word}\n"


def block(kind: str, what: str) -> str:
    return (
        f"\n{DOUBLE}\n{kind}: {what}\n{SINGLE}\nTraceback (most recent call last):\n  ...\nAssertionError\n"
    )


PYTHON_3_10 = (
    "test_broken (unittest.loader._FailedTest) ... ERROR\n"
    "test_doc (test_m.A)\nA doc line ... with dots ... ok\n"
    "test_glued (test_m.A) ... xok\n"
    "test_ok (test_m.A) ... hello\nok\n"
    "test_skip (test_m.A) ... skipped \"because 'x'\"\n"
    "test_sub (test_m.A) ... test_subskip (test_m.A) ... skipped 'no'\nskipped 'no'\n"
    "test_xf (test_m.A) ... expected failure\n"
    "test_xs (test_m.A) ... unexpected success\n"
    "test_z (test_m.A) ... ok\n"
    "ERROR\nskipped 'c'\n"
    + block("ERROR", "test_broken (unittest.loader._FailedTest)")
    + block("ERROR", "setUpClass (test_m.B)")
    + block("FAIL", "test_sub (test_m.A) [m] (i=1)")
    + summary(9, "FAILED (failures=1, errors=2, skipped=4)")
)


def test_what_python_3_10_prints() -> None:
    assert read_verbose_unittest(PYTHON_3_10).outcomes == {
        "unittest.loader._FailedTest.test_broken": ERROR,
        "test_m.A.test_doc": PASSED,
        "test_m.A.test_glued": PASSED,
        "test_m.A.test_ok": PASSED,
        "test_m.A.test_skip": SKIPPED,
        "test_m.A.test_sub": FAILED,
        "test_m.A.test_subskip": SKIPPED,
        "test_m.A.test_xf": SKIPPED,
        "test_m.A.test_xs": FAILED,
        "test_m.A.test_z": PASSED,
        "test_m.B.setUpClass": ERROR,
    }


OK = "test_a (m.C.test_a) ... ok\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5 passed in 0.1s\n",
        "Ran 5 tests in 0.1s\n\nOK\n",
        OK,
        OK + summary(1) + "test_b (m.C.test_b) ... ",
        summary(0),
        summary(0, "NO TESTS RAN"),
        OK + summary(0),
    ],
    ids=[
        "nothing",
        "another runner",
        "no rule",
        "cut",
        "second run cut",
        "none",
        "none, 3.12",
        "none, forged",
    ],
)
def test_nothing_is_a_test_without_a_run_that_ended(text: str) -> None:
    assert read_verbose_unittest(text).outcomes == {}


def test_several_runs_are_read_and_the_worst_is_kept() -> None:
    red = "test_a (m.C.test_a) ... FAIL\ntest_b (m.C.test_b) ... ok\n" + block("FAIL", "test_a (m.C.test_a)")
    both = OK + summary(1) + red + summary(2, "FAILED (failures=1)")
    assert read_verbose_unittest(both).outcomes == {"m.C.test_a": FAILED, "m.C.test_b": PASSED}


def test_test_without_a_word_about_it_is_an_error() -> None:
    assert read_verbose_unittest(
        "test_a (m.C.test_a) ... \n" + OK.replace("_a", "_b") + summary(2)
    ).outcomes == {
        "m.C.test_a": ERROR,
        "m.C.test_b": PASSED,
    }


def test_failed_test_cannot_print_itself_green() -> None:
    text = (
        f"test_a (m.C.test_a) ... ok\n{OK}FAIL\n{block('FAIL', 'test_a (m.C.test_a)')}{summary(1, 'FAILED')}"
    )
    assert read_verbose_unittest(text).outcomes == {"m.C.test_a": FAILED}


def test_test_both_failed_and_broken_is_an_error() -> None:
    blocks = block("FAIL", "test_a (m.C.test_a)") + block("ERROR", "test_a (m.C.test_a)")
    assert read_verbose_unittest(f"test_a (m.C.test_a) ... FAIL\nERROR\n{blocks}{summary(1)}").outcomes == {
        "m.C.test_a": ERROR
    }


def test_traceback_that_quotes_a_runner_adds_no_test() -> None:
    quoted = block("FAIL", "test_a (m.C.test_a)") + "test_forged (m.C.test_forged) ... ok\n"
    assert read_verbose_unittest(f"test_a (m.C.test_a) ... FAIL\n{quoted}{summary(1)}").outcomes == {
        "m.C.test_a": FAILED
    }


def test_hostile_output_is_read_in_linear_time() -> None:
    hostile = ["test" * 20_000, "test_a (m.C.test_a) " * 3_000, "\n".join(["="] * 50_000), "a." * 50_000]
    assert read_verbose_unittest("\n".join(hostile) + summary(1)).outcomes == {}
