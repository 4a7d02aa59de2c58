"""What is hidden from commands on this machine, and which tools below it they see all the same."""

import os
import pwd
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from agentflow.core.record import Record

_HIDDEN = ("/tmp", "/var/tmp", "/run", "/sys")  # noqa: S108  # they are hidden, not used
_TOOLS = (
    *(".local/bin", ".local/lib", ".local/share/uv", ".local/share/pypoetry", ".local/share/mise"),
    *(".cache/uv", ".cache/pip", ".cache/pypoetry", ".cache/go-build", ".pyenv", ".rye", ".poetry"),
    *("miniconda3", "anaconda3", "miniforge3", ".conda", ".nvm", ".volta", ".asdf", ".bun", ".deno"),
    *(".npm/_cacache", ".yarn", ".cargo/bin", ".cargo/registry", ".cargo/git", ".cargo/env", ".rustup"),
    *("go", "sdk", ".sdkman", ".m2/repository", ".gradle/caches", ".gradle/wrapper", ".rbenv", ".gem"),
)
"""Where tools lie below a home; credentials beside them, as in .cargo and .m2, stay hidden."""
_INTERPRETERS = ("python3", "python", "node", "bash")
_WORK_TREE = re.compile(r"^\s*worktree\s*=(.*)$", re.MULTILINE)
_RESOLVER = Path("/etc/resolv.conf")


class Places(Record):
    """Real paths, the outer ones first."""

    hidden: tuple[Path, ...]
    readable: tuple[Path, ...]


def find_places(root: Path, environ: Mapping[str, str], opened: Iterable[Path] = ()) -> Places:
    """Return what is hidden from the commands of a repository, and what is shown again."""
    guarded = {_real(path) for path in (*_HIDDEN, *_homes(environ), tempfile.gettempdir())}
    hidden = _outermost(path for path in guarded if _is_folder(path) and not path.is_relative_to(root))
    tops = tuple(place for place in hidden if place != Path("/"))
    tools = {_real(path) for path in (*_tools(root, environ), *opened) if _is_there(path)}
    shown = [path for path in tools if _is_below(path, tops)]
    safe = (path for path in shown if not any(each.is_relative_to(path) for each in guarded))
    return Places(hidden=tops, readable=_outermost(safe))


def _homes(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield every folder that is a home or holds settings of the user."""
    yield from ("/home", "/root")
    yield from (environ[name] for name in ("HOME", "XDG_CONFIG_HOME", "AGENTFLOW_HOME") if environ.get(name))
    try:
        yield pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        pass  # a user without an entry has no home beside HOME


def _tools(root: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield what commands need to run: interpreters, environments, caches of package managers."""
    yield from (Path(sys.prefix), Path(sys.base_prefix), Path(__file__).parents[1], _RESOLVER)
    programs = (shutil.which(name, path=environ.get("PATH")) for name in _INTERPRETERS)
    yield from (_prefix(Path(program)) for program in programs if program)
    environments = [root / name for name in (".venv", "venv", "env")]
    if environ.get("VIRTUAL_ENV"):
        environments.append(Path(environ["VIRTUAL_ENV"]))
    for folder in environments:
        yield from _environment(folder)
    yield from (Path(entry) for entry in environ.get("PATH", "").split(os.pathsep) if entry.startswith("/"))
    homes = dict.fromkeys(_homes(environ))
    yield from (
        Path(f"{home}/{tool}") for home in homes for tool in _TOOLS if os.access(f"{home}/{tool}", os.F_OK)
    )
    yield from _git_folders(root)


def _environment(folder: Path) -> Iterator[Path]:
    """Yield an environment and what its interpreter belongs to; a link may only claim to lead to one."""
    if any(_is_there(folder / mark) for mark in ("pyvenv.cfg", "conda-meta")):
        yield folder
    program = _real(folder / "bin" / "python")
    if program.name.startswith(("python", "pypy")) and os.access(program, os.X_OK):
        yield _prefix(program)


def _prefix(program: Path) -> Path:
    """Return the folder that holds a program's `bin`, links followed."""
    return _real(program).parent.parent


def _git_folders(root: Path) -> Iterator[Path]:
    """Yield where git keeps the objects of a linked work tree, or of a submodule, that leads back here."""
    try:
        said = (root / ".git").read_text("utf-8").partition("gitdir:")[2].strip()
        folder = (root / said).resolve()
        if not _leads_back(folder, root):
            return
        yield folder
        yield (folder / (folder / "commondir").read_text("utf-8").strip()).resolve()
    except (OSError, UnicodeDecodeError):
        pass  # an ordinary repository has a folder there


def _leads_back(folder: Path, root: Path) -> bool:
    """Tell whether a folder of git's is that of a work tree, by its own word."""
    if _is_there(folder / "gitdir"):
        return (folder / (folder / "gitdir").read_text("utf-8").strip()).resolve() == _real(root) / ".git"
    said = _WORK_TREE.search((folder / "config").read_text("utf-8"))
    return said is not None and (folder / said[1].strip()).resolve() == _real(root)


def _is_there(path: Path) -> bool:
    return os.access(path, os.F_OK)  # a folder on the way that we may not enter is no error


def _is_folder(path: Path) -> bool:
    return _is_there(path) and path.is_dir()


def _real(path: str | Path) -> Path:
    return Path(os.path.realpath(path))


def _outermost(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Return the paths that lie in no other of them."""
    kept: list[Path] = []
    for path in sorted(set(paths), key=lambda path: (len(path.parts), path)):
        if not _is_below(path, kept):
            kept.append(path)
    return tuple(kept)


def _is_below(path: Path, tops: Iterable[Path]) -> bool:
    return any(path.is_relative_to(top) for top in tops)
