"""The input line of a session: history, completion of commands and files, several lines."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import ColorDepth

from agentflow.redact import redact_text, visible
from agentflow.settings import folders
from agentflow.workspace.git import Git

_MOST = 50
_HISTORY = "history"


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
                    yield Completion(name, -len(word), display_meta=summary)
        elif word.startswith("@"):
            for path in self._find_files(word[1:]):
                yield Completion(path, -len(word), display=visible(path))

    def _find_files(self, part: str) -> Iterator[str]:
        """Yield the files whose path has a part, those that begin with it first."""
        listed = self._git.call("ls-files", "-z", "--cached", "--others", "--exclude-standard").split(b"\0")
        found = [path for path in map(os.fsdecode, listed) if path and part.casefold() in path.casefold()]
        yield from sorted(found, key=lambda path: (not Path(path).name.startswith(part), path))[:_MOST]


class _SafeHistory(FileHistory):
    """Lines that were typed, in the user's folder, without secrets."""

    def store_string(self, string: str) -> None:
        super().store_string(redact_text(string))


def make_line_editor(git: Git, commands: Mapping[str, str], *, plain: bool) -> PromptSession[str]:
    """Return what reads a session's lines at the terminal; `plain` does without menus and colours."""
    bindings = KeyBindings()

    @bindings.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    is_colourless = plain or bool(os.environ.get("NO_COLOR"))
    return PromptSession(
        history=_open_history(),
        completer=_Completions(git, commands),
        complete_while_typing=not plain,
        key_bindings=bindings,
        color_depth=ColorDepth.DEPTH_1_BIT if is_colourless else None,
    )


def _open_history() -> History:
    place = folders(os.environ).config.parent / _HISTORY
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        place.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return _SafeHistory(place)
