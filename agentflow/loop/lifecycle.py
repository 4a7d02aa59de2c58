"""Fires the hooks at each point of a run's life, and applies what they decide."""

from collections.abc import Callable

from agentflow.core.errors import ModelError
from agentflow.core.events import Warned
from agentflow.core.hook import Decision, HookDecision
from agentflow.core.messages import Message, Notice, Reply, Request, Speaker
from agentflow.core.points import (
    Actor,
    Briefed,
    Concluded,
    Failed,
    Payload,
    Point,
    ReplyPayload,
    RequestPayload,
    Scene,
    SubagentStarted,
    SubagentStopped,
    TurnPayload,
)
from agentflow.core.record import copy_shared
from agentflow.core.run import Run, RunOutcome, RunStopped
from agentflow.core.tool import Tool
from agentflow.loop.agent import Agent, note, say
from agentflow.loop.history import pair_results

MAX_HELD = 3
"""How often hooks may keep a sub-agent from stopping."""


async def fire_hooks(
    agent: Agent, point: Point, payload: Callable[[], Payload], tool: Tool | None = None
) -> HookDecision:
    """Ask the hooks of a point, and show the person what they want shown; without hooks nothing is made."""

    def scene() -> Scene:
        actor = Actor(name=agent.role.name, depth=agent.depth)
        place = copy_shared(agent.around, Scene)
        return Scene(cwd=agent.around.workspace.root, actor=actor, tool=tool, **place)

    return await agent.hooks.ask(point, scene, payload, agent.observe)


async def announce_start(agent: Agent, run: Run) -> Run:
    """Tell hooks that a run begins; they may add to its task prompt."""
    prompt = run.task_prompt
    if agent.depth:
        started = SubagentStarted(agent_id=agent.around.transcript.stem, agent_type=agent.role.name)
        said = await fire_hooks(agent, Point.SUBAGENT_START, lambda: started)
        run = apply_hook_result(agent, run, said)
    return apply_hook_result(
        agent, run, await fire_hooks(agent, Point.RUN_START, lambda: Briefed(brief=prompt))
    )


async def ask_to_stop(agent: Agent, run: Run, outcome: RunOutcome) -> tuple[Run, str | None, bool]:
    """Tell hooks that a sub-agent stops: they may give the answer, or keep it going with a reason."""
    if not agent.depth:
        return run, None, False
    said = await fire_hooks(
        agent,
        Point.SUBAGENT_STOP,
        lambda: SubagentStopped(
            agent_id=agent.around.transcript.stem,
            agent_type=agent.role.name,
            last_assistant_message=last_said(run),
            stop_hook_active=run.held > 0,
        ),
    )
    if said.halt is not None:
        return note(agent, run, RunStopped(reason=said.halt, halt=True)), None, False
    holds = said.decision is Decision.DENY and outcome is RunOutcome.ANSWERED and run.held < MAX_HELD
    return (say(agent, run, said.reason, Notice.HELD) if holds else run), said.bail, holds


def last_said(run: Run) -> str:
    replies = (message for message in reversed(run.messages) if message.speaker is Speaker.ASSISTANT)
    return next((message.text for message in replies), "")


async def announce_end(agent: Agent, run: Run, outcome: RunOutcome) -> Run:
    """Tell hooks that a run ends; what they add stands last in its file."""
    said = await fire_hooks(agent, Point.RUN_END, lambda: Concluded(outcome=outcome))
    return apply_hook_result(agent, run, said)


async def announce_turn(agent: Agent, run: Run) -> Run:
    said = await fire_hooks(agent, Point.TURN_START, lambda: TurnPayload(turn=run.turns + 1))
    return apply_hook_result(agent, run, said)


async def announce_turn_end(agent: Agent, run: Run) -> Run:
    """Tell hooks that a reply came and each of its calls has its result, once that is so."""
    if run.pending or run.pause is not None:
        return run
    said = await fire_hooks(agent, Point.TURN_END, lambda: TurnPayload(turn=run.turns))
    return apply_hook_result(agent, run, said)


async def announce_failure(agent: Agent, error: ModelError) -> None:
    """Tell hooks that the model gave no usable reply, and that the run ends with that for now."""
    await fire_hooks(agent, Point.ERROR, lambda: Failed(error=str(error)))
    await fire_hooks(agent, Point.RUN_END, lambda: Concluded(outcome=RunOutcome.ERROR))


async def offer_request(agent: Agent, run: Run, request: Request) -> tuple[Run, Request]:
    """Let hooks change a request or keep it back; what they changed is repaired before it is sent."""
    said = await fire_hooks(agent, Point.MODEL_REQUEST, lambda: RequestPayload(request=request))
    if said.request is not None:
        request = said.request.replace(messages=repair_messages(agent, said.request.messages))
    return apply_hook_result(agent, run, said, Point.MODEL_REQUEST), request


async def judge_reply(agent: Agent, reply: Reply) -> tuple[HookDecision, Reply]:
    """Let hooks change a reply or block it; of a blocked one nothing is kept but what it cost."""
    said = await fire_hooks(agent, Point.MODEL_RESPONSE, lambda: ReplyPayload(reply=reply))
    if said.decision is Decision.DENY or said.halt is not None:
        return said, reply.replace(parts=())
    return said, said.reply or reply


def repair_messages(agent: Agent, messages: tuple[Message, ...], since: int = 0) -> tuple[Message, ...]:
    """Return messages that a provider accepts, and warn of each repair; `since` is the first new one."""
    found, problems = pair_results(messages, since)
    for problem in problems:
        agent.observe(Warned(message=f"history repaired before the request: {problem}"))
    return found


def apply_hook_result(agent: Agent, run: Run, said: HookDecision, point: Point | None = None) -> Run:
    """Return the run with what hooks decided: text for the model, and whether run or task ends here."""
    if said.context:
        run = say(agent, run, said.context, Notice.HOOK)
    if said.halt is not None:
        return note(agent, run, RunStopped(reason=said.halt, halt=True))
    if said.decision is Decision.DENY:
        return note(agent, run, RunStopped(reason=f"blocked at {point}: {said.reason}"))
    if said.stop is not None:
        return note(agent, run, RunStopped(reason=said.stop))
    return run
