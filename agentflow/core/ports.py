"""The protocols through which the layers meet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from agentflow.core.events import Event
    from agentflow.core.evidence import By, Command, Evidence, Execution, ProgramOutput
    from agentflow.core.messages import Reply, Request
    from agentflow.core.role import Role
    from agentflow.core.run import RunEntry
    from agentflow.core.tool import Tool


class Model(Protocol):
    """Anything that can fill a role's turn."""

    @property
    def name(self) -> str:
        """The model's name for `--model`."""

    def explain_refusal(self, task: str) -> str | None:
        """Return why this model cannot do a task of this text, or None; costs no request."""

    async def complete(self, request: Request) -> Reply:
        """Return one complete turn; raise ModelError when there is none."""


class Workspace(Protocol):
    """The repository as the file tools see it; paths are relative to its root or absolute below it.

    Every method raises OutsideWorkspace for a path that leads elsewhere.
    """

    @property
    def root(self) -> Path: ...

    def read(self, path: str) -> bytes:
        """Return a file's bytes; raise InvalidInput when there is no such regular file."""

    def open(self, path: str) -> AbstractContextManager[IO[bytes]]:
        """Yield a regular file of any size."""

    def peek(self, name: str) -> bytes | None:
        """Return the bytes of a listed file, or None for a file that searches skip."""

    def write(self, name: str, content: bytes) -> None:
        """Replace or create the file with a name that `to_relative` returned, keeping its mode."""

    def to_relative(self, path: str) -> str:
        """Return the path relative to the root, as git spells it."""

    def list_files(self, below: str = ".") -> tuple[str, ...]:
        """Return all files that git does not ignore, relative to the root, sorted."""


class Watch(Protocol):
    """Separates the files that only hooks change from those of the task."""

    def watch_hooks(self) -> AbstractContextManager[None]:
        """Count changes made meanwhile as the hooks'."""

    def watch_role(self) -> AbstractContextManager[None]:
        """Count changes made meanwhile as the role's, even while hooks run."""

    def list_files(self) -> dict[str, str]:
        """Return the files that only hooks have changed so far, each with a fingerprint."""


class Runner(Protocol):
    """Runs commands with the rights of one caller."""

    @property
    def level(self) -> str:
        """The sandbox level: `full`, `partial` or `none`."""

    @property
    def is_sealed(self) -> bool:
        """Return whether nothing that a command does stays in the repository or leaves the sandbox."""

    def run(self, command: Command, sink: Path, cancelled: Callable[[], bool]) -> Execution:
        """Run a command to its end, its output going to `sink`."""

    def share_network(self, holder: int, *, discards: bool) -> Runner:
        """Return the runner whose commands share the network of a process; `discards`: no write lasts."""

    def exchange(
        self, command: Command, given: bytes, readable: Iterable[Path], cancelled: Callable[[], bool]
    ) -> ProgramOutput:
        """Run a program on an input and return its answer; it can only read, and always has a sandbox."""


class Background(Protocol):
    """The commands that a run has beside itself; they share one network, and all end with it."""

    def start(self, runner: Runner, command: Command, sink: Path) -> str:
        """Start a command, its output going to `sink`, and return its name; raise NotAllowed if it cannot."""

    def share(self, runner: Runner) -> Runner:
        """Return the runner whose commands reach what the others listen on."""

    def read(self, name: str) -> tuple[str, str]:
        """Return what a command printed since it was last read, and how it stands; raise InvalidInput."""

    def end(self, name: str) -> None:
        """End a command with all that it started; raise InvalidInput for none of that name."""

    def close(self) -> None:
        """End all commands."""


class ToolSource(Protocol):
    """Provides tools that are known only after their server was asked."""

    def keep_open(self) -> AbstractAsyncContextManager[None]:
        """Keep the servers running, so that tools can be opened and called."""

    async def open_tools(self, role: Role) -> tuple[Tool, ...]:
        """Return the tools that a role's list names."""


class Ledger(Protocol):
    """The evidence of a task."""

    def record(self, execution: Execution, *, role: str | None, iteration: int, by: By) -> Evidence:
        """Save a command's result as evidence; its output file is moved, not copied."""

    def find(self, evidence_id: str) -> Evidence | None:
        """Return one record, or None when there is none of that id."""


class Journal(Protocol):
    """The file of one run."""

    def append(self, entry: RunEntry) -> None:
        """Write one entry, so that it survives the process."""


class Observer(Protocol):
    """Anything that receives events."""

    def __call__(self, event: Event, /) -> None: ...
