"""Profiles: the files and networks that a command may touch, by who runs it."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from agentflow.core.languages import gather
from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.core.routing import FIVE_ROLES, Access


class Level(StrEnum):
    """The part of a profile that the machine can enforce."""

    FULL = "full"
    PARTIAL = "partial"
    NONE = "none"


CHECKS = "checks"
"""Who runs the required checks: the program."""
REPAIR_ENGINE = "repair"
"""Who tries edits under the tests: the program, on copies of its own."""
ACCESS: Mapping[str, Access] = MappingProxyType(
    {
        **{role.part: role.access for role in FIVE_ROLES},
        CHECKS: Access.THROW_AWAY,
        REPAIR_ENGINE: Access.COPY,
    }
)
"""By who runs the command; everybody else only reads."""
POLICY = (".claude", ".agents", ".mcp.json")
"""Names that decide over roles, hooks and permissions: no role and no command writes them, nor makes them."""
CONFIGURATION = (
    *("CLAUDE.md", "AGENTS.md", ".env", ".envrc", ".vscode", ".idea", ".devcontainer", ".husky"),
    *(".pre-commit-config.yaml", ".gitmodules", ".gitattributes"),
)
"""Names at the root that other programs execute or obey: no command writes them, nor makes them."""
PYTHON_ENVIRONMENTS = gather(lambda each: each.packages if ".py" in each.suffixes else ())
"""Names at the root under which people keep their Python environment."""
SHARED = gather(lambda each: each.packages)
"""Environments at the root, which a copy does not copy: it shows them, and what is written there is lost."""
CACHES = frozenset({".cache", *gather(lambda each: each.caches)})
"""Folders that tools fill as they run; nothing is judged by them, and no copy has them."""


_IGNORED = regex("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""Characters that the file system of macOS leaves out of a name."""
_SHORT: Mapping[str, str] = MappingProxyType(
    {"git": ".git", "claude": ".claude", "agents": ".agents", "mcp": ".mcp.json"}
)
"""What Windows may call these names in its short form, such as `GIT~1`, without the number."""
_SHORTENED = regex(r"(\w+)~\d+(?:\.\w{1,3})?", re.ASCII)


class SandboxOpenings(Record):
    """The parts of the sandbox that the user's own settings and the command line open."""

    network: tuple[str, ...] = ()
    """Who may reach the network."""
    readable: tuple[Path, ...] = ()
    """Hidden places that may be read all the same."""
    environment: Mapping[str, str] = {}
    """Variables a command gets beside the usual ones."""
    names: tuple[str, ...] = ()
    """Protected names that commands may write."""
    masked: tuple[Path, ...] = ()
    """What of the repository no role's command may read."""


class Profile(Record):
    """All that one command may touch."""

    root: Path
    source: Path
    """What stands at the root: the repository, or a throw-away view of it."""
    access: Access
    cwd: str
    network: bool
    hidden: tuple[Path, ...]
    readable: tuple[Path, ...]
    """Below hidden places."""
    protected: tuple[Path, ...]
    """Of those that exist."""
    masked: tuple[Path, ...]
    writable: tuple[Path, ...]
    """Beside the repository."""
    cache: tuple[str, str] | None = None
    """A compiler's cache, and the folders of the layer above it, which is writable as well."""
    layers: Mapping[Path, tuple[str, str]] = {}
    """Protected folders above which a command writes: what lies there, and the folders of the layer."""
    elsewhere: Mapping[Path, Path] = {}
    """Places at which a command reads what lies at others."""
    joined: int | None = None
    """The process whose network it enters, in place of one of its own."""


def fold_name(part: str) -> str:
    """Return the name that a file system may take a part of a path for.

    There are file systems where letters are equal in either case, where some characters do not count, where
    blanks and dots at the end or a stream behind a colon do not, and where a name has a short form.
    """
    plain = _IGNORED.sub("", part).partition(":")[0].rstrip(". ").casefold()
    short = _SHORTENED.fullmatch(plain)
    return _SHORT.get(short[1], plain) if short else plain


def fold_path(path: str) -> str:
    """Return a path with each part as `fold_name` does; `.` and `..` stay, and a backslash parts as well."""
    parts = re.split(r"[/\\]", path)
    return "/".join(part if part in (".", "..") else fold_name(part) for part in parts)


def is_git(part: str) -> bool:
    """Return whether a part of a path is, or may become on another file system, git's own folder."""
    # else it takes a moment too long for each file
    may_be = part[:1] in (".", "g", "G") or "\\" in part or not part.isascii()
    return may_be and ".git" in fold_path(part).split("/")


def is_protected(name: str, opened: Iterable[str] = ()) -> bool:
    """Return whether no command may write what has this path, however it is spelled."""
    plain = fold_path(name)
    if plain in {fold_path(each) for each in opened}:
        return False
    known = {fold_path(each) for each in (".git", *POLICY, *CONFIGURATION)}
    return plain in known or plain.startswith(".env.") or plain.endswith(("/.git", "/head"))


def find_protected_names(root: Path) -> frozenset[str]:
    """Return the protected paths that there are now: names at the root, and git's folders anywhere.

    Of a bare repository it is `HEAD`, without which git takes a folder for no repository.

    Git runs what the configuration of a repository inside names, and no difference of trees shows it.
    """
    top = (entry.name for entry in root.iterdir())
    return frozenset(path for path in (*top, *_find_git_folders(root)) if is_protected(path))


def _find_git_folders(root: Path) -> Iterator[str]:
    """Yield git's folders below folders of a repository, and the `HEAD` of each bare one."""
    folders = [""]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(f"{root}/{folder}") as entries:
                found = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
        except OSError:
            continue  # not ours to read, or gone
        if folder:
            yield from (f"{folder}{name}" for name in found if is_git(name) or _is_head(name, found))
        folders += [
            f"{folder}{name}/"
            for name, is_folder in found.items()
            if is_folder and name.lower() != ".git" and not _is_deep(folder)
        ]


def _is_deep(folder: str) -> bool:
    """Return whether a folder lies deeper among installed packages than the packages themselves.

    There may be ten thousand folders, and each command would wait for a look into all of them.
    """
    parts = folder.split("/")[:-1]
    place = next((place for place, part in enumerate(parts) if part in SHARED), len(parts))
    below = parts[place:]
    if below[:1] == ["node_modules"]:
        return len(below) > (2 if below[1:2] and below[1].startswith("@") else 1)
    return len(below) > 4  # lib, its version, site-packages, the package


def _is_head(name: str, beside: Collection[str]) -> bool:
    """Return whether a name makes the folder a bare repository."""
    if name.lower() != "head":
        return False
    names = {each.lower() for each in beside}
    return "commondir" in names or {"objects", "refs"} <= names
