"""The agent loop."""

import time
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from agentflow.core.events import RunEnded, RunStarted
from agentflow.core.run import Run
from agentflow.loop.agent import Agent, open_run
from agentflow.loop.nodes import act, ask, close, finalize, remind
from agentflow.loop.route import Step, next_step

NODES: Mapping[Step, Callable[[Agent, Run], Awaitable[Run]]] = MappingProxyType(
    {Step.ASK: ask, Step.ACT: act, Step.REMIND: remind, Step.FINALIZE: finalize, Step.CLOSE: close}
)


async def run_agent(agent: Agent, brief: str) -> Run:
    """Run a role on a brief until it has a result or a limit ends it."""
    begin = time.monotonic()
    run = open_run(agent, brief)
    agent.observe(
        RunStarted(
            run=agent.number,
            role=run.head.role,
            agent=run.head.agent,
            model=agent.model_id,
            iteration=agent.iteration,
        )
    )
    run = await finish(agent, run)
    assert run.outcome is not None
    agent.observe(
        RunEnded(
            run=agent.number,
            role=run.head.role,
            outcome=run.outcome,
            turns=run.turns,
            tool_calls=run.tool_calls,
            usage=run.usage,
            seconds=round(time.monotonic() - begin, 3),
        )
    )
    return run


async def finish(agent: Agent, run: Run) -> Run:
    """Take a run, new or saved, to its end."""
    while (step := next_step(run, agent.role.limits)) is not Step.END:
        run = await NODES[step](agent, run)
    return run
