"""Repositories with checkers besides tests, and with files that programs or tests read."""

from tests.soak.honest.entries import Shape
from tests.soak.honest.repositories import IGNORED

SRC = Shape({
    ".gitignore": IGNORED + ".ruff_cache/\n.mypy_cache/\n",
    ".github/workflows/ci.yml": "on: [push]\njobs:\n  test:\n    runs-on: ubuntu-22.04\n    steps:\n      - run: pytest\n",
    ".pre-commit-config.yaml": "repos:\n  - repo: https://github.com/astral-sh/ruff-pre-commit\n    rev: v0.5.0\n    hooks:\n      - id: ruff\n",
    "CHANGELOG.md": "# Changes\n\n## 1.0\n\n- First release.\n",
    "LICENSE": "MIT License\n\nCopyright (c) 2023 The authors\n",
    "README.md": "# invoice\n\nSums of invoices.\n",
    "docs/usage.md": "# Usage\n\nCall `total(lines)`.\n",
    "pyproject.toml": """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "invoice"
version = "1.0.0"
requires-python = ">=3.11"
dependencies = ["tomli>=1.1"]

[project.scripts]
invoice = "invoice.cli:main"

[tool.ruff]
line-length = 100

[tool.ruff.lint]
select = ["E", "F", "I"]

[tool.mypy]
strict = true
files = ["src"]

[tool.pytest.ini_options]
testpaths = ["tests"]
""",
    "src/invoice/__init__.py": '''"""Sums of invoices."""

from invoice.core import Line, subtotal, total

__all__ = ["Line", "subtotal", "total"]
__version__ = "1.0.0"
''',
    "src/invoice/py.typed": "",
    "src/invoice/core.py": '''"""Lines of an invoice and their sums, in cents."""

from dataclasses import dataclass

from invoice.errors import InvoiceError
from invoice.settings import setting
from invoice.tax import with_tax


@dataclass(frozen=True)
class Line:
    """One line."""

    name: str
    cents: int
    count: int = 1


def subtotal(lines: list[Line]) -> int:
    """Return the sum without tax."""
    result = 0
    for line in lines:
        if line.count < 0:
            raise InvoiceError(f"negative count: {line.name}")
        result += line.cents * line.count
    return result


def total(lines: list[Line], rate: int | None = None) -> int:
    """Return the sum with tax, at the default rate unless one is given."""
    return with_tax(subtotal(lines), setting("tax") if rate is None else rate)
''',
    "src/invoice/errors.py": '''"""What can be wrong with an invoice."""


class InvoiceError(ValueError):
    """It cannot be summed."""
''',
    "src/invoice/settings.py": '''"""Settings that are shipped."""

import tomllib
from importlib.resources import files


def setting(name: str) -> int:
    """Return one setting."""
    text = files("invoice").joinpath("defaults.toml").read_text()
    return int(tomllib.loads(text)[name])
''',
    "src/invoice/defaults.toml": "tax = 20\ndays_to_pay = 14\n",
    "src/invoice/tax.py": '''"""Tax."""


def with_tax(cents: int, rate: int) -> int:
    """Return a sum with a tax of so many per cent, rounded to whole cents."""
    return (cents * (100 + rate) + 50) // 100
''',
    "src/invoice/cli.py": '''"""The command."""

import argparse
import sys

from invoice.core import Line, total


def main(words: list[str] | None = None) -> int:
    """Print the total of some prices."""
    parser = argparse.ArgumentParser(prog="invoice")
    parser.add_argument("cents", nargs="+", type=int)
    parser.add_argument("--rate", type=int)
    given = parser.parse_args(words)
    lines = [Line("", cents) for cents in given.cents]
    print(total(lines, given.rate))
    return 0


if __name__ == "__main__":
    sys.exit(main())
''',
    "tests/conftest.py": """import pytest

from invoice import Line


@pytest.fixture
def lines():
    return [Line("tea", 300), Line("cake", 450, 2)]
""",
    "tests/test_core.py": """import pytest

from invoice import Line, subtotal, total
from invoice.errors import InvoiceError


def test_subtotal(lines):
    assert subtotal(lines) == 1200


def test_total(lines):
    assert total(lines) == 1440


def test_total_at_another_rate(lines):
    assert total(lines, 7) == 1284


def test_negative():
    with pytest.raises(InvoiceError, match="negative count: tea"):
        subtotal([Line("tea", 300, -1)])
""",
    "tests/test_cli.py": """from invoice.cli import main


def test_prices_are_summed(capsys):
    assert main(["100", "250", "--rate", "10"]) == 0
    assert capsys.readouterr().out == "385\\n"
""",
}, checks=3)  # fmt: skip

RESOURCES = Shape({
    ".gitignore": IGNORED,
    "weather/__init__.py": "",
    "weather/stations.py": '''"""Stations, from the files beside this module."""

import json
from pathlib import Path

_STATIONS = Path(__file__).parent / "stations"


def station(name):
    """Return what is known of a station."""
    return json.loads((_STATIONS / f"{name}.json").read_text())


def names():
    """Return the names of all stations."""
    return sorted(path.stem for path in _STATIONS.glob("*.json"))
''',
    "weather/report.py": '''"""Reports as text."""

from pathlib import Path

from weather.stations import station

_TEMPLATE = Path(__file__).parent / "templates" / "report.txt"


def celsius(kelvin):
    """Return degrees Celsius, rounded."""
    return round(kelvin - 273.15)


def report(name, readings):
    """Return the report of a station."""
    known = station(name)
    warmest = celsius(max(readings))
    return _TEMPLATE.read_text().format(name=known["title"], height=known["height"], warmest=warmest)
''',
    "weather/stations/bergen.json": '{"title": "Bergen", "height": 12}\n',
    "weather/stations/finse.json": '{"title": "Finse", "height": 1222}\n',
    "weather/templates/report.txt": "{name} ({height} m)\nwarmest: {warmest} C\n",
    "tests/readings/bergen.txt": "281.2\n283.4\n280.0\n",
    "tests/expected/bergen.txt": "Bergen (12 m)\nwarmest: 10 C\n",
    "tests/test_report.py": """from pathlib import Path

import pytest

from weather.report import celsius, report

HERE = Path(__file__).parent


@pytest.mark.parametrize("path", sorted(HERE.glob("readings/*.txt")), ids=lambda path: path.stem)
def test_report(path):
    readings = [float(line) for line in path.read_text().split()]
    assert report(path.stem, readings) == (HERE / "expected" / path.name).read_text()


def test_celsius():
    assert celsius(273.15) == 0
""",
    "tests/test_stations.py": """from weather.stations import station


def test_station():
    assert station("finse")["height"] == 1222
""",
})  # fmt: skip
