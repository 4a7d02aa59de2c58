"""The user's permission rules applied to a call, and the calls a person is asked about without a rule."""

import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

from agentflow.core.hook import Decision
from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.core.role import ToolRule
from agentflow.core.tool import Effect, Subject, Tool
from agentflow.permissions.mass_deletion import find_mass_deletion
from agentflow.permissions.reading_commands import find_bad_assignment, find_dangerous_argument, is_reading
from agentflow.permissions.rules import (
    FILES,
    READING,
    WRITING,
    Rules,
    compile_pattern,
    is_about_command,
    is_about_path,
    is_about_tool,
    is_on_host,
    list_rule_kinds,
    parse_rules,
    place_pattern,
)
from agentflow.permissions.shell_parser import (
    UNKNOWN_TEXT,
    ShellScript,
    SimpleCommand,
    TooComplex,
    join_words,
)
from agentflow.permissions.wrappers import unwrap_command
from agentflow.redact import to_one_line
from agentflow.sandbox.profile import CONFIGURATION
from agentflow.sandbox.protection import find_links
from agentflow.settings import Mode, When
from agentflow.workspace.path_guard import find_obeyed_part

_ALLOWING_GLOB = regex(r"mcp__\w+?__[\w*-]*|[^*]*")
_DELETING = regex(
    r"\b(?:rm|rimraf|chmod|chown)\s+(?:\S+\s+)*?-\w*[rR]|\bfind\b.*-delete|\bgit\s+clean\b.*-\w*[xX]",
    re.DOTALL,
)
"""What deletes folders, or changes the modes of all that they hold."""
_NAMES = regex(
    r"\.env.*|\.netrc|\.pgpass|.*(?:credential|secret|password|token).*|.*\.(?:pem|key|p12|pfx)|id_(?:rsa|ed25519).*",
    re.IGNORECASE,
)
_CERTAIN = regex(
    r"\.env.*|\.netrc|\.pgpass|(?:\.git-)?credentials?(?:\..*)?|.*\.(?:pem|key|p12|pfx)|id_(?:rsa|ed25519)(?!.*\.pub).*",
    re.IGNORECASE,
)
"""In a command, where a word such as `token` is rather something that is looked for."""
_SHARPEST = regex(r"\.env(?:\.\w+)?|\.netrc|\.pgpass|\w*\.(?:pem|p12|pfx)|id_(?:rsa|ed25519)")
"""In a text that cannot be judged, where a word such as `item.key` is rather code."""
_EXAMPLES = (".env", ".env.local", "id_rsa", "id_ed25519")


class RuleDecision(Record):
    decision: Decision = Decision.NONE
    rule: str = ""
    source: str = ""


class RuleCall(Record):
    """A call as rules look at it."""

    tool: Tool
    given: dict[str, Any]
    root: Path
    script: ShellScript | None = None
    """Of a shell command."""

    @property
    def paths(self) -> tuple[str, ...]:
        return self.tool.list_values(self.given, Subject.PATH)


def apply_rules(rules: Rules, tool: Tool, given: dict[str, Any], root: Path) -> RuleDecision:
    """Return what the first matching list says about a call; NONE when no rule matches."""
    command = "\n".join(tool.list_values(given, Subject.COMMAND))
    try:
        script = unwrap_command(command) if command else None
        call = RuleCall(tool=tool, given=given, root=root, script=script)
        restricted = find_restriction(rules, call) or find_deletion_question(rules, call)
    except TooComplex as reason:
        return apply_rules_unparsed(rules, tool, command, str(reason))
    return _apply_allow(rules, call) if restricted is None else restricted


def build_exceptions(rules: Rules, root: Path) -> Callable[[str, str], bool]:
    """Return whether an allow rule names a file to be read or written; one for all files names none."""
    named = [rule for rule in rules.allow if rule.pattern is not None]
    return lambda kind, name: any(rule.tool == kind and _allows_path(rule, name, root) for rule in named)


def build_denials(rules: Rules, root: Path) -> Callable[[str], str | None]:
    """Return what finds the deny rule on reading that covers a file, by its real name below the root.

    A search reads files that no call names, so it asks for each of them.
    """
    denied = [
        (place_pattern(str(rule.pattern), root, rule.source, widely=True), str(rule))
        for rule in rules.deny
        if rule.tool == READING and rule.pattern is not None
    ]
    return lambda name: next((rule for place, rule in denied if place.covers(f"{root}/{name}")), None)


def apply_rules_unparsed(rules: Rules, tool: Tool, command: str, reason: str) -> RuleDecision:
    """Return what the rules say about a command that cannot be parsed; a rule that may match it does."""
    pieces = re.split(r"[^\w.*~-]+", command)
    if _DELETING.search(command) or (named := next(filter(_SHARPEST.fullmatch, pieces), None)) is not None:
        what = "deletes" if _DELETING.search(command) else f"names {named}, a secret,"
        why = f"built-in: it {what} and cannot be judged ({reason}); write that part out plainly"
        return RuleDecision(decision=Decision.DENY, rule=why)
    for decision, listed in ((Decision.DENY, rules.deny), (Decision.ASK, rules.ask)):
        rule = next((one for one in listed if one.tool in FILES or is_about_tool(one, tool)), None)
        if rule is not None:
            told = f"{rule} may be about it, since {reason}; write its parts out plainly"
            return RuleDecision(decision=decision, rule=told, source=rule.source)
    return RuleDecision()


def find_restriction(rules: Rules, call: RuleCall) -> RuleDecision | None:
    """Return the deny or ask rule, or the name of a secret, that stands against a call."""
    denied = next((rule for rule in rules.deny if is_restricting(rule, call)), None)
    if denied is not None:
        return _by(denied, Decision.DENY)
    if (secret := _secret(call, rules)) is not None:
        return RuleDecision(decision=Decision.DENY, rule=f"built-in: {secret} has the name of a secret")
    asked = next((rule for rule in rules.ask if is_restricting(rule, call)), None)
    return None if asked is None else _by(asked, Decision.ASK)


def find_deletion_question(rules: Rules, call: RuleCall) -> RuleDecision | None:
    """Ask about a command over the whole repository, unless a rule allows its very words."""
    if call.script is None or any(str(rule.pattern) == call.script.source for rule in rules.allow):
        return None
    found = find_mass_deletion(call.script, call.root)
    told = f"built-in: {to_one_line(found)} is about the whole repository, or most of it" if found else ""
    return RuleDecision(decision=Decision.ASK, rule=told) if found else None


def is_restricting(rule: ToolRule, call: RuleCall) -> bool:
    """Return whether a deny or ask rule is about any part of a call; in doubt it is."""
    files = tuple(_files_of(call, rule.tool)) if rule.pattern is not None else ()
    if any(is_about_path(str(rule.pattern), path, call.root, rule.source, widely=True) for path in files):
        return True
    if not is_about_tool(rule, call.tool) or rule.pattern is None:
        return is_about_tool(rule, call.tool)
    if call.script is not None:
        return is_about_command(rule.pattern, call.script)
    key, colon, value = rule.pattern.partition(":")
    has_value = colon and key in call.given and fnmatchcase(str(call.given[key]), value.strip())
    return _is_about(rule.pattern, call) or bool(has_value)


def _files_of(call: RuleCall, tool: str) -> Iterator[str]:
    """Yield the files of a call that a rule on Read or Edit is about; what may not be read is not written."""
    if tool not in FILES:
        return
    if call.script is not None:
        yield from _paths_in(call.script, tool)
    if tool == READING or call.tool.effect is not Effect.READ:
        yield from call.paths


def _paths_in(script: ShellScript, kind: str) -> Iterator[str]:
    for redirection in script.redirections:
        if redirection.target.is_known and (redirection.writes or kind == READING):
            yield redirection.target.text
    for simple in script.commands if kind == READING else ():
        for word in simple.words[1:]:
            if word.is_known and word.text and len(word.text) < 1000:
                yield word.text


def _is_about(pattern: str, call: RuleCall) -> bool:
    is_host = any(is_on_host(pattern, one) for one in call.tool.list_values(call.given, Subject.ADDRESS))
    return is_host or any(
        fnmatchcase(one, pattern) for one in call.tool.list_values(call.given, Subject.NAME)
    )


def _apply_allow(rules: Rules, call: RuleCall) -> RuleDecision:
    if call.script is None:
        rule = next((rule for rule in rules.allow if _permits(rule, call)), None)
        return RuleDecision() if rule is None else _by(rule)
    found = [
        _permit_of(simple, rules, call.tool)
        for simple in call.script.commands
        if not simple.is_opened or find_bad_assignment(simple)
    ]
    written = [each.target for each in call.script.redirections if each.writes]
    edits = [rule for rule in rules.allow if rule.tool == WRITING]
    all_written = all(
        target.is_known and any(_allows_path(rule, target.text, call.root) for rule in edits)
        for target in written
    )
    if None in found or not all_written:
        return RuleDecision()
    named = next((rule for rule in found if isinstance(rule, ToolRule)), None)
    return RuleDecision(decision=Decision.ALLOW, rule="built-in: only reads") if named is None else _by(named)


def _by(rule: ToolRule, decision: Decision = Decision.ALLOW) -> RuleDecision:
    return RuleDecision(decision=decision, rule=str(rule), source=rule.source)


def _permits(rule: ToolRule, call: RuleCall) -> bool:
    if not _ALLOWING_GLOB.fullmatch(rule.tool) or not is_about_tool(rule, call.tool):
        return False
    if rule.pattern is None:
        return True
    if call.paths:
        return rule.tool != "Write" and all(_allows_path(rule, path, call.root) for path in call.paths)
    return _is_about(rule.pattern, call)


def _allows_path(rule: ToolRule, path: str, root: Path) -> bool:
    return rule.pattern is None or is_about_path(rule.pattern, path, root, rule.source, widely=False)


def _permit_of(simple: SimpleCommand, rules: Rules, tool: Tool) -> ToolRule | bool | None:
    if find_bad_assignment(simple) is not None or (simple.words and find_dangerous_argument(simple.words)):
        return None
    if is_reading(simple):
        return True
    text, kinds = join_words(simple.words), list_rule_kinds(tool)
    for rule in rules.allow:
        if rule.tool in kinds and (rule.pattern is None or compile_pattern(rule.pattern).fullmatch(text)):
            return rule
    return None


def _secret(call: RuleCall, rules: Rules) -> str | None:
    """Return a file that has the name of a secret, unless a rule allows that very file."""
    opened = [rule for rule in rules.allow if rule.tool in FILES and rule.pattern is not None]
    named = [] if call.script is None else [*_find_secrets_in(call.script)]
    named += [path for path in call.paths if _NAMES.fullmatch(PurePosixPath(path).name)]
    return next((it for it in named if not any(_allows_path(rule, it, call.root) for rule in opened)), None)


def _find_secrets_in(script: ShellScript) -> Iterator[str]:
    words = [word for simple in script.commands for word in simple.words[1:]]
    for word in (*words, *(redirection.target for redirection in script.redirections)):
        name = re.split(r"[/=:@]", word.text)[-1]
        if _CERTAIN.fullmatch(name) if word.is_known else _may_name(name):
            yield word.text.replace(UNKNOWN_TEXT, "*")


def _may_name(name: str) -> bool:
    """Return whether a name with globs, its beginning known, may turn out to be a secret's."""
    glob = name.replace(UNKNOWN_TEXT, "*")
    return name[:1] not in ("", UNKNOWN_TEXT) and any(fnmatchcase(example, glob) for example in _EXAMPLES)


_CLAUSE = re.compile(
    r"(?P<subject>tool|role|args\.\w+) +(?P<verb>matches|contains|is) +(?P<value>.+)", re.DOTALL
)
_RULE = regex(r"(?:[A-Z]\w*|mcp__[\w*-]+)(?:\(.*\))?", re.DOTALL)
_VERBS: Mapping[str, Callable[[str, str], bool]] = {
    "matches": lambda text, value: re.search(value, text) is not None,
    "contains": lambda text, value: value in text,
    "is": lambda text, value: value == text,
}


class CallToApprove(Record):
    tool: str
    role: str
    args: dict[str, Any]


Modes = Mapping[str, "Mode | Callable[[CallToApprove], bool]"]


def find_approval_reason(
    mode: Mode | Callable[[CallToApprove], bool] | None,
    asked: CallToApprove,
    tool: Tool | None = None,
    root: Path = Path(),
) -> str | None:
    """Return why a person has to approve a call, or None; a condition that is a rule needs its tool."""
    if mode is None or mode == "never":
        return None
    if isinstance(mode, str):
        return "approval: always"
    try:
        is_met = _is_met(mode.when, asked, tool, root) if isinstance(mode, When) else mode(asked)
    except Exception as error:  # noqa: BLE001  # the person's own function; any failure means ask
        return f"approval: your condition could not be evaluated: {error}"
    return f"approval: {getattr(mode, 'when', 'your Python condition')}" if is_met else None


def _is_met(text: str, asked: CallToApprove, tool: Tool | None, root: Path) -> bool:
    clause = _CLAUSE.fullmatch(text.strip())
    if clause is None and tool is not None and _RULE.fullmatch(text.strip()):
        (rule,) = parse_rules([text.strip()], "approvals")
        command = "\n".join(tool.list_values(asked.args, Subject.COMMAND))
        script = unwrap_command(command) if command else None
        return is_restricting(rule, RuleCall(tool=tool, given=asked.args, root=root, script=script))
    if clause is None:
        raise ValueError(f"{text!r} is not a condition such as: Bash(git push *)")
    subject, verb, value = clause.group("subject", "verb", "value")
    if not subject.startswith("args."):
        return _VERBS[verb](getattr(asked, subject), value)
    key = subject.removeprefix("args.")
    if key not in asked.args:
        raise ValueError(f"the call has no {key}")
    return _VERBS[verb](str(asked.args[key]), value)


def find_obeyed_file_question(rules: Rules, tool: Tool, given: Mapping[str, Any], root: Path) -> str | None:
    """Return why a person has to approve a write to a file that other programs obey, or None."""
    if tool.effect is Effect.READ:
        return None
    reasons = (_reason_to_ask(rules, path, root) for path in tool.list_values(given, Subject.PATH))
    return next(filter(None, reasons), None)


def _reason_to_ask(rules: Rules, path: str, root: Path) -> str | None:
    place = (root / path).resolve()
    if not place.is_relative_to(root):
        return None
    name = place.relative_to(root).as_posix()
    links = ((link, real) for link, real in find_links(root, CONFIGURATION) if root in real.parents)
    behind = (link.relative_to(root).as_posix() for link, real in links if place.is_relative_to(real))
    part = find_obeyed_part(name) or next(behind, None)
    if part is None or build_exceptions(rules, root)(WRITING, name):
        return None
    return f"other programs obey {part}; the rule Edit({name}) would allow it"
