"""The one path that every tool call takes."""

import time
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from shutil import copy
from typing import Any

from anyio import to_thread

from agentflow.core.errors import ModelUnavailable, ToolError
from agentflow.core.events import ToolFinished, ToolStarted
from agentflow.core.evidence import By
from agentflow.core.fold import DELEGATE
from agentflow.core.messages import ToolCall, ToolResult
from agentflow.core.points import Point, ToolDone, ToolFailed
from agentflow.core.record import copy_shared
from agentflow.core.run import CallAnswered, Run, RunPaused
from agentflow.core.task import Phase
from agentflow.core.tool import Effect, Output, Shell, Tool, ToolContext
from agentflow.loop.agent import Agent
from agentflow.loop.authorize import AuthorizedCall, authorize
from agentflow.loop.lifecycle import fire_hooks
from agentflow.loop.replies import to_writable
from agentflow.process import stop_asked
from agentflow.redact import one_line, redact_text, redact_values
from agentflow.tools.inputs import check_input
from agentflow.tools.shell import recall_note


async def answer(agent: Agent, run: Run, call: ToolCall) -> CallAnswered | RunPaused:
    """Make a call, return why it is not made, or let it wait; no mistake of a model raises."""
    admitted = await authorize(agent, run, call)
    if not isinstance(admitted, AuthorizedCall):
        return admitted
    subject = one_line(admitted.subject)
    agent.observe(
        ToolStarted(run=agent.around.number, turn=run.turns, call_id=call.id, tool=call.name, subject=subject)
    )
    begin = time.monotonic()
    found = await _make(agent, run, call, admitted)
    if isinstance(found, RunPaused):
        return found
    made = await _show_hooks(agent, call, admitted, found)
    made = made.replace(seconds=round(time.monotonic() - begin, 3))
    agent.observe(
        ToolFinished(
            run=agent.around.number,
            turn=run.turns,
            call_id=call.id,
            tool=call.name,
            is_error=made.result.is_error,
            summary=one_line(made.result.content),
            seconds=made.seconds,
        )
    )
    return made


async def _make(agent: Agent, run: Run, call: ToolCall, admitted: AuthorizedCall) -> CallAnswered | RunPaused:
    context = ToolContext(
        role=agent.role,
        tools=agent.tools,
        call_id=call.id,
        run=run,
        cancelled=stop_asked,
        shell=Shell(
            runner=agent.around.runner,
            outputs=agent.around.outputs,
            shown_bytes=agent.room.result_size(run.rate),
        ),
        **copy_shared(agent.around, ToolContext),
    )
    try:
        check_input(admitted.tool, admitted.input, context)
        with _watch(agent, admitted.tool):
            output = await to_thread.run_sync(partial(admitted.tool.call, admitted.given, context))
    except ModelUnavailable:
        raise  # of a sub-agent: the task goes on later where it is
    except Exception as error:  # noqa: BLE001  # a bug in a tool is an error result, not the end of the task
        bug = "" if isinstance(error, ToolError) else f"{call.name} failed: {type(error).__name__}: "
        content = redact_text(to_writable(f"{bug}{error}"))
        return CallAnswered(result=ToolResult(call_id=call.id, content=content, is_error=True))
    if output.pending is not None:
        return RunPaused(call_id=call.id, pending=output.pending, inside=True)
    output = output.replace(content=redact_text(output.content))
    content = to_writable(_store_output(agent, run, call, output))
    return CallAnswered(
        result=ToolResult(call_id=call.id, content=content, is_error=output.is_error),
        changes=redact_values(to_writable(output.changes)),
        submitted=output.submitted,
        halt=output.delegated.halt if output.delegated else None,
        delegated=output.delegated,
        handoff=output.handoff,
    )


def _watch(agent: Agent, tool: Tool) -> AbstractContextManager[None]:
    """Return what says that files may be the role's change, where a call of it can change any."""
    around = agent.around
    may_write = around.phase is Phase.IMPLEMENTATION or around.runner.level == "none"
    if around.watch is None or not may_write or tool.effect is Effect.READ or tool.name == DELEGATE:
        return nullcontext()
    return around.watch.role_works()


def _store_output(agent: Agent, run: Run, call: ToolCall, output: Output) -> str:
    """Keep what a call printed as evidence, and return what the model gets to see of it."""
    full = agent.around.outputs / f"{call.id}.out"
    if output.execution is not None:
        execution = output.execution
        if output.clipped:  # the ledger takes the file, and the model may still ask for this one
            execution = execution.replace(output=str(copy(full, full.with_suffix(".whole"))))
        role = agent.role.part or agent.role.name
        kept = agent.around.ledger.record(execution, role=role, iteration=agent.around.iteration, by=By.AGENT)
        return f"{output.content}, evidence {kept.id}"
    most = agent.room.result_size(run.rate)
    if len(output.content) > most:
        full.write_text(output.content, "utf-8", "backslashreplace")
        note = f"[clipped; {recall_note(run.head.tools, call.id)}]"
        return f"{output.content[:most]}\n{note}"
    return output.content


async def _show_hooks(
    agent: Agent, call: ToolCall, admitted: AuthorizedCall, made: CallAnswered
) -> CallAnswered:
    """Let hooks look at a result; they may replace its text and add to it, never undo it."""
    point = Point.POST_TOOL_USE_FAILURE if made.result.is_error else Point.POST_TOOL_USE
    text = made.result.content

    def payload() -> ToolDone | ToolFailed:
        use: Any = {"tool_name": call.name, "tool_input": admitted.input, "tool_use_id": call.id}
        return ToolFailed(**use, error=text) if made.result.is_error else ToolDone(**use, tool_response=text)

    said = await fire_hooks(agent, point, payload, admitted.tool)
    shown = text if said.updated_output is None else said.updated_output
    added = (admitted.context, said.context)
    content = redact_text("\n\n".join(part for part in (shown, *added) if part))
    return made.replace(result=made.result.replace(content=content), halt=made.halt or said.halt)
