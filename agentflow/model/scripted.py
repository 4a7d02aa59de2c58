"""Models that no provider stands behind: one replays a script, one the recorded replies of a task."""

import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import Any

import anyio

from agentflow.core.errors import (
    PASSING_STATUSES,
    ConfigError,
    InvalidFile,
    ModelRefused,
    ModelRejected,
    ModelUnavailable,
    PromptTooLong,
)
from agentflow.core.messages import SUMMARIZER, Reply, Request, Stop, Text, ToolCall, Usage
from agentflow.core.record import Record, encode
from agentflow.frontmatter import read_yaml


class Match(Record):
    """The runs that an entry is for; an absent key matches any."""

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


class ScriptedModel:
    """Plays the first unused entry that matches a run; a run without one gets an empty final turn."""

    def __init__(self, name: str, entries: tuple[Entry, ...]) -> None:
        self.name = name
        self._unused = list(entries)
        self._playing: dict[tuple[int, bool], Entry] = {}
        """By run, its summaries apart."""

    def explain_refusal(self, task: str) -> str | None:  # noqa: ARG002  # a script takes any task
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


def load_script(path: str) -> ScriptedModel:
    """Return the model that plays a script file. Raises ConfigError, or InvalidFile naming the key."""
    try:
        text = Path(path).read_text("utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read the script {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidFile(path, "is not UTF-8 text") from None
    entries = read_yaml(tuple[Entry, ...], text, path)
    return ScriptedModel(f"script:{path}", entries)


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
        kind = ModelUnavailable if turn.error in PASSING_STATUSES else ModelRefused
        raise kind(f"the model answered with error {turn.error}")
    calls = tuple(
        ToolCall(id=f"s{request.run}-{position + 1}-{number}", name=call.name, input=call.input)
        for number, call in enumerate(turn.tools, 1)
    )
    text = (Text(text=turn.text),) if turn.text else ()
    stop = Stop.TOOL_USE if calls else Stop.END_TURN
    return Reply(parts=(*text, *calls), stop=stop, usage=turn.usage, model=request.model)


_SHOWN = 200
"""Letters of a line that a difference tells."""

_VOLATILE = (
    (re.compile(r"\d{8}T\d{6}Z-[0-9a-z]+"), "<task>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?Z?"), "<time>"),
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:m?s|seconds?)\b"), "<duration>"),
    (re.compile(r"/[\w./-]*/agentflow-[\w-]+"), "<folder>"),
    (re.compile(r"\b0x[0-9a-f]{6,}\b"), "<address>"),
    (
        re.compile(r"\bc(\d+)-\d+-(\d+)\b"),
        r"c\1-<turn>-\2",
    ),  # a call; a request that was cut off counts as a turn
)
"""What differs between two runs that are the same."""


class Exchange(Record):
    request: Request | None
    """None where a hook had something else sent, which is not kept."""
    reply: Reply
    refused: Request | None = None
    """What was too long for the provider before."""


class ReplayModel:
    """Plays the replies of each run in their order; a request that was never made gets none."""

    def __init__(
        self,
        name: str,
        exchanges: Mapping[int, Sequence[Exchange]],
        roots: Sequence[str] = (),
        summaries: Mapping[int, Sequence[Reply | str]] = MappingProxyType({}),
    ) -> None:
        """`roots` are the folders that stand for the same repository; a summary that failed is its reason."""
        self._summaries = summaries
        self.name = name
        self._exchanges = exchanges
        self._roots = roots

    def explain_refusal(self, task: str) -> str | None:  # noqa: ARG002  # its requests will tell
        return None

    async def complete(self, request: Request) -> Reply:
        if request.role == SUMMARIZER:
            return self._summary(request)
        place = request.replies
        where = f"run {request.run} ({request.role}), turn {place + 1}"
        exchanges = self._exchanges.get(request.run, ())
        if place >= len(exchanges):
            raise ModelRejected(f"{where}: no reply to this is recorded")
        found = exchanges[place]
        if found.refused is not None and not self._difference(found.refused, request):
            raise PromptTooLong(f"{where}: it was too long")
        if found.request is not None and (said := self._difference(found.request, request)):
            raise ModelRejected(f"{where}: another request than was recorded: {said}")
        return found.reply

    def _summary(self, request: Request) -> Reply:
        known = self._summaries.get(request.run, ())
        found = known[request.replies] if request.replies < len(known) else "no summary is recorded"
        if isinstance(found, str):
            raise ModelRejected(found)
        return found

    def _difference(self, then: Request, now: Request) -> str:
        parts = (("role", then.agent, now.agent), ("system", then.system, now.system))
        tools = ("tools", _text(then.tools), _text(now.tools))
        pairs = zip_longest(then.messages, now.messages)
        messages = ((f"message {number}", _text(a), _text(b)) for number, (a, b) in enumerate(pairs, 1))
        for name, one, other in (*parts, tools, *messages):
            lines = (normalize_recording(text, self._roots).split("\n") for text in (one, other))
            for then_line, now_line in zip_longest(*lines, fillvalue="(nothing)"):
                if then_line != now_line:
                    return f"{name}: {now_line[:_SHOWN]!r} in place of {then_line[:_SHOWN]!r}"
        return ""


def _text(value: object) -> str:
    return encode(value).decode().replace("\\n", "\n")


def normalize_recording(text: str, roots: Sequence[str] = ()) -> str:
    """Return text without what differs between two runs that are the same: times, tasks, folders, turns."""
    for root in sorted(roots, key=len, reverse=True):
        text = text.replace(root, "<repository>")
    for form, word in _VOLATILE:
        text = form.sub(word, text)
    return text
