"""Why a role may run a shell command or not, part by part."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentflow.core.hook import Decision
from agentflow.core.record import Record
from agentflow.core.role import Role
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


def explain(role: Role, rules: Rules, command: str, root: Path, scope: Scope) -> Explanation:
    """Return how a role's list and the rules decide about a command; `scope` says what else does."""
    shell = (*role.rules_for("Bash"), *role.rules_for("shell"))
    if not shell:
        return _told(role, command, f"{role.name} has no Bash: {role.place('tools')}", ())
    try:
        script = judged(command)
        restricted = _restricted(rules, script, command, root)
    except TooComplex as reason:
        return _uncertain(role, rules, command, str(reason), scope)
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


def _uncertain(role: Role, rules: Rules, command: str, reason: str, scope: Scope) -> Explanation:
    """Return what decides about a command that cannot be judged."""
    said = uncertain(rules, command, reason)
    if scope is not Scope.ANYTHING:
        return _told(role, command, f"it cannot be judged: {reason}", ())
    rule = said.rule or f"built-in: the sandbox alone decides, since {reason}"
    decision = "allow" if said.decision is Decision.NONE else said.decision.name.lower()
    part = Part(part=one_line(command), decision=decision, rule=rule, source=said.source)
    return _told(role, command, "", (part,))


def _restricted(rules: Rules, script: Script, command: str, root: Path) -> list[Part]:
    """Return the parts that deny and ask rules are about; what holds for the whole stands for the whole."""
    given: dict[str, Any] = {"command": command}
    alone = [Script(commands=(simple,), source=simple.source) for simple in script.commands]
    led = [Script(commands=(), redirections=(each,), source=each.source) for each in script.redirections]
    calls = [Call(tool="Bash", given=given, root=root, script=each) for each in (*alone, *led)]
    whole = Call(tool="Bash", given=given, root=root, script=script)
    found = [part for call in calls for part in _part(call, restriction(rules, call))]
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
