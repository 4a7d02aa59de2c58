"""What a compiler keeps of its earlier work, in the user's own cache.

Without it each command compiles the standard library again, which takes Go half a minute of processor time.
Every command gets a layer above it; only the compiler, which runs nothing of the repository, adds to it.
So it lies outside the repository, and so does every program that the compiler starts.
"""

import hashlib
import shutil
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from agentflow.core.languages import LANGUAGES, CompilerCache
from agentflow.core.record import Record
from agentflow.parse import expand_home
from agentflow.sandbox.environment import find_outer_path

_DAY = 86_400.0
_FIRST_SECONDS, _NEXT_SECONDS = 600.0, 30.0
_FILLED, _TRIED = "filled\n", "tried\n"


class BuildCache(Record):
    """The user's cache for the compiler that a repository needs."""

    language: str
    rule: CompilerCache
    folder: Path
    module: Path
    """The folder of the repository in which the compiler is started to fill it."""

    def find_mark(self, root: Path) -> Path | None:
        """Return the file that says when the cache was last filled for a repository as it is now.

        None where the compiler is not installed.
        """
        program = shutil.which(self.rule.fill[0].split()[0], path=find_outer_path(root))
        if program is None:
            return None
        found = hashlib.sha256(str(self.module).encode())
        for path in map(self.module.joinpath, self.rule.needs):
            is_own = path.is_file() and not path.is_symlink()  # the target may be endless, in /proc
            found.update(path.read_bytes() if is_own else b"\0")
        found.update(repr((program, Path(program).stat().st_mtime)).encode())
        return self.folder / self.rule.part / f"agentflow-{found.hexdigest()[:16]}"

    def plan_fill(self, root: Path) -> "CacheFill | None":
        """Return what would fill the cache; None where it was filled within the last day.

        Go removes what it has not used for five. It keeps each package once that is compiled, so where a fill
        did not succeed the next ones may be short: each goes on where the last one stopped.
        """
        mark = self.find_mark(root)
        if mark is None:
            return None
        known = mark.read_text() if mark.is_file() and mark.stat().st_mtime > time.time() - _DAY else None
        if known == _FILLED:
            return None
        return CacheFill(
            mark=mark, seconds=_FIRST_SECONDS if known is None else _NEXT_SECONDS, language=self.language
        )


class CacheFill(Record):
    """One try to fill a build cache."""

    language: str
    mark: Path
    """The file that says how the newest try ended."""
    seconds: float
    """The time it may take."""

    def describe(self) -> str:
        """Return what people are told who wait for it."""
        return f"filling {self.language}'s build cache, for at most {self.seconds:.0f} s"

    def keep(self, *, is_filled: bool) -> None:
        """Note how it ended; what was cut off from outside is not noted."""
        self.mark.parent.mkdir(exist_ok=True)
        self.mark.write_text(_FILLED if is_filled else _TRIED)


def find_build_cache(root: Path, environ: Mapping[str, str]) -> BuildCache | None:
    """Return the cache of the compiler that a repository needs, if that keeps one outside the repository."""
    for language in LANGUAGES:
        rule = language.compiler_cache
        module = _find_module(root, language.manifests) if rule is not None else None
        if rule is not None and module is not None:
            folder = _find_folder(rule, environ)
            is_inside = folder.resolve().is_relative_to(root.resolve())
            if is_inside:
                return None
            return BuildCache(language=language.name, rule=rule, folder=folder, module=module)
    return None


def _find_module(root: Path, manifests: Iterable[str]) -> Path | None:
    """Return the folder of a module: the root, or one near it.

    A root with another manifest is hardly that of several modules, and may hold thousands of folders.
    """
    is_project = any((root / name).is_file() for each in LANGUAGES for name in each.manifests)
    depths, top = ("", "*/") if is_project else ("", "*/", "*/*/"), root.resolve()
    found = (path for depth in depths for name in manifests for path in sorted(root.glob(depth + name)))
    own = (path.parent for path in found if path.is_file() and path.parent.resolve().is_relative_to(top))
    return next(own, None)


def _find_folder(rule: CompilerCache, environ: Mapping[str, str]) -> Path:
    """Return where the compiler keeps its work; to it, a path that is not absolute names no place."""
    usual = "Library/Caches" if sys.platform == "darwin" else ".cache"
    said = (Path(environ.get(rule.variable, "")), Path(environ.get("XDG_CACHE_HOME", ""), rule.name))
    return next((place for place in said if place.is_absolute()), expand_home("~") / usual / rule.name)
