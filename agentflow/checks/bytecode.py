"""Compiled Python code of the repository: a check must not run what no longer fits its source."""

import os
from functools import lru_cache
from pathlib import Path

from agentflow.sandbox.environment import is_python_environment
from agentflow.sandbox.scratch import walk

_OTHERS = frozenset({".git", "node_modules"})


def has_bytecode(root: Path) -> bool:
    """Return whether compiled code lies beside the repository's own sources.

    A source that is edited twice within a second may keep its size, and compiled code may be planted: Python
    would take either for the source. What lies in an installed environment is not looked at.
    """
    for folder, names, files in walk(root):
        names[:] = [
            name for name in names if name not in _OTHERS and not is_python_environment(f"{folder}/{name}")
        ]
        is_cache = os.path.basename(folder) == "__pycache__"  # noqa: PTH119  # a string
        if is_cache and any(name.endswith(".pyc") for name in files):
            return True
    return False


@lru_cache(maxsize=8)
def had_bytecode(root: Path) -> bool:
    """Return the same of files that nobody changes, looked at once: a layer lies above them."""
    return has_bytecode(root)
