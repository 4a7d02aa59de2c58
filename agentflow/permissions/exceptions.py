"""What the user's own rules open of the files that no tool may touch, or not without being asked about."""

from collections.abc import Callable
from pathlib import Path

from agentflow.core.hook import Decision
from agentflow.permissions.ruling import Rules, ruling
from agentflow.sandbox.links import find_links
from agentflow.sandbox.profile import CONFIGURATION
from agentflow.workspace.path_guard import obeyed_part

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
    part = obeyed_part(name) or _obeyed_behind(root, name)
    if part is None or exceptions(rules, root)("Edit", name):
        return None
    return f"other programs obey {part}; the rule Edit({name}) would allow it"


def _obeyed_behind(root: Path, name: str) -> str | None:
    """Return the name at the root, or below one, that other programs obey and that leads to a file."""
    links = ((link, real) for link, real in find_links(root, CONFIGURATION) if root in real.parents)
    found = (link for link, real in links if (root / name).is_relative_to(real))
    return next((link.relative_to(root).as_posix() for link in found), None)
