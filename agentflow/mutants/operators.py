"""The table of operators: each makes one small edit of the code, which a test of that code notices."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from agentflow.core.record import Record
from agentflow.languages.grammars import SyntaxTree, parse_source
from agentflow.mutants import edits

if TYPE_CHECKING:
    from agentflow.languages.grammars import Node


class Grade(StrEnum):
    STRONG = "strong"
    """One that survives decides: no test would see that the code does something else."""
    WEAK = "weak"
    """One that survives is told: honest tests often let it pass."""


class Operator(StrEnum):
    BODY = "body left out"
    RESULT = "result replaced"
    CONDITION = "condition fixed"
    COMPARISON = "comparison negated"
    LOGIC = "logic changed"
    ARITHMETIC = "arithmetic changed"
    STATEMENT = "statement left out"
    CALL = "call left out"
    PART = "part left out"
    UNWRAPPED = "wrapping left out"
    EMPTIED = "collection emptied"
    RETHROW = "error passed on"
    NARROWED = "fewer errors handled"
    LOOP = "one round only"
    ROUNDS = "one round more"
    OPPOSITE = "opposite called"
    BOOLEAN = "boolean flipped"
    TEXT = "text replaced"
    OTHER_ERROR = "another error raised"
    BOUND = "bound moved"
    NUMBER = "number moved"
    PROSE = "words replaced"
    PATTERN = "pattern changed"
    OWN_COPY = "argument copied"
    """What is sorted, filled or emptied is a copy: only who looks at the argument afterwards can tell."""
    LOOK_ALIKE = "look-alike used"
    """In what the task speaks of: characters that are bytes, a default in the place of 0."""
    OTHER_ALIKE = "other look-alike used"
    """In what it does not speak of: a judge may know what it means."""
    TAKEN_BACK = "change taken back"
    """The one that knows two versions of a file: what stood in the place of some lines stands there again."""


_OPERATORS: Mapping[Operator, Callable[[SyntaxTree], Iterator[edits.Edit]]] = MappingProxyType(
    {
        Operator.BODY: edits.empty_bodies,
        Operator.RESULT: edits.replace_results,
        Operator.CONDITION: edits.fix_conditions,
        Operator.COMPARISON: edits.negate_comparisons,
        Operator.LOGIC: edits.change_logic,
        Operator.ARITHMETIC: edits.change_arithmetic,
        Operator.STATEMENT: edits.leave_statements_out,
        Operator.CALL: edits.leave_calls_out,
        Operator.PART: edits.leave_parts_out,
        Operator.UNWRAPPED: edits.take_wrappings_off,
        Operator.EMPTIED: edits.empty_collections,
        Operator.RETHROW: edits.change_errors,
        Operator.NARROWED: edits.narrow_handlers,
        Operator.LOOP: edits.leave_loops,
        Operator.ROUNDS: edits.add_rounds,
        Operator.OPPOSITE: edits.call_opposites,
        Operator.BOOLEAN: edits.flip_booleans,
        Operator.TEXT: edits.replace_texts,
        Operator.OTHER_ERROR: edits.raise_others,
        Operator.BOUND: edits.move_bounds,
        Operator.NUMBER: edits.move_numbers,
        Operator.PROSE: edits.replace_prose,
        Operator.PATTERN: edits.change_patterns,
        Operator.OWN_COPY: edits.copy_arguments,
    }
)
_WEAK = frozenset({Operator.BOUND, Operator.NUMBER, Operator.PROSE, Operator.PATTERN, Operator.OTHER_ALIKE})
_WHOLE = frozenset({Operator.BODY, Operator.LOOP, Operator.RETHROW, Operator.TAKEN_BACK})
"""Those whose name says more than their text."""
_GENERATED = re.compile(
    r"@generated\b|\bcode generated .* do not edit\b|\bdo not edit\b.*\bgenerated\b", re.IGNORECASE
)
_BEFORE_HEAD = re.compile(rb"[\w\s]*")
"""What may stand before a function, such as `export default`."""
_SAYS = re.compile(r"\b(?!(?:else|try|finally|do|then|fi|done|end|begin|ensure)\b)\w")
_BLOCK = re.compile(
    r"block|body|compound|suite|arm|case|clause|^then|^else|when|do_group|function|method|lambda"
)
_HEAD = 600
"""In so many letters a generated file says that it is one."""
_ROW = 60


class Mutant(Record):
    """One edit of a file, by bytes."""

    path: str
    line: int
    """From 1."""
    block: int
    """The first line of the innermost block that it is in: what runs there, runs together."""
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
        if self.operator in _WHOLE:
            edit: str = self.operator
        elif self.operator is Operator.OWN_COPY:
            edit = f"a copy of {after.split()[0]} changed in its place"
        elif self.operator is Operator.STATEMENT:
            edit = f"{before} → (left out)"
        else:
            edit = f"{before} → {after or '(left out)'}"
        return f"{self.path}:{self.line}  {edit}"


def _to_row(text: str) -> str:
    row = " ".join(text.split())
    return row if len(row) <= _ROW else f"{row[: _ROW - 1]}…"


def list_mutants(
    path: str, text: str, lines: Collection[int], stood: Iterable[Sequence[str]] = ()
) -> tuple[Mutant, ...] | None:
    """Return the mutants of some lines, counted from 1; None for a file that no grammar reads.

    Of a list that only got more elements than one that `stood` there, no other element is tried.
    """
    tree = parse_source(path, text)
    if tree is None:
        return None
    return tuple(_find_mutants(tree, path, lines, stood=stood))


def list_elements(path: str, text: str, lines: Collection[int]) -> list[list[str]]:
    """Return, for each list, table and the like, the elements that begin on some lines."""
    tree = parse_source(path, text)
    return [[*map(tree.read, group)] for group in _group_elements(tree, lines)] if tree else []


def _group_elements(tree: SyntaxTree, lines: Collection[int]) -> Collection[list["Node"]]:
    found = defaultdict[int, list["Node"]](list)
    for each in tree.nodes["element"]:
        if each.start_point.row + 1 in lines and each.parent is not None:
            found[each.parent.id].append(each)
    return found.values()


def _list_stood(tree: SyntaxTree, group: list["Node"], earlier: Sequence[str]) -> list["Node"]:
    """Return the elements of an earlier list; none where it lost one, or they stand in another order."""
    rest, found = [*earlier], list["Node"]()
    for node in group:
        if rest and tree.read(node) == rest[0]:
            found.append(node)
            rest.pop(0)
    return [] if rest else found


def list_look_alikes(path: str, text: str, lines: Collection[int], words: str) -> tuple[Mutant, ...]:
    """Return the mutants of some lines that only some values tell apart, of which a task may speak."""
    tree = parse_source(path, text)
    kinds = {Operator.LOOK_ALIKE: True, Operator.OTHER_ALIKE: False}
    operators = {
        each: partial(edits.use_look_alikes, words, is_told=is_told) for each, is_told in kinds.items()
    }
    return tuple(_find_mutants(tree, path, lines, operators)) if tree else ()


def _find_mutants(
    tree: SyntaxTree,
    path: str,
    lines: Collection[int],
    operators: Mapping[Operator, Callable[[SyntaxTree], Iterator[edits.Edit]]] = _OPERATORS,
    *,
    stood: Iterable[Sequence[str]] = (),
) -> list[Mutant]:
    """Return the mutants of some lines, in the order in which they stand."""
    if _GENERATED.search(tree.text[:_HEAD].decode("utf-8", "replace")):
        return []
    apart = [_span(each) for name in ("ignored", "words", "talk") for each in tree.nodes[name]]
    apart += _list_wordings(tree)
    for group in _group_elements(tree, lines):
        kept = [_list_stood(tree, group, each) for each in stood]
        apart += [_span(each) for each in max(kept, key=len, default=[])]
    blocks = _list_blocks(tree, lines)
    found: dict[tuple[int, int, str], Mutant] = {}
    for operator, operate in operators.items():
        for node, start, end, after in operate(tree):
            line = node.start_point.row + 1
            before = tree.text[start:end].decode("utf-8", "replace")
            parts = ((start, end), _span(node))
            is_apart = any(
                first <= part[0] < last and part[1] <= last for first, last in apart for part in parts
            )
            if line in lines and not is_apart and before != after and line not in tree.broken_lines:
                mutant = Mutant(
                    path=path,
                    line=line,
                    block=max(row for begin, stop, row in blocks if begin <= node.start_byte < stop),
                    start=start,
                    end=end,
                    before=before,
                    after=after,
                    operator=operator,
                )
                found.setdefault((start, end, after), mutant)
    return sorted(found.values(), key=lambda each: (each.start, each.end))


def _span(node: "Node") -> tuple[int, int]:
    return node.start_byte, node.end_byte


def _list_blocks(tree: SyntaxTree, lines: Collection[int]) -> list[tuple[int, int, int]]:
    """Return where the blocks around some lines begin and end, and their first line; outer ones first."""
    found, rest = list[tuple[int, int, int]](), [tree.root]
    first, last = min(lines, default=0) - 1, max(lines, default=0) - 1
    while rest:  # from above: to ask a node for its parent takes as long as it lies deep
        node = rest.pop()
        if node.start_point.row <= last and node.end_point.row >= first:
            if node is tree.root or _BLOCK.search(node.type):
                found.append((*_span(node), node.start_point.row + 1))
            rest += node.children
    return sorted(found)


def _list_wordings(tree: SyntaxTree) -> list[tuple[int, int]]:
    """Return where texts are made that only an error or a log then says: `msg = "…"`, `raise E(msg)`."""
    said = [_span(each) for name in ("words", "talk") for each in tree.nodes[name]]
    uses: dict[str, list[int]] = {}
    for each in tree.nodes["name"]:
        uses.setdefault(tree.read(each), []).append(each.start_byte)
    found = []
    for left in tree.nodes["assigned"]:
        others = [at for at in uses.get(tree.read(left), ()) if at != left.start_byte]
        ends = [any(first <= at < last for first, last in said) for at in others]
        if left.parent is not None and any(ends) and _is_local(tree, left, others, ends):
            found.append(_span(left.parent))
    return found


def _is_local(tree: SyntaxTree, left: "Node", others: list[int], ends: list[bool]) -> bool:
    """Tell whether each use within the function of an assignment is in words, or is another assignment."""
    bodies = [
        _span(each) for each in tree.nodes["body"] if each.start_byte <= left.start_byte < each.end_byte
    ]
    if not bodies:
        return False
    start, end = max(bodies)
    assigned = {each.start_byte for each in tree.nodes["assigned"]}
    uses = [
        is_said for at, is_said in zip(others, ends, strict=True) if start <= at < end and at not in assigned
    ]
    return bool(uses) and all(uses)


def list_untouched(path: str, text: str, lines: Collection[int]) -> tuple[str, ...]:
    """Return the code on some lines that no mutant changes: whole lines, and what operators leave alone.

    Comments, docstrings and annotations are no such code, nor are lines of brackets or `else` alone, nor is
    what opens a function or a table, whose name others say.
    """
    rows = text.splitlines()
    tree = parse_source(path, text)
    if tree is None:
        return tuple(row for at in lines if (row := rows[at - 1].strip()))
    unread = _list_unread(tree)
    apart = [node for name in ("ignored", "words", "talk") for node in tree.nodes[name]]
    parts = [node for node in apart if node.id not in unread and node.start_point.row + 1 in lines]
    silent = [node for name in ("comment", "docstring") for node in tree.nodes[name] if node.id in unread]
    touched = {row + 1 for node in silent for row in range(node.start_point.row, node.end_point.row + 1)}
    for body in tree.nodes["body"]:
        head = body.parent or body
        begin = tree.text[: head.start_byte].rpartition(b"\n")[2]
        if _BEFORE_HEAD.fullmatch(begin):
            touched.update(range(head.start_point.row + 1, body.start_point.row + 2))
    for mutant in _find_mutants(tree, path, lines):
        last = tree.text[: max(mutant.end - 1, mutant.start)].count(b"\n") + 1
        touched.update(range(mutant.line, last + 1))
    whole = (rows[at - 1].strip() for at in lines if at not in touched)
    return (*map(tree.read, parts), *(row for row in whole if _SAYS.search(row) and row[-1] not in "[({"))


def list_unreadable(path: str, text: str, lines: Collection[int]) -> tuple[int, ...]:
    """Return those of some lines that no grammar can read; all of a file in a language without one.

    What a program evaluates as code is a text to its grammar: a condition in it is never tried.
    """
    tree = parse_source(path, text)
    if tree is None:
        return tuple(sorted(lines))
    spans = ((each.start_point.row, each.end_point.row) for each in tree.nodes["evaluated"])
    hidden = {row + 1 for first, last in spans for row in range(first, last + 1)}
    return tuple(sorted((tree.broken_lines | hidden).intersection(lines)))


def _list_unread(tree: SyntaxTree) -> frozenset[int]:
    names = ["comment", "docstring"]
    if not _READS_ANNOTATIONS.search(tree.text):
        names.append("annotation")
    return frozenset(each.id for name in names for each in tree.nodes[name])


_READS_ANNOTATIONS = re.compile(
    rb"\b(?:__annotations__|get_type_hints|get_annotations|signature|singledispatch)\b|(?m:^\s*@[A-Z]\w*)"
)
"""Of Python; and a decorator of TypeScript, such as `@Injectable()`, which may be told the types."""
