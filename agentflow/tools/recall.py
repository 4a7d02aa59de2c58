"""RecallOutput: what was left out of a long or old result, read again by the id of its call."""

import re
from collections.abc import Iterable

from agentflow.core.errors import InvalidInput, NotAllowed
from agentflow.core.fold import RECALL_TOOL
from agentflow.core.messages import ToolSpec
from agentflow.core.record import Record
from agentflow.core.tool import Category, Effect, Output, Retention, Tool, ToolContext
from agentflow.redact import redacted

MAX_CALLS = 8
"""Of one run; whoever needs more asks for less with a command."""
PAGE = 16_000
MAX_PAGE = 30_000
_CALL_ID = re.compile(r"[\w-]{1,200}", re.ASCII)
_CONTINUATION = bytes(range(0x80, 0xC0))


class RecallInput(Record):
    """In bytes; every request carries its schema, so that it says no more than it must."""

    call_id: str
    offset: int = 0
    limit: int = PAGE


def recall_note(offered: Iterable[ToolSpec], call_id: str) -> str:
    """Return how the rest of a clipped result is read, or where it is kept for people."""
    if any(tool.name == RECALL_TOOL for tool in offered):
        return f"{RECALL_TOOL} with call_id {call_id} reads it"
    return f"the full text is kept under the call id {call_id}"


def recall(wanted: RecallInput, context: ToolContext) -> Output:
    """Read on in a clipped result."""
    if wanted.offset < 0 or not 1 <= wanted.limit <= MAX_PAGE:
        raise InvalidInput(f"offset is 0 or more, limit is 1 to {MAX_PAGE}")
    if context.call_id in context.run.recalls[MAX_CALLS:]:
        raise NotAllowed(f"{RECALL_TOOL} was used {MAX_CALLS} times; filter the output with a command")
    known = clipped_calls(context)
    if wanted.call_id not in known:
        listed = ", ".join(known) or "none so far"
        raise InvalidInput(
            f"no clipped result has the call id {wanted.call_id}; those that have one: {listed}"
        )
    path = context.shell.outputs / f"{wanted.call_id}.out"
    # as a whole: a secret that lies across two pages is one secret
    text = redacted(path.read_bytes().decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    return Output(content=_page(text, wanted.offset, wanted.limit))


def clipped_calls(context: ToolContext) -> tuple[str, ...]:
    """Return the calls of this run whose full result is kept, also those that a summary stands for."""
    shown = (call.id for message in context.run.messages for call in message.calls)
    own = (path.stem for path in context.shell.outputs.glob(f"c{context.run.head.run}-*.out"))
    ids = (one for one in dict.fromkeys((*shown, *sorted(own))) if _CALL_ID.fullmatch(one))
    return tuple(one for one in ids if (context.shell.outputs / f"{one}.out").is_file())


def _page(text: bytes, offset: int, limit: int) -> str:
    """Return a page and where it lies; no character is cut in two."""
    if offset >= len(text):
        raise InvalidInput(f"offset: the result has {len(text)} bytes")
    begin, end = _whole(text, offset), _whole(text, min(offset + limit, len(text)))
    end = end if end > begin else min(begin + limit, len(text))
    rest = f"; the next offset is {end}" if end < len(text) else ", the end"
    return f"{text[begin:end].decode('utf-8', 'replace')}\n[bytes {begin} to {end} of {len(text)}{rest}]"


def _whole(text: bytes, place: int) -> int:
    """Return the place where the character at a place begins."""
    begin = place
    while begin > max(0, place - 3) and begin < len(text) and text[begin] in _CONTINUATION:
        begin -= 1
    return begin


RECALL = Tool(
    name=RECALL_TOOL,
    category=Category.STATE,
    effect=Effect.READ,
    input=RecallInput,
    call=recall,
    granted=True,
    retention=Retention.DROP,
)
