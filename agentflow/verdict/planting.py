"""Mistakes planted in Python functions, by which a linter or type checker shows where it looks."""

import ast
from collections.abc import Iterator, Mapping

from agentflow.core.record import Record

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_MOST = 40


class Planted(Record):
    """A function with a name in it that is defined nowhere."""

    place: str
    """The file and the function, by which it is found on another tree."""
    word: str


def plant_names(texts: Mapping[str, str], word: str) -> tuple[dict[str, str | None], tuple[Planted, ...]]:
    """Return Python files with an unknown name first in each function, and where each name stands."""
    files, found = dict[str, str | None](), list[Planted]()
    for path, text in texts.items():
        lines = text.splitlines(keepends=True)
        for name, node in reversed(list(_functions(text))):
            if len(found) < _MOST and (line := _first_line(node)):
                planted = Planted(place=f"{path}: {name}", word=f"{word}_{len(found)}_")
                indent = " " * node.body[-1].col_offset
                lines.insert(line - 1, f"{indent}{planted.word}\n")
                found.append(planted)
        files[path] = "".join(lines)
    return files, tuple(found)


def _functions(text: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield the functions of a module and of its classes, in their order."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in tree.body:
        if isinstance(node, _FUNCTIONS):
            yield node.name, node
        for inner in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(inner, _FUNCTIONS):
                yield f"{getattr(node, 'name', '')}.{inner.name}", inner


def _first_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int | None:
    """Return the line before which another statement may stand; None where there is no such line."""
    is_told = ast.get_docstring(node, clean=False) is not None
    body = node.body[1:] if is_told else node.body
    if not body or body[0].lineno == node.lineno or (is_told and body[0].lineno == node.body[0].end_lineno):
        return None
    first = body[0]
    marks = first.decorator_list if isinstance(first, (*_FUNCTIONS, ast.ClassDef)) else []
    return min([first.lineno, *(each.lineno for each in marks)])
