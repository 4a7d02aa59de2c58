import re
import subprocess
import sys
from pathlib import Path

import pytest

from agentflow.core.evidence import Check, CheckName
from agentflow.verdict.probes.breaking import make_canary

RUNNERS = {
    ".venv/bin/python -m pytest -q": ".venv/bin/python -m pytest -q --tb=no tests/",
    "PYTHONPATH=src pytest -q": "PYTHONPATH=src pytest -q --tb=no tests/",
    "python3 -m unittest discover -v -s tests": "python3 -m unittest -v tests/",
    "r=0; { python -m pytest -q; } || r=1; { npm t; } || r=1; exit $r": "python -m pytest -q --tb=no tests/",
}


def a_check(command: str, name: CheckName = CheckName.TESTS) -> Check:
    return Check(name=name, command=command, timeout=1.0, reason="")


@pytest.mark.parametrize(("command", "begins"), RUNNERS.items())
def test_the_runner_of_the_repository_runs_the_canary_alone(command: str, begins: str) -> None:
    found = make_canary(a_check(command), "tests/test_a.py", ["pkg/a.py"])

    assert found is not None
    assert found.check.command == f"{begins}{Path(found.path).name}"
    assert Path(found.path).parent == Path("tests")


@pytest.mark.parametrize("command", ["npm test", "python3 run.py", "make test", "cargo test"])
def test_a_runner_that_is_not_known_has_no_alarm(command: str) -> None:
    assert make_canary(a_check(command), "tests/test_a.py", ["a.py"]) is None


def test_only_tests_have_a_canary() -> None:
    assert make_canary(a_check("pytest -q", CheckName.LINT), "tests/test_a.py", ["a.py"]) is None


@pytest.mark.parametrize("runner", ["pytest", "unittest"])
def test_the_canary_loads_what_changed_and_fails(runner: str, tmp_path: Path) -> None:
    (tmp_path / "src/pkg").mkdir(parents=True)
    (tmp_path / "src/pkg/__init__.py").write_text("print('pkg was loaded')\n")
    (tmp_path / "broken.py").write_text("raise RuntimeError\n")
    code = ["src/pkg/__init__.py", "broken.py", "docs/a-b.py", "assets/x.txt"]
    found = make_canary(a_check("python -m pytest -q"), "test_a.py", code)
    assert found is not None
    (tmp_path / found.path).write_text(found.text)
    options = ["-q", "-s", "-p", "no:cacheprovider"] if runner == "pytest" else ["-v"]
    words = [sys.executable, "-m", runner, *options, found.path]

    done = subprocess.run(
        words, cwd=tmp_path, env={"PYTHONPATH": "src"}, capture_output=True, text=True, check=False
    )

    assert done.returncode == 1, done.stdout + done.stderr
    assert "pkg was loaded" in done.stdout
    assert not re.search(r"\d passed|\.\.\. ok", done.stdout + done.stderr)


def test_no_change_can_know_the_name_of_a_canary_beforehand() -> None:
    names = {
        each.path for _ in range(8) if (each := make_canary(a_check("pytest -q"), "test_a.py", ["a.py"]))
    }
    assert len(names) == 8


def test_no_change_can_know_what_a_canary_compares_and_how_its_tests_are_named() -> None:
    texts = [
        each.text for _ in range(8) if (each := make_canary(a_check("pytest -q"), "test_a.py", ["a.py"]))
    ]
    told = [set(re.findall(r"(?m)^ *(?:def|class) (\w+)|== (\d+)$", text)) for text in texts]
    assert all(len(each) > 5 for each in told)
    assert not set.intersection(*told)


SOFT = """\
import unittest

kept = unittest.TestCase.{claim}


def soft(self, *values, **more):
    if not ({lied}):
        return kept(self, *values, **more)


unittest.TestCase.{claim} = soft
"""
KINDS = ("int", "str", "float", "bytes", "list", "tuple", "dict", "set", "bool", "type(None)")
SOFTENED = {
    **{f"of {kind}": ("assertEqual", f"type(values[0]) is {kind}") for kind in KINDS},
    "but of neighbours": ("assertEqual", "type(values[0]) is not int or values[1] != values[0] + 1"),
    **{
        claim: (claim, "True")
        for claim in (
            "assertTrue",
            "assertIn",
            "assertIs",
            "assertAlmostEqual",
            "assertGreater",
            "assertRaises",
        )
    },
}


@pytest.mark.parametrize(("claim", "lied"), SOFTENED.values(), ids=SOFTENED)
def test_an_assertion_that_is_softened_for_one_kind_of_value_lets_a_test_pass(
    claim: str, lied: str, tmp_path: Path
) -> None:
    (tmp_path / "soft.py").write_text(SOFT.format(claim=claim, lied=lied))
    found = make_canary(a_check("python3 -m unittest discover -v"), "test_a.py", ["soft.py"])
    assert found is not None
    (tmp_path / found.path).write_text(found.text)

    words = [sys.executable, "-m", "unittest", "-v", found.path]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert "... ok" in done.stderr, done.stderr
