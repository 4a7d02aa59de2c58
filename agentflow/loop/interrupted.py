"""Calls that had begun when the process died: none of them has its effect twice."""

from agentflow.core.messages import ToolResult
from agentflow.core.run import CallAnswered, Run
from agentflow.core.tool import Category, Effect, Tool
from agentflow.loop.agent import Agent, note

_UNKNOWN = "interrupted: whether this was done is unknown and it was not repeated; look before you go on"


def _is_repeatable(tool: Tool) -> bool:
    """Return whether making a call again does nothing twice: a sub-agent goes on where its own file ends."""
    return tool.effect is Effect.READ or tool.category in (Category.STATE, Category.AGENT)


def settle(agent: Agent, run: Run) -> Run:
    """Answer each call that had begun and could have changed something; others are made again."""
    for call in run.pending:
        tool = agent.tool(call.name)
        if call.id in run.started and tool is not None and not _is_repeatable(tool):
            result = ToolResult(call_id=call.id, content=_UNKNOWN, is_error=True)
            run = note(agent, run, CallAnswered(result=result))
    return run
