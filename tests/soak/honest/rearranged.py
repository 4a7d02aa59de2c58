"""Changes of tests alone, and changes that keep what the code does: names, places, forms."""

from tests.soak.honest.entries import Edit, Entry, Put
from tests.soak.honest.larger import RESOURCES, SRC
from tests.soak.honest.repositories import COMMAND, FLAT, INSIDE, UNITTEST

_EITHER = frozenset({0, 4})
_AREA = INSIDE.files["shapes/area.py"]
_SLUG = FLAT.files["slug.py"]
_TESTS = FLAT.files["test_slug.py"]

TESTS_ONLY: tuple[Entry, ...] = (
    Entry("a test is new", "test only", FLAT, "add a test for an empty title to test_slug.py",
          (Edit("test_slug.py", "\n\ndef test_separator", '\n\ndef test_nothing():\n    assert slugify("!?") == ""\n\n\ndef test_separator'),)),
    Entry("a test is new, unittest", "test only", UNITTEST, "test that deposits have to be positive",
          (Edit("tests/test_account.py", "\n\nif __name__", "\n    def test_nothing_deposited(self):\n        with self.assertRaises(ValueError):\n"
                "            self.account.deposit(0)\n\n\nif __name__"),)),
    Entry("a file of tests is new", "test only", SRC, "write tests for invoice.tax",
          (Put("tests/test_tax.py", 'import pytest\n\nfrom invoice.tax import with_tax\n\n\n@pytest.mark.parametrize(("cents", "sum_"), [(0, 0), (100, 107), (99, 106)])\n'
               "def test_with_tax(cents, sum_):\n    assert with_tax(cents, 7) == sum_\n"),)),
    Entry("a test is new, inside the package", "test only", INSIDE, "cover Circle(0) with a test",
          (Edit("shapes/tests/test_area.py", "\n\ndef test_circle", "\n\ndef test_point():\n    assert Circle(0).area() == 0\n\n\ndef test_circle"),)),
    Entry("a test of stored items is new", "test only", COMMAND, "add a test of todo.store",
          (Put("tests/test_store.py", 'from todo.store import load, save\n\n\ndef test_items_are_kept(tmp_path):\n    path = tmp_path / "a.json"\n'
               '    assert load(path) == []\n    save(path, ["milk"])\n    assert load(path) == ["milk"]\n'),)),
    Entry("a test with a file of its own is new", "test only", RESOURCES, "add readings of Finse to the tests",
          (Put("tests/readings/finse.txt", "260.6\n270.7\n"), Put("tests/expected/finse.txt", "Finse (1222 m)\nwarmest: -2 C\n")),
          ends=_EITHER, caveat="unproved"),
    Entry("an assertion is sharper", "test only", UNITTEST, "use assertEqual in test_deposit",
          (Edit("tests/test_account.py", "assertTrue(self.account.balance == 15)", "assertEqual(self.account.balance, 15)"),)),
    Entry("an assertion says more", "test only", COMMAND, "test_command should check that nothing is said on stderr",
          (Edit("tests/test_cli.py", '(0, b"")', '(0, b"")\n    assert done.stderr == b""'),)),
    Entry("an error is expected with its words", "test only", UNITTEST, "sharpen test_too_much so that it compares the message",
          (Edit("tests/test_account.py", "assertRaises(ValueError):\n            self.account.withdraw(11)",
                'assertRaisesRegex(ValueError, "not enough money"):\n            self.account.withdraw(11)'),)),
    Entry("more cases of a parametrised test", "test only", INSIDE, "add a case with a zero to test_rectangle",
          (Edit("shapes/tests/test_area.py", "(2, 3, 6)]", "(2, 3, 6), (0, 5, 0)]"),)),
    Entry("a test becomes parametrised", "test only", FLAT, "parametrise test_shorten in test_slug.py",
          (Edit("test_slug.py", _TESTS[_TESTS.index("def test_shorten"): _TESTS.index("\n\ndef test_initials")],
                '@pytest.mark.parametrize(("length", "kept"), [(13, "creme-brulee"), (12, "creme-brulee"), (11, "creme")])\n'
                'def test_shorten(length, kept):\n    assert shorten("creme-brulee-for-two", length) == kept\n'),
           Edit("test_slug.py", "from slug", "import pytest\n\nfrom slug")),
          ends=_EITHER, caveat="check_weakened"),
    Entry("a fixture moves to the conftest", "test only", COMMAND, "move the fixture kept to tests/conftest.py",
          (Edit("tests/test_cli.py", '@pytest.fixture\ndef kept(tmp_path):\n    return str(tmp_path / "todo.json")\n\n\n', ""),
           Edit("tests/test_cli.py", "import pytest\n\n", ""),
           Put("tests/conftest.py", 'import pytest\n\n\n@pytest.fixture\ndef kept(tmp_path):\n    return str(tmp_path / "todo.json")\n')),
          ends=_EITHER, caveat="unproved"),
)  # fmt: skip

REARRANGED: tuple[Entry, ...] = (
    Entry("a local name changes", "rename", FLAT, "rename result to kept in shorten() in slug.py",
          (Edit("slug.py", "result", "kept"),)),
    Entry("a parameter changes its name", "rename", INSIDE, "rename width to breadth in Rectangle",
          (Edit("shapes/area.py", "width", "breadth"), Edit("shapes/tests/test_area.py", "width", "breadth"))),
    Entry("a function is renamed with its tests", "rename", FLAT, "rename shorten to truncate in slug.py and test_slug.py",
          (Edit("slug.py", "shorten", "truncate"), Edit("test_slug.py", "shorten", "truncate"))),
    Entry("a function is renamed with callers, tests and docs", "rename", SRC, "rename subtotal to net_total everywhere",
          tuple(Edit(path, "subtotal", "net_total") for path in
                ("src/invoice/__init__.py", "src/invoice/core.py", "tests/test_core.py"))),
    Entry("a function without callers outside is renamed", "rename", RESOURCES, "rename celsius to to_celsius in weather/report.py",
          (Edit("weather/report.py", "celsius", "to_celsius"), Edit("tests/test_report.py", "celsius", "to_celsius"))),
    Entry("a class is renamed with its tests", "rename", INSIDE, "rename Circle to Disc",
          tuple(Edit(path, "Circle", "Disc") for path in ("shapes/__init__.py", "shapes/area.py", "shapes/tests/test_area.py"))),
    Entry("a private function is renamed", "rename", FLAT, "rename _shout to _loud in slug.py", (Edit("slug.py", "_shout", "_loud"),)),
    Entry("a module is renamed that no test imports", "rename", SRC, "rename src/invoice/tax.py to vat.py",
          (Put("src/invoice/tax.py", None), Put("src/invoice/vat.py", SRC.files["src/invoice/tax.py"]),
           Edit("src/invoice/core.py", "from invoice.tax import", "from invoice.vat import"))),
    Entry("a constant moves to another module", "moved", INSIDE, "move Circle to shapes/round.py, importable from shapes.area as before",
          (Put("shapes/round.py", "import math\n\n\n" + _AREA[_AREA.index("class Circle"):]),
           Edit("shapes/area.py", _AREA[_AREA.index("\n\nclass Circle"):], ""), Edit("shapes/area.py", "import math\n\n\n", "from .round import Circle\n\n\n")),
          ends=_EITHER, caveat="unproved"),
    Entry("a loop becomes a comprehension", "refactoring", FLAT, "use a comprehension in initials() in slug.py",
          (Edit("slug.py", _SLUG[_SLUG.index("    letters = []"): _SLUG.index("\n\ndef _shout")],
                '    return "".join(word[0] for word in slug.split(SEPARATOR))\n'),)),
    Entry("a function is extracted", "refactoring", UNITTEST, "refactor bank/account.py: the check of amounts is there twice",
          (Edit("bank/account.py", '        if amount <= 0:\n            raise ValueError("amount must be positive")\n', "        _check(amount)\n"),
           Edit("bank/account.py", "class Account:", 'def _check(amount):\n    if amount <= 0:\n        raise ValueError("amount must be positive")\n\n\nclass Account:')),
          ends=frozenset({4}), caveat="unproved"),
    Entry("a variable is inlined", "refactoring", RESOURCES, "inline the variable warmest in weather/report.py",
          (Edit("weather/report.py", "    warmest = celsius(max(readings))\n", ""), Edit("weather/report.py", "warmest=warmest", "warmest=celsius(max(readings))")),
          ends=_EITHER, caveat="unproved"),
    Entry("a refactoring that comes with a test", "refactoring", UNITTEST, "use += and -= in bank/account.py, and test a deposit after a withdrawal",
          (Edit("bank/account.py", "self.balance = self.balance + amount", "self.balance += amount"),
           Edit("bank/account.py", "self.balance = self.balance - amount", "self.balance -= amount"),
           Edit("tests/test_account.py", "\n\nif __name__", "\n    def test_both(self):\n        self.account.withdraw(4)\n        self.account.deposit(1)\n"
                "        self.assertEqual(self.account.balance, 7)\n\n\nif __name__")), ends=_EITHER, caveat="unproved"),
    Entry("dead code is removed", "dead code", FLAT, "remove _shout from slug.py, nobody calls it",
          (Edit("slug.py", "\n\ndef _shout(slug):\n    return slug.upper()\n", ""),)),
)  # fmt: skip
