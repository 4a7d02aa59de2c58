"""What is hidden from commands on this machine, and which tools below it they see all the same."""

import os
import pwd
import re
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from agentflow.core.record import Record
from agentflow.sandbox.environment import is_python_environment
from agentflow.sandbox.profile import PYTHON_ENVIRONMENTS

_HIDDEN = ("/tmp", "/var/tmp", "/run", "/sys")  # noqa: S108  # they are hidden, not used
_TOOLS = (
    *(".local/bin", ".local/lib", ".local/share/uv", ".local/share/pypoetry", ".local/share/mise"),
    *(".cache/uv", ".cache/pip", ".cache/pypoetry", ".cache/go-build", ".pyenv", ".rye", ".poetry"),
    *("miniconda3", "anaconda3", "miniforge3", ".conda", ".nvm", ".volta", ".asdf", ".bun", ".deno"),
    *(".npm/_cacache", ".yarn", ".cargo/bin", ".cargo/registry", ".cargo/git", ".cargo/env", ".rustup"),
    *("go", "sdk", ".sdkman", ".m2/repository", ".gradle/caches", ".gradle/wrapper", ".rbenv", ".gem"),
)
"""Where tools lie below a home; credentials beside them, as in .cargo and .m2, stay hidden."""
_RESOLVER = Path("/etc/resolv.conf")
_PROGRAMS = ("python3", "python", "node", "bash")
_ENVIRONMENTS = ("VIRTUAL_ENV", "CONDA_PREFIX")
"""Variables by which users name an environment."""
_PYTHON = re.compile(r"(?:python|pypy)[0-9.]*t?")
_MACHINE_CODE = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
"""How programs begin that are no scripts, on Linux and on macOS."""
_LIBRARIES = ("lib*/python[23]*", "lib*/pypy[23]*")
_BELONGINGS = (
    *("pyvenv.cfg", "bin/python*", "bin/pypy*", *_LIBRARIES, "include/python*", "include/pypy*"),
    *("lib*/lib*.so*", "lib/lib*.dylib"),
)
"""What an interpreter needs of the folder that holds its `bin`."""


class HiddenPlaces(Record):
    """Where commands see nothing, and what is shown there all the same, the outer places first."""

    hidden: tuple[Path, ...]
    readable: tuple[Path, ...]
    """Real paths, and links that lead to others of them."""


def find_hidden_places(root: Path, environ: Mapping[str, str], opened: Iterable[Path] = ()) -> HiddenPlaces:
    """Return what is hidden from the commands of a repository, and what is shown again.

    What the repository holds widens nothing, but for an interpreter that its environment was made with.
    """
    root = _real(root)
    guarded = {_real(path) for path in (*_HIDDEN, *_find_homes(environ), tempfile.gettempdir())}
    hidden = _outermost(path for path in guarded if _is_folder(path) and not path.is_relative_to(root))
    tops = tuple(place for place in hidden if place != Path("/"))
    opened = tuple(opened)
    named = (
        path for path in (*_find_named(environ), *opened) if _is_there(path) and not _is_led_out(path, root)
    )
    ours = {_real(prefix) for prefix in (sys.prefix, sys.base_prefix)}
    files = (path for prefix in ours if _is_below(prefix, tops) for path in _prefix_files(prefix))
    tools = {*map(_real, (Path(__file__).parents[1], _RESOLVER, *named)), *files}
    tools.update(_interpreters(root, environ, opened, tops))
    shown = [path for path in tools if _is_below(path, tops) and not path.is_relative_to(root)]
    safe = (path for path in shown if not any(each.is_relative_to(path) for each in guarded))
    return HiddenPlaces(hidden=tops, readable=_outermost(safe))


def _find_homes(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield every folder that is a home or holds settings of the user."""
    yield from ("/home", "/root")
    yield from (environ[name] for name in ("HOME", "XDG_CONFIG_HOME", "AGENTFLOW_HOME") if environ.get(name))
    try:
        yield pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        pass  # a user without an entry has no home beside HOME


def _find_named(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the places of tools that the user's own variables name, and the usual ones."""
    yield from (Path(entry) for entry in _entries(environ))
    named = (Path(environ.get(name) or "/") for name in _ENVIRONMENTS)
    yield from filter(is_python_environment, named)
    homes = dict.fromkeys(_find_homes(environ))
    yield from (Path(f"{home}/{tool}") for home in homes for tool in _TOOLS)


def _entries(environ: Mapping[str, str]) -> list[str]:
    return [entry for entry in environ.get("PATH", "").split(os.pathsep) if entry.startswith("/")]


def _interpreters(
    root: Path, environ: Mapping[str, str], opened: Iterable[Path], tops: Collection[Path]
) -> Iterator[Path]:
    """Yield the files of interpreters that are hidden: of the user's, and of those of environments."""
    path = os.pathsep.join(_entries(environ))
    for program in (shutil.which(name, path=path) for name in _PROGRAMS):
        if program and _is_below(_real(program), tops) and not _is_led_out(Path(program), root):
            yield from (*_find_links(Path(program)), _real(program), *_find_belongings(_real(program)))
    named = (environ[name] for name in _ENVIRONMENTS if environ.get(name))
    for folder in (*(root / name for name in PYTHON_ENVIRONMENTS), *map(Path, named), *opened):
        program = str(folder / "bin/python")
        is_wanted = _is_below(_real(program), tops) and not _is_led_out(folder / "bin", root)
        if is_wanted and (found := [*_find_belongings(_real(program))]):
            yield from (*_find_links(Path(program)), *found)


def _find_belongings(program: Path) -> Iterator[Path]:
    """Yield the files of an interpreter, if it is one: by what it holds, and by the library beside it."""
    prefix = program.parent.parent
    if program.name == "node" and _is_machine_code(program):
        yield from (place for place in (program, prefix / "lib/node_modules") if _is_there(place))
    is_python = _PYTHON.fullmatch(program.name) and program.parent.name == "bin"
    libraries = (place for pattern in _LIBRARIES for place in prefix.glob(pattern))
    if is_python and _is_machine_code(program) and any(_is_there(place / "os.py") for place in libraries):
        yield from _prefix_files(prefix)


def _prefix_files(prefix: Path) -> Iterator[Path]:
    """Yield what an interpreter needs of its folder, and nothing that lies beside it."""
    places = (place for pattern in _BELONGINGS for place in prefix.glob(pattern))
    yield from (place for place in places if place.parent.name != "bin" or not _is_folder(place))


def _is_machine_code(program: Path) -> bool:
    try:
        with program.open("rb") as file:
            return file.read(4) in _MACHINE_CODE
    except OSError:
        return False


def _is_led_out(path: Path, root: Path) -> bool:
    """Tell whether a link of the repository leads to a path that lies outside of it."""
    real = _real(path)
    if real == path or real.is_relative_to(root):
        return False
    return any(link.is_relative_to(root) for link in _find_links(path))


def _find_links(path: Path) -> Iterator[Path]:
    """Yield every link on the way to a path, where it really lies."""
    here, ahead, left = Path("/"), [*reversed(path.absolute().parts[1:])], 40
    while ahead and left:
        part = ahead.pop()
        place = here.parent if part == ".." else here / part
        if not os.path.islink(place):  # noqa: PTH114  # a folder that we may not enter is no error
            here = place
            continue
        yield place
        left -= 1
        target = place.readlink()
        here = Path("/") if target.is_absolute() else here
        ahead += reversed(target.parts[1:] if target.is_absolute() else target.parts)


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


def _is_below(path: Path, tops: Collection[Path]) -> bool:
    return any(path.is_relative_to(top) for top in tops)
