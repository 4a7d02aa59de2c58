"""Runs a batch in a folder that holds its tasks, in the order of the file, and their results."""

import hashlib
import random
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import anyio
from anyio.abc import TaskStatus

from agentflow.batch.folder import TaskFolder, try_lock
from agentflow.batch.plan import BatchTask
from agentflow.batch.pool import (
    LIMITS_FOLDER,
    BatchOptions,
    DoTask,
    TaskBegun,
    TaskPool,
    TellProgress,
    do_task,
)
from agentflow.batch.results import BatchResult, choose_batch_exit, read_result
from agentflow.core.errors import ConfigError, Exit, UsageError
from agentflow.core.record import Record, encode
from agentflow.frontmatter import write_atomic
from agentflow.model.retry import share_limits
from agentflow.parse import decode

RESULTS = "results.jsonl"
_HEAD = "batch.json"
_SIGNALS = {
    signal.SIGINT: Exit.INTERRUPTED,
    signal.SIGTERM: Exit.TERMINATED,
    signal.SIGHUP: Exit.TERMINATED,
}


class _Head(Record):
    plan: str
    sum: str
    version: int = 1


class BatchOutcome(Record):
    """The results of a batch in the order of the file, and the tasks that were not run."""

    results: tuple[BatchResult, ...]
    missing: tuple[str, ...]
    exit_code: Exit


@contextmanager
def open_batch(
    plan: Path, out: Path, tasks: Sequence[BatchTask], *, resume: bool
) -> Iterator[tuple[TaskFolder, ...]]:
    """Yield the folders of a batch's tasks, locked against another run. Raises UsageError or ConfigError."""
    head = _Head(plan=plan.name, sum=hashlib.sha256(encode(tasks)).hexdigest())
    if (out / _HEAD).is_file():
        if not resume:
            hint = "--resume continues it, --out DIR begins another"
            raise UsageError(f"{out} already contains a run of this batch", hint=hint)
        if decode(_Head, (out / _HEAD).read_bytes(), str(out / _HEAD)).sum != head.sum:
            hint = "put the tasks back, or begin another run with --out DIR"
            raise UsageError(f"{plan} has other tasks than the run in {out}", hint=hint)
    elif out.exists() and any(out.iterdir()):
        raise UsageError(f"{out} is not empty and holds no batch", hint="name another folder with --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
        with try_lock(out) as lock:
            if lock is None:
                raise UsageError(f"another process runs the batch in {out}")
            write_atomic(out / ".gitignore", b"*\n", mode=0o644)
            write_atomic(out / _HEAD, encode(head) + b"\n", mode=0o644)
            yield tuple(TaskFolder(task=task, place=out / task.id) for task in tasks)
    except OSError as error:
        raise ConfigError(f"cannot write {error.filename or out}: {error.strerror}") from None


def run_batch(
    folders: Sequence[TaskFolder], options: BatchOptions, tell: TellProgress, do: DoTask = do_task
) -> BatchOutcome:
    """Run the tasks that have no result yet; the file of results gets each as it comes."""
    out = folders[0].place.parent
    share_limits(out / LIMITS_FOLDER, options.limits)
    order = list(folders)

    def keep(news: TaskBegun | BatchResult) -> None:
        if isinstance(news, BatchResult):
            with (out / RESULTS).open("ab") as file:
                file.write(encode(news) + b"\n")
        tell(news)

    if options.seed is not None:
        random.Random(options.seed).shuffle(order)  # noqa: S311  # an order, not a secret
    pool = TaskPool(order, options, keep, do)
    caught = anyio.run(_run, pool)
    found = [(folder.task.id, read_result(folder.place)) for folder in folders]
    results = tuple(result for _, result in found if result is not None)
    write_atomic(out / RESULTS, b"".join(encode(result) + b"\n" for result in results), mode=0o644)
    missing = tuple(name for name, result in found if result is None)
    code = caught or choose_batch_exit(results, missing=bool(missing), over=pool.is_over)
    return BatchOutcome(results=results, missing=missing, exit_code=code)


async def _run(pool: TaskPool) -> Exit | None:
    caught: list[Exit] = []
    async with anyio.create_task_group() as group:
        await group.start(_watch, group.cancel_scope, caught)
        await pool.run()
        group.cancel_scope.cancel()
    return caught[0] if caught else None


async def _watch(scope: anyio.CancelScope, caught: list[Exit], *, task_status: TaskStatus[None]) -> None:
    """Stop all work at the first signal; each task writes down how far it came."""
    with anyio.open_signal_receiver(*_SIGNALS) as received:
        task_status.started()
        async for number in received:
            caught.append(_SIGNALS[number])
            scope.cancel()
