"""May a role make a call? Pure: the answer follows from the role, the tool and what the call is about."""

import re
import shlex
from collections.abc import Iterable
from pathlib import PurePosixPath

from agentflow.core.role import PIPELINE, Role
from agentflow.core.submissions import SUBMITTED_BY
from agentflow.core.tool import Category, Tool
from agentflow.permissions.shell import dangerous_argument, plain_words
from agentflow.workspace.globs import matcher


def refusal(role: Role, tool: Tool, subject: str) -> str | None:
    """Return why a role may not make a call, or None if it may; `subject` is the command or relative path."""
    if tool.input in SUBMITTED_BY:
        part = SUBMITTED_BY[tool.input]
        return None if role.part == part else f"{tool.name} belongs to the {part}"
    if tool.granted:
        return None
    rules = (*role.rules_for(tool.name), *role.rules_for(tool.category.value))
    if not rules:
        return f"{role.name} may not use {tool.name}"
    patterns = [rule.pattern for rule in rules if rule.pattern is not None]
    return None if len(patterns) < len(rules) else _beyond(role, tool, patterns, subject)


def owner_of(tool_name: str, roles: Iterable[Role]) -> str | None:
    """Return the part of the pipeline that has a tool, the one with it unbounded first."""
    owning = [role for role in roles if role.part in PIPELINE and role.rules_for(tool_name)]
    ranked = sorted(owning, key=lambda role: (_is_bounded(role, tool_name), PIPELINE.index(str(role.part))))
    return ranked[0].part if ranked else None


def _is_bounded(role: Role, tool_name: str) -> bool:
    return all(rule.pattern is not None for rule in role.rules_for(tool_name))


def _beyond(role: Role, tool: Tool, patterns: list[str], subject: str) -> str | None:
    if tool.category is Category.SHELL:
        return _command_refusal(role, patterns, subject)
    if any(_covers(tool, pattern, subject) for pattern in patterns):
        return None
    return f"{role.name} may use {tool.name} only on {', '.join(patterns)}"


def _command_refusal(role: Role, patterns: list[str], command: str) -> str | None:
    words = plain_words(command)
    if words is None:
        return (
            f"{role.name} may run one plain command a call: no operators, redirections, expansions, "
            "leading globs, assignments or programs that run others"
        )
    spelled = " ".join(map(_spelled, words))
    if not any(expression(pattern).fullmatch(spelled) for pattern in patterns):
        return f"{role.name} may run only: {', '.join(patterns)}"
    if (argument := dangerous_argument(words)) is not None:
        return f"{role.name} may not give {argument} to {words[0]}: it can run, write or delete something"
    return None


def _spelled(word: str) -> str:
    """Keep a word with white space in quotes, so that it cannot pass for two."""
    return shlex.quote(word) if not word or re.search(r"\s", word) else word


def expression(pattern: str) -> re.Pattern[str]:
    wanted = f"{pattern.removesuffix(':*')} *" if pattern.endswith(":*") else pattern
    prefix, boundary = (wanted[:-2], r"(?:\ .*)?") if wanted.endswith(" *") else (wanted, "")
    body = ".*".join(re.escape(piece) for piece in prefix.split("*"))
    return re.compile(body + boundary, re.DOTALL)


def _covers(tool: Tool, pattern: str, subject: str) -> bool:
    if tool.category is not Category.FS:
        return expression(pattern).fullmatch(subject) is not None
    path = PurePosixPath(subject)
    if path.is_absolute() or ".." in path.parts:
        return False
    return matcher(pattern).fullmatch(subject) is not None
