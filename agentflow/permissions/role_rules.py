"""Decides if a role may make a call, by its role file and by what the sandbox prevents, and says why.

Pure: the answer follows from the role, the tool and what the call is about.
"""

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from agentflow.core.hook import Decision
from agentflow.core.ports import Runner
from agentflow.core.record import Record
from agentflow.core.regex import compile_glob
from agentflow.core.role import Role, ToolRule
from agentflow.core.routing import PIPELINE, SUBMITTED_BY, Access
from agentflow.core.tool import Category, Effect, Subject, Tool
from agentflow.permissions.reading_commands import find_bad_assignment, find_dangerous_argument, is_reading
from agentflow.permissions.rules import Rules, compile_pattern, is_on_host
from agentflow.permissions.shell_parser import (
    Redirection,
    ShellScript,
    SimpleCommand,
    TooComplex,
    join_words,
)
from agentflow.permissions.user_rules import (
    RuleCall,
    RuleDecision,
    apply_rules,
    find_restriction,
)
from agentflow.permissions.wrappers import RUNS_OTHERS, SHELLS, name_program, unwrap_command
from agentflow.redact import to_one_line
from agentflow.sandbox.profile import ACCESS, is_git
from agentflow.workspace.path_guard import find_policy_part

_READ_ONLY = "built-in: only reads"
_ON_A_COPY = "built-in: works on a copy that is thrown away"
_SHOWN = 10
_WRITERS = ("Write", "Edit", Category.FS.value)
_SHIPPED = "bundled"
_UNCONFINED = "none"


def is_left_to_sandbox(role: Role, tool: Tool, runner: Runner) -> bool:
    """Return whether a role may run any command, also one that cannot be judged, since the sandbox holds it.

    A role file of the user or of the repository means what it lists; only the shipped roles have more.
    """
    if any(rule.pattern is None for rule in role.list_rules_in(tool.name, tool.category)):
        return runner.level != _UNCONFINED
    works_on_copy = ACCESS.get(role.part or "") in (Access.LAYER, Access.THROW_AWAY)
    return role.origin == _SHIPPED and works_on_copy and runner.is_sealed


class PartDecision(Record):
    part: str
    rule: str | None = None
    refused: str | None = None
    """Why the part may not run."""


def explain_role_refusal(role: Role, tool: Tool, subject: str, *, is_held: bool = False) -> str | None:
    """Return why a role may not make a call, or None if it may; `is_held`: the sandbox decides on commands.

    `subject` is what a pattern of its list is about: a command, a relative path, an address, a name.
    """
    if tool.input in SUBMITTED_BY:
        part = SUBMITTED_BY[tool.input]
        return None if role.part == part else f"{tool.name} belongs to the {part}"
    rules = role.list_rules_in(tool.name, tool.category)
    if not (rules or tool.granted):
        return f"{role.name} may not use {tool.name}"
    if tool.rule_subject is Subject.COMMAND and not tool.granted:
        try:
            parts = judge_parts(role, unwrap_command(subject), rules, is_held=is_held)
        except TooComplex as reason:
            why = f"{role.name} may not run a command that cannot be judged: {reason}; write it out plainly"
            return None if is_held else why
        return next((part.refused for part in parts if part.refused), None)
    if tool.granted or any(rule.pattern is None or _covers(tool, rule.pattern, subject) for rule in rules):
        return None
    return f"{role.name} may use {tool.name} only on {', '.join(str(rule.pattern) for rule in rules)}"


def find_owner(tool_name: str, roles: Iterable[Role]) -> str | None:
    """Return the part of the pipeline that has a tool, the one with it unbounded first."""
    owning = [role for role in roles if role.part in PIPELINE and role.list_rules(tool_name)]

    def rank(role: Role) -> tuple[bool, int]:
        is_bounded = all(rule.pattern is not None for rule in role.list_rules(tool_name))
        return is_bounded, PIPELINE.index(str(role.part))

    return min(owning, key=rank).part if owning else None


def judge_parts(
    role: Role, script: ShellScript, rules: tuple[ToolRule, ...], *, is_held: bool = False
) -> Iterator[PartDecision]:
    """Yield what a role's list says about each part of a command, its redirections too."""
    unbounded = next((str(rule) for rule in rules if rule.pattern is None), None)
    free = unbounded or (_ON_A_COPY if is_held else None)
    for simple in script.commands:
        if free is not None:
            yield PartDecision(part=to_one_line(simple.source), rule=free)
        elif not simple.is_opened or find_bad_assignment(simple):
            yield _judge_part(role, simple, rules)
    if free is None and {"cd", "git"} <= {name_program(simple.words) for simple in script.commands}:
        reason = f"{role.name} may not run git in another folder, whose configuration git would obey"
        yield PartDecision(part="cd, git", refused=reason)
    for redirection in script.redirections:
        if redirection.writes:
            yield _judge_redirection(role, redirection, free)


def _judge_part(role: Role, simple: SimpleCommand, rules: tuple[ToolRule, ...]) -> PartDecision:
    shown = to_one_line(simple.source)
    if (name := find_bad_assignment(simple)) is not None:
        return PartDecision(
            part=shown, refused=f"{role.name} may not set {name}, which programs obey; leave it out"
        )
    rule = _READ_ONLY if is_reading(simple) else _find_allowing_rule(simple, rules)
    if rule is None:
        more = f", and {len(rules) - _SHOWN} more like these" if len(rules) > _SHOWN else ""
        patterns = ", ".join(str(rule.pattern) for rule in rules[:_SHOWN])
        why = f"it may run {patterns}{more}, and commands that only read"
        return PartDecision(part=shown, refused=f"{role.name} may not run {shown}; {why}")
    if simple.words and (argument := find_dangerous_argument(simple.words)) is not None:
        program = simple.words[0].text
        why = f"{role.name} may not give {argument} to {program}: it can run, write or delete something"
        return PartDecision(part=shown, refused=f"{why}; leave it out")
    return PartDecision(part=shown, rule=rule)


def _find_allowing_rule(simple: SimpleCommand, rules: tuple[ToolRule, ...]) -> str | None:
    """Return the rule that allows a command; a command that runs others needs a rule with its exact text."""
    runs_others = name_program(simple.words) in RUNS_OTHERS | SHELLS
    text = join_words(simple.words)
    for rule in rules:
        pattern = str(rule.pattern)
        if compile_pattern(pattern).fullmatch(text) and not (runs_others and "*" in pattern):
            return str(rule)
    return None


def _judge_redirection(role: Role, redirection: Redirection, free: str | None) -> PartDecision:
    shown, target = to_one_line(redirection.source), redirection.target
    path = PurePosixPath(target.text)
    if find_policy_part(target.text) or any(map(is_git, path.parts)):
        return PartDecision(part=shown, refused=f"{shown}: no role writes there")
    if free is not None:
        return PartDecision(part=shown, rule=free)
    rules = [rule for name in _WRITERS for rule in role.list_rules(name)]
    inside = target.is_known and not path.is_absolute() and ".." not in path.parts
    for rule in rules:
        if rule.pattern is None or (inside and compile_glob(rule.pattern).fullmatch(path.as_posix())):
            return PartDecision(part=shown, rule=str(rule))
    why = f"{role.name} may not write files, so not {shown} either; let it print instead"
    return PartDecision(part=shown, refused=why)


def _covers(tool: Tool, pattern: str, subject: str) -> bool:
    match tool.rule_subject:
        case Subject.NAME:
            return subject in ToolRule(tool=tool.name, pattern=pattern).names
        case Subject.PATH:
            path, names = PurePosixPath(subject), [subject]
            if tool.effect is Effect.READ:
                names.append(f"{subject}/-/-")  # a folder may be read where all that it holds may be
            is_inside = not path.is_absolute() and ".." not in path.parts
            return is_inside and any(compile_glob(pattern).fullmatch(name) for name in names)
        case _:
            is_host = tool.rule_subject is Subject.ADDRESS and is_on_host(pattern, subject)
            return is_host or compile_pattern(pattern).fullmatch(subject) is not None


class ExplainedPart(Record):
    """One part of a command, and what decides about it."""

    part: str
    decision: str
    rule: str
    source: str = ""
    """The file that the rule stands in; empty for a built-in one."""


class Explanation(Record):
    command: str
    role: str
    decision: str
    reason: str
    parts: tuple[ExplainedPart, ...] = ()


def explain_call(role: Role, rules: Rules, call: RuleCall, *, is_held: bool) -> Explanation:
    """Return how a role's list, the rules and, where it holds a command, the sandbox decide about it."""
    (command,) = call.tool.list_values(call.given, Subject.COMMAND)
    shell, place = role.list_rules_in(call.tool.name, call.tool.category), role.place("tools")
    refused = explain_role_refusal(role, call.tool, command, is_held=is_held)
    refused = refused if shell else f"{role.name} has no {call.tool.name}: {place}"
    said, parts = apply_rules(rules, call.tool, call.given, call.root), list[ExplainedPart]()
    try:
        call = call.replace(script=unwrap_command(command))
    except TooComplex as reason:
        rule = f"built-in: the sandbox alone decides, since {reason}"
        if is_held:
            parts.append(ExplainedPart(part=to_one_line(command), decision="allow", rule=rule))
    for found in judge_parts(role, call.script, shell, is_held=is_held) if call.script and shell else ():
        rule, decision = found.refused or found.rule or "", "deny" if found.refused else "allow"
        source = "" if (found.rule or "").startswith("built-in") else place
        parts.append(ExplainedPart(part=found.part, decision=decision, rule=rule, source=source))
    if said.decision > Decision.ALLOW:
        about, decision = to_one_line(_find_part(rules, call, said) or command), said.decision.name.lower()
        parts.append(ExplainedPart(part=about, decision=decision, rule=said.rule, source=said.source))
    decisions = {"deny" if refused else "allow", *(part.decision for part in parts)}
    decision = max(decisions, key=lambda each: Decision[each.upper()])
    reasons = (part.rule for part in parts if part.decision == decision)
    why = refused or next(reasons, "nothing in it would run")
    return Explanation(command=command, role=role.name, decision=decision, reason=why, parts=tuple(parts))


def _find_part(rules: Rules, call: RuleCall, said: RuleDecision) -> str:
    """Return the part of a command that a rule is about; empty where it is about the whole."""
    for simple in call.script.commands if call.script else ():
        alone = call.replace(script=ShellScript(commands=(simple,), source=simple.source))
        if find_restriction(rules, alone) == said:
            return simple.source
    return ""
