"""The one path of every tool call: authorize it, run it, and record the result."""

import time
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from shutil import copy
from typing import Any

from anyio import from_thread, to_thread

from agentflow.core.errors import Halted, InvalidInput, ModelUnavailable, NotAllowed, ToolError
from agentflow.core.events import Answered, ToolBlocked, ToolFinished, ToolStarted, Warned
from agentflow.core.evidence import By
from agentflow.core.hook import Decision, HookDecision
from agentflow.core.messages import ToolCall, ToolResult
from agentflow.core.pending import Answer, Pending, PendingKind, decide_now
from agentflow.core.points import Point, ToolDone, ToolFailed, ToolUse
from agentflow.core.record import Record, copy_shared, leave_out_defaults, to_builtins
from agentflow.core.role import Findings, Plan
from agentflow.core.run import CallAnswered, Run, RunPaused
from agentflow.core.task import Phase
from agentflow.core.tool import Category, Effect, Output, Shell, Subject, Tool, ToolContext, list_edits
from agentflow.loop.agent import Agent
from agentflow.loop.history import fit_input, fit_submission, to_writable
from agentflow.loop.lifecycle import (
    announce_denial,
    ask_for_permission,
    fire_hooks,
    name_decider,
    require_allowed,
)
from agentflow.loop.open_skills import find_skill_bounds, require_allowed_by_skill
from agentflow.parse import Mismatch
from agentflow.permissions.role_rules import explain_role_refusal, is_left_to_sandbox
from agentflow.process import check_cancelled, make_timestamp
from agentflow.redact import format_count, list_some, redact_text, redact_values, to_one_line
from agentflow.tools.inputs import check_input, spell_path
from agentflow.tools.shell import BASH, recall_note
from agentflow.tools.submit import KINDS, Escalation, find_misplacement


class AuthorizedCall(Record):
    """A call that may be made now."""

    tool: Tool
    given: Record
    """Its input, as the tool takes it."""
    input: dict[str, Any]
    """The input as plain data, which rules and hooks judge."""
    subject: str
    context: str = ""
    """What hooks add to its result."""


Authorization = AuthorizedCall | CallAnswered | RunPaused
"""A call that may be made, the refusal of one, or a pause for a person's decision."""


async def authorize(agent: Agent, run: Run, call: ToolCall) -> Authorization:
    """Decide about a call before it has any effect; a denied one is announced to hooks."""
    try:
        decided = await _authorize(agent, run, call)
    except Halted as error:
        return answer_with_error(call, str(error)).replace(halt=str(error))
    except NotAllowed as error:
        decided = _block(agent, call, str(error)).replace(refused_by=error.by)
    except ToolError as error:
        return answer_with_error(call, str(error))
    if isinstance(decided, CallAnswered) and decided.refused_by:
        return await announce_denial(agent, call, decided)
    return decided


async def _authorize(agent: Agent, run: Run, call: ToolCall) -> Authorization:
    if call.id in agent.secret_inputs:
        call = call.replace(input=agent.secret_inputs[call.id], problem=None)
    if call.problem is not None:
        raise InvalidInput(call.problem)
    tool = agent.find_tool(call.name)
    if tool is None:
        return _refuse_unknown(agent, call)
    bounds = find_skill_bounds(run)
    if bounds is not None:
        require_allowed_by_skill(bounds, tool)
        agent = agent.replace(within=(*agent.within, bounds))
    # told once, then what does not fit is left out; a judge's issue is never
    drops = run.rejected > 0 and tool.input in (Findings, Plan)
    checked = _check_call(agent, tool, call.input, drops=drops)
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
    said = await _ask_hooks(agent, call, checked)
    if said.updated_input is not None:
        checked = _check_call(agent, checked.tool, said.updated_input)
    checked = checked.replace(context=said.context)
    kind = KINDS.get(type(checked.given))
    if kind is not None:
        _require_askable(agent, checked.given)
        return _suspend(agent, run, call, checked, kind)
    if said.decision is not Decision.ASK:
        return checked
    if permitted := await _ask_permission(agent, call, checked):
        return permitted
    paused = _suspend(agent, run, call, checked, PendingKind.APPROVAL)
    answer = decide_now(agent.around.consent, paused.pending)
    if answer is None:
        return paused
    agent.observe(Answered(pending=paused.pending.id, approved=answer.approved, by=answer.author))
    return _apply_decision(agent, checked, call, answer)


async def _ask_permission(agent: Agent, call: ToolCall, checked: AuthorizedCall) -> AuthorizedCall | None:
    """Let hooks decide about a call in place of a person; None where they leave it to the person."""
    said = await ask_for_permission(agent, call, checked.tool, checked.input)
    if said.decision is not Decision.ALLOW or agent.around.terms.needed > 1:  # a hook is not several people
        return None
    agent.observe(Answered(pending=call.id, approved=True, by=name_decider(said)))
    if said.updated_input is None:
        return checked
    changed = _check_call(agent, checked.tool, said.updated_input)
    # what a hook wrote has to pass the other hooks and the rules as well
    return changed.replace(context=(await _ask_hooks(agent, call, changed)).context)


def _require_askable(agent: Agent, wanted: Record) -> None:
    if agent.around.has_asked:
        raise InvalidInput(
            "nobody is asked twice in one phase, and confirming its plan counts: "
            "continue with the most likely reading, and name it in your result"
        )
    if not isinstance(wanted, Escalation):
        return
    if problem := find_misplacement(wanted.path, wanted.line, agent.around.workspace):
        raise InvalidInput(problem)


async def _ask_hooks(agent: Agent, call: ToolCall, checked: AuthorizedCall) -> HookDecision:
    use = ToolUse(tool_name=call.name, tool_input=checked.input, tool_use_id=call.id)
    return require_allowed(await fire_hooks(agent, Point.PRE_TOOL_USE, lambda: use, checked.tool))


def answer_with_error(call: ToolCall, message: str) -> CallAnswered:
    """Answer a call that had no chance of an effect."""
    return CallAnswered(result=ToolResult(call_id=call.id, content=message, is_error=True), made=False)


def _check_call(agent: Agent, tool: Tool, given: dict[str, Any], *, drops: bool = False) -> AuthorizedCall:
    try:
        fitted = _fit(agent, tool, given, drops=drops)
    except Mismatch as error:
        raise InvalidInput(f"{error}. {_describe_inputs(agent, tool)}") from None
    judged = {key: value for key, value in to_builtins(fitted).items() if value is not None}
    # roles that bound this one have a say about the tools that they have themselves
    outer = (role for role in agent.within if role.list_rules_in(tool.name, tool.category))
    for role in (agent.role, *outer):
        is_held = is_left_to_sandbox(role, tool, agent.around.runner)
        for value in tool.list_values(judged, tool.rule_subject) or ("",):
            subject = _spell(agent, tool.rule_subject, value)
            if why := explain_role_refusal(role, tool, subject, is_held=is_held):
                raise NotAllowed(why, by=f"the list of the {role.name}")
    # what it is about: a path as git spells it, a command, a pattern
    named = ((kind, judged[key]) for key, kind in tool.input_subjects.items() if key in judged)
    kind, about = next(named, (Subject.TEXT, ""))
    subject = _spell(agent, kind, about) if isinstance(about, str) else ""
    return AuthorizedCall(tool=tool, given=fitted, input=judged, subject=subject)


def _fit(agent: Agent, tool: Tool, given: dict[str, Any], *, drops: bool) -> Record:
    if agent.submit is None or tool.name != agent.submit.name:
        return fit_input(tool.input, given)
    fitted, unknown = fit_submission(tool.input, given, drops=drops)
    if unknown:
        left = list_some(map(to_one_line, unknown))
        agent.observe(Warned(message=f"{tool.name} of the {agent.role.name}: left out, not known: {left}"))
    return fitted


def _suspend(agent: Agent, run: Run, call: ToolCall, checked: AuthorizedCall, kind: PendingKind) -> RunPaused:
    is_call = kind is PendingKind.APPROVAL
    pending = Pending(
        id=f"p{agent.around.number}-{len(run.decided) + 1}",
        kind=kind,
        tool=call.name,
        input=leave_out_defaults(checked.given) if is_call else checked.input,
        options=getattr(checked.given, "choices", ()),
        asked_at=make_timestamp(),
    )
    return RunPaused(call_id=call.id, pending=agent.around.terms.apply(pending))


def _apply_decision(
    agent: Agent, checked: AuthorizedCall, call: ToolCall, answer: Answer
) -> AuthorizedCall | CallAnswered:
    if not answer.approved:
        raise NotAllowed(f"denied: {answer.text or 'no reason given'}", by=f"the answer of {answer.author}")
    if checked.tool.category is Category.ASK:
        return CallAnswered(result=ToolResult(call_id=call.id, content=answer.text))
    if answer.input is None:
        return checked
    return _check_call(agent, checked.tool, answer.input)


def _spell(agent: Agent, kind: Subject, value: str) -> str:
    return spell_path(agent.around.workspace, value) if kind is Subject.PATH else value


def _describe_inputs(agent: Agent, tool: Tool) -> str:
    schema = next(known.input_schema for known in agent.specs if known.name == tool.name)
    required = schema.get("required", ())
    names = [name if name in required else f"{name} (optional)" for name in schema["properties"]]
    return f"{tool.name} takes {', '.join(names)}"


def _refuse_unknown(agent: Agent, call: ToolCall) -> CallAnswered:
    yours = f"Your tools: {', '.join(tool.name for tool in agent.tools)}"
    owner = agent.around.owners.get(call.name)
    if owner is None:
        return _block(agent, call, f"There is no tool {call.name}. {yours}")
    blocked = _block(agent, call, f"You do not have {call.name}. {yours}", owner)
    return blocked.replace(refused_by=f"the list of the {agent.role.name}")


def _block(agent: Agent, call: ToolCall, reason: str, owner: str | None = None) -> CallAnswered:
    agent.observe(
        ToolBlocked(
            run=agent.around.number,
            call_id=call.id,
            tool=call.name,
            role=agent.role.name,
            owner=owner,
            reason=to_one_line(reason),
        )
    )
    return answer_with_error(call, reason)


async def answer_call(agent: Agent, run: Run, call: ToolCall) -> CallAnswered | RunPaused:
    """Make a call, refuse it, or let it wait; no mistake of a model raises."""
    authorized = await authorize(agent, run, call)
    if not isinstance(authorized, AuthorizedCall):
        return authorized
    subject = to_one_line(authorized.subject)
    agent.observe(
        ToolStarted(run=agent.around.number, turn=run.turns, call_id=call.id, tool=call.name, subject=subject)
    )
    begin = time.monotonic()
    found = await _make(agent, run, call, authorized)
    if isinstance(found, RunPaused):
        return found
    made = await _apply_result_hooks(agent, call, authorized, found)
    made = made.replace(seconds=round(time.monotonic() - begin, 3))
    agent.observe(
        ToolFinished(
            run=agent.around.number,
            turn=run.turns,
            call_id=call.id,
            tool=call.name,
            is_error=made.result.is_error,
            summary=_summarize(agent, authorized, made.result),
            seconds=made.seconds,
        )
    )
    return made


def _summarize(agent: Agent, made: AuthorizedCall, result: ToolResult) -> str:
    """Return a result in a few words: the text of a file and a receipt say nothing to a person."""
    tool, given = made.tool, made.input
    if tool is agent.submit and not result.is_error:
        return ""
    if result.is_error or not tool.shows_file:
        return to_one_line(result.content)
    if tool.effect is Effect.READ:
        return f"({format_count(result.content.count(chr(10)), 'line')})"
    old, new = (
        Counter(
            line for each in list_edits(given) for key in keys for line in str(each.get(key, "")).splitlines()
        )
        for keys in (("old_string",), ("new_string", "content"))
    )
    return f"+{(new - old).total()} \N{MINUS SIGN}{(old - new).total()}"


async def _make(agent: Agent, run: Run, call: ToolCall, ready: AuthorizedCall) -> CallAnswered | RunPaused:
    inner = list[CallAnswered]()
    context = ToolContext(
        role=agent.role,
        tools=agent.tools,
        call_id=call.id,
        run=run,
        cancelled=check_cancelled,
        shell=Shell(
            shown_bytes=agent.room.measure_result(run.rate),
            shows=agent.room.shows or (),
            authorize=partial(_authorize_command, agent, run),
            make=partial(_make_inner_call, agent, run, call, inner),
            **copy_shared(agent.around, Shell),
        ),
        **copy_shared(agent.around, ToolContext),
    )
    try:
        check_input(ready.tool, ready.input, context)
        with _watch_role(agent, ready.tool):
            output = await to_thread.run_sync(partial(ready.tool.call, ready.given, context))
    except ModelUnavailable:
        raise  # of a sub-agent: the task goes on later where it is
    except Exception as error:  # noqa: BLE001  # a bug in a tool is an error result, not the end of the task
        bug = "" if isinstance(error, ToolError) else f"{call.name} failed: {type(error).__name__}: "
        content = redact_text(to_writable(f"{bug}{error}"))
        return CallAnswered(result=ToolResult(call_id=call.id, content=content, is_error=True))
    if output.pending is not None:
        return RunPaused(call_id=call.id, pending=output.pending, inside=True)
    output = output.replace(content=redact_text(output.content))
    content = to_writable(_store_output(agent, run, call, output))
    return CallAnswered(
        result=ToolResult(
            call_id=call.id,
            content=content,
            is_error=output.is_error,
            shown=output.shown,
            failures=redact_values(to_writable(output.failures)),
        ),
        changes=redact_values(to_writable(output.changes)),
        submitted=output.submitted,
        halt=next((each.halt for each in (*inner, output.delegated) if each and each.halt), None),
        delegated=output.delegated,
        handoff=output.handoff,
    )


def _make_inner_call(
    agent: Agent, run: Run, outer: ToolCall, made: list[CallAnswered], name: str, given: dict[str, Any]
) -> None:
    tool = agent.find_tool(name)
    known = tool.list_values(given, Subject.PATH) if tool else ()  # the outer call has read what it changes
    run = run.replace(head=run.head.replace(shown=(*run.head.shown, *known)))
    inner = ToolCall(id=f"{outer.id}-{len(made) + 1}", name=name, input=given)
    found = from_thread.run(answer_call, agent, run, inner)
    if isinstance(found, RunPaused):
        raise NotAllowed(f"a rule wants {name} approved: call it yourself, then somebody is asked")
    made.append(found)
    if found.result.is_error:
        raise NotAllowed(found.result.content)


def _authorize_command(agent: Agent, run: Run, call_id: str, command: str) -> str:
    inner = ToolCall(id=call_id, name=BASH.name, input={"command": command})
    found = from_thread.run(authorize, agent, run, inner)
    match found:
        case AuthorizedCall():
            return str(found.input["command"])
        case CallAnswered():
            raise NotAllowed(found.result.content)
        case RunPaused():
            raise NotAllowed("a rule wants it approved, and nobody is asked inside a skill")


def _watch_role(agent: Agent, tool: Tool) -> AbstractContextManager[None]:
    """Return the context in which changed files count as the role's, if a call of the tool can change any."""
    around = agent.around
    may_write = around.phase is Phase.IMPLEMENTATION or around.runner.level == "none"
    if around.watch is None or not may_write or tool.effect is Effect.READ or tool.category is Category.AGENT:
        return nullcontext()
    return around.watch.watch_role()


def _store_output(agent: Agent, run: Run, call: ToolCall, output: Output) -> str:
    full = agent.around.outputs / f"{call.id}.out"
    if output.execution is not None:
        execution = output.execution
        if output.clipped:  # the ledger takes the file, and the model may still ask for this one
            execution = execution.replace(output=str(copy(full, full.with_suffix(".whole"))))
        role = agent.role.part or agent.role.name
        kept = agent.around.ledger.record(execution, role=role, iteration=agent.around.iteration, by=By.AGENT)
        return f"{output.content}, evidence {kept.id}"
    most = agent.room.measure_result(run.rate)
    if len(output.content) > most:
        full.write_text(output.content, "utf-8", "backslashreplace")
        note = f"[clipped; {recall_note(run.head.tools, call.id)}]"
        return f"{output.content[:most]}\n{note}"
    return output.content


async def _apply_result_hooks(
    agent: Agent, call: ToolCall, authorized: AuthorizedCall, made: CallAnswered
) -> CallAnswered:
    point = Point.POST_TOOL_USE_FAILURE if made.result.is_error else Point.POST_TOOL_USE
    text = made.result.content

    def payload() -> ToolDone | ToolFailed:
        use: Any = {"tool_name": call.name, "tool_input": authorized.input, "tool_use_id": call.id}
        return ToolFailed(**use, error=text) if made.result.is_error else ToolDone(**use, tool_response=text)

    said = await fire_hooks(agent, point, payload, authorized.tool)
    shown = text if said.updated_output is None else said.updated_output
    added = (authorized.context, said.context)
    content = redact_text("\n\n".join(part for part in (shown, *added) if part))
    return made.replace(result=made.result.replace(content=content), halt=made.halt or said.halt)
