"""Hooks around a whole task: its start, its text, and its end."""

from collections.abc import Callable

from agentflow.core.errors import Exit, Halted
from agentflow.core.hook import Decision, HookDecision
from agentflow.core.points import Payload, Point, Prompt, Scene, SessionEnded, SessionStarted, Stopped
from agentflow.core.task import Ending, Phase, Status, TaskState
from agentflow.core.verdict import FailReason, Verdict
from agentflow.redact import redact_text
from agentflow.workflow.crew import Crew

MAX_STOP_BLOCKS = 8
"""How often Stop hooks may send a verified change back, as in the public contract."""


async def start_session(crew: Crew, task: TaskState) -> TaskState:
    """Tell hooks that work on a task begins; a hook may refuse a new task."""
    is_new = task.current_phase is Phase.REFINEMENT
    source = "startup" if is_new else "resume"
    started = await _fire(
        crew, task, Point.SESSION_START, lambda: SessionStarted(source=source, model=task.model)
    )
    contexts = [task.context, started.context]
    if is_new:
        prompted = await _fire(crew, task, Point.USER_PROMPT_SUBMIT, lambda: Prompt(prompt=task.task))
        contexts.append(prompted.context)
        if prompted.decision is Decision.DENY:
            return task.replace(ending=_end_blocked(f"a hook refused the task: {prompted.reason}"))
    return task.replace(context=redact_text("\n\n".join(dict.fromkeys(text for text in contexts if text))))


async def end_session(crew: Crew, task: TaskState) -> None:
    """Tell hooks that the process ends its work on a task."""
    await _fire(crew, task, Point.SESSION_END, lambda: SessionEnded(reason=str(task.status)))


async def ask_stop_hooks(crew: Crew, task: TaskState, verdict: Verdict) -> tuple[TaskState, Verdict]:
    """Let Stop hooks send a verified change back with a reason, at most eight times."""
    said = await _fire(
        crew,
        task,
        Point.STOP,
        lambda: Stopped(last_assistant_message="", stop_hook_active=task.stop_blocks > 0),
    )
    wanted = said.reason if said.decision is Decision.DENY else said.context
    if not wanted:
        return task, verdict
    count = task.stop_blocks + 1
    if count > MAX_STOP_BLOCKS:
        ending = _end_blocked(f"Stop hooks blocked {MAX_STOP_BLOCKS} times: {wanted}")
        return task.replace(ending=ending), verdict
    reason = FailReason.STOPPED_BY_HOOK.of(f"{count} of {MAX_STOP_BLOCKS}: {wanted}")
    return task.replace(stop_blocks=count), verdict.replace(passed=False, reasons=(reason,), caveats=())


async def _fire(crew: Crew, task: TaskState, point: Point, payload: Callable[[], Payload]) -> HookDecision:
    folder = crew.store.folder
    scene = Scene(
        task_id=task.task_id,
        cwd=crew.git.root,
        transcript=folder / "events.jsonl",
        outputs=folder / "outputs",
        phase=task.current_phase,
        iteration=task.iteration,
        watch=crew.watch,
    )
    said = await crew.hooks.ask(point, lambda: scene, payload, crew.store.emit)
    if said.halt is not None:
        raise Halted(said.halt)
    return said


def _end_blocked(reason: str) -> Ending:
    return Ending(status=Status.BLOCKED, exit_code=Exit.BLOCKED, reason=reason)
