"""Commands that run beside a role, each on a layer that is thrown away, all in one network of their own."""

from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread

from agentflow.core.errors import AgentflowError, InvalidInput, NotAllowed
from agentflow.core.evidence import Command, describe_end
from agentflow.core.ports import Runner
from agentflow.process import Program
from agentflow.sandbox.confine import hold_network
from agentflow.sandbox.profile import Level

MOST = 5
"""Commands at once."""
_BEGIN_SECONDS = 1.0
"""What is printed and what fails at once is told with the start."""
_END_SECONDS = 10.0
_PAGE = 16_000


class BackgroundCommands:
    """Those of one run. Each is run by a thread of its own: a sandbox ends with the thread that starts it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._network: Program | None = None
        self._shells: dict[str, _Shell] = {}

    def start(self, runner: Runner, command: Command, sink: Path) -> str:
        """Start a command and return its name. Raises NotAllowed where nothing could end it for certain."""
        if runner.level != Level.FULL:
            raise NotAllowed(
                "a command runs in the background only in the full sandbox, which ends it for certain"
            )
        with self._lock:
            if sum(shell.thread.is_alive() for shell in self._shells.values()) >= MOST:
                raise NotAllowed(f"{MOST} commands run in the background already: end one with KillShell")
            try:
                self._network = self._network or hold_network()
            except OSError as error:
                raise NotAllowed(f"no command can run in the background: {error.strerror}") from None
            name = f"bash_{len(self._shells) + 1}"
            shared = runner.share_network(self._network.process.pid, discards=True)
            self._shells[name] = _Shell(shared, command, sink)
        self._shells[name].thread.join(_BEGIN_SECONDS)
        return name

    def share(self, runner: Runner) -> Runner:
        """Return the runner whose commands reach what the others listen on."""
        if self._network is None or runner.level != Level.FULL:
            return runner
        return runner.share_network(self._network.process.pid, discards=False)

    def read(self, name: str) -> tuple[str, str]:
        """Return what a command printed since it was last read, and how it stands."""
        with self._lock:
            return self._find(name).read()

    def end(self, name: str) -> None:
        self._find(name).end()

    def close(self) -> None:
        with self._lock:
            for shell in self._shells.values():
                shell.stopped.set()
            for shell in self._shells.values():
                shell.end()
            if self._network is not None:
                self._network.end(0)
                self._network = None

    def _find(self, name: str) -> "_Shell":
        if name not in self._shells:
            known = ", ".join(self._shells) or "none; they end with the run"
            raise InvalidInput(f"there is no background command {name}; there are: {known}")
        return self._shells[name]


class _Shell:
    def __init__(self, runner: Runner, command: Command, sink: Path) -> None:
        self.stopped = Event()
        self.thread = Thread(target=self._run, args=(runner, command, sink), daemon=True)
        self._sink, self._read, self._ended = sink, 0, ""
        self.thread.start()

    def _run(self, runner: Runner, command: Command, sink: Path) -> None:
        try:
            finished = runner.run(command, sink, self.stopped.is_set)
            self._ended = "was stopped" if self.stopped.is_set() else f"has ended, {describe_end(finished)}"
        except (OSError, AgentflowError) as error:
            self._ended = f"could not be started: {error}"

    def read(self) -> tuple[str, str]:
        """Return the next of its output, and whether it runs."""
        state, chunk = "runs" if self.thread.is_alive() else self._ended, b""
        with suppress(OSError), self._sink.open("rb") as file:
            file.seek(self._read)
            chunk = file.read(_PAGE)
            left = file.seek(0, 2) - self._read - len(chunk)
            state += f"; {left} more bytes" if left else ""
        self._read += len(chunk)
        return chunk.decode("utf-8", "replace"), state

    def end(self) -> None:
        self.stopped.set()
        self.thread.join(_END_SECONDS)
