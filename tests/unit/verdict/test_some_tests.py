import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from agentflow.checks.run import execute
from agentflow.core.errors import InvalidInput
from agentflow.core.evidence import Check, CheckName
from agentflow.core.tool import TestSelection
from agentflow.parse import fit
from agentflow.runners.selection import select_tests
from agentflow.verdict.some_tests import describe_failures
from tests.support.boxes import boxed

PART = "python3 -m pytest -q"
UNITTEST = "python3 -m unittest discover -v"
BOTH = f"r=0; {{ {PART}; }} || r=1; (cd web && npm test) || r=1; exit $r"
JEST = '{"scripts": {"test": "jest --ci"}}'
FILES = ("tests/test_a.py", "pkg/a_test.go", "web/a.test.js", "web/package.json", "a_test.rb")
NARROWED: dict[str, tuple[str, dict[str, object], str]] = {
    "a test by its id": (PART, {"ids": ["tests/test_a.py::A::test_x"]}, f"{PART} tests/test_a.py::A::test_x"),
    "a case": (PART, {"ids": ["a.py::test_x[a b]"]}, f"{PART} 'a.py::test_x[a b]'"),
    "a case with a quote": (PART, {"ids": ["a.py::test_x[it's]"]}, f"{PART} a.py::test_x"),
    "a folder": (PART, {"paths": ["tests"]}, f"{PART} tests"),
    "names in a file": (PART, {"paths": ["a.py"], "pattern": "x or y"}, f"{PART} a.py -k 'x or y'"),
    "a module of unittest": (UNITTEST, {"paths": ["tests/test_a.py"]}, f"{UNITTEST} -k '*test_a.*'"),
    "a test of unittest": (UNITTEST, {"ids": ["test_a.A.test_x"]}, f"{UNITTEST} -k test_a.A.test_x"),
    "a project": (BOTH, {"paths": ["web/a.test.js"]}, "cd web && npm test -- a.test.js"),
    "a test of jest": (
        BOTH,
        {"ids": ["web/a.test.js::a (1) > b"]},
        r"cd web && npm test -- a.test.js -t 'a \(1\) b'",
    ),
    "every runner": (
        BOTH,
        {"pattern": "x"},
        f"r=0; {{ {PART} -k x; }} || r=1; (cd web && npm test -- -t x) || r=1; exit $r",
    ),
    "a package of Go": ("go test ./...", {"paths": ["pkg/a_test.go"]}, "go test ./pkg"),
    "a test of Go": ("go test ./...", {"ids": ["example.com/m::TestA"]}, "go test example.com/m -run TestA"),
    "names in a package": (
        "go test ./...",
        {"paths": ["pkg"], "pattern": "A|B"},
        "go test ./pkg -run 'A|B'",
    ),
    "a test of cargo": ("cargo test", {"ids": ["m::tests::adds"]}, "cargo test -- tests::adds"),
    "a class of Maven": (
        "mvn -q test",
        {"paths": ["src/CalcTest.java"]},
        "mvn -q test -Dtest=CalcTest -Dsurefire.failIfNoSpecifiedTests=false",
    ),
    "a file without a line": ("rspec", {"paths": ["a_test.rb"]}, "rspec a_test.rb"),
    "all": (PART, {}, PART),
}
"""Command, selection, and what runs."""


def select(command: str, given: Mapping[str, object]) -> tuple[str, tuple[str, ...]]:
    check = Check(name=CheckName.TESTS, command=command, timeout=60, reason="r")
    wanted = fit(TestSelection, dict(given))
    narrowed, whole = select_tests(
        check, wanted, FILES, lambda name: JEST if name == "web/package.json" else ""
    )
    return narrowed.command, whole


@pytest.mark.parametrize("case", NARROWED)
def test_a_check_is_narrowed_as_its_runner_wants_it(case: str) -> None:
    command, given, expected = NARROWED[case]
    assert select(command, given) == (expected, ())


def test_a_runner_that_knows_no_selection_runs_whole_and_is_named() -> None:
    assert select("make check", {"pattern": "x"}) == ("make check", ("make check",))


@pytest.mark.parametrize(
    "given",
    [
        {"paths": ["-x"]},
        {"ids": ["@a"]},
        {"pattern": "-x"},
        {"pattern": "a'b"},
        {"pattern": "a", "ids": ["b"]},
    ],
)
def test_what_would_be_an_option_or_breaks_a_quote_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        select(PART, given)


@pytest.mark.parametrize("command", [PART, UNITTEST, BOTH, "go test ./...", "cargo test", "npm test"])
def test_no_selection_becomes_a_command_of_its_own(tmp_path: Path, command: str) -> None:
    for program in ("python3", "npm", "go", "cargo"):
        (tmp_path / program).write_text("#!/bin/sh\n")
        (tmp_path / program).chmod(0o755)
    for text in ("$(touch x)", "`touch x`", "a; touch x #", 'a" && touch x', "a} || r=1; touch x; {", "{}"):
        for given in ({"pattern": text}, {"ids": [f"a.py::{text}"]}, {"paths": [f"d/{text}"]}):
            line, env = select(command, given)[0], {"PATH": f"{tmp_path}:/usr/bin:/bin"}
            subprocess.run(["bash", "-c", line], cwd=tmp_path, env=env, check=False, capture_output=True)
            assert not (tmp_path / "x").exists(), line


FAILING = {
    "pytest": (
        "python3 -m pytest -q",
        "test_a.py",
        "def add(a, b):\n    return a - b\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
        {
            "test_a.py::test_add": "test_a.py:6\n> assert add(1, 2) == 3\n"
            "E assert -1 == 3\nE + where -1 = add(1, 2)"
        },
    ),
    "unittest": (
        UNITTEST,
        "test_a.py",
        "import unittest\nclass A(unittest.TestCase):\n def test_x(self):\n  self.assertEqual(1, 2)\n",
        {"test_a.A.test_x": "test_a.py:4\nself.assertEqual(1, 2)\nAssertionError: 1 != 2"},
    ),
}


@pytest.mark.parametrize("case", FAILING)
def test_each_failure_is_told_with_its_place_and_its_assertion(tmp_path: Path, case: str) -> None:
    command, name, text, expected = FAILING[case]
    root = tmp_path / "repository"
    root.mkdir()
    (root / name).write_text(text)
    sandbox, sink = boxed(root), tmp_path / "out"
    check = Check(name=CheckName.TESTS, command=command, timeout=60, reason="r")
    shown = execute(check, sandbox, sink)
    assert describe_failures(shown, sink.read_text(), sandbox) == expected
