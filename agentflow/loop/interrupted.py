"""Calls that had begun when the process died: none of them has its effect twice."""

from agentflow.core.messages import ToolResult
from agentflow.core.run import CallAnswered, Run
from agentflow.core.tool import Category, Effect, Tool
from agentflow.loop.agent import Agent, note

_UNKNOWN = "interrupted: whether this was done is unknown and it was not repeated; look before you go on"


def _is_repeatable(tool: Tool) -> bool:
    """Return whether making a call again changes nothing outside the task's own state."""
    return tool.effect is Effect.READ or tool.category is Category.STATE


def settle(agent: Agent, run: Run) -> Run:
    """Answer each call that had begun and could have changed something; others are made again."""
    for call in run.pending:
        tool = agent.tool(call.name)
        if call.id in run.started and tool is not None and not _is_repeatable(tool):
            result = ToolResult(call_id=call.id, content=_UNKNOWN, is_error=True)
            run = note(agent, run, CallAnswered(result=result))
    return run
