"""HTML to Markdown: headings, paragraphs, lists, links and code; nothing that runs or only decorates."""

import re
from html.parser import HTMLParser
from urllib.parse import urljoin

_SILENT = frozenset({"script", "style", "template", "noscript", "svg", "iframe", "object", "title", "select"})
_BLOCKS = frozenset(
    {"p", "div", "section", "article", "main", "header", "footer", "nav", "aside", "table", "tr", "ul", "ol"}
    | {"dl", "dt", "dd", "blockquote", "figure", "form", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "li"}
)
_BEFORE = {"pre": "\n\n```\n", "td": " | ", "th": " | ", "br": "\n"}
_SPACE = re.compile(r"\s+")
_REST = 1000
_DEEPEST = 8
"""Lists in lists are not indented further."""
_BLANK = re.compile(r"\n{3,}")


class _Converter(HTMLParser):
    def __init__(self, base: str) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._base = base
        self._silent: list[str] = []
        self._links: list[str] = []
        self._lists: list[str] = []
        self._is_literal = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SILENT:
            self._silent.append(tag)
        elif tag == "a":
            self._links.append(dict(attrs).get("href") or "")
            self._say("[")
        elif tag in {"ul", "ol"}:
            self._lists.append(tag)
        else:
            self._say(self._open_tag(tag))
        self._is_literal |= tag == "pre"

    def handle_endtag(self, tag: str) -> None:
        if self._silent:
            if tag in self._silent:
                del self._silent[self._silent.index(tag) :]
        elif tag == "a" and self._links:
            self._say(self._close_link(self._links.pop()))
        elif tag in {"ul", "ol"} and self._lists:
            self._lists.pop()
            self._say("\n\n")
        else:
            self._close(tag)

    def handle_data(self, found: str) -> None:
        text = found if self._is_literal else _SPACE.sub(" ", found)
        starts = not self._is_literal and "".join(self.parts[-1:])[-1:] in {"", "\n"}
        self._say(text.lstrip() if starts else text)

    def _open_tag(self, tag: str) -> str:
        match tag:
            case "li":
                indent = "  " * (min(len(self._lists), _DEEPEST) - 1)
                said = f"\n{indent}{'1.' if self._lists[-1:] == ['ol'] else '-'} "
            case "code":
                said = "" if self._is_literal else "`"
            case "h1" | "h2" | "h3" | "h4" | "h5" | "h6":
                said = f"\n\n{'#' * int(tag[1])} "
            case _:
                said = _BEFORE.get(tag) or ("\n\n" if tag in _BLOCKS else "")
        return said

    def _close(self, tag: str) -> None:
        if tag == "pre":
            self._say("\n```\n\n")
            self._is_literal = False
        elif tag == "code":
            self._say("" if self._is_literal else "`")
        elif tag in _BLOCKS and tag != "li":
            self._say("\n\n")

    def _close_link(self, href: str) -> str:
        """Return the end of a link; one that leads nowhere, or to a script, has no address."""
        try:
            address = urljoin(self._base, href)
        except ValueError:
            address = ""
        return f"]({address})" if href and address.startswith(("http://", "https://")) else "]"

    def _say(self, text: str) -> None:
        if text and not self._silent:
            self.parts.append(text)


def to_markdown(html: str, base: str) -> str:
    """Return what a page says, its links in full; `base` is the page's own address."""
    converter = _Converter(base)
    converter.feed(html)
    if len(converter.rawdata) < _REST:
        # of a long unfinished tag, the parser would look at each end again and again
        converter.close()
    lines = "".join(converter.parts).split("\n")
    return _BLANK.sub("\n\n", "\n".join(line.rstrip() for line in lines)).strip()
