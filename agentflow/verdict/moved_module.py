"""Whether a change does nothing but give a module another file name: told by all texts of both trees."""

import ast
import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from agentflow.verdict.equivalence import is_document_path
from agentflow.verdict.name_uses import home_of, reaches_by_name

Texts = Mapping[str, str]


def moved_module(before: Texts, after: Texts) -> dict[str, str]:
    """Return the old and the new name of the one module whose file has another name; else nothing.

    The file keeps its text and its folder, and everything that imports it does so by the new name.
    """
    gone, new = sorted(before.keys() - after.keys()), sorted(after.keys() - before.keys())
    if len(gone) != 1 or len(new) != 1 or before[gone[0]] != after[new[0]]:
        return {}
    old, now = PurePosixPath(gone[0]), PurePosixPath(new[0])
    is_fit = old.suffix == now.suffix == ".py" and old.parent == now.parent and _is_free(now.stem)
    if not is_fit or not _is_free(old.stem) or _is_said(old, after) or _is_said(now, before):
        return {}
    try:
        return {old.stem: now.stem} if _is_alike(old, now, before, after) else {}
    except (SyntaxError, ValueError, RecursionError):
        return {}


def _is_free(stem: str) -> bool:
    """Tell whether no program looks for a file of this name by itself."""
    return stem.isidentifier() and not re.match(
        r"_|test|conftest|setup|main|app|wsgi|asgi|manage|settings", stem
    )


def _is_said(place: PurePosixPath, texts: Texts) -> bool:
    """Tell whether a text that is no document has a module's name where no import stands."""
    parts = [part for part in place.with_suffix("").parts if part != "src"]
    dotted = r"[./]".join(map(re.escape, parts)) if len(parts) > 1 else re.escape(place.stem)
    named = re.compile(rf"(?<![\w.]){dotted}(?!\w)|(?<!\w){re.escape(place.name)}(?!\w)")
    for path, text in texts.items():
        if not is_document_path(path) and path != str(place):
            said = "\n".join(_constants(text)) if path.endswith(".py") else text
            if named.search(said):
                return True
    return False


def _constants(text: str) -> list[str]:
    """Return the texts in code; of what cannot be read, all of it."""
    try:
        nodes = ast.walk(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError):
        return [text]
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def _is_alike(old: PurePosixPath, now: PurePosixPath, before: Texts, after: Texts) -> bool:
    """Tell whether all code is that of before, importing the module by its new name."""
    for path in before.keys() & after.keys():
        if path.endswith(".py"):
            was, tree = ast.parse(before[path]), ast.parse(after[path])
            if reaches_by_name(was) or _reaches_otherwise(was, old.stem):
                return False
            _rename_imports(was, path, old, now)
            if ast.dump(was) != ast.dump(tree):
                return False
        elif before[path] != after[path] and not is_document_path(path):
            return False
    return not reaches_by_name(ast.parse(before[str(old)]))


def _reaches_otherwise(tree: ast.Module, stem: str) -> bool:
    """Tell whether code may reach the module as a part of its package, and not by an import of its names."""
    nodes = tuple(ast.walk(tree))
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    imports = (node.names for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))
    return stem in attributes or any(
        each.name.rpartition(".")[2] == stem for names in imports for each in names
    )


def _rename_imports(tree: ast.Module, path: str, old: PurePosixPath, now: PurePosixPath) -> None:
    module = ".".join(part for part in old.with_suffix("").parts if part != "src")
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            home = home_of(node, path.removeprefix("src/"))
            if home == module:
                node.module = node.module.removesuffix(old.stem) + now.stem
