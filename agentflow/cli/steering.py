"""Steers the running task of a session: messages, pauses and decisions of the person."""

import os
import select
import sys
import threading
from collections.abc import Callable

from agentflow.api.decisions import send_message
from agentflow.api.session import PauseSwitch
from agentflow.cli.line_editor import LineEditor, WorkPrompt
from agentflow.cli.printing import show
from agentflow.cli.prompts import StandingApprovals, settle
from agentflow.core.errors import AgentflowError
from agentflow.core.events import PersonSaid, StoredEvent
from agentflow.redact import to_one_line
from agentflow.store.tasks import TaskStore
from agentflow.view.board import Board
from agentflow.view.region import Painter
from agentflow.view.text import Medium, Span, Style, line, send, span
from agentflow.workspace.git import Git

_LOOK_SECONDS = 0.2
_PAUSING = "pausing after the running call; Ctrl-C again stops now"
_STOPS = frozenset({"s", "stop", "/stop", "/quit"})


class Steering:
    """Follows the tasks of one session and keeps typed lines for later."""

    def __init__(self, git: Git, editor: LineEditor) -> None:
        self._git = git
        self._editor = editor
        self._store: TaskStore | None = None
        self._screen: WorkPrompt | _LineReader | None = None
        self._queued: list[str] = []
        """The messages that no role has read yet."""
        self._later: list[str] = []
        """Commands that run when the task has ended."""
        self.approvals = StandingApprovals(None if editor.plain else editor.edit)
        self.pauses = PauseSwitch(self._tell_pause)

    def open_screen(self, store: TaskStore, medium: Medium) -> "WorkPrompt | _LineReader":
        """Show a task at work, and listen to the person."""
        self._store, self._queued = store, []
        store.observers.append(self._note)
        if medium.live and not self._editor.plain:
            self._screen = self._editor.open_work(Painter(medium, store.folder / "outputs"), self._take)
        else:
            self._screen = _LineReader(self._take)
        self._screen.open()
        return self._screen

    def ask(self, store: TaskStore) -> bool:
        """Ask what a task waits for, or how it goes on after a pause; False leaves it as it is."""
        screen = self._screen
        assert screen is not None
        screen.close()
        goes_on = settle(store, self.approvals) if store.task.pending else self._ask_how_to_go_on(screen)
        if goes_on:
            screen.open(screen.typed)
        return goes_on

    def take_left(self) -> tuple[list[str], str]:
        """Return the commands still to run, and the text for the input line."""
        later, self._later = self._later, []
        typed = self._screen.typed if self._screen is not None else ""
        left = "\n".join((*self._queued, *([typed] if typed.strip() else [])))
        self._queued, self._screen = [], None
        return later, left

    def _ask_how_to_go_on(self, screen: "WorkPrompt | _LineReader") -> bool:
        _say(
            span("‖ ", Style.WARN),
            span("Paused. ", Style.BOLD),
            "Type a correction; Enter continues, s stops.",
        )
        try:
            said = self._editor.read("paused> ", default=screen.typed).strip()
        except (EOFError, KeyboardInterrupt):
            said = "s"
        screen.typed = ""
        if said.lower() in _STOPS:
            _say("  Stopped. /resume continues from here, /undo takes the changes back.")
            return False
        if said:
            self._take(said)
        return True

    def _take(self, text: str) -> None:
        assert self._store is not None
        if text.startswith("/"):
            self._later.append(text)
        else:
            try:
                send_message(self._git, self._store.folder, text)
            except AgentflowError:
                pass  # it has just ended; the line stays for the next message
            self._queued.append(text)
        self._show_queue(text)

    def _show_queue(self, new: str = "") -> None:
        if isinstance(self._screen, WorkPrompt):
            self._screen.queued = (*self._queued, *self._later)
        elif new:
            _say(span("  » ", Style.ACCENT), f"queued: {to_one_line(new)}")

    def _note(self, stamped: StoredEvent) -> None:
        if isinstance(stamped.event, PersonSaid) and self._queued:
            self._queued.pop(0)
            self._show_queue()

    def _tell_pause(self) -> None:
        if isinstance(self._screen, WorkPrompt):
            self._screen.note = _PAUSING
        else:
            _say(span("‖ ", Style.WARN), _PAUSING)


def _say(*parts: Span | str) -> None:
    show([line(*parts)], sys.stderr)


class _LineReader:
    """Reads lines without redrawing anything; the terminal itself echoes them."""

    typed = ""

    def __init__(self, take: Callable[[str], None]) -> None:
        self._take = take
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def open(self, _: str = "") -> None:
        """Listen until it is closed."""
        self._closed.clear()
        self._thread = threading.Thread(target=self._listen, name="agentflow-input", daemon=True)
        self._thread.start()

    def show(self, _: Board, text: str) -> None:
        """Write finished lines."""
        if text:
            send(text, sys.stderr)

    def close(self) -> None:
        """Listen no longer."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join()

    def _listen(self) -> None:
        while not self._closed.is_set():
            ready, _, _ = select.select([0], [], [], _LOOK_SECONDS)
            if not ready:
                continue
            said = os.read(0, 1 << 16)
            if not said:
                return
            for row in said.decode("utf-8", "replace").splitlines():
                if row.strip():
                    self._take(row.strip())
