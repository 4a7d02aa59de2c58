"""Common changes that were refused once: subcommands, ordinals, constants, new folders, cases."""

from tests.soak.honest.entries import Edit, Entry, Put, Shape
from tests.soak.honest.repositories import IGNORED

_TODO = Shape({
    ".gitignore": IGNORED,
    "todo/__init__.py": "",
    "todo/cli.py": '''"""The command."""

import argparse


def main(words=None):
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list")
    args = parser.parse_args(words)
    if args.command == "list":
        print("nothing to do")
    return 0
''',
    "tests/test_cli.py": """from todo.cli import main


def test_list(capsys):
    assert main(["list"]) == 0
    assert capsys.readouterr().out == "nothing to do\\n"
""",
})  # fmt: skip
_TEXT = Shape({
    ".gitignore": IGNORED,
    "text.py": '''"""Texts."""


def plural(count, word):
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
''',
    "test_text.py": """import pytest

from text import plural


def test_plural():
    assert plural(1, "cat") == "1 cat"
    assert plural(2, "cat") == "2 cats"
""",
})  # fmt: skip
_ORDINAL = '''

def ordinal(number):
    """Return 1st, 2nd and so on."""
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
'''
_ORDINAL_TESTS = """

@pytest.mark.parametrize(
    ("number", "wanted"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (13, "13th"), (21, "21st"), (112, "112th")],
)
def test_ordinal(number, wanted):
    assert ordinal(number) == wanted
"""
_LETTERS_CODE = 'def letters(text):\n    return len(text.replace(" ", ""))\n'
_LETTERS = Shape({
    ".gitignore": IGNORED,
    "counts.py": f'"""Counts."""\n\n\n{_LETTERS_CODE}\n\ndef words(text):\n    return len(text.split()) if letters(text) else 0\n',
    "test_counts.py": """from counts import letters, words


def test_letters():
    assert letters("a bc") == 3


def test_words():
    assert words("a bc") == 2
""",
})  # fmt: skip
_POST = Shape({
    ".gitignore": IGNORED,
    "post.py": '''"""Parcels."""


def cost(weight, express):
    price = 490 if weight <= 2000 else 990
    return price + 600 if express else price
''',
    "test_post.py": """from post import cost


def test_cost():
    assert cost(1500, False) == 490
    assert cost(2500, True) == 1590
""",
})  # fmt: skip
_SLUG = 'def slug(text):\n    return text.lower().replace(" ", "-")\n'
_WEB = Shape({
    ".gitignore": IGNORED,
    "web/__init__.py": "",
    "web/helpers.py": _SLUG,
    "web/pages.py": 'from web.helpers import slug\n\n\ndef url(title):\n    return f"/{slug(title)}"\n',
    "tests/test_helpers.py": 'from web.helpers import slug\n\n\ndef test_slug():\n    assert slug("A b") == "a-b"\n',
    "tests/test_pages.py": 'from web.pages import url\n\n\ndef test_url():\n    assert url("A b") == "/a-b"\n',
})  # fmt: skip
_CASES = Shape({
    ".gitignore": IGNORED,
    "initials.py": 'def initials(name):\n    return "".join(part[0] for part in name.split())\n',
    "tests/data/cases.json": '[["ann lee", "al"], ["bob", "b"]]\n',
    "tests/test_initials.py": """import json
from pathlib import Path

import pytest

from initials import initials

CASES = json.loads((Path(__file__).parent / "data/cases.json").read_text())


@pytest.mark.parametrize(("name", "wanted"), CASES)
def test_initials(name, wanted):
    assert initials(name) == wanted
""",
    "conftest.py": "",
})  # fmt: skip

COMMON = (
    Entry("a subcommand of argparse with its test", "additions", _TODO, "add a subcommand count to the todo command that prints 0",
          (Edit("todo/cli.py", "    args = parser", '    commands.add_parser("count")\n    args = parser'),
           Edit("todo/cli.py", '        print("nothing to do")\n', '        print("nothing to do")\n    elif args.command == "count":\n        print(0)\n'),
           Edit("tests/test_cli.py", '"nothing to do\\n"\n', '"nothing to do\\n"\n\n\ndef test_count(capsys):\n    assert main(["count"]) == 0\n    assert capsys.readouterr().out == "0\\n"\n')), ends=frozenset({4}), caveat="unproved"),
    Entry("ordinals with 112th among their cases", "additions", _TEXT, "add ordinal(number) to text.py: 1st, 2nd, 3rd, 4th",
          (Edit("text.py", '{word}s"\n', '{word}s"\n' + _ORDINAL),
           Edit("test_text.py", "import plural", "import ordinal, plural"),
           Edit("test_text.py", '== "2 cats"\n', '== "2 cats"\n' + _ORDINAL_TESTS))),
    Entry("numbers get names", "rearranged", _POST, "refactor post.py: name the magic numbers",
          (Edit("post.py", '"""Parcels."""\n', '"""Parcels."""\n\nSMALL = 490\nLARGE = 990\nMOST_GRAMS = 2000\nEXPRESS = 600\n'),
           Edit("post.py", "490 if weight <= 2000 else 990", "SMALL if weight <= MOST_GRAMS else LARGE"),
           Edit("post.py", "price + 600", "price + EXPRESS")), ends=frozenset({4}), caveat="unproved"),
    Entry("a module moves to a folder of its own", "rearranged", _WEB, "move web/helpers.py to web/text/slugs.py and update all imports",
          (Put("web/helpers.py", None), Put("web/text/__init__.py", ""), Put("web/text/slugs.py", _SLUG),
           Edit("web/pages.py", "web.helpers", "web.text.slugs"), Edit("tests/test_helpers.py", "web.helpers", "web.text.slugs"))),
    Entry("a function moves to a module that the tests import", "rearranged", _LETTERS, "refactor: move letters() of counts.py to a module marks.py",
          (Put("marks.py", f'"""Letters."""\n\n\n{_LETTERS_CODE}'), Edit("counts.py", f"\n\n{_LETTERS_CODE}", "\nfrom marks import letters\n"),
           Edit("test_counts.py", "from counts import letters, words", "from counts import words\nfrom marks import letters")),
          ends=frozenset({4}), caveat="unproved"),
    Entry("cases in a file of data", "tests", _CASES, "add cases to tests/data/cases.json",
          (Edit("tests/data/cases.json", '["bob", "b"]', '["bob", "b"], ["a b c", "abc"], ["o neill", "on"]'),)),
)  # fmt: skip
