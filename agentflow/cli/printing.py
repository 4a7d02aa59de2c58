"""The output of commands on stdout and stderr: lines, text or JSON, safe for a terminal."""

import difflib
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TextIO

from agentflow.core.errors import AgentflowError, ConfigError, Exit
from agentflow.core.record import encode
from agentflow.redact import make_json_visible, make_visible
from agentflow.view.text import Line, choose_medium, line, send, write_lines

_COMMAND = re.compile(
    r"agentflow (status|why|evidence|log|resume|undo|commit|approve|deny)\b( \d{8}T\S+)?( -C \S+)?"
)
_FOLLOW_UP = re.compile(r"agentflow task --follows \S+(?: -C \S+)?")
_IN_SESSION = ContextVar("hints are for a session", default=False)


def show(lines: Iterable[Line], stream: TextIO | None = None) -> None:
    """Write lines to stdout or another stream, fitted to its terminal and coloured where it is one."""
    stream = stream or sys.stdout
    lines = map(_name_slash_commands, lines) if _IN_SESSION.get() else lines
    write_lines(lines, stream, choose_medium(stream, os.environ))


@contextmanager
def hint_for_session() -> Iterator[None]:
    """Show hints as a session reads them: commands begin with a slash, a message follows up."""
    token = _IN_SESSION.set(True)
    try:
        yield
    finally:
        _IN_SESSION.reset(token)


def _name_slash_commands(one: Line) -> Line:
    texts = (_FOLLOW_UP.sub("type:", _COMMAND.sub(r"/\1", part.text)) for part in one.spans)
    spans = (part.replace(text=text) for part, text in zip(one.spans, texts, strict=True))
    return one.replace(spans=tuple(spans))


def say(text: str = "") -> None:
    """Write a line, safe for a terminal; once the reader has gone, write nothing and go on."""
    send(f"{make_visible(text)}\n", sys.stdout)


def tell_result(value: object, rows: Iterable[Line | str], *, json: bool) -> None:
    """Write a value as JSON for a program, or the rows that tell it to a person; a text is not wrapped."""
    if json:
        say_json(value)
        return
    for row in rows:
        say(row) if isinstance(row, str) else show([row])


def suggest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return which known word was probably meant, to stand behind a message; empty where none is near."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return f"; did you mean {near[0]}?" if near else ""


def require_folders(*targets: Path | None) -> None:
    """Raise ConfigError for a file that could not be written at the end, as its folder is missing."""
    for target in targets:
        if target is not None and (target.is_dir() or not target.absolute().parent.is_dir()):
            problem = "it is a folder" if target.is_dir() else f"there is no folder {target.parent}"
            raise ConfigError(f"cannot write {target}: {problem}")


def write_result(place: Path, text: str, mode: str = "w") -> None:
    """Write a file that a person asked for, or add to it. Raises ConfigError where that cannot be done."""
    try:
        with place.open(mode, encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ConfigError(f"cannot write {place}: {error.strerror}") from None


def tell_edits(root: Path, folder: Path, *, goes_on: bool = False) -> None:
    """Say on stderr what was edited by hand in a task's files, unless a process is writing them now.

    Raises InvalidFile or CorruptState for a `task.md` that cannot be read; a command that goes on tells it.
    """
    from agentflow.store.ownership import is_at_work
    from agentflow.store.reading import fold_state, load_events
    from agentflow.store.task_file import STATE, find_edits

    happened = tuple(load_events(folder))
    fold_state(folder, happened)
    try:
        edits = tuple(find_edits(folder, happened).lines)
    except AgentflowError as error:
        if not goes_on:
            raise
        edits = (f"{error}; {STATE} is not needed for this",)
    if not is_at_work(root):
        send("".join(f"agentflow: {make_visible(edit)}\n" for edit in edits), sys.stderr)


def say_json(value: object) -> None:
    say_line(encode(value).decode())


def say_line(text: str) -> None:
    """Write JSON text, with invisible characters as JSON escapes."""
    send("".join(f"{make_json_visible(row)}\n" for row in text.split("\n")), sys.stdout)


def tell_error(error: AgentflowError) -> int:
    return say_error(str(error), error.hint, error.exit_code)


def say_error(message: str, hint: str, code: Exit) -> int:
    """Say on stderr what went wrong and what to do; return the exit code."""
    rows = [*f"agentflow: {message}".split("\n"), *(f"  {row}" for row in hint.split("\n") if hint)]
    show((line(row, hang=2) for row in rows), sys.stderr)
    return code
