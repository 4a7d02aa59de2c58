"""How ambiguous a task's text is: a pure function of its words."""

import re

from agentflow.core.routing import Action
from agentflow.routing.clauses import Clause, Mood
from agentflow.routing.phrases import hits, plain_words
from agentflow.routing.table import Table

_CONCRETE = re.compile(
    r"`[^`\n]+`|\"[^\"\n]+\"|\b\w+_\w+\b|\b[a-z]+[A-Z]\w*|\b[A-Z][a-z]+[A-Z]\w*|\b\w+\(\)?|\b[A-Za-z]\w+\.[A-Za-z]\w+|\b\w+/\w+|::"
)
"""A name that can be looked up: quoted, in code style, or a path."""
_ABBREVIATION = re.compile(r"\b[A-Z]{2,5}\b")
_WORD = re.compile(r"[a-z][a-z'-]+")
_LEVELS = (Action.PROCEED, Action.ASSUME, Action.ASK, Action.SPLIT)
_LAST_SCORES = (2, 4, 6)
"""The highest score of each level but the last."""


def factors(text: str, said: tuple[Clause, ...], table: Table) -> tuple[str, ...]:
    """Return what makes a text ambiguous, in the order of the table's weights."""
    spoken = plain_words(text)
    found = {name for name, phrases in table.signs.items() if hits(phrases, spoken)}
    if is_concrete(text):
        found.discard("pronoun")
    elif not _content(spoken, said, table):
        found.add("missing target")
    if sum(clause.mood is Mood.CHANGE for clause in said) > 1:
        found.add("compound")
    if not text.isupper() and set(_ABBREVIATION.findall(text)) - set(table.known):
        found.add("jargon")
    return tuple(name for name in table.weights if name in found)


def is_concrete(text: str) -> bool:
    return bool(_CONCRETE.search(text))


def _content(spoken: str, said: tuple[Clause, ...], table: Table) -> set[str]:
    """Return the words that could name a target: all but the orders, the signs and the hollow ones."""
    signs = " ".join(found for phrases in table.signs.values() for found in hits(phrases, spoken))
    heads = " ".join(clause.head for clause in said)
    hollow = {*table.hollow, *_WORD.findall(f"{signs} {heads}")}
    return {word for word in _WORD.findall(spoken) if not {word, word.removesuffix("s")} & hollow}


def action(score: int, *, is_anchored: bool) -> Action:
    """Return what a score asks for; a known verb with a concrete target lowers it by one level."""
    level = sum(score > last for last in _LAST_SCORES)
    return _LEVELS[max(0, level - is_anchored)]
