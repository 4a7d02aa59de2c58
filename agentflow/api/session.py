"""Runs a new, saved or follow-up task in this process until it ends or waits; nothing is printed."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from signal import SIGHUP, SIGINT, Signals
from typing import Any

import anyio
from anyio.abc import TaskStatus

from agentflow.api.boundary import TaskRequest, record_weakest_sandbox
from agentflow.api.decisions import explain_foreign, hold_own_task, record_own_task, require_own
from agentflow.api.models import find_live, require_price
from agentflow.api.wiring import (
    Setup,
    assemble,
    make_task,
    narrow_setup,
    prepare,
    recall_runs,
)
from agentflow.core.errors import AgentflowError, Exit, UsageError, describe_os_error
from agentflow.core.events import StoredEvent, ToolFinished, ToolStarted, Warned
from agentflow.core.pending import Budget, Consent
from agentflow.core.record import Record
from agentflow.core.role import ParallelWork
from agentflow.core.routing import PIPELINE
from agentflow.core.task import Phase, Status, TaskState
from agentflow.redact import list_some, to_one_line
from agentflow.sandbox.profile import Level
from agentflow.settings import ASKED_BY
from agentflow.store.ownership import hold_writer_lock
from agentflow.store.reading import find, find_recorded_end, load_state
from agentflow.store.tasks import TaskStore
from agentflow.wording import describe_all
from agentflow.workflow.crew import Crew
from agentflow.workflow.deep import read_fresh_document
from agentflow.workflow.gates import decide_pending, go_on
from agentflow.workflow.run import end_at_limit, end_early, run_phases
from agentflow.workspace.git import Git
from agentflow.workspace.ignored_files import keep_out_of_git

_CLOSING_SECONDS = 0.1
Ask = Callable[[TaskStore], bool]
"""Asks a person about all pending items, or how a paused task goes on; returns False to leave the task."""


class Session(Record):
    setup: Setup
    store: TaskStore
    consent: Consent


@contextmanager
def begin_session(setup: Setup, request: TaskRequest) -> Iterator[Session]:
    """Write a new task to the disk and lock it against other writers."""
    budget = request.budget
    roles = (setup.roles.find_part(name) for name in PIPELINE)
    require_price(setup.model, budget, roles, setup.settings)
    with hold_writer_lock(setup.git.root):
        keep_out_of_git(setup.git)
        explored, problem = read_fresh_document(setup.git) if request.context else ("", "")
        if problem:
            setup = setup.replace(warnings=(*setup.warnings, f"--context: {problem}; exploring again"))
        recorded = _find_recorded(setup)
        task = make_task(setup, request.text, request.max_iterations).replace(
            pause_after=request.pause_after,
            wants_review=request.review,
            wants_plan=request.plan or request.pause_after in (Phase.EXPLORATION, Phase.PLANNING),
            plan_mode=request.plan_mode,
            named_class=request.named_class,
            always_judged=request.judges or setup.settings.judges == "always",
            sequential=request.sequential,
            explored=explored,
            focus=request.focus,
            overrides=request.overrides,
            invoked=request.invoked,
            remembers=recorded.options.remembers
            if recorded
            else request.memory and setup.settings.memory == "on",
            recalled=recorded.known.recalled if recorded else (),
            asked_by=request.asked_by or os.environ.get(ASKED_BY, ""),
            budget=Budget(  # the command line's limits, else the repository's
                cost=setup.limits.cost if budget.cost is None else budget.cost,
                tokens=setup.limits.tokens if budget.tokens is None else budget.tokens,
                seconds=setup.limits.seconds if budget.seconds is None else budget.seconds,
            ),
        )
        if request.prove is not None:
            task = task.replace(prove_rounds=request.prove)
        at_once = 1 if request.plan_mode else _count_implementers(setup, request.parallel)
        if at_once > 1:
            task = task.replace(parallel=ParallelWork(at_once=at_once), wants_plan=True)
            if setup.servers:
                warning = "steps that run at the same time cannot use MCP tools"
                setup = setup.replace(warnings=(*setup.warnings, warning))
        if request.task_id:
            task = task.replace(task_id=request.task_id)
        if request.follows is not None:
            task = _follow_task(setup.git, task, request.follows)
        store = TaskStore.create(setup.git.root, task)
        record_own_task(store)
        setup = narrow_setup(setup, request.invoked)
        yield Session(setup=setup, store=store, consent=request.consent)


def _find_recorded(setup: Setup) -> TaskState | None:
    """Return the task whose replies are the model; it says what was recalled then."""
    kind, _, name = setup.model.name.partition(":")
    return load_state(find(setup.git.root, name)) if kind == "replay" else None


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


@contextmanager
def resume_session(
    git: Git, task_id: str | None, request: TaskRequest, ask: Ask | None = None, *, is_named: bool = True
) -> Iterator[Session]:
    """Continue a saved task. Raises TaskOver, or Suspended while it waits.

    `is_named` says that a person gave the id. Somebody else's task, named with a model, begins anew: of all
    that it says, only its words are known to the person.
    """
    folder = find(git.root, task_id)
    if task_id and is_named and request.model and explain_foreign(git, folder):
        author, theirs = f"the author of {folder.name}", load_state(folder).replace(pending=())
        request = request.replace(text=go_on(theirs, is_told=False).task, asked_by=author)
        with begin_session(prepare(git.root, request), request) as session:
            session.store.emit(Warned(message=f"{folder.name} was not begun here: only its words count"))
            yield session
        return
    with hold_own_task(git, folder) as store:
        if request.model:
            store.save(store.task.replace(model=request.model))
            record_own_task(store)
        if store.task.pending and ask is not None:
            ask(store)
        task = decide_pending(store.task, request.consent)
        store.task = go_on(task, is_told=find_recorded_end(store.folder) is task.status)
        setup = prepare(git.root, request.replace(model=store.task.model, text=store.task.task))
        if store.task.parallel_work is not None:
            _require_apart(setup)
        store.task = record_weakest_sandbox(store.task, setup.sandbox)
        recall_runs(setup.model, store.folder)
        setup = narrow_setup(setup, store.task.options.invoked)
        yield Session(setup=setup, store=store, consent=request.consent)


class PauseSwitch:
    """Pauses a task once no tool call runs; a request that is cut off is sent again."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self.is_asked = False
        self._tell = tell
        self._scope: anyio.CancelScope | None = None
        self._calls: set[tuple[int, str]] = set()
        """The calls that run."""

    def arm(self, scope: anyio.CancelScope) -> None:
        self.is_asked, self._scope, self._calls = False, scope, set()

    def ask(self) -> bool:
        """Ask for a pause; return False for the second time, which means: stop now."""
        if self.is_asked:
            return False
        self.is_asked = True
        self._tell()
        self._pause()
        return True

    def __call__(self, stamped: StoredEvent) -> None:
        """Take an event of the task, and end the work once no call runs, if a pause is asked for."""
        match stamped.event:
            case ToolStarted() as event:
                self._calls.add((event.run, event.call_id))
            case ToolFinished() as event:
                self._calls.discard((event.run, event.call_id))
                self._pause()
            case _:
                pass

    def _pause(self) -> None:
        if self.is_asked and not self._calls and self._scope is not None:
            self._scope.cancel()


class SignalWatch:
    """Ends the work at a signal; where a task can be paused, the first Ctrl-C does only that."""

    def __init__(self, signals: Mapping[Signals, Exit], pauses: PauseSwitch | None) -> None:
        self._signals = {
            number: code
            for number, code in signals.items()
            if number is not SIGHUP or signal.getsignal(number) is not signal.SIG_IGN  # nohup ignores it
        }
        self._pauses = pauses
        self.caught: Exit | None = None
        self.is_paused = False
        """True if the work ended because somebody paused it."""

    def end(self, *, is_over: bool) -> None:
        """Note how the work ended: a pause that came too late is none."""
        is_asked = self._pauses is not None and self._pauses.is_asked
        self.is_paused = is_asked and not is_over and self.caught is None

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Let a signal just before the work end it, and one just after it not cut off its end.

        Ctrl-C still does; and once a signal has ended the work, the process is on its way out.
        """
        before = self._note_signals()
        try:
            yield
        finally:
            for number, previous in before.items() if self.caught is None else ():
                signal.signal(number, previous)

    def _note_signals(self) -> dict[Signals, Any]:

        def note(number: int, _frame: object) -> None:
            self.caught = self.caught or self._signals[Signals(number)]

        return {number: signal.signal(number, note) for number in self._signals if number is not SIGINT}

    async def receive(self, scope: anyio.CancelScope, *, task_status: TaskStatus[None]) -> None:
        """Cancel the work at a signal; commands that run are killed on the way out."""
        if self._pauses is not None:
            self._pauses.arm(scope)
        if not self._signals:
            task_status.started()
            return
        try:
            with anyio.open_signal_receiver(*self._signals) as received:
                task_status.started()
                if self.caught is not None:
                    scope.cancel()
                async for number in received:
                    if number is SIGINT and self._pauses is not None and self._pauses.ask():
                        continue
                    self.caught = self._signals[number]
                    scope.cancel()
        finally:
            self._note_signals()  # the receiver has put the default in place, which ends the process


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
            with anyio.move_on_after(task.options.budget.seconds) as clock:
                async with nullcontext() if crew.servers is None else crew.servers.keep_open():
                    task = await run_phases(crew, task)
                    is_over = True
            group.cancel_scope.cancel()
    except ExceptionGroup as wrapped:
        failure: Exception = wrapped
        while isinstance(failure, ExceptionGroup):
            failure = failure.exceptions[0]
        code, reason = Exit.INTERNAL, f"{type(failure).__name__}: {failure}"
        if isinstance(failure, AgentflowError):
            code = failure.exit_code
        elif isinstance(failure, OSError):
            code, reason = Exit.CONFIG, describe_os_error(failure)
        end_early(crew, Status.ERROR, code, to_one_line(reason))
        raise failure from None
    finally:
        if live := find_live(crew.model):
            with anyio.move_on_after(_CLOSING_SECONDS, shield=True):  # a slow server is not waited for
                await live.close()
    if watch.caught is not None:
        return end_early(crew, Status.CANCELLED, watch.caught, "stopped by a signal")
    watch.end(is_over=is_over or clock.cancelled_caught)
    if watch.is_paused:
        return end_early(crew, Status.SUSPENDED, Exit.SUSPENDED, "paused; nothing is lost")
    if clock.cancelled_caught:
        over = end_at_limit(f"{task.options.budget.seconds:g} s are over (--timeout)")
        return end_early(crew, over.status, over.exit_code, over.reason)
    return task


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
    history = "\n".join(filter(None, (earlier.session.earlier, *_describe(git, earlier))))
    task, base = task.replace(earlier=history[-_MAX_CHARS:]), earlier.base_tree
    if not earlier.undone:
        since = "\n".join(_describe_end(earlier))
        # call ids have the number of their run, and stay unique in one conversation
        task = task.replace(continues=earlier.task_id, left_tree=earlier.tree, since=since, runs=earlier.runs)
    if earlier.undone or base is None or base == earlier.tree or not git.has_tree(base):
        return task
    return task.replace(follows=earlier.task_id, base_tree=base)


def _describe_end(task: TaskState) -> Iterator[str]:
    """Yield what the conversation of a task does not say: how it ended, and what other roles were told."""
    if task.ending and task.status is not Status.ANSWERED:
        yield f"- the task before ended {task.status}: {to_one_line(task.ending.reason, _LINE)}"
    if task.verdict and task.verdict.unproved:
        yield f"- unproved: {to_one_line('; '.join(describe_all(task.verdict.unproved)), _LINE)}"
    for message in task.session.said:
        if message.phase not in (Phase.EXPLORATION, Phase.IMPLEMENTATION):
            yield f"- the user said: {to_one_line(message.text, _LINE)}"


def _describe(git: Git, task: TaskState) -> Iterator[str]:
    ended = f"{task.status}: {to_one_line(task.ending.reason, _LINE)}" if task.ending else str(task.status)
    yield f"- asked: {to_one_line(task.intent.goal or task.task, _LINE)}"
    yield f"  ended: {'undone, its change is gone' if task.undone else ended}"
    for message in task.session.said:
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
        yield f"  unproved: {to_one_line('; '.join(describe_all(task.verdict.unproved)), _LINE)}"
    if task.base_tree and task.tree:
        paths = (each.path for each in git.list_changes(task.base_tree, task.tree))
        yield f"  files changed: {list_some(paths) or 'none'}"
