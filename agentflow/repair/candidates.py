"""The edits that are tried at suspicious lines: single ones, one at several places, two of a line."""

import ast
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

from agentflow.core.record import Record
from agentflow.repair.clues import EditPlace, Hints, Rule, TestTrace, list_tested, read_hints
from agentflow.repair.conditions import CONDITION_RULES
from agentflow.repair.literals import LITERAL_RULES
from agentflow.repair.naming import mutate_names
from agentflow.repair.operators import mutate_access, mutate_operators, mutate_statements
from agentflow.repair.sources import Code, FunctionNode, Mutation, Sources, find_header_lines, parse_code
from agentflow.repair.statements import STATEMENT_RULES
from agentflow.repair.wrapping import WRAPPING_RULES

_MOST_PAIRED = 24
"""Light edits of a statement that are tried in pairs."""

_LIGHT = 2

_MOST_ALIKE = 6
MOST_CANDIDATES = 6_000
"""Candidates tried before we say that nothing mends it."""
RIVAL_REACH = 4
"""The weight by which an edit may exceed the plausible one that it is compared with."""
_STEP = 2
"""What the steps by which an edit is unusual are counted in, so that doubts are parts of one."""
_DOUBT: Mapping[str, int] = {
    **dict.fromkeys(("missing call", "missing statement"), 1),
    **dict.fromkeys(("constant", "extra operand", "other expression", "missing term", "wrong access"), 2),
    **dict.fromkeys(("extra increment", "extra guard"), 2),
    **dict.fromkeys(("missing guard", "missing bound", "missing increment", "missing decrement"), 3),
    **dict.fromkeys(("missing slice",), 3),
}
"""The extra weight of an edit that passes a test by chance more often than a name does."""
MOST_RIVALS = 400
"""The most edits that are tried beside the first plausible one, unless that one came late."""
_SPECIAL = 3
"""The extra weight of an edit that treats a value specially which only the tests name."""
_CASES = ("missing guard", "missing bound", "missing condition", "return value")
_LITERAL = re.compile(r"-?\d+(?:\.\d+)?|'[^']*'|\"[^\"]*\"")
_HARMLESS = frozenset({"0", "1", "2", "-1", "''", "' '"})


def repeat_edits(code: Code, mutations: Iterable[Mutation]) -> Iterator[Mutation]:
    """Yield each edit that fits at several places of a function, made at all of them, and at two."""
    alike: dict[tuple[str, bytes, str], list[Mutation]] = defaultdict(list)
    for each in mutations:
        if each.end > each.start:
            alike[each.kind, code.raw[each.start : each.end], each.text].append(each)
    for same in alike.values():
        if 1 < len(same) <= _MOST_ALIKE:
            yield from _join_all(code, [same, *combinations(same, 2)], 1)


def pair_edits(code: Code, mutations: Sequence[Mutation]) -> Iterator[Mutation]:
    """Yield pairs of the lightest edits of one statement."""
    light = sorted((each for each in mutations if each.weight <= _LIGHT), key=lambda each: each.weight)
    yield from _join_all(code, combinations(light[:_MOST_PAIRED], 2), 2)


def _join_all(code: Code, groups: Iterable[Sequence[Mutation]], more: int) -> Iterator[Mutation]:
    for group in groups:
        joined = join_edits(code, group, more)
        if joined is not None:
            yield joined


def join_edits(code: Code, group: Sequence[Mutation], more: int) -> Mutation | None:
    """Return several edits of a file as one, so much heavier than the heaviest; None where they overlap."""
    ordered = sorted(group, key=lambda each: (each.start, each.end))
    text, at = "", ordered[0].start
    for each in ordered:
        if each.start < at or (each.start == at and each is not ordered[0]):
            return None
        text += code.raw[at : each.start].decode("utf-8", "replace") + each.text
        at = each.end
    kinds = dict.fromkeys(each.kind for each in ordered)
    return Mutation(
        start=ordered[0].start,
        end=at,
        text=text,
        line=ordered[0].line,
        kind=" and ".join(kinds),
        weight=max(each.weight for each in ordered) + more,
        note="; ".join(dict.fromkeys(each.note for each in ordered)),
    )


_RULES: tuple[Rule, ...] = (
    Rule((ast.AST,), lambda code, node, _: mutate_operators(code, node)),
    Rule((ast.Assign, ast.Subscript), lambda code, node, _: mutate_access(code, node)),
    Rule((ast.AST,), lambda code, node, _: mutate_names(code, node)),
    Rule((ast.AST,), lambda code, node, _: mutate_statements(code, node)),
    *LITERAL_RULES,
    *WRAPPING_RULES,
    *CONDITION_RULES,
    *STATEMENT_RULES,
)


class Candidate(Record):
    """One edit, and where it stands in the order."""

    path: str
    mutation: Mutation
    cost: int
    distance: int
    """Lines between it and the innermost frame of a failure."""
    is_special: bool = False
    """True if it treats a value specially which only the tests name."""

    @property
    def title(self) -> str:
        """The change in one line."""
        return f"{self.path}:{self.mutation.line} {self.mutation.kind}: {self.mutation.note}"

    @property
    def doubt(self) -> int:
        """The likelihood that the edit passes a test by chance."""
        return max(_DOUBT.get(kind, 0) for kind in self.mutation.kind.split(" and "))

    @property
    def weight(self) -> int:
        """The unusualness of the edit, larger where it passes a test by chance."""
        return _STEP * self.cost + self.doubt

    @property
    def rank(self) -> tuple[int, int, str, int, int, str]:
        edit = self.mutation
        return (self.cost, self.distance, self.path, edit.start, edit.end - edit.start, edit.text)


def list_candidates(
    sources: Sources, places: tuple[EditPlace, ...], seen: TestTrace
) -> tuple[Candidate, ...]:
    """Return the edits to try: nearest and smallest first, no two alike."""
    found: dict[tuple[str, int, int, bytes], Candidate] = {}
    texts = {place.path: sources.read(place.path) for place in places}
    waiting: dict[int, list[Candidate]] = defaultdict(list)
    for group, following in pairwise((*_group_nodes(sources, places, seen), None)):
        assert group is not None
        for candidate in group.propose():
            waiting[candidate.cost].append(candidate)
        least = following.level if following else math.inf
        for cost in sorted(each for each in waiting if each < least):  # no other group has one of it
            for candidate in sorted(waiting.pop(cost), key=lambda each: each.rank):
                key = _core_of(texts[candidate.path], candidate.mutation)
                if key is not None and len(found) < MOST_CANDIDATES:
                    found.setdefault((candidate.path, *key), candidate)
        if len(found) == MOST_CANDIDATES:
            break
    return tuple(found.values())


def list_rivals(first: Candidate, others: Sequence[Candidate], tried: int = 0) -> tuple[Candidate, ...]:
    """Return the edits to compare a plausible one with, the likeliest first; its line comes first.

    The more were tried before it, the less sure it is, and the more are tried beside it.
    """

    def place(each: Candidate) -> tuple[int, int]:
        is_near = (each.path, each.mutation.line) == (first.path, first.mutation.line)
        return (each.weight - (_STEP if is_near else 0), each.distance)

    near = [each for each in others if each.weight <= first.weight + RIVAL_REACH]
    return tuple(sorted(near, key=place)[: max(MOST_RIVALS, tried // 2)])


def _core_of(raw: bytes, mutation: Mutation) -> tuple[int, int, bytes] | None:
    """Return what an edit really replaces, without what stays; None where that is nothing."""
    old, new = raw[mutation.start : mutation.end], mutation.text.encode()
    if old == new:
        return None
    front = _count_alike(old, new)
    back = _count_alike(old[front:][::-1], new[front:][::-1])
    return _slide(raw, mutation.start + front, mutation.end - back, new[front : len(new) - back])


def _slide(raw: bytes, start: int, end: int, new: bytes) -> tuple[int, int, bytes]:
    """Return what is added or taken away as it stands where it begins first with the same result."""
    while start == end and start and raw[start - 1] == new[-1]:
        start, end, new = start - 1, end - 1, new[-1:] + new[:-1]
    while not new and start and raw[start - 1] == raw[end - 1]:
        start, end = start - 1, end - 1
    return start, end, new


def _count_alike(one: bytes, other: bytes) -> int:
    """Return how many bytes two texts begin with alike."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))


class _File(NamedTuple):
    """A file whose lines are suspected, and what is known of it."""

    path: str
    code: Code
    hints: Hints
    tested: frozenset[str]
    """Constants that only the failing tests name, as texts."""
    nearest: Mapping[ast.AST | None, EditPlace]
    """Function, module or statement to its most suspicious line."""


class _Group(NamedTuple):
    """The suspicious nodes of one function with those inside, or of a module outside of all."""

    file: _File
    levels: Mapping[float, int]
    around: ast.AST
    nodes: list[tuple[ast.AST, EditPlace]]

    @property
    def level(self) -> int:
        """The distance of its most suspicious line from the most suspicious of all; its least weight."""
        known = self.file.nearest.get(self.around)
        places = [*([known] if known else []), *(place for _, place in self.nodes)]
        return min(self.levels[place.score] for place in places)

    def propose(self) -> Iterator[Candidate]:
        """Yield the edits of its nodes: single ones, then those of several places at once."""
        code, hints = self.file.code, self.file.hints
        by_scope: dict[ast.AST | None, list[Mutation]] = defaultdict(list)
        by_statement: dict[ast.AST | None, list[Mutation]] = defaultdict(list)
        for node, place in self.nodes:
            found = [mutation for rule in _RULES for mutation in rule.apply(code, node, hints)]
            by_statement[code.find_statement(node)] += found
            by_scope[code.find_scope(node)] += found
            yield from (self._rate(place, mutation) for mutation in found)
        for groups, join in ((by_scope, repeat_edits), (by_statement, pair_edits)):
            for around, those in groups.items():
                place = self.file.nearest[around]
                yield from (self._rate(place, mutation) for mutation in join(code, those))

    def _rate(self, place: EditPlace, mutation: Mutation) -> Candidate:
        is_special = _is_special(mutation, self.file.tested)
        return Candidate(
            path=self.file.path,
            mutation=mutation,
            cost=self.levels[place.score] + mutation.weight + (_SPECIAL if is_special else 0),
            distance=place.distance,
            is_special=is_special,
        )


def _group_nodes(sources: Sources, places: tuple[EditPlace, ...], seen: TestTrace) -> list[_Group]:
    """Return the nodes of suspicious lines by function, those first whose edits may be the lightest."""
    scores = sorted({place.score for place in places}, reverse=True)
    levels = {score: level for level, score in enumerate(scores)}
    named = list_tested(sources, seen)
    groups = list[_Group]()
    for path in sorted({place.path for place in places}):
        code = parse_code(sources.read(path))
        if code is None:
            continue
        lines = {place.line: place for place in places if place.path == path}
        hints = read_hints(named, seen, path)
        nearest: dict[ast.AST | None, EditPlace] = {}
        file = _File(path, code, hints, hints.literals - _find_literals(code), nearest)
        by_function: dict[ast.AST, list[tuple[ast.AST, EditPlace]]] = defaultdict(list)
        for node in ast.walk(code.tree):
            if place := _place_of(code, node, lines):
                functions = [
                    each for each in (node, *code.list_above(node)) if isinstance(each, FunctionNode)
                ]
                by_function[functions[-1] if functions else code.tree].append((node, place))
                nearest.setdefault(code.find_statement(node), place)
                scope = code.find_scope(node)
                nearest[scope] = max(nearest.get(scope, place), place, key=lambda each: each.score)
        groups += [_Group(file, levels, *each) for each in by_function.items()]
    return sorted(groups, key=lambda group: group.level)


def _find_literals(code: Code) -> frozenset[str]:
    """Return the constants of a file as texts."""
    return frozenset(repr(each.value) for each in ast.walk(code.tree) if isinstance(each, ast.Constant))


def _is_special(edit: Mutation, tested: frozenset[str]) -> bool:
    """Say whether an edit makes a case of a value that only the failing tests name."""
    if not any(kind in _CASES for kind in edit.kind.split(" and ")):
        return False
    found = (each.replace('"', "'") for each in _LITERAL.findall(edit.text))
    return not tested.isdisjoint({*found} - _HARMLESS)


def _place_of(code: Code, node: ast.AST, lines: Mapping[int, EditPlace]) -> EditPlace | None:
    """Return the most suspicious line of the statement around a node."""
    statement = code.find_statement(node)
    if statement is None:
        return None
    found = [lines[line] for line in find_header_lines(statement) if line in lines]
    return min(found, key=lambda place: (-place.score, place.distance)) if found else None
