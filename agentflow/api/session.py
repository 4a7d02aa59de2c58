"""Runs a new, saved or follow-up task in this process until it ends or waits; nothing is printed."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from signal import Signals

import anyio

from agentflow.api.boundary import Wish, record_weakest_sandbox
from agentflow.api.decisions import explain_foreign, record_own_task, require_own, take_over
from agentflow.api.interruptions import PauseSwitch, SignalWatch
from agentflow.api.models import close_model
from agentflow.api.wiring import (
    Setup,
    assemble,
    make_task,
    narrow_setup,
    prepare,
    recall_runs,
    refuse_unpriced,
)
from agentflow.core.errors import AgentflowError, Exit, UsageError, describe_os_error
from agentflow.core.events import Warned
from agentflow.core.pending import Budget, Consent, Override
from agentflow.core.record import Record
from agentflow.core.role import ParallelWork
from agentflow.core.task import Invocation, Phase, Status, TaskState
from agentflow.redact import list_some, to_one_line
from agentflow.sandbox.profile import Level
from agentflow.settings import TaskLimits
from agentflow.store.ownership import hold_writer_lock
from agentflow.store.reading import find, find_recorded_end, load_state
from agentflow.store.tasks import TaskStore
from agentflow.workflow.crew import Crew
from agentflow.workflow.deep import read_fresh_document
from agentflow.workflow.gates import decide_pending, go_on
from agentflow.workflow.run import end_at_limit, end_early, run_phases
from agentflow.workspace.git import Git
from agentflow.workspace.ignored_files import keep_out_of_git

Ask = Callable[[TaskStore], bool]
"""Asks a person about all pending items, or how a paused task goes on; returns False to leave the task."""


class Order(Record):
    """A task, and what it may do and use."""

    text: str = ""
    invoked: Invocation | None = None
    """The command that became the text, if any."""
    model: str | None = None
    max_iterations: int | None = None
    consent: Consent = Consent.SUSPEND
    pause_after: Phase | None = None
    wish: Wish = Wish()
    budget: Budget = Budget()
    overrides: tuple[Override, ...] = ()
    named_class: str = ""
    """The class of the task; empty: its wording decides."""
    review: bool | None = None
    """The person's wish for a review; None: as the class requires."""
    sequential: bool = False
    prove: int | None = None
    """Rounds in which the implementer is given what no test notices; None: as the settings say."""
    parallel: int | None = None
    """Implementers at the same time; None: as the settings say."""
    context: bool = False
    """Use an earlier deep exploration."""
    focus: str | None = None
    """The folder to explore in depth; None for a task."""
    follows: str | None = None
    """The task of the same session that this one goes on from."""
    task_id: str = ""
    """The id of the new task; empty makes one."""


class Session(Record):
    """A task that this process runs."""

    setup: Setup
    store: TaskStore
    consent: Consent


@contextmanager
def begin_session(setup: Setup, order: Order) -> Iterator[Session]:
    """Write a new task to the disk and lock it against other writers."""
    refuse_unpriced(setup, order.budget)
    with hold_writer_lock(setup.git.root):
        keep_out_of_git(setup.git)
        explored, problem = read_fresh_document(setup.git) if order.context else ("", "")
        if problem:
            setup = setup.replace(warnings=(*setup.warnings, f"--context: {problem}; exploring again"))
        task = make_task(setup, order.text, order.max_iterations).replace(
            pause_after=order.pause_after,
            wants_review=order.review,
            named_class=order.named_class,
            sequential=order.sequential,
            explored=explored,
            focus=order.focus,
            overrides=order.overrides,
            invoked=order.invoked,
            budget=_limit_budget(order.budget, setup.limits),
        )
        if order.prove is not None:
            task = task.replace(prove_rounds=order.prove)
        if (at_once := _count_implementers(setup, order.parallel)) > 1:
            task = task.replace(parallel=ParallelWork(at_once=at_once))
            setup = _tell_left_out(setup)
        if order.task_id:
            task = task.replace(task_id=order.task_id)
        if order.follows is not None:
            task = _follow_task(setup.git, task, order.follows)
        store = TaskStore.create(setup.git.root, task)
        record_own_task(store)
        setup = narrow_setup(setup, order.invoked)
        yield Session(setup=setup, store=store, consent=order.consent)


def _count_implementers(setup: Setup, asked: int | None) -> int:
    if asked is None and setup.sandbox.level is Level.NONE:
        return 1
    wanted = setup.settings.parallel if asked is None else asked
    if wanted > 1:
        _require_apart(setup)
    return wanted


def _require_apart(setup: Setup) -> None:
    if setup.sandbox.level is Level.NONE:
        hint = "leave out --no-sandbox; only a new task can do without --parallel"
        raise UsageError("without a sandbox nothing separates the implementers' copies", hint=hint)


def _tell_left_out(setup: Setup) -> Setup:
    if not setup.servers:
        return setup
    warning = "steps that run at the same time cannot use MCP tools"
    return setup.replace(warnings=(*setup.warnings, warning))


def _limit_budget(asked: Budget, limits: TaskLimits) -> Budget:
    return Budget(
        cost=limits.cost if asked.cost is None else asked.cost,
        tokens=limits.tokens if asked.tokens is None else asked.tokens,
        seconds=limits.seconds if asked.seconds is None else asked.seconds,
    )


@contextmanager
def resume_session(
    git: Git, task_id: str | None, order: Order, ask: Ask | None = None, *, is_named: bool = True
) -> Iterator[Session]:
    """Continue a saved task. Raises TaskOver, or Suspended while it waits.

    `is_named` says that a person gave the id.
    """
    with hold_writer_lock(git.root):
        store = _reopen(git, task_id, order.model, is_named=is_named and bool(task_id))
        if store.task.pending and ask is not None:
            ask(store)
        task = decide_pending(store.task, order.consent)
        store.task = go_on(task, is_told=find_recorded_end(store.folder) is task.status)
        setup = prepare(git.root, store.task.model, store.task.task, order.wish)
        if store.task.parallel_work is not None:
            _require_apart(setup)
        store.task = record_weakest_sandbox(store.task, setup.sandbox)
        recall_runs(setup.model, store.folder)
        setup = narrow_setup(setup, store.task.invoked)
        yield Session(setup=setup, store=store, consent=order.consent)


def _reopen(git: Git, task_id: str | None, model: str | None, *, is_named: bool) -> TaskStore:
    folder = find(git.root, task_id)
    is_taken = bool(is_named and model and explain_foreign(git, folder))
    if not is_taken:
        require_own(git, folder)
    store = TaskStore.reopen(folder)
    if is_taken and model:
        take_over(store, model)
    elif model:
        store.save(store.task.replace(model=model))
        record_own_task(store)
    return store


def run_session(
    session: Session,
    *,
    ask: Ask | None = None,
    signals: Mapping[Signals, Exit] | None = None,
    pauses: PauseSwitch | None = None,
) -> tuple[Crew, TaskState]:
    """Run a task until it ends, waits for an absent person or stays paused; return its crew and state."""
    store = session.store
    watch = SignalWatch(signals or {}, pauses)
    if pauses is not None:
        store.observers.append(pauses)
    with _trace(store):
        with watch.hold():
            for warning in session.setup.warnings:
                store.emit(Warned(message=warning))
            crew = assemble(session.setup, store, session.consent, attended=ask is not None)
            task = anyio.run(_run, crew, store.task, watch)
        while watch.caught is None and (task.pending or watch.is_paused) and ask is not None and ask(store):
            with watch.hold():
                task = anyio.run(_run, crew, go_on(store.task, is_told=True), watch)
    return crew, task


@contextmanager
def _trace(store: TaskStore) -> Iterator[None]:
    is_off = os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    if is_off or not os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
        yield
        return
    try:
        from agentflow.telemetry import TaskTrace
    except ModuleNotFoundError:
        store.emit(Warned(message="no telemetry is sent: pip install 'agentflow[telemetry]'"))
        yield
        return
    trace = TaskTrace(store.task.task_id, os.environ)
    store.observers.append(trace.tell)
    try:
        yield
    finally:
        trace.close()


async def _run(crew: Crew, task: TaskState, watch: SignalWatch) -> TaskState:
    is_over = False
    try:
        async with anyio.create_task_group() as group:
            await group.start(watch.receive, group.cancel_scope)
            with anyio.move_on_after(task.budget.seconds) as clock:
                async with nullcontext() if crew.servers is None else crew.servers.keep_open():
                    task = await run_phases(crew, task)
                    is_over = True
            group.cancel_scope.cancel()
    except ExceptionGroup as wrapped:
        failure: Exception = wrapped
        while isinstance(failure, ExceptionGroup):
            failure = failure.exceptions[0]
        code, reason = _explain(failure)
        end_early(crew, Status.ERROR, code, to_one_line(reason))
        raise failure from None
    finally:
        await close_model(crew.model)
    if watch.caught is not None:
        return end_early(crew, Status.CANCELLED, watch.caught, "stopped by a signal")
    watch.end(is_over=is_over or clock.cancelled_caught)
    if watch.is_paused:
        return end_early(crew, Status.SUSPENDED, Exit.SUSPENDED, "paused; nothing is lost")
    if clock.cancelled_caught:
        over = end_at_limit(f"{task.budget.seconds:g} s are over (--timeout)")
        return end_early(crew, over.status, over.exit_code, over.reason)
    return task


def _explain(failure: Exception) -> tuple[Exit, str]:
    if isinstance(failure, OSError):
        return Exit.CONFIG, describe_os_error(failure)
    code = failure.exit_code if isinstance(failure, AgentflowError) else Exit.INTERNAL
    return code, f"{type(failure).__name__}: {failure}"


_LINE = 300
_MOST_FINDINGS = 10
_MAX_CHARS = 8_000


def _follow_task(git: Git, task: TaskState, earlier_id: str) -> TaskState:
    """Return a new task as the follow-up of an earlier one.

    An earlier task without a remaining change is only described.
    """
    folder = find(git.root, earlier_id)
    require_own(git, folder)
    earlier = load_state(folder)
    told = "\n".join(filter(None, (earlier.earlier, *_describe(git, earlier))))[-_MAX_CHARS:]
    task = task.replace(earlier=told)
    if (
        earlier.undone
        or earlier.base_tree in (None, earlier.tree)
        or not git.has_tree(earlier.base_tree or "")
    ):
        return task
    return task.replace(follows=earlier.task_id, base_tree=earlier.base_tree)


def _describe(git: Git, task: TaskState) -> Iterator[str]:
    ended = f"{task.status}: {to_one_line(task.ending.reason, _LINE)}" if task.ending else str(task.status)
    yield f"- asked: {to_one_line(task.intent.goal or task.task, _LINE)}"
    yield f"  ended: {'undone, its change is gone' if task.undone else ended}"
    for message in task.said:
        yield f"  said meanwhile: {to_one_line(message.text, _LINE)}"
    if task.intent.constraints:
        yield f"  constraints: {to_one_line(task.intent.constraints, _LINE)}"
    if task.findings:
        yield f"  found: {to_one_line(task.findings.summary, _LINE)}"
        for one in task.findings.findings[:_MOST_FINDINGS]:
            yield f"    {one.place}: {to_one_line(one.claim, _LINE)}"
    if task.plan:
        yield f"  plan: {to_one_line(task.plan.summary, _LINE)}"
    if task.change:
        yield f"  done: {to_one_line(task.change.summary, _LINE)}"
    if task.verdict and task.verdict.unproved:
        yield f"  unproved: {to_one_line('; '.join(task.verdict.unproved), _LINE)}"
    if task.base_tree and task.tree:
        paths = (each.path for each in git.list_changes(task.base_tree, task.tree))
        yield f"  files changed: {list_some(paths) or 'none'}"
