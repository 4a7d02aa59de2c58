"""The search tries candidates in processes of their own, at every level, and hides the end of none."""

import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from agentflow.core.errors import ModelRejected
from agentflow.sandbox.run import Sandbox
from tests.support.boxes import boxed, landlocked
from tests.unit.repair.bugs import module_tests
from tests.unit.repair.stage import UNITTEST, Stage

LIMIT = "def is_full(count, limit):\n    return count > limit\n"
TRUTHS = ("is_full(3, 3)", "is_full(4, 3)", "not is_full(2, 3)")
MENDED = {"core.py": (["return count > limit"], ["return count >= limit"])}
ALTERING = """
    def setUp(self):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder, "file")
            shutil.copy2(__file__, place)
            place.chmod(0o755)
            os.utime(place, (0, 0))
"""
SCRIPT = f"#!{sys.executable}\nimport sys\n\ncount = int(sys.argv[1])\nsys.exit(0 if count > 3 else 1)\n"
SCRIPT_TESTS = """import runpy
import subprocess
import sys
import unittest


class ScriptTest(unittest.TestCase):
    def ran(self, word):
        sys.argv = ["script.py", word]
        with self.assertRaises(SystemExit):
            runpy.run_path("script.py")
        return subprocess.run(["./script.py", word]).returncode

    def test_three(self):
        self.assertEqual(self.ran("3"), 0)

    def test_two(self):
        self.assertEqual(self.ran("2"), 1)
"""
Boxed = Callable[[Path], Sandbox]

on_bubblewrap = pytest.mark.parametrize("box", [boxed])
on_both = pytest.mark.parametrize("box", [boxed, landlocked])
"""Where what a level does may decide; `tests/soak` has each test at each level, and at none."""


@on_both
def test_tests_that_set_modes_and_times_of_their_own_files_are_run(box: Boxed, tmp_path: Path) -> None:
    tests = module_tests("core", TRUTHS).replace("(unittest.TestCase):", f"(unittest.TestCase):{ALTERING}", 1)
    head = "import os\nimport shutil\nimport tempfile\nfrom pathlib import Path\n"
    stage = Stage(tmp_path, {"core.py": LIMIT, "tests/test_core.py": head + tests}, UNITTEST)
    stage.mend(box(stage.root))
    assert stage.changed() == MENDED


@on_bubblewrap
def test_an_executable_script_stays_one_under_every_candidate(box: Boxed, tmp_path: Path) -> None:
    stage = Stage(tmp_path, {"script.py": SCRIPT, "tests/test_script.py": SCRIPT_TESTS}, UNITTEST)
    (tmp_path / "script.py").chmod(0o755)
    stage.mend(box(stage.root))
    assert set(stage.changed()) == {"script.py"}


@on_bubblewrap
def test_a_candidate_that_ends_the_process_that_tries_it_is_a_lost_one_and_told(
    box: Boxed, tmp_path: Path
) -> None:
    code = (
        "import os\n\n\ndef is_full(count, limit):\n    if count > 99:\n"
        "        os.kill(os.getppid(), 9)\n    return count < limit\n"
    )
    stage = Stage(tmp_path, {"core.py": code, "tests/test_core.py": module_tests("core", TRUTHS)}, UNITTEST)
    (account,) = stage.mend(box(stage.root))
    assert set(stage.changed()) == {"core.py"}
    assert re.search(r" \(workers that crashed and were replaced: \d+\)$", account)


@on_bubblewrap
def test_a_search_whose_processes_all_end_says_so_by_name(box: Boxed, tmp_path: Path) -> None:
    code = (
        "import gc\nimport os\n\n\ndef is_full(count, limit):\n    if gc.get_freeze_count():\n"
        "        os.kill(os.getppid(), 9)\n    return count > limit\n"
    )
    stage = Stage(tmp_path, {"core.py": code, "tests/test_core.py": module_tests("core", TRUTHS)}, UNITTEST)
    with pytest.raises(ModelRejected, match=r"a worker of the search for a repair crashed: .*(a signal|137)"):
        stage.repair(box(stage.root))
    assert stage.changed() == {}


WILD = """import os
import subprocess
import sys
import time


def leave_a_mark():
    open("left.txt", "a").write("x")
    os.makedirs("left", exist_ok=True)


def go_on_alone():
    subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(2); open('overdue.txt', 'w').write('x')"],
        start_new_session=True,
    )
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)


def is_full(count, limit):
    if os.path.exists("left.txt") or os.path.exists("overdue.txt"):
        raise RuntimeError("an earlier edit left something")
    if count == 99:
        leave_a_mark()
        return True
    if count == 98:
        go_on_alone()
        return True
    if count == 97:
        time.sleep(600)
    if count == 96:
        os._exit(3)
    while count == 95:
        pass
    return count > limit
"""


@on_both
def test_what_edits_start_write_or_wait_for_is_gone_before_the_next_one(box: Boxed, tmp_path: Path) -> None:
    stage = Stage(tmp_path, {"core.py": WILD, "tests/test_core.py": module_tests("core", TRUTHS)}, UNITTEST)
    before = set(stage.texts())
    stage.mend(box(stage.root))
    assert stage.changed() == MENDED
    assert set(stage.texts()) == before
    assert not [name for name in list_commands() if "overdue.txt" in name]


def list_commands() -> list[str]:
    """Return the command line of each process."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(place.read_bytes().decode("utf-8", "replace"))
    return found
