"""Which changed files can decide by themselves what tests come to: a pure function of path and texts."""

import ast
import configparser
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

from agentflow.verdict.surface import Kind

_OTHER_TOOLS = frozenset(
    {
        *("ruff", "mypy", "black", "isort", "pylint", "flake8", "pyright", "ty", "bandit", "codespell"),
        *("coverage", "eslint", "eslintrc", "nycrc", "coveragerc", "pylintrc", "pyrightconfig", "tsconfig"),
        *("golangci", "clippy", "pre-commit-config", "eslintConfig", "eslintIgnore", "nyc", "c8"),
    }
)
"""Tools that judge code without running a test, by the begin of their files or their table."""
_PRODUCT_TABLES = frozenset(
    {
        *("project", "build-system", "dependency-groups", "poetry", "uv", "pdm", "hatch", "setuptools"),
        *("setuptools_scm", "flit", "maturin", "scikit-build", "metadata", "options"),
    }
)
_CHECKER_KEYS = ("scripts", "jest", "vitest", "mocha", "ava", "babel", "tap")
_RECIPES: Mapping[str, str] = MappingProxyType(
    {
        "makefile": "make",
        ".mk": "make",
        "justfile": "just",
        "taskfile": "task",
        "mvnw": "mvn",
        "gradle": "gradle",
    }
)
"""Files with commands, and the program that obeys them."""
_VALUES = frozenset(
    {".json", ".csv", ".tsv", ".txt", ".xml", ".yaml", ".yml", ".html", ".md", ".rst", ".sql"}
)


def steers(path: str, kind: Kind, before: str, after: str, commands: Iterable[str]) -> bool:
    """Tell whether a changed file can decide over tests that name nothing of it.

    `commands` are those of the tests: a Makefile decides nothing where they do not start make.
    """
    match kind:
        case Kind.TESTS | Kind.UNKNOWN:
            return False
        case Kind.FIXTURES:
            return path.endswith(".py") and not _only_gains(before, after)
        case Kind.RUNNER:
            return _settings(path, before) != _settings(path, after)
        case Kind.BUILD:
            return any(word in path.lower() and _starts(tool, commands) for word, tool in _RECIPES.items())
        case Kind.START | Kind.NAMED | Kind.OBSERVED | Kind.SETTING:
            is_code = PurePosixPath(path).suffix not in _VALUES
            return is_code and not (path.endswith(".py") and _only_gains(before, after))


def _starts(tool: str, commands: Iterable[str]) -> bool:
    return any(re.search(rf"(?<![\w-]){tool}", command) for command in commands)


def _settings(path: str, text: str) -> object:
    """Return what a file of settings says to a runner of tests; the whole of one that cannot be read."""
    name = path.rpartition("/")[2]
    if (
        name.lstrip(".").partition(".")[0] in _OTHER_TOOLS
        or re.split(r"[._]", name.lstrip("."))[0] in _OTHER_TOOLS
    ):
        return None
    try:
        return _READERS[name](text) if name in _READERS else text
    except (ValueError, configparser.Error, RecursionError):
        return text


def _toml(text: str) -> object:
    from tomllib import loads  # noqa: PLC0415  # only where there is one

    document = loads(text)
    plugins = document.get("project", {}).get("entry-points", {}).get("pytest11")
    tools = {key: value for key, value in document.get("tool", {}).items() if _is_of_tests(key)}
    others = {key: value for key, value in document.items() if key != "tool" and _is_of_tests(key)}
    return plugins, tools, others


def _ini(text: str) -> object:
    parser = configparser.RawConfigParser(strict=False)
    parser.read_string(text)
    return {name: dict(parser[name]) for name in parser.sections() if _is_of_tests(name)}


def _is_of_tests(table: str) -> bool:
    return re.split(r"[.:-]", table)[0] not in _OTHER_TOOLS and table.partition(".")[0] not in _PRODUCT_TABLES


def _json(text: str) -> object:
    document = json.loads(text or "{}")
    return {key: document.get(key) for key in _CHECKER_KEYS}


_READERS: Mapping[str, Callable[[str], Any]] = MappingProxyType(
    {"pyproject.toml": _toml, "setup.cfg": _ini, "tox.ini": _ini, "package.json": _json}
)


def _only_gains(before: str, after: str) -> bool:
    """Tell whether Python code kept all it had and gained only what a test has to name."""
    try:
        old, new = (Counter(map(ast.dump, ast.parse(text).body)) for text in (before, after))
        known = {name for node in ast.parse(before).body if (name := _name(node))}
        added = [node for node in ast.parse(after).body if ast.dump(node) in new - old]
    except (SyntaxError, ValueError, RecursionError):
        return False
    return not old - new and all(_is_plain(node) and _name(node) not in known for node in added)


def _name(node: ast.stmt) -> str | None:
    return node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else None


def _is_plain(node: ast.stmt) -> bool:
    """Tell whether a statement cannot change a test that does not name it."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if not isinstance(node, ast.FunctionDef) or node.name.startswith(
        ("pytest_", "setup", "teardown", "load_tests")
    ):
        return False
    words = " ".join(map(ast.unparse, node.decorator_list))
    return not words or (
        bool(re.fullmatch(r"(?:pytest\.)?fixture(?:\(.*\))?", words)) and "autouse" not in words
    )
