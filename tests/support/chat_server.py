"""What a server of the Chat Completions API answers; it is played by the server of messages_server."""

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from tests.support.crew import honest
from tests.support.messages_server import Answer, Asked, Block, Plays, Raw

USAGE: Mapping[str, Any] = MappingProxyType(
    {
        "prompt_tokens": 13,
        "completion_tokens": 5,
        "total_tokens": 18,
        "prompt_tokens_details": {"cached_tokens": 3},
    }
)


class Chats(NamedTuple):
    """A good reply; in a stream, texts and arguments come in two halves."""

    text: str = ""
    calls: tuple[Block, ...] = ()
    """As `use` makes them; `beside` of one stands beside its function."""
    finish: str | None = None
    usage: Mapping[str, Any] | None = USAGE
    beside: Mapping[str, str] = MappingProxyType({})
    """Further texts of the message."""

    def message(self, model: str) -> dict[str, Any]:
        said = {"role": "assistant", "content": self.text or None, **self.beside}
        calls = {"tool_calls": [_to_call(call) for call in self.calls]} if self.calls else {}
        choice = {"index": 0, "message": {**said, **calls}, "finish_reason": self._ending}
        counted = {"usage": {**self.usage}} if self.usage else {}
        return {**_frame("chat.completion", model), "choices": [choice], **counted}

    def events(self, model: str) -> list[bytes]:
        frame: dict[str, Any] = {**_frame("chat.completion.chunk", model), "usage": None}
        deltas = list(self._deltas())
        choices: list[dict[str, Any]] = [
            {"index": 0, "delta": delta, "finish_reason": None} for delta in deltas
        ]
        choices.append({"index": 0, "delta": {}, "finish_reason": self._ending})
        chunks = [{**frame, "choices": [choice]} for choice in choices]
        chunks += [{**frame, "choices": [], "usage": {**self.usage}}] if self.usage else []
        return [b": PROCESSING\n\n", *map(chunk, chunks), b"data: [DONE]\n\n"]

    @property
    def _ending(self) -> str:
        return self.finish or ("tool_calls" if self.calls else "stop")

    def _deltas(self) -> Iterator[dict[str, Any]]:
        yield {"role": "assistant", "content": ""}
        for key, text in {**self.beside, "content": self.text}.items():
            yield from ({key: half} for half in _halve(text))
        for index, call in enumerate(self.calls):
            whole = _to_call(call)
            halves = list(_halve(whole["function"]["arguments"]))
            begin = {**whole, "index": index, "function": {"name": call["name"], "arguments": halves[0]}}
            yield {"tool_calls": [begin]}
            yield {"tool_calls": [{"index": index, "function": {"arguments": halves[1]}}]}


def _frame(kind: str, model: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": model}


def _to_call(call: Block) -> dict[str, Any]:
    function = {"name": call["name"], "arguments": json.dumps(call["input"])}
    return {"id": call["id"], "type": "function", "function": function, **call.get("beside", {})}


def _halve(text: str) -> Iterator[str]:
    half = len(text) // 2
    yield from (text[:half], text[half:])


def chunk(event: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(event).encode() + b"\n\n"


def fails(status: int, body: object, **headers: str) -> Raw:
    """Return an error in a body of any shape."""
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Raw(json.dumps(body).encode(), status, (("content-type", "application/json"), *named))


def to_chat(answer: Answer) -> Answer:
    """Return the same reply in the words of this API."""
    if not isinstance(answer, Plays):
        return answer
    said = "".join(block["text"] for block in answer.blocks if block["type"] == "text")
    return Chats(said, tuple(block for block in answer.blocks if block["type"] == "tool_use"))


def honest_chat(asked: Asked) -> Answer:
    """Return the next turn of an honest crew."""
    return to_chat(honest(asked))
