"""Why a role may run a shell command or not, part by part."""

from collections.abc import Iterator

from agentflow.core.hook import Decision
from agentflow.core.record import Record
from agentflow.core.role import Role
from agentflow.core.tool import Subject, Tool
from agentflow.permissions.role_rules import Scope, part_rulings
from agentflow.permissions.rules import Rules
from agentflow.permissions.shell_command import Script, TooComplex
from agentflow.permissions.user_rules import Call, Ruling, restriction, sweep, uncertain
from agentflow.permissions.wrappers import judged
from agentflow.redact import one_line


class Part(Record):
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
    parts: tuple[Part, ...] = ()


def explain(role: Role, rules: Rules, call: Call, scope: Scope) -> Explanation:
    """Return how a role's list and the rules decide about a command; `scope` says what else does."""
    (command,) = call.tool.values(call.given, Subject.COMMAND)
    shell = role.rules_of(call.tool.name, call.tool.category)
    if not shell:
        return _told(role, command, f"{role.name} has no {call.tool.name}: {role.place('tools')}", ())
    try:
        script = judged(command)
        restricted = _restricted(rules, script, call)
    except TooComplex as reason:
        return _told(role, command, *_uncertain(rules, call.tool, command, str(reason), scope))
    place = role.place("tools")
    listed = [
        Part(
            part=found.part,
            decision="deny" if found.refused else "allow",
            rule=found.refused or found.rule or "",
            source="" if (found.rule or "").startswith("built-in") else place,
        )
        for found in part_rulings(role, script, shell, scope)
    ]
    return _told(role, command, "", (*listed, *restricted))


def _uncertain(
    rules: Rules, tool: Tool, command: str, reason: str, scope: Scope
) -> tuple[str, tuple[Part, ...]]:
    """Return what decides about a command that cannot be judged: a reason, or the part that a rule has."""
    said = uncertain(rules, tool, command, reason)
    if scope is not Scope.ANYTHING:
        return f"it cannot be judged: {reason}", ()
    rule = said.rule or f"built-in: the sandbox alone decides, since {reason}"
    decision = "allow" if said.decision is Decision.NONE else said.decision.name.lower()
    part = Part(part=one_line(command), decision=decision, rule=rule, source=said.source)
    return "", (part,)


def _restricted(rules: Rules, script: Script, call: Call) -> list[Part]:
    """Return the parts that deny and ask rules are about; what holds for the whole stands for the whole."""
    alone = [Script(commands=(simple,), source=simple.source) for simple in script.commands]
    led = [Script(commands=(), redirections=(each,), source=each.source) for each in script.redirections]
    calls = [call.replace(script=each) for each in (*alone, *led)]
    whole = call.replace(script=script)
    found = [part for one in calls for part in _part(one, restriction(rules, one))]
    found = list(dict.fromkeys(found)) or list(_part(whole, restriction(rules, whole)))
    return [*found, *_part(whole, sweep(rules, whole))]  # where a part runs, other parts say


def _part(call: Call, said: Ruling | None) -> Iterator[Part]:
    if said is not None and call.script is not None:
        name = said.decision.name.lower()
        yield Part(part=one_line(call.script.source), decision=name, rule=said.rule, source=said.source)


def _told(role: Role, command: str, reason: str, parts: tuple[Part, ...]) -> Explanation:
    found = {part.decision for part in parts} or {"deny" if reason else "allow"}
    decision = max(found, key=lambda each: Decision[each.upper()])
    rules = (part.rule for part in parts if part.decision == decision)
    why = reason or next(rules, "nothing in it would run")
    return Explanation(command=command, role=role.name, decision=decision, reason=why, parts=parts)
