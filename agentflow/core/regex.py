"""Regular expressions that are compiled when they are first used: a command needs few of all it imports."""

import re
from typing import Any, AnyStr, cast


class LateRegex:
    """Stands for a compiled expression, and becomes one when something is asked of it."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self._source = (pattern, flags)

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._source), name)
        setattr(self, name, found)  # the next time it is there without a detour
        return found


def regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return an expression like a compiled one; to compile hundreds at import is a tenth of a start."""
    return cast("re.Pattern[AnyStr]", LateRegex(pattern, flags))
