"""What `check` finds in settings files: hooks, the scripts they name, permission rules."""

import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agentflow.cli.problems import WARNING, Problem, named, problem_of
from agentflow.core.errors import InvalidFile
from agentflow.core.hook import Hook, Script
from agentflow.hooks.entries import Place, read_hooks
from agentflow.permissions.rules import parse_rules
from agentflow.trust import content

_INTERPRETERS = re.compile(r"(python|node|ruby|perl)[\d.]*|(ba|z|da)?sh")
_PLACES = re.compile(r"\$\{?(CLAUDE_PROJECT_DIR|CLAUDE_PLUGIN_ROOT)\b\}?")
_ASSIGNMENT = re.compile(r"\w+=.*")
_OPEN = re.compile(r"[$`*?<>|&;()]")
"""What only a shell can say the meaning of."""


def file_problems(place: Place, root: Path) -> tuple[tuple[Problem, ...], int]:
    """Return what is wrong with a settings file, and how many hooks it has."""
    if not os.path.lexists(place.path):
        return (), 0
    source = str(place.path)
    warnings: list[str] = []
    hooks: list[Hook] = []
    found = [*_rule_problems(place.path)]
    try:
        hooks.extend(read_hooks(place, warnings.append))
    except InvalidFile as error:
        found.append(problem_of(source, error))
    found.extend(named(source, text.removeprefix(f"{source}: "), severity=WARNING) for text in warnings)
    found.extend(
        named(source, f"hooks.{hook.point}: {hook.name}: {what}")
        for hook in hooks
        if isinstance(hook.body, Script) and (what := _script_problem(hook.body, root))
    )
    return tuple(_placed(one, place.path) for one in found), len(hooks)


def _rule_problems(path: Path) -> Iterator[Problem]:
    try:
        settings = json.loads(content(path).decode("utf-8-sig"))
        permissions = settings.get("permissions", {})
    except (InvalidFile, OSError, ValueError, RecursionError, AttributeError):
        return  # the reader of its hooks says so
    if not isinstance(permissions, dict):
        yield named(str(path), "permissions: must be an object")
        return
    for name in ("deny", "ask", "allow"):
        listed = permissions.get(name) or []
        for rule in listed if isinstance(listed, list) else [listed]:
            yield from _rule_problem(path, name, rule)


def _rule_problem(path: Path, name: str, rule: Any) -> Iterator[Problem]:
    try:
        parse_rules([rule], str(path))
    except InvalidFile as error:
        message = f"permissions.{name}: {error.problem.partition(': ')[2]}"
        yield named(str(path), message, _line(path, json.dumps(rule)))


def _script_problem(script: Script, root: Path) -> str | None:
    """Return why a hook's program cannot be run; None as well where only a shell could tell."""
    try:
        words = shlex.split(script.command) if script.args is None else [script.command, *script.args]
    except ValueError:
        return "its quotes do not match"
    known = {"CLAUDE_PROJECT_DIR": str(root), "CLAUDE_PLUGIN_ROOT": script.plugin or "."}
    words = [_PLACES.sub(lambda found: known[found[1]], word) for word in words]
    while words and script.args is None and _ASSIGNMENT.fullmatch(words[0]):
        words = words[1:]
    return _program_problem(words, root, is_shell=script.args is None) if words else None


def _program_problem(words: Sequence[str], root: Path, *, is_shell: bool) -> str | None:
    program = words[0]
    if is_shell and _OPEN.search(program):
        return None
    if "/" not in program and not is_shell and shutil.which(program) is None:
        return f"there is no program {program}"
    if "/" in program and not os.access(root / program, os.X_OK):
        return f"{program} is not {'executable' if (root / program).exists() else 'there'}"
    is_run = _INTERPRETERS.fullmatch(Path(program).name) and len(words) > 1 and not words[1].startswith("-")
    missing = is_run and not _OPEN.search(words[1]) and not (root / words[1]).is_file()
    return f"{words[1]} is not there" if missing else None


def _placed(problem: Problem, path: Path) -> Problem:
    """Return a problem with the line of its key, where that stands in the file just once."""
    if problem.line is not None or problem.key is None:
        return problem
    names = re.split(r"[.\[\]]+", problem.key)
    lines = (_line(path, json.dumps(name)) for name in reversed(names) if name and not name.isdigit())
    return problem.replace(line=next((number for number in lines if number is not None), None))


def _line(path: Path, text: str) -> int | None:
    """Return the line on which a text stands, if it is the only one."""
    lines = content(path).decode("utf-8-sig", "replace").splitlines() if path.is_file() else []
    numbers = [number for number, line in enumerate(lines, 1) if text in line]
    return numbers[0] if len(numbers) == 1 else None
