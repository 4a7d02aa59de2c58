"""Markdown of a model's answer as lines for a terminal."""

from collections.abc import Iterator

from agentflow.core.regex import regex
from agentflow.view.text import BLANK, Line, Span, Style, line, span

_HEADING = regex(r"#{1,6} +(.*?)(?: +#+)?")
_ITEM = regex(r"( *)(?:[-*+]|(\d+[.)])) +(.*)")
_FENCE = regex(r" *(?:```|~~~).*")
_INLINE = regex(r"`+([^`]+)`+|\*\*([^*]+)\*\*|\[([^\]]+)\]\(([^)\s]+)\)")
_RULE = regex(r" *(?:-{3,}|\*{3,}|_{3,}) *")


def draw_markdown(text: str) -> Iterator[Line]:
    """Yield headings in bold, lists with bullets, code in its colour; all else as it is written."""
    is_code = False
    for row in text.strip().split("\n"):
        if _FENCE.fullmatch(row):
            is_code = not is_code
        elif is_code:
            yield line("    ", span(row, Style.ACCENT), hang=4)
        elif heading := _HEADING.fullmatch(row):
            yield line(span(heading[1], Style.BOLD))
        elif item := _ITEM.fullmatch(row):
            lead = f"{item[1]}{item[2] or '•'} "
            yield line(lead, *_draw_inline(item[3]), hang=len(lead))
        else:
            yield BLANK if not row.strip() or _RULE.fullmatch(row) else line(*_draw_inline(row))


def _draw_inline(text: str) -> Iterator[Span]:
    end = 0
    for found in _INLINE.finditer(text):
        yield span(text[end : found.start()])
        code, strong, label, target = found.groups()
        if label:
            yield span(label if label == target else f"{label} ({target})", Style.ACCENT)
        else:
            yield span(code or strong, Style.ACCENT if code else Style.BOLD)
        end = found.end()
    yield span(text[end:])
