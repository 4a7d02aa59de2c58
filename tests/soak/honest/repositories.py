"""Repositories of the shapes that everyday changes are made in; all are green unless an entry says so."""

from tests.soak.honest.entries import Shape

IGNORED = ".venv/\n__pycache__/\n.pytest_cache/\n"

FLAT = Shape({
    ".gitignore": IGNORED,
    "README.md": "# slug\n\nTurns titles into slugs, for adresses of pages.\n\n    slugify('A Title')\n",
    "slug.py": '''"""Slugs for titles."""

import re
import unicodedata

SEPARATOR = "-"


def slugify(title, separator=SEPARATOR):
    """Return a titel as a slug."""
    # strip acents
    text = unicodedata.normalize("NFKD", title)
    text = text.encode("ascii", "ignore").decode()
    words = re.findall(r"[a-z0-9]+", text.lower())
    return separator.join(words)


def shorten(slug, length):
    """Return the whole words of a slug that fit."""
    result = []
    for word in slug.split(SEPARATOR):
        if len(SEPARATOR.join([*result, word])) > length:
            break
        result.append(word)
    return SEPARATOR.join(result)


def initials(slug):
    letters = []
    for word in slug.split(SEPARATOR):
        letters.append(word[0])
    return "".join(letters)


def _shout(slug):
    return slug.upper()
''',
    "test_slug.py": """from slug import initials, shorten, slugify


def test_title():
    assert slugify("Crème Brûlée for Two") == "creme-brulee-for-two"


def test_separator():
    assert slugify("A B", separator="_") == "a_b"


def test_shorten():
    assert shorten("creme-brulee-for-two", 13) == "creme-brulee"
    assert shorten("creme-brulee-for-two", 12) == "creme-brulee"
    assert shorten("creme-brulee-for-two", 11) == "creme"


def test_initials():
    assert initials("creme-brulee") == "cb"
""",
})  # fmt: skip

INSIDE = Shape({
    ".gitignore": IGNORED,
    "README.rst": "shapes\n======\n\nAreas of shapes.\n",
    "setup.py": 'from setuptools import setup\n\nsetup(name="shapes", version="0.3", packages=["shapes", "shapes.tests"])\n',
    "shapes/__init__.py": 'from .area import Circle, Rectangle\n\n__all__ = ["Circle", "Rectangle"]\n',
    "shapes/area.py": '''import math


class Rectangle:
    """A rectangle."""

    def __init__(self, width, height):
        self.width = width
        self.height = height

    def area(self):
        return self.width * self.height

    def perimeter(self):
        return 2 * (self.width + self.height)


class Circle:
    def __init__(self, radius):
        self.radius = radius

    def area(self):
        return math.pi * self.radius ** 2
''',
    "shapes/tests/__init__.py": "",
    "shapes/tests/test_area.py": """import pytest

from shapes.area import Circle, Rectangle


@pytest.mark.parametrize("width, height, area", [(1, 1, 1), (2, 3, 6)])
def test_rectangle(width, height, area):
    assert Rectangle(width, height).area() == area


def test_perimeter():
    assert Rectangle(2, 3).perimeter() == 10


def test_circle():
    assert Circle(2).area() == pytest.approx(12.566, abs=0.001)
""",
})  # fmt: skip

UNITTEST = Shape({
    ".gitignore": IGNORED,
    "README.md": "# bank\n\nAccounts.\n",
    "bank/__init__.py": "",
    "bank/account.py": '''"""Accounts."""


class Account:
    """An account with a balance."""

    def __init__(self, balance=0):
        self.balance = balance

    def deposit(self, amount):
        if amount <= 0:
            raise ValueError("amount must be positive")
        self.balance = self.balance + amount

    def withdraw(self, amount):
        if amount <= 0:
            raise ValueError("amount must be positive")
        if amount > self.balance:
            raise ValueError("not enough money")
        self.balance = self.balance - amount
''',
    "tests/__init__.py": "",
    "tests/test_account.py": """import unittest

from bank.account import Account


class AccountTest(unittest.TestCase):
    def setUp(self):
        self.account = Account(10)

    def test_deposit(self):
        self.account.deposit(5)
        self.assertTrue(self.account.balance == 15)

    def test_withdraw(self):
        self.account.withdraw(4)
        self.assertEqual(self.account.balance, 6)

    def test_too_much(self):
        with self.assertRaises(ValueError):
            self.account.withdraw(11)


if __name__ == "__main__":
    unittest.main()
""",
})  # fmt: skip

COMMAND = Shape({
    ".gitignore": IGNORED,
    "README.md": "# todo\n\n    python -m todo add milk\n",
    "requirements.txt": "pytest==7.4.0\n",
    "todo/__init__.py": "",
    "todo/__main__.py": "import sys\n\nfrom todo.cli import main\n\nsys.exit(main())\n",
    "todo/store.py": '''"""A list in a file."""

import json
from pathlib import Path


def load(path):
    """Return the items; none where there is no file."""
    if not Path(path).exists():
        return []
    return json.loads(Path(path).read_text())


def save(path, items):
    """Write the items."""
    Path(path).write_text(json.dumps(items))
''',
    "todo/cli.py": '''"""The command line."""

import argparse
import sys

from todo.store import load, save


def main(words=None):
    parser = argparse.ArgumentParser(prog="todo")
    parser.add_argument("--file", default="todo.json", help="were items are kept")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list")
    adding = commands.add_parser("add")
    adding.add_argument("item")
    given = parser.parse_args(words)
    items = load(given.file)
    if given.command == "add":
        save(given.file, [*items, given.item])
    else:
        for item in items:
            print(item)
    return 0
''',
    "tests/test_cli.py": """import subprocess
import sys

import pytest

from todo.cli import main


@pytest.fixture
def kept(tmp_path):
    return str(tmp_path / "todo.json")


def test_what_is_added_is_listed(kept, capsys):
    main(["--file", kept, "add", "milk"])
    main(["--file", kept, "list"])
    assert capsys.readouterr().out == "milk\\n"


def test_command(kept):
    done = subprocess.run([sys.executable, "-m", "todo", "--file", kept, "list"], capture_output=True)
    assert (done.returncode, done.stdout) == (0, b"")
""",
})  # fmt: skip
