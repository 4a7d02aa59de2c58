"""Programs in other languages than Python: what in them is code, comment and string."""

import re
from collections.abc import Iterator
from functools import cache

from agentflow.core.languages import find_lexer
from agentflow.core.lexers import Lexer
from agentflow.core.regex import regex

_CONTROL = regex("[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]")
"""Characters that end a line, and so a comment, in some compilers only."""


def split_program(path: str, text: str) -> list[tuple[str, str]] | None:
    """Return a program's comments, strings and code, by kind; None if they cannot be told apart."""
    language = find_lexer(path)
    if language is None or _CONTROL.search(text) or re.search(language.odd, text):
        return None
    parts = list(_split(language, text))
    return parts if "".join(part for _, part in parts) == text else None


def _split(language: Lexer, text: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a file up to the first that no rule matches."""
    pattern, place = _pattern(language), 0
    while found := pattern.match(text, place):
        yield found.lastgroup or "", found[0]
        place = found.end()


@cache
def _pattern(language: Lexer) -> re.Pattern[str]:
    strings = "|".join(language.strings)
    return re.compile(
        rf"(?P<comment>{language.comment})|(?P<string>{strings})|(?P<code>{language.code})", re.DOTALL
    )


def blank_out(path: str, text: str, string: str = " ") -> str | None:
    """Return a program with blanks for its comments and a sign for each of its strings' characters.

    Its lines are kept. None where it cannot be read.
    """
    parts = split_program(path, text)
    if parts is None:
        return None
    signs = {"comment": " ", "string": string}
    return "".join(re.sub(r"[^\n]", signs[kind], part) if kind in signs else part for kind, part in parts)
