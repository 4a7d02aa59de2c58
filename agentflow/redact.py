"""Control sequences made visible before foreign text reaches a terminal."""

import re

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\U000e0000-\U000e007f]"
)

_DEEP = " " * 6
"""So deep that Markdown sees no heading, also below an item of a list."""


def visible(text: str) -> str:
    """Return text with control, direction and invisible characters as escapes; tab and newline stay."""
    return _UNSEEN.sub(lambda found: ascii(found.group())[1:-1], text)


def nested(text: str) -> str:
    """Return text for one place in Markdown: nothing in it starts a heading or a list of its own."""
    first, *others = visible(text).strip().split("\n")
    head = f"\\{first}" if first.startswith("#") else first
    return "\n".join((head, *(f"{_DEEP}{line}" if line.strip() else "" for line in others)))


def one_line(text: str, width: int = 120) -> str:
    """Return the first line of a text that says something, made visible and shortened."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    shown = visible(line)
    return shown if len(shown) <= width else shown[: width - 1] + "…"
