"""A change cut into pieces that can each be reverted alone, to see which of them a test needs."""

import ast
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from itertools import pairwise

from agentflow.core.languages import C_FAMILY
from agentflow.core.record import Record
from agentflow.core.verdict import Hunk
from agentflow.verdict.same.comments import list_code_lines, list_obeyed
from agentflow.verdict.same.equivalence import is_equal_code, is_same_behaviour
from agentflow.verdict.surface import is_document
from agentflow.verdict.syntax import (
    AnyFunction,
    Definition,
    find_first_line,
    is_literal,
    name_imported,
    read_python,
)
from agentflow.workspace.mixed_tree import ChangedTexts, find_differences

_DESCRIBES = frozenset(
    f"__{each}__"
    for each in (
        "version",
        "author",
        "author_email",
        "copyright",
        "date",
        "description",
        "license",
        "title",
        "url",
    )
)
_FRAME = re.compile(r"(?=.*\S)[\s()\[\]{};,]*(?:(?:else|try|finally)\s*[:{]?|end|fi|done)?\s*")
"""A line that stands between others without a meaning of its own; a blank one parts them."""
_INCLUDE = re.compile(r"\s*#\s*include\b")
_DECLARED = re.compile(r"[A-Za-z_][\w\s*]*?\b(\w+)\([^{}]*\);")


class LineSpan(Record):
    """Changed lines of one file; counted from 0, the ends excluded."""

    change: ChangedTexts
    old: tuple[int, int]
    new: tuple[int, int]

    @property
    def path(self) -> str:
        return self.change.path

    @property
    def lines(self) -> Hunk:
        """The lines as people count them."""
        first = self.new[0] + 1
        return Hunk(path=self.path, line=first, end=max(self.new[1], first))

    @property
    def old_numbers(self) -> range:
        """The numbers of its old lines, from 1."""
        return range(self.old[0] + 1, self.old[1] + 1)

    @property
    def new_numbers(self) -> range:
        return range(self.new[0] + 1, self.new[1] + 1)

    @property
    def added(self) -> str:
        return "".join(_lines(self.change.after)[slice(*self.new)])

    @property
    def removed(self) -> str:
        return "".join(_lines(self.change.before)[slice(*self.old)])


class Piece(Record):
    """Changed lines that have to be reverted together."""

    hunks: tuple[LineSpan, ...]

    @property
    def added(self) -> str:
        return "".join(hunk.added for hunk in self.hunks)

    @property
    def removed(self) -> str:
        return "".join(hunk.removed for hunk in self.hunks)

    @property
    def changes(self) -> tuple[ChangedTexts, ...]:
        """The changed files of which it has lines."""
        return tuple(dict.fromkeys(hunk.change for hunk in self.hunks))

    def join(self, other: "Piece") -> "Piece":
        """Return the piece of both, its hunks in the order of the change."""
        found = {*self.hunks, *other.hunks}
        return Piece(hunks=tuple(sorted(found, key=lambda each: (each.path, each.new, each.old))))


def split_change(changes: Iterable[ChangedTexts], most: int) -> tuple[Piece, ...]:
    """Return a change in at most so many pieces, without those that cannot change behaviour."""
    whole = (each for each in changes if each.is_whole)
    pieces = [piece for each in whole for piece in _loadable(each, _pieces(each))]
    for find in (_find_definition, _find_target, _find_user):
        pieces = _join_pieces(pieces, find)
    pieces = [piece for piece in pieces if not _is_neutral(piece)]
    size = -(-len(pieces) // max(most, 1)) or 1
    chunks = (pieces[start : start + size] for start in range(0, len(pieces), size))
    return tuple(reduce(Piece.join, chunk) for chunk in chunks)


def take_back(piece: Piece) -> dict[str, str | None]:
    """Return the files with one piece reverted; None for a file that is then missing."""
    found: dict[str, str | None] = {}
    for change in piece.changes:
        text = _without(change, piece)
        is_absent = not text.strip() and not change.before and not change.modes[0].strip("0")
        found[change.path] = None if is_absent else text
    return found


def _without(change: ChangedTexts, piece: Piece) -> str:
    old, new = _lines(change.before), _lines(change.after)
    parts, place = list[str](), 0
    for hunk in (each for each in piece.hunks if each.change == change):
        parts += new[place : hunk.new[0]] + old[slice(*hunk.old)]
        place = hunk.new[1]
    return "".join(parts + new[place:])


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _pieces(change: ChangedTexts) -> list[Piece]:
    old, new = _lines(change.before), _lines(change.after)
    merged = list[tuple[int, int, int, int]]()
    for span in (each[1:] for each in find_differences(old, new)):
        if merged and all(map(_FRAME.fullmatch, new[merged[-1][3] : span[2]])):
            merged[-1] = (merged[-1][0], span[1], merged[-1][2], span[3])
        else:
            merged.append(span)
    hunks = (LineSpan(change=change, old=(i, j), new=(k, m)) for i, j, k, m in merged)
    return [Piece(hunks=(part,)) for hunk in hunks for part in _by_definition(change, hunk)]


def _by_definition(change: ChangedTexts, hunk: LineSpan) -> Iterator[LineSpan]:
    begins = _begins(change) if hunk.old[0] == hunk.old[1] else ()
    first, last = hunk.new
    cuts = sorted({first, *(line for line in begins if first < line < last)})
    for start, end in pairwise([*cuts, last]):
        yield hunk.replace(new=(start, end))


def _begins(change: ChangedTexts) -> tuple[int, ...]:
    tree = read_python(change.after) if change.path.endswith(".py") else None
    if tree is None:
        return ()
    before = read_python(change.before)
    known = {each.name for each in before.body if isinstance(each, ast.ClassDef)} if before else set[str]()
    classes = (each for each in tree.body if isinstance(each, ast.ClassDef) and each.name in known)
    owners: list[ast.Module | ast.ClassDef] = [tree, *classes]
    found = (each for owner in owners for each in owner.body if isinstance(each, Definition))
    return tuple(find_first_line(each) - 1 for each in found)


def _loadable(change: ChangedTexts, pieces: list[Piece]) -> list[Piece]:
    """Return pieces joined until the file still parses without any one of them."""
    if not change.path.endswith(".py") or read_python(change.after) is None:
        return pieces
    found = list[Piece]()
    for piece in pieces:
        is_torn = bool(found) and read_python(_without(change, found[-1])) is None
        found[-1:] = [found[-1].join(piece)] if is_torn else [*found[-1:], piece]
    while len(found) > 1 and read_python(_without(change, found[-1])) is None:
        found[-2:] = [found[-2].join(found[-1])]
    return found


_FindOther = Callable[[Piece, list[Piece]], Piece | None]


def _join_pieces(pieces: list[Piece], find: _FindOther) -> list[Piece]:
    kept = list(pieces)
    for piece in pieces:
        other = find(piece, [each for each in kept if each != piece])
        if other is not None:
            kept = [other.join(piece) if each == other else each for each in kept if each != piece]
    return kept


def _find_user(piece: Piece, others: list[Piece]) -> Piece | None:
    names = _find_imports(piece)
    mine = (each for each in others if each.hunks[0].path == piece.hunks[0].path)
    return next((each for each in mine if names & {*re.findall(r"\w+", each.added)}), None)


def _find_imports(piece: Piece) -> frozenset[str]:
    path = piece.hunks[0].path
    texts = (piece.added, piece.removed)
    trees = [read_python(textwrap.dedent(text)) for text in texts]
    nodes = [node for tree in trees if tree for node in tree.body]
    if not path.endswith(".py") or None in trees or not nodes:
        return frozenset()
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    names = (name_imported(each) for node in imports for each in node.names)
    return frozenset(names) if len(imports) == len(nodes) else frozenset()


def _find_definition(piece: Piece, others: list[Piece]) -> Piece | None:
    """Return the piece that defines the C functions which a piece declares, since compilers only warn."""
    lines = _core(piece.added).splitlines()
    names = [found[1] for line in lines if (found := _DECLARED.fullmatch(line))]
    users = (each for each in others if any(f"{name}(" in each.added for name in names))
    return next(users, None) if len(names) == len(lines) else None


def _find_target(piece: Piece, others: list[Piece]) -> Piece | None:
    """Return the piece that adds elsewhere the lines that a piece only removes: the code was moved."""
    gone = _core(piece.removed)
    if not gone or _core(piece.added):
        return None
    return next((each for each in others if gone in _core(each.added)), None)


def _core(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


def _is_neutral(piece: Piece) -> bool:
    taken = (each.replace(before=_without(each, piece), modes=(each.modes[1],) * 2) for each in piece.changes)
    return all(map(_is_equal, taken)) or _drops_unused(piece) or _only_describes(piece)


def _only_describes(piece: Piece) -> bool:
    """Return whether a piece only says otherwise what its module is called: a version, its author."""
    trees = [read_python(textwrap.dedent(text)) for text in (piece.removed, piece.added)]
    is_python = all(each.path.endswith(".py") for each in piece.changes) and any(
        each and each.body for each in trees
    )
    return is_python and all(
        tree is not None and all(_read_plain(node) in _DESCRIBES for node in tree.body) for tree in trees
    )


def _drops_unused(piece: Piece) -> bool:
    """Return whether a piece only removes plain values of names that their function no longer uses."""
    change, tree = piece.hunks[0].change, read_python(textwrap.dedent(piece.removed))
    if piece.added.strip() or not change.path.endswith(".py") or not tree or not tree.body:
        return False
    names = [_read_plain(node) for node in tree.body]
    before, after = read_python(change.before), read_python(change.after)
    owners = {_find_function(before, hunk.old[0] + 1) for hunk in piece.hunks} if before else {""}
    left = [each for each in ast.walk(after) if isinstance(each, AnyFunction)] if after else []
    mine = [each for each in left if {each.name} == owners]
    words = {*re.findall(r"\w+", ast.unparse(mine[0]))} if len(mine) == 1 else {""}
    return all(names) and words.isdisjoint((*names, "", "locals", "vars", "eval", "exec"))


def _read_plain(node: ast.stmt) -> str:
    """Return the name to which a statement gives a plain value; empty for any other statement."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name if is_literal(value) else ""
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            return name if is_literal(value) else ""
        case _:
            return ""


def _find_function(tree: ast.Module, line: int) -> str:
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, AnyFunction) and node.lineno < line <= (node.end_lineno or 0)
    ]
    return max(around, key=lambda node: node.lineno).name if around else ""


def _is_equal(change: ChangedTexts) -> bool:
    """Return whether a file differs in comments, formatting or examples only; no document does."""
    is_equal = is_equal_code(change) or is_same_behaviour((change,)) or _is_commented(change)
    return is_equal and not is_document(change)


def _is_commented(change: ChangedTexts) -> bool:
    """Return whether a file differs only in what no mutant is made of: comments, docstrings, C's includes.

    A header says no names, so no lines are known that use it; C compiles without most of them.
    """
    texts, is_c = (change.before, change.after), change.path.endswith(C_FAMILY)
    before, after = (
        [
            line.rstrip()
            for line in list_code_lines(change.path, text)
            if line.strip() and not (is_c and _INCLUDE.match(line))
        ]
        for text in texts
    )
    obeyed = [list_obeyed(change.path, text) for text in texts]
    return bool(change.before) and before == after and obeyed[0] == obeyed[1]
