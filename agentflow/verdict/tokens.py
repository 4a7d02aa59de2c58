"""Programs in other languages than Python: what in them is code, comment, string or markup; their tokens."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType

from agentflow.core.languages import C_FAMILY, GO, MARKUP_FREE, RUST, SCRIPTS, TYPESCRIPT, find_lexer
from agentflow.core.lexers import Lexer
from agentflow.core.record import Record
from agentflow.core.regex import regex

_SIGN = "\x01"
"""Stands for each character of a text that is no code."""
_CONTROL = regex("[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]")
"""Characters that end a line, and so a comment, in some compilers only."""
_TOKEN = re.compile(
    r"#?[A-Za-z_$][\w$]*|\d[\w.]*|\x01+|'[a-z_]\w*|<<=|>>>=?|>>=|\*\*=?|\.\.[.=]?|===|!==|=>|->|::|:=|&&=?|\|\|=?|\?\?=?"
    r"|\?\.(?!\d)|<=|>=|==|!=|<<|>>|\+\+|--|[-+*/%&|^]=|[^\s\w]"
)
_GIVEN_TYPES = re.compile(r"(?<=[\w$])<[^<>;(){}=]*(?:<[^<>;(){}=]*>[^<>;(){}=]*)*>(?=\()")
"""Types between a function's name and its arguments."""
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
    def is_go(self) -> bool:
        return self.path.endswith(GO)

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


def read_code(path: str, text: str) -> Tokens | None:
    """Return a program as tokens; None where it cannot be told for certain what is code."""
    is_script = path.endswith(SCRIPTS)
    bare = blank_script(path, text) if is_script else blank_out(path, text, _SIGN)
    if bare is None:
        return None
    if path.endswith(TYPESCRIPT):
        bare = _GIVEN_TYPES.sub(lambda found: " " * len(found[0]), bare)
    if path.endswith(C_FAMILY):
        bare = re.sub(r"(?m)^[ \t]*#[^\n]*", lambda found: " " * len(found[0]), bare)
    return _to_tokens(path, text, bare)


def _to_tokens(path: str, text: str, bare: str) -> Tokens | None:
    """Return a program as the tokens of its bare text; None where its brackets do not match."""
    found = list(_TOKEN.finditer(bare))
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


# scripts, which may hold markup

_COMMENT = regex(r"//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/|(?<![\s\S])#![^\n]*")
_QUOTED = regex(r"\"(?:[^\"\\\n]|\\[\s\S])*\"|'(?:[^'\\\n]|\\[\s\S])*'")
_PATTERN = regex(r"/(?![*/])(?:[^/\\\[\n]|\\[^\n]|\[(?:[^\]\\\n]|\\[^\n])*\])+/[a-z]*")
_WORD = regex(r"[\w$]+|\+\+|--|=>|[^\s\w]")
_TYPES = r"<[^<>]*(?:<[^<>]*(?:<[^<>]*>[^<>]*)*>[^<>]*)*>"
_TAG = regex(rf"<(?P<name>[A-Za-z_$][\w$.:-]*|(?=\s*>))(?:{_TYPES})?(?=[\s/>])")
_GENERIC = regex(r"<\s*(?:const\s|[\w$]+\s*(?:,|\bextends\b))")
_ATTRIBUTE = regex(r"\s+|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/|=|[A-Za-z_$][\w$:.-]*|\"[^\"]*\"|'[^']*'")
_CLOSING = regex(r"</\s*[\w$.:-]*\s*>")
_MARKUP_TEXT = regex(r"[^{}<>]+")
_TEMPLATE_TEXT = regex(r"(?:[^`\\$]|\\[\s\S]|\$(?!\{))+")
_BEFORE_OPERANDS = frozenset(
    {
        *("return", "typeof", "case", "in", "of", "delete", "void", "throw", "new", "await", "yield", "do"),
        *("else", "instanceof", "default", "extends"),
    }
)
_HEADS = frozenset({"if", "while", "for", "with"})
_MOST_LEVELS = 100
_MOST_AGAIN = 4
"""Text that looks like markup and is none is read again: in all at most so many times the whole text."""


class _OddError(Exception):
    """A text that is no code."""


def blank_script(path: str, text: str) -> str | None:
    """Return a script with blanks for comments and a sign for each character of strings and markup.

    Code inside of templates and markup stays, in its braces. None where it cannot be told what is code.
    """
    scan = _Scan(text, has_markup=not path.endswith(MARKUP_FREE))
    try:
        scan.read_code()
    except _OddError:
        return None
    return "".join(scan.out) if scan.at == len(text) else None


class _Scan:
    """A place in a script, and what was read before it."""

    def __init__(self, text: str, *, has_markup: bool) -> None:
        self.text = text
        self.has_markup = has_markup
        self.at = 0
        self.out = list[str]()
        self.level = 0
        self.plain = set[int]()
        """The places of angle brackets that begin no element."""
        self.again = 0
        """The number of characters that are read again."""

    def read_code(self) -> None:
        """Read up to the end, or to a closing brace that was not opened here."""
        self.level += 1
        if self.level > _MOST_LEVELS:
            raise _OddError
        last, heads, depth = "", list[str](), 0
        while self.at < len(self.text):
            sign = self.text[self.at]
            if sign == "}" and not depth:
                break
            depth += (sign == "{") - (sign == "}")
            if sign.isspace():
                self._take(sign)
            elif found := _COMMENT.match(self.text, self.at):
                self._take(re.sub(r"[^\n]", " ", found[0]))
            elif self._reads_text(is_operand=_begins_operand(last) or self._begins_pattern(last)):
                last = _SIGN
            else:
                last = self._read_word(last, heads)
        self.level -= 1

    def _begins_pattern(self, last: str) -> bool:
        """Return whether a slash begins a line behind a block."""
        is_first = not self.text[self.text.rfind("\n", 0, self.at) + 1 : self.at].strip()
        return is_first and last == "}" and self.text[self.at] == "/"

    def _take(self, written: str) -> None:
        self.out.append(written)
        self.at += len(written)

    def _take_text(self, pattern: re.Pattern[str]) -> bool:
        """Read a text that is no code, if one begins here."""
        found = pattern.match(self.text, self.at)
        if found:
            self._take(_SIGN * len(found[0]))
        return found is not None

    def _need_text(self, pattern: re.Pattern[str]) -> None:
        if not self._take_text(pattern):
            raise _OddError

    def _reads_text(self, *, is_operand: bool) -> bool:
        """Return whether a string, a pattern or markup began here, which is then read."""
        sign = self.text[self.at]
        if sign in "\"'":
            self._need_text(_QUOTED)
        elif sign == "`":
            self._read_template()
        elif sign == "/" and is_operand:
            self._need_text(_PATTERN)
        else:
            return sign == "<" and is_operand and self.has_markup and self._reads_markup()
        return True

    def _read_word(self, last: str, heads: list[str]) -> str:
        """Read one token, and return what it is to what follows."""
        found = _WORD.match(self.text, self.at)
        word = found[0] if found else self.text[self.at]
        self._take(word)
        if word == "(":
            heads.append(last)
        elif word == ")":
            return "if" if heads and heads.pop() in _HEADS else word
        elif word == "!" and not _begins_operand(last) and self.text[self.at : self.at + 1] != "=":
            return last
        is_name = last == "." or (word == "of" and heads[-1:] not in (["for"], ["await"]))
        return f".{word}" if is_name else word

    def _read_template(self) -> None:
        self._take(_SIGN)
        while not self.text.startswith("`", self.at):
            if self.text.startswith("${", self.at):
                self._take(_SIGN)
                self._read_hole()
            else:
                self._need_text(_TEMPLATE_TEXT)
        self._take(_SIGN)

    def _read_hole(self) -> None:
        self._take("{")
        self.read_code()
        if not self.text.startswith("}", self.at):
            raise _OddError
        self._take("}")

    def _reads_markup(self) -> bool:
        """Return whether a whole element stands here, which is then read."""
        start, size, level = self.at, len(self.out), self.level
        if start in self.plain or not _TAG.match(self.text, start) or _GENERIC.match(self.text, start):
            return False
        try:
            self._read_element()
        except _OddError:
            self.plain.add(start)
            self.again += self.at - start
            if self.again > _MOST_AGAIN * len(self.text):
                raise
            self.at, self.level = start, level
            del self.out[size:]
            return False
        return True

    def _read_element(self) -> None:
        self._need_text(_TAG)
        while not self.text.startswith((">", "/>"), self.at):
            if self.text.startswith("{", self.at):
                self._read_hole()
            else:
                self._need_text(_ATTRIBUTE)
        if self.text.startswith("/>", self.at):
            self._take(_SIGN * 2)
            return
        self._take(_SIGN)
        while not self.text.startswith("</", self.at):
            if self.text.startswith("{", self.at):
                self._read_hole()
            elif self.text.startswith("<", self.at):
                self._read_element()
            else:
                self._need_text(_MARKUP_TEXT)
        self._need_text(_CLOSING)


def _begins_operand(last: str) -> bool:
    """Return whether an operand follows a token, and not an operator."""
    if last in _BEFORE_OPERANDS or last in _HEADS or not last:
        return True
    return last not in (")", "]", "}", "++", "--", _SIGN) and not re.match(r"\.?[\w$]", last)
