"""The Chat Completions API: a request as OpenAI, and the many servers that follow it, take it."""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any
from uuid import uuid4

from agentflow.core.errors import ModelRefused, ModelRejected
from agentflow.core.messages import (
    Message,
    Request,
    Speaker,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)
from agentflow.core.record import encode, map_texts
from agentflow.model.reply import RawTurn, join_surrogates, to_reply
from agentflow.model.wire import BadReply, ErrorEvent, ReadReply, Room
from agentflow.redact import to_one_line
from agentflow.settings import Provider

_REASONING = ("reasoning_content", "reasoning")
"""Texts that some servers want back."""
_DETAILS = "reasoning_details"
_GROWING = frozenset({"text", "summary", "data"})
"""The keys of a detail that come in pieces."""
_OF_A_CALL = frozenset({"index", "id", "type", "function"})
"""The documented keys of a call; others go back with it, such as the signature of a thought."""
_STOPS: Mapping[str, str] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "model_length": "max_tokens",
}
"""Why a reply ended, to the word of RawTurn for it."""
_FILTERED = "content_filter"


class ChatAssembly:
    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._model = ""
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._reasoning: dict[str, list[str]] = {}
        self._details: list[dict[str, Any]] = []
        self._calls: list[_Call] = []
        self._usage: Usage | None = None
        self._finish: str | None = None

    @property
    def is_complete(self) -> bool:
        return self._finish is not None and self._usage is not None

    @property
    def used(self) -> Usage | None:
        return self._usage

    def take(self, event: dict[str, Any]) -> str | None:
        choice = next(iter(_list_objects(event.get("choices"))), {})
        for each in (event, choice):
            if error := each.get("error") or (each if each.get("object") == "error" else None):
                raise ErrorEvent(error if isinstance(error, dict) else {"message": str(error)})
        self._model = str(event.get("model") or self._model)
        usage = _read_usage(event.get("usage"))
        self._usage = usage or self._usage
        if isinstance(finish := choice.get("finish_reason"), str) and finish:
            self._finish = finish
        return self._add(_to_object(choice.get("delta"))) if choice else "" if usage else None

    def _add(self, delta: dict[str, Any]) -> str:
        said = _read_text(delta.get("content"))
        self._text.append(said)
        if isinstance(refusal := delta.get("refusal"), str):
            self._refusal.append(refusal)
        for key in _REASONING:
            if isinstance(thought := delta.get(key), str) and thought:
                self._reasoning.setdefault(key, []).append(thought)
        for detail in _list_objects(delta.get(_DETAILS)):
            self._add_detail(detail)
        for place, call in enumerate(_list_objects(delta.get("tool_calls"))):
            self._find_call(call, place).add(call)
        return said

    def _add_detail(self, detail: dict[str, Any]) -> None:
        """Add a detail to the newest of its kind and index, or as a new one."""
        newest = self._details[-1] if self._details else None
        if newest is None or any(newest.get(key) != detail.get(key) for key in ("type", "index")):
            self._details.append(detail)
            return
        for key, value in detail.items():
            if value is not None:
                known = newest.get(key) if key in _GROWING else None
                newest[key] = known + value if isinstance(known, str) and isinstance(value, str) else value

    def _find_call(self, piece: dict[str, Any], place: int) -> "_Call":
        """Return the call that a piece is of; some servers number no calls, and others all the same."""
        given, call_id = piece.get("index"), piece.get("id")
        index = given if isinstance(given, int) else place
        for call in reversed(self._calls):
            if call.index == index and (not call_id or call_id == call.id):
                return call
        self._calls.append(_Call(index, str(call_id) if call_id else f"call_{uuid4().hex}"))
        return self._calls[-1]

    def to_reply(self) -> ReadReply:
        """Return the complete reply. Raises BadReply or ModelRejected."""
        finish = self._finish
        if finish is None:
            raise BadReply("the reply was cut off before its end")
        refusal = to_one_line("".join(self._refusal))
        if refusal or finish == _FILTERED:
            raise ModelRejected(f"the model refused to go on{f': {refusal}' if refusal else ''}")
        if finish not in _STOPS:
            raise BadReply(f"the reply ended for an unknown reason: {to_one_line(finish)}")
        stop = _STOPS[finish]
        if stop != "max_tokens":  # forced calls, and all calls of some servers, end with `stop`
            stop = "tool_use" if self._calls else "end_turn"
        return to_reply(
            RawTurn(
                blocks=(*self._thoughts(), *self._texts(), *(call.to_block() for call in self._calls)),
                stop=stop,
                usage=self._usage or Usage(),
                model=self._model,
                skipped=frozenset(),
            )
        )

    def _texts(self) -> tuple[dict[str, Any], ...]:
        text = "".join(self._text)
        return ({"type": "text", "text": text},) if text else ()

    def _thoughts(self) -> tuple[dict[str, Any], ...]:
        """Return what goes back beside the text and the calls: their ids here, and words of the server's."""
        texts: dict[str, Any] = {key: "".join(pieces) for key, pieces in self._reasoning.items()}
        message = {_DETAILS: self._details} if self._details else texts
        calls = [{"id": call.id, **call.beside} for call in self._calls]
        if not (message or calls):
            return ()
        block = {"type": "reasoning", "by": self._provider, "message": message, "calls": calls}
        return (map_texts(block, join_surrogates),)


class _Call:
    def __init__(self, index: int, call_id: str) -> None:
        self.index = index
        self.id = call_id
        self.beside: dict[str, Any] = {}
        self._name = ""
        self._arguments: list[str] = []

    def add(self, piece: dict[str, Any]) -> None:
        function = _to_object(piece.get("function"))
        given = function.get("arguments")
        self._name = self._name or str(function.get("name") or "")
        self._arguments.append(given if isinstance(given, str) else encode(given).decode() if given else "")
        self.beside |= {key: value for key, value in piece.items() if key not in _OF_A_CALL and value}

    def to_block(self) -> dict[str, Any]:
        given = "".join(self._arguments)
        return {"type": "tool_use", "id": self.id, "name": self._name, "json": given, "input": {}}


def read_chat(body: bytes, provider: str) -> ReadReply:
    """Return the reply of a whole answer. Raises BadReply, ErrorEvent, ModelRefused or ModelRejected."""
    try:
        found = json.loads(body.decode())
    except (ValueError, RecursionError):
        raise BadReply("the reply is not whole JSON") from None
    found = found[0] if isinstance(found, list) and found else found
    whole = _to_object(found)
    choices = [{**each, "delta": each.get("message")} for each in _list_objects(whole.get("choices"))]
    assembly = ChatAssembly(provider)
    assembly.take({**whole, "choices": choices})
    if not choices:
        raise ModelRefused(
            "this endpoint is not the Chat Completions API: its answer is JSON of another kind"
        )
    return assembly.to_reply()


def _read_text(content: object) -> str:
    """Return the text of a content, which may come as a list of kinds."""
    if isinstance(content, str):
        return content
    texts = (each.get("text") for each in _list_objects(content) if each.get("type") == "text")
    return "".join(text for text in texts if isinstance(text, str))


def _read_usage(counted: object) -> Usage | None:
    """Return the tokens that were counted; those of a cache count apart from the others of the prompt."""
    if not isinstance(counted, dict):
        return None
    details = _to_object(counted.get("prompt_tokens_details"))
    cached, written = _count(details.get("cached_tokens")), _count(details.get("cache_write_tokens"))
    fresh = max(0, _count(counted.get("prompt_tokens")) - cached - written)
    output = _count(counted.get("completion_tokens"))
    return Usage(input=fresh, output=output, cache_read=cached, cache_write=written)


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _to_object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list_objects(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


_STRICT_ID = 9
"""Characters that Mistral wants an id to have, where it did not choose it."""


class ChatApi:
    """The Chat Completions API of one provider; what its models thought goes back to no other."""

    title = "the Chat Completions API"
    path = "/chat/completions"

    def __init__(self, name: str, provider: Provider) -> None:
        self._name = name
        self._limit = provider.reply_limit or "max_tokens"
        self._is_strict = bool(provider.strict)

    def encode(self, request: Request, *, stream: bool, room: Room) -> bytes:
        ids: dict[str, str] = {}
        said = (each for message in request.messages for each in self._to_messages(message, ids))
        system = [{"role": "system", "content": request.system}] if request.system else []
        body: dict[str, Any] = {"messages": [*system, *said]}
        # where a tool is forced it is the only one, since some servers take no name of one to be called
        offered = (tool for tool in request.tools if request.force in (None, tool.name))
        tools = [_to_offer(tool) for tool in offered if not tool.by_provider]
        if tools:
            body["tools"] = tools
        if request.force:
            body["tool_choice"] = "required"
        if stream:
            body["stream"] = True
        if stream and not self._is_strict:
            body["stream_options"] = {"include_usage": True}
        rest = encode(body)[1:]
        head = b'{"model":%s,"%s":%d,' % (encode(request.model), self._limit.encode(), room(len(rest)))
        return head + rest

    def read(self, body: bytes) -> ReadReply:
        """Return the reply of a whole answer. Raises BadReply, ErrorEvent, ModelRefused or ModelRejected."""
        return read_chat(body, self._name)

    def start_stream(self) -> ChatAssembly:
        return ChatAssembly(self._name)

    def _to_messages(self, message: Message, ids: dict[str, str]) -> Iterator[dict[str, Any]]:
        """Yield what a message is here; the ids of calls are the server's own, by ours."""
        texts = [part.text for part in message.parts if isinstance(part, Text) and part.text.strip()]
        said = "\n\n".join(texts)
        if message.speaker is Speaker.ASSISTANT:
            reply = self._to_reply_message(message, said, ids)
            if "content" in reply:
                yield reply
            return
        results = [_to_result(part, ids) for part in message.parts if isinstance(part, ToolResult)]
        if results and said and self._is_strict:
            results[-1]["content"] += f"\n\n{said}"
            said = ""
        yield from results
        shown = [part for part in message.parts if isinstance(part, ToolResult) and part.shown]
        if shown:  # a result holds text alone
            yield {"role": "user", "content": [block for part in shown for block in _to_shown_blocks(part)]}
        if said:
            yield {"role": "user", "content": said}

    def _to_reply_message(self, message: Message, said: str, ids: dict[str, str]) -> dict[str, Any]:
        thoughts = (part.block for part in message.parts if isinstance(part, Thought))
        thought = next((each for each in thoughts if each.get("by") == self._name), {})
        calls = [_to_call(call) for call in message.calls]
        known = thought.get("calls", [])
        for place, (call, sent) in enumerate(zip(message.calls, calls, strict=True)):
            if len(known) == len(calls):
                sent.update(known[place])
            elif self._is_strict:
                sent["id"] = sha256(call.id.encode()).hexdigest()[:_STRICT_ID]
            ids[call.id] = sent["id"]
        content = (
            {"content": said or None, "tool_calls": calls} if calls else {"content": said} if said else {}
        )
        return {"role": "assistant", **content, **thought.get("message", {})}


def _to_offer(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
    return {"type": "function", "function": function}


def _to_call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": encode(call.input).decode()}
    return {"id": call.id, "type": "function", "function": function}


def _to_shown_blocks(result: ToolResult) -> Iterator[dict[str, Any]]:
    yield {"type": "text", "text": result.content}
    yield {"type": "image_url", "image_url": {"url": result.shown}}


def _to_result(result: ToolResult, ids: Mapping[str, str]) -> dict[str, Any]:
    """Return a result; that it is an error can only be said in its text."""
    failed = "Error: " if result.is_error else ""
    call_id = ids.get(result.call_id, result.call_id)
    return {"role": "tool", "tool_call_id": call_id, "content": f"{failed}{result.content}"}
