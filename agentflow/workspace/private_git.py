"""A private git directory: our own settings and index, and nothing of the repository but its objects.

The rules and the index that the repository had at first are frozen: nobody can change them later.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from agentflow.core.record import Record
from agentflow.sandbox.scratch import scratch_folder
from agentflow.workspace.index_file import IndexEntry, read_index, write_index

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
    """What the tree is made from, beside the files."""

    hash: str
    """The name of the hash that object ids are made with."""
    index: Path
    objects: Path
    exclude: Path
    attributes: Path
    kept: Path
    """Where we may keep something that git leaves alone."""


def make_private_git(root: Path, source: GitSource, folder: Path) -> dict[str, str]:
    """Make a git folder, of an empty one if it is there; return the variables that lead git to it."""
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
    """Make a git folder as `secluded` does, whose index holds a tree; return its variables."""
    env = make_unfiltered_git(source, folder, work)
    call("read-tree", tree, env=env)
    return env


def use_own_objects(source: GitSource) -> dict[str, str]:
    """Return the variables by which git adds to objects of our own and reads the repository's too."""
    # in quotes, or else a colon in the name ends it
    quoted = '"{}"'.format(str(source.objects).replace("\\", "\\\\").replace('"', '\\"'))
    return {OBJECTS: str(source.kept / "objects"), "GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted}


def hide_home(folder: Path) -> dict[str, str]:
    """Return the variables by which git reads no file of the user's home, but what we kept of it."""
    return {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "user"), "GIT_CONFIG_NOSYSTEM": "1"}


class FrozenRules(Record):
    """What a repository and its user say, before any file was looked at."""

    files: Mapping[str, bytes]
    """The user's ignore rules and attributes, by where a git folder of our own has them."""
    index: bytes
    """The paths of the repository's index; empty when there is none."""
    entries: tuple[IndexEntry, ...] | None = None
    """The same as files, sorted; None where only git can tell."""


class FrozenStart:
    """What all trees of one repository begin with, read when the first of them is made."""

    def __init__(self, root: Path, source: GitSource) -> None:
        self.root = root
        self.source = source
        self._found: FrozenRules | None = None

    def found(self, call: GitCall) -> FrozenRules:
        """Return what the repository and its user said at first."""
        if self._found is None:
            self._found = self._read(call)
        return self._found

    def _read(self, call: GitCall) -> FrozenRules:
        with scratch_folder() as folder:
            env = make_private_git(self.root, self.source, folder)
            files = {
                "info/exclude": _content(self.source.exclude),
                "info/attributes": _content(self.source.attributes),
                **_of_user(call, self.root, env),
            }
            raw = _content(self.source.index)
            entries = read_index(raw, self.source.hash)
            if entries:
                return FrozenRules(files=files, index=write_index(entries, self.source.hash), entries=entries)
            if raw:
                _rebuild(call, self.source.index, folder, {**env, **hide_home(folder)})
            return FrozenRules(files=files, index=_content(folder / "index"))


class FrozenIndex(Record):
    """What the first tree of a kind was made with, which every later one is made with too."""

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
    index = folder / "index"
    call("update-index", *_REFRESH, env={**env, **hide_home(folder)})
    return FrozenIndex(files=files, index=index.read_bytes(), index_time=index.stat().st_mtime_ns)


def write_rules(found: FrozenRules, folder: Path, attributes: bytes) -> dict[str, bytes]:
    """Leave what was found in a git folder of our own; return the files of it that are rules."""
    files = {**found.files, "info/attributes": found.files["info/attributes"] + attributes}
    _lay(files, folder)
    if found.index:
        (folder / "index").write_bytes(found.index)
    return files


def write_frozen(start: FrozenIndex, folder: Path) -> None:
    """Leave what the first tree was made with in another git folder of our own."""
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


def _rebuild(call: GitCall, theirs: Path, folder: Path, env: Mapping[str, str]) -> None:
    """Make an index with the paths of the user's, in which no content is known before git read the file.

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


def _lay(files: Mapping[str, bytes], folder: Path) -> None:
    for name, content in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""
