"""The user's permission rules: deny beats ask beats allow, over what a call is about."""

import re
from pathlib import Path
from typing import Any

from agentflow.core.errors import InvalidFile
from agentflow.core.hook import Decision
from agentflow.core.record import Record
from agentflow.core.role import ToolRule
from agentflow.parse import decode
from agentflow.permissions.decide import expression
from agentflow.permissions.rules import parse_rules
from agentflow.workspace.globs import matcher

_PARTS = re.compile(r"&&|\|\||[;|&\n]|\$\(|`|\(|\)")
"""Where a command line may begin another command; seeing too many parts only denies or asks more."""
_EDITORS = frozenset({"Edit", "Write", "NotebookEdit"})


class Rules(Record):
    """Lists of `Tool` or `Tool(pattern)`, as in the public settings files."""

    deny: tuple[ToolRule, ...] = ()
    ask: tuple[ToolRule, ...] = ()
    allow: tuple[ToolRule, ...] = ()


def load_rules(user: Path, project: tuple[Path, ...]) -> Rules:
    """Return the rules of settings files; a project may deny and ask, and allow nothing.

    Raises InvalidFile for a file that cannot be read as rules: it never means that there are none.
    """
    own = _read(user)
    others = [_read(path) for path in project]
    return Rules(
        deny=(*own.deny, *(rule for rules in others for rule in rules.deny)),
        ask=(*own.ask, *(rule for rules in others for rule in rules.ask)),
        allow=own.allow,
    )


def _read(path: Path) -> Rules:
    if not path.is_file():
        return Rules()
    settings = decode(dict[str, Any], path.read_bytes(), str(path))
    found = settings.get("permissions", {})
    if not isinstance(found, dict):
        raise InvalidFile(str(path), "permissions: must be an object")
    return Rules(
        **{key: parse_rules(found[key], str(path)) for key in ("deny", "ask", "allow") if found.get(key)}
    )


def ruling(rules: Rules, tool: str, given: dict[str, Any], root: Path) -> tuple[Decision, str]:
    """Return what the first matching list says about a call, and the rule; NONE when no rule matches."""
    lists = ((Decision.DENY, rules.deny), (Decision.ASK, rules.ask), (Decision.ALLOW, rules.allow))
    for decision, listed in lists:
        for rule in listed:
            if _hits(rule, tool, given, root, is_allow=decision is Decision.ALLOW):
                return decision, str(rule)
    return Decision.NONE, ""


def _hits(rule: ToolRule, tool: str, given: dict[str, Any], root: Path, *, is_allow: bool) -> bool:
    if rule.tool != tool and not (rule.tool == "Edit" and tool in _EDITORS):
        return False
    if rule.pattern is None:
        return True
    command, path = given.get("command"), given.get("file_path", given.get("path"))
    if isinstance(command, str):
        return _covers_command(rule.pattern, command, is_allow=is_allow)
    return isinstance(path, str) and _covers_path(rule.pattern, path, root)


def _covers_command(pattern: str, command: str, *, is_allow: bool) -> bool:
    """Return whether a pattern is about a command: to allow, every part; to deny or ask, any part."""
    wanted = expression(pattern)
    parts = [part.strip() for part in _PARTS.split(command) if part.strip()]
    hits = [wanted.fullmatch(part) is not None for part in parts]
    return all(hits) if is_allow else any(hits) or wanted.fullmatch(command.strip()) is not None


def _covers_path(pattern: str, path: str, root: Path) -> bool:
    place = (root / path).resolve()
    real = str(place.relative_to(root)) if place.is_relative_to(root) else str(place)
    wanted = matcher(pattern.removeprefix("./").removeprefix("/"))
    return any(wanted.fullmatch(name) is not None for name in (path, real))
