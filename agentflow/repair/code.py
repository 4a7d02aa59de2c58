"""A Python file with its tree and the exact place of each node in its bytes."""

import ast
from codecs import BOM_UTF8
from collections.abc import Iterator

from agentflow.core.record import Record

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Scope = FunctionNode | ast.ClassDef | ast.Module


class Mutation(Record):
    """One small replacement in a file."""

    start: int
    """Offset in bytes."""
    end: int
    text: str
    line: int
    kind: str
    """What sort of mistake it would mend, in a word or two."""
    weight: int
    """How unusual such a mistake is; the lightest are tried first."""
    note: str
    """What changes, for people."""


class Code:
    """The parsed text of one file."""

    def __init__(self, raw: bytes) -> None:
        """Parse a file's bytes; raise SyntaxError or ValueError for what is not Python in UTF-8."""
        raw.decode()
        self.raw = raw
        self.tree = ast.parse(raw)
        self.parents: dict[ast.AST, ast.AST] = {
            child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)
        }
        self._starts = [0]
        for line in raw.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._starts[0] = len(BOM_UTF8) if raw.startswith(BOM_UTF8) else 0

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Return where a node begins and ends, in bytes."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        return start, self._starts[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: ast.expr | ast.stmt) -> str:
        start, end = self.span(node)
        return self.raw[start:end].decode("utf-8", "replace")

    def indent(self, node: ast.stmt) -> str:
        """Return the white space before a statement."""
        start = self._starts[node.lineno - 1]
        return self.raw[start : start + node.col_offset].decode("utf-8", "replace")

    def mutation(self, span: tuple[int, int], text: str, kind: str, weight: int) -> Mutation:
        """Return the replacement of a span by a text."""
        was = " ".join(self.raw[span[0] : span[1]].decode("utf-8", "replace").split())
        note = f"`{was}` to `{' '.join(text.split())}`" if was else f"`{' '.join(text.split())}` added"
        line = self.raw.count(b"\n", 0, span[0]) + 1
        return Mutation(start=span[0], end=span[1], text=text, line=line, kind=kind, weight=weight, note=note)

    def swap(self, node: ast.expr | ast.stmt, text: str, kind: str, weight: int) -> Mutation:
        """Return the replacement of a node by a text."""
        return self.mutation(self.span(node), text, kind, weight)

    def exchanged(self, left: ast.expr, right: ast.expr, kind: str) -> Mutation:
        """Return the edit that lets two nodes of a line change places."""
        (start, end), (begin, stop) = self.span(left), self.span(right)
        between = self.raw[end:begin].decode("utf-8", "replace")
        return self.mutation((start, stop), self.text(right) + between + self.text(left), kind, 2)

    def scope(self, node: ast.AST) -> Scope:
        """Return the function or module that a node stands in."""
        return next((each for each in self.above(node) if isinstance(each, FunctionNode)), self.tree)

    def home(self, node: ast.AST) -> Scope:
        """Return the class or module that a node stands in."""
        return next((each for each in self.above(node) if isinstance(each, ast.ClassDef)), self.tree)

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """Return the innermost statement that a node is a part of."""
        return next((each for each in (node, *self.above(node)) if isinstance(each, ast.stmt)), None)

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        while node in self.parents:
            node = self.parents[node]
            yield node


def parsed(raw: bytes) -> Code | None:
    """Return a file's code, or None where nothing can be said about it, because it is not Python."""
    try:
        return Code(raw)
    except (SyntaxError, ValueError):
        return None


def header(statement: ast.stmt) -> range:
    """Return the lines of a statement without the block below it."""
    body = getattr(statement, "body", None)
    first = getattr(statement, "lineno", 1)
    decorators = getattr(statement, "decorator_list", None)
    if decorators:
        first = min(first, *(each.lineno for each in decorators))
    if body:
        return range(first, max(statement.lineno, body[0].lineno - 1) + 1)
    return range(first, (statement.end_lineno or first) + 1)


def applied(raw: bytes, mutation: Mutation) -> bytes:
    """Return a file's bytes with a replacement made."""
    return raw[: mutation.start] + mutation.text.encode() + raw[mutation.end :]
