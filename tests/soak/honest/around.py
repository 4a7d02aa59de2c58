"""Changes around the code: settings, versions, dependencies; and repositories in which not everything can run."""

from tests.soak.honest.entries import Edit, Entry, Put, Shape
from tests.soak.honest.larger import RESOURCES, SRC
from tests.soak.honest.repositories import COMMAND, FLAT, IGNORED, UNITTEST

_EITHER = frozenset({0, 4})
_CAVEAT = frozenset({4})
_SHORTEN = Edit("slug.py", ") > length:", ") >= length:")
_FIXED = Edit("slug.py", ") >= length:", ") > length:")
_UNLINTED = COMMAND.but(
    Put("setup.cfg", "[flake8]\nmax-line-length = 100\n"),
    Put("pyproject.toml", "[tool.black]\nline-length = 100\n"),
)
_UNTESTED = Shape({".gitignore": IGNORED, "README.md": "# backup\n\nCopys files.\n",
                   "backup.py": '"""Copys files."""\n\nimport shutil\nimport sys\n\nshutil.copytree(sys.argv[1], sys.argv[2])\n'}, checks=0)  # fmt: skip
_UNCOUNTED = Shape({
    "Makefile": "test:\n\tsh check.sh\n", "greet.py": 'import sys\n\nprint("hello, " + sys.argv[1])\n',
    "check.sh": 'test "$(python3 greet.py ann)" = "hello, ann" && echo fine\n', ".gitignore": IGNORED})  # fmt: skip
_EXAMPLES = Shape({
    ".gitignore": IGNORED, "pytest.ini": "[pytest]\naddopts = --doctest-modules\n",
    "roman.py": '"""Roman numerals."""\n\n_SIGNS = [(10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]\n\n\ndef roman(number):\n'
                '    """Return a nummber in Roman numerals.\n\n    >>> roman(14)\n    \'XIV\'\n    """\n    found = ""\n    for value, sign in _SIGNS:\n'
                "        while number >= value:\n            found += sign\n            number -= value\n    return found\n",
    "test_roman.py": 'from roman import roman\n\n\ndef test_nine():\n    assert roman(9) == "IX"\n'})  # fmt: skip
_HALF_RED = UNITTEST.but(
    Put("bank/rates.py", "def rate(years):\n    return 2\n"),
    Put("tests/test_rates.py", "import unittest\n\nfrom bank.rates import rate\n\n\nclass RatesTest(unittest.TestCase):\n"
        "    def test_long(self):\n        self.assertEqual(rate(10), 3)\n"))  # fmt: skip
_CLONES = "rm -rf clone && git clone -q . clone && cd clone && python3 -m unittest -q; cd .. && python3 -m compileall -q bank"

AROUND: tuple[Entry, ...] = (
    Entry("a value of the settings changes, with no test", "setting", SRC, "set days_to_pay to 30 in src/invoice/defaults.toml",
          (Edit("src/invoice/defaults.toml", "14", "30"),), ends=_EITHER, caveat="unproved"),
    Entry("a log line is added", "log line", RESOURCES, "log which station is read in weather/stations.py",
          (Edit("weather/stations.py", "import json\n", "import json\nimport logging\n"),
           Edit("weather/stations.py", "    return json", '    logging.getLogger(__name__).debug("reading %s", name)\n    return json')),
          ends=_EITHER, caveat="unproved"),
    Entry("an option of the environment, tested both ways", "setting", UNITTEST, "accounts may be overdrawn where BANK_CREDIT is set",
          (Edit("bank/account.py", "        if amount > self.balance:", '        if amount > self.balance and "BANK_CREDIT" not in os.environ:'),
           Edit("bank/account.py", '"""Accounts."""\n', '"""Accounts."""\n\nimport os\n'),
           Edit("tests/test_account.py", "\n\nif __name__", '\n    def test_credit(self):\n        with mock.patch.dict("os.environ", BANK_CREDIT="1"):\n'
                "            self.account.withdraw(11)\n        self.assertEqual(self.account.balance, -1)\n        with self.assertRaises(ValueError):\n"
                "            self.account.withdraw(1)\n\n\nif __name__"),
           Edit("tests/test_account.py", "import unittest\n", "import unittest\nfrom unittest import mock\n"))),
    Entry("a new file that nothing reads", "stray", FLAT.but(_SHORTEN), "fix shorten in slug.py",
          (_FIXED, Put("scratch.csv", "title,slug\nA,a\n")), ends=_CAVEAT, caveat="nothing that runs here reads this new file"),
    Entry("a version is raised in both places", "version", SRC, "bump the version to 1.0.1",
          (Edit("pyproject.toml", '"1.0.0"', '"1.0.1"'), Edit("src/invoice/__init__.py", '"1.0.0"', '"1.0.1"')), ends=_EITHER, caveat="unproved"),
    Entry("a version is raised, with a test of it", "version", SRC, "set the version to 1.1.0 and test that the two places agree",
          (Edit("pyproject.toml", '"1.0.0"', '"1.1.0"'), Edit("src/invoice/__init__.py", '"1.0.0"', '"1.1.0"'),
           Put("tests/test_version.py", 'import invoice\n\n\ndef test_version():\n    assert invoice.__version__ == "1.1.0"\n')),
          ends=_EITHER, caveat="unproved"),
    Entry("a dependency is pinned", "dependency", COMMAND, "pin pytest to 7.4.4 in requirements.txt",
          (Edit("requirements.txt", "7.4.0", "7.4.4"),), ends=_EITHER, caveat="unproved"),
    Entry("a git ignore line", "repository", COMMAND, "ignore todo.json in .gitignore",
          (Edit(".gitignore", "__pycache__/\n", "__pycache__/\ntodo.json\n"),), ends=_EITHER, caveat="unproved"),
    Entry("CI uses another machine", "repository", SRC, "use ubuntu-24.04 in .github/workflows/ci.yml",
          (Edit(".github/workflows/ci.yml", "22.04", "24.04"),), ends=_EITHER, caveat="unproved"),
    Entry("a hook before commits is raised", "repository", SRC, "update ruff to v0.6.0 in .pre-commit-config.yaml",
          (Edit(".pre-commit-config.yaml", "v0.5.0", "v0.6.0"),), ends=frozenset({75}), caveat="unproved"),
    Entry("the description of a package", "repository", SRC, "add a description to pyproject.toml",
          (Edit("pyproject.toml", 'version = "1.0.0"\n', 'version = "1.0.0"\ndescription = "Sums of invoices."\n'),)),
    Entry("a linter is not installed, a bug with a test", "tool missing", _UNLINTED.but(Edit("todo/cli.py", "[*items, given.item]", "[given.item]")),
          "todo add forgets what was there, fix it",
          (Edit("todo/cli.py", "[given.item]", "[*items, given.item]"),
           Edit("tests/test_cli.py", "\n\ndef test_command", '\n\ndef test_two(kept, capsys):\n    main(["--file", kept, "add", "milk"])\n'
                '    main(["--file", kept, "add", "tea"])\n    main(["--file", kept, "list"])\n    assert capsys.readouterr().out == "milk\\ntea\\n"\n\n\ndef test_command')),
          ),
    Entry("a linter is not installed, a typo", "tool missing", _UNLINTED, "fix the heading of README.md",
          (Edit("README.md", "# todo", "# A list of things to do"),)),
    Entry("a linter is too old for its settings", "tool missing", SRC.but(Edit("pyproject.toml", '"I"]', '"I", "ZZZ"]')), "fix the heading of docs/usage.md",
          (Edit("docs/usage.md", "# Usage", "# How to use it"),)),
    Entry("no tests at all, a typo", "no tests", _UNTESTED, "fix the typo 'Copys' in README.md and backup.py",
          (Edit("README.md", "Copys", "Copies"), Edit("backup.py", "Copys", "Copies"))),
    Entry("no tests at all, new behaviour", "no tests", _UNTESTED, "let backup.py overwrite what is there",
          (Edit("backup.py", "sys.argv[2])", "sys.argv[2], dirs_exist_ok=True)"),), ends=_CAVEAT, caveat="unproved"),
    Entry("no tests at all, the first come with the fix", "no tests", _UNTESTED.but(Put("names.py", "def initial(name):\n    return name[1]\n")),
          "initial() in names.py gives the second letter, fix it and add a test",
          (Put("names.py", "def initial(name):\n    return name[0]\n"),
           Put("test_names.py", 'from names import initial\n\n\ndef test_initial():\n    assert initial("ann") == "a"\n'))),
    Entry("nothing can be counted", "not counted", _UNCOUNTED, "greet.py should say hello to the world unless it is told a name",
          (Put("greet.py", 'import sys\n\nprint("hello, " + (sys.argv[1] if sys.argv[1:] else "world"))\n'),
           Put("check.sh", 'test "$(python3 greet.py ann)" = "hello, ann" && test "$(python3 greet.py)" = "hello, world" && echo fine\n')),
          ends=_CAVEAT, caveat="tests_not_counted"),
    Entry("nothing can be counted, a bug with a red check", "not counted", _UNCOUNTED.but(Edit("greet.py", "hello, ", "hallo, ")),
          "make test is red, fix greet.py", (Edit("greet.py", "hallo, ", "hello, "),), ends=_CAVEAT, caveat="tests_not_counted"),
    Entry("another test is red, a new function with a test", "already red", _HALF_RED, "add Account.is_empty to bank/account.py",
          (Edit("bank/account.py", "    def withdraw", "    def is_empty(self):\n        return self.balance == 0\n\n    def withdraw"),
           Edit("tests/test_account.py", "\n\nif __name__", "\n    def test_empty(self):\n        self.assertFalse(self.account.is_empty())\n"
                "        self.assertTrue(Account().is_empty())\n\n\nif __name__")), ends=_CAVEAT, caveat="already_red"),
    Entry("another test is red, a fix with a test", "already red", _HALF_RED.but(Edit("bank/account.py", "if amount > self.balance:", "if amount > self.balance + 1:"),
                                                                              Edit("tests/test_account.py", "withdraw(11)", "withdraw(100)")),
          "withdraw() lets one take a coin too many, fix it and add a test that fails without the fix",
          (Edit("bank/account.py", "self.balance + 1:", "self.balance:"),
           Edit("tests/test_account.py", "\n\nif __name__", "\n    def test_a_coin_too_many(self):\n        with self.assertRaises(ValueError):\n"
                "            self.account.withdraw(11)\n\n\nif __name__")), ends=_CAVEAT, caveat="already_red"),
    Entry("another test is red, a docstring", "already red", _HALF_RED, "add a docstring to rate() in bank/rates.py",
          (Edit("bank/rates.py", "    return", '    """Return the rate."""\n    return'),), ends=_CAVEAT, caveat="already_red"),
    Entry("a typo beside an example that is run", "examples", _EXAMPLES, "fix the typo 'nummber' in roman.py", (Edit("roman.py", "nummber", "number"),)),
    Entry("a function is new, its example is the test", "examples", _EXAMPLES, "add arabic(text) to roman.py, with an example",
          (Edit("roman.py", "    return found\n", '    return found\n\n\ndef arabic(text):\n    """Return the number of a Roman numeral.\n\n    >>> arabic("XIV")\n    14\n    """\n'
                "    return next(number for number in range(40) if roman(number) == text)\n"),), ends=frozenset({4}), caveat="unproved"),
    Entry("an example gains a line, the code a fix", "examples", _EXAMPLES, "roman() in roman.py should write 40 as XL",
          (Edit("roman.py", "_SIGNS = [", '_SIGNS = [(40, "XL"), '), Edit("roman.py", "    'XIV'\n", "    'XIV'\n    >>> roman(41)\n    'XLI'\n"))),
    Entry("the implementer runs the tests, nothing ignores caches", "leavings", FLAT.but(_SHORTEN, Put(".gitignore", ".venv/\n")), "fix shorten in slug.py",
          (_FIXED,), command=".venv/bin/python -m pytest -q"),
    Entry("the verifier runs the tests on a fresh clone", "leavings", UNITTEST.but(Put(".gitignore", ".venv/\n")), "add Account.is_empty to bank/account.py",
          (Edit("bank/account.py", "    def withdraw", "    def is_empty(self):\n        return self.balance == 0\n\n    def withdraw"),
           Edit("tests/test_account.py", "\n\nif __name__", "\n    def test_empty(self):\n        self.assertTrue(Account().is_empty())\n        self.assertFalse(self.account.is_empty())\n\n\nif __name__")),
          verifying=_CLONES),
    Entry("the verifier runs pytest in place", "leavings", FLAT.but(_SHORTEN, Put(".gitignore", ".venv/\n")), "fix the failing test in test_slug.py",
          (_FIXED,), verifying=".venv/bin/python -m pytest -q --junitxml=report.xml"),
)  # fmt: skip
