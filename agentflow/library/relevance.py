"""How well a description fits a text, by the words they share; the same words always give the same order."""

from collections import Counter
from collections.abc import Iterable
from math import log
from typing import Protocol, TypeVar

from agentflow.core.regex import regex

_WORD = regex(r"[^\W_]+")
_ENDINGS = ("ing", "ed", "s", "e")
_LEAST = 3
"""Letters of a word that counts, and of what is left of one without its ending."""
_IN_NAME = 2


class HasDescription(Protocol):
    """Something that is chosen by its name and description."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...


T = TypeVar("T", bound=HasDescription)


def rank_by_words(text: str, items: Iterable[T]) -> tuple[tuple[T, float], ...]:
    """Return the items with their scores, the best first; equal ones stand by name.

    A word counts more the fewer items have it, and twice in a name.
    """
    wanted = _stems(text)
    known = [(item, _stems(item.name), _stems(item.description)) for item in items]
    having = Counter(word for _, name, told in known for word in wanted & (name | told))

    def score(name: set[str], told: set[str]) -> float:
        shared = {word: _IN_NAME if word in name else 1 for word in wanted & (name | told)}
        return sum(weight * log(1 + len(known) / having[word]) for word, weight in shared.items())

    scored = [(item, score(name, told)) for item, name, told in known]
    return tuple(sorted(scored, key=lambda each: (-each[1], each[0].name)))


def list_shared_words(text: str, item: HasDescription) -> tuple[str, ...]:
    """Return the words of a text that a name or a description has too, in their order."""
    have = _stems(f"{item.name} {item.description}")
    words = dict.fromkeys(_WORD.findall(text.casefold()))
    return tuple(word for word in words if len(word) >= _LEAST and _stem(word) in have)


def _stems(text: str) -> set[str]:
    return {_stem(word) for word in _WORD.findall(text.casefold()) if len(word) >= _LEAST}


def _stem(word: str) -> str:
    """Return a word without its usual endings, so that `prices` and `price` are one."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST:
            word = word.removesuffix(ending)
    return word
