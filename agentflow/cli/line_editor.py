"""The input line of a session, also while a task works, and what a person does to it by typing."""

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from prompt_toolkit import ANSI, PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style as PromptStyle

from agentflow.api.decisions import send_message
from agentflow.api.session import PauseSwitch
from agentflow.cli.printing import show
from agentflow.cli.prompts import StandingApprovals, settle
from agentflow.core.errors import AgentflowError
from agentflow.core.events import PersonSaid, StoredEvent
from agentflow.redact import make_visible, redact_text, to_one_line
from agentflow.settings import find_folders
from agentflow.store.tasks import TaskStore
from agentflow.view.board import Board
from agentflow.view.region import TICK, Painter
from agentflow.view.text import Medium, Span, Style, find_width, line, send, span
from agentflow.workspace.git import Git

_LOOK_SECONDS = 0.2
_PAUSING = "pausing after the running call; Ctrl-C again stops now"
_STOPS = frozenset({"s", "stop", "/stop", "/quit"})
_MOST = 50
_HISTORY = "history"
_PROMPT = "> "
_PLAN = "/plan "
_START_SECONDS = 5.0
_MOST_QUEUED = 3
_MENU_ROWS = 8
_OWN_ROWS = 3
"""Of the input line and what stands below it."""
_KEYS = " Enter queues the line · Esc or Ctrl-C pauses, twice stops "


class _Completions(Completer):
    """Commands after a slash at the beginning, files after an at sign."""

    def __init__(self, git: Git, commands: Mapping[str, str]) -> None:
        self._git = git
        self._commands = commands

    def get_completions(self, document: Document, _: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        word = before.split()[-1] if before and not before[-1].isspace() else ""
        if word.startswith("/") and word == before:
            for name, summary in self._commands.items():
                if name.startswith(word):
                    yield Completion(name, -len(word), display_meta=make_visible(summary))
        elif word.startswith("@"):
            part = word[1:]
            listed = self._git.call("ls-files", "-z", "--cached", "--others", "--exclude-standard")
            paths = [path for path in map(os.fsdecode, listed.split(b"\0")) if path]
            fitting = [path for path in paths if part.casefold() in path.casefold()]
            # those whose name begins with it first
            fitting.sort(key=lambda path: (not Path(path).name.startswith(part), path))
            for path in fitting[:_MOST]:
                yield Completion(path, -len(word), display=make_visible(path))


class _SafeHistory(FileHistory):
    """Lines that were typed, in the user's folder, without secrets."""

    def store_string(self, string: str) -> None:
        super().store_string(redact_text(string))


class LineEditor:
    """Reads a person's lines at the terminal; a plain one does without menus, colours and redrawing."""

    def __init__(self, git: Git, commands: Mapping[str, str], *, plain: bool) -> None:
        self.plain = plain
        self._completions = _Completions(git, commands)
        self._history: History = InMemoryHistory()
        with suppress(OSError):
            place = find_folders(os.environ).config.parent / _HISTORY
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            place.touch(mode=0o600)
            self._history = _SafeHistory(place)
        self._is_colourless = plain or bool(os.environ.get("NO_COLOR"))
        bindings = KeyBindings()
        bindings.add("escape", "enter")(lambda event: event.current_buffer.insert_text("\n"))
        bindings.add("s-tab")(_toggle_plan)
        self._lines = self._open(bindings)

    def _open(self, bindings: KeyBindings, *, erase: bool = False) -> PromptSession[str]:
        return PromptSession(
            history=self._history,
            completer=self._completions,
            complete_while_typing=not self.plain,
            key_bindings=bindings,
            color_depth=ColorDepth.DEPTH_1_BIT if self._is_colourless else None,
            style=PromptStyle.from_dict({"bottom-toolbar": "noreverse ansibrightblack"}),
            erase_when_done=erase,
        )

    def read(self, prompt: str = _PROMPT, *, below: str = "", default: str = "") -> str:
        """Return a line, several where they were broken by hand. Raises EOFError, KeyboardInterrupt."""
        shown = ANSI(prompt) if self.plain else self._highlight(prompt)

        def draw() -> ANSI:
            _leave_room(self._lines)
            return shown

        return self._lines.prompt(draw, bottom_toolbar=None if self.plain else below, default=default)

    def _highlight(self, prompt: str) -> ANSI:
        return ANSI(prompt if self._is_colourless else f"\x1b[1;36m{prompt}\x1b[0m")

    def edit(self, text: str) -> str:
        """Return a text as the person changed it; Esc Enter breaks the line."""
        return self._lines.prompt("edit> ", bottom_toolbar=" Enter takes it, Ctrl-C leaves it ", default=text)

    def open_work(self, painter: Painter, take: Callable[[str], None]) -> "WorkPrompt":
        """Return the input line for while a task works, below what goes on; `take` is given each line."""
        work = WorkPrompt(lambda bindings: self._open(bindings, erase=True), painter, take)
        work.prompt = self._highlight(_PROMPT).value
        return work


def _toggle_plan(event: KeyPressEvent) -> None:
    """Have the line planned first, or no longer."""
    text = event.current_buffer.text
    is_planned = text.startswith(_PLAN)
    event.current_buffer.document = Document(text.removeprefix(_PLAN) if is_planned else f"{_PLAN}{text}")


def _leave_room(session: PromptSession[str]) -> int:
    rows = os.get_terminal_size().lines
    session.reserve_space_for_menu = _MENU_ROWS if rows > 2 * _MENU_ROWS else 0
    return rows


def _interrupt() -> None:
    """Do what Ctrl-C does where the terminal does not pass it on itself."""
    os.kill(os.getpid(), signal.SIGINT)


class WorkPrompt:
    """The live region with an input line below it, run by a thread so that signals stay with the task."""

    def __init__(
        self,
        open_prompt: Callable[[KeyBindings], PromptSession[str]],
        painter: Painter,
        take: Callable[[str], None],
    ) -> None:
        self._painter = painter
        self._take = take
        self._lock = threading.Lock()
        self._board = Board()
        self._above: list[str] = []
        self._ready = threading.Event()
        self._closed = threading.Event()
        self._rows: tuple[str, ...] = ()
        self._thread: threading.Thread | None = None
        self._prompt = open_prompt(self._bind_keys())
        self._prompt.app.timeoutlen = self._prompt.app.ttimeoutlen = TICK
        self.prompt = _PROMPT
        self.queued: tuple[str, ...] = ()
        """The messages that no role has read yet."""
        self.note = ""
        """A note for the person below the region."""
        self.typed = ""
        """The text of the input line when it was closed."""

    def _bind_keys(self) -> KeyBindings:
        bindings = KeyBindings()

        @bindings.add("enter")
        def _(event: KeyPressEvent) -> None:
            text = event.current_buffer.text.strip()
            if text:
                event.current_buffer.append_to_history()
                self._take(text)
            event.current_buffer.reset()

        @bindings.add("escape")
        @bindings.add("c-c")
        def _(_: KeyPressEvent) -> None:
            _interrupt()

        @bindings.add("c-d")
        def _(event: KeyPressEvent) -> None:
            if event.current_buffer.text:
                event.current_buffer.delete()
            else:
                _interrupt()

        return bindings

    def open(self, default: str = "") -> None:
        self._ready.clear()
        self._closed = threading.Event()
        self.note = ""
        self._thread = threading.Thread(
            target=self._run, args=(default,), name="agentflow-input", daemon=True
        )
        self._thread.start()
        self._ready.wait(_START_SECONDS)
        threading.Thread(target=self._look, args=(self._closed,), daemon=True).start()

    def show(self, board: Board, text: str) -> None:
        with self._lock:
            self._board = board
            if text:
                self._above.append(text)
            is_open = self._is_open
        if not is_open:
            self._flush()
        elif text and self._prompt.app.loop is not None:
            self._prompt.app.loop.call_soon_threadsafe(run_in_terminal, self._flush)

    @property
    def _is_open(self) -> bool:
        return self._thread is not None and self._ready.is_set() and self._prompt.app.is_running

    def close(self) -> None:
        if self._thread is None:
            return
        self._closed.set()
        loop = self._prompt.app.loop
        if self._is_open and loop is not None:
            loop.call_soon_threadsafe(self._leave)
        self._thread.join(_START_SECONDS)
        self._thread = None
        self._flush()

    def _leave(self) -> None:
        self.typed = self._prompt.default_buffer.text
        if self._prompt.app.is_running and not self._prompt.app.is_done:
            self._prompt.app.exit(result="")

    def _run(self, default: str) -> None:
        try:
            self._prompt.prompt(
                self._draw,
                bottom_toolbar=_KEYS,
                default=default,
                pre_run=self._ready.set,
                handle_sigint=False,
                set_exception_handler=False,
            )
        except (EOFError, KeyboardInterrupt, OSError):
            pass  # the terminal has gone; the task goes on without it
        finally:
            self._ready.set()

    def _look(self, closed: threading.Event) -> None:
        """Have the region drawn again only where it changed; drawing costs ten times as much as looking."""
        while not closed.wait(TICK):
            rows = self._list_rows()
            if rows != self._rows:
                self._rows = rows
                self._prompt.app.invalidate()

    def _list_rows(self) -> tuple[str, ...]:
        width = find_width(sys.stdout) or 80
        rows = list(self._painter.paint(self._board, width))
        queued = self.queued[-_MOST_QUEUED:]
        rows += [f"  » queued: {to_one_line(text, max(10, width - 13))}" for text in queued]
        rows += [self.note[: width - 1]] if self.note else []
        return tuple(rows)

    def _draw(self) -> ANSI:
        height, rows = _leave_room(self._prompt), self._rows
        rows = ("", *rows) if rows and height > 2 * _MENU_ROWS else rows[: max(0, height - _OWN_ROWS)]
        return ANSI("\n".join((*rows, self.prompt)))

    def _flush(self) -> None:
        with self._lock:
            text, self._above = "".join(self._above), []
        if text:
            send(text, sys.stderr)


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
        self._closed.clear()
        self._thread = threading.Thread(target=self._listen, name="agentflow-input", daemon=True)
        self._thread.start()

    def show(self, _: Board, text: str) -> None:
        if text:
            send(text, sys.stderr)

    def close(self) -> None:
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
