"""Functions and files stay small; complexity, arguments, returns and nesting are ruff's."""

import ast
from statistics import median

import pytest

MAX_BODY = 40
MAX_MEDIAN = 10
MAX_FILE = 400

Sources = dict[str, str]


def body_sizes(sources: Sources) -> dict[str, int]:
    """Return the lines of each function's body, its signature not counted."""
    sizes = {}
    for path, text in sources.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                last = node.body[-1].end_lineno or 0
                sizes[f"{path}:{node.lineno} {node.name}"] = last - node.body[0].lineno + 1
    return sizes


def long_functions(sources: Sources) -> list[str]:
    return [f"{name}: {size} lines" for name, size in body_sizes(sources).items() if size > MAX_BODY]


def long_files(sources: Sources) -> list[str]:
    sizes = {path: len(text.splitlines()) for path, text in sources.items()}
    return [f"{path}: {size} lines" for path, size in sizes.items() if size > MAX_FILE]


def test_no_function_is_longer_than_forty_lines(sources: Sources) -> None:
    assert long_functions(sources) == []


def test_half_of_the_functions_have_at_most_ten_lines(sources: Sources) -> None:
    assert median(body_sizes(sources).values()) <= MAX_MEDIAN


def test_no_file_is_longer_than_400_lines(sources: Sources) -> None:
    assert long_files(sources) == []


@pytest.mark.parametrize(("lines", "found"), [(40, 0), (41, 1)])
def test_the_body_counts_and_the_signature_does_not(lines: int, found: int) -> None:
    signature = "def f(\n" + "".join(f"    a{number}: int,\n" for number in range(30)) + ") -> None:\n"
    assert len(long_functions({"agentflow/a.py": signature + "    x = 1\n" * lines})) == found


def test_methods_and_inner_functions_count_too() -> None:
    inner = "class A:\n    async def f(self):\n        def g():\n" + "            x = 1\n" * 41
    assert [found.split()[1] for found in long_functions({"agentflow/a.py": inner})] == ["f:", "g:"]


@pytest.mark.parametrize(("lines", "found"), [(400, 0), (401, 1)])
def test_a_long_file_is_found(lines: int, found: int) -> None:
    assert len(long_files({"agentflow/a.py": "x = 1\n" * lines})) == found
