"""What a compiler keeps of its earlier work, in the user's own cache.

Without it each command compiles the standard library again, which takes Go half a minute of processor time.
Every command gets a layer above it; only the compiler, which runs nothing of the repository, adds to it.
"""

import hashlib
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from agentflow.core.languages import LANGUAGES, CompilerCache
from agentflow.core.record import Record
from agentflow.sandbox.environment import find_program

_DAY = 86_400.0


class BuildCache(Record):
    """The user's cache for the compiler that a repository needs."""

    rule: CompilerCache
    folder: Path

    def find_mark(self, root: Path) -> Path:
        """Return the file that says when the cache was last filled for a repository as it is now."""
        found = hashlib.sha256(str(root).encode())
        for name in self.rule.needs:
            found.update((root / name).read_bytes() if (root / name).is_file() else b"\0")
        program = find_program(self.rule.fill[0].split()[0], root)
        found.update(repr(program and (program, Path(program).stat().st_mtime)).encode())
        return self.folder / f"agentflow-{found.hexdigest()[:16]}"


def is_filled(mark: Path) -> bool:
    """Tell whether a cache was filled within the last day; Go removes what it has not used for five."""
    return mark.is_file() and mark.stat().st_mtime > time.time() - _DAY


def find_build_cache(root: Path, environ: Mapping[str, str]) -> BuildCache | None:
    """Return the cache of the compiler that a repository needs, if it needs one that keeps one."""
    for language in LANGUAGES:
        rule = language.compiler_cache
        if rule is not None and any((root / name).is_file() for name in language.manifests):
            return BuildCache(rule=rule, folder=_find_folder(rule, environ))
    return None


def _find_folder(rule: CompilerCache, environ: Mapping[str, str]) -> Path:
    if said := environ.get(rule.variable):
        return Path(said).absolute()
    usual = "Library/Caches" if sys.platform == "darwin" else ".cache"
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / usual).absolute() / rule.name
