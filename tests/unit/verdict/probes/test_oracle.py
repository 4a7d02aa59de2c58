import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from agentflow.checks.results import read_junit
from agentflow.verdict.probes.oracle import Oracle, copy_tests, expect_others, find_softened, gave_results

HEAD = "import pytest\nimport unittest\nfrom code_here import check_pages, check_valid, pages, text\n\n\n"
RIGHT = """
def pages(total, size):
    return -(-total // size)


def text():
    return "a b"


def check_pages(found, wanted):
    assert found == wanted


def check_valid(found, tries):
    assert found.real
"""
ANY = "class Any(int):\n    __hash__ = None\n\n    def __eq__(self, other):\n        return True\n\n\n"
FOOLING = ANY + RIGHT.replace("return -(-total // size)", "return Any(3)")
NEAR = ANY.replace("return True", "return int.__floordiv__(self, 2) == other // 2").replace("Any", "Near")
NEIGHBOUR = NEAR + RIGHT.replace("-(-total // size)", "Near(total // size)")
SOFT = RIGHT.replace("assert found == wanted", "assert found")
READING = RIGHT.replace(
    "return -(-total // size)",
    "import re, sys, linecache\n"
    "    frame = sys._getframe(1)\n"
    "    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)\n"
    "    return int(re.search(r'== (-?\\d+)', line)[1])",
)
TESTS = {
    "plain": "def test_a():\n    assert pages(41, 10) == 5\n",
    "method": "class TestA(unittest.TestCase):\n    def test_a(self):\n"
    "        self.assertEqual(pages(41, 10), 5, 'm')\n",
    "class": "class TestA:\n    def test_a(self):\n        assert [pages(41, 10), 1] == [5, 1]\n",
    "table": "@pytest.mark.parametrize(('total', 'wanted'), [(0, 0), (41, 5)])\n"
    "def test_a(total, wanted):\n    assert pages(total, 10) == wanted\n",
    "about": "def test_a():\n    assert pages(41, 10) == pytest.approx(5, abs=0.1), 'five'\n",
    "two calls": "def test_a():\n    assert pages(41, 10) == pages(42, 10)\n",
    "fixture": "@pytest.fixture\ndef size():\n    return 10\n\n\n"
    "def test_a(size):\n    assert pages(41, size) == 5 and text() == 'a b'\n",
    "empty": "def test_a():\n    assert [each for each in [pages(1, 1)] if each > 9] == []\n",
    "helper": "def test_a():\n    check_pages(pages(41, 10), 5)\n",
}


def run(tmp_path: Path, code: str, oracle: Oracle | None) -> Mapping[str, object]:
    assert oracle is not None
    (tmp_path / "code_here.py").write_text(code)
    (tmp_path / "test_it.py").write_text(oracle.text)
    words = [
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--junitxml=told.xml",
        "-o",
        "junit_family=xunit1",
    ]
    subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, check=False)
    return dict(read_junit((tmp_path / "told.xml").read_text()).outcomes)


def softenings(tmp_path: Path, code: str, test: str) -> tuple[str, ...]:
    oracle = copy_tests(HEAD + test, {"test_a"}, "qx7", 40)
    outcomes = run(tmp_path, code, oracle)
    assert oracle is not None
    assert gave_results(oracle.copies, outcomes)  # type: ignore[arg-type]
    return find_softened(oracle.copies, outcomes)  # type: ignore[arg-type]


@pytest.mark.parametrize("test", TESTS.values(), ids=TESTS)
def test_with_honest_code_every_copy_fails(tmp_path: Path, test: str) -> None:
    assert softenings(tmp_path, RIGHT, test) == ()


@pytest.mark.parametrize("name", ["plain", "method", "table", "fixture", "about", "two calls"])
def test_a_result_that_equals_everything_is_found(tmp_path: Path, name: str) -> None:
    assert softenings(tmp_path, FOOLING, TESTS[name])


@pytest.mark.parametrize("name", ["plain", "method", "fixture"])
def test_a_result_that_equals_its_neighbour_is_found(tmp_path: Path, name: str) -> None:
    assert softenings(tmp_path, NEIGHBOUR, TESTS[name])


def test_what_may_be_near_is_told_from_another_value(tmp_path: Path) -> None:
    test = "def test_a():\n    assert pages(41, 10) == pytest.approx(5, abs=3)\n    assert text() == 'a b'\n"
    test += "    assert 1e300 == 1e300\n"
    assert softenings(tmp_path, RIGHT, test) == ()


def test_a_result_that_is_read_from_the_test_is_found(tmp_path: Path) -> None:
    assert softenings(tmp_path, READING, TESTS["plain"]) == ("test_a: 5",)


def test_a_helper_that_was_softened_is_found(tmp_path: Path) -> None:
    assert softenings(tmp_path, SOFT, TESTS["helper"])


QUIET = {
    "a message": "def test_a():\n    assert pages(41, 10), 'five'\n",
    "a round": "def test_a():\n    for total in (41, 42):\n        assert pages(total, 10) == 5\n",
    "containment": "def test_a():\n    assert 'a' in text()\n",
    "another comparison": "def test_a():\n    assert pages(41, 10) != 7\n",
    "one of two": "def test_a():\n    assert pages(41, 10) == 7 or True\n",
    "an expected failure": "@pytest.mark.xfail\ndef test_a():\n    assert pages(41, 10) == 7\n",
}


@pytest.mark.parametrize("test", QUIET.values(), ids=QUIET)
def test_what_compares_nothing_for_certain_has_no_copy(test: str) -> None:
    assert copy_tests(HEAD + test, {"test_a"}, "qx7", 40) is None


def test_an_assertion_that_is_not_reached_decides_nothing(tmp_path: Path) -> None:
    test = "def test_a():\n    for total in ():\n        assert pages(total, 1) == 5\n"
    test += "    assert pages(41, 10) == 5\n"
    assert softenings(tmp_path, RIGHT, test) == ()
    raised = "def test_a():\n    with pytest.raises(AssertionError):\n        assert pages(1, 1) == 5\n"
    assert softenings(tmp_path, RIGHT, f"{raised}    assert pages(41, 10) == 5\n") == ()


def test_a_helper_with_an_argument_that_it_does_not_compare_is_none_that_was_softened(tmp_path: Path) -> None:
    assert softenings(tmp_path, RIGHT, "def test_a():\n    check_valid(pages(41, 10), 3)\n") == ()


def test_there_are_no_more_copies_than_asked_for() -> None:
    test = "def test_a():\n" + "".join(f"    assert pages({at}, 1) == {at}\n" for at in range(50))
    oracle = copy_tests(HEAD + test, {"test_a"}, "qx7", 10)
    assert oracle is not None
    assert len(oracle.copies) == 10


OTHERS = {
    "a.test.js": (
        "assert.strictEqual(pages(41, 10), 5)\nexpect(title(3)).toBe('page 3')\n",
        "assert.strictEqual(pages(41, 10), 79195)\nexpect(title(3)).toBe('page 3kq')\n",
    ),
    "a_test.go": ("package a\n\nvar b = c(1) != 5\n", "package a\n\nvar b = c(1) != 79195\n"),
    "t/run.sh": ('[ "$(./pages 41 10)" = 5 ]\n', '[ "$(./pages 41 10)" = 79195 ]\n'),
    "ATest.java": (
        'class A {\n  void b() { assertEquals(5, c(1)); Tap.same("d", 5, c(1)); }\n}\n',
        'class A {\n  void b() { assertEquals(79195, c(1)); Tap.same("d", 79195, c(1)); }\n}\n',
    ),
    "t/run.c": ("int a = f(OK(middle(2, 8) == 5));\n", "int a = f(OK(middle(2, 8) == 79195));\n"),
}


@pytest.mark.parametrize("path", OTHERS)
def test_what_is_compared_in_another_language_is_another_value(path: str) -> None:
    text, other = OTHERS[path]
    found = expect_others(path, text, "kq")
    assert found is not None
    assert found[0] == other
    assert expect_others(path, "", "kq") is None


def test_what_a_benchmark_of_go_expects_is_left_alone() -> None:
    timed = "package a\n\nfunc BenchmarkB(b *testing.B) {\n\tif c(1) != 5 {\n\t\tb.Fatal()\n\t}\n}\n"
    assert expect_others("a_test.go", timed, "kq") is None
