"""The task loop: a `while` over the phases of a route; how a task begins, may run out of budget, and ends."""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType

import anyio

from agentflow.core.errors import Exit, Halted, ModelError, ModelUnavailable, StateError
from agentflow.core.events import (
    Paused,
    PhaseEnded,
    PhaseStarted,
    ProvingStarted,
    TaskEnded,
    TaskStarted,
    Warned,
)
from agentflow.core.points import Point
from agentflow.core.record import copy_shared
from agentflow.core.task import Ending, GateStatus, Phase, Status, TaskState
from agentflow.memory.keep import keep_task
from agentflow.process import make_timestamp
from agentflow.redact import list_some
from agentflow.report.material import sum_spending, summarize_intent
from agentflow.report.report import format_report, has_document, write_document
from agentflow.routing.route import JUDGING, enter_phase, find_next_phase, list_phases_beside
from agentflow.store.ledger import hash_file
from agentflow.store.reading import find_last_write_time, load_events
from agentflow.verdict.case import find_hook_files, list_drift
from agentflow.verdict.ending import conclude, fail
from agentflow.wording import describe_all
from agentflow.workflow.crew import Crew
from agentflow.workflow.deep import explore_deeply
from agentflow.workflow.dispatch import work
from agentflow.workflow.early_checks import EarlyChecks, EarlyIndex, awaits_base
from agentflow.workflow.gates import can_go_on, end_in_phase, pause_after, suspend
from agentflow.workflow.proving import keep_standing, skip_proving
from agentflow.workflow.refinement import refine
from agentflow.workflow.session import (
    announce_model_failure,
    announce_phase,
    end_session,
    notify,
    start_session,
)

_BEFORE = (Point.SESSION_START, Point.USER_PROMPT_SUBMIT)
"""Where hooks may change files before the task begins."""

_VERIFIED = (Status.VERIFIED, Status.VERIFIED_WITH_CAVEAT)


async def run_phases(crew: Crew, task: TaskState) -> TaskState:
    """Run a new or saved task until it ends or waits for a person."""
    task = _begin(crew, task)
    began = time.monotonic()
    try:
        task = await _walk(crew, await start_session(crew, task))
        await end_session(crew, task)
        if crew.webhook is not None or crew.hooks.has(Point.NOTIFICATION):
            await notify(crew, _look_again(crew, task))
        is_unpriced = task.usage.tokens > 0 and task.usage.cost_usd is None
        if is_unpriced and task.options.budget.cost is not None:
            crew.store.emit(Warned(message="--max-cost was not enforced: the price of the model is unknown"))
    except Halted as error:
        return end_early(crew, Status.BLOCKED, Exit.BLOCKED, f"a hook stopped the task: {error}")
    finally:
        crew.checking.close()
    return finish(crew, task, began)


async def _walk(crew: Crew, task: TaskState) -> TaskState:
    """Run phase after phase; the index and checks beside the first role are worked on in the background."""
    failure: Exception | None = None
    async with anyio.create_task_group() as group:
        crew = crew.replace(index=EarlyIndex(group.start_soon))
        if crew.grace is not None or awaits_base(task):
            beside = crew.recorded.beside if crew.recorded else None
            base = EarlyChecks(group.start_soon, crew.grace or 0, beside)
            crew = crew.replace(base=base)
        if awaits_base(task) and crew.base:
            crew.base.start(crew, task)
        try:
            task = await _run_route(crew, task)
        except Exception as error:  # noqa: BLE001  # a group would wrap it
            failure = error
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return task


async def _run_route(crew: Crew, task: TaskState) -> TaskState:
    while (phase := find_next_phase(task)) is not None:
        tree, task = task.tree, await _run_phase(crew, task, phase)
        if tree not in (None, task.tree):
            crew.snapshots.note()
        crew.store.save(task)
    return task


def _begin(crew: Crew, task: TaskState) -> TaskState:
    """Record the files and announce the task; return it with its base tree where that is known already."""
    tree = crew.snapshots.begin(find_last_write_time(crew.store.folder))
    if task.get_gate(Phase.REFINEMENT).status is not GateStatus.PASSED and task.session.follows is None:
        task = task.replace(base_tree=None if any(map(crew.hooks.has, _BEFORE)) else tree)
    crew.store.save(task)
    crew.store.emit(TaskStarted(**copy_shared(task, TaskStarted)))
    return task


async def _run_phase(crew: Crew, task: TaskState, phase: Phase) -> TaskState:
    """Run one phase, and the judge beside it; an error of the model ends the task, not the program."""
    begun, task = task.proving, enter_phase(task, phase, make_timestamp())
    if task.proving > begun:
        crew.snapshots.hold()
    crew.store.save(task)
    if task.proving > begun and task.stands is not None:
        places = describe_all(task.stands.verdict.unproved)
        crew.store.emit(ProvingStarted(round=task.proving, rounds=task.options.prove_rounds, places=places))
    if phase is Phase.COMPLETE:
        return await PHASES[phase](crew, task)
    phases = list_phases_beside(task, phase)
    for each in phases if phase not in JUDGING or task.reads_only else ():  # judges are chosen later
        task = await announce_phase(crew, task, each)
    if task.ending is not None:
        return end_in_phase(task, phase, task.ending)
    for each in phases:
        crew.store.emit(PhaseStarted(phase=each, iteration=task.iteration))
    begin = time.monotonic()
    try:
        task = await PHASES[phase](crew, task)
    except ModelError as error:
        await announce_model_failure(crew, crew.store.task, error)
        task = _end_without_model(crew.store.task, error)
    if task.status is Status.SUSPENDED:
        return task
    if phase is not Phase.REFINEMENT and task.ending is None and awaits_base(task) and crew.base:
        crew.store.save(task)
        await crew.base.settle(crew)
        task = crew.store.task
    return _end_phases(crew, task, phases, begin)


def _end_phases(crew: Crew, task: TaskState, phases: Iterable[Phase], begin: float) -> TaskState:
    if over := _find_overspent(task):
        task = end_in_phase(task, task.current_phase, over)
    task = skip_proving(task)
    for each in phases:
        gate, seconds = task.get_gate(each), round(time.monotonic() - begin, 3)
        crew.store.emit(
            PhaseEnded(
                phase=each,
                iteration=task.iteration,
                status=gate.status,
                message=gate.message,
                seconds=seconds,
            )
        )
    passed = [each for each in phases if task.get_gate(each).status is GateStatus.PASSED]
    wanted = task.options.pause_after
    return pause_after(task, wanted) if wanted and _is_behind(task, wanted, passed) else task


def _is_behind(task: TaskState, wanted: Phase, passed: list[Phase]) -> bool:
    """Return whether a phase has passed, or is one that this task skips and would come now."""
    order = [*Phase]
    last = max(map(order.index, passed), default=len(order))
    later = min((order.index(each) for each in task.routing.steps if order.index(each) > last), default=0)
    return wanted in passed or (wanted not in task.routing.steps and last < order.index(wanted) < later)


def _end_without_model(task: TaskState, error: ModelError) -> TaskState:
    mark = ". " if error.hint[:1].isupper() else "; "
    reason = f"{error}{mark}{error.hint}" if error.hint else str(error)
    if isinstance(error, ModelUnavailable) and task.stands is None:
        gate = task.get_gate(task.current_phase).replace(message=f"- {reason}")
        return suspend(task.with_gate(task.current_phase, gate), reason, Exit.NO_MODEL)
    status = Status.LIMIT if error.exit_code is Exit.LIMIT else Status.FAILED
    ending = Ending(status=status, exit_code=error.exit_code, reason=reason)
    return end_in_phase(task, task.current_phase, ending)


def _find_overspent(task: TaskState) -> Ending | None:
    budget, usage = task.options.budget, task.usage
    if task.verdict is not None and task.verdict.passed:
        return None
    if budget.cost is not None and usage.cost_usd is not None and usage.cost_usd >= budget.cost:
        return end_at_limit(f"{usage.cost_usd:.4f} of {budget.cost:g} USD used (--max-cost)")
    if budget.tokens is not None and usage.tokens >= budget.tokens:
        return end_at_limit(f"{usage.tokens} of {budget.tokens} tokens used (--max-tokens)")
    return None


def end_at_limit(reason: str) -> Ending:
    return Ending(status=Status.LIMIT, exit_code=Exit.LIMIT, reason=reason)


def finish(crew: Crew, task: TaskState, began: float | None = None) -> TaskState:
    """Write the report of a task that ended or waits; `began` is a time of the monotonic clock."""
    task = _look_again(crew, task)
    assert task.ending is not None
    crew.store.save(task)
    told = summarize_intent(task, load_events(crew.store.folder))
    took = 0 if began is None else time.monotonic() - began
    spent = sum_spending(load_events(crew.store.folder), took)
    text = format_report(task, crew.gather_material(task), crew.list_changes(task), told, spent)
    written = crew.store.write_report(text)
    if task.parallel_work is not None and not can_go_on(task):
        from agentflow.workflow.parallel import remove_copies  # noqa: PLC0415  # only where it is asked for

        remove_copies(crew.store.folder)
    if task.status is not Status.SUSPENDED:
        keep_task(task, crew.store.folder, crew.memory, crew.store.emit)
    for item in task.pending if task.status is Status.SUSPENDED else ():
        crew.store.emit(Paused(pending=item.id, kind=item.kind, tool=item.tool))
    crew.store.emit(
        TaskEnded(
            status=task.ending.status,
            exit_code=task.ending.exit_code,
            reason=task.ending.reason,
            seconds=None if began is None else round(time.monotonic() - began, 3),
            report=hash_file(written),
            runs={path.name: hash_file(path) for path in (crew.store.folder / "runs").glob("*.jsonl")},
        )
    )
    return task


def _look_again(crew: Crew, task: TaskState) -> TaskState:
    try:
        if task.base_tree is None:
            crew.snapshots.note(is_over=True)
            return task
        seen = crew.take_tree(task).replace(goes_on_from=task.tree)
        is_same = seen.tree == task.base_tree and task.reads_only and crew.is_confined
        crew.snapshots.note(is_over=True, is_same=is_same)
        crew.make_diff(seen)
    except (StateError, OSError) as error:
        crew.store.emit(Warned(message=f"what changed is unknown, the files cannot be read: {error}"))
        return task.replace(tree=None, goes_on_from=task.tree)
    is_judged = task.status in _VERIFIED and seen.tree != task.tree
    return _keep_hook_files(crew, _check_drift(crew, task, seen) if is_judged else seen, seen)


def _keep_hook_files(crew: Crew, task: TaskState, seen: TaskState) -> TaskState:
    if not seen.hook_files or task.base_tree is None or seen.tree is None:
        return task
    changed = {change.path for change in crew.git.list_changes(task.base_tree, seen.tree)}
    kept = {path: mark for path, mark in seen.hook_files.items() if path in changed}
    return task.replace(hook_files=kept)


def _check_drift(crew: Crew, task: TaskState, seen: TaskState) -> TaskState:
    assert task.tree is not None
    assert seen.tree is not None
    assert task.verdict is not None
    apart = find_hook_files(seen)
    changes = tuple(each for each in crew.git.list_changes(task.tree, seen.tree) if each.path not in apart)
    reasons = tuple(list_drift(changes, ()))
    if not reasons:
        if paths := [each.path for each in changes]:
            crew.store.emit(Warned(message=f"new after the checks: {list_some(paths)}"))
        return task.replace(hook_files=seen.hook_files)
    ending = fail("; ".join(describe_all(reasons)))
    verdict = task.verdict.replace(passed=False, reasons=reasons, caveats=())
    return seen.replace(ending=ending, status=ending.status, verdict=verdict)


def end_early(crew: Crew, status: Status, exit_code: Exit, reason: str) -> TaskState:
    """End a task from outside its loop, after a signal or a bug, with what was saved."""
    is_open = status is Status.SUSPENDED
    task, ending = crew.store.task, Ending(status=status, exit_code=exit_code, reason=reason)
    task, ending = keep_standing(crew, task, ending)
    task = task.replace(ending=ending, status=ending.status, active=is_open)
    crew.store.save(task)
    return finish(crew, task)


async def implement(crew: Crew, task: TaskState) -> TaskState:
    """Run the implementer, or several at once where the plan has steps that need nothing of each other."""
    is_later = task.iteration > 1 or task.stands is not None or task.is_first_try
    if task.parallel_work is None or task.plan is None or is_later:
        return await work(crew, task)
    from agentflow.workflow.parallel import work_on_steps  # noqa: PLC0415  # only where it is asked for

    return await work_on_steps(crew, task)


async def run_exploration(crew: Crew, task: TaskState) -> TaskState:
    """Run one explorer, or one for each angle where exploring is the task."""
    return await (work if task.options.focus is None else explore_deeply)(crew, task)


async def judge_change(crew: Crew, task: TaskState) -> TaskState:
    """Run the judges of the change, at the same time where both are due."""
    from agentflow.workflow.judging import run_judges  # noqa: PLC0415  # nothing before a change needs it

    return await run_judges(crew, task, list_phases_beside(task, task.current_phase))


async def complete(crew: Crew, task: TaskState) -> TaskState:
    """Decide how the task ended, and write the document of one that only answers."""
    task, ending = keep_standing(crew, task, task.ending or conclude(task))
    crew.store.emit(summarize_intent(task, load_events(crew.store.folder)))
    if ending.status is Status.ANSWERED and has_document(task):
        path = write_document(crew.git.root, task, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()))
        task = task.replace(document=path)
    return task.replace(ending=ending, status=ending.status, active=ending.status is Status.SUSPENDED)


PHASES: Mapping[Phase, Callable[[Crew, TaskState], Awaitable[TaskState]]] = MappingProxyType(
    {
        Phase.REFINEMENT: refine,
        Phase.EXPLORATION: run_exploration,
        Phase.PLANNING: work,
        Phase.IMPLEMENTATION: implement,
        Phase.REVIEW: judge_change,
        Phase.VERIFICATION: judge_change,
        Phase.COMPLETE: complete,
    }
)
