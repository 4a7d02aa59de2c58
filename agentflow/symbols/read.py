"""What a source file defines, uses and imports, by the symbol query of its language."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING

from agentflow.core.record import Record
from agentflow.languages.grammars import GRAMMARS, SYMBOL_QUERY, SyntaxTree, parse_source

if TYPE_CHECKING:
    from agentflow.languages.grammars import Node

INDEXED = frozenset(suffix for grammar in GRAMMARS for suffix in grammar.suffixes)
_LEAST_FILES = 20
"""A repository with fewer source files is searched faster than a map of it is read; the tools cost tokens."""
MAX_SOURCE_BYTES = 512 * 1024
_LONG_LINES = 300
"""Bytes a line by which a file is no source that people wrote."""
_MUCH = 20_000


def is_worth_indexing(paths: Iterable[str]) -> bool:
    """Return whether a repository has enough source for an index, its map and its tools."""
    found = (path for path in paths if path[path.rfind(".") :] in INDEXED)
    return any(True for _ in islice(found, _LEAST_FILES - 1, None))  # of 50,000 few are looked at


class SymbolKind(StrEnum):
    CLASS = "c"
    """Whatever has members."""
    FUNCTION = "f"
    VALUE = "v"


class SymbolDefinition(Record):
    """A name where it is defined; lines count from 1."""

    name: str
    owner: str
    """The class, namespace or the like that it is a member of."""
    first: int
    head: int
    """The last line of its signature."""
    last: int
    kind: SymbolKind = SymbolKind.FUNCTION
    is_local: bool = False
    """It is inside of a function, so that no other file can use it."""


class FileSymbols(Record):
    definitions: tuple[SymbolDefinition, ...] = ()
    uses: tuple[str, ...] = ()
    """Names, each once, of which some are defined in other files."""
    imports: tuple[str, ...] = ()
    """The names of imported modules and files, as they stand there."""


class Occurrence(Record):
    """A place of a name, as an offset into the bytes of the file."""

    name: str
    start: int
    line: int
    is_definition: bool


def is_readable(content: bytes) -> bool:
    """Return whether a file is no binary, no bundle, and not too large."""
    is_bundle = len(content) > _MUCH and len(content) > _LONG_LINES * (content.count(b"\n") + 1)
    return len(content) <= MAX_SOURCE_BYTES and b"\0" not in content and not is_bundle


def read_symbols(path: str, content: bytes) -> FileSymbols:
    tree = (
        parse_source(path, content.decode("utf-8", "replace"), SYMBOL_QUERY) if is_readable(content) else None
    )
    if tree is None:
        return FileSymbols()
    names = {node.start_byte for node in tree.nodes["name"]}
    uses = {tree.read(node) for node in tree.nodes["use"] if node.start_byte not in names}
    imports = {_to_word(tree.read(node)).strip("\"'<>") for node in tree.nodes["import"]}
    return FileSymbols(
        definitions=tuple(_list_definitions(tree)),
        uses=tuple(sorted(name for name in uses if len(name) > 1)),
        imports=tuple(sorted(imports)),
    )


def find_occurrences(path: str, text: str, *names: str) -> tuple[Occurrence, ...]:
    """Return where names are defined or used in a file, in order; texts and comments do not count."""
    tree = parse_source(path, text, SYMBOL_QUERY) if any(name in text for name in names) else None
    if tree is None:
        return ()
    wanted = {name.encode(): name for name in names}
    found = {
        node.start_byte: Occurrence(
            name=name, start=node.start_byte, line=node.start_point.row + 1, is_definition=known
        )
        for known in (False, True)
        for node in tree.nodes["name" if known else "use"]
        if (name := wanted.get(tree.text[node.start_byte : node.end_byte]))
    }
    return tuple(found[start] for start in sorted(found))


def _list_definitions(tree: SyntaxTree) -> Iterator[SymbolDefinition]:
    """Yield what is defined; a name belongs to the innermost definition around it."""
    classes = {node.id for node in tree.nodes["class"]}
    whole = sorted((*tree.nodes["class"], *tree.nodes["definition"]), key=lambda node: node.start_byte)
    around: list[Node] = []
    waiting = [*reversed(whole)]
    for name in tree.nodes["name"]:
        while waiting and waiting[-1].start_byte <= name.start_byte:
            around = [node for node in around if node.end_byte > waiting[-1].start_byte]
            around.append(waiting.pop())
        around = [node for node in around if node.end_byte > name.start_byte]
        if not around:
            continue
        *outer, node = around
        owner = next((_read_title(tree, each) for each in reversed(outer) if each.id in classes), "")
        kind = SymbolKind.CLASS if node.id in classes else SymbolKind.FUNCTION
        body = _find_body(node)
        yield SymbolDefinition(
            name=_to_word(tree.read(name)),
            owner=owner,
            first=node.start_point.row + 1,
            head=_find_head(tree, node, body),
            last=node.end_point.row + 1,
            kind=kind if body or kind is SymbolKind.CLASS else SymbolKind.VALUE,
            is_local=any(each.id not in classes for each in outer),
        )


def _read_title(tree: SyntaxTree, node: "Node") -> str:
    title = node.child_by_field_name("name") or node.child_by_field_name("type")
    return _to_word(tree.read(title).split("<")[0]) if title else ""


def _find_body(node: "Node") -> "Node | None":
    value = node.child_by_field_name("value") or node
    return node.child_by_field_name("body") or value.child_by_field_name("body")


def _find_head(tree: SyntaxTree, node: "Node", body: "Node | None") -> int:
    """Return the last line of a signature, which ends where the body begins."""
    signature = tree.text[node.start_byte : body.start_byte].rstrip() if body else b""
    return node.start_point.row + 1 + signature.count(b"\n")


def _to_word(text: str) -> str:
    return " ".join(text.split())
