"""One thing that is remembered, and how it was found."""

from enum import StrEnum

from agentflow.core.record import Record

PERSON = "you"
"""Who said what the person at the command line said; nothing else is ever recalled as theirs."""


class EntryKind(StrEnum):
    LEARNING = "learning"
    """A fact that a person or a role kept for later tasks."""
    TASK = "task"
    """What a task was about and how it ended."""
    MESSAGE = "message"
    """The words by which a task was asked for, or that were said to it."""


class MemoryEntry(Record):
    """A row of the memory; its text holds no secret that redaction knows."""

    kind: EntryKind
    text: str
    at: str
    """When it happened, as in `2026-01-02T03:04:05Z`."""
    by: str
    """Whose words they are: `you`, a role or a program; of a task, who asked for it."""
    key: str
    """Identity: a later entry with this key replaces this one, as where a task goes on and ends again."""
    gist: str = ""
    """What of a long text is searched by meaning; empty for all of it."""
    task: str = ""
    evidence: str = ""
    """Of a learning: the id of the command that showed it, in that task."""
    command: str = ""
    exit_code: int | None = None
    against: str = ""
    """What speaks against it since; then it is kept and shown, but not recalled."""
    id: int = 0

    @property
    def origin(self) -> str:
        """Say whose words it holds and what shows it, in short.

        A task's entry quotes roles, and they may have quoted a file: it is never the person's words.
        """
        shown = f", {self.evidence} of {self.task}" if self.evidence else ""
        by = f"agentflow, asked by {self.by}" if self.kind is EntryKind.TASK else self.by
        return f"{self.at[:10]}, {by}{shown}"


class Hit(Record):
    """An entry that a search found."""

    entry: MemoryEntry
    why: str = ""
    """The words that it shares with the search, and its place by meaning."""
