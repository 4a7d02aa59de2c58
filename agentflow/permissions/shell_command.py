"""A shell command as a value: its simple commands, their words as far as they are known before it runs."""

import re
import shlex

from agentflow.core.record import Record
from agentflow.core.regex import regex

UNKNOWN_TEXT = "\0"
"""Stands for text that only the shell will know; a command with this character in it is refused."""
_PIECE = regex(r"'([^']*)'|\\(.|\n)|(.)", re.DOTALL)


class TooComplex(Exception):
    """A command that cannot be judged; says why, for people and models."""


class ShellWord(Record):
    """A word of a command."""

    text: str
    """Its value, with UNKNOWN_TEXT for each expansion of the shell."""
    loose: bool = False
    """True when it may become another flag, or several words."""

    @property
    def is_known(self) -> bool:
        return UNKNOWN_TEXT not in self.text


class Redirection(Record):
    """A redirection of a command's input or output."""

    operator: str
    target: ShellWord
    source: str

    @property
    def writes(self) -> bool:
        is_copy = self.operator in (">&", "<&") and re.fullmatch(r"\d+-?|-", self.target.text)
        return ">" in self.operator and not is_copy and self.target.text != "/dev/null"


class SimpleCommand(Record):
    """One simple command: its words, what is assigned for it, and how it was written."""

    words: tuple[ShellWord, ...]
    source: str
    assigned: tuple[tuple[str, ShellWord], ...] = ()
    is_opened: bool = False
    """True when it only runs others, which are judged in its place."""


class ShellScript(Record):
    """The actions that a shell would take for a command."""

    commands: tuple[SimpleCommand, ...]
    redirections: tuple[Redirection, ...] = ()
    source: str = ""
    document: str = ""
    """The text of its here-document, unless the shell changes it."""


def unquote(text: str) -> ShellWord:
    """Return the value of a word that stands without double quotes. Raises TooComplex."""
    value = ""
    for quoted, escaped, plain in _PIECE.findall(text):
        if plain in ("`", "$") and text != "$":
            raise TooComplex("an expansion is not clear")
        is_home = plain == "~" and (not value or value[-1] in "=:")
        value += (
            UNKNOWN_TEXT if is_home or (plain and plain in "*?[") else quoted or escaped.strip("\n") or plain
        )
    if re.search(r"(?<!\\)\{[^}]*(?:,|\.\.)", text) and "'" not in text:
        return ShellWord(text=UNKNOWN_TEXT, loose=True)
    return ShellWord(text=value, loose=is_open_ended(value))


def is_open_ended(text: str) -> bool:
    """Return whether a text whose rest is not known may turn out to be a flag."""
    return text.startswith(UNKNOWN_TEXT) or (text.startswith("-") and UNKNOWN_TEXT in text)


def join_words(words: tuple[ShellWord, ...]) -> str:
    """Return words as one text; a word with white space stays in quotes, so that it cannot pass for two."""
    texts = (word.text for word in words)
    return " ".join(shlex.quote(text) if not text or re.search(r"\s", text) else text for text in texts)
