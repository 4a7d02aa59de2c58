"""Why a role may run a shell command or not, part by part."""

from collections.abc import Iterator

from agentflow.core.hook import Decision
from agentflow.core.record import Record
from agentflow.core.role import Role
from agentflow.core.tool import Subject, Tool
from agentflow.permissions.role_rules import CommandScope, judge_parts
from agentflow.permissions.rules import Rules
from agentflow.permissions.shell_command import ShellScript, TooComplex
from agentflow.permissions.user_rules import (
    RuleCall,
    RuleDecision,
    apply_rules_unparsed,
    find_deletion_question,
    find_restriction,
)
from agentflow.permissions.wrappers import unwrap_command
from agentflow.redact import one_line


class ExplainedPart(Record):
    """One part of a command, and what decides about it."""

    part: str
    decision: str
    rule: str
    source: str
    """The file that the rule stands in; empty for a built-in one."""


class Explanation(Record):
    """The decision about a command, and what led to it."""

    command: str
    role: str
    decision: str
    reason: str
    parts: tuple[ExplainedPart, ...] = ()


def explain_call(role: Role, rules: Rules, call: RuleCall, scope: CommandScope) -> Explanation:
    """Return how a role's list and the rules decide about a command; `scope` says what else does."""
    (command,) = call.tool.values(call.given, Subject.COMMAND)
    shell = role.rules_of(call.tool.name, call.tool.category)
    if not shell:
        return _build_explanation(
            role, command, f"{role.name} has no {call.tool.name}: {role.place('tools')}", ()
        )
    try:
        script = unwrap_command(command)
        restricted = _list_restrictions(rules, script, call)
    except TooComplex as reason:
        return _build_explanation(
            role, command, *_explain_unparsed(rules, call.tool, command, str(reason), scope)
        )
    place = role.place("tools")
    listed = [
        ExplainedPart(
            part=found.part,
            decision="deny" if found.refused else "allow",
            rule=found.refused or found.rule or "",
            source="" if (found.rule or "").startswith("built-in") else place,
        )
        for found in judge_parts(role, script, shell, scope)
    ]
    return _build_explanation(role, command, "", (*listed, *restricted))


def _explain_unparsed(
    rules: Rules, tool: Tool, command: str, reason: str, scope: CommandScope
) -> tuple[str, tuple[ExplainedPart, ...]]:
    """Return what decides about a command that cannot be judged: a reason, or the part that a rule has."""
    said = apply_rules_unparsed(rules, tool, command, reason)
    if scope is not CommandScope.ANYTHING:
        return f"it cannot be judged: {reason}", ()
    rule = said.rule or f"built-in: the sandbox alone decides, since {reason}"
    decision = "allow" if said.decision is Decision.NONE else said.decision.name.lower()
    part = ExplainedPart(part=one_line(command), decision=decision, rule=rule, source=said.source)
    return "", (part,)


def _list_restrictions(rules: Rules, script: ShellScript, call: RuleCall) -> list[ExplainedPart]:
    """Return the parts that deny and ask rules are about; what holds for the whole stands for the whole."""
    alone = [ShellScript(commands=(simple,), source=simple.source) for simple in script.commands]
    led = [ShellScript(commands=(), redirections=(each,), source=each.source) for each in script.redirections]
    calls = [call.replace(script=each) for each in (*alone, *led)]
    whole = call.replace(script=script)
    found = [part for one in calls for part in _explain_part(one, find_restriction(rules, one))]
    found = list(dict.fromkeys(found)) or list(_explain_part(whole, find_restriction(rules, whole)))
    deletion = _explain_part(whole, find_deletion_question(rules, whole))
    return [*found, *deletion]  # where a part runs, other parts say


def _explain_part(call: RuleCall, said: RuleDecision | None) -> Iterator[ExplainedPart]:
    if said is not None and call.script is not None:
        name = said.decision.name.lower()
        yield ExplainedPart(
            part=one_line(call.script.source), decision=name, rule=said.rule, source=said.source
        )


def _build_explanation(
    role: Role, command: str, reason: str, parts: tuple[ExplainedPart, ...]
) -> Explanation:
    found = {part.decision for part in parts} or {"deny" if reason else "allow"}
    decision = max(found, key=lambda each: Decision[each.upper()])
    rules = (part.rule for part in parts if part.decision == decision)
    why = reason or next(rules, "nothing in it would run")
    return Explanation(command=command, role=role.name, decision=decision, reason=why, parts=parts)
