"""The rules and the index that a repository had at first, read once so that nobody can change them later."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from agentflow.core.record import Record
from agentflow.workspace.apart import Call, Source, alone

SKIPPED = b"S "
_USER = (("core.excludesFile", "ignore"), ("core.attributesFile", "attributes"))
_REFRESH = ("-q", "--unmerged", "--ignore-missing", "--ignore-submodules", "--refresh")


class Start(Record):
    """What the first tree was made with, which every later one is made with too."""

    files: Mapping[str, bytes]
    """The user's ignore rules and attributes, by where a git folder of our own has them."""
    index: bytes
    """Empty when the repository has none."""
    index_time: int
    """By which git knows the files that are too young to be trusted."""


def started(call: Call, source: Source, folder: Path, env: Mapping[str, str], attributes: bytes) -> Start:
    """Read the user's rules and index once into a git folder of our own; `attributes` are the last word."""
    root = Path(env["GIT_WORK_TREE"])
    known = _content(source.attributes) + attributes
    files = {"info/exclude": _content(source.exclude), "info/attributes": known}
    for key, name in _USER:
        usual = os.path.expanduser(f"~/.config/git/{name}")  # noqa: PTH111 - a machine may have no home
        said = call("config", "--type=path", f"--default={usual}", "--get", key, env=env)
        files[f"user/git/{name}"] = _content(root / os.fsdecode(said.removesuffix(b"\n")))
    _lay(files, folder)
    index = folder / "index"
    if source.index.exists():
        _rebuild(call, source.index, folder, {**env, **alone(folder)})
    if not index.exists():
        return Start(files=files, index=b"", index_time=0)
    return Start(files=files, index=index.read_bytes(), index_time=index.stat().st_mtime_ns)


def _rebuild(call: Call, theirs: Path, folder: Path, env: Mapping[str, str]) -> None:
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
    call("update-index", *_REFRESH, env=env)
    call("write-tree", "--missing-ok", env=env)  # the index then keeps the ids of folders


def _lay(files: Mapping[str, bytes], folder: Path) -> None:
    for name, content in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def lay(start: Start, folder: Path) -> None:
    """Leave what the first tree was made with in another git folder of our own."""
    _lay(start.files, folder)
    if start.index:
        index = folder / "index"
        index.write_bytes(start.index)
        os.utime(index, ns=(start.index_time, start.index_time))


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""
