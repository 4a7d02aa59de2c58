"""The Chat Completions API: a request as OpenAI, and the many servers that follow it, take it."""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from agentflow.core.messages import Message, Request, Speaker, Text, Thought, ToolCall, ToolResult, ToolSpec
from agentflow.core.record import encode
from agentflow.model.chat_reply import ChatAssembly, read_chat
from agentflow.model.wire import ReadReply, Room
from agentflow.settings import Provider

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
