"""What the models of a saved task were asked, and what they replied."""

from collections.abc import Iterator
from pathlib import Path

from agentflow.core.fold import advance
from agentflow.core.messages import Reply
from agentflow.core.record import Record
from agentflow.core.run import (
    CompactionTrigger,
    HistoryCompacted,
    ReplyReceived,
    RequestSent,
    Run,
    RunEntry,
    RunOpened,
)
from agentflow.parse import decode
from agentflow.store.journal import lines, opened


class Asked(Record):
    """One request of a run, and its reply."""

    run: Run | None
    """As it was sent; None where something else was."""
    force: str | None
    reply: Reply
    refused: Run | None = None
    """As it was sent before, when it was too long."""


def exchanges(path: Path) -> Iterator[Asked | HistoryCompacted]:
    """Yield each reply in a run's file with the run as it stood when it was asked, and each compaction.

    Raises InvalidFile.
    """
    run: Run | None = None
    sent: tuple[Run | None, str | None] = (None, None)
    refused: Run | None = None
    for number, line in lines(path):
        entry: RunEntry = decode(RunEntry, line, f"{path}:{number}")  # type: ignore[arg-type]
        match entry:
            case RequestSent():
                sent = (None if entry.changed else run, entry.force)
            case HistoryCompacted():
                refused = sent[0] if entry.trigger is CompactionTrigger.OVERFLOW else refused
                yield entry
            case ReplyReceived():
                yield Asked(run=sent[0], force=sent[1], reply=entry.reply, refused=refused)
                refused = None
            case _:
                pass
        run = opened(path, entry) if isinstance(entry, RunOpened) else run and advance(run, entry)
