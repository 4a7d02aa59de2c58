"""The single edits of suspicious lines that are tried."""

import ast
import hashlib
from collections.abc import Iterator, Mapping
from itertools import chain

from agentflow.core.record import Record
from agentflow.repair.locate import EditPlace
from agentflow.repair.naming import mutate_names
from agentflow.repair.operators import mutate_operators, mutate_statements
from agentflow.repair.sources import (
    Code,
    Mutation,
    Sources,
    apply_mutation,
    header_lines,
    parse_code,
)

MOST_CANDIDATES = 400
"""Candidates tried before we say that nothing mends it."""

_RULES = (mutate_operators, mutate_names, mutate_statements)


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


def list_candidates(sources: Sources, places: tuple[EditPlace, ...]) -> tuple[Candidate, ...]:
    """Return the edits to try: nearest and smallest first, no two alike."""
    ordered = sorted(_all(sources, places), key=lambda candidate: candidate.rank)
    texts = {place.path: sources.read(place.path) for place in places}
    found: dict[tuple[str, bytes], Candidate] = {}
    for candidate in ordered:
        if len(found) == MOST_CANDIDATES:
            break
        changed = apply_mutation(texts[candidate.path], candidate.mutation)
        if changed != texts[candidate.path]:
            found.setdefault((candidate.path, hashlib.sha256(changed).digest()), candidate)
    return tuple(found.values())


def _all(sources: Sources, places: tuple[EditPlace, ...]) -> Iterator[Candidate]:
    levels = {
        score: level for level, score in enumerate(sorted({place.score for place in places}, reverse=True))
    }
    for path in sorted({place.path for place in places}):
        lines = {place.line: place for place in places if place.path == path}
        code = parse_code(sources.read(path))
        if code is None:
            continue
        for node in ast.walk(code.tree):
            place = _place_of(code, node, lines)
            if place is None:
                continue
            for mutation in chain.from_iterable(rule(code, node) for rule in _RULES):
                cost = levels[place.score] + mutation.weight
                yield Candidate(path=path, mutation=mutation, cost=cost, distance=place.distance)


def _place_of(code: Code, node: ast.AST, lines: Mapping[int, EditPlace]) -> EditPlace | None:
    """Return the most suspicious line of the statement around a node."""
    statement = code.statement(node)
    if statement is None:
        return None
    found = [lines[line] for line in header_lines(statement) if line in lines]
    return min(found, key=lambda place: (-place.score, place.distance)) if found else None
