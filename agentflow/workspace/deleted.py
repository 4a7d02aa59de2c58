"""The files of a repository together with those that a change deleted."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO

from agentflow.core.errors import InvalidInput, StateError
from agentflow.core.ports import Workspace
from agentflow.core.record import Record
from agentflow.workspace.git import Git


class WithDeleted(Record):
    """A workspace in which a file that is gone reads as it was before the change."""

    now: Workspace
    git: Git
    before: str
    """The tree before the change."""

    @property
    def root(self) -> Path:
        return self.now.root

    def read(self, path: str) -> bytes:
        try:
            return self.now.read(path)
        except InvalidInput:
            spelled = self.now.relative(path)
            try:
                return self.git.call("cat-file", "blob", f"{self.before}:{spelled}")
            except StateError:
                pass  # it was not there before either
            raise

    def open(self, path: str) -> AbstractContextManager[IO[bytes]]:
        return self.now.open(path)

    def peek(self, name: str) -> bytes | None:
        return self.now.peek(name)

    def write(self, name: str, content: bytes) -> None:
        self.now.write(name, content)

    def relative(self, path: str) -> str:
        return self.now.relative(path)

    def files(self, below: str = ".") -> tuple[str, ...]:
        return self.now.files(below)
