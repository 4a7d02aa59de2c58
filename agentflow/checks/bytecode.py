"""Compiled Python code of the repository: a check must not run what no longer fits its source."""

import os
from pathlib import Path

_OTHERS = frozenset({".git", "node_modules"})


def forget_bytecode(root: Path) -> None:
    """Remove the caches of compiled code beside the repository's own sources.

    A source that is edited twice within a second may keep its size, and compiled code may be planted: Python
    would take either for the source. An installed environment keeps its caches; compiling it anew is slow.
    """
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if name not in _OTHERS and not _is_environment(folder, name)]
        if os.path.basename(folder) == "__pycache__":  # noqa: PTH119  # a string from os.walk
            for name in files:
                if name.endswith(".pyc"):
                    Path(folder, name).unlink(missing_ok=True)


def _is_environment(folder: str, name: str) -> bool:
    return Path(folder, name, "pyvenv.cfg").exists()
