"""Lines onto a stream: with colour or without, in UTF-8 or ASCII, also when nobody reads any more."""

import os
from collections.abc import Iterable, Mapping
from typing import TextIO

from agentflow.core.record import Record
from agentflow.redact import redacted
from agentflow.view.text import Line, Style, fit

_ASCII = str.maketrans(
    {
        "✓": "ok",
        "✗": "x ",
        "▸": "> ",
        "○": "- ",
        "─": "- ",
        "→": "->",
        "·": ".",
        "…": "...",
        "“": '"',
        "”": '"',
    }
)
_RESET = "\x1b[0m"


class Medium(Record):
    """What a stream can show."""

    colour: bool
    ascii: bool
    live: bool
    """A terminal on which a line can be drawn again."""


def choose(stream: TextIO, environ: Mapping[str, str]) -> Medium:
    """Decide, for one stream, what it can show."""
    terminal = stream.isatty()
    dumb = environ.get("TERM") == "dumb"
    if environ.get("NO_COLOR"):
        colour = False
    elif environ.get("FORCE_COLOR", "0") not in {"", "0"}:
        colour = True
    else:
        colour = terminal and not dumb
    encoding = (stream.encoding or "utf-8").lower().replace("-", "").replace("_", "")
    return Medium(colour=colour, ascii=encoding != "utf8", live=terminal and not dumb)


def width_of(stream: TextIO) -> int | None:
    """Return how many columns a terminal has now, or None for a stream that has no end of line."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def write(lines: Iterable[Line], stream: TextIO, medium: Medium) -> bool:
    """Write lines, fitted to the terminal if it is one; return whether anybody still reads."""
    return send(rendered(lines, medium, width_of(stream)), stream)


def rendered(lines: Iterable[Line], medium: Medium, width: int | None) -> str:
    """Return lines as the text of a stream, each ended by a newline."""
    shown = map(in_ascii, lines) if medium.ascii else lines
    fitted = shown if width is None else fit(shown, width)
    return "".join(f"{paint(one, medium)}\n" for one in fitted)


def paint(one: Line, medium: Medium) -> str:
    """Return a line with its colours, if there are to be any."""
    if not medium.colour:
        return one.text.rstrip(" ")
    return "".join(
        part.text
        if part.style is Style.PLAIN or not part.text
        else f"\x1b[{part.style.value}m{part.text}{_RESET}"
        for part in one.spans
    )


def in_ascii(one: Line) -> Line:
    """Return a line whose marks are made of ASCII characters."""
    return one.replace(spans=tuple(part.replace(text=part.text.translate(_ASCII)) for part in one.spans))


def send(text: str, stream: TextIO | None) -> bool:
    """Write text at once; return False, and let the rest go nowhere, once the reader has gone.

    A disk that is full and a stream that was closed are readers who have gone.
    """
    if stream is None:
        return False
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(redacted(text).encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except OSError:
        _abandon(stream)
        return False
    return True


def _abandon(stream: TextIO) -> None:
    """Lead a stream to nowhere, so that what is still buffered fails nobody when Python ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, stream.fileno())
    except OSError:
        pass  # it has no descriptor, so nothing is left to be written
    finally:
        os.close(nowhere)
