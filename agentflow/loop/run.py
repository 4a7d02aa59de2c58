"""The agent loop: a `while` over steps, each of which takes a run and returns it one step further."""

import time
from collections.abc import Awaitable, Callable, Mapping
from itertools import takewhile
from typing import Any

import anyio

from agentflow.core.errors import ModelError, ModelUnavailable, PromptTooLong
from agentflow.core.events import Asked, HandedOff, PersonSaid, Replied, RunEnded, RunStarted
from agentflow.core.fold import DELEGATE
from agentflow.core.messages import Message, Notice, Reply, Speaker, ToolCall, ToolResult
from agentflow.core.pending import Answer
from agentflow.core.points import Point
from agentflow.core.record import copy_shared, encode, to_builtins
from agentflow.core.role import Findings
from agentflow.core.run import (
    CallAnswered,
    CallsStarted,
    CompactionTrigger,
    HandedOver,
    PauseAnswered,
    ReplyReceived,
    RequestSent,
    Run,
    RunClosed,
    RunOutcome,
    RunPaused,
)
from agentflow.core.tool import Category, Effect
from agentflow.loop.agent import Agent, add_notice, note, open_run, resolve_agent
from agentflow.loop.call import answer_call, answer_with_error
from agentflow.loop.compact import add_recall, compact
from agentflow.loop.history import adopt_reply, list_served_calls, redact_reply, request_of
from agentflow.loop.lifecycle import (
    announce_end,
    announce_failure,
    announce_start,
    announce_turn,
    announce_turn_end,
    apply_hook_result,
    ask_to_stop,
    judge_reply,
    offer_request,
    repair_messages,
)
from agentflow.loop.next_step import (
    TODO_TOOLS,
    Step,
    choose_next_step,
    conclude_run,
    find_spent_limit,
    is_stopped,
)
from agentflow.loop.prompts import read_prompt
from agentflow.redact import redact_bytes, to_one_line
from agentflow.tools.registry import to_spec

_OTHER_CALL = "what a person approved is another call than this one"
_UNKNOWN = "interrupted: whether this was done is unknown and it was not repeated; look before you go on"
PARALLEL_CHILDREN = 3


async def run_agent(
    agent: Agent, prompt: str, earlier: Run | None = None, followed: Run | None = None
) -> Run:
    """Run a role on a task prompt until it has a result, waits for a person, or a limit ends it.

    The conversation of an earlier run goes on, if there is one, or that of a run of an earlier task.
    """
    return await _drive(agent, await announce_start(agent, open_run(agent, prompt, earlier, followed)))


async def continue_run(agent: Agent, run: Run, answer: Answer | None) -> Run:
    """Go on with a saved run; `answer` is what a person decided, if the run waited for that."""
    if run.pause is not None and answer is not None:
        settled = _settle(agent, run, run.pause, answer)
        run = note(agent, run, PauseAnswered(call_id=run.pause.call_id, answer=settled))
    return run if run.pause else await _drive(agent, settle_calls(agent, run).replace(sent=0))


def _settle(agent: Agent, run: Run, pause: RunPaused, answer: Answer) -> Answer:
    """Return the answer with the input to make the call with; an approval of another call is a denial.

    A person sees the task's state, which may have come with a repository, and the call is the run's.
    """
    asked = pause.pending
    call = next((each for each in run.pending if each.id == pause.call_id and not pause.inside), None)
    tool = agent.find_tool(call.name) if call else None
    if call and answer.approved and not (tool and tool.category is Category.ASK):
        seen, made = (answer.tool, answer.asked), (call.name, asked.input)
        if _to_bytes(seen) != _to_bytes(made):
            return answer.replace(approved=False, text=_OTHER_CALL, input=None)
    return answer if answer.input is not None else answer.replace(input=asked.input)


def _to_bytes(shown: tuple[str | None, dict[str, Any] | None]) -> bytes:
    return redact_bytes(encode(shown))  # one of both may come from a file, where secrets are hidden


def settle_calls(agent: Agent, run: Run) -> Run:
    """Answer each call that had begun and could have changed something; others are made again."""
    for call in run.pending:
        tool = agent.find_tool(call.name)
        if tool is None or call.id not in run.started:
            continue
        # a sub-agent goes on where its own file ends, so that nothing of it is done twice
        if tool.effect is not Effect.READ and tool.category not in (Category.STATE, Category.AGENT):
            result = ToolResult(call_id=call.id, content=_UNKNOWN, is_error=True)
            run = note(agent, run, CallAnswered(result=result))
    return run


async def _drive(agent: Agent, run: Run) -> Run:
    begin = time.monotonic()
    agent.observe(RunStarted(**copy_shared(run.head, RunStarted)))
    try:
        active = resolve_agent(agent, run)
        while (step := choose_next_step(run, active.role.limits, active.room)) is not Step.END:
            run = await NODES[step](active, run)
            active = resolve_agent(agent, run)
    except ModelError as error:
        await announce_failure(agent, error)
        _report_end(agent, run, RunOutcome.ERROR, begin)
        raise
    finally:
        if agent.around.background is not None and agent.parent is None:
            agent.around.background.close()
    if run.outcome is not None:
        _report_end(agent, run, run.outcome, begin)
    return run


def _report_end(agent: Agent, run: Run, outcome: RunOutcome, begin: float) -> None:
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


async def ask_model(agent: Agent, run: Run) -> Run:
    """Send the run to the model and add its reply; hooks may block either."""
    run = await announce_turn(agent, await _add_messages(agent, run))
    if is_stopped(run):
        return run
    messages = repair_messages(agent, run.messages, run.sent)
    own = request_of(run.replace(messages=messages), run.head.submit if run.finalized else None)
    run, request = await offer_request(agent, run, own)
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
    return await _add_reply(agent, run, reply, round(time.monotonic() - begin, 3))


async def _add_messages(agent: Agent, run: Run) -> Run:
    news = await agent.around.take_news(run.turns) if agent.around.take_news else ""
    if news and not run.head.history and not any(news in message.text for message in run.messages):
        run = add_notice(agent, run, news, Notice.NEWS)
    for text in agent.around.take_messages(run.turns) if agent.around.take_messages else ():
        agent.observe(PersonSaid(run=agent.around.number, turn=run.turns, text=to_one_line(text)))
        run = add_notice(agent, run, read_prompt("said.md").format(text=text), Notice.PERSON)
    return run


async def _add_reply(agent: Agent, run: Run, reply: Reply, seconds: float) -> Run:
    said, reply = await judge_reply(agent, reply)
    reply = redact_reply(agent, adopt_reply(agent, run.turns, reply))
    run = note(agent, run, ReplyReceived(reply=reply, seconds=seconds))
    agent.observe(
        Replied(
            run=agent.around.number,
            turn=run.turns,
            text=to_one_line(Message(speaker=Speaker.ASSISTANT, parts=reply.parts).text, 200),
            calls=len(run.pending),
            stop=reply.stop,
            usage=reply.usage,
            seconds=seconds,
        )
    )
    for event in list_served_calls(agent.around.number, run.turns, reply):
        agent.observe(event)
    return await announce_turn_end(agent, apply_hook_result(agent, run, said, Point.MODEL_RESPONSE))


async def act(agent: Agent, run: Run) -> Run:
    """Make the next calls: neighbouring reads at the same time, any other alone."""
    batch = _choose_batch(agent, run)
    first = batch[0]
    if _is_over(agent, run, first):
        why = f"skipped: this role has ended or reached its limit, {first.name} was not run"
        return await announce_turn_end(agent, note(agent, run, answer_with_error(first, why)))
    if first.name == run.head.submit and (failed := _find_failed(agent, run)):
        why = f"not submitted: {failed.name} in the same turn failed; see its result, then submit again"
        return await announce_turn_end(agent, note(agent, run, answer_with_error(first, why)))
    tools = (agent.find_tool(call.name) for call in batch)
    if agent.around.settle and any(tool and tool.may_change for tool in tools):
        await agent.around.settle()
    if not _only_reads(agent, first):  # an interrupted read is simply made again
        run = note(agent, run, CallsStarted(calls=tuple(call.id for call in batch)))
    reads, children = anyio.CapacityLimiter(agent.room.parallel), anyio.CapacityLimiter(PARALLEL_CHILDREN)
    lost: list[ModelUnavailable] = []

    async def make(call: ToolCall) -> None:
        nonlocal run
        async with children if call.name == DELEGATE else reads:
            try:
                entry = await answer_call(agent, run, call)
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
    return await announce_turn_end(agent, run)


def _choose_batch(agent: Agent, run: Run) -> tuple[ToolCall, ...]:
    reads = tuple(takewhile(lambda call: _only_reads(agent, call), run.pending))
    room = max(1, agent.role.limits.tool_calls - run.active_tally.tool_calls)
    return reads[:room] or run.pending[:1]


def _find_failed(agent: Agent, run: Run) -> ToolCall | None:
    """Return an edit of this turn that failed: whoever submits in the same turn has not seen that."""
    failed = {answer.call_id for answer in run.answers if answer.is_error}
    calls = (call for call in run.messages[-1].calls if call.id in failed)
    return next((call for call in calls if not _only_reads(agent, call)), None)


def _only_reads(agent: Agent, call: ToolCall) -> bool:
    tool = agent.find_tool(call.name)
    return tool is not None and tool.is_read_only(call.input)


def _is_over(agent: Agent, run: Run, call: ToolCall) -> bool:
    if run.submitted or run.halt is not None or run.handoff is not None:
        return True
    is_at_limit = run.finalized or run.active_tally.tool_calls >= agent.role.limits.tool_calls
    return is_at_limit and call.name != run.head.submit


async def hand_over(agent: Agent, run: Run) -> Run:
    assert run.handoff is not None
    to, reason = run.handoff.to, to_one_line(run.handoff.reason)
    persona = agent.personas[to]
    agent.observe(HandedOff(run=agent.around.number, source=run.head.agent, to=to, reason=reason))
    tools = tuple(map(to_spec, persona.tools))
    entry = HandedOver(
        agent=persona.role.name,
        model=persona.model_id,
        system=persona.system,
        tools=add_recall(tools) if run.is_archived else tools,
    )
    return note(agent, run, entry)


async def close(agent: Agent, run: Run) -> Run:
    """Write down how the run ended, unless a hook keeps it from ending."""
    outcome = conclude_run(run, agent.role.limits)
    assert outcome is not None
    run, bail, holds = await ask_to_stop(agent, run, outcome)
    if holds:
        return run
    outcome = conclude_run(run, agent.role.limits) or outcome
    run = await announce_end(agent, run, outcome)
    final = outcome if run.halt is None else RunOutcome.HALTED
    changes = {}
    if run.answer is not None and run.head.submit is not None:  # a direct answer, in place of findings
        changes["findings"] = to_builtins(Findings(summary=run.answer, findings=(), open_questions=()))
    return note(agent, run, RunClosed(outcome=final, changes=changes, bail=bail))


async def remind(agent: Agent, run: Run) -> Run:
    """Tell a role that stopped without a result to submit one."""
    text = read_prompt("reminder.md").format(submit=run.head.submit)
    return add_notice(agent, run, text, Notice.REMINDER)


async def nudge(agent: Agent, run: Run) -> Run:
    tool = next(tool.name for tool in agent.tools if tool.name in TODO_TOOLS)
    text = read_prompt("todo-reminder.md").format(turns=run.turns - run.todo_turn, tool=tool)
    return add_notice(agent, run, text, Notice.TODOS)


async def finalize(agent: Agent, run: Run) -> Run:
    """Tell a role that its limit is reached, and ask for its result now."""
    name = "finalize.md" if find_spent_limit(run, agent.role.limits) else "refused.md"
    text = read_prompt(name).format(submit=run.head.submit or "your answer")
    return add_notice(agent, run, text, Notice.FINALIZE)


NODES: Mapping[Step, Callable[[Agent, Run], Awaitable[Run]]] = {
    Step.ASK: ask_model,
    Step.ACT: act,
    Step.HAND_OVER: hand_over,
    Step.REMIND: remind,
    Step.NUDGE: nudge,
    Step.FINALIZE: finalize,
    Step.COMPACT: compact,
    Step.CLOSE: close,
}
