"""Fires the hooks at each point of a run's life, and applies what they decide."""

from collections.abc import Callable
from typing import Any

from agentflow.core.errors import Halted, ModelError, NotAllowed
from agentflow.core.events import Warned
from agentflow.core.hook import RULES, Decision, HookDecision
from agentflow.core.messages import Message, Notice, Reply, Request, Speaker, ToolCall, ToolResult
from agentflow.core.points import (
    Actor,
    BatchCall,
    BatchDone,
    Briefed,
    CallDenied,
    Concluded,
    Failed,
    PermissionAsked,
    PhaseWork,
    Point,
    ReplyPayload,
    RequestPayload,
    Scene,
    SubagentStarted,
    SubagentStopped,
    TurnPayload,
)
from agentflow.core.record import Record, copy_shared
from agentflow.core.run import CallAnswered, Run, RunOutcome, RunStopped
from agentflow.core.tool import Tool
from agentflow.loop.agent import Agent, add_notice, note
from agentflow.loop.history import pair_results
from agentflow.loop.next_step import is_stopped
from agentflow.redact import to_one_line

MAX_HELD = 3
"""The number of times that hooks may keep a sub-agent from stopping."""
MAX_BLOCKS = 8
"""The number of times that hooks may send a result or a verified change back, as in the public contract."""


async def fire_hooks(
    agent: Agent, point: Point, payload: Callable[[], Record], tool: Tool | None = None
) -> HookDecision:
    """Ask the hooks of a point and show the person their notices; without hooks, do nothing."""

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
    said = await fire_hooks(agent, Point.RUN_START, lambda: Briefed(brief=prompt))
    return apply_hook_result(agent, run, said)


async def ask_to_stop(agent: Agent, run: Run, outcome: RunOutcome) -> tuple[Run, str | None, bool]:
    """Tell hooks that a run has its result: they may keep it going, or answer for a sub-agent."""
    if agent.depth:
        return await _ask_subagent_stop(agent, run, outcome)
    if outcome is not RunOutcome.SUBMITTED:
        return run, None, False
    work = PhaseWork(task_subject=agent.around.phase, task_description=run.task_prompt)
    said = await fire_hooks(agent, Point.TASK_COMPLETED, lambda: work)
    if said.halt is not None:
        return apply_hook_result(agent, run, said), None, False
    wanted = said.reason if said.decision is Decision.DENY else said.context
    if wanted and run.held >= MAX_BLOCKS:
        why = f"{Point.TASK_COMPLETED} hooks blocked {MAX_BLOCKS} times: {wanted}"
        return note(agent, run, RunStopped(reason=why)), None, False
    return (add_notice(agent, run, wanted, Notice.HELD) if wanted else run), None, bool(wanted)


async def _ask_subagent_stop(agent: Agent, run: Run, outcome: RunOutcome) -> tuple[Run, str | None, bool]:
    said = await fire_hooks(
        agent,
        Point.SUBAGENT_STOP,
        lambda: SubagentStopped(
            agent_id=agent.around.transcript.stem,
            agent_type=agent.role.name,
            agent_transcript_path=str(agent.around.transcript),
            last_assistant_message=find_last_text(run),
            stop_hook_active=run.held > 0,
        ),
    )
    if said.halt is not None:
        return apply_hook_result(agent, run, said.replace(contexts=())), None, False
    wanted = said.reason if said.decision is Decision.DENY else said.context
    holds = bool(wanted) and outcome is RunOutcome.ANSWERED and run.held < MAX_HELD
    return (add_notice(agent, run, wanted, Notice.HELD) if holds else run), said.bail, holds


def find_last_text(run: Run) -> str:
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
    """Tell hooks that a turn has ended, once each call of its reply has a result."""
    if run.pending or run.pause is not None:
        return run
    run = await _announce_batch(agent, run)
    said = await fire_hooks(agent, Point.TURN_END, lambda: TurnPayload(turn=run.turns))
    return apply_hook_result(agent, run, said)


async def ask_for_permission(agent: Agent, call: ToolCall, tool: Tool, given: dict[str, Any]) -> HookDecision:
    """Ask hooks about a call before a person is asked. Raises NotAllowed where they deny it."""
    asked = PermissionAsked(tool_name=call.name, tool_input=given, tool_use_id=call.id)
    return require_allowed(await fire_hooks(agent, Point.PERMISSION_REQUEST, lambda: asked, tool))


def require_allowed(said: HookDecision) -> HookDecision:
    """Return what hooks say of a call. Raises NotAllowed for a denied one, Halted where the task ends."""
    if said.halt is not None:
        raise Halted(said.halt)
    if said.decision is Decision.DENY:
        raise NotAllowed(said.reason, by=name_decider(said))
    return said


def name_decider(said: HookDecision) -> str:
    """Return which hook decided about a call, or which rule."""
    is_rule = said.deciders[-1:] == (RULES,)
    return to_one_line(said.reasons[-1]) if is_rule else f"hook {', '.join(said.deciders)}".rstrip()


async def announce_denial(agent: Agent, call: ToolCall, denied: CallAnswered) -> CallAnswered:
    """Tell hooks that a call was denied; they may add to the refusal."""
    content = denied.result.content
    use = CallDenied(tool_name=call.name, tool_input=call.input, tool_use_id=call.id, reason=content)
    said = await fire_hooks(agent, Point.PERMISSION_DENIED, lambda: use, agent.find_tool(call.name))
    text = "\n\n".join((content, *said.contexts))
    return denied.replace(result=denied.result.replace(content=text), halt=denied.halt or said.halt)


async def _announce_batch(agent: Agent, run: Run) -> Run:
    """Tell hooks that all calls of a reply have their results; they may end the run there."""
    results = {part.call_id: part for part in run.messages[-1].parts if isinstance(part, ToolResult)}
    if not results or is_stopped(run):
        return run

    def payload() -> BatchDone:
        calls = (call for call in run.messages[-2].calls if call.id in results)
        done = (
            BatchCall(
                tool_name=call.name,
                tool_input=call.input,
                tool_use_id=call.id,
                tool_response=results[call.id].content,
            )
            for call in calls
        )
        return BatchDone(tool_calls=tuple(done))

    said = await fire_hooks(agent, Point.POST_TOOL_BATCH, payload)
    return apply_hook_result(agent, run, said, Point.POST_TOOL_BATCH)


async def announce_failure(agent: Agent, error: ModelError) -> None:
    """Tell hooks that the model gave no usable reply, and that the run ends with that for now."""
    await fire_hooks(agent, Point.ERROR, lambda: Failed(error=str(error)))
    await fire_hooks(agent, Point.RUN_END, lambda: Concluded(outcome=RunOutcome.ERROR))


async def offer_request(agent: Agent, run: Run, request: Request) -> tuple[Run, Request]:
    """Let hooks change or block a request; a changed one is repaired before it is sent."""
    said = await fire_hooks(agent, Point.MODEL_REQUEST, lambda: RequestPayload(request=request))
    if said.request is not None:
        request = said.request.replace(messages=repair_messages(agent, said.request.messages))
    return apply_hook_result(agent, run, said, Point.MODEL_REQUEST), request


async def judge_reply(agent: Agent, reply: Reply) -> tuple[HookDecision, Reply]:
    """Let hooks change or block a reply; a blocked one keeps only its usage."""
    said = await fire_hooks(agent, Point.MODEL_RESPONSE, lambda: ReplyPayload(reply=reply))
    if said.decision is Decision.DENY or said.halt is not None:
        return said, reply.replace(parts=())
    return said, said.reply or reply


def repair_messages(agent: Agent, messages: tuple[Message, ...], since: int = 0) -> tuple[Message, ...]:
    """Return messages that a provider accepts, and warn of each repair; those before `since` are sound."""
    found, problems = pair_results(messages, since)
    for problem in problems:
        agent.observe(Warned(message=f"history repaired before the request: {problem}"))
    return found


def apply_hook_result(agent: Agent, run: Run, said: HookDecision, point: Point | None = None) -> Run:
    """Return the run with what hooks decided: text for the model, and whether run or task ends here."""
    if said.context:
        run = add_notice(agent, run, said.context, Notice.HOOK)
    if said.halt is not None:
        return note(agent, run, RunStopped(reason=said.halt, halt=True))
    if said.decision is Decision.DENY:
        return note(agent, run, RunStopped(reason=f"blocked at {point}: {said.reason}"))
    if said.stop is not None:
        return note(agent, run, RunStopped(reason=said.stop))
    return run
