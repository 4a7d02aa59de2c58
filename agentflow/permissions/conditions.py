"""When somebody is asked about a call: `never`, `always`, or on a condition; an error in one means ask."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from agentflow.core.record import Record
from agentflow.settings import Mode, When

_CLAUSE = re.compile(
    r"(?P<subject>tool|role|args\.\w+) +(?P<verb>matches|contains|is) +(?P<value>.+)", re.DOTALL
)
_VERBS: Mapping[str, Callable[[str, str], bool]] = {
    "matches": lambda text, value: re.search(value, text) is not None,
    "contains": lambda text, value: value in text,
    "is": lambda text, value: value == text,
}


class Asked(Record):
    """The call that a condition looks at."""

    tool: str
    role: str
    args: dict[str, Any]


Modes = Mapping[str, "Mode | Callable[[Asked], bool]"]


def asks(mode: Mode | Callable[[Asked], bool] | None, asked: Asked) -> str | None:
    """Return why somebody is to be asked, or None."""
    if mode is None or mode == "never":
        return None
    if isinstance(mode, str):
        return "approval: always"
    try:
        is_met = _holds(mode.when, asked) if isinstance(mode, When) else mode(asked)
    except Exception as error:  # noqa: BLE001  # a person's own function, and any failure means ask
        return f"approval: its condition failed: {error}"
    return f"approval: {getattr(mode, 'when', 'as its function says')}" if is_met else None


def _holds(text: str, asked: Asked) -> bool:
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
