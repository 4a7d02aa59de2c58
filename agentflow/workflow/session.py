"""Hooks around a whole task: its start, its text, and its end."""

from collections.abc import Callable
from functools import partial

import anyio.to_thread

from agentflow.core.errors import Exit, Halted, ModelError, ModelRefused, ModelRejected
from agentflow.core.events import Warned
from agentflow.core.finding import FindingKind
from agentflow.core.hook import Decision, HookDecision
from agentflow.core.pending import Pending, PendingKind
from agentflow.core.points import (
    InstructionsRead,
    Notified,
    PhaseWork,
    Point,
    Prompt,
    Scene,
    SessionEnded,
    SessionStarted,
    StopFailed,
    Stopped,
)
from agentflow.core.record import Record
from agentflow.core.task import Instruction, Phase, Status, TaskState
from agentflow.core.verdict import Verdict
from agentflow.loop.lifecycle import MAX_BLOCKS
from agentflow.memory.keep import recall_for_task
from agentflow.redact import redact_text, to_one_line
from agentflow.verdict.ending import block
from agentflow.workflow.crew import Crew

_KINDS = {PendingKind.APPROVAL: "permission_prompt", PendingKind.SURFACE: "permission_prompt"}
"""What a notification about something that waits is; about anything else a question is asked."""
_POST_SECONDS = 5.0
_SHOWN = 100
"""Characters of a task's text in a notification."""


async def start_session(crew: Crew, task: TaskState) -> TaskState:
    """Tell hooks that work on a task begins; a hook may refuse a new task."""
    is_new = task.current_phase is Phase.REFINEMENT
    if is_new:
        task = await anyio.to_thread.run_sync(recall_for_task, task, crew.memory, crew.store.emit)
    source = "startup" if is_new else "resume"
    started = await _fire(
        crew, task, Point.SESSION_START, lambda: SessionStarted(source=source, model=task.model)
    )
    contexts = [task.known.context, started.context]
    if is_new:
        prompted = await _fire(crew, task, Point.USER_PROMPT_SUBMIT, lambda: Prompt(prompt=task.task))
        contexts.append(prompted.context)
        if prompted.decision is Decision.DENY:
            return task.replace(ending=block(f"a hook refused the task: {prompted.reason}"))
    return task.replace(context=redact_text("\n\n".join(dict.fromkeys(text for text in contexts if text))))


async def end_session(crew: Crew, task: TaskState) -> None:
    """Tell hooks that the process ends its work on a task."""
    await _fire(crew, task, Point.SESSION_END, lambda: SessionEnded(reason=str(task.status)))


async def announce_instructions(crew: Crew, task: TaskState) -> None:
    """Tell hooks of each file of instructions that roles are given."""
    for each in task.known.instructions:
        await _fire(crew, task, Point.INSTRUCTIONS_LOADED, partial(_to_instructions, crew, each))


def _to_instructions(crew: Crew, one: Instruction) -> InstructionsRead:
    reason = "path_glob_match" if one.globs else "nested_traversal" if one.folder else "session_start"
    kind = "Local" if one.path.endswith("CLAUDE.local.md") else "Project"
    return InstructionsRead(file_path=str(crew.git.root / one.path), memory_type=kind, load_reason=reason)


async def announce_phase(crew: Crew, task: TaskState, phase: Phase) -> TaskState:
    """Tell hooks that a role is about to begin a phase; a refusal ends the task."""
    if phase not in task.routing.steps or (phase is Phase.VERIFICATION and not task.asks_verifier):
        return task
    work = PhaseWork(task_subject=phase, task_description=task.task)
    said = await _fire(crew, task, Point.TASK_CREATED, lambda: work)
    if said.decision is not Decision.DENY:
        return task
    return task.replace(ending=block(f"a hook refused the {phase}: {said.reason}"))


async def announce_model_failure(crew: Crew, task: TaskState, error: ModelError) -> None:
    """Tell hooks that the model gave no usable reply, so that the task ends or waits."""
    is_refused = isinstance(error, ModelRefused | ModelRejected)
    kind = "invalid_request" if is_refused else "server_error"
    if error.exit_code is Exit.LIMIT:
        kind = "rate_limit"
    failed = StopFailed(error=kind, error_details=redact_text(str(error)))
    await _fire(crew, task, Point.STOP_FAILURE, lambda: failed)


async def notify(crew: Crew, task: TaskState) -> None:
    """Tell hooks and the user's address that the task waits for a person, or has ended."""
    waiting = task.pending if task.status is Status.SUSPENDED else ()
    for item in waiting:
        await _fire(crew, task, Point.NOTIFICATION, partial(_to_notice, item))
        await _tell_address(crew, task, item.kind, _to_notice(item).message)
    if waiting or task.ending is None:
        return
    ended = f"agentflow: {task.status.replace('_', ' ')}"
    notice = Notified(message=f"{ended}: {to_one_line(task.title, _SHOWN)}", notification_type="idle_prompt")
    await _fire(crew, task, Point.NOTIFICATION, lambda: notice)
    await _tell_address(crew, task, task.status, ended)


async def _tell_address(crew: Crew, task: TaskState, kind: str, text: str) -> None:
    """Post a line without a word of the task's; whatever fails is a note, which names no address."""
    if crew.webhook is None:
        return
    from agentflow.model.http import post_json  # noqa: PLC0415  # only where the user named an address

    said = {"task_id": task.task_id, "kind": str(kind), "text": text}
    try:
        await post_json(crew.webhook, said, _POST_SECONDS)
    except ModelError as error:
        crew.store.emit(Warned(message=f"webhook: {error}"))


def _to_notice(item: Pending) -> Notified:
    what = f"{item.describe()}{f' of {item.tool}' if item.tool else ''}"
    return Notified(
        message=f"agentflow waits for you: {what}",
        notification_type=_KINDS.get(item.kind, "elicitation_dialog"),
    )


async def ask_stop_hooks(crew: Crew, task: TaskState, verdict: Verdict) -> tuple[TaskState, Verdict]:
    """Let Stop hooks send a verified change back with a reason, at most eight times."""
    said = await _fire(
        crew,
        task,
        Point.STOP,
        lambda: Stopped(
            last_assistant_message=task.change.summary if task.change else "",
            stop_hook_active=task.waiting.stop_blocks > 0,
        ),
    )
    wanted = said.reason if said.decision is Decision.DENY else said.context
    if not wanted:
        return task, verdict
    count = task.waiting.stop_blocks + 1
    if count > MAX_BLOCKS:
        ending = block(f"Stop hooks blocked {MAX_BLOCKS} times: {wanted}")
        return task.replace(ending=ending), verdict
    reason = FindingKind.STOPPED_BY_HOOK.of(str(count), str(MAX_BLOCKS), wanted)
    return task.replace(stop_blocks=count), verdict.replace(passed=False, reasons=(reason,), caveats=())


async def _fire(crew: Crew, task: TaskState, point: Point, payload: Callable[[], Record]) -> HookDecision:
    folder = crew.store.folder
    scene = Scene(
        task_id=task.task_id,
        cwd=crew.git.root,
        transcript=folder / "events.jsonl",
        outputs=folder / "outputs",
        phase=task.current_phase,
        iteration=task.iteration,
        watch=crew.watch,
        runner=crew.sandbox,
    )
    said = await crew.hooks.ask(point, lambda: scene, payload, crew.store.emit)
    if said.halt is not None:
        raise Halted(said.halt)
    return said
