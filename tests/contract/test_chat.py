"""Chat Completions over both of our ways, streamed and not: the same requests, the same accepted turns."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from agentflow.core.errors import ModelError, ModelRefused, ModelRejected, ModelUnavailable, PromptTooLong
from agentflow.core.messages import (
    Message,
    Reply,
    Request,
    Speaker,
    Stop,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)
from agentflow.model.chat import ChatApi
from agentflow.model.direct import Direct
from agentflow.model.endpoint import Endpoint, Secret
from agentflow.model.http import Http
from agentflow.model.live import LiveModel
from agentflow.model.messages import MessagesApi
from agentflow.model.wire import ProviderLine
from agentflow.settings import PROVIDERS, Price, Provider, Retry, Settings
from tests.contract.conftest import KEY, QUICK, Said, request
from tests.support.chat_server import USAGE, Chats, chunk, fails
from tests.support.messages_server import Answer, Raw, Stream, serving, use

EDIT = use("Edit", {"a": "größer 🙂", "n": 1, "deep": {"b": [1, 2.5, None]}}, "call_7")
SUBMIT = use("Submit", {}, "call_8")
GOOD = Chats("Done.")
CALLS = Chats("I edit.", (EDIT, SUBMIT))
PLACE = "OPENAI_BASE_URL, or providers.openai.endpoint in config.yaml"
Ask = Callable[..., Said]


def user(*said: str) -> Message:
    return Message(speaker=Speaker.USER, parts=tuple(Text(text=each) for each in said))


def done(*results: ToolResult | Text) -> Message:
    return Message(speaker=Speaker.USER, parts=results)


@pytest.fixture(params=[False, True], ids=["plain", "streamed"])
def stream(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(params=[Direct, Http], ids=["direct", "http"])
def way(request: pytest.FixtureRequest) -> type[Direct | Http]:
    found: type[Direct | Http] = request.param
    return found


@pytest.fixture
def ask(way: type[Direct | Http], stream: bool) -> Ask:
    """Ask a server that plays these answers, as a provider of the table or another."""

    def asked(
        *answers: Answer,
        requests: tuple[Request, ...] = (),
        settings: Settings = QUICK,
        name: str = "openai",
        provider: Provider | None = None,
    ) -> Said:
        with serving(*answers) as server:
            said = Said([], None, server.asked, [], [])
            endpoint = Endpoint(
                address=f"{server.address}/v1", token=Secret(KEY), path="/chat/completions", version=""
            )
            line = ProviderLine(
                api=ChatApi(name, provider or PROVIDERS[name]),
                source=way(endpoint, QUICK.deadlines),
                place=PLACE,
            )

            async def talk() -> ModelError | None:
                model = LiveModel(
                    "anthropic",
                    lambda _: line,
                    settings.replace(stream=stream),
                    on_delta=said.deltas.append if stream else None,
                    observe=said.events.append,
                )
                try:
                    for each in requests or (request(model=f"{name}/model-1"),):
                        said.replies.append(await model.complete(each))
                except ModelError as error:
                    return error
                finally:
                    await model.close()
                return None

            return said._replace(error=anyio.run(talk))

    return asked


def test_a_turn_arrives_whole(ask: Ask, stream: bool) -> None:
    said = ask(CALLS)
    assert said.reply == Reply(
        parts=(
            Thought(
                block={
                    "type": "reasoning",
                    "by": "openai",
                    "message": {},
                    "calls": [{"id": "call_7"}, {"id": "call_8"}],
                }
            ),
            Text(text="I edit."),
            ToolCall(id="call_7", name="Edit", input=EDIT["input"]),
            ToolCall(id="call_8", name="Submit", input={}),
        ),
        stop=Stop.TOOL_USE,
        usage=Usage(input=10, output=5, cache_read=3),
        model="model-1",
    )
    assert said.events == []
    assert "".join(said.deltas) == ("I edit." if stream else "")


def test_an_image_follows_the_results_and_is_left_out_where_the_server_refuses_it(ask: Ask) -> None:
    call = ToolCall(id="c1", name="Edit", input={"a": "x"})
    shown = ToolResult(call_id="c1", content="a.png: image", shown="data:image/png;base64,aGk=")
    messages = (
        user("begin"),
        Message(speaker=Speaker.ASSISTANT, parts=(call,)),
        done(shown, Text(text="Go on.")),
    )
    wanted = request(*messages, model="openai/gpt-x")
    said = ask(fails(400, {"error": {"message": "no images here"}}), GOOD, requests=(wanted,))
    first, again = (asked.body["messages"][3:] for asked in said.asked)
    assert [each["role"] for each in first] == ["tool", "user", "user"]
    assert first[1]["content"] == [
        {"type": "text", "text": "a.png: image"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
    ]
    assert [each["content"] for each in again] == [
        "a.png: image\n[the model's server did not take it]",
        "Go on.",
    ]
    assert len(said.retried) == 1
    assert "no images here" in said.retried[0].reason


def test_the_request_says_what_the_api_wants(ask: Ask, stream: bool) -> None:
    call = ToolCall(id="c1", name="Edit", input={"a": "x"})
    other = ToolCall(id="c2", name="Submit", input={}, problem="cut off")
    messages = (
        user("begin", " \n", "now"),
        Message(speaker=Speaker.ASSISTANT, parts=(Text(text=" \n"), call, other)),
        done(
            ToolResult(call_id="c1", content="no such file", is_error=True),
            ToolResult(call_id="c2", content="ok"),
            Text(text="Go on."),
        ),
        Message(speaker=Speaker.ASSISTANT, parts=(Text(text="\n"),)),
        Message(speaker=Speaker.ASSISTANT, parts=(Text(text="I went on."),)),
    )
    search = ToolSpec(name="WebSearch", description="Search.", input_schema={}, by_provider=True)
    tools = (*request().tools, search)
    wanted = request(*messages, force="Submit", model="openai/gpt-x", tools=tools)
    (asked,) = ask(GOOD, requests=(wanted,)).asked
    offered = {"name": "Submit", "description": "End.", "parameters": {"type": "object", "properties": {}}}

    def made(call_id: str, name: str, given: str) -> dict[str, Any]:
        return {"id": call_id, "type": "function", "function": {"name": name, "arguments": given}}

    assert asked.body == {
        "model": "gpt-x",
        "max_completion_tokens": 16_000,
        "messages": [
            {"role": "system", "content": "You mend."},
            {"role": "user", "content": "begin\n\nnow"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [made("c1", "Edit", '{"a":"x"}'), made("c2", "Submit", "{}")],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "Error: no such file"},
            {"role": "tool", "tool_call_id": "c2", "content": "ok"},
            {"role": "user", "content": "Go on."},
            {"role": "assistant", "content": "I went on."},
        ],
        "tools": [{"type": "function", "function": offered}],
        "tool_choice": "required",
        **({"stream": True, "stream_options": {"include_usage": True}} if stream else {}),
    }
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert not {"x-api-key", "anthropic-version"} & set(asked.headers)


def test_a_strict_provider_gets_no_fields_and_no_order_that_it_refuses(ask: Ask, stream: bool) -> None:
    call = Message(speaker=Speaker.ASSISTANT, parts=(ToolCall(id="c1", name="Edit", input={}),))
    after = done(ToolResult(call_id="c1", content="ok"), Text(text="Go on."))
    wanted = request(user("begin"), call, after, model="mistral/devstral")
    (asked,) = ask(GOOD, requests=(wanted,), name="mistral").asked
    *_, made, result = asked.body["messages"]
    (call_id,) = (each["id"] for each in made["tool_calls"])
    assert (len(call_id), call_id.isalnum()) == (9, True)
    assert result == {"role": "tool", "tool_call_id": call_id, "content": "ok\n\nGo on."}
    assert asked.body["max_tokens"] == 16_000
    assert set(asked.body) - {"model", "messages", "max_tokens", "tools"} == ({"stream"} if stream else set())


def test_a_model_without_tools_is_offered_none(ask: Ask) -> None:
    settings = QUICK.replace(without_tools=("model-1",))
    (asked,) = ask(GOOD, requests=(request(model="openai/model-1", force="Submit"),), settings=settings).asked
    assert not {"tools", "tool_choice"} & set(asked.body)


FORCES: dict[str, str] = {
    "LM Studio": "Invalid tool_choice type: 'object'. Supported string values: none, auto, required",
    "DeepSeek": "Thinking mode does not support this tool_choice",
}


@pytest.mark.parametrize("words", FORCES.values(), ids=FORCES)
def test_a_server_that_lets_nobody_force_a_tool_is_offered_that_tool_alone(ask: Ask, words: str) -> None:
    wanted = request(model="openai/model-1", force="Submit")
    said = ask(fails(400, {"error": words}), Chats("", (SUBMIT,)), requests=(wanted, wanted))
    forced, *others = (asked.body for asked in said.asked)
    assert forced["tool_choice"] == "required"
    assert [asked.get("tool_choice") for asked in others] == [None, None]
    assert [[tool["function"]["name"] for tool in asked["tools"]] for asked in others] == [["Submit"]] * 2
    assert [event.reason.count("tool_choice") for event in said.retried] == [1]


def test_what_is_not_forced_offers_all_tools(ask: Ask) -> None:
    (asked,) = ask(GOOD).asked
    assert [tool["function"]["name"] for tool in asked.body["tools"]] == ["Edit", "Submit"]
    assert "tool_choice" not in asked.body


SIGNED = {**EDIT, "beside": {"extra_content": {"google": {"thought_signature": "c2ln"}}}}
THOUGHTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "reasoning_content": ({"beside": {"reasoning_content": "hm, 🙂 so"}}, {"reasoning_content": "hm, 🙂 so"}),
    "reasoning": ({"beside": {"reasoning": "hm, so"}}, {"reasoning": "hm, so"}),
}


@pytest.mark.parametrize(("given", "back"), THOUGHTS.values(), ids=THOUGHTS)
def test_a_thought_goes_back_unchanged_and_to_no_other_provider(
    ask: Ask, given: dict[str, Any], back: dict[str, Any]
) -> None:
    reply = ask(Chats("I edit.", (SIGNED,), **given)).reply
    assert isinstance(reply.parts[0], Thought)
    ours = tuple(part.replace(id="c1-1-1") if isinstance(part, ToolCall) else part for part in reply.parts)
    history = (user("begin"), Message(speaker=Speaker.ASSISTANT, parts=ours))
    after = (*history, done(ToolResult(call_id="c1-1-1", content="ok")))
    (own,) = ask(GOOD, requests=(request(*after, model="openai/model-1"),)).asked
    (other,) = ask(GOOD, requests=(request(*after, model="vllm/model-1"),), name="vllm").asked
    at_messages = MessagesApi().encode(request(*after), stream=False, room=lambda _: 1)
    assert b"reasoning" not in at_messages
    sent, sent_elsewhere = (asked.body["messages"][2] for asked in (own, other))
    results = [asked.body["messages"][3]["tool_call_id"] for asked in (own, other)]
    (call,) = sent.pop("tool_calls")
    assert (call["id"], results) == ("call_7", ["call_7", "c1-1-1"])
    assert sent == {"role": "assistant", "content": "I edit.", **back}
    assert call["extra_content"] == SIGNED["beside"]["extra_content"]
    assert set(sent_elsewhere) == {"role", "content", "tool_calls"}
    assert set(sent_elsewhere["tool_calls"][0]) == {"id", "type", "function"}


def pieces(*deltas: dict[str, Any], finish: str = "tool_calls", **more: Any) -> Stream:
    """Return a stream of these deltas as they are, and the end of a choice."""
    choices = [{"index": 0, "delta": delta} for delta in deltas]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": {**USAGE}, **more}
    return Stream((*(chunk({"model": "m", "choices": [each]}) for each in choices), chunk(end)))


def piece(**call: Any) -> dict[str, Any]:
    function = {key: call.pop(key) for key in ("name", "arguments") if key in call}
    return {"tool_calls": [{**call, "function": function}]}


def detail(**more: Any) -> dict[str, Any]:
    return {"reasoning_details": [{"type": "reasoning.text", "index": 0, **more}]}


def test_the_pieces_of_a_thought_become_one(ask: Ask) -> None:
    told = pieces(
        {"reasoning": "hm, ", **detail(text="hm, ")},
        {"reasoning": "so", **detail(text="so", signature=None)},
        detail(signature="sig"),
        detail(text="", signature=None),
        detail(type="reasoning.encrypted", data="AAA"),
        piece(index=0, id="call_7", name="Edit", arguments="{}"),
    )
    (thought, _) = ask(told).reply.parts
    assert isinstance(thought, Thought)
    assert thought.block["message"] == {
        "reasoning_details": [
            {"type": "reasoning.text", "index": 0, "text": "hm, so", "signature": "sig"},
            {"type": "reasoning.encrypted", "index": 0, "data": "AAA"},
        ]
    }


STREAMED: dict[str, Stream] = {
    "one piece each, all numbered 0": pieces(
        piece(index=0, id="a", name="Edit", arguments='{"a":"x"}'),
        piece(index=0, id="b", name="Submit", arguments="{}"),
        finish="stop",
    ),
    "without numbers": pieces(
        piece(id="a", name="Edit", arguments='{"a":"x"}'), piece(id="b", name="Submit", arguments="")
    ),
    "in turns": pieces(
        piece(index=0, id="a", name="Edit", arguments=""),
        piece(index=1, id="b", name="Submit", arguments="{"),
        piece(index=0, arguments='{"a"'),
        piece(index=1, arguments="}"),
        piece(index=0, id="", arguments=':"x"}'),
    ),
    "as an object": pieces(
        piece(index=0, id="a", name="Edit", arguments={"a": "x"}), piece(index=1, id="b", name="Submit")
    ),
    "with an id each time": pieces(
        piece(index=0, id="a", name="Edit", arguments='{"a"'),
        piece(index=0, id="a", name="", arguments=':"x"}'),
        piece(index=1, id="b", name="Submit", arguments="{}"),
    ),
    "half a character each": pieces(
        piece(index=0, id="a", name="Edit", arguments='{"a":"x"}'),
        {"content": "\ud83d", "reasoning": "\ud83d"},
        {"content": "\ude42", "reasoning": "\ude42"},
        piece(index=1, id="b", name="Submit"),
    ),
}


@pytest.mark.parametrize("told", STREAMED.values(), ids=STREAMED)
def test_calls_are_put_together_as_servers_cut_them(ask: Ask, told: Stream) -> None:
    reply = ask(told).reply
    calls = [part for part in reply.parts if isinstance(part, ToolCall)]
    assert [(call.id, call.name, call.input, call.problem) for call in calls] == [
        ("a", "Edit", {"a": "x"}, None),
        ("b", "Submit", {}, None),
    ]
    assert reply.stop is Stop.TOOL_USE
    assert {part.text for part in reply.parts if isinstance(part, Text)} <= {"🙂"}


def test_calls_without_an_id_get_one_each(ask: Ask) -> None:
    twice = {"tool_calls": [piece(name="Edit")["tool_calls"][0], piece(name="Submit")["tool_calls"][0]]}
    _, first, second = ask(pieces(twice)).reply.parts
    assert isinstance(first, ToolCall)
    assert isinstance(second, ToolCall)
    assert first.id != second.id
    assert (first.name, second.name) == ("Edit", "Submit")


ENDS: dict[str, tuple[Chats, Stop, bool]] = {
    "stop": (Chats("Done.", finish="stop"), Stop.END_TURN, False),
    "stop with a call": (Chats("", (EDIT,), finish="stop"), Stop.TOOL_USE, False),
    "tool_calls without one": (Chats("Done.", finish="tool_calls"), Stop.END_TURN, False),
    "length": (Chats("I edit.", (EDIT,), finish="length"), Stop.MAX_TOKENS, True),
}


@pytest.mark.parametrize(("answer", "stop", "is_cut"), ENDS.values(), ids=ENDS)
def test_why_a_turn_ended(ask: Ask, answer: Chats, stop: Stop, is_cut: bool) -> None:
    reply = ask(answer).reply
    assert reply.stop is stop
    problems = [part.problem for part in reply.parts if isinstance(part, ToolCall) and part.problem]
    assert [("max_tokens" in problem) for problem in problems] == [True] * is_cut


def test_an_input_that_is_no_object_is_not_run(ask: Ask) -> None:
    (_, call) = ask(pieces(piece(index=0, id="a", name="Edit", arguments='{"a": '))).reply.parts
    assert isinstance(call, ToolCall)
    assert call.problem is not None
    assert "JSON object" in call.problem


def test_a_text_may_come_as_a_list_of_kinds(ask: Ask) -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    said = [thinking, {"type": "text", "text": "Done."}]
    assert ask(pieces({"content": said}, finish="stop")).reply.parts == (Text(text="Done."),)


COUNTED: dict[str, tuple[dict[str, Any], Usage]] = {
    "with a cache": ({**USAGE}, Usage(input=10, output=5, cache_read=3)),
    "with a cache that was written": (
        {**USAGE, "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 4}},
        Usage(input=6, output=5, cache_read=3, cache_write=4),
    ),
    "without details": ({"prompt_tokens": 7, "completion_tokens": 2}, Usage(input=7, output=2)),
    "with details that are null": (
        {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": None},
        Usage(input=7, output=2),
    ),
}


@pytest.mark.parametrize(("usage", "expected"), COUNTED.values(), ids=COUNTED)
def test_tokens_are_counted_each_once(ask: Ask, usage: dict[str, Any], expected: Usage) -> None:
    assert ask(Chats("Done.", usage=usage)).reply.usage == expected


def test_a_server_that_counts_nothing_still_uses_up_a_budget(ask: Ask) -> None:
    reply = ask(Chats("Done.", usage=None)).reply
    assert reply.usage.input > 100


@pytest.mark.parametrize("named", ["openai/model-1", "model-1"])
def test_a_price_of_the_user_s_gives_a_cost(ask: Ask, named: str) -> None:
    price = Price(input=1, output=10, cache_read=0.1, cache_write=1)
    settings = QUICK.replace(prices={named: price})
    assert ask(GOOD, settings=settings).reply.usage.cost_usd == pytest.approx((10 + 50 + 0.3) / 1_000_000)
    assert ask(GOOD).reply.usage.cost_usd is None


QUOTA = "You exceeded your current quota, please check your plan and billing details."
PASSING: dict[str, tuple[Answer, ...]] = {
    "429": (fails(429, {"error": {"message": "Rate limit reached", "type": "tokens"}}, retry_after="0"),),
    "429 in milliseconds": (fails(429, {"error": {"message": "Slow down"}}, retry_after_ms="5"),),
    "500 and 503": (fails(500, {"error": {"message": "oops", "type": "server_error"}}), fails(503, {})),
    "an error under 200": (fails(200, {"error": {"code": 502, "message": "Provider returned error"}}),),
    "an error in a stream": (Stream((chunk({"error": {"message": "overloaded", "code": 529}}),)),),
    "an error in a choice": (
        Stream(
            (
                chunk({"choices": [{"index": 0, "delta": {"content": "I e"}}]}),
                chunk(
                    {
                        "error": {"code": "server_error", "message": "Provider disconnected"},
                        "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}],
                    }
                ),
            )
        ),
    ),
    "an end by an error": (Chats("I e", finish="error"),),
    "a stream that is cut": (Stream(tuple(CALLS.events("m")[:-3])),),
    "a stream that is reset": (Stream(tuple(CALLS.events("m")), cut=700, reset=True),),
    "JSON that is cut": (Raw(b'{"choices": [{"mess'),),
    "an ending nobody knows": (Chats("", finish="function_call_filter: MALFORMED_FUNCTION_CALL"),),
}


@pytest.mark.parametrize("faults", PASSING.values(), ids=PASSING)
def test_what_may_pass_is_tried_again(ask: Ask, faults: tuple[Answer, ...]) -> None:
    said = ask(*faults, GOOD)
    assert said.reply.parts == (Text(text="Done."),)
    assert len(said.asked) == len(faults) + 1
    assert len({asked.raw for asked in said.asked}) == 1
    assert all(event.reason for event in said.retried)


def test_a_stream_that_is_reset_after_all_of_it_is_whole(ask: Ask) -> None:
    events = CALLS.events("m")
    assert len(ask(Stream(events[:-1], reset=True), GOOD).asked) == 1
    assert len(ask(Stream(events[:-2], reset=True), GOOD).asked) == 2  # its tokens are not counted yet


EXTRA = {"type": "extra_forbidden", "loc": ["body", "x"], "msg": "Extra inputs are not permitted"}
LASTING: dict[str, tuple[Answer, str]] = {
    "a wrong key": (
        fails(401, {"error": {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}}),
        "your API key was rejected (401: Incorrect API key provided: [redacted])",
    ),
    "a wrong key at Mistral": (
        fails(401, {"message": "Unauthorized", "request_id": "1"}),
        "401: Unauthorized",
    ),
    "a wrong key at Gemini": (
        fails(400, [{"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}}]),
        "400: API key not valid.",
    ),
    "no money at OpenRouter": (
        fails(402, {"error": {"code": 402, "message": "Insufficient credits"}}),
        "402: Insufficient credits",
    ),
    "no money at OpenAI": (
        fails(429, {"error": {"message": QUOTA, "type": "insufficient_quota", "code": "insufficient_quota"}}),
        f"402: {QUOTA}",
    ),
    "a field that Mistral refuses": (
        fails(422, {"object": "error", "message": {"detail": [EXTRA]}, "type": "invalid_request_error"}),
        "Extra inputs are not permitted",
    ),
    "no such model at Ollama": (
        fails(404, {"error": {"message": 'model "x" not found, try pulling it first', "type": "api_error"}}),
        'model "x" not found, try pulling it first',
    ),
    "a path that is not there": (fails(404, {"detail": "Not Found"}), "404: Not Found"),
    "a text as the error": (fails(400, {"error": "Invalid 'messages'"}), "400: Invalid 'messages'"),
    "the words of a provider behind it": (
        fails(400, {"error": {"message": "Provider returned error", "metadata": {"raw": "too odd"}}}),
        "Provider returned error: too odd",
    ),
    "an error of vLLM under 200": (
        fails(200, {"object": "error", "message": "bad", "type": "BadRequestError", "code": 400}),
        "400: bad",
    ),
    "other JSON under 200": (Raw(b'{"type": "message", "content": []}'), "is not the Chat Completions API"),
    "HTML under 200": (
        Raw(b"<html>", 200, (("content-type", "text/html"),)),
        "not the Chat Completions API: it sent text/html",
    ),
    "a refusal": (Chats(beside={"refusal": "I cannot help with that."}), "refused to go on: I cannot help"),
    "a filter": (Chats("I e", finish="content_filter"), "the model refused to go on"),
}


@pytest.mark.parametrize(("fault", "words"), LASTING.values(), ids=LASTING)
def test_what_will_not_pass_is_asked_once(ask: Ask, fault: Answer, words: str) -> None:
    said = ask(fault, GOOD)
    assert isinstance(said.error, ModelRefused | ModelRejected)
    assert words in str(said.error)
    assert len(said.asked) == 1
    assert KEY not in str(said.error) + said.error.hint
    assert "ANTHROPIC" not in said.error.hint


LONG: dict[str, str] = {
    "OpenAI": "This model's maximum context length is 128000 tokens. However, your messages have 130000.",
    "OpenAI, newer": "Your input exceeds the context window of this model.",
    "Gemini": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "Mistral": "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum",
    "llama.cpp": "the request exceeds the available context size, try increasing it",
}


@pytest.mark.parametrize("words", LONG.values(), ids=LONG)
def test_a_prompt_that_is_too_long_is_known_as_one(ask: Ask, words: str) -> None:
    error = ask(fails(400, {"error": {"message": words, "type": "invalid_request_error"}})).error
    assert isinstance(error, PromptTooLong)


def test_a_reply_that_may_not_be_so_long_is_no_long_prompt(ask: Ask) -> None:
    words = "max_tokens is too large: 16000. This model supports at most 4096 completion tokens"
    error = ask(fails(400, {"error": {"message": words}})).error
    assert isinstance(error, ModelRefused)
    assert words in str(error)


TOOLLESS: dict[str, tuple[int, str]] = {
    "Ollama": (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
    "OpenRouter": (404, "No endpoints found that support tool use."),
    "vLLM": (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    "llama.cpp": (500, "tools param requires --jinja flag"),
    "Gemini": (400, "Function calling is not enabled for models/gemma-3"),
}


@pytest.mark.parametrize(("status", "words"), TOOLLESS.values(), ids=TOOLLESS)
def test_a_server_without_tools_is_asked_once_and_it_says_what_to_do(
    ask: Ask, status: int, words: str
) -> None:
    said = ask(fails(status, {"error": {"message": words}}), GOOD)
    assert isinstance(said.error, ModelRefused)
    assert words in str(said.error)
    assert said.error.hint.startswith("Every role needs tools: start the server with them, or give the tier")
    assert len(said.asked) == 1


IN_AN_HOUR = str(4_102_444_800_000)
WAITS: dict[str, Answer] = {
    "a header": fails(429, {"error": {"message": "slow"}}, retry_after="3600"),
    "milliseconds": fails(429, {"error": {"message": "slow"}}, retry_after_ms="3600000"),
    "Gemini": fails(429, [{"error": {"message": "slow", "details": [{"retryDelay": "3600s"}]}}]),
    "OpenRouter": fails(
        429, {"error": {"message": "slow", "metadata": {"headers": {"X-RateLimit-Reset": IN_AN_HOUR}}}}
    ),
    "in a body": fails(429, {"error": {"message": "slow", "metadata": {"headers": {"Retry-After": "3600"}}}}),
}


@pytest.mark.parametrize("answer", WAITS.values(), ids=WAITS)
def test_a_wait_is_heeded_wherever_it_is_said(ask: Ask, answer: Answer) -> None:
    said = ask(answer, GOOD)
    assert isinstance(said.error, ModelUnavailable)
    assert "it asks to wait" in str(said.error)
    assert len(said.asked) == 1


def test_a_server_that_stays_busy_is_given_up(ask: Ask) -> None:
    said = ask(fails(503, {"error": "busy"}), settings=QUICK.replace(retry=Retry(tries=2, base_seconds=0)))
    assert "503: busy (2 tries)" in str(said.error)


def test_the_address_of_the_provider_is_named_where_it_is_wrong(ask: Ask) -> None:
    error = ask(Raw(b"", 307, (("location", "http://other.test/v1"),))).error
    assert error is not None
    assert error.hint == f"check {PLACE}"
