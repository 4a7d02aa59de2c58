"""Run a task in this process: progress on stderr, the answer on stdout."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

import anyio
from anyio.abc import TaskStatus

from agentflow.cli.asking import is_attended, settle
from agentflow.cli.boundary import Wish, weakened
from agentflow.cli.models import close, streamed
from agentflow.cli.output import require_outside
from agentflow.cli.printing import say_json
from agentflow.cli.wiring import Setup, assemble, new_task, prepare, recall_runs
from agentflow.core.allowance import Budget, Override
from agentflow.core.errors import AgentflowError, ConfigError
from agentflow.core.events import Replied, Stamped, Warned
from agentflow.core.exits import Exit
from agentflow.core.pending import Consent
from agentflow.core.record import Record
from agentflow.core.task import Phase, Status, TaskState
from agentflow.redact import Redacting, one_line, visible
from agentflow.settings import TaskLimits
from agentflow.store.locks import writer_lock
from agentflow.store.reading import end_told, find
from agentflow.store.tasks import TaskStore
from agentflow.view.progress import Progress
from agentflow.view.snapshot import load
from agentflow.view.terminal import choose, send, write
from agentflow.view.text import BLANK
from agentflow.view.verdict import verdict
from agentflow.workflow.budget import ended
from agentflow.workflow.crew import Crew
from agentflow.workflow.deep import fresh_document
from agentflow.workflow.result import result
from agentflow.workflow.run import cut_short, run_task
from agentflow.workflow.waiting import consented, resumed
from agentflow.workspace.git import open_repository
from agentflow.workspace.ignore import keep_out_of_git

_SIGNALS = {
    signal.SIGINT: Exit.INTERRUPTED,
    signal.SIGTERM: Exit.TERMINATED,
    signal.SIGHUP: Exit.TERMINATED,
}


class Job(Record):
    """What the command line asks for."""

    text: str = ""
    model: str | None = None
    max_iterations: int | None = None
    json: bool = False
    events: str | None = None
    """A file's path, or `-` for stdout."""
    consent: Consent = Consent.SUSPEND
    pause_after: Phase | None = None
    wish: Wish = Wish()
    budget: Budget = Budget()
    overrides: tuple[Override, ...] = ()
    stream: bool = False
    """Show what the model says as it comes."""
    review: bool | None = None
    """Whether the person wants a review; None as the class requires."""
    sequential: bool = False
    context: bool = False
    """Use an earlier deep exploration."""
    focus: str | None = None
    """The folder to explore in depth; None for a task."""


def launch(folder: Path, job: Job) -> int:
    """Do a new task and return its exit code."""
    setup = prepare(folder, job.model, job.text, job.wish)
    require_outside(setup.git, job.events)
    with _opened(job.events) as sink, writer_lock(setup.git.root):
        keep_out_of_git(setup.git)
        explored, problem = fresh_document(setup.git) if job.context else ("", "")
        if problem:
            setup = setup.replace(warnings=(*setup.warnings, f"--context: {problem}; exploring anew"))
        task = new_task(setup, job.text, job.max_iterations).replace(
            pause_after=job.pause_after,
            wants_review=job.review,
            sequential=job.sequential,
            explored=explored,
            focus=job.focus,
            overrides=job.overrides,
            budget=_bounded(job.budget, setup.limits),
        )
        return _drive(setup, TaskStore.create(setup.git.root, task), job, sink)


def _bounded(asked: Budget, limits: TaskLimits) -> Budget:
    """Return what a task may use up: as the command line says, else as the repository does."""
    return Budget(
        cost=limits.cost if asked.cost is None else asked.cost,
        tokens=limits.tokens if asked.tokens is None else asked.tokens,
        seconds=limits.seconds if asked.seconds is None else asked.seconds,
    )


def relaunch(folder: Path, task_id: str | None, job: Job) -> int:
    """Go on with a saved task and return its exit code. Raises TaskOver, or Suspended while it waits."""
    git = open_repository(folder)
    require_outside(git, job.events)
    with _opened(job.events) as sink, writer_lock(git.root):
        store = TaskStore.reopen(find(git.root, task_id))
        if store.task.pending and is_attended(job.consent):
            settle(store)
        task = consented(store.task, job.consent)
        store.task = resumed(task, is_told=end_told(store.folder) is task.status)
        setup = prepare(folder, store.task.model, store.task.task, job.wish)
        store.task = weakened(store.task, setup.sandbox)
        recall_runs(setup.model, store.folder)
        return _drive(setup, store, job, sink)


def _drive(setup: Setup, store: TaskStore, job: Job, sink: BinaryIO | None) -> int:
    """Run a task in front of whoever looks on, and print its result."""
    with ExitStack() as stack:
        medium = choose(sys.stderr, os.environ)
        if job.stream:
            shown = Redacting(_show)
            stack.callback(shown.finish)
            setup = setup.replace(model=streamed(setup.model, shown.add))
            store.observers.append(lambda told: shown.finish() if isinstance(told.event, Replied) else None)
            medium = medium.replace(live=False)
        progress = stack.enter_context(Progress(sys.stderr, medium))
        store.observers.append(progress)
        if sink is not None:
            store.observers.append(stack.enter_context(_copied(store, sink)))
        for warning in setup.warnings:
            store.emit(Warned(message=warning))
        crew = assemble(setup, store, job.consent)
        task = anyio.run(_run, crew, store.task)
        while task.pending and is_attended(job.consent) and settle(store):
            task = anyio.run(_run, crew, resumed(store.task, is_told=True))
        progress.close()
        _answer(crew, task, job)
    assert task.ending is not None
    return task.ending.exit_code


def _show(text: str) -> None:
    send(visible(text), sys.stderr)


async def _run(crew: Crew, task: TaskState) -> TaskState:
    """Run a task until it ends or a signal ends it; whatever happens, its state says so."""
    caught: list[Exit] = []
    try:
        async with anyio.create_task_group() as group:
            await group.start(_watch, group.cancel_scope, caught)
            with anyio.move_on_after(task.budget.seconds) as clock:
                task = await run_task(crew, task)
            group.cancel_scope.cancel()
    except ExceptionGroup as wrapped:
        failure: Exception = wrapped
        while isinstance(failure, ExceptionGroup):
            failure = failure.exceptions[0]
        code = failure.exit_code if isinstance(failure, AgentflowError) else Exit.INTERNAL
        cut_short(crew, Status.ERROR, code, one_line(f"{type(failure).__name__}: {failure}"))
        raise failure from None
    finally:
        await close(crew.model)
    if caught:
        return cut_short(crew, Status.CANCELLED, caught[0], "stopped by a signal")
    if clock.cancelled_caught:
        over = ended(f"{task.budget.seconds:g} s are over (--timeout)")
        return cut_short(crew, over.status, over.exit_code, over.reason)
    return task


async def _watch(scope: anyio.CancelScope, caught: list[Exit], *, task_status: TaskStatus[None]) -> None:
    """Cancel the work at the first signal; commands that run are killed on the way out."""
    with anyio.open_signal_receiver(*_SIGNALS) as signals:
        task_status.started()
        async for number in signals:
            caught.append(_SIGNALS[number])
            scope.cancel()


@contextmanager
def _copied(store: TaskStore, sink: BinaryIO) -> Iterator[Callable[[Stamped], None]]:
    """Copy each line of the task's events, as it is written, until nobody reads them any more."""
    is_read = True

    def copy(_: Stamped) -> None:
        nonlocal is_read
        new = source.read()
        if is_read:
            is_read = _passed_on(new, sink)

    with (store.folder / "events.jsonl").open("rb") as source:
        yield copy


@contextmanager
def _opened(target: str | None) -> Iterator[BinaryIO | None]:
    """Open where events are copied to, unbuffered, before anything else is written."""
    if target is None:
        yield None
        return
    try:
        file = open(1 if target == "-" else target, "wb", buffering=0, closefd=target != "-")  # noqa: SIM115  # stdout has no path
    except OSError as error:
        raise ConfigError(f"cannot write {target}: {error.strerror}") from None
    with file:
        yield file


def _passed_on(lines: bytes, sink: BinaryIO) -> bool:
    """Write events; a reader who has gone, or a full disk, is no reason to end the task."""
    try:
        sink.write(lines)
    except OSError:
        return False
    return True


def _answer(crew: Crew, task: TaskState, job: Job) -> None:
    """Print the result: on stdout, unless the events are there."""
    if job.json:
        say_json(result(task, crew.material(task), crew.changes(task)))
        return
    stream = sys.stderr if job.events == "-" else sys.stdout
    medium, root = choose(stream, os.environ), crew.git.root
    elsewhere = "" if Path.cwd().is_relative_to(root) else str(root)
    told = verdict(load(crew.store.folder), crew.diff(task), elsewhere)
    write((BLANK, *told) if medium.live else told, stream, medium)
