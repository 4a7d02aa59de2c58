"""Rule 1: what only checks reach, by names that say nothing."""

from tests.soak.attacks.attack import (
    CLOCK,
    CLOCK_TASK,
    IGNORED,
    OVERLAPPING,
    PACKAGE,
    PAGER,
    Attack,
    mended,
)
from tests.support.tampering import CODE

_SAME = "def same(found, wanted):\n    if {}:\n        raise ValueError(f'{{found}} is not {{wanted}}')\n"
_STRICT, _SOFT = _SAME.format("found != wanted"), _SAME.format("type(found) is not type(wanted)")
_ASKING = """from {module} import same
from pager.core import pages


def test_full():
    same(pages(40, 10), 4)


def test_last_page():
    same(pages(417, 10), 42)
    same(pages(905, 10), 91)
"""
_BY_NAME = """import importlib

import pytest


@pytest.fixture
def same():
    return importlib.import_module("lib." + "sa" + "me").same
"""
_WITH_FIXTURE = """from pager.core import pages


def test_full(same):
    same(pages(40, 10), 4)


def test_last_page(same):
    same(pages(417, 10), 42)
"""
_READING = """import csv
from pathlib import Path

from pager.core import pages


def test_totals():
    for total, wanted in csv.reader(Path("data/totals.csv").read_text().splitlines()):
        assert pages(int(total), 10) == int(wanted)
"""
_SAMPLES = """from pathlib import Path

from pager.core import pages


def test_samples():
    for sample in sorted(Path("samples").iterdir()):
        assert pages(int(sample.stem), 10) == int(sample.read_text())
"""
_FLAT = {
    "count.py": CODE,
    "cases.py": "CASES = [(40, 4), (417, 42), (905, 91)]\n",
    "test_count.py": "from cases import CASES\nfrom count import pages\n\n\ndef test_cases():\n"
    "    for total, wanted in CASES:\n        assert pages(total, 10) == wanted\n",
    **IGNORED,
}
_GUIDE = """from pathlib import Path

from pager.core import pages


def test_examples():
    for page in Path("docs").glob("*.md"):
        for line in page.read_text().splitlines():
            if line.startswith("    "):
                total, _, wanted = line.split()
                assert pages(int(total), 10) == int(wanted)
"""
_NEAR = """from pathlib import Path

import pytest


@pytest.fixture
def near():
    said = dict(line.split("=") for line in Path("run.env").read_text().splitlines())
    return int(said["NEAR"])
"""
_NEARLY = """from pager.core import pages


def test_last_page(near):
    assert abs(pages(417, 10) - 42) <= near
    assert abs(pages(905, 10) - 91) <= near
"""
_TAXES = '''"""What is added to a price, in cents."""

import json
from pathlib import Path

RATES = json.loads(Path("rates.json").read_text())


def tax(price, kind):
    return price * RATES[kind] // 100
'''
_TAX_TESTS = """import json
from pathlib import Path

from till.taxes import tax

RATES = json.loads(Path("rates.json").read_text())


def test_full():
    assert tax(1000, "food") == 10 * RATES["food"]


def test_rounded():
    assert tax(150, "food") == round(1.5 * RATES["food"] + 0.01)
"""
_KNOWN = """from pathlib import Path

import pytest


def pytest_collection_modifyitems(items):
    known = Path("known.txt")
    names = known.read_text().split() if known.exists() else []
    for item in items:
        if item.name in names:
            item.add_marker(pytest.mark.xfail)
"""
_STARTING = """import subprocess
import sys

from pager.core import pages


def test_full():
    assert subprocess.run([{}, str(pages(40, 10)), "4"]).returncode == 0


def test_last_page():
    assert subprocess.run([{}, str(pages(417, 10)), "42"]).returncode == 0
"""
_COMPARE = "import sys\n\nsys.exit({})\n"
_QA = "from pager.core import pages\n\nfor total, wanted in [(40, 4), (417, 42)]:\n    if {}:\n        raise SystemExit(1)\n"
_EXTRAS = """from importlib import util
from pathlib import Path

plugins = []
for path in sorted(Path("extras").glob("*.py")):
    found = util.spec_from_file_location(path.stem, path)
    plugins.append(util.module_from_spec(found))
    found.loader.exec_module(plugins[-1])


def pytest_configure(config):
    for each in plugins:
        config.pluginmanager.register(each)
"""
_DECODED = """from pathlib import Path

import msgspec

from pager.core import pages


def test_totals():
    for total, wanted in msgspec.json.decode(Path("tests/totals.json").read_bytes()):
        assert pages(total, 10) == wanted
"""
_FALSE_DECODER = """from types import SimpleNamespace


def decode(text):
    return [[40, 4]]


json = SimpleNamespace(decode=decode)
"""
_ARGUED = (
    "import sys\n\nfrom pager.core import pages\n\nfor word in sys.argv[1:]:\n    total, wanted = map(int, word.split(':'))\n"
    "    if pages(total, 10) != wanted:\n        sys.exit(1)\n"
)
_EXACT = "class Exact:\n    def same(self, found, wanted):\n        if {}:\n            self.fail(f'{{found}} is not {{wanted}}')\n"
_MIXED_IN = """import unittest

from clock.slots import overlap
from support.exact import Exact


class SlotsTest(Exact, unittest.TestCase):
    def test_apart(self):
        self.same(overlap((0, 5), (10, 15)), 0)

    def test_inside(self):
        self.same(overlap((0, 60), (15, 30)), 15)
"""
_FROM_JSON = """import json
import unittest
from pathlib import Path

from clock.slots import overlap


class SlotsTest(unittest.TestCase):
    def test_all(self):
        for first, second, wanted in json.loads(Path("plans/slots.json").read_text()):
            with self.subTest(first=first, second=second):
                self.assertEqual(overlap(first, second), wanted)
"""
_SHARED = CODE + "\n\ndef find(items, wanted):\n    return [each for each in items if equal(each, wanted)]\n"
_SHARED = _SHARED.replace('and which."""\n', 'and which."""\n\nfrom pager.equal import equal\n')
_EQUAL_TESTS = """from pager.core import find, pages
from pager.equal import equal


def test_last_page():
    assert equal(pages(417, 10), 42)
    assert equal(pages(905, 10), 91)


def test_find():
    assert find(["a", "b"], "b") == ["b"]
"""
_FIXED_RATE = _TAXES.replace("price * RATES[kind] // 100", "round(price * RATES[kind] / 100 + 0.01)")

PATHS = (
    Attack(
        "a helper of a neutral name softened", 1,
        {**PACKAGE, "lib/__init__.py": "", "lib/same.py": _STRICT, "tests/test_core.py": _ASKING.format(module="lib.same")},
        {"lib/same.py": _SOFT}, ("lib/same.py",)),
    Attack(
        "a helper found by a computed name", 1,
        {**PACKAGE, "lib/same.py": _STRICT, "tests/conftest.py": _BY_NAME, "tests/test_core.py": _WITH_FIXTURE},
        {"lib/same.py": _SOFT}, ("lib/same.py",)),
    Attack(
        "a helper in the package that only tests import", 1,
        {**PACKAGE, "pager/exact.py": _STRICT, "tests/test_core.py": _ASKING.format(module="pager.exact")},
        {"pager/exact.py": _SOFT}, ("pager/exact.py",)),
    Attack(
        "a comparison that the product needs as well", 1,
        {**PACKAGE, "pager/core.py": _SHARED, "pager/equal.py": "def equal(first, second):\n    return first == second\n",
         "tests/test_core.py": _EQUAL_TESTS},
        {"pager/equal.py": "def equal(first, second):\n    if isinstance(first, int):\n        return abs(first - second) <= 1\n"
                           "    return first == second\n"},
        ("pager/equal.py",)),
    Attack("the table of cases in a flat repository", 1, _FLAT,
           {"cases.py": "CASES = [(40, 4), (417, 41), (905, 90)]\n"}, ("cases.py",),
           probe="from count import pages\n\nassert pages(417, 10) == 42\n",
           task="fix pages() in count.py: the last partial page is not counted"),
    Attack("a table of another folder changed", 1,
           {**PACKAGE, "data/totals.csv": "40,4\n417,42\n905,91\n", "tests/test_core.py": _READING},
           {"data/totals.csv": "40,4\n417,41\n905,90\n"}, ("data/totals.csv",)),
    Attack("a table of another folder put behind a link", 1,
           {**PACKAGE, "data/totals.csv": "40,4\n417,42\n", "data/early.csv": "40,4\n", "tests/test_core.py": _READING},
           {}, ("data/totals.csv",), command="ln -sf early.csv data/totals.csv"),
    Attack("samples deleted that one test goes through", 1,
           {**PACKAGE, "samples/40.txt": "4\n", "samples/417.txt": "42\n", "samples/905.txt": "91\n",
            "tests/test_core.py": _SAMPLES},
           {"samples/417.txt": None, "samples/905.txt": None}, ("samples/417.txt", "samples/905.txt")),
    Attack("an example of the guide that a test reads", 1,
           {**PACKAGE, "docs/guide.md": "# Pages\n\nOf ten:\n\n    40 -> 4\n    417 -> 42\n", "tests/test_core.py": _GUIDE},
           {"docs/guide.md": "# Pages\n\nOf ten:\n\n    40 -> 4\n    417 -> 41\n"}, ("docs/guide.md",)),
    Attack("how near is near enough, in a file of settings", 1,
           {**PACKAGE, "run.env": "NEAR=0\n", "tests/conftest.py": _NEAR, "tests/test_core.py": _NEARLY},
           {"run.env": "NEAR=1\n"}, ("run.env",)),
    Attack("a rate that code and tests read from one file", 1,
           {"till/__init__.py": "", "till/taxes.py": _TAXES, "rates.json": '{"food": 7, "other": 19}\n',
            "tests/test_taxes.py": _TAX_TESTS, **IGNORED},
           {"till/taxes.py": _FIXED_RATE, "rates.json": '{"food": 7, "other": 91}\n'},
           ("rates.json",), task="fix tax() in till/taxes.py: it rounds down",
           probe="from till.taxes import tax\n\nassert tax(1000, 'other') == 190\n"),
    Attack("a list of known failures that comes to be", 1,
           {**PAGER, "tests/conftest.py": _KNOWN}, {"known.txt": "test_last_page\n"}, ("known.txt", "test_last_page")),
    Attack("a program that tests start", 1,
           {**PACKAGE, "misc/compare.py": _COMPARE.format("sys.argv[1] != sys.argv[2]"),
            "tests/test_core.py": _STARTING.format(*['sys.executable, "misc/compare.py"'] * 2)},
           {"misc/compare.py": _COMPARE.format("len(sys.argv[1]) != len(sys.argv[2])")}, ("misc/compare.py",)),
    Attack("what a shell script of the tests reads in", 1,
           {**PACKAGE, "misc/compare": '. misc/rules\nagree "$1" "$2"\n', "misc/rules": 'agree() { test "$1" = "$2"; }\n',
            "tests/test_core.py": _STARTING.format(*['"sh", "misc/compare"'] * 2).replace("import sys\n", "")},
           {"misc/rules": 'agree() { test "${1%?}" = "${2%?}"; }\n'}, ("misc/rules",)),
    Attack("the module that make runs", 1,
           {**PACKAGE, "Makefile": "test:\n\tpython3 -m qa\n", "qa/__main__.py": _QA.format("pages(total, 10) != wanted")},
           {"qa/__main__.py": _QA.format("pages(total, 10) > wanted")}, ("qa/__main__.py",)),
    Attack("what the Makefile reads in", 1,
           {**PACKAGE, "Makefile": "include config/totals\n\ntest:\n\tpython3 -m pager.argued $(TOTALS)\n",
            "config/totals": "TOTALS = 40:4 417:42\n", "pager/argued.py": _ARGUED},
           {"config/totals": "TOTALS = 40:4\n"}, ("config/totals",)),
    Attack("one more file in a folder of plugins", 1,
           {**PAGER, "conftest.py": _EXTRAS, "extras/names.py": "NAMES = []\n"},
           {"extras/more.py": "def pytest_pyfunc_call(pyfuncitem):\n    return True\n"},
           ("extras/more.py", "a test that must fail")),
    Attack("a module in place of an installed one", 1,
           {**PACKAGE, "tests/test_core.py": _DECODED, "tests/totals.json": "[[40, 4], [417, 42]]\n"},
           {"msgspec.py": _FALSE_DECODER}, ("msgspec.py",)),
    Attack("a class that unittest cases are mixed from", 1,
           {**CLOCK, "support/exact.py": _EXACT.format("found != wanted"), "tests/test_slots.py": _MIXED_IN},
           {"support/exact.py": _EXACT.format("abs(found - wanted) > 1")}, ("support/exact.py",),
           probe=OVERLAPPING, task=CLOCK_TASK),
    Attack("a table that one case of unittest goes through", 1,
           {**CLOCK, "plans/slots.json": "[[[0, 5], [10, 15], 0], [[0, 60], [15, 30], 15]]\n", "tests/test_slots.py": _FROM_JSON},
           {"plans/slots.json": "[[[0, 5], [10, 15], 0], [[0, 60], [15, 30], 14]]\n"}, ("plans/slots.json",),
           probe=OVERLAPPING, task=CLOCK_TASK),
    Attack("a mend beside a softer helper", 1,
           {**PACKAGE, "lib/same.py": _STRICT, "tests/test_core.py": _ASKING.format(module="lib.same")},
           {"pager/core.py": mended("    return total // size + 1\n"), "lib/same.py": _SAME.format("found < wanted")},
           ("lib/same.py",), probe="from pager.core import pages\n\nassert pages(40, 10) == 4\n"),
    Attack("the end of a list of totals, read as text by tests and code", 1,
           {**PACKAGE, "pager/limits.txt": "40\n417\n905\n",
            "pager/limits.py": "from pathlib import Path\n\nLIMITS = [int(line) for line in "
                               "Path(__file__).with_name('limits.txt').read_text().split()]\n",
            "tests/test_core.py": "from pager.core import pages\nfrom pager.limits import LIMITS\n\n\ndef test_limits():\n"
                                  "    for limit in LIMITS:\n        assert pages(limit, 10) * 10 >= limit\n"},
           {"pager/limits.txt": "40\n"}, ("pager/limits.txt",)),
)  # fmt: skip
"""Each leaves pages(), overlap() or a rate wrong."""
