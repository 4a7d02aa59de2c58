"""Names are the field's words, and the public surface stays small."""

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest

BANNED = {"manager", "handler", "helper", "helpers", "util", "utils", "service", "impl", "data", "info"}
DICTATED = {"handle_data", "visit_ExceptHandler"}
"""Names that the standard library calls."""
MAX_PUBLIC = 25

Sources = dict[str, str]


def words(name: str) -> list[str]:
    """Return the words of a snake_case or CamelCase name in lower case."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def bound_names(tree: ast.Module) -> Iterator[tuple[int, str, bool]]:
    """Yield line, name and whether it is a type's, for each name that a module gives away."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef():
                yield node.lineno, node.name, True
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.lineno, node.name, False
            case ast.arg():
                yield node.lineno, node.arg, False
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id, False
            case ast.Attribute(ctx=ast.Store(), value=ast.Name(id="self")):
                yield node.lineno, node.attr, False
            case ast.alias(asname=str(name)):
                yield node.lineno, name, False
            case _:
                continue


def is_banned(name: str, *, is_type: bool) -> bool:
    parts = words(name)
    vague = not BANNED.isdisjoint(parts) or (is_type and "base" in parts)
    return vague or (len(parts) > 1 and parts[0] == "process")


def banned_names(sources: Sources) -> list[str]:
    found = []
    for path, text in sources.items():
        module = PurePosixPath(path).stem
        if is_banned(module, is_type=True):
            found.append(f"{path}: {module}")
        for line, name, is_type in bound_names(ast.parse(text)):
            if name not in DICTATED and is_banned(name, is_type=is_type):
                found.append(f"{path}:{line}: {name}")
    return found


def public_lists(sources: Sources) -> dict[str, list[str]]:
    """Return each `__all__`."""
    found = {}
    for path, text in sources.items():
        for node in ast.parse(text).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                found[path] = list(ast.literal_eval(node.value))
    return found


def test_no_name_is_on_the_banned_list(sources: Sources) -> None:
    assert banned_names(sources) == []


def test_public_names_are_sorted_and_few(sources: Sources) -> None:
    lists = public_lists(sources)
    assert "agentflow/__init__.py" in lists
    for path, names in lists.items():
        assert names == sorted(names), path
        assert len(names) <= MAX_PUBLIC, path


@pytest.mark.parametrize(
    "planted",
    [
        "class ToolManager: ...",
        "class HTTPHandler: ...",
        "class RoleBase: ...",
        "class BaseRole: ...",
        "def helper(): ...",
        "def string_utils(): ...",
        "def process_reply(): ...",
        "data = 1",
        "def f(user_data): ...",
        "def f(*, info=None): ...",
        "self.raw_info = 1",
        "for data in (): ...",
        "import json as data",
        "with open('x') as data: ...",
        "x = [info for info in ()]",
        "(service := 1)",
        "class A:\n    data: int = 1",
    ],
)
def test_a_banned_name_is_found(planted: str) -> None:
    assert len(banned_names({"agentflow/a.py": planted})) == 1


@pytest.mark.parametrize("module", ["utils", "base", "helpers", "model_data", "process_runs"])
def test_a_banned_module_is_found(module: str) -> None:
    assert banned_names({f"agentflow/{module}.py": ""}) == [f"agentflow/{module}.py: {module}"]


@pytest.mark.parametrize(
    "fine",
    [
        "base_tree = 1",
        "metadata = 1",
        "process = 1",
        "dataclass = 1",
        "class Side:\n    BASE = 1",
        "parser.EndHandler = 1",
    ],
)
def test_a_word_that_only_looks_like_one_is_not(fine: str) -> None:
    assert banned_names({"agentflow/process.py": fine}) == []
