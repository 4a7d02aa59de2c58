"""Symbols, References and Rename: what the code defines and uses, by its syntax, from the index."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from agentflow.core.errors import InvalidInput, NotAllowed, ToolError
from agentflow.core.languages import is_test_path
from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.core.tool import Category, Effect, Output, Subject, Tool, ToolContext
from agentflow.redact import list_some, redact_text
from agentflow.settings import find_folders
from agentflow.symbols.read import find_occurrences
from agentflow.tools.files import WRITE
from agentflow.tools.search import Query, compile_regex, find_lines

if TYPE_CHECKING:
    from agentflow.symbols.index import FoundSymbol, SymbolIndex

_MOST_LINES = 60
_MOST_TEXT = 160
_MOST_MENTIONS = 12
_BUILD_SECONDS = 20
_QUALIFIED = regex(r"\.|::|#|->")
_IDENTIFIER = regex(r"[^\W\d][\w$]*[?!]?")


class SymbolsInput(Record):
    query: str


class ReferencesInput(Record):
    symbol: str


class RenameInput(Record):
    symbol: str
    to: str


class _Place(NamedTuple):
    path: str
    line: int
    text: str
    is_definition: bool

    def describe(self) -> str:
        return f"{self.path}:{self.line}: {self.text[:_MOST_TEXT]}"


def find_symbols(wanted: SymbolsInput, context: ToolContext) -> Output:
    """Find definitions by name."""
    with _open_current(context) as (index, note):
        owner, name = _split(wanted.query)
        found = index.find_definitions([name])
        found = [each for each in found if owner and each.definition.owner == owner] or found
        if not found:
            found = index.find_definitions(index.find_similar_names(_split(wanted.query)[1]))
        return _to_output(_show_definitions(found, context), "no such definition", note)


def find_references(wanted: ReferencesInput, context: ToolContext) -> Output:
    """List uses of a name in code."""
    name = _split(wanted.symbol)[1]
    with _open_current(context) as (index, note):
        paths = index.find_files_with(name)
        places = [place for path in paths for place in _find_places(path, name, context)]
    places.sort(key=lambda each: (is_test_path(each.path), each.path, each.line))
    return _to_output((each.describe() for each in places if not each.is_definition), "no uses", note)


def rename(wanted: RenameInput, context: ToolContext) -> Output:
    """Rename `name` or `path:name` in code."""
    path, _, symbol = wanted.symbol.rpartition(":")
    within = "" if path.endswith(":") else path
    old, new = _split(symbol)[1], wanted.to
    if not _IDENTIFIER.fullmatch(new) or new == old:
        raise InvalidInput("to: is not another name")
    below = context.workspace.to_relative(within or ".")
    with _open_current(context) as (index, note):
        if note:
            raise NotAllowed(f"{note}; try again")
        _require_one(old, [each for each in index.find_definitions([old]) if _is_below(each.path, below)])
        paths = [path for path in index.find_files_with(old) if _is_below(path, below)]
    places = {path: found for path in paths if (found := _find_places(path, old, context))}
    if taken := [path for path in places if _find_places(path, new, context)]:
        raise NotAllowed(f"{new} is a name in {list_some(taken, 3)} already: choose another one")
    refused = _write_all({path: _replace(path, old, new, context) for path in places}, context)
    lines = [each.describe() for found in places.values() for each in found]
    told = f"renamed {old} to {new}, which stood at:"
    rest = () if refused else _list_mentions(old, below, context)
    return Output(content="\n".join((refused or told, *_cut(lines), *rest)), is_error=bool(refused))


def _write_all(contents: dict[str, str], context: ToolContext) -> str:
    """Write files one by one; return after which it stopped and why, or nothing."""
    done = list[str]()
    try:
        for path, content in contents.items():
            context.shell.make(WRITE.name, {"file_path": path, "content": content})
            done.append(path)
    except ToolError as error:
        return f"stopped after {list_some(done, 20) or 'no file'}: {error}"
    return ""


def _tool(name: str, effect: Effect, kind: type[Record], call: Callable[[Any, ToolContext], Output]) -> Tool:
    subjects = dict.fromkeys(kind.__struct_encode_fields__, Subject.TEXT)  # Rename changes files by Write
    return Tool(name=name, category=Category.REPO, effect=effect, input=kind, call=call, subjects=subjects)


SYMBOLS = _tool("Symbols", Effect.READ, SymbolsInput, find_symbols)
REFERENCES = _tool("References", Effect.READ, ReferencesInput, find_references)
RENAME = _tool("Rename", Effect.WRITE, RenameInput, rename)
INDEX_TOOLS = (SYMBOLS, REFERENCES, RENAME)


@contextmanager
def _open_current(context: ToolContext) -> Iterator[tuple["SymbolIndex", str]]:
    """Yield the index as the files are now, with a note if it lacks some. Raises ToolError."""
    from agentflow.symbols.build import build, read_stale_files  # noqa: PLC0415  # SQLite, where it is asked
    from agentflow.symbols.index import open_index  # noqa: PLC0415

    database, root = find_folders(os.environ).symbols, context.workspace.root
    paths = context.workspace.list_files()
    with open_index(database, root) as index:
        is_current = read_stale_files(index, paths)
    is_current = is_current or build(database, root, paths, _BUILD_SECONDS, context.cancelled)
    with open_index(database, root) as index:
        count = "" if is_current else f"{index.count_files():,}"
        yield index, f"[the index is being built: {count} files so far]" if count else ""


def _split(symbol: str) -> tuple[str, str]:
    """Return the owner of a name, if it is qualified, and the name."""
    *outer, name = _QUALIFIED.split(symbol.removesuffix("()"))
    return outer[-1] if outer else "", name


def _show_definitions(found: "Iterable[FoundSymbol]", context: ToolContext) -> Iterator[str]:
    from agentflow.symbols.repo_map import format_symbol  # noqa: PLC0415

    order = sorted(found, key=lambda each: (is_test_path(each.path), each.path, each.definition.first))
    texts: dict[str, list[str]] = {}
    for path, one in order:
        lines = texts.get(path) or texts.setdefault(path, (_read(path, context) or "").split("\n"))
        if len(lines) >= one.first:
            yield format_symbol(path, lines, one)


def _find_places(path: str, name: str, context: ToolContext) -> list[_Place]:
    text = _read(path, context)
    found = find_occurrences(path, text, name) if text else ()
    lines = text.split("\n") if text and found else []
    return [_Place(path, each.line, lines[each.line - 1].strip(), each.is_definition) for each in found]


def _read(path: str, context: ToolContext) -> str | None:
    """Return what a role may see of a file."""
    content = context.workspace.peek(path)
    return None if content is None else redact_text(content.decode("utf-8", "replace"))


def _replace(path: str, old: str, new: str, context: ToolContext) -> str:
    """Return a file with another name in each place. Raises NotAllowed."""
    try:
        text = context.workspace.read(path).decode()
    except UnicodeDecodeError:
        raise NotAllowed(f"{path} is not UTF-8: rename it there with Edit") from None
    raw, place, parts = text.encode(), 0, list[bytes]()
    for each in find_occurrences(path, text, old):
        parts += (raw[place : each.start], new.encode())
        place = each.start + len(old.encode())
    return b"".join((*parts, raw[place:])).decode()


def _require_one(name: str, found: "list[FoundSymbol]") -> None:
    """Raise NotAllowed for a name that several definitions share: syntax does not tell their uses apart."""
    if not found:
        raise InvalidInput(f"{name}: no such definition")
    owners = {(each.path, each.definition.owner) for each in found}
    if len(owners) > 1:
        places = [f"{each.path}:{each.definition.first}" for each in found]
        raise NotAllowed(
            f"{name} is defined {len(owners)} times, at {list_some(places, 5)}: give `path:{name}` if "
            "one file or folder has the definition and all of its uses, else use Edit"
        )


def _is_below(path: str, below: str) -> bool:
    return below in {".", path} or path.startswith(f"{below}/")


def _list_mentions(name: str, below: str, context: ToolContext) -> Iterator[str]:
    """Yield where the name is left in comments, strings and other files."""
    pattern = compile_regex(rf"\b{re.escape(name)}\b")
    found = find_lines(Query(workspace=context.workspace, regex=pattern, below=below))
    paths = {each.path for each in found}
    seen = {(path, each.line) for path in paths for each in _find_places(path, name, context)}
    told = (_Place(each.path, each.number, each.text.strip(), is_definition=False) for each in found)
    left = [each.describe() for each in told if (each.path, each.line) not in seen]
    if left:
        yield "not changed, as it is text:"
        yield from _cut(left, _MOST_MENTIONS)


def _to_output(lines: Iterable[str], nothing: str, note: str) -> Output:
    return Output(content="\n".join(filter(None, (*_cut([*lines] or [nothing]), note))))


def _cut(lines: list[str], most: int = _MOST_LINES) -> Iterator[str]:
    yield from lines[:most]
    if len(lines) > most:
        yield f"[{len(lines) - most} more left out]"
