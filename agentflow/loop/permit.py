"""May a call be made, and with which input: the role's list, the input's shape, hooks, and people."""

from typing import Any

from agentflow.core.errors import ToolError
from agentflow.core.events import Answered, ToolBlocked
from agentflow.core.hook import Decision, HookDecision
from agentflow.core.messages import ToolCall, ToolResult
from agentflow.core.pending import Answer, Pending, PendingKind, decided_now
from agentflow.core.points import Point, ToolUse
from agentflow.core.record import Record, plain
from agentflow.core.run import CallAnswered, Run, RunPaused
from agentflow.core.tool import Category, Tool
from agentflow.loop.agent import Agent
from agentflow.loop.arguments import parsed
from agentflow.loop.lifecycle import asked
from agentflow.parse import Mismatch
from agentflow.permissions.decide import refusal
from agentflow.process import timestamp
from agentflow.redact import one_line
from agentflow.tools.ask import KINDS, Escalation
from agentflow.tools.submit import misplaced

_SUBJECTS = (
    *("subagent_type", "file_path", "command", "pattern", "summary"),
    *("verdict", "path", "url", "query", "skill"),
)
"""Keys that say what a call is about; the first of them that it has does."""


class Admitted(Record):
    """A call that is to be made now."""

    tool: Tool
    given: Record
    """Its input, as the tool takes it."""
    input: dict[str, Any]
    """The same as plain data: what rules and hooks judge is what runs."""
    subject: str
    context: str = ""
    """What hooks add to its result."""


Ruling = Admitted | CallAnswered | RunPaused
"""A call ready to be made, the answer that it is not, or that somebody has to decide."""


async def admit(agent: Agent, run: Run, call: ToolCall) -> Ruling:
    """Decide about a call before it can have any effect."""
    if call.id in agent.withheld:
        call = call.replace(input=agent.withheld[call.id], problem=None)
    if call.problem is not None:
        return error_of(call, call.problem)
    tool = agent.tool(call.name)
    if tool is None:
        return _foreign(agent, call)
    checked = _checked(agent, tool, call, call.input)
    if isinstance(checked, CallAnswered):
        return checked
    decided = run.decided.get(call.id)
    if decided is None:
        return await _ruled(agent, run, call, checked)
    approved = _as_decided(agent, checked, call, decided)
    return approved if isinstance(approved, CallAnswered) else await _still_allowed(agent, call, approved)


async def _ruled(agent: Agent, run: Run, call: ToolCall, checked: Admitted) -> Ruling:
    """Let hooks and rules deny a call, change its input, or have somebody asked."""
    said = await _said_before(agent, call, checked)
    refused = _refused(agent, call, said)
    if refused is not None:
        return refused
    if said.updated_input is not None:
        changed = _checked(agent, checked.tool, call, said.updated_input)
        if isinstance(changed, CallAnswered):
            return changed
        checked = changed
    checked = checked.replace(context=said.context)
    kind = KINDS.get(type(checked.given), PendingKind.APPROVAL)
    if kind is not PendingKind.APPROVAL and (problem := _unaskable(agent, checked.given)):
        return error_of(call, problem)
    has_to_ask = said.decision is Decision.ASK or kind is not PendingKind.APPROVAL
    return _asked(agent, run, call, checked, kind) if has_to_ask else checked


def _unaskable(agent: Agent, asked: Record) -> str | None:
    """Return why nobody is asked: somebody was in this phase, or the place that is named does not exist."""
    if agent.around.interrupted:
        return (
            "nobody is asked twice in one phase, the confirmation of its plan included: "
            "go on with what is most likely, and name it in your result"
        )
    if isinstance(asked, Escalation):
        return misplaced(asked.path, asked.line, agent.around.workspace)
    return None


async def _still_allowed(agent: Agent, call: ToolCall, approved: Admitted) -> Admitted | CallAnswered:
    """Let hooks and rules deny what a person approved; they may not change it any more."""
    said = await _said_before(agent, call, approved)
    return _refused(agent, call, said) or approved.replace(context=said.context)


async def _said_before(agent: Agent, call: ToolCall, checked: Admitted) -> HookDecision:
    return await asked(
        agent,
        Point.PRE_TOOL_USE,
        lambda: ToolUse(tool_name=call.name, tool_input=checked.input, tool_use_id=call.id),
    )


def _refused(agent: Agent, call: ToolCall, said: HookDecision) -> CallAnswered | None:
    if said.halt is not None:
        return error_of(call, said.halt).replace(halt=said.halt)
    return _blocked(agent, call, said.reason, owner=None) if said.decision is Decision.DENY else None


def error_of(call: ToolCall, message: str) -> CallAnswered:
    """Answer a call that had no chance of an effect."""
    return CallAnswered(result=ToolResult(call_id=call.id, content=message, is_error=True), made=False)


def _checked(agent: Agent, tool: Tool, call: ToolCall, given: dict[str, Any]) -> Admitted | CallAnswered:
    try:
        fitted = parsed(tool.input, given)
    except Mismatch as error:
        return error_of(call, f"{error}. {_wanted(agent, tool)}")
    judged = {key: value for key, value in plain(fitted).items() if value is not None}
    subject = _subject(agent, tool, judged)
    reason = _beyond(agent, tool, subject)
    if reason is not None:
        return _blocked(agent, call, reason, owner=None)
    return Admitted(tool=tool, given=fitted, input=judged, subject=subject)


def _beyond(agent: Agent, tool: Tool, subject: str) -> str | None:
    """Return why the role, or one that bounds it, may not make a call."""
    outer = (role for role in agent.within if role.rules_of(tool.name, tool.category))
    return next((why for role in (agent.role, *outer) if (why := refusal(role, tool, subject))), None)


def _asked(agent: Agent, run: Run, call: ToolCall, checked: Admitted, kind: PendingKind) -> Ruling:
    """Let somebody decide: about an approval at once where the person said so beforehand, else later."""
    pending = Pending(
        id=f"p{agent.around.number}-{len(run.decided) + 1}",
        kind=kind,
        tool=call.name,
        input=checked.input,
        options=getattr(checked.given, "choices", ()),
        asked_at=timestamp(),
    )
    answer = decided_now(agent.around.consent, pending) if kind is PendingKind.APPROVAL else None
    if answer is None:
        return RunPaused(call_id=call.id, pending=pending)
    agent.observe(Answered(pending=pending.id, approved=answer.approved, by=answer.by))
    return _as_decided(agent, checked, call, answer)


def _as_decided(agent: Agent, checked: Admitted, call: ToolCall, answer: Answer) -> Admitted | CallAnswered:
    if not answer.approved:
        return error_of(call, f"denied: {answer.text or 'no reason given'}")
    if checked.tool.category is Category.ASK:
        return CallAnswered(result=ToolResult(call_id=call.id, content=answer.text))
    if answer.input is None:
        return checked
    return _checked(agent, checked.tool, call, answer.input)


def _subject(agent: Agent, tool: Tool, given: dict[str, Any]) -> str:
    """Return what a call is about: its path as git spells it, its command, its pattern."""
    found = next((given[key] for key in _SUBJECTS if key in given), "")
    subject = found if isinstance(found, str) else ""
    if tool.category is not Category.FS or "file_path" not in given:
        return subject
    try:
        return agent.around.workspace.relative(subject)
    except ToolError:
        return subject  # the tool itself will say what is wrong with the path


def _wanted(agent: Agent, tool: Tool) -> str:
    """Say which parameters a tool takes."""
    schema = next(known.input_schema for known in agent.specs if known.name == tool.name)
    required = schema.get("required", ())
    names = [name if name in required else f"{name} (optional)" for name in schema["properties"]]
    return f"{tool.name} takes {', '.join(names)}"


def _foreign(agent: Agent, call: ToolCall) -> CallAnswered:
    """Answer a call of a tool that the role does not have."""
    offered = ", ".join(tool.name for tool in agent.tools)
    owner = agent.around.owners.get(call.name)
    if owner is None:
        return error_of(call, f"there is no tool {call.name}; yours are {offered}")
    why = "is not available here" if owner == agent.role.part else f"belongs to the {owner}"
    return _blocked(agent, call, f"{call.name} {why}; yours are {offered}", owner=owner)


def _blocked(agent: Agent, call: ToolCall, reason: str, *, owner: str | None) -> CallAnswered:
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
