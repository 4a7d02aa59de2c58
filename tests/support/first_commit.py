"""A git repository and its first commit, written as git writes them; to start git costs more."""

import functools
import hashlib
import os
import stat
import subprocess
import tempfile
import time
import zlib
from pathlib import Path
from struct import pack

_RULES = frozenset({".gitignore", ".gitattributes", ".gitmodules"})
"""Files that say which others git adds, and as what."""
_FOLDERS = ("", "hooks", "info", "objects", "objects/info", "objects/pack", "refs", "refs/heads", "refs/tags")
_WHO = "t <t@localhost>"
_NANO = 10**9
Files = dict[bytes, tuple[int, bytes]]
"""The mode and the object of each path."""


def make_repository(root: Path, branch: str = "") -> None:
    """Do as `git init` does, without sample hooks; the branch is the usual one unless it is named."""
    git = root / ".git"
    if git.exists():
        return
    for name in _FOLDERS:
        (git / name).mkdir()
    for name, content in _usual_files().items():
        (git / name).write_bytes(content)
    if branch:
        (git / "HEAD").write_text(f"ref: refs/heads/{branch}\n")


def commit_first(root: Path) -> bool:
    """Commit all files of a new repository; false, with nothing done, where only git knows what it adds."""
    git = root / ".git"
    if not git.is_dir():
        return False
    head = git / (git / "HEAD").read_text().removeprefix("ref: ").strip()
    found = _list_files(root) if _is_usual(git) and not head.exists() else None
    if found is None:
        return False
    names = {path: _store(git, b"blob", _read(root / os.fsdecode(path))) for path in sorted(found)}
    tree = _store_tree(git, {path: (_mode(found[path]), name) for path, name in names.items()})
    when = f"{_WHO} {int(time.time())} +0000"
    text = f"tree {tree.hex()}\nauthor {when}\ncommitter {when}\n\nstate\n"
    index = pack(">4sLL", b"DIRC", 2, len(names))
    index += b"".join(_to_entry(path, found[path], name) for path, name in names.items())
    (git / "index").write_bytes(index + hashlib.sha1(index).digest())
    head.write_text(f"{_store(git, b'commit', text.encode()).hex()}\n")
    return True


@functools.cache
def _usual_files() -> dict[str, bytes]:
    """Return the files that git begins with on this machine."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "init", "-q", "--template=", folder], check=True)
        found = {path.name: path.read_bytes() for path in Path(folder, ".git").iterdir() if path.is_file()}
    return {**found, "info/exclude": b"# what git leaves out\n"}


def _is_usual(git: Path) -> bool:
    """Return whether nothing was staged, set or hooked since the repository was made here."""
    usual = {name: content for name, content in _usual_files().items() if name != "HEAD"}
    is_same = all((git / name).is_file() and (git / name).read_bytes() == usual[name] for name in usual)
    more = [git / name for name in ("index", "info/attributes") if (git / name).exists()]
    return is_same and not [*more, *git.glob("hooks/*")]


def _list_files(root: Path) -> dict[bytes, os.stat_result] | None:
    """Return what git would add; None where files decide about that, or where it is no plain file."""
    found: dict[bytes, os.stat_result] = {}
    for top, folders, names in os.walk(root):
        if top == str(root):
            folders.remove(".git")
        if ".git" in (*folders, *names) or not _RULES.isdisjoint(names):
            return None
        for name in (*names, *folders):
            path = Path(top, name)
            status = path.lstat()
            if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                found[os.fsencode(path.relative_to(root))] = status
            elif not stat.S_ISDIR(status.st_mode):
                return None
    return found


def _read(path: Path) -> bytes:
    return os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()


def _mode(status: os.stat_result) -> int:
    if stat.S_ISLNK(status.st_mode):
        return 0o120000
    return 0o100755 if status.st_mode & stat.S_IXUSR else 0o100644


def _store(git: Path, kind: bytes, content: bytes) -> bytes:
    """Keep an object, and return its name."""
    whole = b"%s %d\0%s" % (kind, len(content), content)
    name = hashlib.sha1(whole)
    place = git / "objects" / name.hexdigest()[:2] / name.hexdigest()[2:]
    if not place.exists():
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(zlib.compress(whole, 1))
        place.chmod(0o444)
    return name.digest()


def _store_tree(git: Path, files: Files) -> bytes:
    """Keep the tree of a folder and all below it, and return its name."""
    below: dict[bytes, Files] = {}
    rows: list[tuple[bytes, bytes]] = []
    for path, (mode, name) in files.items():
        first, slash, rest = path.partition(b"/")
        if slash:
            below.setdefault(first, {})[rest] = (mode, name)
        else:
            rows.append((first, b"%o %s\0%s" % (mode, first, name)))
    for folder, inside in below.items():
        rows.append((folder + b"/", b"40000 %s\0%s" % (folder, _store_tree(git, inside))))
    return _store(git, b"tree", b"".join(row for _, row in sorted(rows)))


def _to_entry(path: bytes, status: os.stat_result, name: bytes) -> bytes:
    """Return a file's entry of the index, with what tells git that it is unchanged."""
    times = (*divmod(status.st_ctime_ns, _NANO), *divmod(status.st_mtime_ns, _NANO))
    numbers = (status.st_dev, status.st_ino, _mode(status), status.st_uid, status.st_gid, status.st_size)
    head = pack(">10L", *(number & 0xFFFFFFFF for number in (*times, *numbers)))
    whole = head + name + min(len(path), 0xFFF).to_bytes(2) + path
    return whole + bytes(8 - len(whole) % 8)
