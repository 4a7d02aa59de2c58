"""What it costs to write state down, and to take one event of a stream."""

import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from agentflow.core.events import ToolStarted
from agentflow.core.task import TaskState
from agentflow.model.reply import Assembly, read_events
from agentflow.process import make_timestamp
from agentflow.store.journal import AppendFile
from agentflow.store.reading import TASKS
from agentflow.store.task_file import write_task
from agentflow.store.tasks import TaskStore, make_task_id
from benchmarks.report import Row, alone, at_most, compared

FEW, MANY = 10, 10_000
_LINE = b'{"type":"ToolStarted","subject":"' + b"x" * 400 + b'"}'
_BATCH = 200
_SYNCED = 20


def rows(rounds: int) -> Iterator[Row]:
    """Yield the figures, each the median of so many batches."""
    with TemporaryDirectory(prefix="agentflow-bench-") as folder:
        yield from _journal(Path(folder), rounds)
        yield from _task(Path(folder), rounds)
    yield alone(13, "streamed event us", [streamed_us() for _ in range(rounds)], at_most(20))


def batch_us(once: Callable[[], object]) -> float:
    """Return microseconds of the processor for one call, over a batch."""
    begin = time.thread_time()
    for _ in range(_BATCH):
        once()
    return (time.thread_time() - begin) / _BATCH * 1e6


def synced_ms(once: Callable[[], object]) -> float:
    """Return milliseconds that pass in one call that waits for the disk, over a few."""
    begin = time.perf_counter()
    for _ in range(_SYNCED):
        once()
    return (time.perf_counter() - begin) / _SYNCED * 1e3


def _journal(folder: Path, rounds: int) -> Iterator[Row]:
    few, many = filled(folder / "few", FEW), filled(folder / "many", MANY)
    long, short = [], []
    for _ in range(rounds):
        long.append(batch_us(lambda: many.append(_LINE, durable=False)))
        short.append(batch_us(lambda: few.append(_LINE, durable=False)))
    yield alone(12, "journal append us", short, at_most(100))
    yield compared(12, f"journal append us, {MANY} entries / {FEW}", long, short)
    synced = [synced_ms(lambda: few.append(_LINE, durable=True)) for _ in range(rounds)]
    yield alone(12, "journal append with fsync ms", synced, at_most(2))


def filled(path: Path, entries: int) -> AppendFile:
    """Return a journal that holds so many entries."""
    path.write_bytes((_LINE + b"\n") * entries)
    return AppendFile(path)


def _task(root: Path, rounds: int) -> Iterator[Row]:
    store = new_store(root)
    event = ToolStarted(run=1, call_id="c1-1-1", tool="Bash", subject="true")
    emitted = [batch_us(lambda: store.emit(event)) for _ in range(rounds)]
    yield alone(12, "event emit us", emitted, at_most(100))
    path = root / "task.md"
    folded = [synced_ms(lambda: write_task(path, store.task, "")) for _ in range(rounds)]
    yield alone(12, "task.md fold ms, when a phase or gate changes", folded)


def new_store(root: Path) -> TaskStore:
    """Return the store of a new task, in a folder that has none yet."""
    (root / TASKS).mkdir(parents=True)
    task = TaskState(
        task_id=make_task_id(),
        task="mend it",
        started_at=make_timestamp(),
        max_iterations=1,
        model="anthropic",
    )
    return TaskStore.create(root, task)


def streamed_us() -> float:
    """Return microseconds of the processor for one text delta, from its bytes to the reply."""
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "some words"}}
    line = b"event: content_block_delta\ndata: " + json.dumps(delta).encode() + b"\n\n"
    begun = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(_BATCH):
            yield line

    async def read() -> float:
        assembly = Assembly()
        assembly.take(begun)
        begin = time.thread_time()
        async for event in read_events(chunks()):
            assembly.take(event)
        return (time.thread_time() - begin) / _BATCH * 1e6

    return anyio.run(read)
