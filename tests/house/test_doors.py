"""Each outside library and each way to start a program has one door."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

Sources = dict[str, str]

IN_THE_CHECK = "agentflow/sandbox/sealed.py"
"""Run by the interpreter of a check, in a copy of the repository; never in our own process."""
TRIES_MUTANTS_IN_THE_CHECK = "agentflow/mutants/server.py"
"""Run by the same interpreter: it loads what the tests load before it forks."""
COMPARES_IN_THE_CHECK = "agentflow/repair/compare.py"
"""Run by the same interpreter in such a copy."""
BECOMES_THE_COMMAND = "agentflow/sandbox/launch.py"
"""Started by process.py with a bare Python, to prepare that process and then be another program."""
ATTACKS_THE_SANDBOX = "agentflow/sandbox/attack.py"
"""Run inside the sandbox by `doctor`, to get out of it."""
RUNS_ONE_COMMAND = "agentflow/cli/commands.py"
"""Imports the module of the command that is run and of no other."""
DOORS: dict[str, tuple[str, ...]] = {
    "subprocess": ("agentflow/process.py", ATTACKS_THE_SANDBOX),
    "anyio.open_process": ("agentflow/process.py",),
    "anyio.run_process": ("agentflow/process.py",),
    "os.system": (),
    "os.popen": (),
    "os.posix_spawn": (),
    "os.fork": (IN_THE_CHECK, COMPARES_IN_THE_CHECK),
    "os.execv": (),
    "os.execvp": (BECOMES_THE_COMMAND,),
    "os.execve": (),
    "pty": (),
    "multiprocessing": (),
    "concurrent.futures.ProcessPoolExecutor": (),
    "tree_sitter": ("agentflow/permissions/shell_parser.py", "agentflow/languages/grammars.py"),
    "tree_sitter_bash": ("agentflow/permissions/shell_parser.py",),
    "yaml": ("agentflow/frontmatter.py",),
    "typer": ("agentflow/cli/",),
    "sqlite3": ("agentflow/memory/file.py", "agentflow/symbols/index.py"),
    "tokenizers": ("agentflow/memory/meaning.py",),
    "jinja2": ("agentflow/pages/templates.py",),
    "prompt_toolkit": ("agentflow/cli/line_editor.py",),
    "rich": ("agentflow/view/region.py",),
    "msgspec.convert": ("agentflow/parse.py",),
    "msgspec.json": ("agentflow/core/", "agentflow/parse.py"),
    "asyncio": (),
    "unittest.mock": (),
    "mock": (),
    "importlib.import_module": (
        RUNS_ONE_COMMAND,
        "agentflow/languages/grammars.py",
        "agentflow/runners/table.py",
        TRIES_MUTANTS_IN_THE_CHECK,
    ),
    "__import__": (IN_THE_CHECK,),
    "anthropic": ("agentflow/model/sdk.py",),
    "httpx": (),
    "http.client": ("agentflow/cli/models.py",),
    "h11": ("agentflow/model/direct.py",),
    "httpcore2": ("agentflow/model/direct.py",),
    "httpx2": ("agentflow/model/http.py", "agentflow/tools/web.py", "agentflow/mcp/client.py"),
    "acp": ("agentflow/editor/",),
    "ray": ("agentflow/batch/cluster.py",),
    "opentelemetry": ("agentflow/telemetry.py",),
    "mcp": ("agentflow/mcp/client.py", "agentflow/mcp/server.py"),
    "mcp_types": (),
    "packaging": ("agentflow/checks/dependencies.py",),
    "tomlkit": ("agentflow/verdict/mixed_files.py",),
    "git": ("agentflow/workspace/commit.py",),
    "frontmatter": ("agentflow/frontmatter.py",),
    "pydantic": (),
    "starlette": ("agentflow/web/server.py",),
    "uvicorn": ("agentflow/web/server.py",),
}
"""What is used, and the only places that may; nobody, where the list is empty."""


def dotted(node: ast.expr) -> str | None:
    """Return `a.b.c` of an attribute chain."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            head = dotted(value)
            return head and f"{head}.{attr}"
        case _:
            return None


class Import(NamedTuple):
    line: int
    full: str
    local: str
    meaning: str
    """The full name that the local one stands for."""


def imports(tree: ast.Module) -> Iterator[Import]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                head = alias.name.partition(".")[0]
                yield Import(
                    node.lineno, alias.name, alias.asname or head, alias.name if alias.asname else head
                )
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield Import(node.lineno, full, alias.asname or alias.name, full)


def uses(text: str) -> set[tuple[int, str]]:
    """Return line and full name of what a module imports, and of what it reaches through that."""
    tree = ast.parse(text)
    imported = list(imports(tree))
    local = {"__import__": "__import__"} | {each.local: each.meaning for each in imported}
    found = {(each.line, each.full) for each in imported}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and (name := dotted(node)):
            head, _, rest = name.partition(".")
            if full := local.get(head):
                found.add((node.lineno, f"{full}.{rest}" if rest else full))
    return found


def trespasses(sources: Sources) -> list[str]:
    found = set()
    for path, text in sources.items():
        for line, name in uses(text):
            for closed in tops(name):
                if closed in DOORS and not path.startswith(DOORS[closed]):
                    found.add(f"{path}:{line}: {closed}")
    return sorted(found)


def tops(name: str) -> Iterator[str]:
    """Yield `a`, `a.b` and `a.b.c` of `a.b.c`."""
    for end in range(len(name) + 1):
        if name[end : end + 1] in (".", ""):
            yield name[:end]


def test_every_library_is_used_through_its_door(sources: Sources) -> None:
    assert trespasses(sources) == []


def patching(text: str) -> list[int]:
    """Return the lines on which a test sets an attribute of something that is not its own."""
    names = ("setattr", "setitem", "delattr")
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute))
    return [node.lineno for node in nodes if node.attr in names and dotted(node.value) == "monkeypatch"]


def test_tests_do_not_patch(root: Path) -> None:
    tests = {path.relative_to(root).as_posix(): path.read_text() for path in (root / "tests").rglob("*.py")}
    closed = ("unittest.mock", "mock", "anthropic", "asyncio")
    assert [
        found for found in trespasses(tests) if found.endswith(tuple(f": {name}" for name in closed))
    ] == []
    patched = {path: patching(text) for path, text in tests.items() if "monkeypatch" in text}
    assert {path: lines for path, lines in patched.items() if lines} == {}
    assert patching("def test(monkeypatch):\n    monkeypatch.setattr(a, 'b', 1)\n") == [2]


@pytest.mark.parametrize(
    ("planted", "door"),
    [
        ("import subprocess", "subprocess"),
        ("import subprocess as s", "subprocess"),
        ("from subprocess import run", "subprocess"),
        ("def f():\n    import subprocess", "subprocess"),
        ("import anyio\nanyio.open_process('x')", "anyio.open_process"),
        ("from anyio import open_process", "anyio.open_process"),
        ("import anyio as a\na.run_process('x')", "anyio.run_process"),
        ("import os\nos.system('x')", "os.system"),
        ("import os as o\no.popen('x')", "os.popen"),
        ("from os import system", "os.system"),
        ("import yaml", "yaml"),
        ("from yaml import safe_load", "yaml"),
        ("import typer", "typer"),
        ("import rich.console", "rich"),
        ("from rich.console import Console", "rich"),
        ("import asyncio", "asyncio"),
        ("from unittest import mock", "unittest.mock"),
        ("import unittest.mock", "unittest.mock"),
        ("import msgspec\nmsgspec.convert(1, int)", "msgspec.convert"),
        ("import anthropic", "anthropic"),
        ("from git import Repo", "git"),
        ("import pydantic", "pydantic"),
        ("import importlib\nimportlib.import_module('yaml')", "importlib.import_module"),
        ("__import__('yaml')", "__import__"),
        ("from concurrent.futures import ProcessPoolExecutor", "concurrent.futures.ProcessPoolExecutor"),
    ],
)
def test_another_way_in_is_found(planted: str, door: str) -> None:
    found = trespasses({"agentflow/loop/a.py": planted})
    assert {line.rpartition(" ")[2] for line in found} == {door}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("agentflow/process.py", "import subprocess"),
        ("agentflow/frontmatter.py", "import yaml"),
        ("agentflow/cli/app.py", "import typer"),
        ("agentflow/view/region.py", "from rich.table import Table"),
        ("agentflow/loop/a.py", "import anyio, os\nanyio.sleep(1)\nos.replace('a', 'b')"),
        ("agentflow/loop/a.py", "from agentflow.workspace import git\ngit.root()"),
        ("agentflow/loop/a.py", "def f(git):\n    return git.root"),
        ("agentflow/loop/a.py", "from agentflow import frontmatter\nfrontmatter.split('')"),
        ("agentflow/tools/a.py", "from msgspec import Meta"),
    ],
)
def test_the_door_itself_is_open(path: str, text: str) -> None:
    assert trespasses({path: text}) == []
