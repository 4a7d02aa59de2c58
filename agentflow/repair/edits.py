"""Changes of text as calls of Edit, and a unified diff taken back."""

import difflib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from agentflow.core.record import Record

_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")
_FILE = re.compile(r"^diff --git .*\n", re.MULTILINE)
_START = re.compile(r"^(?=@@ )", re.MULTILINE)
_NAMED = re.compile(r"^\+\+\+ b/([^\t\n]+)", re.MULTILINE)
_NO_NEWLINE = "\\ "


class Replacement(Record):
    """The input of one Edit call."""

    file_path: str
    old_string: str
    new_string: str
    replace_all: bool = False


def replacements(path: str, before: str, after: str) -> Iterator[Replacement]:
    """Return the Edit calls that turn one text into another, each old text unique when its turn comes."""
    old, new = _split(before), _split(after)
    shift = 0
    for tag, start, end, first, last in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        lines = [*new[: start + shift], *old[start:]]
        yield _unique(path, lines, (start + shift, end + shift), new[first:last])
        shift += (last - first) - (end - start)


def _unique(path: str, lines: list[str], span: tuple[int, int], fresh: list[str]) -> Replacement:
    """Return an edit of some lines, with as many neighbours as make its old text unique."""
    text = "".join(lines)
    for extra in range(len(lines) + 1):
        low, high = max(0, span[0] - extra), min(len(lines), span[1] + extra)
        old = "".join(lines[low:high])
        if old and text.count(old) == 1:
            break
    new = "".join([*lines[low : span[0]], *fresh, *lines[span[1] : high]])
    bare, bare_new = old.rstrip("\r\n"), new.rstrip("\r\n")
    if bare and bare_new and text.count(bare) == 1 and old[len(bare) :] == new[len(bare_new) :]:
        old, new = bare, bare_new  # a tool may see line endings its own way
    return Replacement(file_path=path, old_string=old, new_string=new)


def undone(root: Path, diff: str) -> Mapping[str, bytes | None]:
    """Return each changed file as it was before a diff; None where the diff does not fit the file."""
    found: dict[str, bytes | None] = {}
    for path, hunks in _files(diff):
        text = _text(root / path)
        lines = None if text is None else _reversed(_split(text), hunks)
        found[path] = None if lines is None else "".join(lines).encode()
    return found


def _text(path: Path) -> str | None:
    try:
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return None


def _split(text: str) -> list[str]:
    """Return lines as git and Edit see them: only a newline ends one."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _files(diff: str) -> Iterator[tuple[str, list[list[str]]]]:
    """Return each file that a diff changes, with the lines of its hunks."""
    for part in _FILE.split(diff)[1:]:
        head, *hunks = _START.split(part)
        named = _NAMED.search(head)
        yield (named[1] if named else ""), [hunk.removesuffix("\n").split("\n") for hunk in hunks]


def _reversed(lines: list[str], hunks: list[list[str]]) -> list[str] | None:
    for hunk in reversed(hunks):
        head = _HUNK.match(hunk[0])
        assert head is not None
        start = int(head[1]) - (0 if head[2] == "0" else 1)
        old, new = _sides(hunk[1:])
        if lines[start : start + len(new)] != new:
            return None
        lines = [*lines[:start], *old, *lines[start + len(new) :]]
    return lines


def _sides(body: list[str]) -> tuple[list[str], list[str]]:
    """Return the lines of a hunk as they were and as they are."""
    old, new = list[str](), list[str]()
    for number, line in enumerate(body):
        if line.startswith(_NO_NEWLINE):
            continue
        is_last = number + 1 < len(body) and body[number + 1].startswith(_NO_NEWLINE)
        content = line[1:] + ("" if is_last else "\n")
        if not line.startswith("+"):
            old.append(content)
        if not line.startswith("-"):
            new.append(content)
    return old, new
