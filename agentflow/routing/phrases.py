"""Phrases of the routing table, found in a text."""

import re
from collections.abc import Iterable
from functools import cache

_GAP = r"\W+(?:\w+\W+){0,3}?"
_CAMEL = re.compile(r"\b[A-Z][a-z]+[A-Z]{2,}\b|(?<=[a-z0-9])(?=[A-Z])")
"""A name like MongoDB, or where a part of another begins."""
_FENCED = re.compile(r"^```.*?^```[^\S\n]*$", re.MULTILINE | re.DOTALL)
_AFTER = ("", *" \t\n,:;.!?()\"'")
_APART = re.compile(r"[_\u2010-\u2015]")
_BEGINNING, _END = 6_000, 2_000
"""How much of a long text is looked at: people say what they want before or after what they paste."""


def said_part(text: str) -> str:
    """Return what a person says in a text: no fenced block, and of a long one its beginning and its end."""
    said = _FENCED.sub(" ", text)
    is_short = len(said) <= _BEGINNING + _END
    return said if is_short else f"{said[:_BEGINNING]}\n{said[-_END:]}"


def plain_words(text: str) -> str:
    """Return the words of a text in lower case, the parts of names apart."""
    return _APART.sub(" ", _CAMEL.sub(lambda found: found[0] or " ", text.replace("\u2019", "'"))).lower()


def hits(phrases: Iterable[str], text: str) -> tuple[str, ...]:
    """Return what the phrases are found as, in their order, each once."""
    found = (pattern(phrase).search(text) for phrase in phrases if _may_stand(phrase, text))
    return tuple(dict.fromkeys(" ".join(one[0].split()) for one in found if one))


def begins(phrases: Iterable[str], text: str) -> str | None:
    """Return what a text begins with that is one of the phrases, the longest of several, or None."""
    likely = (phrase for phrase in phrases if _may_stand(phrase, text))
    found = [one[0] for phrase in likely if (one := pattern(phrase).match(text))]
    whole = (one for one in found if text[len(one) : len(one) + 1] in _AFTER)
    return max(whole, key=len, default=None)


def _may_stand(phrase: str, text: str) -> bool:
    """Tell whether a text has letters for each word of a phrase: most have not, and need no pattern."""
    words = (word.split("|") for word in phrase.lower().split() if word not in {"...", "."})
    return all(any(one.strip("*") in text for one in word) for word in words)


@cache
def pattern(phrase: str) -> re.Pattern[str]:
    """Return what finds a phrase; the syntax stands at the top of routing.yaml."""
    whole = phrase.removesuffix(" .")
    parts = [_sequence(part) for part in whole.lower().split(" ... ")]
    end = "" if whole == phrase else r"(?=\W*\Z)"
    return re.compile(rf"(?<![a-z0-9]){_GAP.join(parts)}(?![a-z0-9]){end}")


def _sequence(part: str) -> str:
    return r"[\s-]+".join(_word(word) for word in part.split())


def _word(word: str) -> str:
    alternatives = "|".join(_alternative(one) for one in word.split("|"))
    return f"(?:{alternatives})"


def _alternative(word: str) -> str:
    if word.startswith("*"):
        return rf"\w+{re.escape(word[1:])}"
    return rf"{re.escape(word[:-1])}\w*" if word.endswith("*") else f"{re.escape(word)}s?"
