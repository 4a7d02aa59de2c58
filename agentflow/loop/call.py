"""The one path that every tool call takes."""

import time
from functools import partial

from anyio import to_thread

from agentflow.core.errors import ToolError
from agentflow.core.events import ToolBlocked, ToolFinished, ToolStarted
from agentflow.core.evidence import By
from agentflow.core.messages import ToolCall, ToolResult
from agentflow.core.record import Record
from agentflow.core.run import CallAnswered, Run
from agentflow.core.tool import Category, Output, Tool, ToolContext
from agentflow.loop.agent import Agent
from agentflow.loop.arguments import parsed
from agentflow.loop.threads import stop_asked
from agentflow.parse import Mismatch
from agentflow.permissions.decide import refusal
from agentflow.redact import one_line

MAX_RESULT_CHARS = 32_768
_SUBJECTS = ("file_path", "command", "pattern", "summary", "verdict", "path", "url", "query")


async def answer(agent: Agent, run: Run, call: ToolCall) -> CallAnswered:
    """Make a call, or say why it is not made; never raises for what a model did wrong."""
    tool = agent.tool(call.name)
    if tool is None:
        return _foreign(agent, call)
    try:
        given = parsed(tool.input, call.input)
    except Mismatch as error:
        return _error(call, f"{error}. {_wanted(agent, tool)}")
    subject = _subject(agent, tool, call)
    reason = refusal(agent.role, tool, subject)
    if reason is not None:
        return _blocked(agent, call, reason, owner=None)
    agent.observe(ToolStarted(run=agent.number, call_id=call.id, tool=tool.name, subject=one_line(subject)))
    begin = time.monotonic()
    answered = await _made(agent, run, call, tool, given)
    agent.observe(
        ToolFinished(
            run=agent.number,
            call_id=call.id,
            tool=tool.name,
            is_error=answered.result.is_error,
            summary=one_line(answered.result.content),
            seconds=round(time.monotonic() - begin, 3),
        )
    )
    return answered


def skipped(call: ToolCall) -> CallAnswered:
    """Answer a call beyond the run's limit."""
    return _error(call, f"skipped: the limit of this run is reached, {call.name} was not run")


def _subject(agent: Agent, tool: Tool, call: ToolCall) -> str:
    """Return what a call is about: its path as git spells it, its command, its pattern."""
    found = next((call.input[key] for key in _SUBJECTS if key in call.input), "")
    subject = found if isinstance(found, str) else ""
    if tool.category is not Category.FS or "file_path" not in call.input:
        return subject
    try:
        return agent.workspace.relative(subject)
    except ToolError:
        return subject  # the tool itself will say what is wrong with the path


async def _made(agent: Agent, run: Run, call: ToolCall, tool: Tool, given: Record) -> CallAnswered:
    context = ToolContext(
        workspace=agent.workspace,
        role=agent.role,
        task_id=agent.task_id,
        call_id=call.id,
        run=run,
        ledger=agent.ledger,
        outputs=agent.outputs,
        cancelled=stop_asked,
    )
    try:
        output = await to_thread.run_sync(partial(tool.call, given, context))
    except ToolError as error:
        return _error(call, str(error), made=True)
    except Exception as error:  # noqa: BLE001  # a bug in a tool is an error result, not the end of the task
        return _error(call, f"{tool.name} failed: {type(error).__name__}: {error}", made=True)
    return CallAnswered(
        result=ToolResult(call_id=call.id, content=_kept(agent, call, output)),
        changes=output.changes,
        submitted=output.submitted,
    )


def _kept(agent: Agent, call: ToolCall, output: Output) -> str:
    """Keep what a call printed as evidence, and return what the model gets to see of it."""
    full = agent.outputs / f"{call.id}.out"
    if output.execution is not None:
        role = agent.role.part or agent.role.name
        agent.ledger.record(output.execution, role=role, iteration=agent.iteration, by=By.AGENT)
        if not output.clipped:
            full.unlink()
    elif len(output.content) > MAX_RESULT_CHARS:
        full.write_text(output.content, "utf-8")
        return f"{output.content[:MAX_RESULT_CHARS]}\n[clipped; the full text is kept as {call.id}]"
    return output.content


def _error(call: ToolCall, message: str, *, made: bool = False) -> CallAnswered:
    return CallAnswered(result=ToolResult(call_id=call.id, content=message, is_error=True), made=made)


def _wanted(agent: Agent, tool: Tool) -> str:
    """Say which parameters a tool takes."""
    schema = next(known.input_schema for known in agent.specs if known.name == tool.name)
    required = schema.get("required", ())
    names = [name if name in required else f"{name} (optional)" for name in schema["properties"]]
    return f"{tool.name} takes {', '.join(names)}"


def _foreign(agent: Agent, call: ToolCall) -> CallAnswered:
    """Answer a call of a tool that the role does not have."""
    offered = ", ".join(tool.name for tool in agent.tools)
    owner = agent.owners.get(call.name)
    if owner is None:
        return _error(call, f"there is no tool {call.name}; yours are {offered}")
    return _blocked(agent, call, f"{call.name} belongs to the {owner}; yours are {offered}", owner=owner)


def _blocked(agent: Agent, call: ToolCall, reason: str, *, owner: str | None) -> CallAnswered:
    agent.observe(
        ToolBlocked(
            run=agent.number,
            call_id=call.id,
            tool=call.name,
            role=agent.role.name,
            owner=owner,
            reason=one_line(reason),
        )
    )
    return _error(call, reason)
