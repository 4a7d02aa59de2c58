"""Bugs seeded in small modules of our own, read from the tables beside this file."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from agentflow.core.record import Record
from benchmarks.tasks import PYTHON

HALVES = ("held_out", "open")
"""Bugs that the engine was never looked at with, and the others."""
_IGNORED = ".venv/\n__pycache__/\n.pytest_cache/\n"
_SETTINGS = '[project]\nname = "shop"\nversion = "1"\n\n[tool.pytest.ini_options]\npythonpath = ["."]\n'


class Bug(Record):
    """A module with a mistake, the tests that show it, and what the right module does elsewhere."""

    half: str
    module: str
    number: int
    kind: str
    right: str
    wrong: str
    tests: str
    probes: tuple[str, ...]
    """Expressions whose values the right module and a mended one are compared by."""

    @property
    def name(self) -> str:
        return f"{self.module}-{self.number} ({self.kind})"

    @property
    def files(self) -> Mapping[str, str]:
        """The repository as a user has it."""
        return {
            ".gitignore": _IGNORED,
            "pyproject.toml": _SETTINGS,
            f"shop/{self.module}.py": self.wrong,
            "shop/__init__.py": "",
            f"tests/test_{self.module}.py": f"from shop.{self.module} import *\n\n\n{self.tests}",
        }

    def lay(self, root: Path) -> None:
        """Write the repository, with an environment that has the test runner."""
        for name, text in self.files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, "utf-8")
        python = root / ".venv/bin/python"
        python.parent.mkdir(parents=True)
        python.write_text(PYTHON, "utf-8")
        python.chmod(0o755)


def read_bugs() -> tuple[Bug, ...]:
    """Return the bugs of both tables, each class spread over the whole."""
    return tuple(bug for half in HALVES for bug in _read_half(half))


def _read_half(half: str) -> Iterator[Bug]:
    tables: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name(f"{half}.yaml").read_text("utf-8"))
    for table in tables:
        for number, (kind, *edits) in enumerate(table["bugs"]):
            yield Bug(
                half=half,
                module=table["module"],
                number=number,
                kind=kind,
                right=table["source"],
                wrong=_break(table["source"], edits),
                tests=table["tests"],
                probes=tuple(table["probes"]),
            )


def _break(source: str, edits: list[str]) -> str:
    """Return a module with its mistakes. Raises ValueError for a text that does not stand there once."""
    for old, new in zip(edits[::2], edits[1::2], strict=True):
        if source.count(old) != 1:
            raise ValueError(f"{old!r} does not stand there once")
        source = source.replace(old, new)
    return source
