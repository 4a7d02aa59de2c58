"""Independent steps of the plan, carried out by several implementers at the same time.

Each works in a copy of the repository. Their changes are merged in the order of the plan, and the whole is
judged once. A step whose change conflicts with an earlier one is carried out again in the repository.
"""

from functools import partial
from itertools import takewhile
from pathlib import Path

import anyio
from anyio import to_thread

from agentflow.core.errors import ModelError, ModelUnavailable
from agentflow.core.events import StepMerged
from agentflow.core.record import Record
from agentflow.core.role import Change, ParallelWork, Plan, StepResult, list_waves
from agentflow.core.routing import ROLE_OF
from agentflow.core.run import Run, RunOutcome
from agentflow.core.task import Phase, TaskState
from agentflow.loop.prompts import read_prompt
from agentflow.parse import fit
from agentflow.redact import redact_text, to_one_line
from agentflow.sandbox.throwaway import remove_scratch
from agentflow.verdict.ending import end_without_result
from agentflow.verdict.runner import run_together
from agentflow.workflow.crew import Crew, StepPlace
from agentflow.workflow.dispatch import RunPrompt, accept, dispatch, work
from agentflow.workflow.gates import end_in_phase, suspend_for
from agentflow.workflow.task_prompt import quote_diff, write_task_prompt
from agentflow.workspace.side_copy import SideCopy, find_conflicts, merge_change, open_side_copy

_COPIES = "steps"
_NAME_CHARS = 60
"""Characters of a step's title by which its run is called."""


class _EndedStep(Record):
    """The result of a step in its copy."""

    step: int
    copy: SideCopy
    run: Run | None
    failure: ModelError | None = None

    @property
    def is_done(self) -> bool:
        return self.run is not None and self.run.outcome is RunOutcome.SUBMITTED


async def work_on_steps(crew: Crew, task: TaskState) -> TaskState:
    """Carry out the plan: groups of steps side by side, then all remaining steps in one run."""
    assert task.plan is not None
    waves = list_waves(task.plan)
    wide = [place for place, wave in enumerate(waves) if len(wave) > 1]
    if not wide:
        return await work(crew, task)
    for wave in waves[: wide[-1] + 1]:
        task = await _carry_out_wave(crew, wave)
        if task.ending is not None:
            return task
    if waves[wide[-1] + 1 :]:
        task = await work(crew.replace(step=StepPlace(since=task.tree)), task)
        return task if task.ending else task.replace(change=_join_changes(task, task.change))
    agent = crew.roles.find_part(ROLE_OF[Phase.IMPLEMENTATION]).name
    return accept(crew, task.replace(change=_join_changes(task)), agent)


def _join_changes(task: TaskState, *last: Change | None) -> Change:
    changes = [(f"step {each.step}: ", each.change) for each in _work_of(task).results]
    changes += [("", change) for change in last if change is not None]
    return Change(
        summary="; ".join(f"{head}{change.summary}" for head, change in changes),
        files=tuple(dict.fromkeys(path for _, change in changes for path in change.files)),
    )


async def _carry_out_wave(crew: Crew, wave: tuple[int, ...]) -> TaskState:
    work = _work_of(crew.store.task)
    steps = tuple(step for step in wave if step not in work.done)
    if not steps:
        return crew.store.task
    if work.base is None:
        task = crew.take_tree(crew.store.task)
        crew.store.save(task)
        _save_progress(crew, base=task.tree)
    ended = await _run_steps(crew, steps)
    is_over = any(map(_is_failed, ended))
    # a step that goes on later comes before those after it
    ready = [each for each in ended if each.is_done]
    for each in ready if is_over else takewhile(lambda each: each.is_done, ended):
        stopped = await _merge_step(crew, each, is_over=is_over)
        if stopped is not None:
            return stopped
    if not all(each.is_done for each in ended):
        return _stop_early(crew, ended)
    await to_thread.run_sync(remove_copies, crew.store.folder)
    return crew.store.task


def remove_copies(folder: Path) -> None:
    """Remove what steps of a task worked in, by the task's folder."""
    remove_scratch(folder / _COPIES)


async def _run_steps(crew: Crew, steps: tuple[int, ...]) -> list[_EndedStep]:
    work = _work_of(crew.store.task)
    assert work.base is not None
    left = len(steps)
    limiter, turn = anyio.CapacityLimiter(work.at_once), anyio.Lock()
    masked = crew.sandbox.opened.masked  # of what roles may not see, a copy has nothing
    places = ((entry, crew.git.root / entry) for entry in crew.git.list_ignored())
    ignored = tuple(entry for entry, at in places if not any(each.is_relative_to(at) for each in masked))
    make = partial(open_side_copy, crew.git, work.base, ignored, masked)

    async def carry_out(step: int) -> _EndedStep:
        nonlocal left
        async with limiter:
            async with turn:
                copy = await to_thread.run_sync(make, crew.store.folder / _COPIES / str(step))
            prompt = RunPrompt(name=_name_step(crew, step), text=_write_prompt(crew, step), is_step=True)
            try:
                run = await dispatch(crew.switch_to_copy(copy, left), Phase.IMPLEMENTATION, prompt)
            except ModelError as error:  # the others come to their end first
                return _EndedStep(step=step, copy=copy, run=None, failure=error)
            finally:
                left -= 1
            return _EndedStep(step=step, copy=copy, run=run)

    return await run_together(*(partial(carry_out, step) for step in steps))


def _write_prompt(crew: Crew, step: int) -> str:
    task = crew.store.task
    one = _plan_of(task).steps[step - 1]
    files = f" ({', '.join(one.files)})" if one.files else ""
    own = f"# Your step\n{step}. {one.title}{files}\n\n{read_prompt('step.md')}"
    return f"{write_task_prompt(task, Phase.IMPLEMENTATION, crew.gather_material(task))}\n\n{own}"


def _is_failed(ended: _EndedStep) -> bool:
    if ended.failure is not None:
        return not isinstance(ended.failure, ModelUnavailable)
    return ended.run is not None and ended.run.pause is None and not ended.is_done


def _stop_early(crew: Crew, ended: list[_EndedStep]) -> TaskState:
    """Return the task as it waits or ends with steps that are not done. Raises ModelError."""
    task = crew.store.task
    for each in ended:
        if each.run is not None and _is_failed(each):
            return _fail(crew, each.step, each.run)
    failures = [each.failure for each in ended if each.failure is not None]
    if failures:
        raise failures[0]
    for each in ended:
        task = suspend_for(task, each.run.pause.pending) if each.run and each.run.pause else task
    return task


def _fail(crew: Crew, step: int, run: Run) -> TaskState:
    ending = end_without_result(run)
    ending = ending.replace(reason=f"step {step}: {ending.reason}")
    return end_in_phase(crew.take_tree(crew.store.task), Phase.IMPLEMENTATION, ending)


async def _merge_step(crew: Crew, ended: _EndedStep, *, is_over: bool) -> TaskState | None:
    """Merge the change of a step into the files; return the task if it ends or waits because of that.

    In a task that is over, as another step failed, no step is carried out once more.
    """
    assert ended.run is not None
    step, run = ended.step, ended.run
    if _work_of(crew.store.task).again != step:
        merged = await to_thread.run_sync(merge_change, crew.git, ended.copy, crew.snapshots)
        title = _plan_of(crew.store.task).steps[step - 1].title
        event = StepMerged(
            step=step, title=title, run=run.head.run, files=merged.taken, conflicts=merged.conflicts
        )
        crew.store.emit(event)
        crew.store.save(crew.take_tree(crew.store.task))
        if not merged.conflicts:
            _add_result(crew, step, run)
            return None
        _save_progress(crew, again=step)
    if is_over:
        return None
    again = await _repeat_step(crew, ended)
    if again.pause is not None:
        return suspend_for(crew.store.task, again.pause.pending)
    if again.outcome is not RunOutcome.SUBMITTED:
        return _fail(crew, step, again)
    crew.store.save(crew.take_tree(crew.store.task))
    _add_result(crew, step, again)
    return None


async def _repeat_step(crew: Crew, ended: _EndedStep) -> Run:
    """Have a step done once more in the repository, where another one had changed the same lines."""
    task, copy = crew.store.task, ended.copy
    crew = crew.replace(step=StepPlace(since=task.tree))
    assert task.tree is not None
    own, merged = await to_thread.run_sync(copy.git.write_tree), task.tree
    paths = await to_thread.run_sync(find_conflicts, crew.git, copy)
    parts = (
        _write_prompt(crew, ended.step),
        read_prompt("conflict.md"),
        quote_diff("Your change", redact_text(crew.git.make_diff(copy.tree, own, *paths))),
        quote_diff("What stands there now", redact_text(crew.git.make_diff(copy.tree, merged, *paths))),
    )
    text = "\n\n".join(part for part in parts if part)
    prompt = RunPrompt(name=f"{_name_step(crew, ended.step)} (again)", text=text, is_step=True)
    return await dispatch(crew, Phase.IMPLEMENTATION, prompt)


def _add_result(crew: Crew, step: int, run: Run) -> None:
    """Note that a step is done; with the last of its group, in one write, that the next begins anew."""
    work, plan = _work_of(crew.store.task), _plan_of(crew.store.task)
    result = StepResult(step=step, run=run.head.run, change=fit(Change, run.changes["change"]))
    left = next(set(wave) for wave in list_waves(plan) if step in wave) - work.done - {step}
    _save_progress(crew, again=None, results=(*work.results, result), base=work.base if left else None)


def _save_progress(crew: Crew, **changed: object) -> None:
    task = crew.store.task
    crew.store.save(task.replace(parallel=_work_of(task).replace(**changed)))


def _name_step(crew: Crew, step: int) -> str:
    title = _plan_of(crew.store.task).steps[step - 1].title
    return f"step {step}: {to_one_line(title, _NAME_CHARS)}"


def _plan_of(task: TaskState) -> Plan:
    assert task.plan is not None
    return task.plan


def _work_of(task: TaskState) -> ParallelWork:
    assert task.parallel_work is not None
    return task.parallel_work
