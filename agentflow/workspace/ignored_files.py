"""Ignored files: marks that show their changes, those worth keeping, and our block in an ignore file."""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from agentflow.core.finding import Finding, FindingKind
from agentflow.core.languages import gather
from agentflow.frontmatter import write_atomic
from agentflow.redact import spell_bytes
from agentflow.sandbox.profile import CACHES, SHARED
from agentflow.workspace.git import Git
from agentflow.workspace.known_contents import KnownContents

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
