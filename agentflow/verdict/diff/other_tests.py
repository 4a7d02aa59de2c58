"""Tests in other languages than Python: those that a change adds to a file."""

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING

from agentflow.core.regex import regex
from agentflow.languages.grammars import SyntaxTree, parse_source
from agentflow.workspace.mixed_tree import find_differences

if TYPE_CHECKING:
    from agentflow.languages.grammars import Node

_CALLED = regex(r"(?:test|it|specify)(?:\.\w+)*")
_GO_SETUP = regex(r"(?m)^func (?:init|TestMain)\(")
_RUST_MARK = "#[test]"
_IMPORTS = frozenset({"object_pattern", "named_imports", "import_spec_list"})
_IMPORTED = regex(r'\w+|"[\w./-]+"|,')
"""A name, or a package of Go, without what would let it do more."""


def find_added_tests(path: str, before: str, after: str) -> frozenset[str]:
    """Return the names of the tests added to a file; none if anything else in it changed.

    A test stands whole beside others that begin like it. Further imports are no difference.
    """
    old, new = parse_source(path, before), parse_source(path, after)
    if old is None or new is None or new.broken_lines or old.broken_lines:
        return frozenset()
    if not before and not _GO_SETUP.search(after):
        return frozenset(name for name, _ in _list_tests(new, new.root))
    return frozenset(_list_added((old, old.root), (new, new.root)) or ())


def list_tests_on(path: str, text: str, lines: Iterable[int]) -> frozenset[str]:
    """Return the names of the tests that have some lines, counted from 1."""
    tree, numbers = parse_source(path, text), {*lines}
    spans = _list_tests(tree, tree.root) if tree else ()
    return frozenset(name for name, span in spans if not numbers.isdisjoint(span))


def _list_tests(tree: SyntaxTree, node: "Node") -> Iterator[tuple[str, range]]:
    for child in node.named_children:
        if begin := _read_begin(tree, child):
            yield begin[1], range(child.start_point.row + 1, child.end_point.row + 2)
        else:
            yield from _list_tests(tree, child)


def _read_begin(tree: SyntaxTree, node: "Node") -> tuple[str, str] | None:
    """Return how a test begins, and its name; None for what is no test."""
    if node.type == "expression_statement":
        node = node.named_children[0]
    called = node.child_by_field_name("name") or node.child_by_field_name("function")
    name, mark, given = tree.read(called) if called else "", node.prev_named_sibling, node.named_children[-1:]
    is_marked = mark is not None and tree.read(mark) == _RUST_MARK
    match node.type:
        case "function_declaration" if name.startswith("Test"):
            return node.type, name
        case "function_item" if is_marked:
            return node.type, name
        case "call_expression" if _CALLED.fullmatch(name) and given[0].named_children:
            said = given[0].named_children[0]
            return (name, tree.read(said)[1:-1]) if "string" in said.type else None
        case _:
            return None


def _list_added(was: tuple[SyntaxTree, "Node"], now: tuple[SyntaxTree, "Node"]) -> set[str] | None:
    (old, before), (new, after) = was, now
    if before.type != after.type or not after.children or _read_between(*was) != _read_between(*now):
        return None
    begins = {begin[0] for each in before.children if (begin := _read_begin(old, each))}
    names = set[str]()
    texts = [[tree.read(each) for each in node.children] for tree, node in (was, now)]
    for _, first, last, start, end in find_differences(*texts):
        for known, gained in zip_longest(before.children[first:last], after.children[start:end]):
            if gained is None:
                return None
            if known is not None:
                found = _list_added((old, known), (new, gained))
            elif (begin := _read_begin(new, gained)) is not None:
                found = {begin[1]} if begin[0] in begins else None
            else:
                found = set() if _is_harmless(after, gained, new.read(gained)) else None
            if found is None:
                return None
            names |= found
    return names


def _read_between(tree: SyntaxTree, node: "Node") -> list[bytes]:
    """Return the text of a node that belongs to no child, such as that of strings in some grammars."""
    ends = [node.start_byte, *(each.end_byte for each in node.children)]
    starts = [*(each.start_byte for each in node.children), node.end_byte]
    return b" ".join(tree.text[end:start] for end, start in zip(ends, starts, strict=True)).split()


def _is_harmless(owner: "Node", node: "Node", text: str) -> bool:
    """Return whether a new node is a comment, the mark of a test, a further import, or nothing."""
    is_import = owner.type in _IMPORTS and _IMPORTED.fullmatch(text) is not None
    return is_import or "comment" in node.type or text.strip() in ("", ";", _RUST_MARK)
