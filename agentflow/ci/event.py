"""What a CI job was started by, from the file in which GitHub describes it; no text of it reaches a shell."""

from collections.abc import Mapping
from pathlib import Path

from agentflow.core.errors import ConfigError
from agentflow.core.record import Record
from agentflow.parse import decode

_MOST_BYTES = 20_000_000


class CiEvent(Record):
    """A pull request, a label put on an issue, or neither."""

    base: str = ""
    """The commit that a pull request is compared with."""
    description: str = ""
    """The text of a pull request."""
    issue: int = 0
    """The number of the issue that was given a label; 0 for none."""
    label: str = ""
    request: str = ""
    """The title and the text of that issue."""

    @property
    def branch(self) -> str:
        """The branch for the change that an issue asks for; made of its number alone."""
        return f"agentflow/issue-{self.issue}"


def read_event(environ: Mapping[str, str]) -> CiEvent:
    """Return what started this job; an empty event where nothing says it. Raises ConfigError."""
    path = environ.get("GITHUB_EVENT_PATH")
    if not path:
        return CiEvent()
    try:
        with Path(path).open("rb") as file:
            told: object = decode(dict[str, object], file.read(_MOST_BYTES), path)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    number = _find(told, "issue", "number")
    if _text(told, "action") != "labeled" or not isinstance(number, int):
        base, description = _text(told, "pull_request", "base", "sha"), _text(told, "pull_request", "body")
        return CiEvent(base=base, description=description)
    request = f"{_text(told, 'issue', 'title')}\n\n{_text(told, 'issue', 'body')}".strip()
    return CiEvent(issue=number, label=_text(told, "label", "name"), request=request)


def _find(told: object, *keys: str) -> object:
    """Return the value under keys that lie in each other, or None."""
    for key in keys:
        told = told.get(key) if isinstance(told, dict) else None
    return told


def _text(told: object, *keys: str) -> str:
    found = _find(told, *keys)
    return found if isinstance(found, str) else ""
