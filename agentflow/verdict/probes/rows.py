"""New rows of tables and members of enumerations, each of which can be taken out alone."""

import ast
import re
from collections.abc import Iterator

from agentflow.core.languages import SCRIPTS
from agentflow.core.record import Record
from agentflow.core.verdict import Hunk
from agentflow.verdict.probes.breaking import find_changed_lines
from agentflow.verdict.probes.choices import shorten
from agentflow.verdict.syntax import AnyFunction, get_last_word, parse_python
from agentflow.workspace.mixed_tree import ChangedTexts

_Table = ast.Dict | ast.ClassDef
_Found = tuple[int, int]
"""The number of a table in its file, and that of a row in the table; elsewhere than in Python its lines."""
_BY_LINES = (*SCRIPTS, ".go")
_OPENS = re.compile(r"\w.*[{(]")
_ROW = re.compile(r"""\s+(?:["'][^"'\n]*["']|[\w$]+)\s*[:=]\s*(?:-?[\d.]+|"[^"]*"|'[^']*'|true|false)\s*,?""")
"""A name and a plain value, alone on a line."""


class Rows(Record):
    """Neighbouring rows that are taken out together."""

    change: ChangedTexts
    found: tuple[_Found, ...]
    hunk: Hunk

    def take_out(self) -> dict[str, str | None]:
        """Return the file without the rows."""
        if not self.change.path.endswith(".py"):
            gone = {line for first, last in self.found for line in range(first, last + 1)}
            rows = enumerate(self.change.after.splitlines(keepends=True), 1)
            return {self.change.path: "".join(row for line, row in rows if line not in gone)}
        tree = ast.parse(self.change.after)
        tables = list(_list_tables(tree))
        for table, row in reversed(self.found):
            match tables[table]:
                case ast.Dict() as node:
                    del node.keys[row], node.values[row]
                case ast.ClassDef() as node:
                    node.body[row] = ast.copy_location(ast.Pass(), node.body[row])
        return {self.change.path: ast.unparse(tree)}


def split_tables(changes: tuple[ChangedTexts, ...], most: int) -> tuple[Rows, ...]:
    """Return the new rows of all tables, in at most so many groups."""
    rows = [row for each in changes for row in _find_rows(each)]
    size = -(-len(rows) // max(most, 1)) or 1
    return tuple(
        _join(group)
        for path in dict.fromkeys(each.change.path for each in rows)
        for mine in [[each for each in rows if each.change.path == path]]
        for group in (mine[start : start + size] for start in range(0, len(mine), size))
    )


def _join(rows: list[Rows]) -> Rows:
    last = rows[-1].hunk
    hunk = rows[0].hunk.replace(end=last.end)
    found = tuple(each for row in rows for each in row.found)
    return rows[0].replace(found=found, hunk=hunk) if len(rows) > 1 else rows[0]


def _find_rows(change: ChangedTexts) -> Iterator[Rows]:
    if change.path.endswith(".py"):
        yield from _list_rows(change)
    elif change.path.endswith(_BY_LINES):
        yield from _list_lines(change)


def _list_lines(change: ChangedTexts) -> Iterator[Rows]:
    """Yield the new rows of tables that stand outside of everything else, each on its line."""
    lines, opened = find_changed_lines(change), False
    known = {row.strip() for row in change.before.splitlines()}
    for line, row in enumerate(change.after.splitlines(), 1):
        if row and not row[0].isspace():
            opened = _OPENS.fullmatch(row) is not None
        elif opened and line in lines and _ROW.fullmatch(row) and row.strip() not in known:
            wanted = f"that fails without `{shorten(row.strip().rstrip(','))}`"
            hunk = Hunk(path=change.path, line=line, end=line, wanted=wanted)
            yield Rows(change=change, found=((line, line),), hunk=hunk)


def _list_rows(change: ChangedTexts) -> Iterator[Rows]:
    lines, tree = find_changed_lines(change), parse_python(change.after)
    known = {said for each in _list_tables(parse_python(change.before)) for _, said, _ in _read(each)}
    for number, table in enumerate(_list_tables(tree)):
        for row, said, nodes in _read(table):
            first, last = nodes[0].lineno, nodes[-1].end_lineno or nodes[-1].lineno
            if said not in known and lines.issuperset(range(first, last + 1)):
                wanted = f"that fails without `{shorten(said)}`"
                hunk = Hunk(path=change.path, line=first, end=last, wanted=wanted)
                yield Rows(change=change, found=((number, row),), hunk=hunk)


def _list_tables(node: ast.AST) -> Iterator[_Table]:
    """Yield the tables and enumerations that a module defines outside of its functions."""
    for each in ast.iter_child_nodes(node):
        if isinstance(each, _Table) and _is_table(each):
            yield each
        if not isinstance(each, AnyFunction | ast.Lambda):
            yield from _list_tables(each)


def _is_table(node: _Table) -> bool:
    """Return whether a node is a table that takes in no other, or an enumeration."""
    if isinstance(node, ast.Dict):
        return None not in node.keys
    return any(map(_is_enumeration, node.bases))


def _is_enumeration(base: ast.expr) -> bool:
    return get_last_word(base).endswith(("Enum", "Flag"))


def _read(table: _Table) -> Iterator[tuple[int, str, tuple[ast.expr | ast.stmt, ...]]]:
    """Yield the number of each row, its code, and the nodes that it consists of."""
    if isinstance(table, ast.ClassDef):
        for at, node in enumerate(table.body):
            if isinstance(node, ast.Assign):
                yield at, ast.unparse(node), (node,)
        return
    pairs = [(key, value) for key, value in zip(table.keys, table.values, strict=True) if key]
    for at, (key, value) in enumerate(pairs if len(pairs) > 1 else ()):
        if not isinstance(value, ast.Lambda):  # whether that runs is recorded anyway
            yield at, f"{ast.unparse(key)}: {ast.unparse(value)}", (key, value)
