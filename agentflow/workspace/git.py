"""The repository through the git binary, every program its configuration could name switched off."""

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from agentflow.core.errors import ConfigError, StateError
from agentflow.core.file_text import UTF8, decode_file, find_declared_encoding
from agentflow.core.record import Record
from agentflow.process import capture
from agentflow.redact import spell_bytes
from agentflow.sandbox.throwaway import make_scratch_folder
from agentflow.workspace.changes import ChangeKind, EntryChange, FileChange, compare_entries
from agentflow.workspace.private_git import (
    AS_IT_IS,
    FrozenStart,
    GitSource,
    IndexEntry,
    make_git_with_tree,
    make_unfiltered_git,
    parse_entry,
    use_own_objects,
    write_index,
)
from agentflow.workspace.tree import TreeWriter, is_ours

_QUIET = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.trustctime=true",
    "core.checkStat=default",
    "core.quotePath=false",
    "protocol.ext.allow=never",
    "safe.bareRepository=explicit",
    "submodule.recurse=false",
)
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",  # a missing object is an error, not a reason to start what a remote names
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",  # else a ref can show one object in the place of another
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
_COMMITS = ("HEAD", "packed-refs", "shallow")
_PLACES = ("index", "objects", "info/exclude", "info/attributes", "agentflow", "refs", *_COMMITS)
_WHERE = (
    *("--show-toplevel", "--show-object-format", "--absolute-git-dir", "--git-common-dir"),
    *(word for place in _PLACES for word in ("--git-path", place)),
    *("--revs-only", "HEAD^{tree}"),
)
_MOST_TEXT = 8_000_000
"""Bytes of files that are kept in mind."""
_ID = re.compile("[0-9a-f]{40,64}")
_SEEN = re.compile(rb"([^\0]+)\0  ctime: (\d+):(\d+)\n  mtime: (\d+):(\d+)\n  dev: \d+\tino: (\d+)\n.*\n.*\n")
"""A file in the index as `ls-files --debug` shows it."""
_NOT_OWN = (
    "if it is this folder's own: `git worktree repair` where it is a linked work tree, "
    "else `git config core.worktree {}`"
)
_DIFF = ("-r", "--patch", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames")


class KnownTexts:
    """A cache of file texts, by object id or `TREE:PATH`, which always name the same text."""

    def __init__(self) -> None:
        self._texts: dict[str, tuple[int, str]] = {}
        self._bytes = 0

    def find(self, name: str, limit: int) -> str | None:
        """Return the text, nothing where it has more bytes than the limit, or None where it is not known."""
        if not name.strip("0"):
            return ""
        size, text = self._texts.get(name, (None, ""))
        if size is None:
            return None
        return text if size <= limit else ""

    def add(self, read: Mapping[str, tuple[int | None, str]]) -> None:
        """Keep what was read; above the limit everything is dropped."""
        for name, (size, text) in read.items():
            if size is not None and (text or not size):
                self._texts[name] = (size, text)
                self._bytes += size
        if self._bytes > _MOST_TEXT:
            self._texts.clear()
            self._bytes = 0


class Git(Record):
    """A repository: its root, and the options that every call of git gets."""

    root: Path
    options: tuple[str, ...]
    source: GitSource
    trees: TreeWriter
    exact: TreeWriter
    """The same byte for byte, and with objects of our own."""
    exclude: Path
    """Where git keeps ignore rules that are not part of the files; may be a link."""
    read: KnownTexts
    """What was read of its files lately."""
    head: str | None = None
    """The tree of the newest commit as the repository was opened; None where there is no commit."""
    folders: tuple[Path, ...] = ()
    """Where git keeps its files: what is this work tree's alone, and what it shares with others."""
    within: tuple[str, ...] = ()
    """The words before `git` that mount the layer in which its files can be seen."""
    cancelled: Callable[[], bool] = lambda: False
    """Says whether git is to be killed, as its caller was cancelled."""

    def call(self, *arguments: str, env: Mapping[str, str] | None = None, stdin: bytes = b"") -> bytes:
        """Run git and return what it printed. Raises StateError with its message."""
        finished = capture(
            (*self.within, "git", *self.options, *arguments),
            cwd=self.root,
            env={**_ENVIRONMENT, **(env or {})},
            stdin=stdin,
            timeout=300,
            cancelled=self.cancelled,
        )
        if finished.returncode:
            said = finished.stderr.decode("utf-8", "replace").strip().splitlines()
            raise StateError(f"git {arguments[0]} failed: {said[0] if said else finished.returncode}")
        return finished.stdout

    def switch_to_copy(self, root: Path, shown: Iterable[str]) -> "Git":
        """Return the repository with the files of a copy, under the same rules and among the same objects.

        What of the repository itself is shown there is no part of the copy.
        """
        origin = self.trees.origin.to_copy(self.call, root, shown)
        trees = TreeWriter(origin)
        exact = TreeWriter(origin, AS_IT_IS, use_own_objects(self.source), trees)
        return self.replace(root=root, trees=trees, exact=exact, head=None)

    def write_tree(self) -> str:
        """Return the id of the tree of all non-ignored files as they are on disk now.

        The user's index and refs stay as they are: a temporary index does the work. What they, the ignore
        rules and the attributes outside of the tree say later than at the first call does not count, so
        that nobody who changes them hides a file or its content. Repositories inside
        count with their files, as if they were folders: by the ignore files in them, not by their index.
        Encodings that .gitattributes declares are converted, as in a commit; line ends and ids stay as they
        are, for the checks have to see what is on disk.
        """
        return self.trees.write(self.call)

    def is_committed(self) -> bool:
        """Return whether the tree of the files as they are now is found to be that of the newest commit."""
        return self.head is not None and self.trees.are_committed(self.call, self.head)

    def list_ignored(self) -> tuple[str, ...]:
        """Return what git ignores now, by the rules of `tree`; a folder it ignores whole has a slash."""
        return self.trees.list_ignored(self.call)

    def list_tracked_settings(self) -> tuple[bytes, ...]:
        """Return the `.env` files of the repository's index as it was at first."""
        entries = self.trees.origin.freeze(self.call).entries
        if entries is None:
            return tuple(self.call("ls-files", "-z", "--", ":(glob)**/.env*").split(b"\0"))
        return tuple(path for path, *_ in entries if path.rpartition(b"/")[2].startswith(b".env"))

    def list_changes(self, before: str, after: str) -> tuple[FileChange, ...]:
        """Return the paths that differ between two trees, sorted."""
        return tuple(
            FileChange(kind=each.kind, path=spell_bytes(each.path)) for each in self.compare(before, after)
        )

    def compare(self, before: str, after: str) -> tuple[EntryChange, ...]:
        if before == after:
            return ()
        first, second = self.find_entries(before), self.find_entries(after)
        if first is None or second is None:
            return _read_changes(self, before, after)
        return tuple(compare_entries(first, second, b"0" * len(before)))

    def find_entries(self, tree: str) -> tuple[IndexEntry, ...] | None:
        """Return the files of a tree that was seen or made lately, sorted."""
        return self.trees.find_entries(tree) or self.exact.find_entries(tree)

    def write_entries(self, entries: tuple[IndexEntry, ...]) -> str:
        """Return the id of the tree that sorted files make, whose objects are there."""
        with make_scratch_folder() as folder:
            env = make_unfiltered_git(self.source, folder / "git", self.root)
            Path(env["GIT_INDEX_FILE"]).write_bytes(write_index(entries, self.source.hash))
            written = self.call("write-tree", "--missing-ok", env=env).decode().strip()
        self.trees.remember(written, entries)
        return written

    def leave_out_absent(self, tree: str) -> str:
        """Return the id of a tree without what a sparse checkout keeps off the disk."""
        absent = self.trees.origin.freeze(self.call).absent
        return _leave_out(self, tree, absent) if absent else tree

    def has_tree(self, tree: str) -> bool:
        try:
            self.call("cat-file", "-e", f"{tree}^{{tree}}")
        except StateError:
            return False
        return True

    def list_paths(self, tree: str) -> tuple[str, ...]:
        return _paths(self, self.leave_out_absent(tree))

    def read_texts(self, objects: Iterable[str], limit: int) -> tuple[str, ...]:
        """Return the texts of files, by id or `TREE:PATH`; empty for one with more bytes than the limit."""
        wanted = tuple(name for name in objects if "\n" not in name)
        missing = tuple(name for name in dict.fromkeys(wanted) if self.read.find(name, limit) is None)
        fresh = dict(zip(missing, self._read_batch(missing, limit), strict=True)) if missing else {}
        found = tuple(
            fresh[name][1] if name in fresh else self.read.find(name, limit) or "" for name in wanted
        )
        self.read.add(fresh)
        return found

    def read_files(self, tree: str, paths: Iterable[str], limit: int) -> dict[str, str]:
        """Return the texts of files of a tree by path; none for a name that git cannot be asked for."""
        names = [path for path in paths if "\n" not in path]
        texts = self.read_texts([f"{tree}:{path}" for path in names], limit)
        return {name: text.removeprefix("\ufeff") for name, text in zip(names, texts, strict=True)}

    def _read_batch(self, names: tuple[str, ...], limit: int) -> Iterator[tuple[int | None, str]]:
        """Yield how many bytes each file has, unless there is none, and its text within the limit."""
        asked = b"".join(os.fsencode(name) + b"\n" for name in names)
        raw, place = self.call("cat-file", "--batch", stdin=asked), 0
        while place < len(raw):
            begin = raw.index(b"\n", place) + 1
            said = raw[place : begin - 1].rpartition(b" ")[2]
            size = int(said) if said.isdigit() else None
            yield size, _to_text(raw[begin : begin + (size or 0)]) if (size or 0) <= limit else ""
            place = begin + size + 1 if size is not None else begin

    def find_mentions(self, tree: str, words: Iterable[str]) -> tuple[str, ...]:
        """Return the paths of the files of a tree that contain one of the words as a whole word."""
        options = ("--no-color", "--no-recurse-submodules", "-alzwF", "-f", "-")
        seen = self.leave_out_absent(tree)
        command = (*self.within, "git", *self.options, "grep", *options, seen)
        patterns = os.fsencode("\n".join(words))
        finished = capture(command, cwd=self.root, env=_ENVIRONMENT, stdin=patterns, timeout=300)
        if finished.returncode > 1:
            raise StateError(f"git grep failed: {finished.stderr.decode('utf-8', 'replace').strip()}")
        return tuple(os.fsdecode(path).partition(":")[2] for path in finished.stdout.split(b"\0") if path)

    def make_diff(self, before: str, after: str, *paths: str) -> str:
        """Return the unified diff between two trees, by id; bytes that are no UTF-8 are escaped."""
        if before == after:
            return ""
        return _diff(self, before, after, paths)

    def apply_patch(self, tree: str, patch: bytes) -> str:
        """Return the id of the tree that a patch makes of another; nothing is kept. Raises StateError."""
        with make_scratch_folder() as folder:
            env = make_git_with_tree(self.call, self.source, tree, folder / "git", self.root)
            (folder / "objects").mkdir()
            env |= use_own_objects(self.source.replace(kept=folder))
            self.call("apply", "--cached", "--whitespace=nowarn", "-", env=env, stdin=patch)
            return self.call("write-tree", env=env).decode().strip()

    def drop_ignored(self, changes: Iterable[str]) -> tuple[FileChange, ...]:
        """Return the changes, each given as A, M or D and a path, to files that git does not ignore."""
        found = sorted(changes)
        paths = "\0".join(change[2:] for change in found)
        words = ("git", *self.options, "check-ignore", "-z", "--stdin")
        said = capture(words, cwd=self.root, env=_ENVIRONMENT, stdin=os.fsencode(paths)) if found else None
        ignored = {os.fsdecode(path) for path in said.stdout.split(b"\0")} if said else set()
        return tuple(
            FileChange(kind=ChangeKind(change[0]), path=change[2:])
            for change in found
            if change[2:] not in ignored and not is_ours(os.fsencode(change[2:]))
        )


# a tree never changes, and a task asks the same of a few of them at every turn


@lru_cache(maxsize=8)
def _read_changes(git: Git, before: str, after: str) -> tuple[EntryChange, ...]:
    words = git.call("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", before, after).split(
        b"\0"
    )
    told = ((head[1:].split(b" "), path) for head, path in zip(words[::2], words[1::2], strict=False))
    return tuple(
        EntryChange(kind=ChangeKind(kind.decode()), path=path, modes=(old, new), blobs=(blob, other))
        for (old, new, blob, other, kind), path in told
    )


@lru_cache(maxsize=8)
def _leave_out(git: Git, tree: str, absent: frozenset[IndexEntry]) -> str:
    entries = git.find_entries(tree)
    if entries is None:
        raw = git.call("ls-tree", "-r", "-z", "--full-tree", tree)
        listed = (line.partition(b"\t") for line in raw.split(b"\0") if line)
        entries = tuple(sorted(parse_entry(head, path) for head, _, path in listed))
    return git.write_entries(tuple(each for each in entries if each._replace(is_skipped=True) not in absent))


@lru_cache(maxsize=4)
def _paths(git: Git, tree: str) -> tuple[str, ...]:
    known = git.find_entries(tree)
    if known:
        return tuple(os.fsdecode(b"\0".join(entry.path for entry in known)).split("\0"))
    raw = git.call("ls-tree", "-r", "-z", "--name-only", "--full-tree", tree)
    return tuple(filter(None, os.fsdecode(raw).split("\0")))


@lru_cache(maxsize=2)
def _diff(git: Git, before: str, after: str, paths: tuple[str, ...]) -> str:
    with make_scratch_folder() as folder:  # a .gitattributes could hide what changed
        env = make_unfiltered_git(git.source, folder / "git", git.root) | {"GIT_LITERAL_PATHSPECS": "1"}
        return spell_bytes(git.call("diff-tree", *_DIFF, before, after, "--", *paths, env=env))


def open_repository(start: Path) -> Git:
    """Return the repository that a folder lies in. Raises ConfigError when there is none."""
    if not start.is_dir():
        raise ConfigError(f"{start} is not a folder")
    if shutil.which("git") is None:
        raise ConfigError("git is not installed", hint="agentflow needs git 2.30 or newer")
    options = tuple(word for option in _QUIET for word in ("-c", option))
    finished = capture(("git", *options, "rev-parse", *_WHERE), cwd=start, env=_ENVIRONMENT)
    if finished.returncode:
        said = finished.stderr.decode("utf-8", "replace").strip()
        if "not a git repository" in said:
            raise ConfigError(f"{start} is not in a git repository", hint="run git init first")
        if "bare repository" in said:
            raise ConfigError(f"{start} is in a bare repository or in .git", hint="go to where its files are")
        raise ConfigError(f"git cannot use {start}: {said.removeprefix('fatal: ') or 'no work tree'}")
    return _to_git(start, os.fsdecode(finished.stdout).removesuffix("\n").split("\n"), options)


def _to_git(start: Path, said: list[str], options: tuple[str, ...]) -> Git:
    """Return the repository that git tells of."""
    head = said.pop() if _ID.fullmatch(said[-1]) else None
    if len(said) != 4 + len(_PLACES):
        raise ConfigError(f"the folder of the repository of {start} has a line break in its name")
    root = Path(said[0]).resolve()
    if str(root) != str(root).encode("utf-8", "replace").decode():
        raise ConfigError(
            f"the folder {spell_bytes(os.fsencode(root))} has a name that is not UTF-8", hint="rename it"
        )
    if not (start.resolve().is_relative_to(root) and (root / ".git").exists()):
        raise ConfigError(f"git keeps the files of {start} in {root}", hint="unset core.worktree")
    folder, common = Path(said[2]).resolve(), (start / said[3]).resolve()
    if not _is_own(root, folder, common, options):
        raise ConfigError(
            f"{root / '.git'} leads to {folder}, which does not lead back", hint=_NOT_OWN.format(root)
        )
    places = dict(zip(("index", "objects", "exclude", "attributes", "kept", "refs"), said[4:], strict=False))
    source = GitSource(
        hash=said[1],
        commits=tuple(start.absolute() / place for place in said[-len(_COMMITS) :]),
        **{name: (start / place).resolve() for name, place in places.items()},
    )
    named = start.absolute() / said[4 + _PLACES.index("info/exclude")]
    _require_no_link(start.absolute() / said[4 + _PLACES.index("agentflow")])
    origin = FrozenStart(root, source)
    trees = TreeWriter(origin)
    return Git(
        root=root,
        options=options,
        source=source,
        trees=trees,
        exact=TreeWriter(origin, AS_IT_IS, use_own_objects(source), trees),
        exclude=named,
        read=KnownTexts(),
        head=head,
        folders=tuple(dict.fromkeys((folder, common))),
    )


def _is_own(root: Path, folder: Path, common: Path, options: tuple[str, ...]) -> bool:
    """Return whether the folder that git uses for a work tree is that work tree's own, by its content.

    What the work tree says is not enough: it may be an archive that names a repository of the user.
    """
    if folder == common == root / ".git":
        return True
    if folder != common:
        return folder.parent == common / "worktrees" and _leads_back(folder, root)
    asked = ("git", *options, "config", "--show-scope", "--get-all", "core.worktree")
    said = capture(asked, cwd=root, env=_ENVIRONMENT).stdout.splitlines()
    if any(line.startswith((b"local\t", b"worktree\t")) for line in said):
        return True  # git found the root by it
    return folder.name != ".git" and _has_seen(root, folder, options)


def _leads_back(folder: Path, root: Path) -> bool:
    """Return whether the folder of a linked work tree names this one."""
    try:
        named = folder / os.fsdecode((folder / "gitdir").read_bytes().rstrip())
    except OSError:
        return False
    return named.name == ".git" and named.parent.resolve() == root


def _has_seen(root: Path, folder: Path, options: tuple[str, ...]) -> bool:
    """Return whether a folder without a word about its work tree has a file of this one in its index.

    The number and times of a file on disk are nothing that an archive could bring. A folder in which nothing
    was ever added has no index, and nothing to show.
    """
    if not (folder / "index").exists():
        has_objects = any((folder / "objects").glob("[0-9a-f][0-9a-f]"))
        return not has_objects and not (folder / "packed-refs").exists()
    listed = capture(("git", *options, "ls-files", "--debug", "-z"), cwd=root, env=_ENVIRONMENT).stdout
    return any(_is_seen(root, entry) for entry in _SEEN.finditer(listed))


def _is_seen(root: Path, entry: re.Match[bytes]) -> bool:
    place = root / os.fsdecode(entry[1])
    try:
        found = place.lstat()
    except OSError:
        return False
    known = tuple(map(int, entry.groups()[1:]))
    at, changed = divmod(found.st_ctime_ns, 10**9), divmod(found.st_mtime_ns, 10**9)
    is_linked = place.parent.resolve() != place.parent or found.st_nlink > 1
    return not is_linked and known == (*at, *changed, found.st_ino & 0xFFFFFFFF)


def _require_no_link(kept: Path) -> None:
    """Refuse a folder for what we keep that leads elsewhere. Raises ConfigError."""
    for place in (kept, kept / "objects", kept / "objects/pack"):
        if place.is_symlink():
            hint = "remove the link; what undo needs would be written where the link leads"
            raise ConfigError(
                f"{place} is a link; agentflow keeps its state there and follows no links", hint=hint
            )


def _to_text(content: bytes) -> str:
    """Return what a file holds; bytes that are no letters in UTF-8, or in what it names, are escaped."""
    found = decode_file(content)
    is_sure = found.encoding in (UTF8, find_declared_encoding(found.text)) and not found.is_broken
    return found.mark.decode() + found.text if is_sure else spell_bytes(content)
