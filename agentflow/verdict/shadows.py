"""New Python files that stand in front of what checks imported from elsewhere."""

import ast
from collections.abc import Collection, Mapping

_TOPS = ("src/", "lib/")


def find_shadows(
    texts: Mapping[str, str], loaded: Collection[str], new: Collection[str]
) -> Mapping[str, str]:
    """Return the new Python files in place of what checks imported before, each with the reason."""
    own = {_top(path) for path in texts if path not in new}
    found: dict[str, str] = {}
    for path in sorted(each for each in new if each.endswith(".py") and _top(each) not in own):
        users = (by for by in sorted(loaded) if _top(path) in _always_imported(texts.get(by, "")))
        if user := next(users, None):
            found[path] = f"in place of what {user} imported before"
    return found


def _top(path: str) -> str:
    """Return the first name by which a file of Python may be imported."""
    place = next((path.removeprefix(top) for top in _TOPS if path.startswith(top)), path)
    return place.partition("/")[0].removesuffix(".py")


def _always_imported(text: str) -> frozenset[str]:
    """Return the packages without which a file cannot be loaded."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    names = [each.name for node in body if isinstance(node, ast.Import) for each in node.names]
    names += [node.module or "" for node in body if isinstance(node, ast.ImportFrom) and not node.level]
    return frozenset(name.partition(".")[0] for name in names)
