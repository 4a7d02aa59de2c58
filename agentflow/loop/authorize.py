"""Whether a call may be made, and with which input: the role's list, the input's shape, hooks, people."""

from typing import Any

from agentflow.core.errors import Halted, InvalidInput, NotAllowed, ToolError
from agentflow.core.events import Answered, ToolBlocked
from agentflow.core.hook import RULES, Decision, HookDecision
from agentflow.core.messages import ToolCall, ToolResult
from agentflow.core.pending import Answer, Pending, PendingKind, decide_now
from agentflow.core.points import Point, ToolUse
from agentflow.core.record import Record, plain
from agentflow.core.run import CallAnswered, Run, RunPaused
from agentflow.core.tool import Category, Subject, Tool
from agentflow.loop.agent import Agent
from agentflow.loop.lifecycle import fire_hooks
from agentflow.loop.replies import fit_input
from agentflow.parse import Mismatch
from agentflow.permissions.role_rules import explain_role_refusal, find_scope
from agentflow.process import timestamp
from agentflow.redact import one_line
from agentflow.tools.ask import KINDS, Escalation
from agentflow.tools.submit import find_misplacement


class AuthorizedCall(Record):
    """A call that is to be made now."""

    tool: Tool
    given: Record
    """Its input, as the tool takes it."""
    input: dict[str, Any]
    """The same as plain data: what rules and hooks judge is what runs."""
    subject: str
    context: str = ""
    """What hooks add to its result."""


Authorization = AuthorizedCall | CallAnswered | RunPaused
"""A call ready to be made, the answer that it is not, or that somebody has to decide."""


async def authorize(agent: Agent, run: Run, call: ToolCall) -> Authorization:
    """Decide about a call before it can have any effect."""
    try:
        return await _authorize(agent, run, call)
    except Halted as error:
        return error_of(call, str(error)).replace(halt=str(error))
    except NotAllowed as error:
        return _block(agent, call, str(error)).replace(refused_by=error.by)
    except ToolError as error:
        return error_of(call, str(error))


async def _authorize(agent: Agent, run: Run, call: ToolCall) -> Authorization:
    """Return what becomes of a call. Raises ToolError if it is not made, Halted where a hook says so."""
    if call.id in agent.secret_inputs:
        call = call.replace(input=agent.secret_inputs[call.id], problem=None)
    if call.problem is not None:
        raise InvalidInput(call.problem)
    tool = agent.tool(call.name)
    if tool is None:
        return _refuse_unknown(agent, call)
    checked = _check_call(agent, tool, call.input)
    decided = run.decided.get(call.id)
    if decided is None:
        return await _rule_on(agent, run, call, checked)
    approved = _apply_decision(agent, checked, call, decided)
    if isinstance(approved, CallAnswered):
        return approved
    # hooks and rules may still deny what a person approved; they may not change it any more
    said = await _ask_hooks(agent, call, approved)
    return approved.replace(context=said.context)


async def _rule_on(agent: Agent, run: Run, call: ToolCall, checked: AuthorizedCall) -> Authorization:
    """Let hooks and rules deny a call, change its input, or have somebody asked."""
    said = await _ask_hooks(agent, call, checked)
    if said.updated_input is not None:
        checked = _check_call(agent, checked.tool, said.updated_input)
    checked = checked.replace(context=said.context)
    kind = KINDS.get(type(checked.given), PendingKind.APPROVAL)
    if kind is not PendingKind.APPROVAL:
        _require_askable(agent, checked.given)
    has_to_ask = said.decision is Decision.ASK or kind is not PendingKind.APPROVAL
    return _settle_or_suspend(agent, run, call, checked, kind) if has_to_ask else checked


def _require_askable(agent: Agent, wanted: Record) -> None:
    """Raise InvalidInput where somebody was asked in this phase, or the named place does not exist."""
    if agent.around.interrupted:
        raise InvalidInput(
            "nobody is asked twice in one phase, the confirmation of its plan included: "
            "go on with what is most likely, and name it in your result"
        )
    if not isinstance(wanted, Escalation):
        return
    if problem := find_misplacement(wanted.path, wanted.line, agent.around.workspace):
        raise InvalidInput(problem)


async def _ask_hooks(agent: Agent, call: ToolCall, checked: AuthorizedCall) -> HookDecision:
    """Return what hooks and rules say of a call that they do not deny."""
    use = ToolUse(tool_name=call.name, tool_input=checked.input, tool_use_id=call.id)
    said = await fire_hooks(agent, Point.PRE_TOOL_USE, lambda: use, checked.tool)
    if said.halt is not None:
        raise Halted(said.halt)
    if said.decision is Decision.DENY:
        raise NotAllowed(said.reason, by=_name_decider(said))
    return said


def _name_decider(said: HookDecision) -> str:
    """Return which hook denied a call, or which rule."""
    is_rule = said.deciders[-1:] == (RULES,)
    return one_line(said.reasons[-1]) if is_rule else f"hook {', '.join(said.deciders)}"


def error_of(call: ToolCall, message: str) -> CallAnswered:
    """Answer a call that had no chance of an effect."""
    return CallAnswered(result=ToolResult(call_id=call.id, content=message, is_error=True), made=False)


def _check_call(agent: Agent, tool: Tool, given: dict[str, Any]) -> AuthorizedCall:
    """Return a call whose input fits, and which the role may make."""
    try:
        fitted = fit_input(tool.input, given)
    except Mismatch as error:
        raise InvalidInput(f"{error}. {_describe_inputs(agent, tool)}") from None
    judged = {key: value for key, value in plain(fitted).items() if value is not None}
    # roles that bound this one have a say about the tools that they have themselves
    outer = (role for role in agent.within if role.rules_of(tool.name, tool.category))
    for role in (agent.role, *outer):
        scope = find_scope(role, tool, agent.around.runner)
        for value in tool.values(judged, tool.bound) or ("",):
            if why := explain_role_refusal(role, tool, _spell(agent, tool.bound, value), scope):
                raise NotAllowed(why, by=f"the list of the {role.name}")
    return AuthorizedCall(tool=tool, given=fitted, input=judged, subject=_subject_of(agent, tool, judged))


def _settle_or_suspend(
    agent: Agent, run: Run, call: ToolCall, checked: AuthorizedCall, kind: PendingKind
) -> Authorization:
    """Let somebody decide: about an approval at once where the person said so beforehand, else later."""
    pending = Pending(
        id=f"p{agent.around.number}-{len(run.decided) + 1}",
        kind=kind,
        tool=call.name,
        input=checked.input,
        options=getattr(checked.given, "choices", ()),
        asked_at=timestamp(),
    )
    answer = decide_now(agent.around.consent, pending) if kind is PendingKind.APPROVAL else None
    if answer is None:
        return RunPaused(call_id=call.id, pending=pending)
    agent.observe(Answered(pending=pending.id, approved=answer.approved, by=answer.by))
    return _apply_decision(agent, checked, call, answer)


def _apply_decision(
    agent: Agent, checked: AuthorizedCall, call: ToolCall, answer: Answer
) -> AuthorizedCall | CallAnswered:
    if not answer.approved:
        raise ToolError(f"denied: {answer.text or 'no reason given'}")
    if checked.tool.category is Category.ASK:
        return CallAnswered(result=ToolResult(call_id=call.id, content=answer.text))
    if answer.input is None:
        return checked
    return _check_call(agent, checked.tool, answer.input)


def _subject_of(agent: Agent, tool: Tool, given: dict[str, Any]) -> str:
    """Return what a call is about: its path as git spells it, its command, its pattern."""
    named = ((kind, given[key]) for key, kind in tool.named.items() if key in given)
    kind, found = next(named, (Subject.TEXT, ""))
    return _spell(agent, kind, found) if isinstance(found, str) else ""


def _spell(agent: Agent, kind: Subject, value: str) -> str:
    """Return a path as git spells it, anything else as it is."""
    if kind is not Subject.PATH:
        return value
    try:
        return agent.around.workspace.relative(value)
    except ToolError:
        return value  # the call itself will say what is wrong with the path


def _describe_inputs(agent: Agent, tool: Tool) -> str:
    """Say which parameters a tool takes."""
    schema = next(known.input_schema for known in agent.specs if known.name == tool.name)
    required = schema.get("required", ())
    names = [name if name in required else f"{name} (optional)" for name in schema["properties"]]
    return f"{tool.name} takes {', '.join(names)}"


def _refuse_unknown(agent: Agent, call: ToolCall) -> CallAnswered:
    """Answer a call of a tool that the role does not have."""
    offered = ", ".join(tool.name for tool in agent.tools)
    owner = agent.around.owners.get(call.name)
    if owner is None:
        return error_of(call, f"there is no tool {call.name}; yours are {offered}")
    why = "is not available here" if owner == agent.role.part else f"belongs to the {owner}"
    blocked = _block(agent, call, f"{call.name} {why}; yours are {offered}", owner)
    return blocked.replace(refused_by=f"the list of the {agent.role.name}")


def _block(agent: Agent, call: ToolCall, reason: str, owner: str | None = None) -> CallAnswered:
    agent.observe(
        ToolBlocked(
            run=agent.around.number,
            call_id=call.id,
            tool=call.name,
            role=agent.role.name,
            owner=owner,
            reason=one_line(reason),
        )
    )
    return error_of(call, reason)
