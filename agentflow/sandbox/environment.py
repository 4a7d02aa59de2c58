"""The variables of a command: the repository's environment is first on PATH, ours there if need be."""

import hashlib
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from agentflow.core.languages import LANGUAGES, CompilerCache
from agentflow.core.record import Record
from agentflow.parse import expand_home
from agentflow.sandbox.profile import PYTHON_ENVIRONMENTS

_PLAIN: Mapping[str, str] = MappingProxyType(
    {"NO_COLOR": "1", "PY_COLORS": "0", "CLICOLOR": "0", "TERM": "dumb"}
)
"""Switches colours off."""
OFFLINE: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            ("COREPACK_ENABLE_NETWORK", "COREPACK_ENABLE_STRICT", "COREPACK_ENABLE_AUTO_PIN"), "0"
        ),
        **dict.fromkeys(("COREPACK_DEFAULT_TO_LATEST", "YARN_ENABLE_NETWORK", "YARN_ENABLE_TELEMETRY"), "0"),
        **dict.fromkeys(("npm_config_offline", "CARGO_NET_OFFLINE", "UV_OFFLINE"), "true"),
        "npm_config_manage_package_manager_versions": "false",  # pnpm's own fetching of the pinned version
        "npm_config_package_manager_strict": "false",
        "npm_config_update_notifier": "false",
        "COMPOSER_DISABLE_NETWORK": "1",
        "GOPROXY": "off",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_RETRIES": "0",
    }
)
"""Lets package managers use what is there, where they would look for minutes for a network that is closed."""
_PROGRAMS = ("node_modules/.bin", "vendor/bin")
"""Where packages of a repository put their programs."""


def find_variables(root: Path) -> dict[str, str]:
    """Return the variables that name a command's programs and switch colours off."""
    found = find_environment(root)
    conda = os.environ.get("CONDA_PREFIX", "")
    if found is None and conda and not _is_ours(Path(conda), root):
        found = Path(conda)
    told = {"CONDA_PREFIX": conda} if conda and found == Path(conda) else {}
    is_virtual = found is not None and not told
    own = (str(found / "bin"),) if found else ()
    beside = (str(root / name) for name in _PROGRAMS if (root / name).is_dir())
    return {
        **_PLAIN,
        **told,
        "PATH": os.pathsep.join(dict.fromkeys((*own, *beside, *find_search_path(root).split(os.pathsep)))),
        "VIRTUAL_ENV": str(found) if is_virtual else "",
    }


def find_environment(root: Path, *below: Path) -> Path | None:
    """Return the Python environment that the user activated or the repository holds, first in a folder below.

    The one that runs us comes last, and only counts as the project's if pytest was installed in it.
    """
    name = os.environ.get("VIRTUAL_ENV", "")
    active = [root / name] if name else []
    folders = [
        top / name
        for top in (*below, root)
        for name in PYTHON_ENVIRONMENTS
        if name == ".venv" or is_python_environment(top / name)
    ]
    if active and _is_ours(active[0], root):
        folders += [folder for folder in active if (folder / "bin" / "pytest").is_file()]
    else:
        folders = [*active, *folders]
    return next((folder for folder in folders if (folder / "bin" / "python").is_file()), None)


def is_python_environment(folder: Path | str) -> bool:
    # a folder that we may not enter is no error
    return any(os.access(f"{folder}/{mark}", os.F_OK) for mark in ("pyvenv.cfg", "conda-meta"))


def find_program(name: str, root: Path) -> str | None:
    return shutil.which(name, path=find_variables(root)["PATH"])


def find_shell(root: Path) -> str:
    """Return the bash of this machine, which no environment of a repository replaces."""
    return shutil.which("bash", path=find_outer_path(root)) or "/bin/bash"


def find_search_path(root: Path) -> str:
    """Return PATH without folders that a repository could fill, and without our own environment's folder.

    That stays where pytest was installed beside us and is nowhere else: it is what the user's `python3` has.
    """
    tops = _list_tops(root)
    kept = [entry for entry in _list_entries() if _is_own(entry, tops) or _is_outside(entry, tops)]
    others = [entry for entry in kept if not _is_ours(Path(entry).parent, root)]
    own = next((entry for entry in kept if entry not in others and shutil.which("pytest", path=entry)), None)
    if own and find_environment(root) is None and not shutil.which("pytest", path=os.pathsep.join(others)):
        others = kept
    return os.pathsep.join(others) or os.defpath


def find_outer_path(root: Path) -> str:
    """Return PATH without any folder in the repository."""
    tops = _list_tops(root)
    return os.pathsep.join(entry for entry in _list_entries() if _is_outside(entry, tops)) or os.defpath


def find_shown(word: str) -> Iterator[Path]:
    """Yield what a word of a command names: a file or folder, and the environment that a program is of."""
    path = expand_home(word)
    if not path.is_absolute() or not os.access(path, os.F_OK):
        return
    yield path
    if path.parent.name == "bin" and is_python_environment(path.parent.parent):
        yield path.parent.parent


def _list_entries() -> list[str]:
    return os.environ.get("PATH", os.defpath).split(os.pathsep)


def _list_tops(root: Path) -> tuple[Path, ...]:
    """Return the names of a repository's folder, the real one last."""
    return root.absolute(), root.resolve()


def _is_own(entry: str, tops: tuple[Path, ...]) -> bool:
    """Return whether a folder on PATH is that of the repository's own environment."""
    path = Path(os.path.normpath(entry))
    return any(path == top / ".venv" / "bin" for top in tops)


def _is_outside(entry: str, tops: tuple[Path, ...]) -> bool:
    """Return whether a folder on PATH is absolute and not in the repository."""
    path = Path(os.path.normpath(entry))
    places = (each for place in (path, Path(os.path.realpath(entry))) for each in (place, *place.parents))
    return path.is_absolute() and not any(place in tops for place in places)


def _is_ours(folder: Path, root: Path) -> bool:
    """Return whether a folder is the environment that runs us, and not the repository's as well."""
    prefix = Path(sys.prefix).resolve()
    isolated = sys.prefix != sys.base_prefix
    return isolated and folder.resolve() == prefix and (root / ".venv").resolve() != prefix


_DAY = 86_400.0
_FIRST_SECONDS, _NEXT_SECONDS = 600.0, 30.0
_FILLED, _TRIED = "filled\n", "tried\n"


class BuildCache(Record):
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
    language: str
    mark: Path
    """The file that says how the newest try ended."""
    seconds: float
    """The time it may take."""

    def describe(self) -> str:
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
