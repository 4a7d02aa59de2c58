"""Unused Python code: imports of the standard library and private functions that nothing takes."""

import ast
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePosixPath
from typing import TypeGuard

from agentflow.verdict.syntax import NO_PYTHON, list_words, name_imported, read_python

_FOR_HINTS = frozenset({"typing", "collections.abc"})
_DOING = frozenset({"this", "antigravity", "readline", "rlcompleter", "site"})
"""Modules of the library that are imported for what they do."""
_PRIVATE = re.compile(r"_[A-Za-z]\w+")


def sort_imports(tree: ast.Module, own: Collection[str]) -> None:
    """Sort imports of the standard library that follow each other, one name each."""
    body = list[ast.stmt]()
    run = list[ast.stmt]()
    for node in tree.body:
        if _is_of_library(node, own):
            run += _single(node)
        else:
            body += [*_in_order(run), node]
            run = []
    tree.body = [*body, *_in_order(run)]


def _in_order(imports: list[ast.stmt]) -> list[ast.stmt]:
    """Return imports of one name each in a fixed order, unless the last of two that bind a name counts."""
    sources = dict[str, str]()
    for node in imports:
        assert isinstance(node, ast.Import | ast.ImportFrom)
        is_top = isinstance(node, ast.Import) and not node.names[0].asname
        source = "" if is_top else ast.dump(node)
        name = name_imported(node.names[0])
        if name == "*" or sources.setdefault(name, source) != source:
            return imports
    return sorted(imports, key=ast.dump)


def take_out_unused(old: ast.Module, new: ast.Module, own: Collection[str]) -> None:
    """Remove from the old code the unused imports and private functions that the new code no longer has."""
    gone = {name for _, name in _find_dropped(old, new, own)}
    defined = [node for node in old.body if getattr(node, "name", "") in gone]
    if defined:  # what other code calls is no dead code
        rest = [node for node in old.body if node not in defined]
        gone -= {getattr(node, "name", "") for node in defined} & list_words(ast.Module(rest, []))
    for node in old.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            node.names = [each for each in node.names if name_imported(each) not in gone]
    old.body = [
        node for node in old.body if getattr(node, "name", "") not in gone and getattr(node, "names", True)
    ]


def find_dropped_names(before: str, after: str, own: Collection[str]) -> dict[str, str]:
    """Return the names that code binds no more and does not need, each as import or function."""
    try:
        return {name: kind for kind, name in _find_dropped(ast.parse(before), ast.parse(after), own)}
    except NO_PYTHON:
        return {}


def is_taken(path: str, names: Collection[str], text: str) -> bool:
    """Return whether other code takes one of the names from the module at a path, or may take any."""
    place = PurePosixPath(path)
    stem = place.parent.name if place.stem == "__init__" else place.stem
    tree = read_python(text)
    if tree is None:
        return True
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=module, names=parts) if (module or stem).rpartition(".")[2] == stem:
                if any(each.name in names or each.name == "*" for each in parts):
                    return True
            case ast.Attribute(attr=word, value=value) if word in names:
                if ast.unparse(value).rpartition(".")[2] == stem:
                    return True
            case _:
                pass
    return False


def _find_dropped(old: ast.Module, new: ast.Module, own: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield imports of the library and private functions of old code that new code never says."""
    said = list_words(new)
    for node in old.body:
        if isinstance(node, ast.Import | ast.ImportFrom) and _is_only_bound(node, own):
            yield from (
                ("import", name_imported(each)) for each in node.names if name_imported(each) not in said
            )
        elif _is_plain(node) and node.name not in said:
            yield "function", node.name


def _is_only_bound(node: ast.Import | ast.ImportFrom, own: Collection[str]) -> bool:
    """Return whether an import of the library only binds names, which nobody is meant to take from here."""
    if isinstance(node, ast.ImportFrom):
        return node.module in _FOR_HINTS and _is_of_library(node, own)
    return _is_of_library(node, own) and not any("." in each.name for each in node.names)


def _is_plain(node: ast.stmt) -> TypeGuard[ast.FunctionDef]:
    """Return whether a statement defines a private function and does nothing else."""
    if not isinstance(node, ast.FunctionDef) or node.decorator_list or not _PRIVATE.fullmatch(node.name):
        return False
    head = (node.args, *filter(None, [node.returns]))
    return not any(isinstance(each, ast.Call) for part in head for each in ast.walk(part))


def _is_of_library(node: ast.stmt, own: Collection[str]) -> bool:
    """Return whether a statement imports from the standard library alone."""
    modules = list[str]()
    if isinstance(node, ast.Import):
        modules = [each.name for each in node.names]
    elif isinstance(node, ast.ImportFrom) and not node.level and node.module != "__future__":
        modules = [node.module or ""]
    tops = {module.partition(".")[0] for module in modules}
    return bool(own) and bool(tops) and tops <= sys.stdlib_module_names - {*own, *_DOING}


def _single(node: ast.stmt) -> Iterable[ast.stmt]:
    """Yield an import name by name."""
    assert isinstance(node, ast.Import | ast.ImportFrom)
    for each in node.names:
        if isinstance(node, ast.Import):
            yield ast.Import(names=[each])
        else:
            yield ast.ImportFrom(module=node.module, names=[each], level=node.level)
