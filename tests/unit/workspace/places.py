"""A git repository of a test, made without any configuration of this machine's user."""

import os
import subprocess
from pathlib import Path

from agentflow.workspace.git import Git, open_repository
from tests.support.first_commit import commit_first, make_repository

IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgSign=false")


class Place:
    """A repository with one commit: `src/a.py` and `README.md`."""

    def __init__(self, root: Path, *, bare_start: bool = False) -> None:
        self.root = root
        self.marker = root.parent / f"{root.name}-marker"
        root.mkdir(parents=True)
        make_repository(root, "main")
        if not bare_start:
            self.write("src/a.py", "x = 1\n")
            self.write("README.md", "# r\n")
            self.commit()

    def git(self, *words: str) -> str:
        return subprocess.run(
            ("git", *IDENTITY, *words),
            cwd=self.root,
            check=True,
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"], "HOME": str(self.root.parent)},
        ).stdout

    def write(self, path: str, text: str | bytes) -> Path:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text if isinstance(text, bytes) else text.encode())
        return place

    def commit(self) -> None:
        if not commit_first(self.root):
            self.git("add", "-A")
            self.git("commit", "-q", "--allow-empty", "-m", "state")

    def plant(self, config: str) -> None:
        """Append to the repository's own configuration."""
        with (self.root / ".git/config").open("a") as file:
            file.write(f"{config}\n")

    def trap(self, then: str = "cat") -> Path:
        """Return a program that leaves a mark when it is run."""
        place = self.root.parent / f"{self.root.name}-trap.sh"
        place.write_text(f'#!/bin/sh\necho ran >>"{self.marker}"\n{then}\n')
        place.chmod(0o755)
        return place

    @property
    def trapped(self) -> bool:
        return self.marker.exists()

    def open(self) -> Git:
        return open_repository(self.root)

    def tree(self) -> str:
        return self.open().write_tree()

    def frozen(self) -> dict[str, bytes]:
        """Return the bytes of everything of git's that is the user's, objects left out."""
        git = self.root / ".git"
        return {
            path.relative_to(git).as_posix(): path.read_bytes()
            for path in git.rglob("*")
            if path.is_file() and "objects" not in path.parts
        }
