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


def problem_of(file: str, error: AgentflowError, key: str | None = None) -> Problem:
    """Return an error of a file as a problem, with the key that its message begins with."""
    if isinstance(error, InvalidFile):
        named = error.problem.partition(":")[0]
        key = key or (named if _KEY.fullmatch(named) else None)
        return Problem(file=file, line=error.line, key=key, message=error.problem)
    return Problem(file=file, key=key, message=str(error).removeprefix(f"{file}: "))
