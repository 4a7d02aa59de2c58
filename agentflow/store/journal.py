"""Append-only JSON lines: the entries of a run, read back as a run, and a person's messages to a task."""

import os
import stat
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agentflow.core.errors import CorruptState, InvalidFile
from agentflow.core.fold import advance, begin_run
from agentflow.core.messages import Reply
from agentflow.core.record import Record, encode
from agentflow.core.run import (
    CallAnswered,
    CallsStarted,
    CompactionTrigger,
    HistoryCompacted,
    MessageAdded,
    PauseAnswered,
    ReplyReceived,
    RequestSent,
    Run,
    RunClosed,
    RunEntry,
    RunOpened,
    RunPaused,
)
from agentflow.parse import decode
from agentflow.process import make_timestamp
from agentflow.redact import redact_bytes, redact_text

MAX_LINE = 256 * 1024 * 1024
"""Bytes; no line of ours comes near it."""


class AppendFile:
    """A file that only grows, open as long as this object lives."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        weakref.finalize(self, os.close, self._descriptor)

    def append(self, line: bytes, *, durable: bool) -> None:
        """Write one whole line; `durable` returns only when it is on the disk. Raises OSError."""
        left = memoryview(line + b"\n")
        while left:  # a full disk takes a part first, and only then is an error
            left = left[os.write(self._descriptor, left) :]
        if durable:
            os.fsync(self._descriptor)


class RunFile:
    """The journal of one run, which passes on each change of the task's state by a call."""

    def __init__(self, path: Path, change: Callable[[dict[str, Any]], None]) -> None:
        self._file = AppendFile(path)
        self._change = change

    def append(self, entry: RunEntry) -> None:
        # a result that changes nothing in the state is covered by the next call that begins
        durable = isinstance(entry, CallsStarted) or (isinstance(entry, CallAnswered) and bool(entry.changes))
        self._file.append(redact_bytes(encode(entry)), durable=durable)
        if isinstance(entry, CallAnswered | RunClosed) and entry.changes:
            self._change(entry.changes)


def load_run(path: Path) -> Run | None:
    """Return the run that a file holds, or None before its first entry.

    Cuts off a torn last line. Raises CorruptState, and writes nothing then.
    """
    run: Run | None = None
    for number, line in read_numbered_lines(path):
        place = f"{path}:{number}"
        try:
            entry: RunEntry = decode(RunEntry, line, place)  # type: ignore[arg-type]
        except InvalidFile as error:
            raise CorruptState(str(error)) from None
        if run is not None:
            if problem := _find_misplacement(run, entry):
                raise CorruptState(f"{place}: {problem}", hint="nothing was changed; look at the file")
            run = advance(run, entry)
        elif isinstance(entry, RunOpened):
            run = open_recorded_run(path, entry)
        else:
            raise CorruptState(f"{place}: a run file begins with RunOpened")
    cut_torn_line(path)
    return run


def load_runs(folder: Path) -> Iterator[Run]:
    """Yield the runs of a task in the order of their numbers. Raises CorruptState."""
    for path in sorted((folder / "runs").glob("*.jsonl"), key=lambda path: int(path.name.split("-")[0])):
        if (run := load_run(path)) is not None:
            yield run


def open_recorded_run(path: Path, head: RunOpened) -> Run:
    """Return a run at its beginning, in the conversation of the earlier run that its head names.

    Raises CorruptState where that is not there.
    """
    if head.continues is None:
        return begin_run(head, None)
    place = path.with_name(f"{head.continues}-{head.role}.jsonl")
    earlier = load_run(place) if head.continues < head.run and place.exists() else None
    if earlier is None:
        raise CorruptState(f"{path}:1: it goes on from run {head.continues}, which is not there")
    return begin_run(head, earlier)


class RecordedRequest(Record):
    run: Run | None
    """As it was sent; None where something else was."""
    force: str | None
    reply: Reply
    refused: Run | None = None
    """As it was sent before, when it was too long."""


def read_run_entries(path: Path, *signs: bytes) -> Iterator[RunEntry]:
    """Yield the entries of a run's file whose lines have all these signs. Raises InvalidFile."""
    for number, line in read_numbered_lines(path):
        if all(sign in line for sign in signs):
            yield decode(RunEntry, line, f"{path}:{number}")  # type: ignore[arg-type]


def read_exchanges(path: Path) -> Iterator[RecordedRequest | HistoryCompacted]:
    """Yield each reply in a run's file with the run as it stood when it was asked, and each compaction.

    Raises InvalidFile.
    """
    run: Run | None = None
    sent: tuple[Run | None, str | None] = (None, None)
    refused: Run | None = None
    for entry in read_run_entries(path):
        match entry:
            case RequestSent():
                sent = (None if entry.changed else run, entry.force)
            case HistoryCompacted():
                refused = sent[0] if entry.trigger is CompactionTrigger.OVERFLOW else refused
                yield entry
            case ReplyReceived():
                yield RecordedRequest(run=sent[0], force=sent[1], reply=entry.reply, refused=refused)
                refused = None
            case _:
                pass
        run = open_recorded_run(path, entry) if isinstance(entry, RunOpened) else run and advance(run, entry)


def _find_misplacement(run: Run, entry: RunEntry) -> str | None:
    problem = None
    match entry:
        case RunOpened():
            problem = "a run has one RunOpened"
        case CallAnswered() if entry.result.call_id not in {call.id for call in run.pending}:
            problem = "the result of a call that nobody asked for"
        case RunPaused() if entry.call_id not in {call.id for call in run.pending}:
            problem = "a pause of a call that nobody asked for"
        case PauseAnswered() if run.pause is None or run.pause.call_id != entry.call_id:
            problem = "an answer to no pause"
        case RequestSent() if entry.turn != run.turns + 1:
            problem = f"turn {entry.turn} follows turn {run.turns}"
        case ReplyReceived() if len(run.used) >= run.turns:
            problem = "a reply to no request"
        case RunClosed() if run.outcome is not None:
            problem = "a second end"
        case HistoryCompacted() if not 1 <= entry.until <= len(run.messages):
            problem = "a compaction of messages that are not there"
        case MessageAdded() | RequestSent() | ReplyReceived() | RunClosed() | HistoryCompacted() if (
            run.pending
        ):
            problem = "a call before it has no result"
        case _:
            pass
    return problem


def cut_torn_line(path: Path) -> None:
    """Cut off an incomplete last line that a crash left, so that the next line is intact."""
    raw = path.read_bytes() if path.exists() else b""
    if raw and not raw.endswith(b"\n"):
        os.truncate(path, raw.rfind(b"\n") + 1)


def read_numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield numbered lines; a last one without its newline was cut by a crash and is left out.

    Raises OSError, or CorruptState for what is no plain file or has an endless line.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise CorruptState(f"{path}: is not a regular file", hint="nothing was changed")
        for number, line in enumerate(iter(lambda: file.readline(MAX_LINE), b""), 1):
            if line.endswith(b"\n"):
                yield number, line[:-1]
            elif len(line) == MAX_LINE:
                raise CorruptState(f"{path}:{number}: the line is longer than {MAX_LINE:,} bytes")


INBOX = "said.jsonl"


class PersonMessage(Record):
    at: str
    text: str


def add_message(folder: Path, text: str) -> None:
    """Append a message for the role that works next in a task. Raises OSError."""
    message = PersonMessage(at=make_timestamp(), text=redact_text(text))
    AppendFile(folder / INBOX).append(encode(message), durable=True)


def read_messages(folder: Path) -> tuple[str, ...]:
    """Return all messages of a task, oldest first. Raises InvalidFile for a damaged line."""
    path = folder / INBOX
    if not os.path.lexists(path):
        return ()
    return tuple(
        decode(PersonMessage, line, f"{path}:{number}").text for number, line in read_numbered_lines(path)
    )
