"""A moved module: whether a change only gives a Python module another name or folder."""

import ast
import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from agentflow.core.regex import regex
from agentflow.verdict.surface import is_document_path
from agentflow.verdict.syntax import (
    NO_PYTHON,
    find_home_module,
    list_strings,
    list_words,
    may_reach_by_name,
    read_python,
)

_Texts = Mapping[str, str]
"""Texts by path."""
_TELLS_HOME = frozenset({"__module__", "__qualname__", "__file__", "__globals__", "__code__"})
_MANIFESTS = ("pyproject.toml", "setup.cfg", "setup.py")
_LISTS_PACKAGES = regex(r"\b(?:packages|py_modules|py-modules)\b")


def find_moved_module(before: _Texts, after: _Texts) -> dict[str, str]:
    """Return the old and the new name of the one module whose file has another name or folder; else nothing.

    The file keeps its text, and everything that imports it does so by the new name.
    """
    gone, new = sorted(before.keys() - after.keys()), sorted(after.keys() - before.keys())
    new = [path for path in new if not is_empty_package(path, after)]
    if len(gone) != 1 or len(new) != 1 or before[gone[0]] != after[new[0]]:
        return {}
    old, now = PurePosixPath(gone[0]), PurePosixPath(new[0])
    is_fit = old.suffix == now.suffix == ".py" and _is_unknown(old.stem) and _is_unknown(now.stem)
    if not is_fit or _stands_elsewhere(old, after) or _stands_elsewhere(now, before):
        return {}
    try:
        is_same = old.parent == now.parent or _may_change_folder(old, now, before, after)
        return {old.stem: now.stem} if is_same and _is_equal_but_imports(old, now, before, after) else {}
    except NO_PYTHON:
        return {}


def is_empty_package(path: str, texts: _Texts) -> bool:
    """Return whether a file only makes its folder a package."""
    return PurePosixPath(path).name == "__init__.py" and not texts.get(path, "").strip()


def _may_change_folder(old: PurePosixPath, now: PurePosixPath, before: _Texts, after: _Texts) -> bool:
    """Return whether a module does the same in another folder: no code and no manifest knows where it is."""
    tree = ast.parse(before[str(old)])
    is_placed = any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree))
    is_placed = is_placed or not _TELLS_HOME.isdisjoint(list_words(tree))
    apart = {str(each / "__init__.py") for each in {*old.parents} ^ {*now.parents}}
    is_run = any(
        path in texts and not is_empty_package(path, texts) for path in apart for texts in (before, after)
    )
    listed = any(_LISTS_PACKAGES.search(before.get(path, "")) for path in _MANIFESTS)
    tops = {_to_module(each).partition(".")[0] for each in (old, now)}
    return not (is_placed or is_run or listed) and len(tops) == 1


def _is_unknown(stem: str) -> bool:
    """Return whether no program looks for a file of this name by itself."""
    return stem.isidentifier() and not re.match(
        r"_|test|conftest|setup|main|app|wsgi|asgi|manage|settings", stem
    )


def _stands_elsewhere(place: PurePosixPath, texts: _Texts) -> bool:
    """Return whether a text that is no document has a module's name where no import stands."""
    parts = [part for part in place.with_suffix("").parts if part != "src"]
    dotted = r"[./]".join(map(re.escape, parts)) if len(parts) > 1 else re.escape(place.stem)
    named = re.compile(rf"(?<![\w.]){dotted}(?!\w)|(?<!\w){re.escape(place.name)}(?!\w)")
    for path, text in texts.items():
        if not is_document_path(path) and path != str(place):
            said = "\n".join(_texts_in(text)) if path.endswith(".py") else text
            if named.search(said):
                return True
    return False


def _texts_in(text: str) -> list[str]:
    """Return the strings in code; of code that cannot be parsed, all of it."""
    tree = read_python(text)
    return [text] if tree is None else list_strings(tree)


def _is_equal_but_imports(old: PurePosixPath, now: PurePosixPath, before: _Texts, after: _Texts) -> bool:
    """Return whether all code is unchanged but for imports of the module by its new name."""
    for path in before.keys() & after.keys():
        if path.endswith(".py"):
            was, tree = ast.parse(before[path]), ast.parse(after[path])
            if may_reach_by_name(was) or _reaches_otherwise(was, old.stem):
                return False
            _resolve_imports(was, path, {_to_module(old): _to_module(now)})
            _resolve_imports(tree, path, {})
            if ast.dump(was) != ast.dump(tree):
                return False
        elif before[path] != after[path] and not is_document_path(path):
            return False
    return not may_reach_by_name(ast.parse(before[str(old)]))


def _reaches_otherwise(tree: ast.Module, stem: str) -> bool:
    """Return whether code may reach the module as an attribute of its package."""
    nodes = tuple(ast.walk(tree))
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    imports = (node.names for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))
    return stem in attributes or any(
        each.name.rpartition(".")[2] == stem for names in imports for each in names
    )


def _resolve_imports(tree: ast.Module, path: str, names: Mapping[str, str]) -> None:
    """Write each import of names with the whole name of its module, some of which have another one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            home = find_home_module(node, path.removeprefix("src/"))
            node.module, node.level = names.get(home, home), 0


def _to_module(place: PurePosixPath) -> str:
    return ".".join(part for part in place.with_suffix("").parts if part != "src")
