"""The steps in which the program speaks to a role, behind all that was said before."""

from agentflow.core.messages import Notice
from agentflow.core.run import Run
from agentflow.loop.agent import Agent, say
from agentflow.loop.context import prompt_text
from agentflow.loop.route import TODO_TOOLS, spent


async def remind(agent: Agent, run: Run) -> Run:
    """Tell a role that stopped without a result to submit one."""
    text = prompt_text("reminder.md").format(submit=run.head.submit)
    return say(agent, run, text, Notice.REMINDER)


async def nudge(agent: Agent, run: Run) -> Run:
    tool = next(tool.name for tool in agent.tools if tool.name in TODO_TOOLS)
    text = prompt_text("todo-reminder.md").format(turns=run.turns - run.noted, tool=tool)
    return say(agent, run, text, Notice.TODOS)


async def finalize(agent: Agent, run: Run) -> Run:
    """Tell a role that its limit is reached, and ask for its result now."""
    name = "finalize.md" if spent(run, agent.role.limits) else "refused.md"
    text = prompt_text(name).format(submit=run.head.submit or "your answer")
    return say(agent, run, text, Notice.FINALIZE)
