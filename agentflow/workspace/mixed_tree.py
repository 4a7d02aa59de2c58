"""Trees made of two others, and the texts that differ between two trees."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from hashlib import sha1, sha256

from agentflow.core.file_text import FileText, decode_file, encode_file
from agentflow.core.record import Record
from agentflow.process import capture
from agentflow.redact import spell_bytes
from agentflow.sandbox.throwaway import make_scratch_folder
from agentflow.workspace.changes import EntryChange
from agentflow.workspace.git import Git
from agentflow.workspace.private_git import (
    IndexEntry,
    list_folders,
    make_git_with_tree,
)

_GONE = b"0"
_SHA1_CHARS = 40
_MARK = "\ufeff"
_REGULAR = b"100644"
_EXECUTABLE = b"100755"


class TreeSplit(Record):
    """The choice of the tree that each path is taken from."""

    belongs: Callable[[str], bool]
    """Whether a path is taken from the second tree as a whole."""
    is_shared: Callable[[str], bool]
    """Whether a path has parts of both trees."""
    mix: Callable[[str, str, str], str]
    """Make it of its path, its text in the second tree and its text in the first."""


class ChangedTexts(Record):
    """A file that differs between two trees; empty text for none."""

    path: str
    before: str
    after: str
    modes: tuple[str, str] = ("100644", "100644")
    """Before and after, as git writes them; all zeros where there is no such file."""
    is_whole: bool = True
    """True if the texts are the files, byte for byte but for a byte order mark that stays."""


def find_differences(before: Sequence[str], after: Sequence[str]) -> list[tuple[str, int, int, int, int]]:
    """Return where two lists of lines differ: the kind of each difference, its lines before and after."""
    found = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [each for each in found if each[0] != "equal"]


def merge_texts(git: Git, ours: bytes, base: bytes, theirs: bytes) -> bytes | None:
    """Return a text with the changes of two sides, or None if they changed the same lines."""
    with make_scratch_folder() as folder:
        places = [folder / name for name in ("ours", "base", "theirs")]
        for place, text in zip(places, (ours, base, theirs), strict=True):
            place.write_bytes(text)
        finished = capture(("git", *git.options, "merge-file", "--stdout", *map(str, places)), cwd=folder)
    return None if finished.returncode else finished.stdout


def mix_trees(git: Git, first: str, second: str, split: TreeSplit) -> str:
    """Return the id of a tree with the files of the first, but those that belong from the second."""
    lines = [line for entry in git.compare(first, second) if (line := _describe_entry(git, entry, split))]
    if not lines:
        return first
    return write_tree_with_entries(git, first, lines)


@lru_cache(maxsize=2)  # trees never change, and each step of judging asks
def read_changed_texts(git: Git, before: str, after: str, limit: int) -> tuple[ChangedTexts, ...]:
    """Return the files that differ, as text that can be written down; of one over the limit there is none."""
    entries = git.compare(before, after)
    names = [blob.decode() for entry in entries for blob in entry.blobs]
    found = git.read_texts(names, limit)
    return tuple(
        _to_changed_texts(entry, old, new)
        for entry, old, new in zip(entries, found[::2], found[1::2], strict=True)
    )


def _to_changed_texts(entry: EntryChange, before: str, after: str) -> ChangedTexts:
    mark = _MARK if all(text.startswith(_MARK) for text in (before, after) if text) else ""
    return ChangedTexts(
        path=spell_bytes(entry.path),
        before=before.removeprefix(mark),
        after=after.removeprefix(mark),
        modes=(entry.modes[0].decode(), entry.modes[1].decode()),
        is_whole=_is_file(before, entry.blobs[0]) and _is_file(after, entry.blobs[1]),
    )


def _is_file(text: str, blob: bytes) -> bool:
    """Return whether a text is what a blob holds; an absent file holds the empty text."""
    content = encode_file(text)
    digest = sha1 if len(blob) == _SHA1_CHARS else sha256
    found = digest(b"blob %d\0" % len(content) + content, usedforsecurity=False)
    return found.hexdigest().encode() == blob if blob.strip(b"0") else not text


def write_tree_with(git: Git, tree: str, files: Mapping[str, str | None]) -> str:
    """Return the id of a tree in which some files have other texts; None takes a file away."""
    texts = {path: text for path, text in files.items() if text is not None}
    modes = _find_modes(git, tree, texts)
    with make_scratch_folder() as folder:
        places = [folder / f"{number}.txt" for number in range(len(texts))]
        for place, text in zip(places, texts.values(), strict=True):
            place.write_bytes(encode_file(text))
        named = "".join(f"{place}\n" for place in places).encode()
        blobs = git.call("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=named).split()
    lines = [
        modes.get(path, _REGULAR) + b" " + blob + b"\t" + os.fsencode(path)
        for path, blob in zip(texts, blobs, strict=True)
    ]
    lines += [_GONE + b" " + b"0" * len(tree) + b"\t" + os.fsencode(each) for each in files.keys() - texts]
    return write_tree_with_entries(git, tree, lines)


def write_tree_with_entries(git: Git, tree: str, lines: Iterable[bytes]) -> str:
    """Return the id of a tree in which some entries are others: each a mode, an id and a path."""
    told = tuple(lines)
    known = git.find_entries(tree)
    entries = _replace_entries(known, told) if known is not None else None
    if entries is not None:
        return git.write_entries(entries)
    with make_scratch_folder() as folder:
        env = make_git_with_tree(git.call, git.source, tree, folder / "git", git.root)
        git.call("update-index", "-z", "--index-info", env=env, stdin=b"\0".join(told) + b"\0")
        return git.call("write-tree", "--missing-ok", env=env).decode().strip()


def _replace_entries(
    known: tuple[IndexEntry, ...], lines: tuple[bytes, ...]
) -> tuple[IndexEntry, ...] | None:
    """Return the files of a tree with other entries, sorted; None where git has to say what gives way."""
    found = {entry.path: entry for entry in known}
    for line in lines:
        head, _, path = line.partition(b"\t")
        mode, blob = head.split(b" ")
        if mode == _GONE:
            found.pop(path, None)
        else:
            found[path] = IndexEntry(path, int(mode, 8), bytes.fromhex(blob.decode()))
    return tuple(sorted(found.values())) if list_folders(found).isdisjoint(found) else None


def _find_modes(git: Git, tree: str, paths: Iterable[str]) -> dict[str, bytes]:
    """Return the modes of the executable files of a tree."""
    known = git.find_entries(tree)
    if known is not None:
        return {os.fsdecode(each.path): _EXECUTABLE for each in known if b"%o" % each.mode == _EXECUTABLE}
    literal = {"GIT_LITERAL_PATHSPECS": "1"}
    raw = git.call("ls-tree", "-z", tree, "--", *paths, env=literal) if paths else b""
    entries = (line.partition(b"\t") for line in raw.split(b"\0") if line)
    found = {os.fsdecode(path): head.split(b" ")[0] for head, _, path in entries}
    return {path: mode for path, mode in found.items() if mode == _EXECUTABLE}


def _describe_entry(git: Git, entry: EntryChange, split: TreeSplit) -> bytes | None:
    """Return what the index has to be told about a path; None where it stays as it is."""
    path = os.fsdecode(entry.path)
    if split.belongs(path):
        mode = entry.modes[1] if entry.modes[1].strip(b"0") else _GONE
        return mode + b" " + entry.blobs[1] + b"\t" + entry.path
    if not split.is_shared(path) or not _are_files(entry):
        return None
    first, second = (_read_text(git, *each) for each in zip(entry.modes, entry.blobs, strict=True))
    mixed = second.encode(split.mix(path, second.text, first.text))
    blob = git.call("hash-object", "-w", "--stdin", stdin=mixed)
    return _REGULAR + b" " + blob.strip() + b"\t" + entry.path


def _are_files(entry: EntryChange) -> bool:
    """Return whether both are plain files or absent; a link in place of settings is no mixture."""
    return all(mode in (_REGULAR, _EXECUTABLE) or not mode.strip(b"0") for mode in entry.modes)


def _read_text(git: Git, mode: bytes, blob: bytes) -> FileText:
    return decode_file(git.call("cat-file", "blob", blob.decode()) if mode.strip(b"0") else b"")
