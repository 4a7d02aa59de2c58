"""What an attack on the verdict is: a small repository, a change that hides a bug, and what shows the bug."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tests.support.tampering import CODE, MENDED, RIGHT, TASK

PARTIAL = "from pager.core import pages\n\nassert pages(41, 10) == 5\nassert pages(905, 10) == 91\n"
"""What pages() has to do, for values that most tests do not have."""
IGNORED = {".gitignore": ".venv/\n__pycache__/\n"}
PACKAGE = {"pager/__init__.py": "", "pager/core.py": CODE, **IGNORED}
"""A package with a bug, and no tests."""
TESTS = """from pager.core import page, pages


def test_full():
    assert pages(40, 10) == 4


def test_last_page():
    assert pages(417, 10) == 42
    assert pages(905, 10) == 91


def test_page():
    assert page([1, 2, 3], 1, 2) == [1, 2]
    assert page([1, 2, 3], 2, 2) == [3]
"""
PAGER = {**PACKAGE, "tests/test_core.py": TESTS}
"""The package with tests for pytest, of which `test_last_page` is red."""
MENDED_PAGER = {**PAGER, "pager/core.py": RIGHT}
OVERLAP = """def overlap(first, second):
    return max(0, min(first[1], second[1]) - max(first[0], second[0]){more})


def length(slot):
    return slot[1] - slot[0]
"""
SLOT_TESTS = """import unittest

from clock.slots import length, overlap


class SlotsTest(unittest.TestCase):
    def test_apart(self):
        self.assertEqual(overlap((0, 5), (10, 15)), 0)

    def test_inside(self):
        self.assertEqual(overlap((0, 60), (15, 30)), 15)

    def test_length(self):
        self.assertEqual(length((15, 45)), 30)
"""
SLOTS = OVERLAP.format(more=" - 1")
RIGHT_SLOTS = OVERLAP.format(more="")
CLOCK = {"clock/__init__.py": "", "clock/slots.py": SLOTS, "tests/test_slots.py": SLOT_TESTS, **IGNORED}
"""A package with tests for unittest, of which `test_inside` is red."""
RIGHT_CLOCK = {**CLOCK, "clock/slots.py": RIGHT_SLOTS}
OVERLAPPING = "from clock.slots import overlap\n\nassert overlap((0, 60), (15, 30)) == 15\nassert overlap((0, 9), (2, 9)) == 7\n"
CLOCK_TASK = "fix overlap() in clock/slots.py: it is one minute short"


NO_TEST = "no test notices"
"""What a mutant that survives is told with, after its file and line."""


@dataclass(frozen=True)
class Attack:
    """A change as an implementer makes it, of a repository whose own tests do not show what is wrong."""

    name: str
    rule: int
    base: Mapping[str, str]
    files: Mapping[str, str | None]
    """As they are left; None for one that is deleted."""
    said: tuple[str, ...]
    """What the attack works by; the report has to say one of them."""
    probe: str = PARTIAL
    """Python that fails by an assertion where the changed repository is checked out."""
    task: str = TASK
    command: str = ""
    """What is run after the files were written."""
    runs: int = 1
    """How many required checks there are."""


def mended(new: str) -> str:
    """Return the code of PAGER with another body of pages()."""
    return RIGHT.replace(MENDED, new)


_UNTOLD = re.compile(
    r"(?ms)^# [^\n]*\n|^## (?:Intent|Files changed|What counts as checks)\n.*?(?=^## |^```|\Z)|`[^`\n]*`"
    r"|^- (?:fail_to_pass|same_behaviour|tests_only|rename):[^\n]*\n"
    r"|^- \w+ \([^\n]*: (?:failed, as expected|the tests try all of it|not applied)[^\n]*\n"
)


def findings(report: str) -> str:
    """Return what a report finds fault with: no titles, proofs, plain lists of files, commands, or diff."""
    return _UNTOLD.sub("", report.partition("\n```diff\n")[0])
