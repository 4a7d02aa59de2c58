"""The repository through the git binary, every program its configuration could name switched off."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from agentflow.core.errors import ConfigError, StateError
from agentflow.core.record import Record
from agentflow.process import capture

OURS = (".claude/agentflow", ".claude/*.local.*", ".claude/learnings.md")
"""Paths that are never part of a tree id or of the files changed."""
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
_ENVIRONMENT = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_LITERAL_PATHSPECS": "0"}
_DIFF = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames")


class ChangeKind(StrEnum):
    ADDED = "A"
    MODIFIED = "M"
    DELETED = "D"
    TYPE = "T"


class FileChange(Record):
    """One path that differs between two trees."""

    kind: ChangeKind
    path: str


class Git(Record):
    """A repository: its root, and the options that every call of git gets."""

    root: Path
    options: tuple[str, ...]

    def call(self, *arguments: str, env: Mapping[str, str] | None = None, stdin: bytes = b"") -> bytes:
        """Run git and return what it printed. Raises StateError with its message."""
        finished = capture(
            ("git", *self.options, *arguments),
            cwd=self.root,
            env={**_ENVIRONMENT, **(env or {})},
            stdin=stdin,
            timeout=300,
        )
        if finished.returncode:
            said = finished.stderr.decode("utf-8", "replace").strip().splitlines()
            raise StateError(f"git {arguments[0]} failed: {said[0] if said else finished.returncode}")
        return finished.stdout

    def tree(self) -> str:
        """Return the id of the tree of all non-ignored files as they are on disk now.

        The user's index and refs stay as they are: a temporary index does the work.
        """
        with tempfile.TemporaryDirectory(prefix="agentflow-") as folder:
            index = Path(folder) / "index"
            current = self.path("index")
            if current.exists():
                shutil.copyfile(current, index)
            env = {"GIT_INDEX_FILE": str(index)}
            self._unhide(env)
            self.call("add", "--all", "--", ":/", env=env)
            ours = [f":(top,glob){path}{below}" for path in OURS for below in ("", "/**")]
            self.call("rm", "-r", "-q", "-f", "--cached", "--ignore-unmatch", "--", *ours, env=env)
            return self.call("write-tree", env=env).decode().strip()

    def _unhide(self, env: Mapping[str, str]) -> None:
        """Take back index flags that make git look away from a file that is there."""
        entries = self.call("ls-files", "-v", "-z", env=env).split(b"\0")
        flagged = [entry[2:] for entry in entries if entry[:1].islower() or entry[:1] == b"S"]
        there = [path for path in flagged if (self.root / os.fsdecode(path)).exists()]
        for flag in ("--no-assume-unchanged", "--no-skip-worktree") if there else ():
            self.call("update-index", flag, "-z", "--stdin", env=env, stdin=b"\0".join(there))

    def changes(self, before: str, after: str) -> tuple[FileChange, ...]:
        """Return the paths that differ between two trees, sorted."""
        raw = self.call("diff-tree", "-r", "-z", "--name-status", "--no-renames", before, after)
        words = [os.fsdecode(word) for word in raw.split(b"\0") if word]
        pairs = zip(words[::2], words[1::2], strict=True)
        return tuple(FileChange(kind=ChangeKind(kind[0]), path=path) for kind, path in pairs)

    def diff(self, before: str, after: str) -> str:
        """Return the unified diff between two trees."""
        return self.call("diff", *_DIFF, before, after, "--").decode("utf-8", "replace")

    def path(self, name: str) -> Path:
        """Return where a file of git's own folder lies."""
        return self.root / os.fsdecode(self.call("rev-parse", "--git-path", name).rstrip(b"\n"))


def open_repository(start: Path) -> Git:
    """Return the repository that a folder lies in. Raises ConfigError when there is none."""
    if not start.is_dir():
        raise ConfigError(f"{start} is not a folder")
    if shutil.which("git") is None:
        raise ConfigError("git is not installed", hint="agentflow needs git 2.30 or newer")
    options = tuple(word for option in _QUIET for word in ("-c", option))
    finished = capture(("git", *options, "rev-parse", "--show-toplevel"), cwd=start, env=_ENVIRONMENT)
    if finished.returncode:
        said = finished.stderr.decode("utf-8", "replace").strip()
        if "not a git repository" in said:
            raise ConfigError(f"{start} is not in a git repository", hint="run git init first")
        raise ConfigError(f"git cannot use {start}: {said.removeprefix('fatal: ') or 'no work tree'}")
    root = Path(os.fsdecode(finished.stdout.rstrip(b"\n"))).resolve()
    return Git(root=root, options=(*options, *_no_filters(root, options)))


def _no_filters(root: Path, options: tuple[str, ...]) -> tuple[str, ...]:
    """Return options that switch off the filter programs of the repository's own configuration."""
    asked = ("config", "--local", "--includes", "--name-only", "--null", "--get-regexp", r"^filter\.")
    named = capture(("git", *options, *asked), cwd=root, env=_ENVIRONMENT).stdout.decode("utf-8", "replace")
    filters = sorted({key.rsplit(".", 1)[0] for key in named.split("\0") if key})
    settings = [
        f"{name}.{key}" for name in filters for key in ("clean=", "smudge=", "process=", "required=false")
    ]
    return tuple(word for setting in settings for word in ("-c", setting))
