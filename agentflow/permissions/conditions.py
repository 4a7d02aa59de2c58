"""When a person is asked about a call that no rule is about: by mode, on a condition, for obeyed files."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agentflow.core.record import Record
from agentflow.core.tool import Effect, Subject, Tool
from agentflow.permissions.rules import WRITING, Rules
from agentflow.permissions.user_rules import build_exceptions
from agentflow.sandbox.profile import CONFIGURATION
from agentflow.sandbox.protection import find_links
from agentflow.settings import Mode, When
from agentflow.workspace.path_guard import find_obeyed_part

_CLAUSE = re.compile(
    r"(?P<subject>tool|role|args\.\w+) +(?P<verb>matches|contains|is) +(?P<value>.+)", re.DOTALL
)
_VERBS: Mapping[str, Callable[[str, str], bool]] = {
    "matches": lambda text, value: re.search(value, text) is not None,
    "contains": lambda text, value: value in text,
    "is": lambda text, value: value == text,
}


class CallToApprove(Record):
    """The call that a condition looks at."""

    tool: str
    role: str
    args: dict[str, Any]


Modes = Mapping[str, "Mode | Callable[[CallToApprove], bool]"]


def find_approval_reason(
    mode: Mode | Callable[[CallToApprove], bool] | None, asked: CallToApprove
) -> str | None:
    """Return why somebody is to be asked, or None."""
    if mode is None or mode == "never":
        return None
    if isinstance(mode, str):
        return "approval: always"
    try:
        is_met = _is_met(mode.when, asked) if isinstance(mode, When) else mode(asked)
    except Exception as error:  # noqa: BLE001  # a person's own function, and any failure means ask
        return f"approval: its condition failed: {error}"
    return f"approval: {getattr(mode, 'when', 'as its function says')}" if is_met else None


def _is_met(text: str, asked: CallToApprove) -> bool:
    """Tell whether a condition is met. Raises ValueError or re.error for one that makes no sense."""
    clause = _CLAUSE.fullmatch(text.strip())
    if clause is None:
        raise ValueError(f"{text!r} is no condition such as: args.command matches ^git push")
    subject, verb, value = clause.group("subject", "verb", "value")
    if not subject.startswith("args."):
        return _VERBS[verb](getattr(asked, subject), value)
    key = subject.removeprefix("args.")
    if key not in asked.args:
        raise ValueError(f"the call has no {key}")
    return _VERBS[verb](str(asked.args[key]), value)


def find_obeyed_file_question(rules: Rules, tool: Tool, given: Mapping[str, Any], root: Path) -> str | None:
    """Return why somebody is to be asked before a tool writes to a file, or None if nobody is."""
    if tool.effect is Effect.READ:
        return None
    reasons = (_reason_to_ask(rules, path, root) for path in tool.values(given, Subject.PATH))
    return next(filter(None, reasons), None)


def _reason_to_ask(rules: Rules, path: str, root: Path) -> str | None:
    place = (root / path).resolve()
    if not place.is_relative_to(root):
        return None
    name = place.relative_to(root).as_posix()
    part = find_obeyed_part(name) or _find_obeyed_behind(root, name)
    if part is None or build_exceptions(rules, root)(WRITING, name):
        return None
    return f"other programs obey {part}; the rule Edit({name}) would allow it"


def _find_obeyed_behind(root: Path, name: str) -> str | None:
    """Return the name at the root, or below one, that other programs obey and that leads to a file."""
    links = ((link, real) for link, real in find_links(root, CONFIGURATION) if root in real.parents)
    found = (link for link, real in links if (root / name).is_relative_to(real))
    return next((link.relative_to(root).as_posix() for link in found), None)
