"""Docstrings and annotations that code reads: whether they are part of what it does."""

import ast
import re
from collections.abc import Collection, Iterator

from agentflow.verdict.syntax import Definition, read_python

_DOCSTRINGS = ("__doc__", "getdoc", "get_docstring", "pydoc", "yacc")
_ANNOTATIONS = (
    *("__annotations__", "get_type_hints", "get_annotations", "getfullargspec", "pydoc"),
    *("annotation", "return_annotation", "singledispatch", "singledispatchmethod"),
)
_IN_A_FILE = frozenset(
    {
        *(*_DOCSTRINGS, *_ANNOTATIONS, "docopt", "getsource", "signature", "Cmd", "ply"),
        *("attr", "attrs", "beartype", "cattrs", "click", "dataclass_json", "fastapi", "fire", "injector"),
        *("msgspec", "pydantic", "strawberry", "typer"),
    }
)
"""Names whose use makes the docstrings or annotations of a file part of what it does."""
_DUNDER = re.compile(r"__\w+__")


def reads_own_texts(tree: ast.Module) -> bool:
    """Return whether a file uses a name by which its own docstrings or annotations may be read."""
    return any(word in _IN_A_FILE for _, word in _list_words(tree))


def reads_texts_of_others(text: str, words: Collection[str]) -> bool:
    """Return whether code uses one of some words for more than its own module's docstring."""
    tree = read_python(text)
    return tree is None or any(
        word in words and not (isinstance(node, ast.Name) and word == "__doc__")
        for node, word in _list_words(tree)
    )


def find_reading_words(before: str, after: str) -> frozenset[str]:
    """Return the names by which other code may read the docstrings or annotations that differ."""
    sides = [read_python(text) for text in (before, after)]
    kinds = ((_DOCSTRINGS, _list_docstrings), (_ANNOTATIONS, _list_annotations))
    differing = (
        words
        for words, list_texts in kinds
        if len({(*list_texts(side),) if side else None for side in sides}) > 1
    )
    return frozenset(word for words in differing for word in words)


def _list_docstrings(tree: ast.Module) -> Iterator[str | None]:
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Module | Definition))
    return (ast.get_docstring(node, clean=False) for node in nodes)


def _list_annotations(tree: ast.Module) -> Iterator[str | None]:
    """Yield the annotation of each place, and the imports that decide whether they are kept as text."""
    for node in ast.walk(tree):
        found = (getattr(node, field) for field in ("annotation", "returns") if hasattr(node, field))
        yield from (each and ast.dump(each) for each in found)
    yield from (ast.dump(each) for each in tree.body if getattr(each, "module", "") == "__future__")


def _list_words(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Yield the names that code uses, and what stands in its strings as only code is spelled."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield node, name
            case ast.alias(name=name) | ast.ImportFrom(module=str() as name):
                yield from ((node, part) for part in name.split("."))
            case ast.Constant(value=str() as text) if id(node) not in prose:
                yield from ((node, part) for part in (text, *_DUNDER.findall(text)))
