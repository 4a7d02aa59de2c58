"""Styled text that needs no terminal: spans, lines, and fitting them to a width."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from enum import Enum

from agentflow.core.record import Record
from agentflow.redact import visible

_PIECES = re.compile(r" +|[^ ]+")
_FILLING = re.compile(r"(?<=[^ ]) {3,}$")
_NARROWEST = 10
_LABEL = 11


class Style(Enum):
    """What a piece of text means to the eye; the value is its SGR parameter."""

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
    """Return text that any terminal can be given: one row of it, whatever it was."""
    if not (text.isascii() and text.isprintable()):
        text = visible(text).replace("\n", "\\n").expandtabs(4)
    return Span(text=text, style=style)


def line(*parts: Span | str, hang: int = 0) -> Line:
    """Return a line of spans and plain text."""
    return Line(spans=tuple(part if isinstance(part, Span) else span(part) for part in parts), hang=hang)


def labelled(label: str, *spans: Span, width: int = _LABEL) -> Line:
    """Return one row of a list of names and values."""
    return line(column(label, width, Style.DIM), *spans, hang=width)


def column(text: str, width: int, style: Style = Style.PLAIN) -> Span:
    """Return text filled up with spaces to a width, and never cut."""
    made = span(text, style)
    return made.replace(text=made.text + " " * (width - cells(made.text)))


def clip(text: str, width: int) -> str:
    """Return the text cut to a width, with an ellipsis where something is missing."""
    return text if cells(text) <= width else _prefix(text, width - 1) + "…"


def cells(text: str) -> int:
    """Return how many columns a terminal gives a text."""
    return len(text) if text.isascii() else sum(_cell(character) for character in text)


def _cell(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _prefix(text: str, width: int) -> str:
    """Return the longest beginning that needs no more than `width` columns."""
    used = 0
    for place, character in enumerate(text):
        used += _cell(character)
        if used > width:
            return text[:place]
    return text


def cut(one: Line, width: int) -> Line:
    """Return a line shortened to a width."""
    if cells(one.text) <= width:
        return one
    kept: list[Span] = []
    room = width
    for part in one.spans:
        if cells(part.text) >= room:
            kept.append(part.replace(text=_prefix(part.text, room - 1) + "…"))
            break
        kept.append(part)
        room -= cells(part.text)
    return one.replace(spans=tuple(kept))


def fit(lines: Iterable[Line], width: int) -> Iterator[Line]:
    """Yield lines none of which is wider than `width`, wrapped between words where one was."""
    room = max(width, _NARROWEST)
    for one in lines:
        if cells(one.text) <= room:
            yield one
        else:
            yield from _wrapped(one if _columns(one) <= room else _squeezed(one), room)


def _columns(one: Line) -> int:
    """Return the width of a line's filled columns, all that stands before them included."""
    filled = [place for place, part in enumerate(one.spans, 1) if _FILLING.search(part.text)]
    return sum(cells(part.text) for part in one.spans[: filled[-1]]) if filled else 0


def _squeezed(one: Line) -> Line:
    """Return a line without the filling of its columns, save the first."""
    first, *rest = one.spans
    return one.replace(spans=(first, *(part.replace(text=_FILLING.sub("  ", part.text)) for part in rest)))


def _wrapped(one: Line, width: int) -> Iterator[Line]:
    indent = " " * min(one.hang, width // 2)
    row: list[Span] = []
    used, empty = 0, True
    for piece in _pieces(one, width - len(indent)):
        size = cells(piece.text)
        gap = piece.text.isspace()
        if used + size > width and not empty:
            yield _row(row)
            row, used, empty = [Span(text=indent)], len(indent), True
            if gap:
                continue
        row.append(piece)
        used += size
        empty = empty and gap
    if not empty:
        yield _row(row)


def _pieces(one: Line, width: int) -> Iterator[Span]:
    """Yield the words and gaps of a line, none of them wider than a row."""
    for part in one.spans:
        for found in _PIECES.findall(part.text):
            rest = found
            while cells(rest) > width:
                head = _prefix(rest, width)
                yield part.replace(text=head)
                rest = rest[len(head) :]
            yield part.replace(text=rest)


def _row(spans: list[Span]) -> Line:
    while spans and spans[-1].text.isspace():
        spans.pop()
    return Line(spans=tuple(spans))
