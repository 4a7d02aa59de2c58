"""What the user's own rules open of the files that no tool may touch, or not without being asked about."""

from collections.abc import Callable
from pathlib import Path

from agentflow.core.hook import Decision
from agentflow.permissions.ruling import Rules, ruling
from agentflow.workspace.guarded import obeyed_part

WRITERS = frozenset({"Edit", "Write"})


def exceptions(rules: Rules, root: Path) -> Callable[[str, str], bool]:
    """Return whether a rule lets a tool open a file by name; a rule for all files names none."""
    named = Rules(allow=tuple(rule for rule in rules.allow if rule.pattern is not None))

    def are_made(tool: str, name: str) -> bool:
        return ruling(named, tool, {"file_path": name}, root).decision is Decision.ALLOW

    return are_made


def question(rules: Rules, tool: str, path: str, root: Path) -> str | None:
    """Return why somebody is to be asked before a tool writes to a file, or None if nobody is."""
    place = (root / path).resolve()
    if tool not in WRITERS or not place.is_relative_to(root):
        return None
    name = place.relative_to(root).as_posix()
    part = obeyed_part(name)
    if part is None or exceptions(rules, root)("Edit", name):
        return None
    return f"other programs obey {part}; the rule Edit({name}) would allow it"
