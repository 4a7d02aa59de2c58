"""The steps of an agent: each takes the run and returns it one step further."""

import time
from itertools import takewhile

import anyio

from agentflow.core.errors import ModelUnavailable, PromptTooLong
from agentflow.core.events import Asked, HandedOff, Replied
from agentflow.core.fold import DELEGATE
from agentflow.core.hook import Point
from agentflow.core.messages import Message, Reply, Speaker, ToolCall
from agentflow.core.record import plain
from agentflow.core.role import Findings
from agentflow.core.run import (
    CallAnswered,
    CallsStarted,
    CompactionTrigger,
    HandedOver,
    ReplyReceived,
    RequestSent,
    Run,
    RunClosed,
    RunOutcome,
)
from agentflow.loop.agent import Agent, note
from agentflow.loop.call import answer
from agentflow.loop.compact import compact, with_recall
from agentflow.loop.context import request_of
from agentflow.loop.lifecycle import (
    ending,
    heeded,
    reply_judged,
    request_asked,
    stopping,
    turn_begun,
    turn_ended,
    whole,
)
from agentflow.loop.permit import error_of
from agentflow.loop.replies import adopted, kept, served
from agentflow.loop.route import conclusion, is_stopped
from agentflow.redact import one_line
from agentflow.tools.registry import spec

PARALLEL_CHILDREN = 3


async def ask(agent: Agent, run: Run) -> Run:
    """Send the run to the model and keep its reply, unless a hook keeps one of the two back."""
    run = await turn_begun(agent, run)
    if is_stopped(run):
        return run
    messages = whole(agent, run.messages, run.sent)
    own = request_of(run.replace(messages=messages), run.head.submit if run.finalized else None)
    run, request = await request_asked(agent, run, own)
    if is_stopped(run):
        return run
    changed = request is not own or messages is not run.messages
    sent = RequestSent(turn=run.turns + 1, force=own.force, changed=changed)
    run = note(agent, run.replace(messages=messages), sent)
    agent.observe(Asked(run=agent.around.number, turn=run.turns))
    begin = time.monotonic()
    try:
        reply = await agent.model.complete(request)
    except PromptTooLong:
        after = run if run.is_refused else await compact(agent, run, CompactionTrigger.OVERFLOW)
        if after.tokens >= run.tokens:
            raise
        return after
    return await _replied(agent, run, reply, round(time.monotonic() - begin, 3))


async def _replied(agent: Agent, run: Run, reply: Reply, seconds: float) -> Run:
    """Keep a reply as far as hooks let it stand."""
    said, reply = await reply_judged(agent, reply)
    reply = kept(agent, adopted(agent, run.turns, reply))
    run = note(agent, run, ReplyReceived(reply=reply, seconds=seconds))
    agent.observe(
        Replied(
            run=agent.around.number,
            turn=run.turns,
            text=one_line(Message(speaker=Speaker.ASSISTANT, parts=reply.parts).text, 200),
            calls=len(run.pending),
            stop=reply.stop,
            usage=reply.usage,
            seconds=seconds,
        )
    )
    for event in served(agent.around.number, run.turns, reply):
        agent.observe(event)
    return await turn_ended(agent, heeded(agent, run, said, Point.MODEL_RESPONSE))


async def act(agent: Agent, run: Run) -> Run:
    """Make the next batch of calls: neighbouring reads side by side, anything else alone."""
    batch = _batch(agent, run)
    if _is_over(agent, run, first := batch[0]):
        why = f"skipped: this role is at its end or its limit, {first.name} was not run"
        return await turn_ended(agent, note(agent, run, error_of(first, why)))
    if not _reads(agent, batch[0]):  # a read that was cut short is made again, so nobody need know of it
        run = note(agent, run, CallsStarted(calls=tuple(call.id for call in batch)))
    reads, children = anyio.CapacityLimiter(agent.room.parallel), anyio.CapacityLimiter(PARALLEL_CHILDREN)
    lost: list[ModelUnavailable] = []

    async def make(call: ToolCall) -> None:
        nonlocal run
        async with children if call.name == DELEGATE else reads:
            try:
                entry = await answer(agent, run, call)
            except ModelUnavailable as error:  # of a sub-agent: the others come to their end first
                lost.append(error)
                return
        if run.pause is None or isinstance(entry, CallAnswered):
            run = note(agent, run, entry)

    async with anyio.create_task_group() as group:
        for call in batch:
            group.start_soon(make, call)
    if lost:
        raise lost[0]
    return await turn_ended(agent, run)


def _batch(agent: Agent, run: Run) -> tuple[ToolCall, ...]:
    reads = tuple(takewhile(lambda call: _reads(agent, call), run.pending))
    room = max(1, agent.role.limits.tool_calls - run.used_up.tool_calls)
    return reads[:room] or run.pending[:1]


def _reads(agent: Agent, call: ToolCall) -> bool:
    tool = agent.tool(call.name)
    return tool is not None and tool.only_reads(call.input)


def _is_over(agent: Agent, run: Run, call: ToolCall) -> bool:
    if run.submitted or run.halt is not None or run.handoff is not None:
        return True
    spent = run.finalized or run.used_up.tool_calls >= agent.role.limits.tool_calls
    return spent and call.name != run.head.submit


async def hand_over(agent: Agent, run: Run) -> Run:
    assert run.handoff is not None
    to, reason = run.handoff.to, one_line(run.handoff.reason)
    persona = agent.personas[to]
    agent.observe(HandedOff(run=agent.around.number, source=run.head.agent, to=to, reason=reason))
    tools = tuple(map(spec, persona.tools))
    entry = HandedOver(
        agent=persona.role.name,
        model=persona.model_id,
        system=persona.system,
        tools=with_recall(tools) if run.is_archived else tools,
    )
    return note(agent, run, entry)


async def close(agent: Agent, run: Run) -> Run:
    """Write down how the run ended, unless a hook keeps a sub-agent from stopping."""
    outcome = conclusion(run, agent.role.limits)
    assert outcome is not None
    run, bail, holds = await stopping(agent, run, outcome)
    if holds:
        return run
    run = await ending(agent, run, outcome)
    final = outcome if run.halt is None else RunOutcome.HALTED
    changes = {}
    if run.answer is not None and run.head.submit is not None:  # a direct answer, in place of findings
        changes["findings"] = plain(Findings(summary=run.answer, findings=(), open_questions=()))
    return note(agent, run, RunClosed(outcome=final, changes=changes, bail=bail))
