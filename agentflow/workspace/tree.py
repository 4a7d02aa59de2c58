"""The tree of all non-ignored files as they are on disk, made beside the user's index and configuration."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType

from agentflow.core.record import Record
from agentflow.sandbox.throwaway import scratch_folder
from agentflow.workspace.private_git import (
    AS_JUDGED,
    SKIPPED,
    FrozenIndex,
    FrozenStart,
    GitCall,
    IndexEntry,
    freeze_index,
    hash_tree,
    hide_home,
    list_folders,
    make_private_git,
    write_frozen,
    write_rules,
)

OURS = (".claude/agentflow", ".claude/*.local.*", ".claude/learnings.md")
"""Paths that are never part of a tree id or of the files changed; each has two parts."""
_PLAIN = (b"H 100644 ", b"H 100755 ", b"H 120000 ")
_GITLINK = b"160000"
_LOOK = ("status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignore-submodules=all", "--no-renames")
_AS_ADDED = b"1 A. "
"""How `status` begins to tell of a file that is as the index has it, where there is no commit."""
_ENCODING = b"working-tree-encoding"
_OF_THE_MACHINE = Path("/etc/gitattributes")


class Listing(Record):
    """The paths that need more than a look at their content."""

    others: tuple[bytes, ...] = ()
    """Not in the index; a folder, with a slash at its end, is a repository inside."""
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

    call: GitCall
    root: Path
    env: Mapping[str, str]

    def write(self) -> str:
        """Return the id of the tree; its objects are in the repository, nothing else there changes."""
        listing = self._list_files()
        self._update((path for path in listing.skipped if self._exists(path)), "--no-skip-worktree")
        self._update((*listing.ours, *listing.links), "--force-remove")
        self._git("add", "-u")
        found = (*listing.others, *self._list_replacements(listing.links))
        self._update(self._files(found), "--add", "--remove", "--replace")
        return self._git("write-tree").decode().strip()

    def _list_files(self) -> Listing:
        raw = self._git("ls-files", "-v", "-s", "-z", "--cached", "--others", "--exclude-standard")
        words = [word for word in raw.split(b"\0") if not word.startswith(_PLAIN) or b"\t.claude/" in word]
        entries = [(word[:2], *word[2:].partition(b"\t")) for word in words if word[:1] not in (b"", b"?")]
        return Listing(
            others=tuple(name for word in words if word[:1] == b"?" and not is_ours(name := word[2:])),
            skipped=tuple(path for tag, _, _, path in entries if tag == SKIPPED),
            links=tuple(path for _, mode, _, path in entries if mode.startswith(_GITLINK)),
            ours=tuple(path for _, _, _, path in entries if is_ours(path)),
        )

    def _list_replacements(self, links: Iterable[bytes]) -> Iterator[bytes]:
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


class TreeWriter:
    """The trees of one kind of a repository; what the first saw of git's own files holds for all.

    It is kept in memory: whoever may write to the disk can change neither the rules nor the index.
    """

    def __init__(
        self,
        origin: FrozenStart,
        attributes: bytes = AS_JUDGED,
        objects: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.origin = origin
        self._attributes = attributes
        """The last word on how content is converted."""
        self._objects = objects
        """Variables that say where git keeps objects, unless in the repository."""
        self._start: FrozenIndex | None = None
        self._known: dict[str, tuple[IndexEntry, ...]] = {}

    def are_committed(self, call: GitCall, head: str) -> bool:
        """Tell whether the files on disk are the tree of a commit and nothing else, by one look at each.

        If they are not, or if this cannot be told so simply, the answer is no.
        """
        entries = self.origin.freeze(call).entries or ()
        if any(entry.is_skipped or is_ours(entry.path) for entry in entries):
            return False
        if hash_tree(entries, self.origin.source.hash) != head:
            return False
        with self._lay_out(call) as env:
            said = call(*_LOOK, env=env)
        others = (line for line in said.split(b"\0") if line and not line.startswith(_AS_ADDED))
        if not all(line.startswith(b"? ") and is_ours(line[2:]) for line in others):
            return False
        self._known[head] = entries
        return True

    def find_entries(self, tree: str) -> tuple[IndexEntry, ...] | None:
        """Return the files of a tree that was found to be on disk as it is committed."""
        return self._known.get(tree)

    def may_convert(self, call: GitCall, entries: Iterable[IndexEntry]) -> bool:
        """Tell whether an attribute may give files another content in a tree than on disk."""
        folders = {b"", *list_folders(entry.path for entry in entries)}
        places = [self.origin.root / os.fsdecode(folder) / ".gitattributes" for folder in folders]
        told = [place.read_bytes() for place in places if place.is_file()]
        words = (*told, *self.origin.freeze(call).files.values())
        return _OF_THE_MACHINE.exists() or any(_ENCODING in text for text in words)

    def write(self, call: GitCall) -> str:
        """Return the id of the tree of the files as they are on disk now."""
        with self.folder(call) as env:
            return Shadow(call=call, root=self.origin.root, env=env).write()

    def list_ignored(self, call: GitCall) -> tuple[str, ...]:
        """Return what is not part of the tree because it is ignored, our own files left out."""
        with self._lay_out(call) as env:
            raw = call(
                "ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z", env=env
            )
        return tuple(
            os.fsdecode(path) for path in raw.split(b"\0") if path and not path.startswith(b".claude/")
        )

    @contextmanager
    def folder(self, call: GitCall) -> Iterator[dict[str, str]]:
        """Yield the variables of a git folder of our own, with the rules and the index of the first time."""
        with scratch_folder() as folder:
            env = {**make_private_git(self.origin.root, self.origin.source, folder), **self._objects}
            if self._start is None:
                self._start = freeze_index(call, self.origin.freeze(call), folder, env, self._attributes)
            else:
                write_frozen(self._start, folder)
            yield env | hide_home(folder)

    @contextmanager
    def _lay_out(self, call: GitCall) -> Iterator[dict[str, str]]:
        """Yield the same where no content has to be known."""
        with scratch_folder() as folder:
            env = {**make_private_git(self.origin.root, self.origin.source, folder), **self._objects}
            write_rules(self.origin.freeze(call), folder, self._attributes)
            yield env | hide_home(folder)


def is_ours(path: bytes) -> bool:
    if not path.startswith(b".claude/"):
        return False
    head = "/".join(os.fsdecode(path).split("/")[:2])
    return any(fnmatchcase(head, pattern) for pattern in OURS)
