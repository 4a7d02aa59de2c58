"""What a person says to a task while it runs: one line of JSON a message, read before each turn of a role."""

import os
from pathlib import Path

from agentflow.core.record import Record, encode
from agentflow.parse import decode
from agentflow.process import timestamp
from agentflow.redact import redact_text
from agentflow.store.journal import AppendFile, lines

INBOX = "said.jsonl"


class PersonMessage(Record):
    """One message of a person to a running task."""

    at: str
    text: str


def add_message(folder: Path, text: str) -> None:
    """Append a message for the role that works next in a task. Raises OSError."""
    message = PersonMessage(at=timestamp(), text=redact_text(text))
    AppendFile(folder / INBOX).append(encode(message), durable=True)


def read_messages(folder: Path) -> tuple[str, ...]:
    """Return all messages of a task, oldest first. Raises InvalidFile for a damaged line."""
    path = folder / INBOX
    if not os.path.lexists(path):
        return ()
    return tuple(decode(PersonMessage, line, f"{path}:{number}").text for number, line in lines(path))
