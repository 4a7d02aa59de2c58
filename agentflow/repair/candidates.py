"""The edits that are tried at suspicious lines, in their order."""

import ast
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

from agentflow.core.record import Record
from agentflow.repair.additions import ADDITION_RULES
from agentflow.repair.clues import EditPlace, EditRules, Hints, TestTrace, list_tested, read_hints
from agentflow.repair.exchange import EXCHANGE_RULES
from agentflow.repair.names import NAME_RULES
from agentflow.repair.sources import Code, FunctionNode, Mutation, Sources, find_header_lines, parse_code

MOST_CANDIDATES = 6_000
"""Candidates tried before we say that nothing mends it."""
RIVAL_REACH = 4
"""The weight by which an edit may exceed the plausible one that it is compared with."""
_STEP = 2
"""What the steps by which an edit is unusual are counted in, so that doubts are parts of one."""
_DOUBT: Mapping[str, int] = {
    **dict.fromkeys(("missing call", "missing statement"), 1),
    **dict.fromkeys(("constant", "extra operand", "other expression", "missing term", "wrong access"), 2),
    **dict.fromkeys(("extra increment", "missing increment", "missing decrement"), 2),
    **dict.fromkeys(("extra guard", "extra part"), 2),
    **dict.fromkeys(("missing guard", "missing bound", "missing slice", "extra slice"), 3),
}
"""The extra weight of an edit that passes a test by chance more often than a name does."""
MOST_RIVALS = 400
"""The most edits that are tried beside the first plausible one, unless that one came late."""
_SPECIAL = 3
"""The extra weight of an edit that treats a value specially which only the tests name."""
_CASES = ("missing guard", "missing bound", "missing condition")
_LITERAL = re.compile(r"-?\d+(?:\.\d+)?|'[^']*'|\"[^\"]*\"")
_HARMLESS = frozenset({"0", "1", "2", "-1", "''", "' '"})
_RULES: EditRules = (*EXCHANGE_RULES, *NAME_RULES, *ADDITION_RULES)


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
        return f"{self.path}:{self.mutation.line} {self.mutation.kind}: {self.mutation.note}"

    @property
    def doubt(self) -> int:
        """The likelihood that the edit passes a test by chance."""
        return _DOUBT.get(self.mutation.kind, 0)

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
    old, new = raw[mutation.start : mutation.end], mutation.text.encode()
    if old == new:
        return None
    front = _count_alike(old, new)
    back = _count_alike(old[front:][::-1], new[front:][::-1])
    start, end, new = mutation.start + front, mutation.end - back, new[front : len(new) - back]
    # what is added or taken away stands where it begins first with the same result
    while start == end and start and raw[start - 1] == new[-1]:
        start, end, new = start - 1, end - 1, new[-1:] + new[:-1]
    while not new and start and raw[start - 1] == raw[end - 1]:
        start, end = start - 1, end - 1
    return start, end, new


def _count_alike(one: bytes, other: bytes) -> int:
    pairs = zip(one, other, strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))


class _Group(NamedTuple):
    """The suspicious nodes of one function with those inside, or of a module outside of all."""

    path: str
    code: Code
    hints: Hints
    tested: frozenset[str]
    """Constants that only the failing tests name, as texts."""
    levels: Mapping[float, int]
    nodes: list[tuple[ast.AST, EditPlace]]

    @property
    def level(self) -> int:
        return min(self.levels[place.score] for _, place in self.nodes)

    def propose(self) -> Iterator[Candidate]:
        for node, place in self.nodes:
            proposals = (
                propose(self.code, node, self.hints) for kinds, propose in _RULES if isinstance(node, kinds)
            )
            for mutation in chain.from_iterable(proposals):
                named = {each.replace('"', "'") for each in _LITERAL.findall(mutation.text)} - _HARMLESS
                is_special = mutation.kind in _CASES and not self.tested.isdisjoint(named)
                yield Candidate(
                    path=self.path,
                    mutation=mutation,
                    cost=self.levels[place.score] + mutation.weight + (_SPECIAL if is_special else 0),
                    distance=place.distance,
                    is_special=is_special,
                )


def _group_nodes(sources: Sources, places: tuple[EditPlace, ...], seen: TestTrace) -> list[_Group]:
    scores = sorted({place.score for place in places}, reverse=True)
    levels = {score: level for level, score in enumerate(scores)}
    named = list_tested(sources, seen)
    groups = list[_Group]()
    for path in sorted({place.path for place in places}):
        code = parse_code(sources.read(path))
        if code is None:
            continue
        by_line = {place.line: place for place in places if place.path == path}
        by_function: dict[ast.AST, list[tuple[ast.AST, EditPlace]]] = defaultdict(list)
        lines = set[int]()
        for node in ast.walk(code.tree):
            statement = code.find_statement(node)
            around = find_header_lines(statement) if statement is not None else range(0)
            known = [by_line[line] for line in around if line in by_line]
            if known:
                lines |= {*around}
                functions = [
                    each for each in (node, *code.list_above(node)) if isinstance(each, FunctionNode)
                ]
                place = min(known, key=lambda each: (-each.score, each.distance))
                by_function[functions[-1] if functions else code.tree].append((node, place))
        hints = read_hints(named, seen, path).replace(lines=frozenset(lines))
        own = (each.value for each in ast.walk(code.tree) if isinstance(each, ast.Constant))
        tested = hints.literals - frozenset(map(repr, own))
        groups += [_Group(path, code, hints, tested, levels, nodes) for nodes in by_function.values()]
    return sorted(groups, key=lambda group: group.level)
