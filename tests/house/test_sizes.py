"""Functions and files stay small; complexity, arguments, returns and nesting are ruff's.

A function counts whole, signature and docstring with it. Only a command of the command line has more
arguments than ruff allows, an option each: those do not count, and each of them takes one line.
"""

import ast
from functools import cache
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pytest

MAX_FUNCTION = 60
MAX_ARGUMENTS = 6
MAX_MEDIAN = 10
MAX_FILE = 700
Sources = dict[str, str]
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Measures(NamedTuple):
    """What counts of a function."""

    place: str
    lines: int
    body: int
    signature: int
    options: int
    """The number of arguments where they are more than a function may have, else 0."""


@cache
def measure(text: str) -> tuple[Measures, ...]:
    nodes = ast.walk(ast.parse(text))
    return tuple(_measured(node) for node in nodes if isinstance(node, Function))


def _measured(function: Function) -> Measures:
    end, begin = function.end_lineno or 0, function.body[0].lineno
    return Measures(
        place=f"{function.lineno} {function.name}",
        lines=end - function.lineno + 1,
        body=end - begin + 1,
        signature=begin - function.lineno,
        options=count_options(function),
    )


def functions(sources: Sources) -> dict[str, Measures]:
    return {f"{path}:{each.place}": each for path, text in sources.items() for each in measure(text)}


def count_options(function: Function) -> int:
    arguments = function.args
    named = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    count = sum(each.arg != "self" for each in named)
    return count if count > MAX_ARGUMENTS else 0


def body_sizes(sources: Sources) -> list[int]:
    return [each.body for each in functions(sources).values()]


def long_functions(sources: Sources) -> list[str]:
    sizes = {name: each.body if each.options else each.lines for name, each in functions(sources).items()}
    return [f"{name}: {size} lines" for name, size in sizes.items() if size > MAX_FUNCTION]


def crowded_signatures(sources: Sources) -> list[str]:
    """Return the commands whose options are written out in the signature."""
    return [
        name
        for name, each in functions(sources).items()
        if each.options and each.signature > each.options + 2
    ]


def long_files(sources: Sources) -> list[str]:
    sizes = {path: len(text.splitlines()) for path, text in sources.items()}
    return [f"{path}: {size} lines" for path, size in sizes.items() if size > MAX_FILE]


def test_no_function_is_longer_than_sixty_lines(sources: Sources) -> None:
    assert long_functions(sources) == []


def test_each_option_of_a_command_takes_one_line(sources: Sources) -> None:
    assert crowded_signatures(sources) == []


def test_half_of_the_functions_have_at_most_ten_lines(sources: Sources) -> None:
    assert median(body_sizes(sources)) <= MAX_MEDIAN


def test_no_file_is_longer_than_700_lines(sources: Sources) -> None:
    assert long_files(sources) == []


def test_no_file_of_tests_is_longer(root: Path) -> None:
    files = {
        path.relative_to(root).as_posix(): path.read_text()
        for path in (root / "tests").rglob("*.py")
        if "golden" not in path.parts
    }
    assert long_files(files) == []


@pytest.mark.parametrize(("arguments", "lines", "found"), [(5, 53, 0), (5, 54, 1), (30, 60, 0), (30, 61, 1)])
def test_a_signature_counts_unless_it_is_a_command_s(arguments: int, lines: int, found: int) -> None:
    signature = "def f(\n" + "".join(f"    a{number}: int,\n" for number in range(arguments)) + ") -> None:\n"
    assert len(long_functions({"agentflow/a.py": signature + "    x = 1\n" * lines})) == found


@pytest.mark.parametrize(("option", "found"), [("a{}: int = A,\n", 0), ("a{}: int = A(\n1\n),\n", 1)])
def test_an_option_that_is_written_out_in_a_signature_is_found(option: str, found: int) -> None:
    text = "def f(\n" + "".join(map(option.format, range(7))) + ") -> None:\n    return\n"
    assert len(crowded_signatures({"agentflow/a.py": text})) == found


def test_methods_and_inner_functions_count_too() -> None:
    inner = "class A:\n    async def f(self):\n        def g():\n" + "            x = 1\n" * 61
    assert [found.split()[1] for found in long_functions({"agentflow/a.py": inner})] == ["f:", "g:"]


@pytest.mark.parametrize(("lines", "found"), [(700, 0), (701, 1)])
def test_a_long_file_is_found(lines: int, found: int) -> None:
    assert len(long_files({"agentflow/a.py": "x = 1\n" * lines})) == found
