"""Changes after which every program does the same: words, hints, layout."""

from tests.soak.honest.entries import Edit, Entry, Put
from tests.soak.honest.larger import RESOURCES, SRC
from tests.soak.honest.repositories import COMMAND, FLAT, INSIDE, UNITTEST

_FORMATTED = SRC.but(
    Edit("src/invoice/tax.py", "(cents: int, rate: int) -> int:", "(cents:int,rate:int)->int:"),
    Edit("tests/test_core.py", '[Line("tea", 300, -1)]', "[Line('tea',300,-1)]"),
)
_UNSORTED = SRC.but(
    Edit("pyproject.toml", 'select = ["E", "F", "I"]', 'select = ["E", "F"]'),
    Edit(
        "src/invoice/cli.py",
        "import argparse\nimport sys\n\nfrom invoice",
        "import sys\nimport argparse\nfrom invoice",
    ),
)
_SCRIPT = '''"""Print the areas of some shapes."""

import argparse

print(argparse.ArgumentParser(description=__doc__).format_help())
'''
_HINTS = "from typing import get_type_hints\n\n\ndef fields(kind):\n    return sorted(get_type_hints(kind))\n"

TEXTS: tuple[Entry, ...] = (
    Entry("typo in the readme", "typo", FLAT, "fix the typo 'adresses' in README.md",
          (Edit("README.md", "adresses", "addresses"),)),
    Entry("typo in a docstring", "typo", FLAT, "fix the typo 'titel' in slug.py",
          (Edit("slug.py", "a titel as", "a title as"),)),
    Entry("typo in a comment", "typo", FLAT, "correct the spelling of 'acents' in slug.py",
          (Edit("slug.py", "# strip acents", "# strip accents"),)),
    Entry("typo in a comment of the tests", "typo",
          UNITTEST.but(Edit("tests/test_account.py", "    def test_too", "    # more then there is\n    def test_too")),
          "fix the typo in the comment in tests/test_account.py",
          (Edit("tests/test_account.py", "more then", "more than"),)),
    Entry("typo in an option's words", "typo", COMMAND, "fix the typo 'were' in the help text of --file in todo/cli.py",
          (Edit("todo/cli.py", '"were items', '"where items'),)),
    Entry("readme explained further", "docs", FLAT, "explain in README.md what separator= does",
          (Edit("README.md", "Title')\n", "Title')\n\nWords are joined by `separator`, a hyphen unless one is given.\n"),)),
    Entry("a page of documentation is new", "docs", SRC, "write docs/rounding.md about how tax is rounded",
          (Put("docs/rounding.md", "# Rounding\n\nTax is rounded to whole cents, halves up.\n"),)),
    Entry("usage extended", "docs", SRC, "mention the rate argument in docs/usage.md",
          (Edit("docs/usage.md", "Call `total(lines)`.", "Call `total(lines)`, or `total(lines, rate)`."),)),
    Entry("changelog entry", "docs", SRC, "add a 1.1 section to CHANGELOG.md",
          (Edit("CHANGELOG.md", "## 1.0\n", "## 1.1\n\n- Typed.\n\n## 1.0\n"),)),
    Entry("year of the license", "docs", SRC, "update the year in LICENSE to 2026",
          (Edit("LICENSE", "2023", "2023-2026"),)),
    Entry("docstrings are added", "docs", INSIDE, "document Circle in shapes/area.py",
          (Edit("shapes/area.py", "class Circle:\n", 'class Circle:\n    """A circle."""\n\n'),
           Edit("shapes/area.py", "math.pi * self", "math.pi * self"),
           Edit("shapes/area.py", "    def perimeter(self):\n", '    def perimeter(self):\n        """Return the way around."""\n'))),
    Entry("docstrings in another style", "docs", UNITTEST, "rewrite the docstrings of bank/account.py in the imperative",
          (Edit("bank/account.py", '"""An account with a balance."""', '"""Keep a balance.\n\n    It is never below zero.\n    """'),)),
    Entry("a docstring beside a script that shows its own", "docs",
          INSIDE.but(Put("tools/areas.py", _SCRIPT)), "document Circle in shapes/area.py",
          (Edit("shapes/area.py", "class Circle:\n", 'class Circle:\n    """A circle."""\n\n'),)),
    Entry("a docstring beside a reader of hints", "docs",
          UNITTEST.but(Put("bank/fields.py", _HINTS)), "reword the docstring of Account in bank/account.py",
          (Edit("bank/account.py", '"""An account with a balance."""', '"""An account that has a balance."""'),)),
    Entry("hints beside a reader of docstrings", "hints",
          COMMAND.but(Put("todo/manual.py", "from inspect import getdoc\n\n\ndef explain(function):\n    return getdoc(function)\n")),
          "annotate load and save in todo/store.py",
          (Edit("todo/store.py", "def load(path):", "def load(path: str) -> list[str]:"),
           Edit("todo/store.py", "def save(path, items):", "def save(path: str, items: list[str]) -> None:"))),
    Entry("a readme in reStructuredText", "docs", INSIDE, "describe circles in README.rst",
          (Edit("README.rst", "Areas of shapes.", "Areas of rectangles and circles."),)),
    Entry("a note for contributors", "docs", RESOURCES, "add CONTRIBUTING.md that says how to run the tests",
          (Put("CONTRIBUTING.md", "# Contributing\n\nRun `python -m pytest`.\n"),)),
    Entry("a comment says why", "docs", RESOURCES, "add a comment to weather/stations.py that says why names() sorts",
          (Edit("weather/stations.py", "    return sorted(", "    # glob gives them in the order of the disk\n    return sorted("),)),
    Entry("hints in a flat module", "hints", FLAT, "add type hints to slug.py",
          (Edit("slug.py", "def slugify(title, separator=SEPARATOR):", "def slugify(title: str, separator: str = SEPARATOR) -> str:"),
           Edit("slug.py", "def shorten(slug, length):", "def shorten(slug: str, length: int) -> str:"),
           Edit("slug.py", "def initials(slug):", "def initials(slug: str) -> str:"))),
    Entry("hints of classes", "hints", INSIDE, "annotate shapes/area.py",
          (Edit("shapes/area.py", "def __init__(self, width, height):", "def __init__(self, width: float, height: float) -> None:"),
           Edit("shapes/area.py", "def area(self):", "def area(self) -> float:"),
           Edit("shapes/area.py", "def perimeter(self):", "def perimeter(self) -> float:"),
           Edit("shapes/area.py", "def __init__(self, radius):", "def __init__(self, radius: float) -> None:"))),
    Entry("hints with an import", "hints", RESOURCES, "type report() in weather/report.py",
          (Edit("weather/report.py", "from pathlib import Path\n", "from collections.abc import Sequence\nfrom pathlib import Path\n"),
           Edit("weather/report.py", "def report(name, readings):", "def report(name: str, readings: Sequence[float]) -> str:"))),
    Entry("hints of variables", "hints", COMMAND, "annotate load and save in todo/store.py",
          (Edit("todo/store.py", "def load(path):", "def load(path: str) -> list[str]:"),
           Edit("todo/store.py", "def save(path, items):", "def save(path: str, items: list[str]) -> None:"))),
    Entry("hints for a checker that was red", "hints",
          SRC.but(Edit("src/invoice/tax.py", "rate: int) -> int:", "rate) -> int:")),
          "mypy complains about src/invoice/tax.py, fix it",
          (Edit("src/invoice/tax.py", "rate) -> int:", "rate: int) -> int:"),)),
    Entry("hints are written the new way", "hints",
          SRC.but(Edit("src/invoice/core.py", "from dataclasses import dataclass\n", "from dataclasses import dataclass\nfrom typing import Optional\n"),
                  Edit("src/invoice/core.py", "rate: int | None", "rate: Optional[int]")),
          "use X | None instead of Optional in src/invoice/core.py",
          (Edit("src/invoice/core.py", "from typing import Optional\n", ""),
           Edit("src/invoice/core.py", "rate: Optional[int]", "rate: int | None"))),
    Entry("a formatter ran", "layout", _FORMATTED, "run ruff format over src and tests",
          (), command=".venv/bin/python -m ruff format src tests"),
    Entry("imports are sorted", "layout", _UNSORTED, "sort the imports of src/invoice/cli.py",
          (Edit("src/invoice/cli.py", "import sys\nimport argparse\nfrom invoice", "import argparse\nimport sys\n\nfrom invoice"),)),
    Entry("an import that nobody uses, found by the linter", "layout",
          SRC.but(Edit("src/invoice/tax.py", '"""Tax."""\n', '"""Tax."""\n\nimport os\n')),
          "fix the lint error in src/invoice/tax.py",
          (Edit("src/invoice/tax.py", "\nimport os\n", ""),)),
    Entry("long lines are wrapped", "layout", RESOURCES, "wrap the long line in weather/report.py",
          (Edit("weather/report.py", 'format(name=known["title"], height=known["height"], warmest=warmest)',
                'format(\n        name=known["title"],\n        height=known["height"],\n        warmest=warmest,\n    )'),)),
)  # fmt: skip
