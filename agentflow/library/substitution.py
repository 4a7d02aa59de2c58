"""Placeholders in the bodies of commands and skills: arguments, folders, shell lines and files."""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum

from agentflow.core.record import Record
from agentflow.core.regex import regex

_PLACEHOLDER = regex(
    r"(?P<escape>\\)?\$(?:\{(?P<place>[A-Z][A-Z0-9_]*)\}|ARGUMENTS\[(?P<index>\d{1,3})\]"
    r"|(?P<all>ARGUMENTS)\b|(?P<number>\d{1,3})(?!\w)|(?P<name>[A-Za-z_][\w-]*))"
)
_FENCE = regex(r"(?ms)^ {0,3}(?P<fence>`{3,}|~{3,})(?P<mark>!?)[^\n]*\n(?P<body>.*?)^ {0,3}(?P=fence)[ \t]*$")
_INLINE = regex(
    r"(?<!\S)!`(?P<command>[^`\n]+)`|(?<!\S)@(?P<file>(?:\$\{?)?[\w~./](?:[\w./$\[\]{}~-]*[\w\]}$])?)"
)
_SHELL = regex(r"(?<!\S)!`[^`\n]+`")
_CODE = regex(r"(`+)[^`].*?\1")


class PartKind(StrEnum):
    TEXT = "text"
    COMMAND = "command"
    """A shell line whose output takes its place."""
    FILE = "file"


class BodyPart(Record):
    """A piece of a body, before anything in it is replaced."""

    kind: PartKind
    text: str


class Arguments(Record):
    text: str
    words: tuple[str, ...]
    names: tuple[str, ...] = ()
    first: int = 0
    """The number by which a body calls the first argument."""
    places: Mapping[str, str] = {}
    """What `${NAME}` stands for, such as CLAUDE_SKILL_DIR."""

    def find(self, found: re.Match[str]) -> str | None:
        if found["place"]:
            return self.places.get(found["place"])
        if found["all"]:
            return self.text
        if found["index"]:
            return self._take(int(found["index"]))
        if found["number"]:
            return self._take(int(found["number"]) - self.first)
        return self._take(self.names.index(found["name"])) if found["name"] in self.names else None

    def _take(self, index: int) -> str:
        return self.words[index] if 0 <= index < len(self.words) else ""


def split_arguments(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError:
        return tuple(text.split())


def substitute(body: str, given: Arguments) -> str:
    """Return a body with its placeholders replaced, once; a backslash before one keeps it."""
    return _replace(body, given, lambda _, value: value)


def is_using(body: str, given: Arguments) -> bool:
    found = _PLACEHOLDER.finditer(body)
    return any(not each["place"] and not each["escape"] and given.find(each) is not None for each in found)


def substitute_in_shell(command: str, given: Arguments) -> str:
    """Return a shell line with its placeholders replaced, each quoted so that it adds no command."""
    return _replace(command, given, lambda found, value: _quote(command[: found.start()], value, found))


def _replace(text: str, given: Arguments, write: Callable[[re.Match[str], str], str]) -> str:
    def put(found: re.Match[str]) -> str:
        value = given.find(found)
        if value is None:
            return found[0]
        return found[0].removeprefix("\\") if found["escape"] else write(found, value)

    return _PLACEHOLDER.sub(put, text)


def _quote(before: str, value: str, found: re.Match[str]) -> str:
    opened, is_escaped = "", False  # the quote that is still open at the end of the text before
    for letter in before:
        if is_escaped:
            is_escaped = False
        elif letter == "\\" and opened != "'":
            is_escaped = True
        elif letter in "'\"" and opened in ("", letter):
            opened = "" if opened else letter
    if opened == "'":
        return value.replace("'", "'\\''")
    if opened:
        return re.sub(r'([\\$`"])', r"\\\1", value)
    return shlex.join(split_arguments(value)) if found["all"] else shlex.quote(value)


def split_body(body: str) -> tuple[BodyPart, ...]:
    """Return the pieces of a body: shell lines, files, and the text between; code blocks are text."""
    parts: list[BodyPart] = []
    place = 0
    for block in _FENCE.finditer(body):
        parts.extend(_split_prose(body[place : block.start()]))
        kind, text = (PartKind.COMMAND, block["body"]) if block["mark"] else (PartKind.TEXT, block[0])
        parts.append(BodyPart(kind=kind, text=text.strip("\n") if block["mark"] else text))
        place = block.end()
    parts.extend(_split_prose(body[place:]))
    joined: list[BodyPart] = []
    for part in parts:
        is_text = part.kind is PartKind.TEXT
        if is_text and joined and joined[-1].kind is PartKind.TEXT:
            joined[-1] = joined[-1].replace(text=joined[-1].text + part.text)
        elif part.text or not is_text:
            joined.append(part)
    return tuple(joined)


def _split_prose(text: str) -> Iterable[BodyPart]:
    """Yield the pieces of a text without code blocks; a file in a code span is text."""
    # the ticks of a shell line begin no code span
    masked = _SHELL.sub(lambda found: " " * len(found[0]), text)
    spans = [found.span() for found in _CODE.finditer(masked)]
    place = 0
    for found in _INLINE.finditer(text):
        is_file = found["file"] is not None
        if is_file and any(start <= found.start() < end for start, end in spans):
            continue
        yield BodyPart(kind=PartKind.TEXT, text=text[place : found.start()])
        kind = PartKind.FILE if is_file else PartKind.COMMAND
        yield BodyPart(kind=kind, text=found["file"] if is_file else found["command"])
        place = found.end()
    yield BodyPart(kind=PartKind.TEXT, text=text[place:])
