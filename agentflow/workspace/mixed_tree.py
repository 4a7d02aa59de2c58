"""Trees put together from two, and what differs between two."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha1, sha256

from agentflow.core.record import Record
from agentflow.sandbox.throwaway import scratch_folder
from agentflow.workspace.git import Git
from agentflow.workspace.private_git import make_git_with_tree

_GONE = b"0"
_SHA1_CHARS = 40
_REGULAR = b"100644"
_EXECUTABLE = b"100755"


class TreeSplit(Record):
    """Which of two trees a path is taken from."""

    belongs: Callable[[str], bool]
    """Whether a path is taken from the second tree as a whole."""
    is_shared: Callable[[str], bool]
    """Whether it has parts of both."""
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
    """Whether the texts are the files, byte for byte."""


class _ChangedEntry(Record):
    path: bytes
    mode: bytes
    blob: bytes
    other_mode: bytes
    """Of the second tree."""
    other_blob: bytes


def mix_trees(git: Git, first: str, second: str, split: TreeSplit) -> str:
    """Return the id of a tree with the files of the first, but those that belong from the second."""
    entries = list(_find_differing(git, first, second))
    lines = [line for entry in entries if (line := _describe_entry(git, entry, split))]
    if not lines:
        return first
    with scratch_folder() as folder:
        env = make_git_with_tree(git.call, git.source, first, folder / "git", git.root)
        git.call("update-index", "-z", "--index-info", env=env, stdin=b"\0".join(lines) + b"\0")
        return git.call("write-tree", env=env).decode().strip()


@lru_cache(maxsize=2)  # trees never change, and each step of judging asks
def read_changed_texts(git: Git, before: str, after: str, limit: int) -> tuple[ChangedTexts, ...]:
    """Return the files that differ, as text that can be written down; of one over the limit there is none."""
    entries = tuple(_find_differing(git, before, after))
    names = [blob.decode() for entry in entries for blob in (entry.blob, entry.other_blob)]
    found = git.texts(names, limit)
    return tuple(
        ChangedTexts(
            path=entry.path.decode("utf-8", "backslashreplace"),
            before=old,
            after=new,
            modes=(entry.mode.decode(), entry.other_mode.decode()),
            is_whole=_is_file(old, entry.blob) and _is_file(new, entry.other_blob),
        )
        for entry, old, new in zip(entries, found[::2], found[1::2], strict=True)
    )


def _is_file(text: str, blob: bytes) -> bool:
    """Tell whether a text is what a blob holds; an absent file holds the empty text."""
    content = text.encode()
    digest = sha1 if len(blob) == _SHA1_CHARS else sha256
    found = digest(b"blob %d\0" % len(content) + content, usedforsecurity=False)
    return found.hexdigest().encode() == blob if blob.strip(b"0") else not text


def write_tree_with(git: Git, tree: str, files: Mapping[str, str | None]) -> str:
    """Return the id of a tree in which some files have other texts; None takes a file away."""
    texts = {path: text for path, text in files.items() if text is not None}
    modes = _find_modes(git, tree, texts)
    with scratch_folder() as folder:
        places = [folder / f"{number}.txt" for number in range(len(texts))]
        for place, text in zip(places, texts.values(), strict=True):
            place.write_bytes(text.encode("utf-8", "surrogateescape"))
        named = "".join(f"{place}\n" for place in places).encode()
        blobs = git.call("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=named).split()
        lines = [
            modes.get(path, _REGULAR) + b" " + blob + b"\t" + os.fsencode(path)
            for path, blob in zip(texts, blobs, strict=True)
        ]
        lines += [
            _GONE + b" " + b"0" * len(tree) + b"\t" + os.fsencode(each) for each in files.keys() - texts
        ]
        env = make_git_with_tree(git.call, git.source, tree, folder / "git", git.root)
        git.call("update-index", "-z", "--index-info", env=env, stdin=b"\0".join(lines) + b"\0")
        return git.call("write-tree", env=env).decode().strip()


def _find_modes(git: Git, tree: str, paths: Iterable[str]) -> dict[str, bytes]:
    """Return the modes of files of a tree, of those that are plain files."""
    literal = {"GIT_LITERAL_PATHSPECS": "1"}
    raw = git.call("ls-tree", "-z", tree, "--", *paths, env=literal) if paths else b""
    entries = (line.partition(b"\t") for line in raw.split(b"\0") if line)
    found = {os.fsdecode(path): head.split(b" ")[0] for head, _, path in entries}
    return {path: mode for path, mode in found.items() if mode == _EXECUTABLE}


def _find_differing(git: Git, first: str, second: str) -> Iterator[_ChangedEntry]:
    raw = git.call("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", first, second)
    words = raw.split(b"\0")
    for head, path in zip(words[::2], words[1::2], strict=False):
        mode, other_mode, blob, other_blob, _ = head.removeprefix(b":").split(b" ")
        yield _ChangedEntry(path=path, mode=mode, blob=blob, other_mode=other_mode, other_blob=other_blob)


def _describe_entry(git: Git, entry: _ChangedEntry, split: TreeSplit) -> bytes | None:
    """Return what the index has to be told about a path; None where it stays as it is."""
    path = os.fsdecode(entry.path)
    if split.belongs(path):
        mode = entry.other_mode if entry.other_mode.strip(b"0") else _GONE
        return mode + b" " + entry.other_blob + b"\t" + entry.path
    if not split.is_shared(path) or not _are_files(entry):
        return None
    text = split.mix(
        path, _read_text(git, entry.other_mode, entry.other_blob), _read_text(git, entry.mode, entry.blob)
    )
    blob = git.call("hash-object", "-w", "--stdin", stdin=text.encode("utf-8", "surrogateescape"))
    return _REGULAR + b" " + blob.strip() + b"\t" + entry.path


def _are_files(entry: _ChangedEntry) -> bool:
    """Return whether both are plain files or absent; a link in place of settings is no mixture."""
    return all(
        mode in (_REGULAR, _EXECUTABLE) or not mode.strip(b"0") for mode in (entry.mode, entry.other_mode)
    )


def _read_text(git: Git, mode: bytes, blob: bytes) -> str:
    return _read_raw(git, mode, blob).decode("utf-8", "surrogateescape")


def _read_raw(git: Git, mode: bytes, blob: bytes) -> bytes:
    return git.call("cat-file", "blob", blob.decode()) if mode.strip(b"0") else b""
