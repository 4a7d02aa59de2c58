"""Changes that bring new behaviour, or mend old, with the tests for it."""

from tests.soak.honest.entries import Edit, Entry, Put
from tests.soak.honest.larger import RESOURCES, SRC
from tests.soak.honest.repositories import COMMAND, FLAT, INSIDE, UNITTEST

_SHORTEN = Edit("slug.py", ") > length:", ") >= length:")
_LONG = '    assert shorten("creme-brulee-for-two", 12) == "creme-brulee"\n'
_LARGE = Edit("test_slug.py", "def test_initials", f"TITLES = {['a title'] * 25_000}\n\n\ndef test_initials")
_TAX_BUG = Edit("src/invoice/tax.py", "rate) + 50) // 100", "rate)) // 100")
_COUNT_BUG = Edit("src/invoice/core.py", "line.cents * line.count", "line.cents")
_OVERDRAWN = Edit("bank/account.py", "if amount > self.balance:", "if amount > self.balance + 1:")
_CELSIUS = Edit("weather/report.py", "kelvin - 273.15", "kelvin - 273")


def _back(step: Edit) -> Edit:
    """Return the edit that undoes another."""
    return Edit(step.path, step.new, step.old)


ADDITIONS: tuple[Entry, ...] = (
    Entry("a function is new, with its test", "feature", FLAT, "add title(slug) to slug.py, the words with capitals",
          (Edit("slug.py", "def _shout", 'def title(slug):\n    """Return the words with capitals."""\n'
                '    return " ".join(word.capitalize() for word in slug.split(SEPARATOR))\n\n\ndef _shout'),
           Edit("test_slug.py", "import initials, shorten, slugify", "import initials, shorten, slugify, title"),
           Edit("test_slug.py", '== "cb"\n', '== "cb"\n\n\ndef test_title_of_a_slug():\n    assert title("creme-brulee") == "Creme Brulee"\n'))),
    Entry("a module is new, with its test", "feature", SRC, "add invoice.discount: a percentage off, rounded down",
          (Put("src/invoice/discount.py", '"""Discounts."""\n\n\ndef discounted(cents: int, percent: int) -> int:\n'
               '    """Return what is left of a sum."""\n    return cents * (100 - percent) // 100\n'),
           Put("tests/test_discount.py", "from invoice.discount import discounted\n\n\ndef test_discounted():\n"
               "    assert discounted(999, 50) == 499\n    assert discounted(999, 0) == 999\n"))),
    Entry("a module is new, with unittest", "feature", UNITTEST, "add interest to bank/interest.py",
          (Put("bank/interest.py", '"""Interest."""\n\n\ndef yearly(balance, percent):\n    return balance * percent / 100\n'),
           Put("tests/test_interest.py", "import unittest\n\nfrom bank.interest import yearly\n\n\nclass InterestTest(unittest.TestCase):\n"
               "    def test_yearly(self):\n        self.assertEqual(yearly(200, 3), 6)\n"))),
    Entry("a method is new, tests inside the package", "feature", INSIDE, "add is_square() to Rectangle in shapes/area.py",
          (Edit("shapes/area.py", "\n\nclass Circle", "\n    def is_square(self):\n        return self.width == self.height\n\n\nclass Circle"),
           Edit("shapes/tests/test_area.py", "\n\ndef test_circle", "\n\ndef test_square():\n    assert Rectangle(2, 2).is_square()\n"
                "    assert not Rectangle(2, 3).is_square()\n\n\ndef test_circle"))),
    Entry("a class is new, tests inside the package", "feature", INSIDE, "add Triangle to shapes",
          (Edit("shapes/area.py", "\n\nclass Circle", "\n\nclass Triangle:\n    def __init__(self, base, height):\n        self.base = base\n"
                "        self.height = height\n\n    def area(self):\n        return self.base * self.height / 2\n\n\nclass Circle"),
           Edit("shapes/__init__.py", 'import Circle, Rectangle\n\n__all__ = ["Circle", "Rectangle"]',
                'import Circle, Rectangle, Triangle\n\n__all__ = ["Circle", "Rectangle", "Triangle"]'),
           Put("shapes/tests/test_triangle.py", "from shapes import Triangle\n\n\ndef test_area():\n    assert Triangle(3, 4).area() == 6\n"))),
    Entry("a command line option is new", "feature", SRC, "add --net to the command, for the sum without tax",
          (Edit("src/invoice/cli.py", "import Line, total", "import Line, subtotal, total"),
           Edit("src/invoice/cli.py", '"--rate", type=int)\n', '"--rate", type=int)\n    parser.add_argument("--net", action="store_true")\n'),
           Edit("src/invoice/cli.py", "print(total(lines, given.rate))", "print(subtotal(lines) if given.net else total(lines, given.rate))"),
           Edit("tests/test_cli.py", '"385\\n"\n', '"385\\n"\n\n\ndef test_net(capsys):\n    assert main(["100", "250", "--net"]) == 0\n'
                '    assert capsys.readouterr().out == "350\\n"\n'))),
    Entry("a subcommand is new", "feature", COMMAND, "add a clear command to todo that empties the list",
          (Edit("todo/cli.py", "    given = parser", '    commands.add_parser("clear")\n    given = parser'),
           Edit("todo/cli.py", "    else:\n", '    elif given.command == "clear":\n        save(given.file, [])\n    else:\n'),
           Edit("tests/test_cli.py", "\n\ndef test_command", '\n\ndef test_clear(kept, capsys):\n    main(["--file", kept, "add", "milk"])\n'
                '    main(["--file", kept, "clear"])\n    main(["--file", kept, "list"])\n    assert capsys.readouterr().out == ""\n\n\ndef test_command'),
           Edit("README.md", "add milk\n", "add milk\n    python -m todo clear\n"))),
    Entry("an exit code of a command", "feature", COMMAND, "todo list should exit with 1 if the file does not exist",
          (Edit("todo/cli.py", "    items = load", '    if given.command == "list" and not os.path.exists(given.file):\n        return 1\n    items = load'),
           Edit("todo/cli.py", "import argparse\n", "import argparse\nimport os\n"),
           Edit("tests/test_cli.py", "    done = subprocess", '    main(["--file", kept, "add", "tea"])\n    done = subprocess'),
           Edit("tests/test_cli.py", '(0, b"")', '(0, b"tea\\n")')), ends=frozenset({75})),
    Entry("an exception class is new", "feature", SRC, "raise EmptyInvoice, a kind of InvoiceError, for an invoice without lines",
          (Edit("src/invoice/errors.py", 'summed."""\n', 'summed."""\n\n\nclass EmptyInvoice(InvoiceError):\n    """It has no lines."""\n'),
           Edit("src/invoice/core.py", "import InvoiceError", "import EmptyInvoice, InvoiceError"),
           Edit("src/invoice/core.py", "    result = 0\n", '    if not lines:\n        raise EmptyInvoice("no lines")\n    result = 0\n'),
           Put("tests/test_empty.py", "import pytest\n\nfrom invoice import subtotal\nfrom invoice.errors import EmptyInvoice\n\n\n"
               'def test_no_lines():\n    with pytest.raises(EmptyInvoice, match="no lines"):\n        subtotal([])\n'))),
    Entry("a name is exported", "feature", SRC, "export InvoiceError from the invoice package",
          (Edit("src/invoice/__init__.py", "import Line, subtotal, total\n", "import Line, subtotal, total\nfrom invoice.errors import InvoiceError\n"),
           Edit("src/invoice/__init__.py", '["Line",', '["InvoiceError", "Line",'),
           Put("tests/test_package.py", 'import invoice\n\n\ndef test_errors_are_public():\n    assert "InvoiceError" in invoice.__all__\n'
               "    assert issubclass(invoice.InvoiceError, ValueError)\n"))),
    Entry("a file of values for the product is new", "feature", RESOURCES, "add the station Oslo, 94 m, to weather/stations",
          (Put("weather/stations/oslo.json", '{"title": "Oslo", "height": 94}\n'),
           Edit("tests/test_stations.py", "== 1222\n", '== 1222\n\n\ndef test_oslo():\n    assert station("oslo") == {"title": "Oslo", "height": 94}\n')), ends=frozenset({0, 4}), caveat="knows_the_tests"),
    Entry("a table gains a row", "feature", FLAT.but(Edit("slug.py", 'SEPARATOR = "-"\n', 'SEPARATOR = "-"\nLETTERS = {"æ": "ae", "ø": "oe"}\n'),
                                                     Edit("slug.py", "    # strip", "    title = title.translate(str.maketrans(LETTERS))\n    # strip")),
          "slugify should write ß as ss",
          (Edit("slug.py", '"ø": "oe"}', '"ø": "oe", "ß": "ss"}'),
           Edit("test_slug.py", "\n\ndef test_separator", '\n\ndef test_sharp_s():\n    assert slugify("Straße") == "strasse"\n\n\ndef test_separator'))),
    Entry("a limit that a test stands on", "feature", SRC, "add invoice.shipping: 4.90, free from 50.00",
          (Put("src/invoice/shipping.py", '"""Shipping."""\n\nFREE_FROM = 5000\n\n\ndef shipping(cents: int) -> int:\n    """Return what it costs to ship goods of this sum."""\n'
               "    return 0 if cents >= FREE_FROM else 490\n"),
           Put("tests/test_shipping.py", "from invoice.shipping import shipping\n\n\ndef test_shipping():\n    assert shipping(4999) == 490\n    assert shipping(5000) == 0\n")),
          ends=frozenset({0, 4}), caveat="knows_the_tests"),
    Entry("a case by its name", "feature", COMMAND, "todo list --format json prints the items as JSON",
          (Edit("todo/cli.py", '    commands.add_parser("list")\n', '    listing = commands.add_parser("list")\n    listing.add_argument("--format", choices=("lines", "json"), default="lines")\n'),
           Edit("todo/cli.py", "    else:\n", '    elif given.format == "json":\n        print(json.dumps(items))\n    else:\n'),
           Edit("todo/cli.py", "import argparse\n", "import argparse\nimport json\n"),
           Edit("tests/test_cli.py", "\n\ndef test_command", '\n\ndef test_json(kept, capsys):\n    main(["--file", kept, "add", "milk"])\n'
                '    main(["--file", kept, "list", "--format", "json"])\n    assert capsys.readouterr().out == \'["milk"]\\n\'\n\n\ndef test_command')), ends=frozenset({4}), caveat="unproved"),
    Entry("a function that sorts what it is given", "feature", FLAT, "add tidy(titles) to slug.py: sorts the titles in place, by their slugs",
          (Edit("slug.py", "\n\ndef slugify", "\n\ndef tidy(titles: list[str]) -> None:\n    titles.sort(key=slugify)\n\n\ndef slugify"),
           Edit("test_slug.py", "import initials, shorten, slugify", "import initials, shorten, slugify, tidy"),
           Edit("test_slug.py", "\n\ndef test_separator", '\n\ndef test_tidy():\n    titles = ["b", "Á"]\n    tidy(titles)\n    assert titles == ["Á", "b"]\n\n\ndef test_separator'))),
    Entry("a value that must not be", "feature", INSIDE, "Circle should refuse a negative radius with a ValueError",
          (Edit("shapes/area.py", "        self.radius = radius", '        if radius < 0:\n            raise ValueError("radius must not be negative")\n        self.radius = radius'),
           Edit("shapes/tests/test_area.py", "\n\ndef test_circle", '\n\ndef test_negative_radius():\n    with pytest.raises(ValueError, match="must not be negative"):\n        Circle(-1)\n\n\ndef test_circle'))),
    Entry("a template of the product changes", "feature", RESOURCES, "print the coldest temperature as well in weather/report.py",
          (Edit("weather/report.py", "warmest=warmest)", "warmest=warmest, coldest=celsius(min(readings)))"),
           Edit("weather/templates/report.txt", "warmest: {warmest} C\n", "warmest: {warmest} C\ncoldest: {coldest} C\n"),
           Edit("tests/expected/bergen.txt", "warmest: 10 C\n", "warmest: 10 C\ncoldest: 7 C\n")), ends=frozenset({75})),
    Entry("a setting of the product changes, with a test", "feature", SRC, "the default tax in src/invoice/defaults.toml is 25 for new invoices, and due() says when to pay",
          (Edit("src/invoice/settings.py", "return int(tomllib.loads(text)[name])\n", 'return int(tomllib.loads(text)[name])\n\n\n'
                'def due(day: int) -> int:\n    """Return the day to pay."""\n    return day + setting("days_to_pay")\n'),
           Edit("src/invoice/defaults.toml", "days_to_pay = 14", "days_to_pay = 30"),
           Put("tests/test_due.py", "from invoice.settings import due\n\n\ndef test_due():\n    assert due(1) == 31\n"))),
    Entry("a performance change with a test of it", "performance", FLAT, "slugify in slug.py should not compute a title twice",
          (Edit("slug.py", "import re\n", "import functools\nimport re\n"),
           Edit("slug.py", "def slugify", "@functools.cache\ndef slugify"),
           Edit("test_slug.py", "\n\ndef test_separator", '\n\ndef test_a_title_is_kept():\n    slugify("Kept")\n    slugify("Kept")\n'
                '    assert slugify.cache_info().hits >= 1\n\n\ndef test_separator'))),
    Entry("a bug with a new test", "bug", FLAT.but(_SHORTEN, Edit("test_slug.py", _LONG, "")),
          "shorten('creme-brulee-for-two', 12) drops a word that fits, fix it",
          (_back(_SHORTEN), Edit("test_slug.py", '== "creme"\n', '== "creme"\n\n\ndef test_what_just_fits():\n    assert shorten("a-bc", 4) == "a-bc"\n'))),
    Entry("a bug with a red test, beside an empty program", "bug", FLAT.but(_SHORTEN, Put("main.py", "")), "fix shorten in slug.py", (_back(_SHORTEN),)),
    Entry("a bug with a red test", "bug", FLAT.but(_SHORTEN), "fix shorten in slug.py", (_back(_SHORTEN),)),
    Entry("a bug with a new test, src layout", "bug", SRC.but(_TAX_BUG), "tax is cut instead of rounded, fix with_tax",
          (_back(_TAX_BUG), Put("tests/test_tax.py", "from invoice.tax import with_tax\n\n\ndef test_rounding():\n    assert with_tax(99, 7) == 106\n"),
           Edit("CHANGELOG.md", "## 1.0\n", "## 1.0.1\n\n- Tax is rounded.\n\n## 1.0\n"))),
    Entry("a bug with a new test in a large file", "bug", FLAT.but(_SHORTEN, Edit("test_slug.py", _LONG, ""), _LARGE), "shorten drops a word that fits, fix it in slug.py",
          (_back(_SHORTEN), Edit("test_slug.py", '== "creme"\n', '== "creme"\n\n\ndef test_what_just_fits():\n    assert shorten("a-bc", 4) == "a-bc"\n'))),
    Entry("a bug with a red test, src layout", "bug", SRC.but(_COUNT_BUG), "make the failing tests pass", (_back(_COUNT_BUG),)),
    Entry("a bug with a new test, inside the package", "bug",
          INSIDE.but(Edit("shapes/area.py", "2 * (self.width + self.height)", "4 * self.width"),
                     Edit("shapes/tests/test_area.py", "Rectangle(2, 3).perimeter() == 10", "Rectangle(3, 3).perimeter() == 12")),
          "perimeter() is wrong for rectangles that are no squares",
          (Edit("shapes/area.py", "4 * self.width", "2 * (self.width + self.height)"),
           Edit("shapes/tests/test_area.py", "\n\ndef test_circle", "\n\ndef test_perimeter_of_unequal_sides():\n    assert Rectangle(2, 5).perimeter() == 14\n\n\ndef test_circle"))),
    Entry("a bug with a red test, unittest", "bug", UNITTEST.but(_OVERDRAWN), "fix the failing test in tests/test_account.py", (_back(_OVERDRAWN),)),
    Entry("a bug with a new test, unittest without packages", "bug",
          UNITTEST.but(Put("tests/__init__.py", None), _OVERDRAWN, Edit("tests/test_account.py", "withdraw(11)", "withdraw(100)")),
          "withdraw lets one take a coin too many",
          (_back(_OVERDRAWN), Edit("tests/test_account.py", "\n\nif __name__", "\n    def test_a_coin_too_many(self):\n        with self.assertRaises(ValueError):\n"
                                   "            self.account.withdraw(11)\n\n\nif __name__"))),
    Entry("a bug found by a file of the tests", "bug", RESOURCES.but(_CELSIUS), "readings near a half are rounded wrongly in weather/report.py, fix it",
          (_back(_CELSIUS), Put("tests/readings/finse.txt", "260.6\n272.55\n"), Put("tests/expected/finse.txt", "Finse (1222 m)\nwarmest: -1 C\n"))),
    Entry("a wrong value in a file of the product", "bug", RESOURCES.but(Edit("weather/stations/finse.json", "1222", "222")),
          "the height of Finse is wrong, the test says so", (Edit("weather/stations/finse.json", "222", "1222"),), ends=frozenset({0, 4}), caveat="knows_the_tests"),
    Entry("two bugs in two files with two tests", "bug", SRC.but(_TAX_BUG, Edit("src/invoice/core.py", "if line.count < 0", "if line.count < -1"),
          Edit("tests/test_core.py", '"tea", 300, -1)', '"tea", 300, -2)')), "fix rounding in tax.py, and counts of -1 in core.py",
          (_back(_TAX_BUG), Edit("src/invoice/core.py", "if line.count < -1", "if line.count < 0"),
           Put("tests/test_tax.py", "from invoice.tax import with_tax\n\n\ndef test_rounding():\n    assert with_tax(99, 7) == 106\n"),
           Put("tests/test_counts.py", "import pytest\n\nfrom invoice import Line, subtotal\nfrom invoice.errors import InvoiceError\n\n\n"
               'def test_minus_one():\n    with pytest.raises(InvoiceError):\n        subtotal([Line("tea", 300, -1)])\n'))),
    Entry("a fix of several parts with one test", "bug", UNITTEST, "accounts can be overdrawn up to a limit: Account(balance, limit)",
          (Edit("bank/account.py", "balance=0):\n        self.balance = balance\n", "balance=0, limit=0):\n        self.balance = balance\n        self.limit = limit\n"),
           Edit("bank/account.py", "if amount > self.balance:", "if amount > self.balance + self.limit:"),
           Edit("tests/test_account.py", "\n\nif __name__", "\n    def test_limit(self):\n        account = Account(10, limit=5)\n        account.withdraw(15)\n"
                "        self.assertEqual(account.balance, -5)\n\n\nif __name__")), ends=frozenset({4}), caveat="unproved"),
    Entry("a skipped test is run again with the fix", "bug",
          SRC.but(_TAX_BUG, Put("tests/test_tax.py", 'import pytest\n\nfrom invoice.tax import with_tax\n\n\n@pytest.mark.skip(reason="rounding")\n'
                  "def test_rounding():\n    assert with_tax(99, 7) == 106\n")),
          "fix rounding in with_tax and take the skip from its test",
          (_back(_TAX_BUG), Edit("tests/test_tax.py", '@pytest.mark.skip(reason="rounding")\n', ""), Edit("tests/test_tax.py", "import pytest\n\nfrom", "from"))),
    Entry("an expected failure is expected no more", "bug",
          FLAT.but(_SHORTEN, Edit("test_slug.py", _LONG, ""),
                   Edit("test_slug.py", "\n\ndef test_initials", '\n\n@pytest.mark.xfail\ndef test_fits():\n    assert shorten("a-bc", 4) == "a-bc"\n\n\ndef test_initials'),
                   Edit("test_slug.py", "from slug", "import pytest\nfrom slug")),
          "fix shorten in slug.py and remove the xfail", (_back(_SHORTEN), Edit("test_slug.py", "@pytest.mark.xfail\n", ""))),
    Entry("a fix with a log line beside it", "bug", RESOURCES.but(_CELSIUS),
          "celsius in weather/report.py is off by 0.15, fix it and log each conversion",
          (Edit("weather/report.py", "    return round(kelvin - 273)", '    _log.debug("%s K", kelvin)\n    return round(kelvin - 273.15)'),
           Edit("weather/report.py", "from pathlib import Path\n", "import logging\nfrom pathlib import Path\n"),
           Edit("weather/report.py", "_TEMPLATE = ", "_log = logging.getLogger(__name__)\n_TEMPLATE = "),
           Edit("tests/test_report.py", "\n\ndef test_celsius", "\n\ndef test_half():\n    assert celsius(273.6) == 0\n\n\ndef test_celsius")),
          ends=frozenset({0, 4}), caveat="unproved"),
    Entry("an error message changes with its test", "behaviour", SRC, "say 'a count below zero' in the error of subtotal()",
          (Edit("src/invoice/core.py", "negative count:", "a count below zero:"), Edit("tests/test_core.py", "negative count:", "a count below zero:")),
          ends=frozenset({75})),
)  # fmt: skip
