"""A git folder of our own, which shares nothing with the repository but its objects."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from agentflow.core.record import Record

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


class Call(Protocol):
    """Run git at the root and return what it printed."""

    def __call__(
        self, *arguments: str, env: Mapping[str, str] | None = None, stdin: bytes = b""
    ) -> bytes: ...


class Source(Record):
    """What the tree is made from, beside the files."""

    hash: str
    """The name of the hash that object ids are made with."""
    index: Path
    objects: Path
    exclude: Path
    attributes: Path
    kept: Path
    """Where we may keep something that git leaves alone."""


def cast(root: Path, source: Source, folder: Path) -> dict[str, str]:
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


def own_objects(source: Source) -> dict[str, str]:
    """Return the variables by which git adds to objects of our own and reads the repository's too."""
    # in quotes, or else a colon in the name ends it
    quoted = '"{}"'.format(str(source.objects).replace("\\", "\\\\").replace('"', '\\"'))
    return {OBJECTS: str(source.kept / "objects"), "GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted}


def alone(folder: Path) -> dict[str, str]:
    """Return the variables by which git reads no file of the user's home, but what we kept of it."""
    return {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "user"), "GIT_CONFIG_NOSYSTEM": "1"}


def secluded(source: Source, folder: Path, work: Path) -> dict[str, str]:
    """Make a git folder that obeys no settings and no filters, for files at `work`; return its variables."""
    env = cast(work, source, folder) | alone(folder)
    (folder / "info").mkdir()
    (folder / "info/attributes").write_bytes(AS_TEXT)
    return env


def indexed(call: Call, source: Source, tree: str, folder: Path, work: Path) -> dict[str, str]:
    """Make a git folder as `secluded` does, whose index holds a tree; return its variables."""
    env = secluded(source, folder, work)
    call("read-tree", tree, env=env)
    return env
