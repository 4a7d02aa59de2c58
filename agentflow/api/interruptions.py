"""What ends the work on a task from outside: a signal, or the pause that a person asks for."""

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from signal import SIGHUP, SIGINT, Signals
from typing import Any

import anyio
from anyio.abc import TaskStatus

from agentflow.core.errors import Exit
from agentflow.core.events import StoredEvent, ToolFinished, ToolStarted


class PauseSwitch:
    """Pauses a task once no tool call runs; a request that is cut off is sent again."""

    def __init__(self, tell: Callable[[], None]) -> None:
        """Set the function that tells the person that the pause is coming."""
        self.is_asked = False
        self._tell = tell
        self._scope: anyio.CancelScope | None = None
        self._calls: set[tuple[int, str]] = set()
        """The calls that run."""

    def arm(self, scope: anyio.CancelScope) -> None:
        """Set the work that the next pause ends."""
        self.is_asked, self._scope, self._calls = False, scope, set()

    def ask(self) -> bool:
        """Ask for a pause; return False for the second time, which means: stop now."""
        if self.is_asked:
            return False
        self.is_asked = True
        self._tell()
        self._pause()
        return True

    def __call__(self, stamped: StoredEvent) -> None:
        """Take an event of the task, and end the work once no call runs, if a pause is asked for."""
        match stamped.event:
            case ToolStarted() as event:
                self._calls.add((event.run, event.call_id))
            case ToolFinished() as event:
                self._calls.discard((event.run, event.call_id))
                self._pause()
            case _:
                pass

    def _pause(self) -> None:
        if self.is_asked and not self._calls and self._scope is not None:
            self._scope.cancel()


class SignalWatch:
    """Ends the work at a signal; where a task can be paused, the first Ctrl-C does only that."""

    def __init__(self, signals: Mapping[Signals, Exit], pauses: PauseSwitch | None) -> None:
        self._signals = {
            number: code
            for number, code in signals.items()
            if number is not SIGHUP or signal.getsignal(number) is not signal.SIG_IGN  # nohup ignores it
        }
        self._pauses = pauses
        self.caught: Exit | None = None
        self.is_paused = False
        """True if the work ended because somebody paused it."""

    def end(self, *, is_over: bool) -> None:
        """Note how the work ended: a pause that came too late is none."""
        is_asked = self._pauses is not None and self._pauses.is_asked
        self.is_paused = is_asked and not is_over and self.caught is None

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Let a signal just before the work end it, and one just after it not cut off its end.

        Ctrl-C still does; and once a signal has ended the work, the process is on its way out.
        """
        before = self._note_signals()
        try:
            yield
        finally:
            for number, previous in before.items() if self.caught is None else ():
                signal.signal(number, previous)

    def _note_signals(self) -> dict[Signals, Any]:

        def note(number: int, _frame: object) -> None:
            self.caught = self.caught or self._signals[Signals(number)]

        return {number: signal.signal(number, note) for number in self._signals if number is not SIGINT}

    async def receive(self, scope: anyio.CancelScope, *, task_status: TaskStatus[None]) -> None:
        """Cancel the work at a signal; commands that run are killed on the way out."""
        if self._pauses is not None:
            self._pauses.arm(scope)
        if not self._signals:
            task_status.started()
            return
        try:
            with anyio.open_signal_receiver(*self._signals) as received:
                task_status.started()
                if self.caught is not None:
                    scope.cancel()
                async for number in received:
                    if number is SIGINT and self._pauses is not None and self._pauses.ask():
                        continue
                    self.caught = self._signals[number]
                    scope.cancel()
        finally:
            self._note_signals()  # the receiver has put the default in place, which ends the process
