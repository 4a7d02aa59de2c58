"""Runs a batch in its folder: each task as its own command, several at once, within a common budget."""

import hashlib
import os
import random
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.abc import TaskStatus

from agentflow.batch.folder import (
    TaskFolder,
    collect_result,
    find_environment_variables,
    prepare_clone,
    read_clone_state,
    remove_clone,
    report_unbegun,
    run_hidden_check,
    try_lock,
)
from agentflow.batch.plan import BatchTask
from agentflow.batch.results import (
    RESULT,
    BatchResult,
    add_lost,
    choose_batch_exit,
    read_lost,
    read_result,
    save_result,
)
from agentflow.core.errors import AgentflowError, ConfigError, Exit, UsageError
from agentflow.core.evidence import Command
from agentflow.core.messages import Usage
from agentflow.core.pending import Budget
from agentflow.core.record import Record, encode
from agentflow.core.task import Status, TaskState
from agentflow.frontmatter import write_atomic
from agentflow.mcp.own_command import follow_command
from agentflow.model.retry import SharedLimits, share_limits
from agentflow.parse import decode
from agentflow.sandbox.confine import tie_command

_LOOK_SECONDS = 0.1
LIMITS_FOLDER = "limits"
_STARTS = 2
"""A task whose process dies is continued once."""
_MACHINES = 3
"""A task whose machine is lost is begun anew on another one."""
_OPEN = (Status.RUNNING, Status.SUSPENDED, Status.CANCELLED)


def to_usage(share: Budget) -> Usage:
    return Usage(input=share.tokens or 0, cost_usd=share.cost)


class SharedBudget:
    """The part of a batch's budget that is neither used nor reserved for a running task."""

    def __init__(self, limit: Budget) -> None:
        self._limit = limit
        self._cost = limit.cost or 0.0
        self._tokens = limit.tokens or 0
        self._running = 0

    @property
    def is_idle(self) -> bool:
        """Return whether no task has anything set aside, so that nothing more will be given back."""
        return self._running == 0

    def spend(self, used: Usage) -> None:
        self._cost -= used.cost_usd or 0
        self._tokens -= used.tokens

    def reserve(self, wanted: Budget, waiting: int) -> Budget | None:
        """Set aside what a task wants, else an even part for each that waits; None where that is too much."""
        cost, tokens = wanted.cost, wanted.tokens
        if self._limit.cost is not None:
            cost = self._cost / waiting if cost is None else cost
            if not 0 < cost <= self._cost:
                return None
        if self._limit.tokens is not None:
            tokens = self._tokens // waiting if tokens is None else tokens
            if not 0 < tokens <= self._tokens:
                return None
        self._take(cost or 0, tokens or 0)
        self._running += 1
        return wanted.replace(cost=cost, tokens=tokens)

    def settle(self, reserved: Budget, used: Usage) -> None:
        self._take((used.cost_usd or 0) - (reserved.cost or 0), used.tokens - (reserved.tokens or 0))
        self._running -= 1

    def _take(self, cost: float, tokens: int) -> None:
        self._cost -= cost
        self._tokens -= tokens


class TaskBegun(Record):
    id: str


TellProgress = Callable[[TaskBegun | BatchResult], None]


class RayCluster(Record):
    """A Ray cluster that does tasks, and what its machines set aside for each."""

    address: str | None = None
    """None: one that is this machine alone."""
    cpus: float = 1
    memory: float | None = None
    """In gigabytes."""


class BatchOptions(Record):
    jobs: int | None = None
    """Tasks at once; None: as many as there is room for."""
    cluster: RayCluster | None = None
    model: str | None = None
    budget: Budget = Budget()
    timeout: float | None = None
    limits: SharedLimits = SharedLimits()
    switches: tuple[str, ...] = ()
    seed: int | None = None
    resume: bool = False
    retry: tuple[Exit, ...] = ()
    """A settled task with one of these exit codes is begun anew."""
    fail_fast: bool = False
    keep: bool = False
    hidden: tuple[str, ...] = ()
    """Folders that no command of a task sees: that of the plan, and others."""
    is_tied: bool = False
    """The command of a task ends with the process that starts it."""


DoTask = Callable[[TaskFolder, Budget, BatchOptions], Awaitable[BatchResult | None]]
"""Carries out one task within its share of the budget; returns None if its machine was lost."""


class TaskPool:
    """The tasks that are still to be done, and what of the budget is left."""

    def __init__(
        self, folders: Sequence[TaskFolder], options: BatchOptions, tell: TellProgress, do: DoTask
    ) -> None:
        self._options = options
        self._do = do
        self._tell = tell
        self._budget = SharedBudget(options.budget)
        found = [(folder, _read_kept_result(folder, options.retry)) for folder in folders]
        for folder, result in found:
            self._budget.spend(read_lost(folder.place))
            if result is not None and result.is_settled:
                self._budget.spend(result.usage)
                if not options.keep:
                    remove_clone(folder)  # a kill came between the result and this
        left = [folder for folder, result in found if result is None or not result.is_settled]
        left.sort(key=lambda folder: not folder.clone.exists())  # what has begun goes on first
        self._waiting = deque(left)
        self._changed = anyio.Condition()
        self._is_closed = False
        self.is_over = False
        """Tasks were left out because the budget is used up."""

    async def run(self) -> None:
        """Do all tasks; those that the budget or a failure leaves out stay as they are."""
        async with anyio.create_task_group() as group:
            for _ in range(self._options.jobs or os.cpu_count() or 1):
                group.start_soon(self._work)

    async def _work(self) -> None:
        while self._waiting:
            folder = self._waiting.popleft()
            result = await self._bring_result(folder)
            if result is None:
                continue
            if self._options.fail_fast and result.exit_code not in (Exit.VERIFIED, Exit.CAVEAT):
                self._is_closed = True
                self._waiting.clear()
            self._tell(result)

    async def _bring_result(self, folder: TaskFolder) -> BatchResult | None:
        """Return the result of a task, begun anew where its machine is lost; None where it is left out."""
        for _ in range(_MACHINES):
            reserved = await self._reserve(folder)
            if reserved is None:
                self.is_over = True
                return None
            self._tell(TaskBegun(id=folder.task.id))
            result = await self._do(folder, reserved, self._options)
            async with self._changed:
                self._budget.settle(reserved, to_usage(reserved) if result is None else result.usage)
                self._changed.notify_all()
            if result is not None or self._is_closed:
                return result
        result = report_unbegun(folder, Exit.INTERNAL, f"its machine was lost {_MACHINES} times")
        save_result(folder.place, result)
        return result

    async def _reserve(self, folder: TaskFolder) -> Budget | None:
        """Set a task's share aside, in the order of the tasks; wait while others may give something back."""
        task = folder.task
        own = Budget(
            cost=task.max_cost, tokens=task.max_tokens, seconds=task.timeout or self._options.timeout
        )
        async with self._changed:
            state = await anyio.to_thread.run_sync(read_state, folder)
            wanted = own if state is None else state.options.budget
            while True:
                reserved = self._budget.reserve(wanted, len(self._waiting) + 1)
                if reserved is not None or self._budget.is_idle:
                    return reserved
                await self._changed.wait()


def _read_kept_result(folder: TaskFolder, retried: tuple[Exit, ...]) -> BatchResult | None:
    """Return a task's result; one that is to be tried again is forgotten, but for what it used."""
    result = read_result(folder.place)
    if result is not None and result.is_settled and result.exit_code in retried:
        add_lost(folder.place, result.usage)
        remove_clone(folder)
        (folder.place / RESULT).unlink()
        return None
    return result


def read_state(folder: TaskFolder) -> TaskState | None:
    return read_clone_state(folder) if folder.clone.is_dir() else None


async def do_task(
    folder: TaskFolder,
    reserved: Budget,
    options: BatchOptions,
    prepare: Callable[[TaskFolder], None] = prepare_clone,
) -> BatchResult:
    async with _lock(folder) as lock:
        try:
            state = await anyio.to_thread.run_sync(read_state, folder)
            if state is None:
                await anyio.to_thread.run_sync(prepare, folder)
            result = await _bring_to_end(folder, state, reserved, options, lock)
        except AgentflowError as error:
            result = report_unbegun(folder, error.exit_code, str(error))
        except OSError as error:
            result = report_unbegun(folder, Exit.CONFIG, f"{error.strerror}: {error.filename}")
        save_result(folder.place, result)
        if not options.keep and result.is_settled:
            await anyio.to_thread.run_sync(remove_clone, folder)
    return result


@asynccontextmanager
async def _lock(folder: TaskFolder) -> AsyncIterator[int]:
    """Hold the lock of a task; a command that a killed batch left behind is waited for."""
    while True:
        with try_lock(folder.place) as lock:
            if lock is not None:
                yield lock
                return
        await anyio.sleep(_LOOK_SECONDS)


async def _bring_to_end(
    folder: TaskFolder, state: TaskState | None, reserved: Budget, options: BatchOptions, lock: int
) -> BatchResult:
    told, code = "", None
    for _ in range(_STARTS):
        if state is not None and state.status not in _OPEN:
            break
        words, text = _to_words(folder, state, reserved, options)
        code, told = await _run_command(folder, words, text, options, lock)
        state = await anyio.to_thread.run_sync(read_state, folder)
        if state is None:
            return report_unbegun(folder, Exit.INTERNAL if code is None else code, told)
        if state.status is not Status.RUNNING:
            break
    assert state is not None
    result = await anyio.to_thread.run_sync(collect_result, folder, state)
    if state.status is Status.RUNNING:
        return result.replace(exit_code=Exit.INTERNAL, reason=told or "the process of the task was killed")
    if folder.task.check is not None and result.is_settled:
        hidden = await anyio.to_thread.run_sync(partial(run_hidden_check, folder, state, options.switches))
        result = result.replace(hidden=hidden)
    return result


def _to_words(
    folder: TaskFolder, state: TaskState | None, reserved: Budget, options: BatchOptions
) -> tuple[tuple[str, ...], str]:
    task, place = folder.task, ("-q", "-C", str(folder.clone))
    if state is not None:
        return ("resume", state.task_id, *place, *options.switches), ""
    named: dict[str, object] = {
        "--model": task.model or options.model,
        "--class": task.named_class or None,
        "--max-iterations": task.max_iterations,
        "--prove": task.prove_rounds,
        "--max-cost": reserved.cost,
        "--max-tokens": reserved.tokens,
        "--timeout": reserved.seconds,
    }
    values = (word for name, value in named.items() if value is not None for word in (name, str(value)))
    review = () if task.review is None else ("--review" if task.review else "--no-review",)
    return ("task", "--no-memory", *place, *values, *review, *options.switches, "-"), task.text


async def _run_command(
    folder: TaskFolder, words: tuple[str, ...], text: str, options: BatchOptions, lock: int
) -> tuple[int | None, str]:
    env = {
        **os.environ,
        **find_environment_variables(folder),
        "AGENTFLOW_HIDDEN": os.pathsep.join((str(folder.place.parent), *options.hidden)),
        "AGENTFLOW_LIMITS": str(folder.place.parent / LIMITS_FOLDER),
    }
    argv = (sys.executable, "-P", "-m", "agentflow", *words)
    if options.is_tied:
        argv = tie_command(argv)
    command = Command(argv=argv, cwd=str(folder.clone), timeout=0, env=env, descriptors=(lock,))
    last_errors = deque[str](maxlen=3)

    async def drop(_line: str) -> None:
        pass

    async def keep(line: str) -> None:
        if line.strip():
            last_errors.append(line)

    code = await follow_command(command, text, drop, keep)
    return code, "\n".join(last_errors).strip()


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
