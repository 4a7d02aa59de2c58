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
_LIST_DIFFERING = ("ls-files", "-v", "-z", "--deleted", "--modified", "--others", "--exclude-standard")
_MOST_FILES, _MOST_READ, _MOST_BYTES, _MOST_TREES = 20_000, 20_000, 8 << 20, 12
"""Of a tree that is hashed here, of files read for it, of such a file, and of trees that are kept in mind."""
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
    """What git said: a letter, what the index has unless only differing files are listed, and the path."""


Differing = dict[bytes, IndexEntry | None]
"""The files on disk that are not as the index has them, by path; None for one that is gone."""


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

    def list_differing(self) -> Listing:
        """Return what is not as an index of plain files has it."""
        said = tuple(self._git(*_LIST_DIFFERING).split(b"\0"))
        return Listing(
            others=tuple(name for word in said if word[:1] == b"?" and not is_ours(name := word[2:])),
            words=said,
        )

    def list_files(self) -> Listing:
        said = tuple(self._git(*_LIST).split(b"\0"))
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
        like: "TreeWriter | None" = None,
    ) -> None:
        self.origin = origin
        self._attributes = attributes
        """The last word on how content is converted."""
        self._objects = objects
        """Variables that say where git keeps objects, unless in the repository."""
        self._like = like
        """The writer whose first look at the files serves as ours, where nothing converts their content."""
        self.start: FrozenIndex | None = None
        self._made: dict[frozenset[tuple[bytes, IndexEntry | None]], str] = {}
        """The trees of the files by what differs from the index, the oldest first."""
        self._known: dict[str, tuple[IndexEntry, ...]] = {}
        self._folders: tuple[tuple[IndexEntry, ...], set[bytes]] = ((), set())
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
            self.start = self.start or read_frozen(rules, Path(env["GIT_INDEX_FILE"]))
        others = (line for line in said.split(b"\0") if line and not line.startswith(_AS_ADDED))
        if not all(line.startswith(b"? ") and is_ours(line[2:]) for line in others):
            return False
        self.remember(head, entries)
        self._made[frozenset()] = head
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

    def may_convert(self, call: GitCall, entries: tuple[IndexEntry, ...]) -> bool:
        """Return whether an attribute may give files another content in a tree than on disk."""
        above, folders = os.fsencode(self.origin.root), (b".", *self._list_folders(entries))
        places = (b"%s/%s/.gitattributes" % (above, folder) for folder in folders)
        # an object for each of thousands of paths takes longer than the look
        told = [Path(os.fsdecode(place)).read_bytes() for place in places if os.path.isfile(place)]  # noqa: PTH113
        words = (*told, *self.origin.freeze(call).files.values())
        return _OF_THE_MACHINE.exists() or any(_ENCODING in text for text in words)

    def _list_folders(self, entries: tuple[IndexEntry, ...]) -> set[bytes]:
        """Return the folders of files; mostly it is asked for those of the same ones again."""
        if self._folders[0] is not entries:
            self._folders = (entries, list_folders(entry.path for entry in entries))
        return self._folders[1]

    def write(self, call: GitCall) -> str:
        with self.open_folder(call) as env:
            return self.write_within(call, env)

    def write_within(self, call: GitCall, env: Mapping[str, str]) -> str:
        """Return the tree id of the files on disk, using the index of our own git folder.

        Objects are written for a tree alone that was not made or seen before.
        """
        shadow = Shadow(call=call, root=self.origin.root, env=env)
        first, name = self.origin.freeze(call).entries, self.origin.source.hash
        if first is None:
            return shadow.write(shadow.list_files())
        listing = shadow.list_differing()
        differing = _read_differing(self.origin.root, listing, name)
        if differing is None or any(entry.is_skipped for entry in first):
            return shadow.write(_complete(listing, first))
        key = frozenset(differing.items())
        known = self._made.get(key)
        entries = self._known.get(known or "") or _merge(first, differing)
        if not self._is_plain(call, entries):
            return shadow.write(_complete(listing, first))
        if known:
            return known
        found = hash_tree(entries, name) if len(entries) <= _MOST_FILES else None
        if found not in self._known:
            written = shadow.write(_complete(listing, first))
            is_same = found or differing == _read_differing(self.origin.root, listing, name)
            if not is_same or found not in (None, written):
                return written  # the files changed meanwhile
            found = written
            self.remember(written, entries)
        while len(self._made) >= _MOST_TREES:
            del self._made[next(iter(self._made))]
        self._made[key] = found
        return found

    def _is_plain(self, call: GitCall, entries: tuple[IndexEntry, ...]) -> bool:
        """Return whether files lie in plain folders, none behind a link, with nothing that converts them."""
        folders, above = self._list_folders(entries), os.fsencode(self.origin.root)
        try:
            are_folders = all(
                stat.S_ISDIR(os.lstat(b"%s/%s" % (above, folder)).st_mode) for folder in folders
            )
        except OSError:
            return False
        return are_folders and (self._attributes == AS_IT_IS or not self.may_convert(call, entries))

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
            if self.start is None and (start := self._take_over(call)) is not None:
                self.start = start
            if self.start is None:
                self.start = freeze_index(call, self.origin.freeze(call), folder, env, self._attributes)
            else:
                write_frozen(self.start, folder)
            yield env | hide_home(folder)

    def _take_over(self, call: GitCall) -> FrozenIndex | None:
        """Return what the other writer found at its first look, if it found the same as this one would."""
        start, entries = self._like.start if self._like else None, self.origin.freeze(call).entries
        if start is None or entries is None or self.may_convert(call, entries):
            return None
        return start.replace(files=list_rules(self.origin.freeze(call), self._attributes))

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


def _read_differing(root: Path, listing: Listing, hash_name: str) -> Differing | None:
    """Return the files that differ from the index as they are on disk; None if only git can tell."""
    told = [(word[:1], word[2:]) for word in listing.words if word]
    if (
        any(path.endswith(b"/") for path in listing.others)
        or len(told) > _MOST_READ
        or not {tag for tag, _ in told} <= {b"C", b"R", b"?"}
    ):
        return None
    gone = {path for tag, path in told if tag == b"R"}
    try:
        return {
            path: None if path in gone else _read_entry(root, path, hash_name)
            for _, path in told
            if not is_ours(path)
        }
    except (OSError, ValueError):
        return None


def _merge(first: Iterable[IndexEntry], differing: Differing) -> tuple[IndexEntry, ...]:
    """Return the sorted files of a tree."""
    kept = (entry for entry in first if entry.path not in differing and not is_ours(entry.path))
    return tuple(sorted((*kept, *filter(None, differing.values()))))


def _complete(listing: Listing, first: Iterable[IndexEntry]) -> Listing:
    """Return a listing of what differs with what the index itself says of its files."""
    return listing.replace(
        skipped=tuple(entry.path for entry in first if entry.is_skipped),
        ours=tuple(entry.path for entry in first if is_ours(entry.path)),
    )


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
