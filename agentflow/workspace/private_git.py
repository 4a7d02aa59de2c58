"""A private git directory: our own settings and index, with the objects of the repository.

The repository's ignore rules and index are read once and frozen; later changes to them do not count.
"""

import hashlib
import os
import re
import shutil
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from agentflow.core.record import Record
from agentflow.sandbox.throwaway import make_scratch_folder

_HEAD = struct.Struct(">4sLL")
_ENTRY = {20: struct.Struct(">24xL12x20sH"), 32: struct.Struct(">24xL12x32sH")}
"""Mode, id and flags of an entry; before and between stands what the kernel said, which nobody believes."""
_EXTENDED, _STAGE, _SKIP = 0x4000, 0x3000, 0x4000
_LONGEST = 0xFFF
_MODES = (0o100644, 0o100755, 0o120000)
_ODD = re.compile(
    rb"(?:^|/)(?:\.{0,2}|\.git|git~\d+)(?:/|$)"  # no name, or one that leads out or into git's own folder
    rb"|(?:^|/)\.[^/]*[\x80-\xff]"  # what some file systems take for such a one
    rb"|[\\:\x00-\x1f]",
    re.IGNORECASE,
)


class IndexEntry(NamedTuple):
    """A file of an index."""

    path: bytes
    mode: int
    id: bytes
    is_skipped: bool = False
    """Left out of the disk."""


def parse_entry(head: bytes, path: bytes, *, is_skipped: bool = False) -> IndexEntry:
    """Return a file as git lists it, by what begins with the mode and ends with the id."""
    mode, *_, found = head.split()
    return IndexEntry(path, int(mode, 8), bytes.fromhex(found.decode()), is_skipped)


def read_index(raw: bytes, hash_name: str) -> tuple[IndexEntry, ...] | None:
    """Return the files of an index, sorted; None where git has to say what it holds."""
    try:
        found = _read(raw, hashlib.new(hash_name, usedforsecurity=False).digest_size)
    except (struct.error, ValueError):
        return None
    paths = {entry.path for entry in found}
    is_clear = len(paths) == len(found) and not any(map(_ODD.search, paths))
    return tuple(sorted(found)) if is_clear and paths.isdisjoint(list_folders(paths)) else None


def _read(raw: bytes, digest: int) -> list[IndexEntry]:
    """Return the files of an index. Raises ValueError unless all are plain files in plain entries."""
    kind, version, count = raw[:4], int.from_bytes(raw[4:8]), int.from_bytes(raw[8:12])
    if kind != b"DIRC" or version not in (2, 3):
        raise ValueError(version)
    place, found, head = _HEAD.size, list[IndexEntry](), _ENTRY[digest]
    for _ in range(count):
        mode, name, flags = head.unpack_from(raw, place)
        begin, is_skipped = place + head.size, False
        if flags & _EXTENDED:
            is_skipped = bool(int.from_bytes(raw[begin : begin + 2]) & _SKIP)
            begin += 2
        end = raw.index(b"\0", begin)
        if mode not in _MODES or flags & _STAGE:
            raise ValueError(mode)
        found.append(IndexEntry(raw[begin:end], mode, name, is_skipped))
        place += (end - place + 8) & ~7
    if any(name[:1].islower() for name in _extensions(raw, place, len(raw) - digest)):
        raise ValueError("an extension changes what the entries mean")
    return found


def _extensions(raw: bytes, place: int, end: int) -> Iterator[bytes]:
    while place < end:
        yield raw[place : place + 4]
        place += 8 + int.from_bytes(raw[place + 4 : place + 8])


def list_folders(paths: Iterable[bytes]) -> set[bytes]:
    """Return all folders that paths lead through, the top left out."""
    folders = {path.rpartition(b"/")[0] for path in paths}
    return {folder for below in folders for folder in (below, *_parents(below))} - {b""}


def _parents(path: bytes) -> Iterator[bytes]:
    while path := path.rpartition(b"/")[0]:
        yield path


def write_index(entries: tuple[IndexEntry, ...], hash_name: str) -> bytes:
    """Return an index of sorted files in which no content is known before git read the file."""
    version = 3 if any(entry.is_skipped for entry in entries) else 2
    body = _HEAD.pack(b"DIRC", version, len(entries)) + b"".join(map(_encode_entry, entries))
    return body + hashlib.new(hash_name, body, usedforsecurity=False).digest()


def _encode_entry(entry: IndexEntry) -> bytes:
    size = min(len(entry.path), _LONGEST)
    flags = size | _EXTENDED if entry.is_skipped else size
    head = _ENTRY[len(entry.id)].pack(entry.mode, entry.id, flags)
    whole = (head + _SKIP.to_bytes(2) if entry.is_skipped else head) + entry.path
    return whole + bytes(8 - len(whole) % 8)


def hash_tree(entries: Iterable[IndexEntry], hash_name: str) -> str:
    folders: dict[bytes, list[tuple[bytes, bytes]]] = {b"": []}
    for entry in entries:
        folder, _, name = entry.path.rpartition(b"/")
        folders.setdefault(folder, []).append((name, b"%o %s\0%s" % (entry.mode, name, entry.id)))
    for folder in list_folders(tuple(folders)):
        folders.setdefault(folder, [])
    for folder in sorted(folders.keys() - {b""}, key=lambda path: -path.count(b"/")):
        above, _, name = folder.rpartition(b"/")
        found = _hash_folder(folders[folder], hash_name)
        folders[above].append((name + b"/", b"40000 %s\0%s" % (name, found)))
    return _hash_folder(folders[b""], hash_name).hex()


def _hash_folder(parts: list[tuple[bytes, bytes]], hash_name: str) -> bytes:
    content = b"".join(part for _, part in sorted(parts))
    return hashlib.new(hash_name, b"tree %d\0%s" % (len(content), content), usedforsecurity=False).digest()


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
# git reads this file last: content is what is on disk, line ends too
AS_JUDGED = b"\n* -text -ident -filter\n"
AS_TEXT = b"\n* -text -ident -filter !diff\n"  # and a diff shows whatever is text
AS_IT_IS = b"\n* -text -ident -filter !working-tree-encoding\n"
OBJECTS = "GIT_OBJECT_DIRECTORY"
SKIPPED = b"S "
_GLOB = re.compile(rb"[\\*?\[\] ]")
"""What stands for itself in an ignore rule behind a backslash alone."""
_USER = (("core.excludesfile", "ignore"), ("core.attributesfile", "attributes"))
_ASKED = r"^core\.(excludesfile|attributesfile|bare)$"
"""With one key that is always there, because git fails where it finds none."""
_REFRESH = ("-q", "--unmerged", "--ignore-missing", "--ignore-submodules", "--refresh")


class GitCall(Protocol):
    """Run git at the root and return what it printed."""

    def __call__(
        self, *arguments: str, env: Mapping[str, str] | None = None, stdin: bytes = b""
    ) -> bytes: ...


class GitSource(Record):
    """The inputs of the tree beside the files."""

    hash: str
    """The name of the hash that object ids are made with."""
    index: Path
    objects: Path
    exclude: Path
    attributes: Path
    kept: Path
    """Where we may keep something that git leaves alone."""
    commits: tuple[Path, ...]
    """The files that say which commits there are, and what is committed next."""
    refs: Path


def make_private_git(root: Path, source: GitSource, folder: Path) -> dict[str, str]:
    """Make a private git folder, also from an empty one; return the variables that point git to it."""
    (folder / "refs").mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/none\n")
    (folder / "config").write_text(_CONFIG.format(hash=source.hash))
    return {
        "GIT_DIR": str(folder),
        "GIT_WORK_TREE": str(root),
        "GIT_INDEX_FILE": str(folder / "index"),
        OBJECTS: str(source.objects),
    }


def make_unfiltered_git(source: GitSource, folder: Path, work: Path) -> dict[str, str]:
    """Make a git folder that obeys no settings and no filters, for files at `work`; return its variables."""
    env = make_private_git(work, source, folder) | hide_home(folder)
    (folder / "info").mkdir()
    (folder / "info/attributes").write_bytes(AS_TEXT)
    return env


def make_git_with_tree(
    call: GitCall, source: GitSource, tree: str, folder: Path, work: Path
) -> dict[str, str]:
    """Make a private git folder whose index holds a tree; return its variables."""
    env = make_unfiltered_git(source, folder, work)
    call("read-tree", tree, env=env)
    return env


def use_own_objects(source: GitSource) -> dict[str, str]:
    """Return the variables with which git writes objects to our own store and also reads the repository's."""
    # in quotes, or else a colon in the name ends it
    quoted = '"{}"'.format(str(source.objects).replace("\\", "\\\\").replace('"', '\\"'))
    return {OBJECTS: str(source.kept / "objects"), "GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted}


def hide_home(folder: Path) -> dict[str, str]:
    """Return the variables that make git read our copies in place of files of the user's home."""
    return {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "user"), "GIT_CONFIG_NOSYSTEM": "1"}


class FrozenRules(Record):
    """The ignore rules, attributes and index of a repository and its user, as first read."""

    files: Mapping[str, bytes]
    """The user's ignore rules and attributes, by where a git folder of our own has them."""
    index: bytes
    """The paths of the repository's index; empty when there is none."""
    entries: tuple[IndexEntry, ...] | None = None
    """The same as files, sorted; None where only git can tell."""
    absent: frozenset[IndexEntry] = frozenset()
    """What a sparse checkout has left out of the disk."""


class FrozenStart:
    """The rules and index for all trees of one repository, read when the first tree is made."""

    def __init__(self, root: Path, source: GitSource) -> None:
        self.root = root
        self.source = source
        self._found: FrozenRules | None = None

    def freeze(self, call: GitCall) -> FrozenRules:
        """Return what the repository and its user said at first."""
        if self._found is None:
            self._found = self._read(call)
        return self._found

    def to_copy(self, call: GitCall, root: Path, shown: Iterable[str]) -> "FrozenStart":
        """Return the same beginning for a copy of the files, where what is shown is ignored as a link too."""
        found, name = self.freeze(call), "info/exclude"
        names = (_GLOB.sub(rb"\\\g<0>", os.fsencode(path)) for path in shown)
        lines = b"".join(b"\n/%s\n" % each for each in names)
        copied = FrozenStart(root, self.source)
        copied._found = found.replace(files={**found.files, name: found.files[name] + lines})
        return copied

    def _read(self, call: GitCall) -> FrozenRules:
        with make_scratch_folder() as folder:
            env = make_private_git(self.root, self.source, folder)
            files = {
                "info/exclude": _content(self.source.exclude),
                "info/attributes": _content(self.source.attributes),
                **_of_user(call, self.root, env),
            }
            raw = _content(self.source.index)
            entries = read_index(raw, self.source.hash)
            found = FrozenRules(files=files, index=b"", entries=entries or None)
            if entries:
                index, skipped = write_index(entries, self.source.hash), [e for e in entries if e.is_skipped]
            else:
                skipped = (
                    _rebuild(call, self.source.index, folder, {**env, **hide_home(folder)}) if raw else []
                )
                index = _content(folder / "index")
            absent = (each for each in skipped if not os.path.lexists(self.root / os.fsdecode(each.path)))
            return found.replace(index=index, absent=frozenset(absent))


class FrozenIndex(Record):
    """The inputs of the first tree of a kind, which every later one is made with too."""

    files: Mapping[str, bytes]
    index: bytes
    index_time: int
    """By which git knows the files that are too young to be trusted."""


def freeze_index(
    call: GitCall, found: FrozenRules, folder: Path, env: Mapping[str, str], attributes: bytes
) -> FrozenIndex:
    """Let git look at each file once in a folder of our own; `attributes` are the last word."""
    files = write_rules(found, folder, attributes)
    if not found.index:
        return FrozenIndex(files=files, index=b"", index_time=0)
    call("update-index", *_REFRESH, env={**env, **hide_home(folder)})
    return read_frozen(files, folder / "index")


def read_frozen(files: Mapping[str, bytes], index: Path) -> FrozenIndex:
    """Return what a first tree is made with, by an index for which git has looked at each file."""
    if not index.exists():
        return FrozenIndex(files=files, index=b"", index_time=0)
    return FrozenIndex(files=files, index=index.read_bytes(), index_time=index.stat().st_mtime_ns)


def write_rules(found: FrozenRules, folder: Path, attributes: bytes) -> dict[str, bytes]:
    """Write the found rules and index into a private git folder; return its files of rules."""
    files = list_rules(found, attributes)
    _lay(files, folder)
    if found.index:
        (folder / "index").write_bytes(found.index)
    return files


def list_rules(found: FrozenRules, attributes: bytes) -> dict[str, bytes]:
    """Return the files of a git folder of our own that are rules; `attributes` are the last word."""
    return {**found.files, "info/attributes": found.files["info/attributes"] + attributes}


def write_frozen(start: FrozenIndex, folder: Path) -> None:
    """Copy what the first tree was made with into another private git folder."""
    _lay(start.files, folder)
    if start.index:
        index = folder / "index"
        index.write_bytes(start.index)
        os.utime(index, ns=(start.index_time, start.index_time))


def _of_user(call: GitCall, root: Path, env: Mapping[str, str]) -> dict[str, bytes]:
    """Return the files that the user's own configuration names, or the usual ones."""
    said = call("config", "-z", "--type=path", "--get-regexp", _ASKED, env=env).split(b"\0")
    named = {key.decode(): os.fsdecode(value) for key, _, value in (word.partition(b"\n") for word in said)}
    usual = os.path.expanduser("~/.config/git")  # noqa: PTH111 - a machine may have no home
    return {f"user/git/{name}": _content(root / named.get(key, f"{usual}/{name}")) for key, name in _USER}


def _rebuild(call: GitCall, theirs: Path, folder: Path, env: Mapping[str, str]) -> list[IndexEntry]:
    """Make an index with the paths of the user's, in which no content is known before git read the file.

    Return what it has left out of the disk.

    Whoever can write the user's index can let it claim any content for a file, or for a whole folder.
    """
    shutil.copyfile(theirs, folder / "theirs")
    for part in theirs.parent.glob("sharedindex.*"):
        (folder / part.name).symlink_to(part)
    listed = call("ls-files", "-v", "-s", "-z", env={**env, "GIT_INDEX_FILE": str(folder / "theirs")})
    entries = [(word[:2].upper(), *word[2:].partition(b"\t")) for word in listed.split(b"\0") if word]
    merged = b"\0".join(head[:-1] + b"0\t" + path for _, head, _, path in entries)
    call("update-index", "-z", "--index-info", env=env, stdin=merged)
    if skipped := b"\0".join(path for tag, _, _, path in entries if tag == SKIPPED):
        call("update-index", "--skip-worktree", "-z", "--stdin", env=env, stdin=skipped)
    call("write-tree", "--missing-ok", env=env)  # the index then keeps the ids of folders
    return [parse_entry(head[:-1], path, is_skipped=True) for tag, head, _, path in entries if tag == SKIPPED]


def _lay(files: Mapping[str, bytes], folder: Path) -> None:
    for name, content in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""
