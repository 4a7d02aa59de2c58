"""Tests that fail for want of a module, before a task and after it."""

from pathlib import Path

import pytest

from tests.support.attempts import Attempt

SLUGS = """def make_slug(text):
    import no_such_distribution

    return no_such_distribution.to_ascii(text)


def cut(text, most):
    return text[: most - 1]
"""
CUT = SLUGS.replace("most - 1", "most")
LAZY = """import subprocess
import sys
import unittest

from slugs import cut, make_slug


class TestSlugs(unittest.TestCase):
    def test_slug(self):
        self.assertEqual(make_slug("a"), "a")

    def test_upper(self):
        self.assertEqual(make_slug("A"), "a")

    def test_words(self):
        self.assertEqual(make_slug("a b"), "a-b")

    def test_program(self):
        subprocess.run([sys.executable, "-c", "import no_such_distribution"], check=True, capture_output=True)
"""
HELPED = """from slugs import cut

from tests import unittest


class TestCut(unittest.TestCase):
    def test_whole(self):
        self.assertEqual(cut("abc", 4), "abc")
"""
PLAIN = """import unittest


class TestSum(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(sum([1, 2]), 3)
"""
LACKING = {
    "a module that the code imports as it runs": {"slugs.py": SLUGS, "tests/test_slugs.py": LAZY},
    "the package of the tests": {
        "slugs.py": SLUGS,
        "tests/test_slugs.py": HELPED,
        "tests/test_other.py": PLAIN,
    },
    "one module of unittest": {
        "slugs.py": SLUGS,
        "tests/__init__.py": "",
        "tests/test_slugs.py": f"import no_such_distribution\n{LAZY}",
        "tests/test_other.py": PLAIN,
        ".claude/test-command": "python3 -m unittest discover -v\n",
    },
}
MENDINGS = {
    "alone": (["unproved"], {"slugs.py": CUT}),
    "with a test": (
        [],
        {
            "slugs.py": CUT,
            "tests/test_cut.py": (
                "import unittest\n\nfrom slugs import cut\n\n\nclass TestCut(unittest.TestCase):\n"
                "    def test_cut(self):\n        self.assertEqual(cut('abc', 2), 'ab')\n"
            ),
        },
    ),
}
CUT_TASK = "fix cut() in slugs.py: it cuts one letter too many"


@pytest.mark.parametrize("mending", MENDINGS)
@pytest.mark.parametrize("lacking", LACKING)
def test_tests_that_fail_for_want_of_a_module_are_no_targets(
    tmp_path: Path, lacking: str, mending: str
) -> None:
    caveats, files = MENDINGS[mending]
    attempt = Attempt(tmp_path, LACKING[lacking])
    if ".claude/test-command" in LACKING[lacking]:
        attempt.repo.run("trust", "--yes")
    done = attempt.run(CUT_TASK, files, "--json")
    assert done.code == 4, done.out
    assert {*done.json["caveats"]} - {"already_red"} == {"check_not_run:tests", *caveats}
    assert len(attempt.repo.runs("implementer")) == 1
    (warned, *_) = [one["message"] for one in attempt.repo.events("Warned")]
    assert "tests cannot run as a whole here: " in warned or "tests cannot run here: " in warned
    assert attempt.repo.run("verify", done.json["task_id"]).code == 0


STILL_WANTED = {
    "a module of the project": ("from slugs_plus import cut\n", f"{CUT_TASK}; add slugs_plus.py"),
    "a part of the project": ("from slug.plus import cut\n", CUT_TASK),
    "what a module of the project no longer has": ("from slugs import cutter\n", CUT_TASK),
}


@pytest.mark.parametrize("wanted", STILL_WANTED)
def test_a_test_that_wants_a_module_of_the_project_is_still_a_target(tmp_path: Path, wanted: str) -> None:
    line, task = STILL_WANTED[wanted]
    text = f"{line}\n\ndef test_cut():\n    assert cut('abc', 2) == 'ab'\n"
    base = {"slugs.py": SLUGS, "slug/__init__.py": "", "tests/test_cut.py": text}
    done = Attempt(tmp_path, base).run(task, {"slugs.py": CUT}, "--json", "--max-iterations", "1")
    assert done.code in {1, 3}, done.out
