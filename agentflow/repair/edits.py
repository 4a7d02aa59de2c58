"""Changes of text as calls of Edit."""

import difflib
import re
from collections.abc import Iterator

from agentflow.core.record import Record


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


def _split(text: str) -> list[str]:
    """Return lines as git and Edit see them: only a newline ends one."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)
