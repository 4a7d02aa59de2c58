"""Styled text: spans, lines, wrapping at a width, and writing them to a stream."""

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import TextIO

from agentflow.core.record import Record
from agentflow.redact import make_visible, redact_text

_PIECES = re.compile(r" +|[^ ]+")
_FILLING = re.compile(r"(?<=[^ ]) {3,}$")
_NARROWEST = 10
LABEL_WIDTH = 11
_WIDEST_HANG = 36


class Style(Enum):
    """The meaning of a piece of text; the value is its SGR parameter."""

    PLAIN = ""
    BOLD = "1"
    DIM = "2"
    GOOD = "32"
    BAD = "31"
    WARN = "33"
    ACCENT = "36"


class Span(Record):
    """Text of one style, free of control characters; made by `span` only."""

    text: str
    style: Style = Style.PLAIN


class Line(Record):
    spans: tuple[Span, ...] = ()
    hang: int = 0
    """Columns by which its continuation is indented when it has to be wrapped."""

    @property
    def text(self) -> str:
        return "".join(span.text for span in self.spans)


BLANK = Line()


def span(text: str, style: Style = Style.PLAIN) -> Span:
    """Return any text as one row that is safe for a terminal."""
    if not (text.isascii() and text.isprintable()):
        text = make_visible(text).replace("\n", "\\n").expandtabs(4)
    return Span(text=text, style=style)


def line(*parts: Span | str, hang: int = 0) -> Line:
    return Line(spans=tuple(part if isinstance(part, Span) else span(part) for part in parts), hang=hang)


def label_row(label: str, *parts: Span | str, width: int = LABEL_WIDTH) -> Line:
    return line(column(label, width, Style.DIM), *parts, hang=width)


def column(text: str, width: int, style: Style = Style.PLAIN) -> Span:
    """Return text filled up with spaces to a width, and never cut."""
    made = span(text, style)
    return made.replace(text=made.text + " " * (width - count_cells(made.text)))


Cell = Span | str


def tabulate(
    heads: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    *,
    marks: Sequence[Span] = (),
    width: int | None = None,
) -> Iterator[Line]:
    """Yield rows below their heads, each column as wide as it needs; at a `width` the last one is cut.

    Without a width a row that is too long is wrapped where it is written. Marks stand before the rows.
    """
    table = [[span(head, Style.DIM) for head in heads]]
    table += ([cell if isinstance(cell, Span) else span(cell) for cell in row] for row in rows)
    widths = [max(count_cells(cell.text) for cell in stack) + 2 for stack in zip(*table, strict=True)][:-1]
    leads = (span("  "), *marks) if marks else (span(""),) * len(table)
    taken = sum(widths) + len(leads[0].text)
    for mark, (*cells, last) in zip(leads, table, strict=True):
        if width is not None:
            last = last.replace(text=clip(last.text, max(_NARROWEST, width - taken)))  # noqa: PLW2901
        filled = (column(cell.text, size, cell.style) for cell, size in zip(cells, widths, strict=True))
        yield line(mark, *filled, last, hang=taken if taken <= _WIDEST_HANG else 4)


def draw_entry(name: Cell, note: Cell = "", texts: Iterable[Cell] = ()) -> Iterator[Line]:
    """Yield one of a list whose parts are too long for columns: its name, and its texts below."""
    head, beside = (
        each if isinstance(each, Span) else span(each, style)
        for each, style in ((name, Style.BOLD), (note, Style.DIM))
    )
    yield line(head, "  ", beside, hang=4)
    yield from (line("  ", text, hang=4) for text in texts if text)


def clip(text: str, width: int) -> str:
    return text if count_cells(text) <= width else _take_prefix(text, width - 1) + "…"


def count_cells(text: str) -> int:
    return len(text) if text.isascii() else sum(_count_cells(character) for character in text)


def _count_cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _take_prefix(text: str, width: int) -> str:
    used = 0
    for place, character in enumerate(text):
        used += _count_cells(character)
        if used > width:
            return text[:place]
    return text


def cut(one: Line, width: int) -> Line:
    if count_cells(one.text) <= width:
        return one
    kept: list[Span] = []
    room = width
    for part in one.spans:
        if count_cells(part.text) >= room:
            kept.append(part.replace(text=_take_prefix(part.text, room - 1) + "…"))
            break
        kept.append(part)
        room -= count_cells(part.text)
    return one.replace(spans=tuple(kept))


def fit_lines(lines: Iterable[Line], width: int) -> Iterator[Line]:
    """Yield lines none of which is wider than `width`, wrapped between words where one was."""
    room = max(width, _NARROWEST)
    for one in lines:
        if count_cells(one.text) <= room:
            yield one
            continue
        filled = [place for place, part in enumerate(one.spans, 1) if _FILLING.search(part.text)]
        before = one.spans[: filled[-1]] if filled else ()
        if sum(count_cells(part.text) for part in before) > room:  # its columns go, save the first
            first, *rest = one.spans
            rest = [part.replace(text=_FILLING.sub("  ", part.text)) for part in rest]
            one = one.replace(spans=(first, *rest))  # noqa: PLW2901
        yield from _wrap(one, room)


def _wrap(one: Line, width: int) -> Iterator[Line]:
    indent = " " * min(one.hang, width // 2)
    row: list[Span] = []
    used, empty = 0, True
    for piece in _split_pieces(one, width - len(indent)):
        size = count_cells(piece.text)
        gap = piece.text.isspace()
        if used + size > width and not empty:
            yield _make_row(row)
            row, used, empty = [Span(text=indent)], len(indent), True
            if gap:
                continue
        row.append(piece)
        used += size
        empty = empty and gap
    if not empty:
        yield _make_row(row)


def _split_pieces(one: Line, width: int) -> Iterator[Span]:
    for part in one.spans:
        for found in _PIECES.findall(part.text):
            rest = found
            while count_cells(rest) > width:
                head = _take_prefix(rest, width)
                yield part.replace(text=head)
                rest = rest[len(head) :]
            yield part.replace(text=rest)


def _make_row(spans: list[Span]) -> Line:
    while spans and spans[-1].text.isspace():
        spans.pop()
    return Line(spans=tuple(spans))


ASCII = str.maketrans(
    {
        "✓": "ok",
        "✗": "x ",
        "▸": "> ",
        "█": "#",
        "▓": "=",
        "▒": "-",
        "░": ":",
        "●": "*",
        "\N{MINUS SIGN}": "-",
        "•": "-",
        "○": "- ",
        "─": "- ",
        "→": "->",
        "·": ".",
        "…": "...",
        "“": '"',
        "”": '"',
        "━": "=",
        "╸": "=",
        "╺": " ",
        "»": ">>",
    }
)
_RESET = "\x1b[0m"


class Medium(Record):
    colour: bool
    ascii: bool
    live: bool
    """A terminal on which a line can be drawn again."""


PLAIN_TEXT = Medium(colour=False, ascii=False, live=False)


def choose_medium(stream: TextIO, environ: Mapping[str, str]) -> Medium:
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


def find_width(stream: TextIO) -> int | None:
    """Return how many columns a terminal has now, or None for a stream that has no end of line."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def write_lines(lines: Iterable[Line], stream: TextIO, medium: Medium) -> bool:
    return send(render(lines, medium, find_width(stream)), stream)


def render(lines: Iterable[Line], medium: Medium, width: int | None) -> str:
    if medium.ascii:
        lines = [
            one.replace(spans=tuple(part.replace(text=part.text.translate(ASCII)) for part in one.spans))
            for one in lines
        ]
    fitted = lines if width is None else fit_lines(lines, width)
    return "".join(f"{paint(one, medium)}\n" for one in fitted)


def paint(one: Line, medium: Medium) -> str:
    if not medium.colour:
        return one.text.rstrip(" ")
    painted = ""
    for part in one.spans:
        is_plain = part.style is Style.PLAIN or not part.text
        painted += part.text if is_plain else f"\x1b[{part.style.value}m{part.text}{_RESET}"
    return painted


def send(text: str, stream: TextIO | None) -> bool:
    """Write text at once; False once the reader has gone, as with a full disk or a closed stream."""
    if stream is None:
        return False
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(redact_text(text).encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except OSError:
        # nowhere takes the rest, so that buffered output raises nothing when Python ends
        with suppress(OSError), Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())
        return False
    return True
