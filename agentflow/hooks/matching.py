"""Which hooks an event is for: matchers and `if` conditions."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentflow.core.hook import POINTS, Hook, Script
from agentflow.core.points import CallDenied, HookEvent, PermissionAsked, Point, ToolDone, ToolFailed, ToolUse
from agentflow.core.regex import regex
from agentflow.core.role import ToolRule
from agentflow.core.tool import Subject, Tool
from agentflow.permissions.rules import (
    FILES,
    is_about_path,
    list_rule_kinds,
    may_be_about_command,
    parse_rules,
)

_NAMES = regex(r"[A-Za-z0-9_\- ,|]*")


def matches(matcher: str, event: HookEvent) -> bool:
    field = POINTS[event.point].matched
    return not field or matches_name(matcher, getattr(event.payload, field))


def may_see(hook: Hook, tool: Tool) -> bool:
    """Return whether a hook may be asked before a call of a tool."""
    condition = hook.body.condition if isinstance(hook.body, Script) else None
    is_about = condition is None or parse_condition(condition, "if").tool in list_rule_kinds(tool)
    return hook.point is Point.PRE_TOOL_USE and matches_name(hook.matcher, tool.name) and is_about


def matches_name(matcher: str, value: str) -> bool:
    """Return whether a matcher fits a name: it is a list of exact names, else an unanchored expression."""
    if matcher in ("", "*"):
        return True
    if _NAMES.fullmatch(matcher):
        return value in {name.strip() for name in re.split(r"[|,]", matcher)}
    return compile_matcher(matcher).search(value) is not None


def compile_matcher(matcher: str) -> re.Pattern[str]:
    """Return the expression of a matcher that is no list of names. Raises re.error."""
    python = matcher.replace("(?<", "(?P<").replace("(?P<=", "(?<=").replace("(?P<!", "(?<!")
    return re.compile("" if matcher == "*" else python)


def parse_condition(text: str, source: str) -> ToolRule:
    """Return the one rule of an `if`. Raises InvalidFile."""
    (rule,) = parse_rules([text], source)
    return rule


def meets_condition(condition: str | None, event: HookEvent) -> bool:
    """Return whether an event meets an `if` condition; in doubt it does."""
    if condition is None:
        return True
    use = event.payload
    if not isinstance(use, ToolUse | PermissionAsked | CallDenied | ToolDone | ToolFailed):
        return False
    rule = parse_condition(condition, "if")
    tool = event.scene.tool
    if tool is None or rule.tool not in list_rule_kinds(tool):
        return False
    given = event.scene.to_repository(use.tool_input)
    return rule.pattern is None or _is_about(rule, tool, given, event.scene.root)


def _is_about(rule: ToolRule, tool: Tool, given: Mapping[str, Any], root: Path) -> bool:
    """Return whether a rule's pattern fits a call; it does for a tool without a known subject."""
    pattern, commands = str(rule.pattern), tool.values(given, Subject.COMMAND)
    if commands:
        return any(may_be_about_command(pattern, command) for command in commands)
    paths = tool.values(given, Subject.PATH) if rule.tool in FILES else ()
    return not paths or any(is_about_path(pattern, path, root, "", widely=True) for path in paths)
