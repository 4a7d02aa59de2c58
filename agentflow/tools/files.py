"""Read, Edit and Write."""

import json
import os
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
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


_INDENT = re.compile(r"\n([ \t]+)\"")
_PLACE = re.compile(r"cell-(\d{1,6})")


class CellType(StrEnum):
    CODE = "code"
    MARKDOWN = "markdown"


class CellEdit(StrEnum):
    REPLACE = "replace"
    INSERT = "insert"
    DELETE = "delete"


class NotebookEditInput(Record):
    notebook_path: FilePath
    new_source: str
    cell_id: str | None = None
    cell_type: CellType | None = None
    edit_mode: CellEdit = CellEdit.REPLACE


def edit_notebook(wanted: NotebookEditInput, context: ToolContext) -> Output:
    """Replace, delete or insert a cell of a notebook, by its id or as cell-N from 0; insert is behind it."""
    path = context.workspace.to_relative(wanted.notebook_path)
    text = context.workspace.read(path).decode("utf-8", "replace")
    try:
        notebook = json.loads(text)
        cells = notebook["cells"]
        ids = [cell.get("id") for cell in cells]
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        raise InvalidInput(f"{path} is no notebook with cells") from None
    place = _find_cell(wanted, path, ids)
    match wanted.edit_mode:
        case CellEdit.REPLACE:
            cells[place] = _change(cells[place], wanted)
        case CellEdit.INSERT:
            new = {"cell_type": wanted.cell_type or CellType.CODE, "metadata": {}, "source": []}
            names = (f"new-{number}" for number in range(len(ids) + 1))
            named = {"id": next(name for name in names if name not in ids)} if any(ids) else {}
            cells.insert(place + 1, _change({**named, **new}, wanted))
        case CellEdit.DELETE:
            del cells[place]
    require_writable(path, context.role)
    indent = _INDENT.search(text)
    told = json.dumps(notebook, indent=indent[1] if indent else None, ensure_ascii=text.isascii())
    context.workspace.write(path, f"{told}{chr(10) * text.endswith(chr(10))}".encode())
    return Output(content=f"{wanted.edit_mode}: {path}, which has {len(cells)} cells now")


def _find_cell(wanted: NotebookEditInput, path: str, ids: list[Any]) -> int:
    """Return the place of the named cell; -1 for an insertion at the begin."""
    if wanted.cell_id is None:
        if wanted.edit_mode is CellEdit.INSERT:
            return -1
        raise InvalidInput("cell_id: names the cell to change")
    if wanted.cell_id in ids:
        return ids.index(wanted.cell_id)
    found = _PLACE.fullmatch(wanted.cell_id)
    if found is None or int(found[1]) >= len(ids):
        named = ", ".join(str(known or f"cell-{place}") for place, known in enumerate(ids[:20]))
        raise InvalidInput(f"{path} has no cell {wanted.cell_id}; there are: {named or 'none'}")
    return int(found[1])


def _change(cell: dict[str, Any], wanted: NotebookEditInput) -> dict[str, Any]:
    """Return a cell with another source, and without what the old one gave."""
    kind = wanted.cell_type or cell.get("cell_type", CellType.CODE)
    is_list = not isinstance(cell.get("source"), str)
    source: Any = wanted.new_source.splitlines(keepends=True) if is_list else wanted.new_source
    kept = {key: value for key, value in cell.items() if key not in ("outputs", "execution_count")}
    ran: dict[str, Any] = {"execution_count": None, "outputs": []} if kind == CellType.CODE else {}
    return {**kept, "cell_type": str(kind), "source": source, **ran}


NOTEBOOK_EDIT = Tool(
    name="NotebookEdit",
    category=Category.FS,
    effect=Effect.WRITE,
    input=NotebookEditInput,
    call=edit_notebook,
    subjects={"notebook_path": Subject.PATH},
    shows_file=True,
)


MOST_BYTES = 2_000_000
MOST_PAGES = 20
MOST_PIXELS = 8_000
"""In width and height, beyond which providers refuse an image."""
_HEAD_BYTES = 16
_IMAGES: Mapping[str, re.Pattern[bytes]] = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n.{4}IHDR(?P<wide>.{4})(?P<high>.{4})", re.DOTALL),
    "image/gif": re.compile(rb"GIF8[79]a(?P<wide>.{2})(?P<high>.{2})", re.DOTALL),
    "image/jpeg": re.compile(rb"\xff\xd8\xff.*?\xff[\xc0-\xc3]..\x08(?P<high>.{2})(?P<wide>.{2})", re.DOTALL),
    "image/webp": re.compile(rb"RIFF.{4}WEBPVP8X.{8}(?P<wide>.{3})(?P<high>.{3})", re.DOTALL),
}
_STARTS = (b"\x89PNG\r\n", b"GIF8", b"\xff\xd8\xff", b"RIFF")
_LITTLE = ("image/gif", "image/webp")
_PDF = b"%PDF-"
_PAGE = re.compile(rb"/Type\s*/Page(?![\w])")
_COUNT = re.compile(rb"/Count\s+(\d{1,6})\b")


def show_file(path: str, context: ToolContext) -> Output | None:
    """Return an image or a PDF as the model sees it; None for another file. Raises InvalidInput."""
    with suggest_near(context.workspace), context.workspace.open(path) as file:
        head = file.read(_HEAD_BYTES)
        is_pdf = head.startswith(_PDF)
        is_image = head.startswith(_STARTS) and (head[:4] != b"RIFF" or head[8:12] == b"WEBP")
        if not is_pdf and not is_image:
            return None
        kind = "pdf" if is_pdf else "image"
        if kind not in context.shell.shows:
            raise InvalidInput(f"{path} is {_NAMES[kind]}, which this model cannot be shown")
        content = head + file.read(MOST_BYTES + 1 - len(head))
    if len(content) > MOST_BYTES:
        raise InvalidInput(
            f"{path} is {_NAMES[kind]} of more than {MOST_BYTES // 1_000_000} MB, too large to show"
        )
    return _show_pdf(path, content) if is_pdf else _show_image(path, content)


_NAMES = {"pdf": "a PDF", "image": "an image"}


def _show_image(path: str, content: bytes) -> Output:
    for kind, pattern in _IMAGES.items():
        if found := pattern.match(content):
            order = "little" if kind in _LITTLE else "big"
            wide, high = (int.from_bytes(found[side], order) for side in ("wide", "high"))  # type: ignore[arg-type]
            if max(wide, high) > MOST_PIXELS or not wide * high:
                raise InvalidInput(f"{path} has {wide} x {high} pixels; at most {MOST_PIXELS} can be shown")
            return _output(f"{path}: image, {wide} x {high}", kind, content)
    raise InvalidInput(f"{path} is an image of a form that cannot be shown: convert it to PNG")


def _show_pdf(path: str, content: bytes) -> Output:
    told = max(map(int, _COUNT.findall(content)), default=MOST_PAGES)
    pages = len(_PAGE.findall(content)) or told or MOST_PAGES  # they may lie in compressed objects
    if pages > MOST_PAGES:
        raise InvalidInput(
            f"{path} has {pages} pages; at most {MOST_PAGES} are shown: take some out into a file"
        )
    return _output(f"{path}: PDF, about {pages} pages", f"application/pdf;pages={pages}", content)


def _output(said: str, kind: str, content: bytes) -> Output:
    return Output(content=said, shown=f"data:{kind};base64,{b64encode(content).decode()}")
