"""A model that gives the replies of a saved task again, to the same requests and to no others."""

import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from types import MappingProxyType

from agentflow.core.errors import ModelRejected, PromptTooLong
from agentflow.core.messages import SUMMARIZER, Reply, Request
from agentflow.core.record import Record, encode

_VOLATILE = (
    (re.compile(r"\d{8}T\d{6}Z-[0-9a-z]+"), "<task>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?Z?"), "<time>"),
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:m?s|seconds?)\b"), "<duration>"),
    (re.compile(r"/[\w./-]*/agentflow-[\w-]+"), "<folder>"),
    (re.compile(r"\b0x[0-9a-f]{6,}\b"), "<address>"),
)
"""What differs between two runs that are the same."""


class Exchange(Record):
    """One reply, and what it answered."""

    request: Request | None
    """None where a hook had something else sent, which is not kept."""
    reply: Reply
    refused: Request | None = None
    """What was too long for the provider before."""


class Recorded:
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

    def refusal(self, task: str) -> str | None:  # noqa: ARG002  # its requests will tell
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
        """Return the first difference of two requests in words, or empty."""
        parts = (("role", then.agent, now.agent), ("system", then.system, now.system))
        tools = ("tools", _text(then.tools), _text(now.tools))
        pairs = zip_longest(then.messages, now.messages)
        messages = ((f"message {number}", _text(a), _text(b)) for number, (a, b) in enumerate(pairs, 1))
        for name, one, other in (*parts, tools, *messages):
            if said := first_difference(steady(one, self._roots), steady(other, self._roots)):
                return f"{name}: {said}"
        return ""


def _text(value: object) -> str:
    return encode(value).decode().replace("\\n", "\n")


def steady(text: str, roots: Sequence[str] = ()) -> str:
    """Return text without what differs between two runs that are the same: times, names of tasks, folders."""
    for root in sorted(roots, key=len, reverse=True):
        text = text.replace(root, "<repository>")
    for form, word in _VOLATILE:
        text = form.sub(word, text)
    return text


def first_difference(one: str, other: str, width: int = 200) -> str:
    """Return the first line in which two texts differ, both sides of it; or empty."""
    pairs = zip_longest(one.split("\n"), other.split("\n"), fillvalue="(nothing)")
    sides = next(((b, a) for a, b in pairs if a != b), ())
    return " in place of ".join(repr(line if len(line) <= width else f"{line[:width]}…") for line in sides)
