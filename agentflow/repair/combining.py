"""Edits of several places at once: one wherever it fits in a function, and two light ones of a line."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from agentflow.repair.sources import Code, Mutation

_MOST_PAIRED = 24
"""Light edits of a statement that are tried in pairs."""

_LIGHT = 2

_MOST_ALIKE = 6


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
