"""Changes of every kind that a week of work on ordinary repositories brings."""

from tests.soak.honest.entries import Edit, Entry, Put
from tests.soak.honest.larger import RESOURCES, SRC
from tests.soak.honest.repositories import COMMAND, FLAT, INSIDE, UNITTEST

_EITHER = frozenset({0, 4})
_CAVEAT = frozenset({4})

EVERYDAY: tuple[Entry, ...] = (
    Entry("a guard clause", "feature", FLAT, "shorten() in slug.py should refuse a length below zero",
          (Edit("slug.py", "    result = []\n", '    if length < 0:\n        raise ValueError("length must not be negative")\n    result = []\n'),
           Edit("test_slug.py", "\n\ndef test_initials", '\n\ndef test_no_room():\n    assert shorten("a", 0) == ""\n    with pytest.raises(ValueError, match="negative"):\n        shorten("a", -1)\n\n\ndef test_initials'),
           Edit("test_slug.py", "from slug", "import pytest\n\nfrom slug"))),
    Entry("a guard for a type", "feature", FLAT, "slugify() in slug.py should raise a TypeError that says what it got, unless it gets a str",
          (Edit("slug.py", "    # strip", '    if not isinstance(title, str):\n        raise TypeError(f"a title is a str, not {type(title).__name__}")\n    # strip'),
           Edit("test_slug.py", "\n\ndef test_separator", '\n\ndef test_bytes():\n    with pytest.raises(TypeError, match="a str, not bytes"):\n        slugify(b"a")\n\n\ndef test_separator'),
           Edit("test_slug.py", "from slug", "import pytest\n\nfrom slug"))),
    Entry("a loop with an early return", "refactoring", RESOURCES.but(
              Edit("weather/stations.py", "def names", 'def highest():\n    """Return the name of the highest station."""\n    found = None\n'
                   '    for name in names():\n        if found is None or station(name)["height"] > station(found)["height"]:\n            found = name\n    return found\n\n\ndef names'),
              Edit("tests/test_stations.py", "import station\n", "import highest, station\n"),
              Edit("tests/test_stations.py", "== 1222\n", '== 1222\n\n\ndef test_highest():\n    assert highest() == "finse"\n')),
          "simplify highest() in weather/stations.py with max()",
          (Edit("weather/stations.py", '    found = None\n    for name in names():\n        if found is None or station(name)["height"] > station(found)["height"]:\n            found = name\n    return found\n',
                '    return max(names(), key=lambda name: station(name)["height"])\n'),), ends=_EITHER, caveat="unproved"),
    Entry("a log line with lazy arguments and a test", "log line", RESOURCES, "report() in weather/report.py should warn where there are no readings, and say so instead of a temperature",
          (Edit("weather/report.py", "from pathlib import Path\n", "import logging\nfrom pathlib import Path\n"),
           Edit("weather/report.py", "_TEMPLATE = ", "_log = logging.getLogger(__name__)\n_TEMPLATE = "),
           Edit("weather/report.py", "    warmest = celsius", '    if not readings:\n        _log.warning("no readings of %s", name)\n        return f"{known[\'title\']}: no readings\\n"\n    warmest = celsius'),
           Edit("tests/test_report.py", "\n\ndef test_celsius", '\n\ndef test_no_readings(caplog):\n    assert report("finse", []) == "Finse: no readings\\n"\n'
                '    assert "no readings of finse" in caplog.text\n\n\ndef test_celsius'))),
    Entry("retries with a test", "feature", UNITTEST, "add bank/again.py: retry(call, times) calls until there is no OSError",
          (Put("bank/again.py", '"""Calls that are tried again."""\n\n\ndef retry(call, times=3):\n    """Return what a call gives, tried so many times."""\n'
               "    for left in range(times - 1, -1, -1):\n        try:\n            return call()\n        except OSError:\n            if not left:\n                raise\n"),
           Put("tests/test_again.py", "import unittest\n\nfrom bank.again import retry\n\n\nclass RetryTest(unittest.TestCase):\n    def setUp(self):\n        self.calls = 0\n\n"
               "    def fails(self, times):\n        def call():\n            self.calls += 1\n            if self.calls <= times:\n                raise OSError\n            return self.calls\n\n        return call\n\n"
               "    def test_third_time(self):\n        self.assertEqual(retry(self.fails(2)), 3)\n\n    def test_never(self):\n        with self.assertRaises(OSError):\n            retry(self.fails(9), times=2)\n        self.assertEqual(self.calls, 2)\n"))),
    Entry("a default from the settings", "feature", SRC, "Line.count in src/invoice/core.py is at least one: total() gives a default for counts of zero by lines_default in defaults.toml",
          (Edit("src/invoice/defaults.toml", "days_to_pay = 14\n", "days_to_pay = 14\nlines_default = 2\n"),
           Edit("src/invoice/core.py", "line.cents * line.count\n", 'line.cents * (line.count or setting("lines_default"))\n'),
           Edit("tests/test_core.py", "\n\ndef test_negative", '\n\ndef test_default_count():\n    assert subtotal([Line("tea", 300, 0)]) == 600\n\n\ndef test_negative'))),
    Entry("a flag of the environment, tested both ways", "feature", FLAT, "SLUG_KEEP_CASE=1 lets slugify() in slug.py keep capitals",
          (Edit("slug.py", "import re\n", "import os\nimport re\n"),
           Edit("slug.py", '    words = re.findall(r"[a-z0-9]+", text.lower())\n', '    if os.environ.get("SLUG_KEEP_CASE") != "1":\n        text = text.lower()\n    words = re.findall(r"[A-Za-z0-9]+", text)\n'),
           Edit("test_slug.py", "\n\ndef test_separator", '\n\ndef test_case_is_kept(monkeypatch):\n    monkeypatch.setenv("SLUG_KEEP_CASE", "1")\n    assert slugify("A Title") == "A-Title"\n'
                '    monkeypatch.setenv("SLUG_KEEP_CASE", "0")\n    assert slugify("A Title") == "a-title"\n\n\ndef test_separator'))),
    Entry("an error message says more, with a new test", "behaviour", UNITTEST, "say in the error of withdraw() how much there is",
          (Edit("bank/account.py", 'raise ValueError("not enough money")', 'raise ValueError(f"not enough money: {self.balance} of {amount}")'),
           Edit("tests/test_account.py", "\n\nif __name__", '\n    def test_how_much(self):\n        with self.assertRaisesRegex(ValueError, "not enough money: 10 of 11"):\n            self.account.withdraw(11)\n\n\nif __name__'))),
    Entry("the same results, faster", "performance", FLAT, "compile the pattern of slugify() in slug.py once",
          (Edit("slug.py", 'SEPARATOR = "-"\n', 'SEPARATOR = "-"\n_WORD = re.compile(r"[a-z0-9]+")\n'),
           Edit("slug.py", 're.findall(r"[a-z0-9]+", text.lower())', "_WORD.findall(text.lower())")), ends=_EITHER, caveat="unproved"),
    Entry("a readme gains a block of code", "docs", SRC, "show in README.md how to sum lines",
          (Edit("README.md", "Sums of invoices.\n", 'Sums of invoices.\n\n```python\nfrom invoice import Line, total\n\ntotal([Line("tea", 300), Line("cake", 450, 2)])  # 1440\n```\n'),)),
    Entry("a step in CI", "repository", SRC, "run ruff in .github/workflows/ci.yml as well",
          (Edit(".github/workflows/ci.yml", "      - run: pytest\n", "      - run: pytest\n      - run: ruff check\n"),), ends=_EITHER, caveat="unproved"),
    Entry("a lock file is written anew", "dependency", SRC.but(Put("requirements.lock", "tomli==2.0.1 \\\n    --hash=sha256:" + "a" * 64 + "\n")), "update tomli in requirements.lock",
          (Put("requirements.lock", "tomli==2.0.2 \\\n    --hash=sha256:" + "b" * 64 + "\n"),), ends=_EITHER, caveat="unproved"),
    Entry("a snapshot is written anew", "snapshot", RESOURCES, "write 'max' instead of 'warmest' in reports",
          (Edit("weather/templates/report.txt", "warmest: {", "max: {"), Edit("tests/expected/bergen.txt", "warmest: 10", "max: 10")), ends=frozenset({75})),
    Entry("an option with a default, tested", "feature", COMMAND, "todo list --limit N prints the first N items",
          (Edit("todo/cli.py", '    commands.add_parser("list")\n', '    listing = commands.add_parser("list")\n    listing.add_argument("--limit", type=int, default=None)\n'),
           Edit("todo/cli.py", "for item in items:", "for item in items[: given.limit]:"),
           Edit("tests/test_cli.py", "\n\ndef test_command", '\n\ndef test_limit(kept, capsys):\n    main(["--file", kept, "add", "milk"])\n    main(["--file", kept, "add", "tea"])\n'
                '    main(["--file", kept, "list", "--limit", "1"])\n    assert capsys.readouterr().out == "milk\\n"\n\n\ndef test_command')), ends=frozenset({4}), caveat="unproved"),
    Entry("a function is deprecated", "deprecation", FLAT, "deprecate initials() in slug.py in favour of letters(), with a warning",
          (Edit("slug.py", 'def initials(slug):\n    letters = []\n    for word in slug.split(SEPARATOR):\n        letters.append(word[0])\n    return "".join(letters)\n',
                'def letters(slug):\n    """Return the first letters of the words."""\n    return "".join(word[0] for word in slug.split(SEPARATOR))\n\n\n'
                'def initials(slug):\n    """Return the same as letters(), which is to be used instead."""\n    warnings.warn("use letters()", DeprecationWarning, stacklevel=2)\n    return letters(slug)\n'),
           Edit("slug.py", "import unicodedata\n", "import unicodedata\nimport warnings\n"),
           Edit("test_slug.py", "import initials, shorten", "import initials, letters, shorten"), Edit("test_slug.py", "from slug", "import pytest\n\nfrom slug"),
           Edit("test_slug.py", '== "cb"\n', '== "cb"\n\n\ndef test_letters():\n    assert letters("creme-brulee") == "cb"\n\n\ndef test_initials_are_deprecated():\n'
                '    with pytest.warns(DeprecationWarning, match="use letters"):\n        assert initials("a-b") == "ab"\n'))),
    Entry("a test moves to another file", "test only", INSIDE, "move test_circle to shapes/tests/test_circle.py",
          (Edit("shapes/tests/test_area.py", "\n\ndef test_circle():\n    assert Circle(2).area() == pytest.approx(12.566, abs=0.001)\n", ""),
           Edit("shapes/tests/test_area.py", "import Circle, Rectangle", "import Rectangle"),
           Put("shapes/tests/test_circle.py", "import pytest\n\nfrom shapes.area import Circle\n\n\ndef test_circle():\n    assert Circle(2).area() == pytest.approx(12.566, abs=0.001)\n"))),
    Entry("cases become parameters", "test only", SRC, "parametrise test_total and test_total_at_another_rate",
          (Edit("tests/test_core.py", "def test_total(lines):\n    assert total(lines) == 1440\n\n\ndef test_total_at_another_rate(lines):\n    assert total(lines, 7) == 1284\n",
                '@pytest.mark.parametrize(("rate", "sum_"), [(None, 1440), (7, 1284)])\ndef test_total(lines, rate, sum_):\n    assert total(lines, rate) == sum_\n'),), ends=frozenset({0, 75})),
    Entry("a fixture is split", "test only", SRC, "split the fixture lines in tests/conftest.py",
          (Edit("tests/conftest.py", '@pytest.fixture\ndef lines():\n    return [Line("tea", 300), Line("cake", 450, 2)]\n',
                '@pytest.fixture\ndef tea():\n    return Line("tea", 300)\n\n\n@pytest.fixture\ndef lines(tea):\n    return [tea, Line("cake", 450, 2)]\n'),), ends=_EITHER, caveat="unproved"),
    Entry("what a module exports", "layout", FLAT, "add __all__ to slug.py",
          (Edit("slug.py", 'SEPARATOR = "-"\n', '__all__ = ["initials", "shorten", "slugify"]\n\nSEPARATOR = "-"\n'),), ends=_EITHER, caveat="unproved"),
    Entry("a class becomes a dataclass, with a test", "refactoring", INSIDE, "make Rectangle in shapes/area.py a dataclass, so that equal ones compare equal",
          (Edit("shapes/area.py", 'class Rectangle:\n    """A rectangle."""\n\n    def __init__(self, width, height):\n        self.width = width\n        self.height = height\n',
                '@dataclass\nclass Rectangle:\n    """A rectangle."""\n\n    width: float\n    height: float\n'),
           Edit("shapes/area.py", "import math\n", "import math\nfrom dataclasses import dataclass\n"),
           Edit("shapes/tests/test_area.py", "\n\ndef test_circle", "\n\ndef test_equal():\n    assert Rectangle(2, 3) == Rectangle(2, 3)\n    assert Rectangle(2, 3) != Rectangle(3, 2)\n\n\ndef test_circle"))),
    Entry("a function becomes asynchronous, with its tests", "feature", COMMAND, "add aload(path) to todo/store.py: load() for asyncio, which blocks nothing",
          (Edit("todo/store.py", "import json\n", "import asyncio\nimport json\n"),
           Edit("todo/store.py", "def save", 'async def aload(path):\n    """Return the items without blocking."""\n    return await asyncio.to_thread(load, path)\n\n\ndef save'),
           Put("tests/test_store.py", 'import asyncio\n\nfrom todo.store import aload, save\n\n\ndef test_aload(tmp_path):\n    path = tmp_path / "a.json"\n    save(path, ["milk"])\n'
               '    assert asyncio.run(aload(path)) == ["milk"]\n'))),
    Entry("an enumeration instead of words", "refactoring", SRC, "add invoice.kinds: Kind.GOODS and Kind.SERVICE, and reduced(kind)",
          (Put("src/invoice/kinds.py", '"""Kinds of goods."""\n\nfrom enum import Enum\n\n\nclass Kind(Enum):\n    """What is sold."""\n\n    GOODS = "goods"\n    SERVICE = "service"\n\n\n'
               'def reduced(kind: Kind) -> bool:\n    """Return whether the lower rate holds."""\n    return kind is Kind.GOODS\n'),
           Put("tests/test_kinds.py", 'from invoice.kinds import Kind, reduced\n\n\ndef test_reduced():\n    assert reduced(Kind("goods"))\n    assert not reduced(Kind.SERVICE)\n')), ends=frozenset({4}), caveat="unproved"),
    Entry("a year that leaps", "feature", UNITTEST, "add bank/days.py: days(year), with leap years",
          (Put("bank/days.py", '"""Days of years."""\n\n\ndef days(year):\n    """Return how many days a year has."""\n    leaps = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)\n    return 365 + leaps\n'),
           Put("tests/test_days.py", "import unittest\n\nfrom bank.days import days\n\n\nclass DaysTest(unittest.TestCase):\n    def test_days(self):\n"
               "        for year, wanted in ((2023, 365), (2024, 366), (1900, 365), (2000, 366)):\n            self.assertEqual(days(year), wanted)\n"))),
    Entry("a sign by comparisons", "feature", FLAT, "add compare(one, other) to slug.py: -1, 0 or 1 by their lengths",
          (Edit("slug.py", "def _shout", 'def compare(one, other):\n    """Compare two slugs by their lengths."""\n    return (len(one) > len(other)) - (len(one) < len(other))\n\n\ndef _shout'),
           Edit("test_slug.py", "import initials, shorten, slugify", "import compare, initials, shorten, slugify"),
           Edit("test_slug.py", '== "cb"\n', '== "cb"\n\n\ndef test_compare():\n    assert [compare("a", "bc"), compare("ab", "c"), compare("a", "b")] == [-1, 1, 0]\n'))),
    Entry("a cache that forgets", "performance", SRC, "read defaults.toml once in src/invoice/settings.py, and let tests forget it",
          (Edit("src/invoice/settings.py", "import tomllib\n", "import functools\nimport tomllib\n"),
           Edit("src/invoice/settings.py", 'def setting(name: str) -> int:\n    """Return one setting."""\n    text = files("invoice").joinpath("defaults.toml").read_text()\n    return int(tomllib.loads(text)[name])\n',
                '@functools.cache\ndef setting(name: str) -> int:\n    """Return one setting."""\n    text = files("invoice").joinpath("defaults.toml").read_text()\n    return int(tomllib.loads(text)[name])\n'),
           Put("tests/test_settings.py", 'from invoice.settings import setting\n\n\ndef test_kept():\n    setting.cache_clear()\n    assert setting("tax") == setting("tax") == 20\n    assert setting.cache_info().hits == 1\n')), ends=_EITHER, caveat="unproved"),
    Entry("a counter of calls, tested", "feature", UNITTEST, "Account in bank/account.py counts its deposits, in deposits",
          (Edit("bank/account.py", "        self.balance = balance\n", "        self.balance = balance\n        self.deposits = 0\n"),
           Edit("bank/account.py", "        self.balance = self.balance + amount\n", "        self.balance = self.balance + amount\n        self.deposits += 1\n"),
           Edit("tests/test_account.py", "\n\nif __name__", "\n    def test_deposits(self):\n        self.account.deposit(1)\n        self.account.deposit(2)\n        self.assertEqual(self.account.deposits, 2)\n\n\nif __name__"))),
    Entry("a file that may be missing", "bug", COMMAND.but(Edit("todo/store.py", "    if not Path(path).exists():\n        return []\n", "")), "load() in todo/store.py fails where there is no file, it should give no items",
          (Edit("todo/store.py", "    return json.loads(Path(path).read_text())\n", "    try:\n        return json.loads(Path(path).read_text())\n    except FileNotFoundError:\n        return []\n"),)),
    Entry("the time of an entry", "feature", COMMAND, "add stamp(item, now=None) to todo/store.py: the item behind the day in ISO form, today if none is given",
          (Edit("todo/store.py", "import json\n", "import json\nfrom datetime import date\n"),
           Edit("todo/store.py", "def save", 'def stamp(item, now=None):\n    """Return an item behind its day."""\n    return f"{(now or date.today()).isoformat()} {item}"\n\n\ndef save'),
           Put("tests/test_store.py", 'from datetime import date\n\nfrom todo.store import stamp\n\n\ndef test_stamp():\n    assert stamp("milk", date(2024, 2, 29)) == "2024-02-29 milk"\n'
               '    assert stamp("milk").endswith(" milk")\n    assert stamp("milk")[:10] == date.today().isoformat()\n')), ends=frozenset({4}), caveat="unproved"),
)  # fmt: skip
