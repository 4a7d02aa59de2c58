"""The `tools` of a role file, in each of its spellings."""

import re
from typing import Any

from agentflow.core.errors import InvalidFile
from agentflow.core.role import ToolRule
from agentflow.parse import decode

_RULE = re.compile(r"(?P<tool>[A-Za-z*][\w*-]*)(?:\((?P<pattern>.+)\))?", re.DOTALL | re.ASCII)
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
