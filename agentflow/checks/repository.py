"""The files of a repository as the detection of checks reads them."""

import configparser
from pathlib import Path, PurePosixPath
from typing import Any

from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.sandbox.run import Sandbox

_READ_BYTES = 1_000_000
PYTEST_SETTINGS = ("pytest.ini", ".pytest.ini", "pytest.toml", "tox.ini", "setup.cfg", "pyproject.toml")
MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
"""The first that is there is the one that make reads."""
_MAKE_TEST = regex(r"(?m)^test[ \t]*:(?!=)[^\n]*(?:\n|\Z)(?P<recipe>(?:\t[^\n]*\n?)*)")
_FOLDERS = regex(r"(?m)^[ \t]*(testpaths|norecursedirs)[ \t]*=[ \t]*(\[[^\]]*\]|[^\n]*(?:\n[ \t]+[^\n]*)*)")
"""Where pytest looks for tests, and where it does not, in TOML and in INI files."""


class Repository(Record):
    """A folder and the files in it that count: those git does not ignore."""

    sandbox: Sandbox
    """Where its programs are asked what they are."""
    files: tuple[str, ...]
    """Relative to the root."""
    known: frozenset[str]
    """The same, to look up."""

    @property
    def root(self) -> Path:
        return self.sandbox.root

    def has(self, *names: str) -> bool:
        return any(name in self.known for name in names)

    def read(self, name: str) -> str:
        """Return the start of a file; empty when it does not count or leads out of the repository."""
        path = self.root / name
        if name not in self.known or not path.resolve().is_relative_to(self.root.resolve()):
            return ""
        try:
            with path.open("rb") as file:
                return file.read(_READ_BYTES).decode("utf-8", "replace")
        except OSError:
            return ""

    def collects(self, name: str) -> bool:
        """Tell whether Python tests in a file are found: in a dot folder only if pytest's settings say so."""
        folder = dot_folder(name)
        said = [each for file in PYTEST_SETTINGS if folder for each in _FOLDERS.findall(self.read(file))]
        skipped = (".*", PurePosixPath(folder).name)
        return not folder or any(
            folder in value if key == "testpaths" else not any(glob in value for glob in skipped)
            for key, value in said
        )

    @property
    def make_test(self) -> tuple[str, str] | None:
        """The makefile that make would take and what its target `test` runs, if it has one."""
        name = next((name for name in MAKEFILES if self.has(name)), "")
        found = _MAKE_TEST.search(self.read(name))
        return (name, found["recipe"]) if found else None

    def toml(self, name: str) -> dict[str, Any]:
        """Return a TOML file; empty when there is none or it is damaged."""
        if not (text := self.read(name)):
            return {}
        import tomllib  # noqa: PLC0415  # only where there is one

        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            return {}

    def ini(self, name: str) -> configparser.ConfigParser:
        """Return an INI file; empty when there is none or it is damaged."""
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        try:
            parser.read_string(self.read(name))
        except configparser.Error:
            return configparser.ConfigParser()
        return parser


def dot_folder(name: str) -> str:
    """Return the outermost folder of a file whose name begins with a dot; empty where there is none."""
    folders = PurePosixPath(name).parent
    found = (folder for folder in (*reversed(folders.parents), folders) if folder.name.startswith("."))
    return str(next(found, ""))


def table(tree: object, *keys: str) -> dict[str, Any]:
    """Return a table nested in plain data; empty when there is none."""
    for key in keys:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree if isinstance(tree, dict) else {}
