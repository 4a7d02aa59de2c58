"""The changed lines of a change, in hunks that can each be taken back alone, to see which a test needs."""

import ast
import re
import textwrap
from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise

from agentflow.core.languages import C_FAMILY, RUST
from agentflow.core.record import Record
from agentflow.core.verdict import Hunk
from agentflow.verdict.mixed_files import blank_checks
from agentflow.verdict.same.comments import list_code_lines, list_obeyed
from agentflow.verdict.same.equivalence import is_equal_code, is_same_behaviour
from agentflow.verdict.surface import is_document
from agentflow.verdict.syntax import AnyFunction, Definition, find_first_line, is_literal, read_python
from agentflow.workspace.mixed_tree import ChangedTexts, find_differences

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

    def take_back(self) -> str:
        """Return the new text of the file with the old lines in the place of these."""
        new = _lines(self.change.after)
        return "".join((*new[: self.new[0]], self.removed, *new[self.new[1] :]))


def split_change(changes: Iterable[ChangedTexts]) -> tuple[LineSpan, ...]:
    """Return the hunks of a change, without those that cannot change behaviour."""
    found = (hunk for each in changes if each.is_whole for hunk in _split_file(each))
    return tuple(each for each in found if not _is_neutral(each))


def drop_moved(hunks: Collection[LineSpan]) -> tuple[LineSpan, ...]:
    """Return the hunks that a test may miss, once they are taken back alone."""
    return tuple(each for each in hunks if not _is_elsewhere(each, hunks))


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _split_file(change: ChangedTexts) -> Iterator[LineSpan]:
    old, new = _lines(change.before), _lines(change.after)
    merged = list[tuple[int, int, int, int]]()
    for span in (each[1:] for each in find_differences(old, new)):
        if merged and all(map(_FRAME.fullmatch, new[merged[-1][3] : span[2]])):
            merged[-1] = (merged[-1][0], span[1], merged[-1][2], span[3])
        else:
            merged.append(span)
    for i, j, k, m in merged:
        begins = _list_begins(change) if i == j else ()
        cuts = sorted({k, *(line for line in begins if k < line < m)})
        yield from (LineSpan(change=change, old=(i, j), new=each) for each in pairwise([*cuts, m]))


def _list_begins(change: ChangedTexts) -> tuple[int, ...]:
    """Return where functions and classes begin that may have come at once and yet apart."""
    tree = read_python(change.after) if change.path.endswith(".py") else None
    if tree is None:
        return ()
    before = read_python(change.before)
    known = {each.name for each in before.body if isinstance(each, ast.ClassDef)} if before else set[str]()
    classes = (each for each in tree.body if isinstance(each, ast.ClassDef) and each.name in known)
    owners: list[ast.Module | ast.ClassDef] = [tree, *classes]
    found = (each for owner in owners for each in owner.body if isinstance(each, Definition))
    return tuple(find_first_line(each) - 1 for each in found)


def _is_elsewhere(hunk: LineSpan, hunks: Collection[LineSpan]) -> bool:
    """Return whether another hunk is what counts: where code went, or what C functions do.

    Beside moved code what stood there before would only be there twice; of a declaration compilers warn.
    """
    gone, came = _core(hunk.removed), _core(hunk.added)
    others = [each.added for each in hunks if each is not hunk]
    if gone and not came:
        return any(gone in _core(added) for added in others)
    declared = [_DECLARED.fullmatch(line) for line in came.splitlines()]
    names = [found[1] for found in declared if found]
    return len(names) == len(declared) and any(f"{name}(" in added for added in others for name in names)


def _core(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


def _is_neutral(hunk: LineSpan) -> bool:
    """Return whether a hunk can be taken back without any effect."""
    change = hunk.change
    taken = change.replace(before=hunk.take_back(), modes=(change.modes[1],) * 2)
    is_equal = is_equal_code(taken) or is_same_behaviour((taken,)) or _is_commented(taken)
    if hunk.path.endswith(RUST):  # which has its tests beside the code
        product = [blank_checks(hunk.path, text, is_cut=True) for text in (taken.before, taken.after)]
        is_equal = is_equal or product[0] == product[1]
    return (is_equal and not is_document(taken)) or _drops_unused(hunk)


def _drops_unused(hunk: LineSpan) -> bool:
    """Return whether a hunk only removes plain values of names that their function no longer uses."""
    change, tree = hunk.change, read_python(textwrap.dedent(hunk.removed))
    if hunk.added.strip() or not change.path.endswith(".py") or not tree or not tree.body:
        return False
    names = [_read_plain(node) for node in tree.body]
    before, after = read_python(change.before), read_python(change.after)
    owner = _find_function(before, hunk.old[0] + 1) if before else ""
    left = [each for each in ast.walk(after) if isinstance(each, AnyFunction)] if after else []
    mine = [each for each in left if each.name == owner]
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


def _is_commented(change: ChangedTexts) -> bool:
    """Return whether a file differs only in what no test can be asked about.

    That are comments, docstrings, what a module says of itself (`__all__`, its version), types of TypeScript,
    which most of its runners never read, and C's includes: a header says no names, so no lines are known that
    use it, and C compiles without most of them.
    """
    texts, is_c = (change.before, change.after), change.path.endswith(C_FAMILY)
    before, after = (
        [
            line.rstrip()
            for line in list_code_lines(change.path, text, ("docstring", "described"))
            if line.strip() and not (is_c and _INCLUDE.match(line))
        ]
        for text in texts
    )
    obeyed = [list_obeyed(change.path, text) for text in texts]
    return bool(change.before) and before == after and obeyed[0] == obeyed[1]
