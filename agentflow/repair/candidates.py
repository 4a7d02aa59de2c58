"""All bounded single edits at suspicious lines, in the order in which they are tried."""

import ast
import hashlib
from collections.abc import Iterator, Mapping
from itertools import chain

from agentflow.core.record import Record
from agentflow.repair.code import Code, Mutation, applied, header, parsed
from agentflow.repair.localise import Place
from agentflow.repair.naming import naming_mutations
from agentflow.repair.operators import operator_mutations
from agentflow.repair.sources import Sources
from agentflow.repair.statements import statement_mutations

MOST = 400
"""Candidates tried before we say that nothing mends it."""
_RULES = (operator_mutations, naming_mutations, statement_mutations)


class Candidate(Record):
    """One edit, and where it stands in the order."""

    path: str
    mutation: Mutation
    cost: int
    distance: int
    """Lines between it and the innermost frame of a failure."""

    @property
    def title(self) -> str:
        """What it changes, on one line."""
        return f"{self.path}:{self.mutation.line} {self.mutation.kind}: {self.mutation.note}"

    @property
    def rank(self) -> tuple[int, int, str, int, int, str]:
        edit = self.mutation
        return (self.cost, self.distance, self.path, edit.start, edit.end - edit.start, edit.text)


def candidates(sources: Sources, places: tuple[Place, ...]) -> tuple[Candidate, ...]:
    """Return the edits to try: nearest and smallest first, no two alike."""
    ordered = sorted(_all(sources, places), key=lambda candidate: candidate.rank)
    texts = {place.path: sources.read(place.path) for place in places}
    found: dict[tuple[str, bytes], Candidate] = {}
    for candidate in ordered:
        if len(found) == MOST:
            break
        changed = applied(texts[candidate.path], candidate.mutation)
        if changed != texts[candidate.path]:
            found.setdefault((candidate.path, hashlib.sha256(changed).digest()), candidate)
    return tuple(found.values())


def _all(sources: Sources, places: tuple[Place, ...]) -> Iterator[Candidate]:
    levels = {
        score: level for level, score in enumerate(sorted({place.score for place in places}, reverse=True))
    }
    for path in sorted({place.path for place in places}):
        lines = {place.line: place for place in places if place.path == path}
        code = parsed(sources.read(path))
        if code is None:
            continue
        for node in ast.walk(code.tree):
            place = _place_of(code, node, lines)
            if place is None:
                continue
            for mutation in chain.from_iterable(rule(code, node) for rule in _RULES):
                cost = levels[place.score] + mutation.weight
                yield Candidate(path=path, mutation=mutation, cost=cost, distance=place.distance)


def _place_of(code: Code, node: ast.AST, lines: Mapping[int, Place]) -> Place | None:
    """Return the most suspicious line of the statement that a node is a part of."""
    statement = code.statement(node)
    if statement is None:
        return None
    found = [lines[line] for line in header(statement) if line in lines]
    return min(found, key=lambda place: (-place.score, place.distance)) if found else None
