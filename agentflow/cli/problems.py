"""A problem that `check` names."""

import re

from agentflow.core.errors import AgentflowError, InvalidFile
from agentflow.core.record import Record

ERROR = "error"
WARNING = "warning"
_KEY = re.compile(r"[\w.]+(\[\d+\][\w.]*)*")


class Problem(Record):
    file: str
    message: str
    line: int | None = None
    key: str | None = None
    severity: str = ERROR

    @property
    def text(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.severity}: {self.message}"


def named(file: str, message: str, line: int | None = None, severity: str = ERROR) -> Problem:
    """Return a problem whose key is what its message begins with, if that is one."""
    key = message.partition(":")[0]
    known = key if _KEY.fullmatch(key) else None
    return Problem(file=file, line=line, key=known, message=message, severity=severity)


def problem_of(file: str, error: AgentflowError, key: str | None = None) -> Problem:
    """Return an error of a file as a problem, with the key that its message begins with."""
    if isinstance(error, InvalidFile):
        found = named(file, error.problem, error.line)
        return found.replace(key=key) if key else found
    return Problem(file=file, key=key, message=str(error).removeprefix(f"{file}: "))
