"""Lines of files for the roles that come next, and whether a role was shown the lines it cites."""

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from agentflow.core.errors import ToolError
from agentflow.core.file_text import decode_file
from agentflow.core.ports import Workspace
from agentflow.core.regex import regex
from agentflow.core.role import Citation
from agentflow.core.task import Excerpt
from agentflow.core.tool import Effect, ToolContext
from agentflow.redact import redact_text
from agentflow.tools.files import is_binary
from agentflow.tools.inputs import list_exchanges, list_files_shown

WHOLE_LINES = 80
WHOLE_CHARS = 4_000
"""A file up to these is shown whole."""
NEAR = 6
"""Lines on either side of a cited one."""
MAX_EXCERPT_CHARS = 12_000
"""Of all excerpts together."""
MOST_EXCERPTS = 30
"""Lines of one block."""
DEFINITION = regex(
    r"(?m)^(?P<depth>[ \t]*)"
    r"(?:(?:export|default|public|private|protected|static|async|pub(?:\(\w+\))?)[ \t]+)*"
    r"(?:def|class|func|fn|function\*?|const|let|var|struct|type|enum|trait|interface)[ \t]+"
    r"(?:\([^()\n]*\)[ \t]*)?(?P<name>\w+)"
)
"""A name where it is defined, in the words of several languages."""
_CLOSING = ("}", ")", "]")
_NUMBER = regex(r"^ *(\d+)\t", re.MULTILINE)
_TELLING = 200
"""Characters by which a line is recognised, since tools cut long lines."""


def read_short_file(
    workspace: Workspace, path: str, most_lines: int = WHOLE_LINES, most_chars: int = WHOLE_CHARS
) -> Excerpt | None:
    """Return a short text file as a whole, or None."""
    lines = _lines(workspace, path)
    is_short = 0 < len(lines) <= most_lines and sum(map(len, lines)) <= most_chars
    return Excerpt(path=path, first=1, lines=lines, is_whole=True) if is_short else None


def find_definition(workspace: Workspace, path: str, name: str) -> Excerpt | None:
    """Return where a name is defined, or first stands: decorators, deeper lines below, what closes them."""
    lines = _lines(workspace, path)
    word = re.compile(rf"\b{re.escape(name)}\b")
    places = [at for at, line in enumerate(lines) if word.search(line)]
    if not places:
        return None
    defined = (at for at in places if (match := DEFINITION.match(lines[at])) and match["name"] == name)
    place = next(defined, places[0])
    begin, depth, end = _first_decorator(lines, place), _depth(lines[place]), place + 1
    while end < min(len(lines), place + MOST_EXCERPTS) and (
        not lines[end].strip() or _depth(lines[end]) > depth
    ):
        end += 1
    end += end < len(lines) and lines[end].strip()[:1] in _CLOSING
    return Excerpt(path=path, first=begin + 1, lines=tuple("\n".join(lines[begin:end]).rstrip().split("\n")))


def collect_excerpts(workspace: Workspace, findings: Iterable[Citation]) -> tuple[Excerpt, ...]:
    """Return what stands at the cited places, file by file in the order of the findings."""
    places: dict[str, set[int]] = {}
    for one in findings:
        places.setdefault(one.path, set()).add(one.line)
    found, left = list[Excerpt](), MAX_EXCERPT_CHARS
    for path, numbers in places.items():
        whole = read_short_file(workspace, path)
        for each in (whole,) if whole else _near(path, _lines(workspace, path), numbers):
            left -= sum(map(len, each.lines))
            if left >= 0:
                found.append(each)
    return tuple(found)


def was_shown(context: ToolContext, one: Citation) -> bool:
    """Return whether a role was shown a line of a file, by any call, or by its brief.

    A result shows it by its number, as Read numbers lines, or by its text beside the file's name.
    """
    lines = _lines(context.workspace, one.path)
    text = lines[one.line - 1].strip()[:_TELLING] if one.line <= len(lines) else ""
    name = PurePosixPath(one.path).name
    for asked, said in list_exchanges(context.run):
        numbered = () if asked is None else list_files_shown(asked, context, Effect.READ)
        about = said if asked is None else f"{asked.input}\n{said}"
        if one.path in numbered and str(one.line) in _NUMBER.findall(said):
            return True
        if not numbered and name in about and text in said:
            return True
    return False


def _first_decorator(lines: tuple[str, ...], place: int) -> int:
    begin, above = place, place - 1
    while above >= max(0, place - MOST_EXCERPTS) and lines[above].strip():
        if lines[above].lstrip().startswith("@") and _depth(lines[above]) == _depth(lines[place]):
            begin = above
        above -= 1
    return begin


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _near(path: str, lines: tuple[str, ...], numbers: set[int]) -> Iterator[Excerpt]:
    begin = end = 0
    for number in sorted(number for number in numbers if number <= len(lines)):
        if number - NEAR > end + 1:
            yield from _between(path, lines, begin, end)
            begin = number - NEAR
        begin, end = max(1, begin), min(len(lines), number + NEAR)
    yield from _between(path, lines, begin, end)


def _between(path: str, lines: tuple[str, ...], begin: int, end: int) -> Iterator[Excerpt]:
    if end:
        yield Excerpt(path=path, first=begin, lines=lines[begin - 1 : end])


def _lines(workspace: Workspace, path: str) -> tuple[str, ...]:
    try:
        content = workspace.read(path)
    except ToolError:
        return ()
    text = "" if is_binary(content) else redact_text(decode_file(content).shown)
    return tuple(line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")) if text else ()
