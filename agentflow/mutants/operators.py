"""The table of operators: each makes one small edit of the code, which a test of that code notices.

A language gives the places by the captures of its query (`languages/queries`), and the few words of its own
that an edit needs; no operator knows a language.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from agentflow.core.record import Record
from agentflow.languages.grammars import SyntaxTree, parse_source

if TYPE_CHECKING:
    from agentflow.languages.grammars import Node


class Grade(StrEnum):
    STRONG = "strong"
    """One that survives decides: no test would see that the code does something else."""
    WEAK = "weak"
    """One that survives is told: honest tests often let it pass."""


class Operator(StrEnum):
    BODY = "body left out"
    CONDITION = "condition fixed"
    COMPARISON = "comparison negated"
    BOUND = "bound moved"
    LOGIC = "logic changed"
    ARITHMETIC = "arithmetic changed"
    STATEMENT = "statement left out"
    CALL = "call left out"
    ARGUMENT = "argument left out"
    RETHROW = "error passed on"
    LOOP = "one round only"
    LITERAL = "value replaced"
    NUMBER = "number moved"


_WEAK = (Operator.BOUND, Operator.NUMBER)


class Mutant(Record):
    """One edit of a file, by bytes."""

    path: str
    line: int
    """From 1."""
    start: int
    end: int
    before: str
    after: str
    operator: Operator

    @property
    def grade(self) -> Grade:
        return Grade.WEAK if self.operator in _WEAK else Grade.STRONG

    def apply(self, text: str) -> str:
        """Return the text of the file with the edit."""
        source = text.encode()
        return (source[: self.start] + self.after.encode() + source[self.end :]).decode("utf-8", "replace")

    def describe(self) -> str:
        """Return it as one line for people: `rates.py:31  default=0 → default=1`."""
        before, after = (_to_row(text) for text in (self.before, self.after))
        match self.operator:
            case Operator.BODY | Operator.LOOP | Operator.RETHROW:
                edit: str = self.operator
            case Operator.STATEMENT:
                edit = f"{before} → (left out)"
            case _:
                edit = f"{before} → {after or '(left out)'}"
        return f"{self.path}:{self.line}  {edit}"


def _to_row(text: str) -> str:
    row = " ".join(text.split())
    return row if len(row) <= _ROW else f"{row[: _ROW - 1]}…"


_ROW = 60
_NEGATED = MappingProxyType(
    {
        "==": "!=",
        "!=": "==",
        "===": "!==",
        "!==": "===",
        "is": "is not",
        "is not": "is",
        "in": "not in",
        "not in": "in",
        "<": ">=",
        ">=": "<",
        ">": "<=",
        "<=": ">",
        "=~": "!~",
        "-eq": "-ne",
        "-ne": "-eq",
        "-lt": "-ge",
        "-ge": "-lt",
        "-gt": "-le",
        "-le": "-gt",
        "=": "!=",
    }
)
_BOUNDS = MappingProxyType({"<": "<=", "<=": "<", ">": ">=", ">=": ">", "-lt": "-le", "-gt": "-ge"})
_JOINS = MappingProxyType({"and": "or", "or": "and", "&&": "||", "||": "&&"})
_ARITHMETIC = MappingProxyType(
    {
        "+": "-",
        "-": "+",
        "*": "/",
        "/": "*",
        "//": "*",
        "%": "*",
        "**": "*",
        "<<": ">>",
        ">>": "<<",
        "&": "|",
        "|": "&",
        "^": "&",
    }
)
_SWAPPED = frozenset({"-", "/", "//", "%", "<<", ">>", "**"})
"""Operators whose sides are no equals."""
_SAME_BUT_TYPE = frozenset(
    {
        "str",
        "list",
        "bool",
        "tuple",
        "set",
        "dict",
        "iter",
        "reversed",
        "sorted",
        "String",
        "Array",
        "Boolean",
    }
    | {"Number", "Some", "Ok", "Box", "len"}
)
"""Calls in whose place their argument is often as good."""

Edit = tuple["Node", int, int, str]
"""The node that decides whether the edit is on a changed line, and from where to where it puts which text."""
_Operate = Callable[[SyntaxTree], Iterator[Edit]]


def _replace(node: "Node", text: str) -> Edit:
    return node, node.start_byte, node.end_byte, text


def _fix_conditions(tree: SyntaxTree) -> Iterator[Edit]:
    for node in tree.nodes["condition"]:
        yield from (_replace(node, each) for each in (tree.grammar.true, tree.grammar.false))


def _list_operations(tree: SyntaxTree, signs: Collection[str]) -> Iterator[tuple["Node", "Node"]]:
    """Yield the operations with one of these signs, and the sign."""
    for node in tree.nodes["binary"]:
        yield from ((node, child) for child in node.children if not child.is_named and child.type in signs)
        named = node.child_by_field_name("operator")  # a shell's `-eq` has a name
        if named is not None and named.is_named and tree.read(named) in signs:
            yield node, named


def _negate_comparisons(tree: SyntaxTree) -> Iterator[Edit]:
    fixed = {(node.start_byte, node.end_byte) for node in tree.nodes["condition"]}
    for node, sign in _list_operations(tree, _NEGATED):
        if (node.start_byte, node.end_byte) not in fixed:  # true and false alone say as much
            yield _replace(sign, _NEGATED[tree.read(sign)])
    for node in tree.nodes["negated"]:
        if node.parent is not None and (node.parent.start_byte, node.parent.end_byte) not in fixed:
            yield _replace(node.parent, tree.read(node))


def _move_bounds(tree: SyntaxTree) -> Iterator[Edit]:
    yield from (_replace(sign, _BOUNDS[tree.read(sign)]) for _, sign in _list_operations(tree, _BOUNDS))


def _change_logic(tree: SyntaxTree) -> Iterator[Edit]:
    for node, sign in _list_operations(tree, _JOINS):
        yield _replace(sign, _JOINS[tree.read(sign)])
        yield from _leave_sides_out(tree, node, sign)


def _change_arithmetic(tree: SyntaxTree) -> Iterator[Edit]:
    for node, sign in _list_operations(tree, _ARITHMETIC):
        said, sides = tree.read(sign), (sign.prev_sibling, sign.next_sibling)
        yield _replace(sign, _ARITHMETIC[said])
        yield from _leave_sides_out(tree, node, sign)
        if said in _SWAPPED and sides[0] is not None and sides[1] is not None:
            left, right = (tree.read(each) for each in sides if each is not None)
            yield _replace(node, f"({right}) {said} ({left})")
    for sign in tree.nodes["assigns"]:
        other = _ARITHMETIC.get(tree.read(sign).removesuffix("="))
        if other and sign.type.endswith("="):
            yield _replace(sign, f"{other}=")


def _leave_sides_out(tree: SyntaxTree, node: "Node", sign: "Node") -> Iterator[Edit]:
    for side in (sign.prev_sibling, sign.next_sibling):
        if side is not None and len(node.children) == 3:  # a side, the sign, a side
            yield _replace(node, tree.read(side))


def _leave_statements_out(tree: SyntaxTree) -> Iterator[Edit]:
    silent = {each.parent.id for each in tree.nodes["talk"] if each.parent is not None}
    for node in tree.nodes["statement"]:
        if not any(each.id in silent for each in (node, *node.named_children)):
            yield _replace(node, tree.grammar.nothing)


def _leave_calls_out(tree: SyntaxTree) -> Iterator[Edit]:
    statements = {(node.start_byte, node.end_byte) for node in tree.nodes["statement"]}
    speaking = {each.id for name in ("words", "talk") for each in tree.nodes[name]}
    for node in tree.nodes["call"]:
        called = node.child_by_field_name("function") or node.child_by_field_name("name") or node.children[0]
        arguments = node.child_by_field_name("arguments")
        first = next(iter(arguments.named_children), None) if arguments is not None else None
        stand_in = first or next(iter(called.named_children), None)
        is_statement = (node.start_byte, node.end_byte) in statements or (
            node.parent is not None and node.parent.type == "expression_statement"
        )
        is_plain = stand_in is not None and "argument" not in stand_in.type and "spread" not in stand_in.type
        is_plain = is_plain and (arguments is None or arguments.id not in speaking)
        if stand_in is not None and is_plain and not is_statement and tree.read(called) not in _SAME_BUT_TYPE:
            yield _replace(node, tree.read(stand_in))


def _leave_arguments_out(tree: SyntaxTree) -> Iterator[Edit]:
    for node in tree.nodes["argument"] if tree.grammar.is_loose else ():
        start, end = node.start_byte, node.end_byte
        before, behind = node.prev_sibling, node.next_sibling
        if behind is not None and behind.type == ",":
            end = behind.end_byte
        elif before is not None and before.type == ",":
            start = before.start_byte
        yield node, start, end, ""


def _empty_bodies(tree: SyntaxTree) -> Iterator[Edit]:
    for node in tree.nodes["body"]:
        if node.parent is not None and node.named_children:
            yield node.parent, node.start_byte, node.end_byte, tree.grammar.empty_body


def _pass_errors_on(tree: SyntaxTree) -> Iterator[Edit]:
    for node in tree.nodes["handler"]:
        yield node, (body := node.children[-1]).start_byte, body.end_byte, tree.grammar.rethrow
    for body in tree.nodes["handler_body"]:
        yield body, body.start_byte, body.end_byte, tree.grammar.rethrow


def _leave_loops(tree: SyntaxTree) -> Iterator[Edit]:
    """Yield loops that end after their first round."""
    for node in tree.nodes["loop"]:
        if node.parent is None:
            continue
        if tree.text[node.end_byte - 1 : node.end_byte] == b"}":
            yield node.parent, node.end_byte - 1, node.end_byte, f" {tree.grammar.leave} }}"
        else:
            indent = " " * node.start_point.column
            yield node.parent, node.end_byte, node.end_byte, f"\n{indent}{tree.grammar.leave}"


def _replace_literals(tree: SyntaxTree) -> Iterator[Edit]:
    for node in tree.nodes["boolean"]:
        is_true = tree.read(node) == tree.grammar.true
        yield _replace(node, tree.grammar.false if is_true else tree.grammar.true)
    for node in tree.nodes["string"]:
        said = tree.read(node)
        prefix = said[: len(said) - len(said.lstrip("bBrRuUfF"))]
        marks = "bB" if prefix.lower().startswith(("b", "rb")) else ""
        is_empty = len(said.strip("bBrRuUfF\"'`#")) == 0
        yield _replace(node, f'{"b" if marks else ""}"{"other" if is_empty else ""}"')


def _move_numbers(tree: SyntaxTree) -> Iterator[Edit]:
    for node in tree.nodes["number"]:
        said = tree.read(node)
        if said.isdecimal():
            yield _replace(node, str(int(said) + 1))


_OPERATORS: Mapping[Operator, _Operate] = MappingProxyType(
    {
        Operator.BODY: _empty_bodies,
        Operator.CONDITION: _fix_conditions,
        Operator.COMPARISON: _negate_comparisons,
        Operator.LOGIC: _change_logic,
        Operator.ARITHMETIC: _change_arithmetic,
        Operator.STATEMENT: _leave_statements_out,
        Operator.CALL: _leave_calls_out,
        Operator.ARGUMENT: _leave_arguments_out,
        Operator.RETHROW: _pass_errors_on,
        Operator.LOOP: _leave_loops,
        Operator.LITERAL: _replace_literals,
        Operator.BOUND: _move_bounds,
        Operator.NUMBER: _move_numbers,
    }
)


def list_mutants(path: str, text: str, lines: Collection[int]) -> tuple[Mutant, ...] | None:
    """Return the mutants of some lines, counted from 1; None for a file that no grammar reads."""
    tree = parse_source(path, text)
    if tree is None:
        return None
    apart = [
        (each.start_byte, each.end_byte) for name in ("ignored", "words", "talk") for each in tree.nodes[name]
    ]
    found: dict[tuple[int, int, str], Mutant] = {}
    for operator, operate in _OPERATORS.items():
        for node, start, end, after in operate(tree):
            line = node.start_point.row + 1
            before = tree.text[start:end].decode("utf-8", "replace")
            is_apart = any(first <= start < last and end <= last for first, last in apart)
            if line in lines and not is_apart and before != after and line not in tree.broken_lines:
                mutant = Mutant(
                    path=path, line=line, start=start, end=end, before=before, after=after, operator=operator
                )
                found.setdefault((start, end, after), mutant)
    return tuple(sorted(found.values(), key=lambda each: (each.start, each.end)))


def list_unreadable(path: str, text: str, lines: Collection[int]) -> tuple[int, ...]:
    """Return those of some lines that the language's grammar cannot read."""
    tree = parse_source(path, text)
    return tuple(sorted(tree.broken_lines.intersection(lines))) if tree else ()
