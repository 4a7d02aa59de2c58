"""The single edits of suspicious lines that are tried."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from agentflow.core.record import Record
from agentflow.repair.combining import pair_edits, repeat_edits
from agentflow.repair.conditions import CONDITION_RULES
from agentflow.repair.hints import Hints, Rule, read_hints
from agentflow.repair.literals import LITERAL_RULES
from agentflow.repair.locate import EditPlace, TestTrace
from agentflow.repair.naming import mutate_names
from agentflow.repair.operators import mutate_access, mutate_operators, mutate_statements
from agentflow.repair.sources import Code, Mutation, Sources, header_lines, parse_code
from agentflow.repair.statements import STATEMENT_RULES
from agentflow.repair.wrapping import WRAPPING_RULES

MOST_CANDIDATES = 6_000
"""Candidates tried before we say that nothing mends it."""

RIVAL_REACH = 4
"""How much heavier than a plausible edit another may be that is compared with it."""

_STEP = 2
"""What the steps by which an edit is unusual are counted in, so that doubts are parts of one."""

_DOUBT: Mapping[str, int] = {
    **dict.fromkeys(("missing call", "missing statement"), 1),
    **dict.fromkeys(("constant", "extra operand", "other expression", "missing term", "wrong access"), 2),
    **dict.fromkeys(("extra increment", "extra guard"), 2),
    **dict.fromkeys(("missing guard", "missing bound", "missing increment", "missing decrement"), 3),
    **dict.fromkeys(("missing slice",), 3),
}
"""How much heavier an edit counts that passes a test by chance more often than a name does."""

MOST_RIVALS = 400
"""How many edits are tried beside the first plausible one at most."""

_SPECIAL = 3
"""How much heavier an edit is that makes a case of a value that only the tests name."""

_CASES = ("missing guard", "missing bound", "missing condition", "return value")

_LITERAL = re.compile(r"-?\d+(?:\.\d+)?|'[^']*'|\"[^\"]*\"")

_HARMLESS = frozenset({"0", "1", "2", "-1", "''", "' '"})

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
    """Whether it makes a case of a value that only the tests name."""

    @property
    def title(self) -> str:
        """What it changes, on one line."""
        return f"{self.path}:{self.mutation.line} {self.mutation.kind}: {self.mutation.note}"

    @property
    def doubt(self) -> int:
        """How easily it passes a test by chance."""
        return max(_DOUBT.get(kind, 0) for kind in self.mutation.kind.split(" and "))

    @property
    def weight(self) -> int:
        """How unusual it is, the more so where it passes a test by chance."""
        return _STEP * self.cost + self.doubt

    @property
    def rank(self) -> tuple[int, int, str, int, int, str]:
        edit = self.mutation
        return (self.cost, self.distance, self.path, edit.start, edit.end - edit.start, edit.text)


def list_candidates(
    sources: Sources, places: tuple[EditPlace, ...], seen: TestTrace
) -> tuple[Candidate, ...]:
    """Return the edits to try: nearest and smallest first, no two alike."""
    ordered = sorted(_all(sources, places, seen), key=lambda candidate: candidate.rank)
    texts = {place.path: sources.read(place.path) for place in places}
    found: dict[tuple[str, int, int, bytes], Candidate] = {}
    for candidate in ordered:
        if len(found) == MOST_CANDIDATES:
            break
        key = _core_of(texts[candidate.path], candidate.mutation)
        if key is not None:
            found.setdefault((candidate.path, *key), candidate)
    return tuple(found.values())


def list_rivals(first: Candidate, others: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return the edits to compare a plausible one with, the likeliest first; its line comes first."""

    def place(each: Candidate) -> tuple[int, int]:
        is_near = (each.path, each.mutation.line) == (first.path, first.mutation.line)
        return (each.weight - (_STEP if is_near else 0), each.distance)

    near = [each for each in others if each.weight <= first.weight + RIVAL_REACH]
    return tuple(sorted(near, key=place)[:MOST_RIVALS])


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


def _all(sources: Sources, places: tuple[EditPlace, ...], seen: TestTrace) -> Iterator[Candidate]:
    levels = {
        score: level for level, score in enumerate(sorted({place.score for place in places}, reverse=True))
    }
    for path in sorted({place.path for place in places}):
        lines = {place.line: place for place in places if place.path == path}
        code = parse_code(sources.read(path))
        if code is not None:
            hints = read_hints(sources, seen, path)
            tested = hints.literals - _find_literals(code)
            for place, mutation in _propose(code, lines, hints):
                is_special = _is_special(mutation, tested)
                yield Candidate(
                    path=path,
                    mutation=mutation,
                    cost=levels[place.score] + mutation.weight + (_SPECIAL if is_special else 0),
                    distance=place.distance,
                    is_special=is_special,
                )


def _find_literals(code: Code) -> frozenset[str]:
    """Return the constants of a file as texts."""
    return frozenset(repr(each.value) for each in ast.walk(code.tree) if isinstance(each, ast.Constant))


def _is_special(edit: Mutation, tested: frozenset[str]) -> bool:
    """Say whether an edit makes a case of a value that only the failing tests name."""
    if not any(kind in _CASES for kind in edit.kind.split(" and ")):
        return False
    found = (each.replace('"', "'") for each in _LITERAL.findall(edit.text))
    return not tested.isdisjoint({*found} - _HARMLESS)


def _propose(
    code: Code, lines: Mapping[int, EditPlace], hints: Hints
) -> Iterator[tuple[EditPlace, Mutation]]:
    """Yield the edits of one file with their places: single ones, then those of several places at once."""
    by_scope: dict[ast.AST, list[Mutation]] = defaultdict(list)
    by_statement: dict[ast.AST | None, list[Mutation]] = defaultdict(list)
    nearest: dict[ast.AST | None, EditPlace] = {}
    for node in ast.walk(code.tree):
        place = _place_of(code, node, lines)
        if place is None:
            continue
        found = [mutation for rule in _RULES for mutation in rule.apply(code, node, hints)]
        statement, scope = code.statement(node), code.scope(node)
        by_statement[statement] += found
        by_scope[scope] += found
        nearest.setdefault(statement, place)
        nearest[scope] = min(nearest.get(scope, place), place, key=lambda each: -each.score)
        yield from ((place, mutation) for mutation in found)
    for around, group in by_scope.items():
        yield from ((nearest[around], mutation) for mutation in repeat_edits(code, group))
    for inside, group in by_statement.items():
        yield from ((nearest[inside], mutation) for mutation in pair_edits(code, group))


def _place_of(code: Code, node: ast.AST, lines: Mapping[int, EditPlace]) -> EditPlace | None:
    """Return the most suspicious line of the statement around a node."""
    statement = code.statement(node)
    if statement is None:
        return None
    found = [lines[line] for line in header_lines(statement) if line in lines]
    return min(found, key=lambda place: (-place.score, place.distance)) if found else None
