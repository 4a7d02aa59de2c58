"""Tests that never end: they count as the failing ones, and are repaired like them."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentflow.core.errors import ModelRejected
from agentflow.repair.bench import DRIVER, Bench, SearchWatch
from agentflow.repair.candidates import list_candidates
from agentflow.repair.clues import localise
from agentflow.repair.search import Search, trace_tests
from agentflow.repair.sources import read_sources
from agentflow.repair.target import RepairRunner, Target
from tests.support.boxes import boxed

ENDLESS = """def find(values, wanted):
    low, high = 0, len(values)
    while low < high:
        mid = (low + high) // 2
        if values[mid] < wanted:
            low = mid
        else:
            high = mid
    return low
"""
BUSY = "import time\n\n\n" + ENDLESS.replace(
    "    return low",
    "    began = time.process_time()\n"
    "    while wanted == 9 and low == 4 and time.process_time() < began + 0.15:\n        pass\n"
    "    return low",
)
"""The same, and it takes longer once it is mended than an edit may at first."""
TESTS = """import unittest

from search import find


class SearchTest(unittest.TestCase):
    def test_first(self):
        self.assertEqual(find([2, 4, 6, 8], 1), 0)

    def test_find(self):
        self.assertEqual([find([2, 4, 6, 8], each) for each in (1, 2, 3, 4, 7, 8, 9)], [0, 0, 1, 1, 3, 3, 4])
"""
HANGING = "test_search.SearchTest.test_find"


def open_bench(root: Path, code: str, seconds: float) -> Bench:
    """Return a repository whose check ran into its time limit, to be watched for so long."""
    (root / "tests").mkdir()
    (root / "search.py").write_text(code)
    (root / "tests/test_search.py").write_text(TESTS)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    target = Target(
        interpreter=sys.executable,
        runner=RepairRunner.UNITTEST,
        arguments=("discover", "-s", "tests"),
        is_module=True,
        env={},
        hangs=True,
    )
    return Bench(
        sandbox=boxed(root),
        sources=read_sources(root, None),
        target=target,
        places=(".",),
        watch=SearchWatch(until=time.monotonic() + seconds),
    )


def test_a_test_that_does_not_end_is_red_and_says_where_it_was(tmp_path: Path) -> None:
    bench = open_bench(tmp_path, BUSY, 16)
    seen = trace_tests(bench)
    assert seen.reds == {HANGING}
    assert seen.messages[HANGING].startswith("did not end within ")
    path, line = seen.frames[HANGING][-1]
    assert (path, line in range(6, 12)) == ("search.py", True)
    places = localise(bench.sources, seen)
    assert "search.py" in {place.path for place in places}
    edits = [each for each in list_candidates(bench.sources, places, seen) if "`mid + 1`" in each.title]
    patient = bench.replace(watch=SearchWatch())
    found = Search(patient, []).run(seen, tuple(edits))
    assert "low = mid + 1" in found.texts["search.py"].decode()


def test_outcomes_alone_are_known_without_the_lines(tmp_path: Path) -> None:
    bench = open_bench(tmp_path, ENDLESS.replace("low = mid\n", "low = mid + 2\n"), 60)
    whole, bare = trace_tests(bench), trace_tests(bench, is_traced=False)
    assert bare.outcomes == whole.outcomes
    assert whole.lines[HANGING]
    assert not any(bare.lines.values())


def test_a_check_that_was_only_slow_is_told_from_one_that_hangs(tmp_path: Path) -> None:
    bench = open_bench(tmp_path, ENDLESS.replace("low = mid\n", "low = mid + 1\n"), 60)
    with pytest.raises(ModelRejected, match="each of them ends: give them more time with `timeouts`"):
        trace_tests(bench)


def test_tests_that_cannot_be_loaded_in_time_are_said_to_be_late_whatever_they_print(tmp_path: Path) -> None:
    code = "import time\n\nprint('FFEE', flush=True)\ntime.sleep(60)\n"
    with pytest.raises(ModelRejected, match=r"cannot be run in a copy: they did not end within \d s"):
        trace_tests(open_bench(tmp_path, code, 2))


def test_what_a_test_asks_to_sleep_is_known_whatever_time_it_takes(tmp_path: Path) -> None:
    code = (
        "from time import sleep\n\n\ndef find(values, wanted):\n    sleep(0.01)\n    return 5 - values[0]\n"
    )
    seen = trace_tests(open_bench(tmp_path, code, 60))
    assert {test: round(seconds, 3) for test, seconds in seen.sleeps.items()} == {
        HANGING: 0.07,
        HANGING.replace("find", "first"): 0.01,
    }


WAITING = """import runpy, sys, time
from time import sleep
driver = runpy.run_path(sys.argv[1])
driver["shorten_waits"]()
began = time.monotonic(), time.time(), time.perf_counter()
time.sleep(300)
sleep(300)
print([round(now - then) for now, then in zip((time.monotonic(), time.time(), time.perf_counter()), began)])
"""


def test_sleeps_that_are_shortened_take_their_time_by_every_clock() -> None:
    words = (sys.executable, "-c", WAITING, str(DRIVER.parent.with_name("sandbox") / "sealed.py"))
    done = subprocess.run(words, capture_output=True, check=True, timeout=100)
    assert done.stdout.decode() == "[600, 600, 600]\n"
