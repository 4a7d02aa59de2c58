"""Calls that had begun when the process died: none of them has its effect twice."""

from agentflow.core.messages import ToolResult
from agentflow.core.run import CallAnswered, Run
from agentflow.core.tool import Category, Effect
from agentflow.loop.agent import Agent, note

_UNKNOWN = "interrupted: whether this was done is unknown and it was not repeated; look before you go on"


def settle(agent: Agent, run: Run) -> Run:
    """Answer each call that had begun and could have changed something; others are made again."""
    for call in run.pending:
        tool = agent.tool(call.name)
        if tool is None or call.id not in run.started:
            continue
        # a sub-agent goes on where its own file ends, so that nothing of it is done twice
        if tool.effect is not Effect.READ and tool.category not in (Category.STATE, Category.AGENT):
            result = ToolResult(call_id=call.id, content=_UNKNOWN, is_error=True)
            run = note(agent, run, CallAnswered(result=result))
    return run
