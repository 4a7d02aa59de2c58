"""Which hooks an event is for: matchers and `if` conditions."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from agentflow.core.points import HookEvent, Point, Scene, ToolDone, ToolFailed, ToolUse
from agentflow.core.role import ToolRule
from agentflow.permissions.rules import parse_rules
from agentflow.workspace.globs import matcher as path_matcher

_NAMES = re.compile(r"[A-Za-z0-9_\- ,|]*")
_SEPARATOR = re.compile(r"&&|\|\||[;|&\n]")
_ASSIGNMENTS = re.compile(r"(?:\s*\w+=\S*\s+)*\s*")
_NOT_PLAIN = re.compile(
    r"[`$<>(){}\\]|\b(?:eval|exec|sh|bash|env|xargs|sudo|nohup|timeout|time|nice|command)\b"
)
_COVERED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"Edit": ("Edit", "Write", "NotebookEdit"), "Read": ("Read", "Grep", "Glob")}
)
"""A rule on one of these is about all tools of its kind."""
_MATCHED: Mapping[Point, str] = MappingProxyType(
    {
        Point.SESSION_START: "source",
        Point.SESSION_END: "reason",
        Point.PRE_TOOL_USE: "tool_name",
        Point.PERMISSION_REQUEST: "tool_name",
        Point.POST_TOOL_USE: "tool_name",
        Point.POST_TOOL_USE_FAILURE: "tool_name",
        Point.SUBAGENT_START: "agent_type",
        Point.SUBAGENT_STOP: "agent_type",
        Point.PRE_COMPACT: "trigger",
        Point.POST_COMPACT: "trigger",
        Point.STOP_FAILURE: "error",
        Point.NOTIFICATION: "notification_type",
    }
)
"""What a matcher looks at; at the other points it is not looked at."""
TOOL_POINTS = frozenset(point for point, field in _MATCHED.items() if field == "tool_name")


def matches(matcher: str, event: HookEvent) -> bool:
    """Return whether a hook with this matcher is asked about an event."""
    field = _MATCHED.get(event.point)
    return field is None or names(matcher, getattr(event.payload, field))


def names(matcher: str, value: str) -> bool:
    """Return whether a matcher names a value: a list of exact names, else an unanchored expression."""
    if matcher in ("", "*"):
        return True
    if _NAMES.fullmatch(matcher):
        return value in {name.strip() for name in re.split(r"[|,]", matcher)}
    return expression(matcher).search(value) is not None


def expression(matcher: str) -> re.Pattern[str]:
    """Return the expression of a matcher that is no list of names. Raises re.error."""
    return re.compile(
        ""
        if matcher == "*"
        else matcher.replace("(?<", "(?P<").replace("(?P<=", "(?<=").replace("(?P<!", "(?<!")
    )


def parse_condition(text: str, source: str) -> ToolRule:
    """Return the one rule of an `if`. Raises InvalidFile."""
    (rule,) = parse_rules([text], source)
    return rule


def applies(condition: str | None, event: HookEvent) -> bool:
    """Return whether an event is one that an `if` asks for; in doubt it is."""
    if condition is None:
        return True
    use = event.payload
    if event.point not in TOOL_POINTS or not isinstance(use, ToolUse | ToolDone | ToolFailed):
        return False
    rule = parse_condition(condition, "if")
    if use.tool_name not in _COVERED.get(rule.tool, (rule.tool,)):
        return False
    return rule.pattern is None or _is_about(rule.tool, rule.pattern, use.tool_input, event.scene)


def _is_about(tool: str, pattern: str, given: Mapping[str, Any], scene: Scene) -> bool:
    """Return whether a call's input is of a pattern; of a tool without a known subject it is."""
    if tool == "Bash":
        return _is_command_of(pattern, str(given.get("command", "")))
    path = given.get("file_path", given.get("path"))
    return tool not in _COVERED or not isinstance(path, str) or _is_path_of(pattern, path, scene)


def _is_command_of(pattern: str, command: str) -> bool:
    """Return whether a command, or a part of it, is of a pattern; one that hides what it runs is."""
    if _NOT_PLAIN.search(command):
        return True
    wanted = _command_expression(pattern)
    parts = (command, *_SEPARATOR.split(command))
    return any(wanted.fullmatch(spelled) for part in parts for spelled in _spellings(part))


def _spellings(part: str) -> Iterator[str]:
    """Yield a command as it stands, without quotes and extra spaces, and by its program's bare name."""
    plain = _ASSIGNMENTS.sub("", part, count=1).strip()
    yield plain
    unquoted = " ".join(plain.replace("'", "").replace('"', "").split())
    yield unquoted
    yield unquoted[unquoted.partition(" ")[0].rfind("/") + 1 :]


def _command_expression(pattern: str) -> re.Pattern[str]:
    wanted = f"{pattern.removesuffix(':*')} *" if pattern.endswith(":*") else pattern
    prefix, boundary = (wanted[:-2], r"(?:\s.*)?") if wanted.endswith(" *") else (wanted, "")
    return re.compile(".*".join(map(re.escape, prefix.split("*"))) + boundary, re.DOTALL)


def _is_path_of(pattern: str, path: str, scene: Scene) -> bool:
    absolute = scene.cwd / Path(path).expanduser()
    candidates = (Path(*_normal(absolute)), absolute.resolve())
    return any(_fits(pattern, candidate, scene.cwd) for candidate in candidates)


def _normal(path: Path) -> Iterator[str]:
    """Yield the parts of a path, `..` taken back, links not followed."""
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and len(parts) > 1:
            parts.pop()
        else:
            parts.append(part)
    yield from parts


def _fits(pattern: str, path: Path, root: Path) -> bool:
    if pattern.startswith("//"):
        return path_matcher(pattern[1:]).fullmatch(str(path).lstrip("/")) is not None
    if pattern.startswith("~/"):
        home = str(Path(pattern).expanduser()).lstrip("/")
        return path_matcher(f"/{home}").fullmatch(str(path).lstrip("/")) is not None
    bases = {root, root.resolve()}
    inside = next((path.relative_to(each).as_posix() for each in bases if path.is_relative_to(each)), None)
    if inside is None:
        return False
    anywhere = (pattern, f"**/{pattern.removeprefix('./')}") if "/" in pattern[1:] else (pattern,)
    return any(path_matcher(each).fullmatch(inside) for each in anywhere)
