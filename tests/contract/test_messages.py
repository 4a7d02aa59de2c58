"""One suite for both byte sources, streamed and not: the same requests, the same accepted turns."""

import json
import tracemalloc
import zlib
from typing import Any

import pytest

from agentflow.core.errors import ModelRefused, ModelRejected, ModelUnavailable
from agentflow.core.events import Warned
from agentflow.core.messages import (
    Message,
    ServerToolPart,
    Speaker,
    Stop,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)
from agentflow.settings import Price, Retry
from tests.contract.conftest import KEY, QUICK, Ask, Line, request
from tests.support.live import meaning
from tests.support.messages_server import Answer, Asked, Plays, Raw, refuses, searched, text, use

EDIT = use("Edit", {"a": "größer", "n": 1, "deep": {"b": [1, 2.5, None]}}, "toolu_7")
GOOD = Plays((text("Done."),))
CALLS = Plays((text("I edit."), EDIT))


def user(*said: str) -> Message:
    return Message(speaker=Speaker.USER, parts=tuple(Text(text=each) for each in said))


def test_a_turn_arrives_whole(ask: Ask) -> None:
    said = ask(CALLS)
    assert said.reply.parts == (
        Text(text="I edit."),
        ToolCall(id="toolu_7", name="Edit", input=EDIT["input"]),
    )
    assert said.reply.stop is Stop.TOOL_USE
    assert said.reply.usage == Usage(input=10, output=5, cache_read=3, cache_write=2)
    assert said.reply.model == "model-1"
    assert said.events == []


def test_a_model_without_tools_is_offered_none_and_not_forced(ask: Ask) -> None:
    plain, other = (request(user("x"), model=model, force="Submit") for model in ("plain", "other"))
    said = ask(GOOD, GOOD, requests=(plain, other), settings=QUICK.replace(without_tools=("plain",)))
    first, second = (asked.body for asked in said.asked)
    assert not {"tools", "tool_choice"} & set(first)
    assert {"tools", "tool_choice"} <= set(second)


def test_the_request_says_what_the_api_wants(ask: Ask, line: Line) -> None:
    call = ToolCall(id="c1", name="Edit", input={"a": "x"})
    failed = ToolResult(call_id="c1", content="no such file", is_error=True)
    messages = (
        user("begin"),
        Message(speaker=Speaker.ASSISTANT, parts=(Text(text=" \n"), call)),
        Message(speaker=Speaker.USER, parts=(failed,)),
    )
    said = ask(GOOD, requests=(request(*messages, force="Submit"),))
    (asked,) = said.asked
    cached = {"cache_control": {"type": "ephemeral"}}
    assert asked.path == "/v1/messages"
    tools = [tool["name"] for tool in asked.body.pop("tools")]
    assert tools == ["Edit", "Submit"]
    expected: dict[str, Any] = {
        "model": "model-1",
        "max_tokens": 16_000,
        "system": [{"type": "text", "text": "You mend.", **cached}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "begin"}]},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c1", "name": "Edit", "input": {"a": "x"}}],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "c1",
                        "content": "no such file",
                        "is_error": True,
                        **cached,
                    }
                ],
            },
        ],
        "tool_choice": {"type": "tool", "name": "Submit"},
        **({"stream": True} if line.stream else {}),
    }
    assert {**asked.body, "tools": None} == {**expected, "tools": None}


def test_the_headers_carry_version_and_key(ask: Ask) -> None:
    (asked,) = ask(GOOD).asked
    assert asked.headers["anthropic-version"] == "2026-10-21"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.headers["x-api-key"] == KEY
    assert asked.headers["content-type"] == "application/json"


def test_a_server_that_needs_no_key_gets_none(ask: Ask) -> None:
    said = ask(GOOD, key=None)
    assert said.reply.parts == (Text(text="Done."),)
    assert not {"authorization", "x-api-key"} & set(said.asked[0].headers)


def test_text_is_told_as_it_comes_only_when_it_is_streamed(ask: Ask, line: Line) -> None:
    said = ask(CALLS)
    assert said.deltas == (["I e", "dit."] if line.stream else [])
    assert ("stream" in said.asked[0].body) is line.stream


def test_the_history_only_grows(ask: Ask) -> None:
    first = user("begin")
    second = (Message(speaker=Speaker.ASSISTANT, parts=(Text(text="Done."),)), user("go on"))
    said = ask(GOOD, requests=(request(first), request(first, *second)))
    before, after = ([meaning(message) for message in asked.body["messages"]] for asked in said.asked)
    assert after[: len(before)] == before
    assert len(after) == 3


def test_a_thought_goes_back_unchanged(ask: Ask) -> None:
    thinking = {"type": "thinking", "thinking": "hm, so", "signature": "abc"}
    said = ask(Plays((thinking, EDIT)))
    thought = said.reply.parts[0]
    assert thought == Thought(block=thinking)
    assistant = Message(speaker=Speaker.ASSISTANT, parts=said.reply.parts)
    result = Message(speaker=Speaker.USER, parts=(ToolResult(call_id="toolu_7", content="ok"),))
    again = ask(GOOD, requests=(request(user("begin"), assistant, result),))
    assert again.asked[0].body["messages"][1]["content"] == [thinking, EDIT]


CITED = {
    **text("It waits."),
    "citations": [
        {
            "type": "web_search_result_location",
            "url": "https://a.test/",
            "encrypted_index": "Eo8=",
            "title": None,
        }
    ],
}


def test_a_search_of_the_provider_s_goes_back_unchanged(ask: Ask) -> None:
    blocks = (text("I look."), *searched('größe of a "pool"', "https://a.test/"), CITED, EDIT)
    said = ask(Plays(blocks))
    call, result = said.reply.parts[1:3]
    assert isinstance(call, ServerToolPart)
    assert isinstance(result, ServerToolPart)
    assert (call.tool, call.said, call.is_result) == ("WebSearch", 'größe of a "pool"', False)
    assert (result.call_id, result.said, result.is_error) == (call.call_id, "1 result", False)
    assistant = Message(speaker=Speaker.ASSISTANT, parts=said.reply.parts)
    done = Message(speaker=Speaker.USER, parts=(ToolResult(call_id="toolu_7", content="ok"),))
    again = ask(GOOD, requests=(request(user("begin"), assistant, done),))
    assert again.asked[0].body["messages"][1]["content"] == list(blocks)


def test_a_search_that_came_to_nothing_is_told_and_one_without_a_result_is_left_out(ask: Ask) -> None:
    refused = searched("a", call_id="srvtoolu_1", error="max_uses_exceeded")
    said = ask(Plays((*refused, searched("b", call_id="srvtoolu_2")[0]), stop="end_turn"))
    (_, result) = said.reply.parts
    assert isinstance(result, ServerToolPart)
    assert (result.said, result.is_error) == ("max_uses_exceeded", True)


def test_a_paused_turn_is_asked_to_go_on_as_it_is(ask: Ask) -> None:
    call, result = searched("a", "https://a.test/")
    said = ask(Plays((text("I look."), call), stop="pause_turn"))
    assert said.reply.stop is Stop.PAUSED
    parts = Message(speaker=Speaker.ASSISTANT, parts=said.reply.parts)
    (asked,) = ask(Plays((result, CITED)), requests=(request(user("begin"), parts),)).asked
    begun, half = asked.body["messages"]
    assert half == {"role": "assistant", "content": [text("I look."), call]}
    assert "cache_control" in begun["content"][-1]


def test_the_search_is_offered_as_the_api_spells_it(ask: Ask) -> None:
    tool = ToolSpec(name="WebSearch", description="Search.", input_schema={}, by_provider=True)
    (asked,) = ask(GOOD, requests=(request(tools=(tool,)),)).asked
    assert asked.body["tools"] == [{"type": "web_search_20250305", "name": "web_search", "max_uses": 5}]


def test_a_search_costs_what_the_user_says_it_does(ask: Ask) -> None:
    price = Price(input=1, output=10, cache_read=0.1, cache_write=1.25)
    for each, expected in ((None, None), (0.01, 0.0100628)):
        settings = QUICK.replace(prices={"model-1": price.replace(search=each)})
        said = ask(Plays((*searched("a", "https://a.test/"), text("Done."))), settings=settings)
        assert said.reply.usage.cost_usd == expected


def test_a_known_price_gives_a_cost_and_an_unknown_one_none(ask: Ask) -> None:
    price = Price(input=1, output=10, cache_read=0.1, cache_write=1.25)
    assert ask(GOOD, settings=QUICK.replace(prices={"model-1": price})).reply.usage.cost_usd == pytest.approx(
        (10 + 50 + 0.3 + 2.5) / 1_000_000
    )
    assert ask(GOOD, settings=QUICK.replace(prices={"model-2": price})).reply.usage.cost_usd is None


PASSING: dict[str, tuple[Answer, ...]] = {
    "429": (refuses(429, "rate_limit_error", retry_after="0"),),
    "529 twice": (refuses(529, "overloaded_error"), refuses(529, "overloaded_error")),
    "500 in HTML": (Raw(b"<html>", 500, (("content-type", "text/html"),)),),
    "502, 503, 408, 409, 504": tuple(refuses(status) for status in (502, 503, 408, 409, 504)),
    "an error event under 200": (
        Raw(b'{"type":"error","error":{"type":"overloaded_error","message":"busy"}}'),
    ),
    "JSON that is cut": (Raw(b'{"type":"message","content":[{"ty'),),
    "bytes that are no text": (Raw(b'{"type":"message","x":"\xff"}'),),
    "a reply without its usage": (Raw(json.dumps(Plays((EDIT,), usage={}).message("m")).encode()),),
}


@pytest.mark.parametrize("faults", PASSING.values(), ids=PASSING)
def test_what_may_pass_is_tried_again(ask: Ask, faults: tuple[Answer, ...]) -> None:
    said = ask(*faults, GOOD)
    assert said.reply.parts == (Text(text="Done."),)
    assert len(said.asked) == len(faults) + 1
    assert len({asked.raw for asked in said.asked}) == 1
    assert [event.attempt for event in said.retried] == list(range(1, len(faults) + 1))
    assert all(event.run == 1 and event.reason for event in said.retried)


LASTING: dict[str, tuple[Answer, str]] = {
    "400": (refuses(400, "invalid_request_error", "messages: too odd"), "400: messages: too odd"),
    "401": (refuses(401, "authentication_error", f"invalid key {KEY}"), "401: invalid key [redacted]"),
    "403": (refuses(403, "permission_error"), "403"),
    "404": (refuses(404, "not_found_error", "model: x"), "404: model: x"),
    "413": (refuses(413, "request_too_large"), "413"),
    "HTML under 200": (
        Raw(b"<html>hello</html>", 200, (("content-type", "text/html"),)),
        "not the Messages API: it sent text/html",
    ),
    "other JSON under 200": (Raw(b'{"choices": []}'), "not the Messages API"),
    "a wrong key as an event under 200": (
        Raw(b'{"type":"error","error":{"type":"authentication_error","message":"no"}}'),
        "401",
    ),
    "a redirect": (
        Raw(b"", 307, (("location", "http://other.test:81/v1/messages"),)),
        "redirects to other.test:81",
    ),
    "a redirect without an aim": (Raw(b"", 302, ()), "redirects; no redirect is followed"),
    "a refusal": (Plays((), stop="refusal"), "refused"),
    "a full window": (Plays((EDIT,), stop="model_context_window_exceeded"), "context window"),
    "an ending nobody knows": (Plays((EDIT,), stop="something_new"), "something_new"),
}


@pytest.mark.parametrize(("fault", "words"), LASTING.values(), ids=LASTING)
def test_what_will_not_pass_is_asked_once(ask: Ask, fault: Answer, words: str) -> None:
    said = ask(fault, GOOD)
    assert isinstance(said.error, ModelRefused | ModelRejected)
    assert words in str(said.error)
    assert len(said.asked) == 1
    assert KEY not in str(said.error) + said.error.hint


def test_a_redirect_is_not_followed_even_to_the_same_machine(ask: Ask) -> None:
    elsewhere = "/elsewhere"

    def policy(asked: Asked) -> Answer:
        return GOOD if asked.path == elsewhere else Raw(b"", 307, (("location", elsewhere),))

    said = ask(policy=policy)
    assert isinstance(said.error, ModelRefused | ModelRejected)
    assert [asked.path for asked in said.asked] == ["/v1/messages"]


def test_a_server_that_stays_busy_is_given_up(ask: Ask) -> None:
    said = ask(refuses(529, "overloaded_error", "busy"))
    assert isinstance(said.error, ModelUnavailable)
    assert "529: busy (6 tries)" in str(said.error)
    assert len(said.asked) == 6


def test_a_wait_of_an_hour_parks_the_task(ask: Ask) -> None:
    said = ask(refuses(429, "rate_limit_error", retry_after="3600"))
    assert isinstance(said.error, ModelUnavailable)
    assert "3600 seconds" in str(said.error)
    assert len(said.asked) == 1


def bomb() -> bytes:
    """Return 256 MiB in a few hundred kilobytes: one packed block time and again, without an end."""
    packing = zlib.compressobj(wbits=31)
    head = packing.compress(b" " * 2**20) + packing.flush(zlib.Z_FULL_FLUSH)
    packing = zlib.compressobj(wbits=-15)
    block = packing.compress(b" " * 2**20) + packing.flush(zlib.Z_FULL_FLUSH)
    return head + block * 255


JSON = ("content-type", "application/json")
TOO_LARGE = {
    "a reply": (Raw(b'{"type":"message","x":"' + b"x" * 2**26, headers=(JSON,)), "longer than 32 MiB"),
    "a packed reply": (Raw(bomb(), headers=(JSON, ("content-encoding", "gzip"))), "longer than 32 MiB"),
    "a refusal": (Raw(b"x" * 2**26, status=400, headers=(JSON,)), "refused this request (400)"),
    "a packed refusal": (
        Raw(bomb(), status=400, headers=(JSON, ("content-encoding", "gzip"))),
        "refused this request (400)",
    ),
    "packed in another way": (
        Raw(b"x" * 1000, headers=(JSON, ("content-encoding", "zstd"))),
        "cannot be undone",
    ),
}


@pytest.mark.parametrize(("fault", "words"), TOO_LARGE.values(), ids=TOO_LARGE)
def test_what_is_too_large_is_not_collected(ask: Ask, line: Line, fault: Answer, words: str) -> None:
    line.connect("http://127.0.0.1:1")  # the SDK is imported before anything is measured
    tracemalloc.start()
    try:
        said = ask(fault, settings=QUICK.replace(retry=Retry(tries=1)))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert words in str(said.error)
    assert most < 120 * 2**20


NOBODY = {
    "here": ("http://127.0.0.1:9", ("nothing listens at 127.0.0.1:9", "3 tries"), "start the server"),
    "here, by name": (
        "http://localhost:9",
        ("nothing listens at localhost:9", "3 tries"),
        "start the server",
    ),
    "an unknown name": (
        "http://nobody.invalid:9",
        ("the name of nobody.invalid:9 cannot be resolved", "3 tries"),
        "check the network",
    ),
}


@pytest.mark.parametrize(("address", "words", "advice"), NOBODY.values(), ids=NOBODY)
def test_nobody_there_is_found_out_soon(ask: Ask, address: str, words: tuple[str, ...], advice: str) -> None:
    waiting = QUICK.replace(retry=Retry(tries=9, base_seconds=2, max_seconds=60))
    said = ask(GOOD, address=address, settings=waiting)
    assert sum(each.seconds for each in said.retried) <= 3
    assert isinstance(said.error, ModelUnavailable)
    assert said.error.is_settled
    assert all(word in str(said.error) for word in words)
    assert advice in said.error.hint
    assert "ANTHROPIC_BASE_URL" in said.error.hint
    assert len(said.retried) == 2


UNFINISHED = {
    "max_tokens": ("max_tokens", Stop.MAX_TOKENS),
    "end_turn": ("end_turn", Stop.END_TURN),
    "pause_turn": ("pause_turn", Stop.PAUSED),
}


@pytest.mark.parametrize(("word", "stop"), UNFINISHED.values(), ids=UNFINISHED)
def test_no_call_can_be_made_from_a_turn_that_did_not_end_for_it(ask: Ask, word: str, stop: Stop) -> None:
    said = ask(Plays((text("I edit."), EDIT), stop=word))
    call = said.reply.parts[1]
    assert isinstance(call, ToolCall)
    assert (call.id, call.input, said.reply.stop) == ("toolu_7", {}, stop)
    assert call.problem is not None
    assert word in call.problem


def test_a_block_that_nobody_knows_is_skipped_and_told(ask: Ask) -> None:
    said = ask(Plays((text("Done."), {"type": "odd_block", "thinking": ""})))
    assert said.reply.parts == (Text(text="Done."),)
    (warned,) = said.events
    assert isinstance(warned, Warned)
    assert "odd_block" in warned.message


@pytest.mark.parametrize("call_id", ["../../etc/x", ".hidden", "a/b", "", "x" * 300])
def test_an_id_that_could_lead_elsewhere_is_no_turn(ask: Ask, call_id: str) -> None:
    said = ask(Plays((use("Edit", {}, call_id),)))
    assert isinstance(said.error, ModelUnavailable)
    assert "usable name and id" in str(said.error)
    assert len(said.asked) == 3


def test_two_calls_with_one_id_are_no_turn(ask: Ask) -> None:
    said = ask(Plays((use("Edit", {}, "a"), use("Edit", {}, "a"))))
    assert "same id" in str(said.error)
