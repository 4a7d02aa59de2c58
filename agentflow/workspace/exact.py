"""Every byte of the files as they are on disk, as git objects of our own, which git never clears away.

Ids of trees are of another kind: those convert line ends as a commit would, and their objects are git's.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from agentflow.core.record import Record
from agentflow.workspace.apart import OBJECTS, own_objects
from agentflow.workspace.git import Git
from agentflow.workspace.tree import Shadow

_USUAL = {"100644": 0o644, "100755": 0o755, "120000": 0o777}


class Entry(Record):
    """One file: what git knows of it, and its whole mode."""

    kind: str
    """The mode as git spells it."""
    id: str
    mode: int


Files = Mapping[str, Entry]
"""By path relative to the root; bytes that are no UTF-8 as Python gives them."""


class Shot(Record):
    """All files at one moment."""

    tree: str
    modes: dict[str, int] = {}
    """Of those whose mode is not what git would give them."""


def shoot(git: Git, known: Files | None = None) -> Shot:
    """Record the files as they are now; those that are known count even if they are ignored by now."""
    with _folder(git) as env:
        has = set(git.call("ls-files", "-z", env=env).split(b"\0")) if known else set()
        missing = {path: entry for path, entry in (known or {}).items() if os.fsencode(path) not in has}
        if missing:
            git.call("update-index", "-z", "--index-info", env=env, stdin=_lines(missing))
        tree = Shadow(call=git.call, root=git.root, env=env).write()
    return _shot(git, tree, {path: kind for path, (kind, _) in _listed(git, tree).items()})


def shoot_commit(git: Git) -> Shot | None:
    """Record the files where they are found to be those of the newest commit, byte for byte."""
    entries = git.trees.known(git.head) if git.head else None
    if git.head is None or entries is None or git.trees.may_convert(git.call, entries):
        return None
    _make_store(git)
    return _shot(git, git.head, {os.fsdecode(entry.path): f"{entry.mode:o}" for entry in entries})


def _shot(git: Git, tree: str, kinds: Mapping[str, str]) -> Shot:
    modes = {path: mode for path in kinds if (mode := _mode(f"{git.root}/{path}")) is not None}
    return Shot(
        tree=tree, modes={path: mode for path, mode in modes.items() if mode != _USUAL.get(kinds[path])}
    )


def unread(git: Git, paths: Iterable[str]) -> Files:
    """Return files as a shot is told of them that git would leave out; it reads them itself."""
    nobody = "1" * (64 if git.source.hash == "sha256" else 40)
    return {
        path: Entry(kind="120000" if (git.root / path).is_symlink() else "100644", id=nobody, mode=0)
        for path in paths
    }


def files_of(git: Git, shot: Shot) -> dict[str, Entry]:
    """Return the files of a shot."""
    return {
        path: Entry(kind=kind, id=name, mode=shot.modes.get(path, _USUAL.get(kind, 0o644)))
        for path, (kind, name) in _listed(git, shot.tree).items()
    }


def as_shot(git: Git, files: Files) -> Shot:
    """Return the shot of some files whose objects are known."""
    with _folder(git) as env:
        git.call("read-tree", "--empty", env=env)
        git.call("update-index", "-z", "--index-info", env=env, stdin=_lines(files))
        tree = git.call("write-tree", env=env).decode().strip()
    modes = {path: entry.mode for path, entry in files.items() if entry.mode != _USUAL.get(entry.kind)}
    return Shot(tree=tree, modes=modes)


def hold(git: Git, shot: Shot) -> None:
    """Take over the objects of a shot that no commit has, since git may clear them away."""
    if shot.tree == git.head:
        return
    env = own_objects(git.source)
    wanted = f"{shot.tree}\n" + (f"^{git.head}\n" if git.head else "")
    git.call("pack-objects", "-q", "--revs", f"{env[OBJECTS]}/pack/pack", env=env, stdin=wanted.encode())


def content(git: Git, entry: Entry) -> bytes:
    """Return the bytes of a file."""
    return git.call("cat-file", "blob", entry.id, env=own_objects(git.source))


def _listed(git: Git, tree: str) -> dict[str, tuple[str, str]]:
    raw = git.call("ls-tree", "-r", "-z", tree, env=own_objects(git.source))
    words = (word.partition(b"\t") for word in raw.split(b"\0") if word)
    heads = ((os.fsdecode(path), head.decode().split(" ")) for head, _, path in words)
    return {path: (head[0], head[2]) for path, head in heads}


def _lines(files: Files) -> bytes:
    lines: Iterable[bytes] = (
        f"{entry.kind} blob {entry.id}\t".encode() + os.fsencode(path) for path, entry in files.items()
    )
    return b"".join(line + b"\0" for line in lines)


def _mode(place: str) -> int | None:
    try:
        return stat.S_IMODE(os.lstat(place).st_mode)
    except OSError:
        return None


def _folder(git: Git) -> AbstractContextManager[dict[str, str]]:
    """Return the variables of a git folder of our own that converts nothing."""
    _make_store(git)
    return git.exact.folder(git.call)


def _make_store(git: Git) -> None:
    Path(own_objects(git.source)[OBJECTS], "pack").mkdir(mode=0o700, parents=True, exist_ok=True)
