"""A model that replays a script; for tests, demos and the study of a workflow."""

from pathlib import Path
from typing import Any

import anyio

from agentflow.core.errors import ConfigError, InvalidFile, ModelRejected, ModelUnavailable
from agentflow.core.messages import SUMMARIZER, Reply, Request, Stop, Text, ToolCall, Usage
from agentflow.core.record import Record
from agentflow.frontmatter import read_yaml

_RETRIED = frozenset({408, 409, 429}) | frozenset(range(500, 600))


class Match(Record):
    """Which run an entry is for; an absent key matches any."""

    role: str | None = None
    agent: str | None = None
    iteration: int | None = None
    contains: str | None = None


class ScriptedCall(Record):
    name: str
    input: dict[str, Any] = {}


class Turn(Record):
    """One reply, or an error of the provider by its HTTP status."""

    text: str = ""
    tools: tuple[ScriptedCall, ...] = ()
    usage: Usage = Usage()
    error: int | None = None


class Entry(Record):
    turns: tuple[Turn, ...]
    match: Match = Match()
    delay: float = 0
    """Seconds before each reply."""


class Scripted:
    """Plays the first unused entry that matches a run; a run without one gets an empty final turn."""

    def __init__(self, name: str, entries: tuple[Entry, ...]) -> None:
        self.name = name
        self._unused = list(entries)
        self._playing: dict[tuple[int, bool], Entry] = {}
        """By run, its summaries apart."""

    def refusal(self, task: str) -> str | None:  # noqa: ARG002  # a script takes any task
        return None

    async def complete(self, request: Request) -> Reply:
        self.recall(request)
        entry = self._playing[_part(request)]
        await anyio.sleep(entry.delay)
        position = request.replies
        if position >= len(entry.turns):
            return Reply(parts=(), model=request.model)
        return _reply(entry.turns[position], request, position)

    def recall(self, request: Request) -> None:
        """Take the entry of a run, if it has none yet; also for one that an earlier process played."""
        if _part(request) in self._playing:
            return
        entry = next((entry for entry in self._unused if _fits(entry.match, request)), None)
        if entry is not None:
            self._unused.remove(entry)
        self._playing[_part(request)] = entry or Entry(turns=())


def load_script(path: str) -> Scripted:
    """Return the model that plays a script file. Raises ConfigError, or InvalidFile naming the key."""
    try:
        text = Path(path).read_text("utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read the script {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidFile(path, "is not UTF-8 text") from None
    entries = read_yaml(tuple[Entry, ...], text, path)
    return Scripted(f"script:{path}", entries)


def _part(request: Request) -> tuple[int, bool]:
    return request.run, request.role == SUMMARIZER


def _fits(match: Match, request: Request) -> bool:
    if request.role == SUMMARIZER and match.role != SUMMARIZER:
        return False  # an entry for any role is for one that works on the task
    said = "\n".join((request.system, *(message.text for message in request.messages)))
    return (
        match.role in (None, request.role)
        and match.agent in (None, request.agent)
        and match.iteration in (None, request.iteration)
        and (match.contains is None or match.contains in said)
    )


def _reply(turn: Turn, request: Request, position: int) -> Reply:
    if turn.error is not None:
        kind = ModelUnavailable if turn.error in _RETRIED else ModelRejected
        raise kind(f"the model answered with error {turn.error}")
    calls = tuple(
        ToolCall(id=f"s{request.run}-{position + 1}-{number}", name=call.name, input=call.input)
        for number, call in enumerate(turn.tools, 1)
    )
    text = (Text(text=turn.text),) if turn.text else ()
    stop = Stop.TOOL_USE if calls else Stop.END_TURN
    return Reply(parts=(*text, *calls), stop=stop, usage=turn.usage, model=request.model)
