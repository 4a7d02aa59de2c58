"""Ignored files: marks that show their changes, those worth keeping, and our block in an ignore file."""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from agentflow.core.finding import Finding, FindingKind
from agentflow.core.languages import gather
from agentflow.frontmatter import write_atomic
from agentflow.redact import spell_bytes
from agentflow.sandbox.profile import CACHES, SHARED
from agentflow.workspace.git import Git

_ROOM = 128_000_000
"""Bytes of contents that are read each time; what remains is read the next times."""


class _Known(NamedTuple):
    """A file, all fields as text."""

    now: str
    """What the kernel says of it."""
    first: str
    """What it said when the file came to have this content."""
    digest: str
    """Empty where nobody read it yet."""


class KnownContents:
    """The files of the last look, in a file beside those that undo needs, which no command can write."""

    def __init__(self, kept: Path) -> None:
        self._place = kept / "contents"
        words = os.fsdecode(self._place.read_bytes()).split("\0") if self._place.is_file() else []
        found = zip(*[iter(words)] * 4, strict=False)  # the last word is empty
        self._before = {path: _Known(*rest) for path, *rest in found}

    def stamp(self, root: Path, found: Mapping[str, os.stat_result]) -> Iterator[tuple[str, str]]:
        """Yield each path with what was said of it when it came to have the content that it has now."""
        now = {path: self._look(root / path, path, said) for path, said in found.items()}
        room = _ROOM
        waiting = (path for path, known in now.items() if not known.digest)
        for path in sorted(waiting, key=lambda path: (found[path].st_nlink < 2, found[path].st_size)):
            size = found[path].st_size
            if room > 0 and (size <= room or found[path].st_nlink > 1):
                now[path] = now[path]._replace(digest=digest_file(root / path, found[path]))
                room -= size
        self._save(now)
        yield from ((path, known.first) for path, known in now.items())

    def _look(self, place: Path, path: str, said: os.stat_result) -> _Known:
        here, before = _describe(said), self._before.get(path)
        if before is None or before.now == here:
            return before or _Known(here, here, "")
        is_alike = before.first.split()[:2] == here.split()[:2]
        digest = digest_file(place, said) if before.digest and is_alike else ""
        return _Known(here, before.first if digest and digest == before.digest else here, digest)

    def _save(self, now: Mapping[str, _Known]) -> None:
        if now == self._before:
            return
        with suppress(OSError):  # the next time looks at all of them again
            self._place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            words = (f"{word}\0" for path, known in now.items() for word in (path, *known))
            write_atomic(self._place, os.fsencode("".join(words)))


def _describe(said: os.stat_result) -> str:
    return f"{said.st_mode} {said.st_size} {said.st_mtime_ns} {said.st_ctime_ns}"


def digest_file(place: Path, said: os.stat_result) -> str:
    """Return a digest of what a file or link holds; empty unless it is the one of which that was said."""
    try:
        if stat.S_ISLNK(said.st_mode):
            return hashlib.sha256(os.fsencode(place.readlink())).hexdigest()
        with os.fdopen(os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return ""
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return digest if _describe(os.fstat(file.fileno())) == _describe(said) else ""
    except OSError:
        return ""


_SITE = "site-packages"
_MADE = frozenset({*CACHES, *SHARED, "dist", "build", *gather(lambda each: each.made)})
"""Folders whose content a tool can recreate."""
_MOST_FILES, _MOST_BYTES, _MOST_BYTES_IN_ALL = 1_000, 8 << 20, 32 << 20


def list_precious(root: Path, entries: Iterable[str]) -> Iterator[str]:
    """Yield ignored files that no tool recreates, single ones before those in folders, within bounds."""
    count = size = 0
    for path in _find_lasting(root, sorted(entries, key=lambda entry: entry.endswith("/"))):
        place = root / path
        bytes_here = place.lstat().st_size
        if bytes_here > _MOST_BYTES or not (
            place.is_symlink() or (place.is_file() and os.access(place, os.R_OK))
        ):
            continue
        count, size = count + 1, size + bytes_here
        if count > _MOST_FILES or size > _MOST_BYTES_IN_ALL:
            return
        yield path


def _find_lasting(root: Path, entries: Iterable[str]) -> Iterator[str]:
    for entry in entries:
        if not entry.endswith("/"):
            yield entry
        elif _MADE.isdisjoint(PurePosixPath(entry).parts):
            for folder, names, files in os.walk(root / entry):
                names[:] = sorted(name for name in names if name not in _MADE)
                yield from (os.path.relpath(f"{folder}/{name}", root) for name in sorted(files))


def is_package_folder(entry: str) -> bool:
    """Return whether an ignored entry is a folder of installed packages."""
    return entry.endswith("/") and PurePosixPath(entry).name in SHARED


def mark_ignored(git: Git, entries: Iterable[str]) -> dict[str, str]:
    """Return a mark for each ignored entry, and for each package, script and start-up file that is installed.

    A mark holds the sizes and times of files as the kernel keeps them; setting a time back does not hide a
    change, for the time of that is kept too. Where the content is known to be the same, an older word of the
    kernel counts. Compiled code is left out.
    """
    found = {path: (entry, said) for entry in entries for path, said in _find_files(git.root, entry)}
    marks: dict[str, hashlib._Hash] = {}
    stamps = KnownContents(git.source.kept).stamp(git.root, {path: said for path, (_, said) in found.items()})
    for path, stamp in sorted(stamps):
        entry = found[path][0]
        owner = _owner(entry, path) if is_package_folder(entry) else entry
        line = f"{path} {stamp}\n".encode("utf-8", "surrogateescape")
        marks.setdefault(owner, hashlib.sha256()).update(line)
    return {_to_text(owner): mark.hexdigest()[:16] for owner, mark in marks.items()}


def list_unchanged(
    entries: Iterable[str], before: Mapping[str, str], now: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the unchanged entries, and every environment, whose changes `list_program_changes` names."""
    return tuple(
        entry
        for entry in entries
        if is_package_folder(entry) or (name := _to_text(entry)) in before.keys() & now.keys()
        if is_package_folder(entry) or before[name] == now[name]
    )


def list_unseen(entries: Iterable[str], before: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """Return the entries that copies lack because they are new or changed, without caches."""
    named = [entry for entry in entries if CACHES.isdisjoint(PurePosixPath(entry).parts)]
    seen = set(list_unchanged(named, before, now))
    return tuple(_to_text(entry) for entry in named if entry not in seen)


def list_program_changes(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[Finding, ...]:
    """Return what was installed, removed or changed where programs of checks lie."""
    before, now = (
        {path: mark for path, mark in marks.items() if _in_environment(path)} for marks in (before, now)
    )
    ends = dict.fromkeys(before.keys() - now.keys(), FindingKind.PROGRAM_GONE)
    ends |= dict.fromkeys(now.keys() - before.keys(), FindingKind.PROGRAM_NEW)
    both = before.keys() & now.keys()
    ends |= {path: FindingKind.PROGRAM_CHANGED for path in both if before[path] != now[path]}
    return tuple(ends[path].of(path=path) for path in sorted(ends))


def _in_environment(path: str) -> bool:
    return not set(PurePosixPath(path).parts[:-1]).isdisjoint(SHARED)


def _to_text(path: str) -> str:
    """Return a path that can be written down, whatever its bytes."""
    return spell_bytes(path.encode("utf-8", "surrogateescape"))


def _find_files(root: Path, entry: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the file of an entry, or all below a folder, however deep, with what the kernel says of each."""
    if not entry.endswith("/"):
        if os.path.lexists(root / entry):
            yield entry, (root / entry).lstat()
        return
    folders = [(str(root / entry), entry.removesuffix("/"))]
    while folders:
        folder, shown = folders.pop()
        with os.scandir(folder) as entries:
            for each in entries:
                path = f"{shown}/{each.name}"
                if not each.is_dir(follow_symlinks=False):
                    yield path, each.stat(follow_symlinks=False)
                elif each.name not in CACHES:
                    folders.append((each.path, path))


def _owner(entry: str, path: str) -> str:
    """Return the package, script or start-up file of an environment that a path belongs to."""
    parts = path.removeprefix(entry).split("/")
    if _SITE in parts:
        depth = parts.index(_SITE) + 2
    else:
        depth = 2 if parts[0] in ("bin", "Scripts") or parts[0].startswith("@") else 1
    return entry + "/".join(parts[:depth])


START = "# >>> agentflow managed >>>"
END = "# <<< agentflow managed <<<"
PATTERNS = (".claude/agentflow/", ".claude/*.local.*")
OPT_OUT = "AGENTFLOW_NO_GITIGNORE"


def insert_block(text: str) -> str:
    """Return an ignore file's text with our block in it, once, and everything else as it was.

    A block without its end, or an end without a start, is left alone: somebody else's lines may follow.
    """
    starts, ends = text.count(START), text.count(END)
    newline = "\r\n" if "\r\n" in text else "\n"
    block = newline.join((START, *PATTERNS, END))
    if starts == ends == 0:
        gap = "" if not text or text.endswith("\n") else newline
        return f"{text}{gap}{block}{newline}"
    if starts != 1 or ends != 1 or text.index(START) > text.index(END):
        return text
    before, rest = text.split(START)
    return before + block + rest.split(END)[1]


def write_shared_block(git: Git) -> str:
    """Write our block to the repository's .gitignore and return the result in a word."""
    shared = git.root / ".gitignore"
    if os.environ.get(OPT_OUT):
        return "off"
    if shared.is_symlink() or (shared.exists() and not shared.is_file()):
        return "link"
    before = _text(shared) if shared.is_file() else ""
    after = insert_block(before)
    if after != before:
        mode = shared.stat().st_mode & 0o777 if shared.exists() else 0o644
        write_atomic(shared, after.encode("utf-8", "surrogateescape"), mode=mode)
        return "written"
    is_whole = before.count(START) == before.count(END) == 1 and before.index(START) < before.index(END)
    return "has_block" if is_whole else "damaged"


def keep_out_of_git(git: Git) -> None:
    """Write our block to git's own exclude file, unless the repository's .gitignore has it."""
    if os.environ.get(OPT_OUT):
        return
    shared = git.root / ".gitignore"
    if shared.is_file() and START in _text(shared):
        return
    exclude = git.exclude
    if exclude.parent.is_symlink() or not any(
        exclude.parent.resolve().is_relative_to(folder) for folder in git.folders
    ):
        return  # a link leads there; what it belongs to is not ours
    before = _text(exclude) if exclude.is_file() else ""
    after = insert_block(before)
    if after != before:
        exclude.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(exclude, after.encode("utf-8", "surrogateescape"), mode=0o644)


def _text(path: Path) -> str:
    """Return a file's text with its line ends, whatever its bytes."""
    return path.read_bytes().decode("utf-8", "surrogateescape")


def is_ignore_file(path: str) -> bool:
    """Return whether a file says what git does not look at."""
    return PurePosixPath(path).name == ".gitignore"
