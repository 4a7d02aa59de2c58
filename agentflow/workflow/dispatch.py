"""Runs of roles: begun, gone on with, and begun once more after a lost reply."""

from collections.abc import Iterator

from agentflow.core.errors import ModelError, ModelUnavailable
from agentflow.core.events import Answered, Retried
from agentflow.core.fold import DELEGATE
from agentflow.core.messages import Stop, Usage, total
from agentflow.core.pending import Pending, PendingKind, decide_now
from agentflow.core.record import Record
from agentflow.core.routing import ROLE_OF
from agentflow.core.run import Run, RunOutcome, RunPaused
from agentflow.core.task import Phase
from agentflow.loop.run import continue_run, run_agent
from agentflow.model.tiers import REPAIR
from agentflow.process import timestamp
from agentflow.store.journal import load_run
from agentflow.workflow.crew import Crew
from agentflow.workflow.suspension import record_answer
from agentflow.workflow.task_prompt import write_iteration_prompt, write_task_prompt

GO_ON = "go on from here"
GIVE_UP = "give up"
_EMPTY = (RunOutcome.NO_SUBMISSION, RunOutcome.INVALID_SUBMISSION)


class Angle(Record):
    """What the role of one run is told, and under which name."""

    name: str
    told: str
    earlier: Run | None = None
    """The run in whose conversation it is told."""
    is_step: bool = False
    """It is a step of the plan: its run is found again by the name, since others change what it is told."""


async def dispatch(crew: Crew, phase: Phase, angle: Angle | None = None) -> Run:
    """Run the role of a phase; decide at once what the person decided beforehand."""
    run = await _dispatch(crew, phase, angle)
    decision = decide_now(crew.consent, run.pause.pending) if run.pause else None
    if run.pause is None or decision is None:
        return run
    item = run.pause.pending
    crew.store.save(record_answer(crew.store.task, item, decision))
    crew.store.emit(Answered(pending=item.id, approved=decision.approved, by=decision.by))
    return await dispatch(crew, phase, angle)


async def _dispatch(crew: Crew, phase: Phase, angle: Angle | None) -> Run:
    """Run the role of a phase on the newest state, into which its calls write what they change.

    A run of the same brief that was cut short, or waited for a person, goes on where it was; one that had
    its result is not repeated. One whose reply was lost is begun once more, unless files were changed by
    then: what happens to those is for a person to say.
    """
    angle = angle or _prompt_for(crew, phase)
    number, saved = _find_saved(crew, phase, angle)
    try:
        run = await _attempt(crew, phase, angle, number, saved)
        failure = None
    except ModelUnavailable as error:
        if error.is_settled:
            raise
        failure = error
        run = _load(crew, number, phase)
    except ModelError:  # it does not go on: what it used so far counts now
        _count(crew, _load(crew, number, phase))
        raise
    reason = str(failure) if failure else explain_loss(run)
    if reason is None:
        return run
    _count(crew, run)
    if paused := _ask_about_changes(crew, run, reason):
        return paused
    crew.store.emit(Retried(run=number, attempt=1, reason=reason, seconds=0))
    again = await _attempt(crew, phase, angle, crew.store.task.runs + 1, None)
    if failure is not None and explain_loss(again) is not None:
        raise failure
    return again


def explain_loss(run: Run) -> str | None:
    """Return how the result of a run was lost, or None; a short but complete reply is not lost."""
    if run.outcome not in _EMPTY:
        return None
    if run.reply_stop is Stop.MAX_TOKENS:
        return "the reply was cut off"
    return None if run.messages[-1].text.strip() or run.rejected else "the reply was empty"


def _prompt_for(crew: Crew, phase: Phase) -> Angle:
    """Return the whole task prompt, or only the news where an earlier conversation goes on."""
    task, material = crew.store.task, crew.material(crew.store.task)
    if earlier := _find_failed_run(crew, phase):
        return Angle(name="", told=write_iteration_prompt(task, material), earlier=earlier)
    return Angle(name="", told=write_task_prompt(task, phase, material))


def _find_failed_run(crew: Crew, phase: Phase) -> Run | None:
    """Return the run whose change failed, if its conversation can go on: it fits, and nothing else is new."""
    task = crew.store.task
    may_go_on = task.spares_tokens and phase is Phase.IMPLEMENTATION and phase not in task.asked
    failed = [failure for failure in task.failures if failure.iteration == task.iteration - 1]
    if not may_go_on or not failed or failed[-1].tree != task.tree:
        return None
    role = ROLE_OF[phase]
    saved = (load_run(crew.store.run_path(number, role)) for number in _numbers(crew, role))
    run = next((run for run in saved if run is not None and run.head.iteration < task.iteration), None)
    if run is None or run.outcome is not RunOutcome.SUBMITTED or run.active is not None:
        return None
    if run.head.model == REPAIR:  # nothing was said there that a model could go on with
        return None
    tokens = max(run.tokens, run.used[-1].tokens)
    return run if tokens < crew.room(run.head.model).compacted_at else None


async def _attempt(crew: Crew, phase: Phase, angle: Angle, number: int, saved: Run | None) -> Run:
    store = crew.store
    store.save(store.task.replace(runs=max(number, store.task.runs)))
    if saved is None or saved.outcome is None:
        crew = await crew.with_servers(phase)
    agent = crew.agent(store.task, phase, number, angle.name)
    if saved is None:
        run = await run_agent(agent, angle.told, angle.earlier)
    else:
        store.change(saved.changes)
        answer = store.task.answers.get(saved.pause.pending.id) if saved.pause else None
        run = saved if saved.outcome else await continue_run(agent, saved, answer)
    begins_anew = run.pause is not None and run.pause.pending.kind is PendingKind.ESCALATION
    if run.outcome is not None or begins_anew:
        _count(crew, run)
    return run


def _count(crew: Crew, run: Run) -> None:
    """Add the usage of a run to that of the task, once."""
    task, number = crew.store.task, run.head.run
    if number not in task.counted:
        spent = _sum_usage(crew, run)
        usage = total((task.usage, spent)) if task.counted else spent
        crew.store.save(task.replace(usage=usage, counted=(*task.counted, number)))


def _sum_usage(crew: Crew, run: Run) -> Usage:
    """Return the usage of a run and of the sub-agents whose answers it no longer waits for."""
    calls = {call.id for call in run.pending if call.name == DELEGATE}
    saved = map(load_run, crew.store.transcript_paths("*")) if calls else ()
    waiting = (child for child in saved if child is not None and child.head.parent in calls)
    return total((run.cost, *(_sum_usage(crew, child) for child in waiting)))


def _find_saved(crew: Crew, phase: Phase, angle: Angle) -> tuple[int, Run | None]:
    """Return the newest unfinished or submitted run of this prompt or step, or the next number."""
    for number in _numbers(crew, ROLE_OF[phase]):
        run = load_run(crew.store.run_path(number, ROLE_OF[phase]))
        if run is None or run.head.iteration != crew.store.task.iteration:
            break
        is_usable = run.outcome in (None, RunOutcome.SUBMITTED) and bool(run.messages)
        if is_usable and _is_of(angle, run):
            return number, run
    return crew.store.task.runs + 1, None


def _is_of(angle: Angle, run: Run) -> bool:
    if not angle.is_step:
        return run.task_prompt == angle.told
    begins_anew = run.pause is not None and run.pause.pending.kind is PendingKind.ESCALATION
    return run.head.angle == angle.name and not begins_anew


def _numbers(crew: Crew, role: str) -> Iterator[int]:
    """Yield the numbers of a role's runs, newest first."""
    return (
        number for number in range(crew.store.task.runs, 0, -1) if crew.store.run_path(number, role).exists()
    )


def _load(crew: Crew, number: int, phase: Phase) -> Run:
    run = load_run(crew.store.run_path(number, ROLE_OF[phase]))
    assert run is not None
    return run


def _ask_about_changes(crew: Crew, run: Run, reason: str) -> Run | None:
    """Return the run paused for a person, if it changed files before its result was lost."""
    task = crew.store.task
    if crew.copy is not None:
        return None  # nothing of it is in the repository
    seen = crew.take_tree(task)
    if run.head.role != ROLE_OF[Phase.IMPLEMENTATION] or task.tree is None or seen.tree is None:
        return None
    changes = crew.changes(seen.replace(base_tree=task.tree))
    if not changes:
        return None
    rows = crew.git.diff(task.tree, seen.tree, *(each.path for each in changes)).split("\n")
    added, removed = (sum(row.startswith(sign) for row in rows) - _heads(rows, sign) for sign in "+-")
    pending = Pending(
        id=f"lost-{run.head.run}",
        kind=PendingKind.QUESTION,
        tool=None,
        input={
            "why": f"the {run.head.role} was interrupted: {reason}",
            "changed": ", ".join(f"{one.kind} {one.path}" for one in changes),
            "lines": f"+{added} -{removed}",
        },
        options=(GO_ON, GIVE_UP),
        asked_at=timestamp(),
    )
    if decide_now(crew.consent, pending) is not None:
        return None
    crew.store.save(seen)
    return run.replace(pause=RunPaused(call_id="", pending=pending))


def _heads(rows: list[str], sign: str) -> int:
    return sum(row.startswith(sign * 3) for row in rows)
