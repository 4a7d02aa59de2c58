"""Docstrings are sentences, and no file knows the machine it was written on."""

import ast
import re
from pathlib import Path

import pytest

Sources = dict[str, str]
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

MACHINE_PATH = re.compile(r"(?<![\w.~}>])/(?:home|Users|root|work)/(?!user\b|me\b)[\w.-]+")


def is_public(node: Documented) -> bool:
    return isinstance(node, ast.Module) or not node.name.startswith("_")


def unsentenced(sources: Sources) -> list[str]:
    """Return where a public docstring does not begin as a sentence or does not end as one."""
    found = []
    for path, text in sources.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, Documented) and is_public(node) and (said := ast.get_docstring(node)):
                begins = said[0].isupper() or said[0] == "`"
                if not begins or not said.endswith("."):
                    found.append(f"{path}:{node.body[0].lineno}: {said.splitlines()[0]}")
    return found


def machine_paths(name: str, text: str) -> list[str]:
    numbered = enumerate(text.splitlines(), 1)
    return [f"{name}:{number}: {line.strip()}" for number, line in numbered if MACHINE_PATH.search(line)]


def readable(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


def test_public_docstrings_are_sentences(sources: Sources) -> None:
    assert unsentenced(sources) == []


def test_no_file_holds_a_path_of_some_machine(root: Path, kept_files: tuple[str, ...]) -> None:
    product = [name for name in kept_files if not name.startswith("tests/")]
    assert len(product) > 1
    assert [found for name in product for found in machine_paths(name, readable(root / name))] == []


def test_no_file_holds_the_path_of_this_checkout(root: Path, kept_files: tuple[str, ...]) -> None:
    assert [name for name in kept_files if f"{root}/" in readable(root / name)] == []


@pytest.mark.parametrize(
    "planted",
    [
        '"""no capital."""',
        '"""No full stop"""',
        'class A:\n    """a thing."""',
        'def f():\n    """Return it"""',
        'class A:\n    async def f(self):\n        """return it."""',
    ],
)
def test_a_docstring_that_is_no_sentence_is_found(planted: str) -> None:
    assert len(unsentenced({"agentflow/a.py": planted})) == 1


@pytest.mark.parametrize("fine", ['"""`x` is it."""', 'def _f():\n    """whatever"""', '"""A.\n\nB c.\n"""'])
def test_a_sentence_is_one(fine: str) -> None:
    assert unsentenced({"agentflow/a.py": fine}) == []


@pytest.mark.parametrize("planted", ["/home/alice/x", "cd /Users/bob", "'/home/bob/main'", "(/root/.cache)"])
def test_a_machine_path_is_found(planted: str) -> None:
    assert machine_paths("a.md", planted) == [f"a.md:1: {planted}"]


@pytest.mark.parametrize("fine", ["~/.claude", "$HOME/x", "at home/work", "/home/user/x", "src/work/a.py"])
def test_a_path_of_no_machine_is_not(fine: str) -> None:
    assert machine_paths("a.md", fine) == []
