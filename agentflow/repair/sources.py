"""The repository as it was before any attempt: which files there are, and what the production code says."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from agentflow.core.errors import ModelRejected
from agentflow.core.record import Record
from agentflow.repair.target import ADVICE
from agentflow.workspace.git import ChangeKind, Git, open_repository

GENERATED = (".py", ".so", ".pyd")
"""Kinds of ignored file beside tracked code that the code may need to be imported."""
_TEST_FOLDERS = frozenset({"test", "tests", "testing", "fixtures", "testdata", "docs", "examples"})
_TEST_FILES = frozenset({"conftest.py", "setup.py", "noxfile.py", "tasks.py", "fabfile.py"})
_LARGEST = 400_000


class Sources(Record):
    """The code that may be edited, and the files around it that it needs to run."""

    root: Path
    files: tuple[str, ...]
    """Everything a copy has to hold."""
    overlay: Mapping[str, bytes]
    """Files that an earlier attempt changed, as they were before it."""

    def read(self, path: str) -> bytes:
        """Return a file as it was before any attempt."""
        return self.overlay[path] if path in self.overlay else (self.root / path).read_bytes()

    @property
    def digest(self) -> str:
        """What the Python files say, as one word."""
        total = hashlib.sha256()
        for path in self.files:
            if path.endswith(".py") and (self.root / path).is_file():
                total.update(os.fsencode(path) + b"\0" + hashlib.sha256(self.read(path)).digest())
        return total.hexdigest()


def read_sources(root: Path, base: str | None) -> Sources:
    """Return the sources as they were in a tree. Raises ModelRejected when a file cannot be taken back."""
    git = open_repository(root)
    listed = git.call("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    files = {os.fsdecode(name) for name in listed.split(b"\0") if name and not name.startswith(b".claude/")}
    overlay = _overlay(git, base) if base else {}
    return Sources(root=root, files=tuple(sorted(files | _generated(root, files))), overlay=overlay)


def _overlay(git: Git, base: str) -> dict[str, bytes]:
    """Return the files that changed since a tree, as they were in it."""
    now, overlay = git.tree(), {}
    for change in git.changes(base, now):
        if change.kind is not ChangeKind.MODIFIED:
            continue
        kept = git.texts((f"{base}:{change.path}", f"{now}:{change.path}"), _LARGEST)
        if not kept or (git.root / change.path).read_bytes() != kept[1].encode():  # such as other line ends
            raise ModelRejected(f"the change so far in {change.path} cannot be taken back", hint=ADVICE)
        overlay[change.path] = kept[0].encode()
    return overlay


def is_production(path: str) -> bool:
    """Say whether a file is code under test, and not a part of what judges it."""
    place = PurePosixPath(path)
    if place.suffix != ".py" or _TEST_FOLDERS & {part.lower() for part in place.parts[:-1]}:
        return False
    return (
        place.name not in _TEST_FILES
        and not place.stem.startswith("test_")
        and not place.stem.endswith("_test")
    )


def is_editable(sources: Sources, path: str) -> bool:
    """Say whether a file can be edited: listed, no link, of a sane size."""
    place = sources.root / path
    listed = path in sources.files and place.is_file() and not place.is_symlink()
    return listed and is_production(path) and place.stat().st_size <= _LARGEST


def _generated(root: Path, files: set[str]) -> set[str]:
    """Return ignored modules beside tracked ones, such as a generated version file."""
    found = set()
    for folder in {str(PurePosixPath(name).parent) for name in files if name.endswith(".py")}:
        for entry in os.scandir(root / folder) if (root / folder).is_dir() else ():
            if entry.name.endswith(GENERATED) and entry.is_file():
                found.add(str(PurePosixPath(folder) / entry.name))
    return found
