"""Read, Edit and Write."""

import os
import re
from collections.abc import Callable, Sequence
from itertools import islice
from typing import IO, Annotated, Any

from msgspec import Meta

from agentflow.core.errors import InvalidInput, NotAllowed
from agentflow.core.file_text import UTF8, FileText, decode_file, has_wide_letters
from agentflow.core.ports import Workspace
from agentflow.core.record import Record
from agentflow.core.regex import compile_glob
from agentflow.core.role import Role
from agentflow.core.tool import Category, Effect, Output, Subject, Tool, ToolContext
from agentflow.redact import MARK, redact_text
from agentflow.tools.diagnostics import describe_new_problems
from agentflow.tools.shown_files import show_file
from agentflow.workspace.path_guard import MAX_READ_BYTES, suggest_near

MAX_LINES = 2000
MAX_READ_CHARS = 2000
"""A longer line is cut when shown."""
SNIFFED = 8000
"""A NUL among the first bytes makes a file binary, as for git."""
_BOM = "\ufeff"
_LOST = "\ufffd"
_NUMBERED = re.compile(r"\s*\d+\t")

FilePath = Annotated[str, Meta(min_length=1)]


class ReadInput(Record):
    file_path: FilePath
    offset: Annotated[int, Meta(ge=1)] = 1
    limit: Annotated[int, Meta(ge=1)] = MAX_LINES


class EditInput(Record):
    file_path: FilePath
    old_string: Annotated[str, Meta(min_length=1)]
    new_string: str
    replace_all: bool = False


class OneEdit(Record):
    old_string: Annotated[str, Meta(min_length=1)]
    new_string: str
    replace_all: bool = False


class MultiEditInput(Record):
    file_path: FilePath
    edits: Annotated[tuple[OneEdit, ...], Meta(min_length=1)]


class WriteInput(Record):
    file_path: FilePath
    content: str


def is_binary(content: bytes) -> bool:
    """Return whether git would take a file for binary."""
    return b"\0" in content[:SNIFFED] and not has_wide_letters(content)


def read(wanted: ReadInput, context: ToolContext) -> Output:
    """Show a text file with line numbers."""
    if (image := show_file(wanted.file_path, context)) is not None:
        return image
    with suggest_near(context.workspace), context.workspace.open(wanted.file_path) as file:
        if os.fstat(file.fileno()).st_size > MAX_READ_BYTES:
            return _page(wanted, file)
    file_text = _read_text(context.workspace, wanted.file_path)
    lines = redact_text(file_text.shown).split("\n")
    if not lines[-1]:
        lines.pop()
    if not lines:
        return Output(content=f"{wanted.file_path} is empty")
    if wanted.offset > len(lines):
        raise InvalidInput(f"{wanted.file_path} has only {len(lines)} lines, offset is {wanted.offset}")
    last = min(len(lines), wanted.offset - 1 + wanted.limit)
    shown = [_number_line(number, lines[number - 1]) for number in range(wanted.offset, last + 1)]
    place = _place(wanted.offset, last, len(lines)) + _describe_encoding(file_text)
    return Output(content="\n".join((*shown, f"[{place}]")))


def edit(wanted: EditInput, context: ToolContext) -> Output:
    """Replace exact text that occurs once in a file you have read."""
    return _edit_in_turn(wanted.file_path, (wanted,), context)


def multi_edit(wanted: MultiEditInput, context: ToolContext) -> Output:
    """Make several edits of one file, all or none; each has old_string, new_string, replace_all."""
    return _edit_in_turn(wanted.file_path, wanted.edits, context)


def _edit_in_turn(file_path: str, edits: Sequence[EditInput | OneEdit], context: ToolContext) -> Output:
    path = context.workspace.to_relative(file_path)
    file_text = _read_text(context.workspace, path)
    text, total, loose = file_text.text, 0, list[int]()
    for number, each in enumerate(edits, 1):
        try:
            text, count, is_exact = _replace(path, text, each)
        except InvalidInput as error:
            which = f"edit {number} of {len(edits)}: " if len(edits) > 1 else ""
            raise InvalidInput(f"{which}{error}{'; nothing was written' * (len(edits) > 1)}") from None
        total += count
        loose += [] if is_exact else [number]
    require_writable(path, context.role)
    context.workspace.write(path, _encode(path, file_text, text))
    note = f"; white space at line ends differed from old_string (edit {_list_lines(loose)})" if loose else ""
    problems = describe_new_problems(path, file_text.text, text, context)
    return Output(content=f"edited {path}: {total} replacement{'s' * (total > 1)}{note}{problems}")


def _replace(path: str, text: str, wanted: EditInput | OneEdit) -> tuple[str, int, bool]:
    """Return the text after an edit, the number of places, and whether white space was the same there."""
    old, new = map(_unix, (wanted.old_string, wanted.new_string))
    if old == new:
        raise InvalidInput("old_string and new_string are the same")
    exact = r"\r?\n".join(re.escape(line) for line in old.split("\n"))
    is_exact = re.search(exact, text) is not None or not old.strip()
    pattern = exact if is_exact else _ignore_line_ends(old)
    _require_target(path, text, pattern, wanted)
    return *re.subn(pattern, lambda found: _with_endings(new, found.group(), text), text), is_exact


def _ignore_line_ends(old: str) -> str:
    *lines, last = old.split("\n")
    ended = [rf"{re.escape(line.rstrip())}[ \t]*" for line in lines]
    is_bare = last == last.rstrip()
    ended.append(re.escape(last) if is_bare else rf"{re.escape(last.rstrip())}[ \t]*(?=\r?\n|\Z)")
    return r"\r?\n".join(ended)


def write(wanted: WriteInput, context: ToolContext) -> Output:
    """Create a file with its folders, or replace one you have read."""
    path = context.workspace.to_relative(wanted.file_path)
    require_writable(path, context.role)
    text, old, verb, file_text = wanted.content, "", "created", FileText(text="")
    if (context.workspace.root / path).exists():
        file_text = _read_text(context.workspace, path)
        old, text = file_text.text, text.removeprefix(_BOM if file_text.mark else "")
        if file_text.is_broken and text.count(_LOST) > old.count(_LOST):
            raise InvalidInput(f"{path} has bytes that are not UTF-8, which Write would destroy: use Edit")
        holds_secret = redact_text(old) != old  # which the role saw as a mark
        if holds_secret and text.count(MARK) > old.count(MARK):
            raise InvalidInput(f"{path} holds a secret, shown as {MARK}, that Write would destroy: use Edit")
        text, verb = _unix(text).replace("\n", "\r\n") if _is_crlf(old) else text, "replaced"
    context.workspace.write(path, _encode(path, file_text, text))
    lines = text.count("\n") + (not text.endswith("\n") and bool(text))
    problems = describe_new_problems(path, old, text, context)
    return Output(content=f"{verb} {path}: {lines} line{'s' * (lines != 1)}{problems}")


def _tool(
    name: str,
    effect: Effect,
    kind: type[Record],
    call: Callable[[Any, ToolContext], Output],
    schema: dict[str, Any] | None = None,
    **quoted: Subject,
) -> Tool:
    return Tool(
        name=name,
        category=Category.FS,
        effect=effect,
        input=kind,
        call=call,
        subjects={"file_path": Subject.PATH, **quoted},
        shows_file=True,
        schema=schema,
    )


_EDITS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string"},
        "edits": {"type": "array", "items": {"type": "object"}},
    },
    "required": ["file_path", "edits"],
}
"""What a model knows from Edit is not said again: each request carries it."""
READ = _tool("Read", Effect.READ, ReadInput, read)
EDIT = _tool("Edit", Effect.WRITE, EditInput, edit, old_string=Subject.QUOTE)
MULTI_EDIT = _tool("MultiEdit", Effect.WRITE, MultiEditInput, multi_edit, _EDITS, old_string=Subject.QUOTE)
WRITE = _tool("Write", Effect.WRITE, WriteInput, write)


def require_writable(path: str, role: Role) -> None:
    """Raise NotAllowed for a file that is none of those which a role may write."""
    if role.write_paths and not any(compile_glob(glob).fullmatch(path) for glob in role.write_paths):
        raise NotAllowed(f"{role.name} may write only {', '.join(role.write_paths)}, and {path} is not there")


def _read_text(workspace: Workspace, path: str) -> FileText:
    with suggest_near(workspace):
        content = workspace.read(path)
    if is_binary(content):
        raise InvalidInput(f"{path} is binary")
    return decode_file(content)


def _page(wanted: ReadInput, file: IO[bytes]) -> Output:
    if b"\0" in file.read(SNIFFED):
        raise InvalidInput(f"{wanted.file_path} is binary")
    file.seek(0)
    rest = iter(lambda: file.readline(MAX_READ_BYTES), b"")
    taken = b"".join(islice(rest, wanted.offset - 1, wanted.offset - 1 + wanted.limit))
    if not taken:
        raise InvalidInput(f"{wanted.file_path} has fewer lines than {wanted.offset}")
    lines = redact_text(decode_file(taken).shown).removesuffix("\n").split("\n")
    last = wanted.offset + len(lines) - 1
    shown = [_number_line(number, line) for number, line in enumerate(lines, wanted.offset)]
    more = f"; go on with offset {last + 1}" if next(rest, b"") else ", the last ones"
    return Output(content="\n".join((*shown, f"[lines {wanted.offset} to {last}{more}]")))


def _number_line(number: int, line: str) -> str:
    text = line.removesuffix("\r")
    cut = f"{text[:MAX_READ_CHARS]}… [{len(text) - MAX_READ_CHARS} more characters]"
    return f"{number:6}\t{text if len(text) <= MAX_READ_CHARS else cut}"


def _place(first: int, last: int, count: int) -> str:
    if last < count:
        return f"lines {first} to {last} of {count}; go on with offset {last + 1}"
    return f"{count} lines" if first == 1 else f"lines {first} to {last} of {count}"


def _describe_encoding(found: FileText) -> str:
    if not found.is_known:
        return "; encoding unknown, each byte is shown as Latin-1: add ASCII only"
    if found.is_broken:
        return f"; some bytes are not UTF-8 and shown as {_LOST}: change other lines, with Edit"
    return "" if found.encoding == UTF8 else f"; encoding {found.encoding}, which Edit and Write keep"


def _require_target(path: str, text: str, pattern: str, wanted: EditInput | OneEdit) -> None:
    # the look-ahead also sees occurrences that overlap, which make the place ambiguous too
    starts = [found.start() for found in re.finditer(f"(?={pattern})", text)]
    if not starts:
        raise InvalidInput(_not_found(path, text, wanted.old_string))
    if len(starts) > 1 and not wanted.replace_all:
        lines = _list_lines([text.count("\n", 0, start) + 1 for start in starts])
        raise InvalidInput(
            f"old_string occurs {len(starts)} times in {path}, on lines {lines}: "
            "add lines around it until it is unique, or set replace_all"
        )


def _not_found(path: str, text: str, old: str) -> str:
    message = f"old_string does not occur in {path} (0 matches)"
    first = next((line.strip() for line in old.splitlines() if line.strip()), "")
    if _NUMBERED.match(old):
        return f"{message}: leave out the line numbers that Read shows"
    near = [number for number, line in enumerate(text.split("\n"), 1) if first and line.strip() == first]
    if near:
        return f"{message}; its first line is on {_list_lines(near)}: compare white space and what follows"
    return f"{message}: read the file again and copy the text exactly"


def _list_lines(lines: list[int]) -> str:
    shown = ", ".join(map(str, lines[:10]))
    return shown if len(lines) <= 10 else f"{shown}, …"


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")


def _is_crlf(text: str) -> bool:
    return text.count("\r\n") * 2 > text.count("\n")


def _with_endings(new: str, replaced: str, text: str) -> str:
    return new.replace("\n", "\r\n") if _is_crlf(replaced if "\n" in replaced else text) else new


def _encode(path: str, file_text: FileText, text: str) -> bytes:
    try:
        return file_text.encode(text)
    except UnicodeEncodeError as error:
        if file_text.encoding == UTF8 and error.encoding == UTF8:
            raise InvalidInput("the text holds half of a surrogate pair, which no file can hold") from None
        name = file_text.encoding if file_text.is_known else "of an unknown encoding"
        raise InvalidInput(
            f"{path} is {name}, in which {error.object[error.start]!a} cannot be written: "
            "leave it out, or convert the file first"
        ) from None
