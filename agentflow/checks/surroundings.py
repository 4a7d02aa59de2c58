"""The surroundings of a check: its variables, its caches, and compiled code that it must not meet."""

import os
import shlex
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from agentflow.core.evidence import Check, CheckName
from agentflow.sandbox.environment import is_python_environment
from agentflow.sandbox.run import Sandbox
from agentflow.sandbox.throwaway import walk

_SETTINGS = MappingProxyType(
    {
        "CI": "true",  # nobody is there: test runners neither watch nor ask
        "GOFLAGS": "-count=1",  # what an earlier run left in a cache is no run
        "PYTHONHASHSEED": "0",  # base and final run are compared; set order must not tell them apart
        "PYTHONUNBUFFERED": "1",  # what a test prints stays where it was printed
        "RUFF_OUTPUT_FORMAT": "concise",
    }
)
REPORT_FILE = "junit.xml"
_OTHERS = frozenset({".git", "node_modules"})


class Manner(StrEnum):
    """The way in which a command is run."""

    PLAIN = "plain"
    OBSERVED = "observed"
    """The files that the check reads are recorded."""
    ELSEWHERE = "elsewhere"
    """The surroundings are others: another order of sets, a temporary folder with files."""


def make_environment(check: Check, sandbox: Sandbox, scratch: Path) -> dict[str, str]:
    caches = {
        "COVERAGE_FILE": str(scratch / "coverage"),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(scratch / "hypothesis"),
        "MYPY_CACHE_DIR": str(scratch / "mypy"),
        "RUFF_CACHE_DIR": str(scratch / "ruff"),
    }
    options = (
        *("-o", f"cache_dir={scratch / 'pytest'}"),
        *("-o", "junit_family=xunit1"),
        "--continue-on-collection-errors",  # one file that cannot be loaded hides no other
        f"--junitxml={scratch / REPORT_FILE}",
    )
    pytest = {"PYTEST_ADDOPTS": shlex.join(options)} if check.name is CheckName.TESTS else {}
    return {**_SETTINGS, **caches, **pytest, **_keep_from_bytecode(sandbox.folders, scratch)}


def make_other_surroundings(scratch: Path, manner: Manner) -> dict[str, str]:
    if manner is not Manner.ELSEWHERE:
        return {}
    folder = scratch / "tmp"
    folder.mkdir()
    (folder / "tmp0").write_text("left by another program\n", "utf-8")
    return {"PYTHONHASHSEED": "4242", "TMPDIR": str(folder)}


def _keep_from_bytecode(folders: Iterable[Path], scratch: Path) -> dict[str, str]:
    """Return what keeps a check from compiled code that is there already, and from leaving any.

    Compiling everything anew in a scratch folder costs seconds, so only a repository that needs it pays.
    """
    *below, top = folders
    if any(map(has_lasting_bytecode, below)) or has_bytecode(top):
        return {"PYTHONPYCACHEPREFIX": str(scratch / "pycache")}
    return {"PYTHONDONTWRITEBYTECODE": "1"}


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
def has_lasting_bytecode(root: Path) -> bool:
    """Return the same of files that nobody changes, looked at once: a layer lies above them."""
    return has_bytecode(root)
