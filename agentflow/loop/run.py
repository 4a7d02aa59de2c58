"""The agent loop."""

import time
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from agentflow.core.events import RunEnded, RunStarted
from agentflow.core.pending import Answer
from agentflow.core.run import PauseAnswered, Run
from agentflow.loop.agent import Agent, note, open_run
from agentflow.loop.interrupted import settle
from agentflow.loop.nodes import act, ask, close, finalize, remind
from agentflow.loop.route import Step, next_step

NODES: Mapping[Step, Callable[[Agent, Run], Awaitable[Run]]] = MappingProxyType(
    {Step.ASK: ask, Step.ACT: act, Step.REMIND: remind, Step.FINALIZE: finalize, Step.CLOSE: close}
)


async def run_agent(agent: Agent, brief: str) -> Run:
    """Run a role on a brief until it has a result, waits for a person, or a limit ends it."""
    return await _told(agent, open_run(agent, brief))


async def continue_run(agent: Agent, run: Run, answer: Answer | None) -> Run:
    """Go on with a saved run; `answer` is what a person decided, if the run waited for that."""
    if run.pause is not None and answer is not None:
        settled = answer if answer.input is not None else answer.replace(input=run.pause.pending.input)
        run = note(agent, run, PauseAnswered(call_id=run.pause.call_id, answer=settled))
    return run if run.pause else await _told(agent, settle(agent, run))


async def _told(agent: Agent, run: Run) -> Run:
    """Take a run as far as it goes, and tell the observers when it begins and ends."""
    begin = time.monotonic()
    agent.observe(
        RunStarted(
            run=agent.number,
            role=run.head.role,
            agent=run.head.agent,
            model=run.head.model,
            iteration=agent.iteration,
        )
    )
    run = await finish(agent, run)
    if run.outcome is not None:
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
    """Take a run, new or saved, to its end or to where it waits for a person."""
    while (step := next_step(run, agent.role.limits)) is not Step.END:
        run = await NODES[step](agent, run)
    return run
