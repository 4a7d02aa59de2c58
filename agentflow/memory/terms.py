"""A text as terms for the index: words and parts of names in lower case, without their endings."""

from collections.abc import Iterator

from agentflow.core.regex import regex

_WORD = regex(r"[^\W\d_]+|\d+")
_PART = regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^a-zA-Z]+")
_ENDINGS = (("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""), ("ly", ""), ("er", ""), ("e", ""))
_STEM = 3
"""Letters that stay of a word at least."""
_COMMON = (
    " a about after again all also am an and any are as at be because been before being both but by can "
    "could did do does doing down for from further had has have having he her here him his how i if in "
    "into is it its just let me more most my no nor not now of off on once only or other our out over own "
    "please same she should so some such than that the their them then there these they this those "
    "through to too under until up very was we were what when where which while who why will with would "
    "you your "
)
"""Words that say nothing, between spaces."""


def list_terms(text: str) -> tuple[str, ...]:
    """Return the terms of a text in its order, without words that say nothing."""
    return tuple(term for term, _ in _pair(text))


def leave_out_common(text: str) -> str:
    """Return a text without words that say nothing."""
    return " ".join(word for _, word in _pair(text))


def find_shared(text: str, terms: frozenset[str]) -> tuple[str, ...]:
    """Return the words of a text that have one of these terms, as they stand there."""
    found = {term: word for term, word in _pair(text) if term in terms}
    return tuple(found.values())


def _pair(text: str) -> Iterator[tuple[str, str]]:
    """Yield each term of a text with the word that it is made of."""
    for word in _WORD.findall(text):
        for part in _PART.findall(word) if len(word) > 1 and not word.islower() else (word,):
            if f" {part.lower()} " not in _COMMON:
                yield from ((term, part) for term in _split(part.lower()))


def _split(word: str) -> tuple[str, ...]:
    if word.isalpha() and word == word.upper():  # a script without capitals mostly has no spaces either
        return tuple(word[at : at + 2] for at in range(max(1, len(word) - 1)))
    for ending, other in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _STEM:
            stem = word.removesuffix(ending) + other
            return (stem[:-1] if len(stem) > _STEM and stem[-1] == stem[-2] else stem,)
    return (word,)
