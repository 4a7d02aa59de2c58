"""The change that a waiting call of Edit or Write would make, as a diff."""

import difflib
from pathlib import Path

from agentflow.core.file_text import decode_file
from agentflow.core.pending import Pending


def diff_call(item: Pending, root: Path) -> list[str]:
    """Return the change by a call of Edit or Write as a diff without its heads; empty for other calls."""
    given = item.input
    try:
        path = root / given["file_path"]
        is_own = path.is_file() and path.resolve().is_relative_to(root)
        before = decode_file(path.read_bytes()).shown if is_own else ""
    except (KeyError, TypeError, OSError, ValueError):
        return []
    old, new, after = given.get("old_string"), given.get("new_string"), before
    if item.tool == "Write" and isinstance(given.get("content"), str):
        after = given["content"]
    elif item.tool == "Edit" and isinstance(old, str) and isinstance(new, str) and old:
        after = before.replace(old, new, -1 if given.get("replace_all") else 1)
    if after == before:
        return []
    rows = difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=2)
    return list(rows)[2:]
