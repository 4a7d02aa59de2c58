"""The tree of all non-ignored files as they are on disk, made beside the user's index and configuration."""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType

from agentflow.core.record import Record
from agentflow.sandbox.throwaway import make_scratch_folder
from agentflow.workspace.private_git import (
    AS_IT_IS,
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
    list_rules,
    make_private_git,
    read_frozen,
    write_frozen,
    write_rules,
)

OURS = (".claude/agentflow", ".claude/worktrees", ".claude/*.local.*", ".claude/learnings.md")
"""Paths that are never part of a tree id or of the files changed; each has two parts."""
_PLAIN = (b"H 100644 ", b"H 100755 ", b"H 120000 ")
_GITLINK = b"160000"
_LOOK = ("status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignore-submodules=all", "--no-renames")
_AS_ADDED = b"1 A. "
"""How `status` begins to tell of a file that is as the index has it, where there is no commit."""
_ENCODING = b"working-tree-encoding"
_OF_THE_MACHINE = Path("/etc/gitattributes")
_LIST = ("ls-files", "-v", "-s", "-z", "--cached", "--others", "--exclude-standard")
_DIFFERING = ("--deleted", "--modified")
_MOST_FILES, _MOST_BYTES, _MOST_TREES = 20_000, 8 << 20, 12
"""Of a tree that is hashed here, of a file that is read for that, and of trees that are kept in mind."""
_UNLISTED = (b".git", b".claude")
_MOST_NAMES = 3_000
"""Of a work tree that is looked through here to tell that git would list the same as before."""


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
    words: tuple[bytes, ...] = ()
    """All that git said: a letter, what the index has, and the path."""


class Shadow(Record):
    """A git folder of our own that shares nothing with the repository but its objects and ignore rules.

    Git reads no configuration of the repository through it, so no program or setting of that has a say.
    """

    call: GitCall
    root: Path
    env: Mapping[str, str]

    def write(self, listing: Listing) -> str:
        """Return the id of the tree; its objects are in the repository, nothing else there changes."""
        self._update((path for path in listing.skipped if self._exists(path)), "--no-skip-worktree")
        self._update((*listing.ours, *listing.links), "--force-remove")
        self._git("add", "-u")
        found = (*listing.others, *self._list_replacements(listing.links))
        self._update(self._files(found), "--add", "--remove", "--replace")
        return self._git("write-tree", "--missing-ok").decode().strip()

    def list_files(self, *options: str) -> Listing:
        """Return what needs more than a look at its content."""
        said = tuple(self._git(*_LIST, *options).split(b"\0"))
        words = [word for word in said if not word.startswith(_PLAIN) or b"\t.claude/" in word]
        entries = [(word[:2], *word[2:].partition(b"\t")) for word in words if word[:1] not in (b"", b"?")]
        return Listing(
            others=tuple(name for word in words if word[:1] == b"?" and not is_ours(name := word[2:])),
            skipped=tuple(path for tag, _, _, path in entries if tag == SKIPPED),
            links=tuple(path for _, mode, _, path in entries if mode.startswith(_GITLINK)),
            ours=tuple(path for _, _, _, path in entries if is_ours(path)),
            words=said,
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
        """Yield the files that were found, including those of nested repositories."""
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
    """Makes the trees of a repository, all by the rules and the index that git had for the first one.

    Both are kept in memory, where nobody can change them later.
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
        self._ignored: tuple[bytes, tuple[str, ...]] | None = None

    def are_committed(self, call: GitCall, head: str) -> bool:
        """Return whether the files on disk are the tree of a commit and nothing else, by one look at each.

        If they are not, or if this cannot be told so simply, the answer is no.
        """
        entries = self.origin.freeze(call).entries or ()
        if any(entry.is_skipped or is_ours(entry.path) for entry in entries):
            return False
        if hash_tree(entries, self.origin.source.hash) != head:
            return False
        with self._lay_out(call) as env:
            # it may write down the times of what it saw, in our folder
            said = call(*_LOOK, env={**env, "GIT_OPTIONAL_LOCKS": "1"})
            rules = list_rules(self.origin.freeze(call), self._attributes)
            self._start = self._start or read_frozen(rules, Path(env["GIT_INDEX_FILE"]))
        others = (line for line in said.split(b"\0") if line and not line.startswith(_AS_ADDED))
        if not all(line.startswith(b"? ") and is_ours(line[2:]) for line in others):
            return False
        self.remember(head, entries)
        return True

    def find_entries(self, tree: str) -> tuple[IndexEntry, ...] | None:
        """Return the files of a tree that was seen or made lately, sorted."""
        return self._known.get(tree)

    def remember(self, tree: str, entries: tuple[IndexEntry, ...]) -> None:
        """Keep in mind what files a tree of the repository has, sorted."""
        while len(self._known) >= _MOST_TREES:
            del self._known[next(iter(self._known))]
        self._known[tree] = entries

    def find_tracked(self, call: GitCall, env: Mapping[str, str]) -> set[bytes]:
        """Return the paths of the index of a git folder of our own."""
        entries = self.origin.freeze(call).entries
        if entries is not None:
            return {entry.path for entry in entries}
        return set(call("ls-files", "-z", env=env).split(b"\0"))

    def may_convert(self, call: GitCall, entries: Iterable[IndexEntry]) -> bool:
        """Return whether an attribute may give files another content in a tree than on disk."""
        folders = {b"", *list_folders(entry.path for entry in entries)}
        places = [self.origin.root / os.fsdecode(folder) / ".gitattributes" for folder in folders]
        told = [place.read_bytes() for place in places if place.is_file()]
        words = (*told, *self.origin.freeze(call).files.values())
        return _OF_THE_MACHINE.exists() or any(_ENCODING in text for text in words)

    def write(self, call: GitCall) -> str:
        """Return the id of the tree of the files as they are on disk now."""
        with self.open_folder(call) as env:
            return self.write_within(call, env)

    def write_within(self, call: GitCall, env: Mapping[str, str]) -> str:
        """Return the tree id of the files on disk, using the index of our own git folder.

        Objects are written for a tree alone that was not made or seen before.
        """
        shadow = Shadow(call=call, root=self.origin.root, env=env)
        listing, entries = self._look(call, shadow)
        found = hash_tree(entries, self.origin.source.hash) if entries is not None else None
        if found in self._known:
            return found
        written = shadow.write(listing)
        if entries is not None and written == found:
            self.remember(written, entries)
        return written

    def _look(self, call: GitCall, shadow: Shadow) -> tuple[Listing, tuple[IndexEntry, ...] | None]:
        """Return git's listing of the files, and the files of the tree if the listing names them."""
        if self.origin.freeze(call).entries is None:
            return shadow.list_files(), None
        listing = shadow.list_files(*_DIFFERING)
        entries = read_work_tree(self.origin.root, listing, self.origin.source.hash)
        if entries is not None and self._attributes != AS_IT_IS and self.may_convert(call, entries):
            return listing, None
        return listing, entries

    def list_ignored(self, call: GitCall) -> tuple[str, ...]:
        """Return what is not part of the tree because it is ignored, our own files left out."""
        seen = look_through(self.origin.root)
        if seen is not None and self._ignored is not None and self._ignored[0] == seen:
            return self._ignored[1]
        with self._lay_out(call) as env:
            raw = call(
                "ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z", env=env
            )
        found = tuple(os.fsdecode(path) for path in _list_outermost(raw) if not path.startswith(b".claude/"))
        self._ignored = (seen, found) if seen is not None and seen == look_through(self.origin.root) else None
        return found

    @contextmanager
    def open_folder(self, call: GitCall) -> Iterator[dict[str, str]]:
        """Yield the variables of a git folder of our own, with the rules and the index of the first time."""
        with make_scratch_folder() as folder:
            env = {**make_private_git(self.origin.root, self.origin.source, folder), **self._objects}
            if self._start is None:
                self._start = freeze_index(call, self.origin.freeze(call), folder, env, self._attributes)
            else:
                write_frozen(self._start, folder)
            yield env | hide_home(folder)

    @contextmanager
    def _lay_out(self, call: GitCall) -> Iterator[dict[str, str]]:
        """Yield the variables of such a folder whose index has not looked at any content."""
        with make_scratch_folder() as folder:
            env = {**make_private_git(self.origin.root, self.origin.source, folder), **self._objects}
            write_rules(self.origin.freeze(call), folder, self._attributes)
            yield env | hide_home(folder)


def _list_outermost(raw: bytes) -> Iterator[bytes]:
    """Yield the ignored entries that lie in no other; git also lists what an ignored folder itself ignores.

    A virtual environment is such a folder: from Python 3.13 on, it has an ignore file of its own.
    """
    above = b""
    for path in filter(None, raw.split(b"\0")):
        if not (above and path.startswith(above)):
            yield path
            above = path if path.endswith(b"/") else b""


def read_work_tree(root: Path, listing: Listing, hash_name: str) -> tuple[IndexEntry, ...] | None:
    """Return the sorted files of a tree from git's listing; None if only git can tell.

    Those that differ from the index are read here, and the bytes on disk count.
    """
    is_odd = listing.skipped or listing.links or any(path.endswith(b"/") for path in listing.others)
    if is_odd or len(listing.words) > _MOST_FILES:
        return None
    told = [(word[:1], *word[2:].partition(b"\t")) for word in listing.words if word[:1] not in (b"", b"?")]
    if not all(tag in (b"H", b"C", b"R") for tag, *_ in told):
        return None
    gone = {path for tag, _, _, path in told if tag == b"R"}
    changed = {path for tag, _, _, path in told if tag == b"C"} - gone | {*listing.others}
    found = {
        path: IndexEntry(path, int(head[:6], 8), bytes.fromhex(head[7:-2].decode()))
        for tag, head, _, path in told
        if tag == b"H" and path not in changed and path not in gone and not is_ours(path)
    }
    try:
        found |= {path: _read_entry(root, path, hash_name) for path in changed if not is_ours(path)}
    except (OSError, ValueError):
        return None
    return tuple(sorted(found.values())) if _lie_in_folders(root, found) else None


def _lie_in_folders(root: Path, paths: Iterable[bytes]) -> bool:
    """Return whether files lie in plain folders; behind a link there is nothing of a tree."""
    folders = list_folders(paths)
    places = (os.path.join(os.fsencode(root), folder) for folder in folders)  # noqa: PTH118 - bytes
    return folders.isdisjoint(paths) and all(stat.S_ISDIR(os.lstat(place).st_mode) for place in places)


def _read_entry(root: Path, path: bytes, hash_name: str) -> IndexEntry:
    """Return a file as it is on disk. Raises OSError, or ValueError for what git has to read."""
    place = root / os.fsdecode(path)
    said = place.lstat()
    if stat.S_ISLNK(said.st_mode):
        mode, content = stat.S_IFLNK, os.fsencode(place.readlink())
    elif stat.S_ISREG(said.st_mode) and said.st_size <= _MOST_BYTES:
        mode, content = (0o100755 if said.st_mode & stat.S_IXUSR else 0o100644), place.read_bytes()
    else:
        raise ValueError(said.st_mode)
    blob = hashlib.new(hash_name, b"blob %d\0" % len(content) + content, usedforsecurity=False)
    return IndexEntry(path, mode, blob.digest())


def look_through(root: Path) -> bytes | None:
    """Return a mark of all names in a work tree and of its ignore files; None for a large or odd one."""
    mark, count = hashlib.sha256(), 0
    folders = [os.fsencode(root)]
    try:
        while folders:
            folder = folders.pop()
            with os.scandir(folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
            count += len(found)
            if count > _MOST_NAMES or (folder != os.fsencode(root) and any(e.name == b".git" for e in found)):
                return None
            for entry in found:
                is_folder = entry.is_dir(follow_symlinks=False)
                mark.update(b"%s%s\0" % (entry.name, b"/" if is_folder else b""))
                if is_folder and (entry.name not in _UNLISTED or folder != os.fsencode(root)):
                    folders.append(entry.path)
                elif entry.name == b".gitignore":
                    mark.update(_read_rules(Path(os.fsdecode(entry.path))))
            mark.update(b"\0")
    except (OSError, ValueError):
        return None
    return mark.digest()


def _read_rules(place: Path) -> bytes:
    """Return the content of an ignore file. Raises ValueError for one that is no small plain file."""
    said = place.lstat()
    if not stat.S_ISREG(said.st_mode) or said.st_size > _MOST_BYTES:
        raise ValueError(said.st_mode)
    return b"%d\0%s" % (said.st_size, place.read_bytes())


def is_ours(path: bytes) -> bool:
    if not path.startswith(b".claude/"):
        return False
    head = "/".join(os.fsdecode(path).split("/")[:2])
    return any(fnmatchcase(head, pattern) for pattern in OURS)
