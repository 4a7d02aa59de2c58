"""Protected names: where their links lead, and what becomes of those that a command makes.

A repository can hold a link in the place of any file; what a protected name leads to is protected as it is.
A mount can protect only what exists, and a placeholder would be litter in the user's repository. So the
names at the root are compared before and after a command, and new ones are set aside. What they were is
written down first, so that the next start can do it where a kill came in between.
"""

import errno
import os
import pwd
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from agentflow.core.errors import ConfigError, InvalidFile
from agentflow.core.record import Record, encode
from agentflow.parse import decode
from agentflow.sandbox.environment import is_python_environment
from agentflow.sandbox.profile import PYTHON_ENVIRONMENTS, find_protected_names, is_git, is_protected
from agentflow.sandbox.throwaway import make_scratch_file, take_abandoned


class _Note(Record):
    """The protected names at the root before a command."""

    root: str
    before: dict[str, str]
    """By name, and where it leads if it is a link, which no mount protects."""
    opened: tuple[str, ...]
    aside: str
    """Where what is new is moved to."""
    missing: tuple[str, ...] = ()
    """What links of protected names lead to in the repository, and what is not there."""


@contextmanager
def set_aside_new_names(
    root: Path, names: Iterable[str], aside: Path, opened: Iterable[str]
) -> Iterator[list[str]]:
    """Let a command run; the list is filled with the names that were set aside, `names` were there before."""
    before = {name: _read_link(root / name) for name in sorted(names)}
    opened = tuple(opened)
    missing = tuple(_find_missing(root, [name for name in before if is_protected(name, opened)]))
    note = _Note(root=str(root), before=before, opened=opened, aside=str(aside), missing=missing)
    found: list[str] = []
    with make_scratch_file(encode(note)):
        try:
            yield found
        finally:
            found += _set_aside(note)


def clear_leftovers() -> tuple[str, ...]:
    """Clear away what killed processes left; return what protected paths of theirs were set aside."""
    found: list[str] = []
    for left in take_abandoned():
        try:
            note = decode(_Note, left.read_bytes(), left.name)
            found += [f"{note.root}/{name}" for name in _set_aside(note)]
        except (OSError, InvalidFile):
            pass  # a folder and no note, or the repository is gone
    return tuple(found)


def _set_aside(note: _Note) -> list[str]:
    root, aside = Path(note.root), Path(note.aside)
    here = (name for name in find_protected_names(root) if is_protected(name, note.opened))
    new = sorted(name for name in here if _read_link(root / name) != note.before.get(name))
    new += [name for name in note.missing if os.path.lexists(root / name)]
    for name in new:
        place = _free(aside / (f"{name}~" if "/" in name else name))  # no repository there either
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.rename(root / name, place)  # noqa: PTH104  # a link itself is moved, never followed
    for name, target in note.before.items():
        if target and is_protected(name, note.opened) and not os.path.lexists(root / name):
            os.symlink(target, root / name)  # noqa: PTH211  # as it was
    return new


def _find_missing(root: Path, names: Iterable[str]) -> Iterator[str]:
    for _, real in find_links(root, names):
        if root in real.parents and not real.exists():
            yield real.relative_to(root).as_posix()


def _free(place: Path) -> Path:
    return _free(place.with_name(f"{place.name}~")) if os.path.lexists(place) else place


def _read_link(place: Path) -> str:
    return os.fsdecode(place.readlink()) if place.is_symlink() else ""


_MOST = 40
"""Links on one way, as in the kernel."""
_LEFT_OUT = frozenset({"agentflow", "worktrees", "node_modules", ".git"})
"""Folders below protected names that no program obeys: our own state, copies of the repository, packages."""


def follow_links(path: Path) -> Iterator[Path]:
    """Yield each link on the way to what an absolute path names. Raises OSError for a loop."""
    todo, here, found = list(reversed(path.parts[1:])), "/", 0
    while todo:
        part = todo.pop()
        place = os.path.dirname(here) if part == ".." else os.path.join(here, part)  # noqa: PTH118, PTH120
        if part == "..":
            here = place
            continue
        try:
            target = os.readlink(place)  # noqa: PTH115  # strings, since this is done for each call
        except OSError:
            here = place  # no link, or nothing
            continue
        yield Path(place)
        found += 1
        if found > _MOST:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        here = "/" if target.startswith("/") else here
        todo += [part for part in reversed(target.split("/")) if part not in ("", ".")]


def find_links(root: Path, names: Iterable[str]) -> Iterator[tuple[Path, Path]]:
    """Yield the links at and below names at the root, each with what it leads to."""
    todo, seen = [root / name for name in names if "/" not in name and not is_git(name)], set[Path]()
    while todo:
        place = todo.pop()
        if place.is_symlink():
            real = Path(os.path.realpath(place))
            yield place, real
            if root in real.parents and real not in seen:
                seen.add(real)
                todo.append(real)
        elif place.is_dir():
            todo += _list_links(place)


def _list_links(folder: Path) -> list[Path]:
    """Return what of a folder may be a link, or hold one."""
    try:
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if entry.is_symlink() or entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []  # not ours to read
    return [folder / entry.name for entry in found if entry.name not in _LEFT_OUT]


def require_firm_links(root: Path, opened: Iterable[str] = ()) -> None:
    """Refuse a protected name whose link a command could lead elsewhere. Raises ConfigError naming it."""
    names = [entry.name for entry in root.iterdir() if is_protected(entry.name, opened)]
    links = list(find_links(root, names))
    firm = {*(root / name for name in names), *(real for _, real in links)}
    for place, real in links:
        shown = place.relative_to(root)
        if real == root or real in root.parents:
            raise ConfigError(f"{shown} leads to a folder that holds the repository", hint=_HINT)
        loose = (step for step in follow_links(place) if root in step.parents)
        found = next((step for step in loose if firm.isdisjoint((step, *step.parents))), None)
        if found is not None:
            told = f"{shown} leads through {found.relative_to(root)}, which commands could change"
            raise ConfigError(told, hint=_HINT)


_HINT = "let the link lead to the file itself, or put the file in its place"


_HIDDEN = ("/tmp", "/var/tmp", "/run", "/sys")  # noqa: S108  # they are hidden, not used
_TOOLS = (
    *(".local/bin", ".local/lib", ".local/share/uv", ".local/share/pypoetry", ".local/share/mise"),
    *(".cache/uv", ".cache/pip", ".cache/pypoetry", ".cache/go-build", ".pyenv", ".rye", ".poetry"),
    *(".cache/node/corepack", ".local/share/pnpm", ".cache/pnpm"),
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


_OF_THE_SYSTEM: Mapping[str, int] = MappingProxyType({"/etc": 9, "/var": 3, "/opt": 2, "/srv": 2, "/boot": 1})
"""Where a system keeps what not every user may read, and how many levels deep that is looked for."""


@lru_cache(maxsize=1)
def _find_private() -> tuple[Path, ...]:
    """Return what of the system only root reads, if we are root: passwords' hashes, keys, others' data."""
    return tuple(each for top, depth in _OF_THE_SYSTEM.items() for each in _look_for_private(top, depth))


def _look_for_private(folder: str, depth: int) -> Iterator[Path]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            mode = entry.stat(follow_symlinks=False).st_mode
            is_folder = stat.S_ISDIR(mode)
            if (is_folder or stat.S_ISREG(mode)) and not mode & (stat.S_IXOTH if is_folder else stat.S_IROTH):
                yield Path(entry.path)
            elif is_folder and depth > 1:
                yield from _look_for_private(entry.path, depth - 1)


class HiddenPlaces(Record):
    """Folders and files that commands see as empty, outer ones first, and what is shown there."""

    hidden: tuple[Path, ...]
    readable: tuple[Path, ...]
    """Real paths, and links that lead to others of them."""


def find_hidden_places(root: Path, environ: Mapping[str, str], opened: Iterable[Path] = ()) -> HiddenPlaces:
    """Return what is hidden from the commands of a repository, and what is shown again.

    What the repository holds widens nothing, but for an interpreter that its environment was made with.
    """
    root = _real(root)
    homes = {_real(path) for path in (*_HIDDEN, *_find_homes(environ), tempfile.gettempdir())}
    private = _find_private() if os.geteuid() == 0 else ()
    guarded = {*homes, *private}
    there = (*filter(_is_folder, homes), *private)
    hidden = _outermost(path for path in there if not path.is_relative_to(root))
    tops = dict.fromkeys(place for place in hidden if place != Path("/"))
    opened = tuple(opened)
    named = (
        path for path in (*_find_named(environ), *opened) if _is_there(path) and not _is_led_out(path, root)
    )
    ours = {_real(prefix) for prefix in (sys.prefix, sys.base_prefix)}
    files = (path for prefix in ours if _is_below(prefix, tops) for path in _prefix_files(prefix))
    packages = _find_packages(environ, root, tops)
    tools = {*map(_real, (Path(__file__).parents[1], _RESOLVER, *named)), *files, *packages}
    tools.update(_interpreters(root, environ, opened, tops))
    shown = [path for path in tools if _is_below(path, tops) and not path.is_relative_to(root)]
    opening = {place for each in guarded for place in (each, *each.parents)}
    return HiddenPlaces(
        hidden=tuple(tops), readable=_outermost(path for path in shown if path not in opening)
    )


def _find_homes(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield every folder that is a home or holds settings of the user."""
    yield from ("/home", "/root")
    yield from (environ[name] for name in ("HOME", "XDG_CONFIG_HOME", "AGENTFLOW_HOME") if environ.get(name))
    yield from _list_paths(environ, "AGENTFLOW_HIDDEN")  # a batch's file and the results of its tasks
    try:
        yield pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        pass  # a user without an entry has no home beside HOME


def _find_named(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the places of tools that the user's own variables name, and the usual ones."""
    yield from (Path(entry) for entry in _entries(environ))
    yield from map(Path, _list_paths(environ, "AGENTFLOW_SHOWN"))  # packages that a batch's clones share
    named = (Path(environ.get(name) or "/") for name in _ENVIRONMENTS)
    yield from filter(is_python_environment, named)
    homes = dict.fromkeys(_find_homes(environ))
    yield from (Path(f"{home}/{tool}") for home in homes for tool in _TOOLS)


def _find_packages(environ: Mapping[str, str], root: Path, tops: Collection[Path]) -> Iterator[Path]:
    """Yield the packages in homes to which programs on PATH are only links.

    npm lays `~/.npm-global/bin/pnpm` so, pipx `~/.local/bin/ruff`; one whose program is missing is not found.
    """
    for entry in (_real(each) for each in _entries(environ)):
        if entry.is_relative_to(root) or not _is_below(entry, tops):
            continue
        with suppress(OSError), os.scandir(entry) as programs:
            found = (Path(each.path) for each in programs if each.is_symlink())
            links = (link for link in found if len(link.readlink().parts) > 1)
            for program in (_real(link) for link in links if not _is_led_out(link, root)):
                modules = [each for each in program.parents if each.name == "node_modules"]
                package = modules[-1] if modules else program.parent.parent
                if (modules or is_python_environment(package)) and not entry.is_relative_to(package):
                    yield package


def _list_paths(environ: Mapping[str, str], name: str) -> Iterator[str]:
    return filter(None, environ.get(name, "").split(os.pathsep))


def _entries(environ: Mapping[str, str]) -> list[str]:
    return [entry for entry in environ.get("PATH", "").split(os.pathsep) if entry.startswith("/")]


def _interpreters(
    root: Path, environ: Mapping[str, str], opened: Iterable[Path], tops: Collection[Path]
) -> Iterator[Path]:
    """Yield the files of hidden interpreters: the user's, and those of environments."""
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
    """Yield the files of an interpreter's folder, recognised by its content and the library beside it."""
    prefix = program.parent.parent
    if program.name == "node" and _is_machine_code(program):
        yield from (place for place in (program, prefix / "lib/node_modules") if _is_there(place))
    is_python = _PYTHON.fullmatch(program.name) and program.parent.name == "bin"
    libraries = (place for pattern in _LIBRARIES for place in prefix.glob(pattern))
    if is_python and _is_machine_code(program) and any(_is_there(place / "os.py") for place in libraries):
        yield from _prefix_files(prefix)


def _prefix_files(prefix: Path) -> Iterator[Path]:
    """Yield the files of its folder that an interpreter needs, and no others."""
    places = (place for pattern in _BELONGINGS for place in prefix.glob(pattern))
    yield from (place for place in places if place.parent.name != "bin" or not _is_folder(place))


def _is_machine_code(program: Path) -> bool:
    try:
        with program.open("rb") as file:
            return file.read(4) in _MACHINE_CODE
    except OSError:
        return False


def _is_led_out(path: Path, root: Path) -> bool:
    """Return whether a link of the repository leads to a path that lies outside of it."""
    real = _real(path)
    if real == path or real.is_relative_to(root):
        return False
    return any(link.is_relative_to(root) for link in _find_links(path))


def _find_links(path: Path) -> Iterator[Path]:
    """Yield each link on the way to a path, as far as a loop of links lets that be told."""
    with suppress(OSError):
        yield from follow_links(path.absolute())


def _is_there(path: Path) -> bool:
    return os.access(path, os.F_OK)  # a folder on the way that we may not enter is no error


def _is_folder(path: Path) -> bool:
    return _is_there(path) and path.is_dir()


def _real(path: str | Path) -> Path:
    return Path(os.path.realpath(path))


def _outermost(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Return the paths that lie in no other of them."""
    found = set(paths)
    outer = (path for path in found if found.isdisjoint(path.parents))
    return tuple(sorted(outer, key=lambda path: (len(path.parts), path)))


def _is_below(path: Path, tops: Collection[Path]) -> bool:
    return path in tops or any(place in tops for place in path.parents)
