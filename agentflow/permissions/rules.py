"""Permission rules as they are written: tools of role files, deny, ask and allow lists of settings files."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from agentflow.core.errors import InvalidFile
from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.core.role import ToolRule
from agentflow.core.tool import Effect, Subject, Tool
from agentflow.parse import decode
from agentflow.trust import content

READING, WRITING, RUNNING, FETCHING = "Read", "Edit", "Bash", "WebFetch"
"""What a rule calls every tool that reads files, writes files, runs commands or asks an address."""
FILES = (READING, WRITING)

_RULE = regex(r"(?P<tool>[A-Za-z*][\w*-]*)(?:\((?P<pattern>.+)\))?", re.DOTALL | re.ASCII)
_KEY = "tools"
_ALIASES = {"Task": "Agent"}
"""Older spellings."""


def parse_rules(value: object, source: str) -> tuple[ToolRule, ...]:
    """Return the rules of a YAML list, a JSON list in text, or words between commas or spaces.

    Raises InvalidFile naming the entry that is no rule.
    """
    return tuple(_rule(entry, source) for entry in _entries(value, source))


def _entries(value: object, source: str) -> list[Any]:
    if isinstance(value, list):
        return value
    if not isinstance(value, str):
        raise InvalidFile(source, f"{_KEY}: must be a list of tools, or their names in one text")
    if value.lstrip().startswith("["):
        return decode(list[Any], value, source)
    return _split(value, source)


def _split(text: str, source: str) -> list[str]:
    """Split at commas and white space that stand outside parentheses."""
    entries, depth = [""], 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth < 0:
            break
        if depth == 0 and (character == "," or character.isspace()):
            entries.append("")
        else:
            entries[-1] += character
    if depth:
        raise InvalidFile(source, f"{_KEY}: the parentheses of {text!r} do not match")
    return [entry for entry in entries if entry]


def _rule(entry: object, source: str) -> ToolRule:
    found = _RULE.fullmatch(entry.strip()) if isinstance(entry, str) else None
    if found is None:
        raise InvalidFile(source, f"{_KEY}: {entry!r} is no rule such as Read or Bash(git diff *)")
    pattern = found["pattern"]
    if pattern is not None and (not pattern.strip() or not _is_balanced(pattern)):
        raise InvalidFile(
            source, f"{_KEY}: the pattern of {entry!r} is empty or its parentheses do not match"
        )
    return ToolRule(tool=_ALIASES.get(found["tool"], found["tool"]), pattern=pattern, source=source)


def _is_balanced(pattern: str) -> bool:
    depth = 0
    for character in pattern:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth < 0:
            return False
    return depth == 0


class Rules(Record):
    """Lists of `Tool` or `Tool(pattern)`, as in the public settings files."""

    deny: tuple[ToolRule, ...] = ()
    ask: tuple[ToolRule, ...] = ()
    allow: tuple[ToolRule, ...] = ()


def load_rules(user: Path, project: Iterable[Path], trusted: frozenset[Path] = frozenset()) -> Rules:
    """Return the rules of settings files; a project's `allow` counts only from a trusted file.

    Raises InvalidFile for a file that cannot be read as rules: it never means that there are none.
    """
    own = read_rules(user)
    found = [(path in trusted, read_rules(path)) for path in project]
    others = [rules if is_trusted else rules.replace(allow=()) for is_trusted, rules in found]
    return Rules(
        deny=(*own.deny, *(rule for rules in others for rule in rules.deny)),
        ask=(*own.ask, *(rule for rules in others for rule in rules.ask)),
        allow=(*own.allow, *(rule for rules in others for rule in rules.allow)),
    )


def read_rules(path: Path) -> Rules:
    """Return the rules of one file; none where there is no file. Raises InvalidFile."""
    if not path.is_file():
        return Rules()
    try:
        raw = content(path)
    except OSError as error:
        raise InvalidFile(str(path), f"cannot be read: {error.strerror}") from None
    settings = decode(dict[str, Any], raw, str(path))
    found = settings.get("permissions", {})
    if not isinstance(found, dict):
        raise InvalidFile(str(path), "permissions: must be an object")
    return Rules(
        **{key: parse_rules(found[key], str(path)) for key in ("deny", "ask", "allow") if found.get(key)}
    )


def find_denied_tools(rules: Rules, tools: Iterable[Tool]) -> frozenset[str]:
    """Return the names of the tools that a deny without a pattern takes away as a whole."""
    bare = [rule for rule in rules.deny if rule.pattern is None]
    return frozenset(tool.name for tool in tools if any(is_about_tool(rule, tool) for rule in bare))


def find_named_tools(rules: Rules, tools: Iterable[Tool]) -> frozenset[str]:
    """Return the names of the tools that any deny or ask rule is about."""
    restricting = (*rules.deny, *rules.ask)
    return frozenset(tool.name for tool in tools if any(is_about_tool(rule, tool) for rule in restricting))


def is_about_tool(rule: ToolRule, tool: Tool) -> bool:
    """Return whether a rule, its pattern aside, is about a tool."""
    is_server = rule.pattern is None and rule.tool.startswith("mcp__")
    return (
        rule.tool in list_rule_kinds(tool)
        or (is_server and tool.name.startswith(f"{rule.tool}__"))
        or ("*" in rule.tool and fnmatchcase(tool.name, rule.tool))
    )


def list_rule_kinds(tool: Tool) -> frozenset[str]:
    """Return the names by which a rule means a tool: its own, and what it does by its inputs."""
    named = tool.named.values()
    on_files = READING if tool.effect is Effect.READ else WRITING
    kinds = {Subject.PATH: on_files, Subject.COMMAND: RUNNING, Subject.ADDRESS: FETCHING}
    return frozenset({tool.name, *(kind for subject, kind in kinds.items() if subject in named)})
