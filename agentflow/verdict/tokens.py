"""Programs in other languages than Python, as tokens."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType

from agentflow.core.languages import C_FAMILY, RUST, SCRIPTS, SHELL, TYPESCRIPT, Lexer, find_lexer
from agentflow.core.record import Record
from agentflow.core.regex import regex

_CONTROL = regex("[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]")
"""Characters that end a line, and so a comment, in some compilers only."""
_TOKEN = re.compile(r"[A-Za-z_$][\w$]*|\d[\w.]*|\x01+|=>|:=|::|\.\.\.|[^\s\w]")
OPENS: Mapping[str, str] = MappingProxyType({"(": ")", "[": "]", "{": "}"})
CLOSES = frozenset(OPENS.values())


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


class Tokens(Record):
    """A program as tokens, with what brackets enclose each."""

    path: str
    text: str
    bare: str
    """The text with signs for comments and strings, of which the tokens are pieces."""
    words: tuple[str, ...]
    places: tuple[int, ...]
    """The offset of each token in the text."""
    partners: Mapping[int, int]
    """The matching bracket of each bracket."""
    around: tuple[int, ...]
    """The innermost bracket in which each token stands; -1 for none."""

    @property
    def is_c(self) -> bool:
        return self.path.endswith(C_FAMILY)

    @property
    def is_rust(self) -> bool:
        return self.path.endswith(RUST)

    @property
    def is_script(self) -> bool:
        return self.path.endswith(SCRIPTS)

    @property
    def has_types(self) -> bool:
        return self.path.endswith(TYPESCRIPT)

    def get_word(self, place: int) -> str:
        """Return a token; empty where there is none."""
        return self.words[place] if 0 <= place < len(self.words) else ""

    def find_end(self, place: int) -> int:
        """Return the offset in the text at which a token ends."""
        return self.places[place] + len(self.words[place])

    def find_places(self, name: str) -> list[int]:
        return [place for place, word in enumerate(self.words) if word == name]


def to_tokens(path: str, text: str, bare: str, token: re.Pattern[str]) -> Tokens | None:
    """Return a program as the tokens of its bare text; None where its brackets do not match."""
    found = list(token.finditer(bare))
    words = tuple(each[0] for each in found)
    partners, around, opened = dict[int, int](), list[int](), list[int]()
    for place, word in enumerate(words):
        if word in CLOSES:
            if not opened or OPENS[words[opened[-1]]] != word:
                return None
            begin = opened.pop()
            partners |= {begin: place, place: begin}
        around.append(opened[-1] if opened else -1)
        if word in OPENS:
            opened.append(place)
    if opened:
        return None
    places = tuple(each.start() for each in found)
    return Tokens(
        path=path, text=text, bare=bare, words=words, places=places, partners=partners, around=tuple(around)
    )


def read_tokens(path: str, text: str) -> Tokens | None:
    """Return a program as tokens; None if it cannot be split reliably."""
    parts = split_program(path, text)
    if parts is None or path.endswith((*C_FAMILY, *SHELL)):
        return None
    marks = {"comment": " ", "string": "\x01"}
    bare = "".join(part if kind == "code" else marks[kind] * len(part) for kind, part in parts)
    return to_tokens(path, text, bare, _TOKEN)
