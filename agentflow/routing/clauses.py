"""A task's text as clauses, each with what it wants."""

import re
from collections.abc import Iterator
from enum import StrEnum

from agentflow.core.record import Record
from agentflow.routing.phrases import begins, hits, plain_words
from agentflow.routing.table import Table

_SENTENCE = re.compile(r"(?<=[.!?;:])(?<!error:)(?<!exception:)\s+|\n+")
_JOINT = re.compile(r"(?:,\s*|\s+)(?=(?:and then|then|and|but|so)\s)|,\s+(?!as your\b)(?=\w)")
_SETTING = re.compile(
    r"(?:when|if|in|on|for|using|after|before|since|because|while|as|with|at|by)\b[^,]*,\s*"
)
_WORD = re.compile(r"\w")
_FOR_SOMEBODY = re.compile(r"\w+\s+(?:me|us)\b")
_DOCUMENT = r"(?:[\w./-]*\w\.(?:md|rst|txt|adoc)|readme|changelog|docs/\S+)\b"
_INTO_FILE = re.compile(
    r"\b(?:into|(?:it|them|this|that|these|those)\s+(?:down\s+)?(?:in|to)"
    r"|(?:write|draft|prepare|produce|make|create|compile)\b.*\bto)"
    rf"\s+(?:the\s+|file\s+)*(?:{_DOCUMENT}|[\w./-]*\w\.[a-z]\w{{0,4}}\b)"
)
_IN_DOCUMENT = re.compile(rf"\bin\s+(?:the\s+)?{_DOCUMENT}")
_WITHOUT = re.compile(r"\bwithout\b[^,.;]*")
_STATEMENT = re.compile(
    r"\w+(?:\s+(?!(?:that|which|who|where|if|whether|how|why|what|all|every|the|a|an)\b)\w+){0,2}\s+"
    r"(?:is|are|was|were|should|must|does|doesn't|do not|don't|fails?|crash(?:es)?|returns|raises|hangs|shows"
    r"|needs|gives|breaks|has|cannot|can't|never|always|ignores?|loses|drops|misses|leaves|freezes|disappears)\b"
)
"""A sentence whose first word is a noun that could also be an order: "search results are wrong"."""


class Mood(StrEnum):
    """What a clause wants; the order is that of precedence."""

    CHANGE = "change"
    AUDIT = "audit"
    RESEARCH = "research"
    EXPLORATORY = "exploratory"
    QUESTION = "question"
    LIMIT = "limit"
    """What must not happen."""
    STATEMENT = "statement"


class Clause(Record):
    text: str
    """Plain words, polite lead-ins left out."""
    mood: Mood
    head: str = ""
    """The words that decided the mood."""


def clauses(text: str, table: Table) -> tuple[Clause, ...]:
    """Return the clauses of a text in order."""
    sentences = (sentence for sentence in _SENTENCE.split(plain_words(text)) if _WORD.search(sentence))
    return tuple(clause for sentence in sentences for clause in _clauses_of(sentence, table))


def _clauses_of(sentence: str, table: Table) -> Iterator[Clause]:
    """Yield the clauses of a sentence; what has no head of its own belongs to the clause before it."""
    setting = None if sentence.rstrip().endswith("?") else _SETTING.match(sentence)
    begin = setting.end() if setting else 0
    current, *pieces = _JOINT.split(sentence[begin:].strip())
    clause = _clause(current, table)
    clause = clause.replace(text=f"{clause.text} {sentence[:begin]}".strip())
    for piece in pieces:
        follower = _clause(piece, table)
        if follower.mood is Mood.STATEMENT:
            clause = clause.replace(text=f"{clause.text} {follower.text}")
        else:
            yield clause
            clause = follower
    if clause.text:
        is_open = clause.mood is Mood.STATEMENT and _is_question(sentence, table)
        yield clause.replace(mood=Mood.QUESTION) if is_open else clause


def _is_question(sentence: str, table: Table) -> bool:
    """Return whether a sentence asks, in English: in another language it may as well be a polite order."""
    return sentence.rstrip().endswith("?") and bool(hits(table.english, sentence))


def _clause(piece: str, table: Table) -> Clause:
    spoken = piece.strip(" \t-*\"'(")
    mood, head = _head(spoken, table)
    while (lead := begins(table.polite, spoken)) is not None and len(lead) >= len(head):
        spoken = spoken[len(lead) :].lstrip(" ,:")
        mood, head = _head(spoken, table)
    text = _WITHOUT.sub("", spoken)
    is_told = mood not in (Mood.QUESTION, Mood.LIMIT) and bool(_STATEMENT.match(spoken))
    if mood is Mood.STATEMENT or is_told:
        return Clause(text=text, mood=Mood.STATEMENT)
    if mood is Mood.CHANGE and hits(table.yours, text) and not fills_a_file(text, table):
        return Clause(text=text, mood=Mood.QUESTION, head=head)
    is_order = mood in (Mood.EXPLORATORY, Mood.RESEARCH) and _is_order(text, table)
    is_text = mood in (Mood.QUESTION, Mood.EXPLORATORY) and fills_a_file(text, table)
    return Clause(text=text, mood=Mood.CHANGE if is_order or is_text else mood, head=head)


def _head(spoken: str, table: Table) -> tuple[Mood, str]:
    """Return what the first words of a clause make of it, and these words; the longest of several count."""
    found = {Mood(mood): head for mood, words in table.heads.items() if (head := begins(words, spoken))}
    mood = max(found, key=lambda mood: len(found[mood]), default=Mood.STATEMENT)
    return mood, found.get(mood, "")


def fills_a_file(text: str, table: Table) -> bool:
    """Return whether a clause asks for text of a file, and not only in the answer."""
    fill = table.fill
    if not begins(fill.verbs, text):
        return False
    if hits(fill.places, text) and not hits(fill.told, text):
        return True
    is_made = bool(begins(fill.makers, text)) and not _FOR_SOMEBODY.match(text)
    return bool(_INTO_FILE.search(text) or (is_made and _IN_DOCUMENT.search(text)))


def _is_order(text: str, table: Table) -> bool:
    """Return whether a verb of reading says what the code is to do."""
    orders = table.orders
    return bool(begins(orders.verbs, text) and hits(orders.signs, text) and not hits(orders.asks, text))
