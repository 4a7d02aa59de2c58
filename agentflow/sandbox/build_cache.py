"""What a compiler keeps of its earlier work, in the user's own cache.

Without it each command compiles the standard library again, which takes Go half a minute of processor time.
Every command gets a layer above it; only the compiler, which runs nothing of the repository, adds to it.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from agentflow.core.languages import LANGUAGES, CompilerCache
from agentflow.core.record import Record


class BuildCache(Record):
    """The user's cache for the compiler that a repository needs."""

    rule: CompilerCache
    folder: Path


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
    home = Path.home()
    caches = environ.get("XDG_CACHE_HOME") or home / (
        "Library/Caches" if sys.platform == "darwin" else ".cache"
    )
    return Path(caches).absolute() / rule.name
