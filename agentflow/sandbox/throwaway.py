"""A view of the repository that a command may change as it likes: an overlay, or else a copy."""

import os
import shutil
from pathlib import Path

SHARED = (".venv", "venv", "env", "node_modules")
"""Environments at the root, which a copy does not copy: it shows them read-only."""
_LAYERS = ("lower", "upper", "work", "merged", "memory")


def overlay(root: Path, scratch: Path) -> dict[str, str]:
    """Return what `launch.py` needs to mount an overlay over a repository, its folders made."""
    for name in _LAYERS:
        (scratch / name).mkdir(mode=0o755)
    return {"lower": str(root), "scratch": str(scratch)}


def has_foreign_files(root: Path) -> bool:
    """Tell whether a file belongs to a user or group that a user namespace does not map.

    An overlay cannot copy such a file up (EOVERFLOW); root needs no user namespace.
    """
    if os.geteuid() == 0:
        return False
    owners, groups = {os.geteuid()}, {os.getegid()}
    for folder, names, files in os.walk(root):
        for name in (*names, *files):
            found = os.lstat(f"{folder}/{name}")
            if found.st_uid not in owners or found.st_gid not in groups:
                return True
    return False


def copy(root: Path, target: Path) -> Path:
    """Copy a repository, git's own folder and shared environments left out but as empty places."""

    def kept_out(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if name in places} if Path(folder) == root else set()

    places = _kept_places(root)
    shutil.copytree(root, target, symlinks=True, ignore=kept_out, ignore_dangling_symlinks=True)
    for name in places:
        (target / name).mkdir()
    return target


def link(root: Path, copied: Path) -> None:
    """Let a copy at another place see what was left out of it."""
    for name in _kept_places(root):
        (copied / name).rmdir()
        (copied / name).symlink_to(root / name, target_is_directory=True)


def _kept_places(root: Path) -> frozenset[str]:
    names = (".git", *SHARED)
    return frozenset(name for name in names if (root / name).is_dir() and not (root / name).is_symlink())
