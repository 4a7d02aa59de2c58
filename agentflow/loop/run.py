"""The agent loop."""

import time
from collections.abc import Awaitable, Callable, Mapping

from agentflow.core.errors import ModelError
from agentflow.core.events import RunEnded, RunStarted
from agentflow.core.messages import ToolResult
from agentflow.core.pending import Answer
from agentflow.core.record import copy_shared
from agentflow.core.run import CallAnswered, PauseAnswered, Run, RunOutcome
from agentflow.core.tool import Category, Effect
from agentflow.loop.agent import Agent, acting, note, open_run
from agentflow.loop.compact import compact
from agentflow.loop.lifecycle import begun, failed
from agentflow.loop.nodes import act, ask, close, hand_over
from agentflow.loop.notices import finalize, nudge, remind
from agentflow.loop.route import Step, next_step

_UNKNOWN = "interrupted: whether this was done is unknown and it was not repeated; look before you go on"
NODES: Mapping[Step, Callable[[Agent, Run], Awaitable[Run]]] = {
    Step.ASK: ask,
    Step.ACT: act,
    Step.HAND_OVER: hand_over,
    Step.REMIND: remind,
    Step.NUDGE: nudge,
    Step.FINALIZE: finalize,
    Step.COMPACT: compact,
    Step.CLOSE: close,
}


async def run_agent(agent: Agent, brief: str, earlier: Run | None = None) -> Run:
    """Run a role on a brief until it has a result, waits for a person, or a limit ends it.

    The conversation of an earlier run goes on, if there is one.
    """
    return await _told(agent, await begun(agent, open_run(agent, brief, earlier)))


async def continue_run(agent: Agent, run: Run, answer: Answer | None) -> Run:
    """Go on with a saved run; `answer` is what a person decided, if the run waited for that."""
    if run.pause is not None and answer is not None:
        settled = answer if answer.input is not None else answer.replace(input=run.pause.pending.input)
        run = note(agent, run, PauseAnswered(call_id=run.pause.call_id, answer=settled))
    return run if run.pause else await _told(agent, settle(agent, run).replace(sent=0))


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


async def _told(agent: Agent, run: Run) -> Run:
    """Take a run as far as it goes, and tell the observers when it begins and ends."""
    begin = time.monotonic()
    agent.observe(RunStarted(**copy_shared(run.head, RunStarted)))
    try:
        while (step := _next_of(now := acting(agent, run), run)) is not Step.END:
            run = await NODES[step](now, run)
    except ModelError as error:
        await failed(agent, error)
        _end_told(agent, run, RunOutcome.ERROR, begin)
        raise
    if run.outcome is not None:
        _end_told(agent, run, run.outcome, begin)
    return run


def _next_of(agent: Agent, run: Run) -> Step:
    return next_step(run, agent.role.limits, agent.room)


def _end_told(agent: Agent, run: Run, outcome: RunOutcome, begin: float) -> None:
    agent.observe(
        RunEnded(
            run=agent.around.number,
            role=run.head.role,
            outcome=outcome,
            turns=run.turns,
            tool_calls=run.tool_calls,
            usage=run.usage,
            saved=run.saved,
            seconds=round(time.monotonic() - begin, 3),
        )
    )
