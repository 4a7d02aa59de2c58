"""What a new task is given of earlier ones: learnings, related tasks, and what the person said last."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from agentflow.core.task import Recalled, TaskState
from agentflow.memory.entry import PERSON, EntryKind, Hit, MemoryEntry
from agentflow.memory.terms import list_terms

if TYPE_CHECKING:
    from agentflow.memory.file import MemoryFile

_MOST_TOKENS = 600
"""Of all that is recalled for a task."""
RECENT, RELATED, LEARNINGS = 20, 5, 10
_CHARS_A_TOKEN = 4
_SHARE = 3
"""Each of the three kinds may take this part of the room, and what those before it left."""
_LINE = {EntryKind.LEARNING: 400, EntryKind.TASK: 320, EntryKind.MESSAGE: 80}
"""The most characters of one entry."""


def recall_entries(memory: "MemoryFile", task: TaskState) -> tuple[Recalled, ...]:
    """Return what fits a task, learnings first; the task that it follows is told elsewhere."""
    text, follows = task.task, task.session.follows or ""
    terms = frozenset(list_terms(text))
    learnings = memory.search(text, LEARNINGS, kind=EntryKind.LEARNING)
    known = {hit.entry.id for hit in learnings}
    newest = memory.list_entries(LEARNINGS, kind=EntryKind.LEARNING, against="")
    others = (Hit(entry=one) for one in newest if one.id not in known)
    hits = memory.search(text, RELATED + 1, kind=EntryKind.TASK)
    related = [hit for hit in hits if hit.entry.task != follows][:RELATED]
    told = {follows, *(hit.entry.task for hit in related)}
    said = memory.list_entries(RECENT, kind=EntryKind.MESSAGE, by=PERSON)
    recent = (Hit(entry=one) for one in said if one.task not in told)
    groups = ((*learnings, *others)[:LEARNINGS], related, recent)
    return tuple(_fill(groups, terms, _MOST_TOKENS * _CHARS_A_TOKEN))


def _fill(groups: Iterable[Iterable[Hit]], terms: frozenset[str], chars: int) -> Iterator[Recalled]:
    left = 0
    for hits in groups:
        left += chars // _SHARE
        for one in (_to_recalled(hit, terms) for hit in hits):
            if (size := len(one.line) + 3) <= left:
                left -= size
                yield one


def _to_recalled(hit: Hit, terms: frozenset[str]) -> Recalled:
    one = hit.entry
    newest = "among your last messages" if one.kind is EntryKind.MESSAGE else "among the newest learnings"
    text = _shorten(one, terms)
    return Recalled(kind=one.kind, text=text, origin=one.origin, id=one.id, why=hit.why or newest)


def _shorten(one: MemoryEntry, terms: frozenset[str]) -> str:
    """Return the first line of an entry, then those that share most terms with the task, in their order."""
    most, lines = _LINE[one.kind], [*map(str.strip, one.text.splitlines() or [""])]
    chosen, left = set(lines[:1]), most - len(lines[0])
    for line in sorted(lines[1:], key=lambda line: -len(terms.intersection(list_terms(line)))):
        left -= len(line) + 2
        if left >= 0:
            chosen.add(line)
    text = "; ".join(line for line in lines if line and line in chosen)
    return text if len(text) <= most else f"{text[: most - 1]}…"
