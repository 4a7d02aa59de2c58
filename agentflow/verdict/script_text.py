"""What in JavaScript and TypeScript is code, and what is a comment, a string, a pattern or markup."""

import re

from agentflow.core.languages import MARKUP_FREE
from agentflow.core.regex import regex

_SIGN = "\x01"
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
