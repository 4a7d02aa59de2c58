"""What the models of a saved task were asked, and what they replied."""

from collections.abc import Iterator
from pathlib import Path

from agentflow.core.fold import advance
from agentflow.core.messages import Reply
from agentflow.core.run import ReplyReceived, RequestSent, Run, RunEntry, RunOpened
from agentflow.parse import decode
from agentflow.store.journal import lines

Asked = tuple[Run | None, str | None, Reply]
"""The run as it was sent, None where something else was; the tool that was forced; the reply."""


def exchanges(path: Path) -> Iterator[Asked]:
    """Yield each reply in a run's file with the run as it stood when it was asked. Raises InvalidFile."""
    run: Run | None = None
    sent: tuple[Run | None, str | None] = (None, None)
    for number, line in lines(path):
        entry: RunEntry = decode(RunEntry, line, f"{path}:{number}")  # type: ignore[arg-type]
        match entry:
            case RequestSent():
                sent = (None if entry.changed else run, entry.force)
            case ReplyReceived():
                yield (*sent, entry.reply)
            case _:
                pass
        run = Run(head=entry) if isinstance(entry, RunOpened) else run and advance(run, entry)
