"""The tree of all non-ignored files as they are on disk, made beside the user's index and configuration."""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol

from agentflow.core.record import Record

OURS = (".claude/agentflow", ".claude/*.local.*", ".claude/learnings.md")
"""Paths that are never part of a tree id or of the files changed; each has two parts."""
_CONFIG = """\
[core]
 repositoryFormatVersion = 1
 bare = false
 autocrlf = false
 safecrlf = false
 fileMode = true
 symlinks = true
 ignoreCase = false
 precomposeUnicode = true
 splitIndex = false
 untrackedCache = false
[extensions]
 objectFormat = {hash}
"""
_NO_FILTER = b"\n* -filter\n"  # git reads this file last, so whatever filter a file is given, it is none
_PLAIN = (b"H 100644 ", b"H 100755 ", b"H 120000 ")
_GITLINK = b"160000"


class Call(Protocol):
    """Run git at the root and return what it printed."""

    def __call__(
        self, *arguments: str, env: Mapping[str, str] | None = None, stdin: bytes = b""
    ) -> bytes: ...


class Source(Record):
    """What the tree is made from, beside the files."""

    hash: str
    """The name of the hash that object ids are made with."""
    index: Path
    objects: Path
    exclude: Path
    attributes: Path


class Listing(Record):
    """The paths that need more than a look at their content."""

    others: tuple[bytes, ...] = ()
    """Not in the index; a folder, with a slash at its end, is a repository inside."""
    assumed: tuple[bytes, ...] = ()
    """Marked as unchanged."""
    skipped: tuple[bytes, ...] = ()
    """Marked as left out of the disk."""
    links: tuple[bytes, ...] = ()
    """Repositories inside that the index has as a commit."""
    ours: tuple[bytes, ...] = ()
    """In the index although they are never counted."""


class Shadow(Record):
    """A git folder of our own that shares nothing with the repository but its objects and ignore rules.

    Git reads no configuration of the repository through it, so no program or setting of that has a say.
    """

    call: Call
    root: Path
    env: Mapping[str, str]

    def write(self) -> str:
        """Return the id of the tree; its objects are in the repository, nothing else there changes."""
        listing = self._listing()
        self._update(listing.assumed, "--no-assume-unchanged")
        self._update((path for path in listing.skipped if self._exists(path)), "--no-skip-worktree")
        self._update((*listing.ours, *listing.links), "--force-remove")
        self._git("add", "-u")
        found = (*listing.others, *self._replaced(listing.links))
        self._update(self._files(found), "--add", "--remove", "--replace")
        return self._git("write-tree").decode().strip()

    def _listing(self) -> Listing:
        raw = self._git("ls-files", "-v", "-s", "-z", "--cached", "--others", "--exclude-standard")
        words = [word for word in raw.split(b"\0") if not word.startswith(_PLAIN) or b"\t.claude/" in word]
        entries = [(word[:2], *word[2:].partition(b"\t")) for word in words if word[:1] not in (b"", b"?")]
        return Listing(
            others=tuple(name for word in words if word[:1] == b"?" and not _is_ours(name := word[2:])),
            assumed=tuple(path for tag, _, _, path in entries if tag[:1].islower()),
            skipped=tuple(path for tag, _, _, path in entries if tag in (b"S ", b"s ")),
            links=tuple(path for _, mode, _, path in entries if mode.startswith(_GITLINK)),
            ours=tuple(path for _, _, _, path in entries if _is_ours(path)),
        )

    def _replaced(self, links: Iterable[bytes]) -> Iterator[bytes]:
        """Yield what lies now where the index has a repository, a folder with a slash at its end."""
        for path in links:
            place = self.root / os.fsdecode(path)
            if place.parent.resolve() != place.parent:
                continue  # on the way there is a link now, which is listed itself
            if place.is_dir() and not place.is_symlink():
                yield path + b"/"
            elif self._exists(path):
                yield path

    def _files(self, found: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the files among what was found, those of repositories inside as if they were our own."""
        for path in found:
            if not path.endswith(b"/"):
                yield path
                continue
            env = {
                "GIT_WORK_TREE": str(self.root / os.fsdecode(path)),
                "GIT_INDEX_FILE": f"{self.env['GIT_DIR']}/none",
            }
            inner = self._git("ls-files", "-z", "--others", "--exclude-standard", env=env).split(b"\0")
            yield from self._files(path + name for name in inner if name)

    def _exists(self, path: bytes) -> bool:
        return os.path.lexists(self.root / os.fsdecode(path))

    def _update(self, paths: Iterable[bytes], *options: str) -> None:
        if stdin := b"\0".join(paths):
            self._git("update-index", *options, "-z", "--stdin", stdin=stdin)

    def _git(self, *arguments: str, env: Mapping[str, str] | None = None, stdin: bytes = b"") -> bytes:
        return self.call(*arguments, env={**self.env, **(env or {})}, stdin=stdin)


def cast(call: Call, root: Path, source: Source, folder: Path) -> Shadow:
    """Make the shadow of a repository in an empty folder."""
    for name in ("refs", "info"):
        (folder / name).mkdir()
    (folder / "HEAD").write_text("ref: refs/heads/none\n")
    (folder / "config").write_text(_CONFIG.format(hash=source.hash))
    (folder / "info/exclude").write_bytes(_content(source.exclude))
    (folder / "info/attributes").write_bytes(_content(source.attributes) + _NO_FILTER)
    if source.index.exists():
        # with its time, by which git knows the files that are too young to be trusted
        shutil.copy2(source.index, folder / "index")
    for part in source.index.parent.glob("sharedindex.*"):
        (folder / part.name).symlink_to(part)
    env = {
        "GIT_DIR": str(folder),
        "GIT_WORK_TREE": str(root),
        "GIT_INDEX_FILE": str(folder / "index"),
        "GIT_OBJECT_DIRECTORY": str(source.objects),
    }
    return Shadow(call=call, root=root, env=env)


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _is_ours(path: bytes) -> bool:
    if not path.startswith(b".claude/"):
        return False
    head = "/".join(os.fsdecode(path).split("/")[:2])
    return any(fnmatchcase(head, pattern) for pattern in OURS)
