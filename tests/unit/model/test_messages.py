"""How a run's requests are written down."""

import json
from datetime import date
from itertools import pairwise
from typing import Any

import pytest

from agentflow.core.errors import ConfigError
from agentflow.core.messages import Message, Request, Speaker, Text, ToolCall, ToolResult, ToolSpec, Usage
from agentflow.core.record import encode
from agentflow.model.endpoint import VENDOR, Endpoint, Secret, choose_endpoint
from agentflow.model.messages import MessagesApi
from agentflow.model.tiers import MODELS, add_cost, find_price, load_price_lists
from agentflow.parse import decode
from agentflow.settings import Price, Settings, choose_model_name, load_settings
from tests.support.records import a_request, user

TOOL = ToolSpec(name="Read", description="Read.", input_schema={"type": "object", "properties": {}})


def step(number: int, calls: int = 1) -> tuple[Message, Message]:
    """Return a reply with calls, and their results."""
    ids = [f"c{number}-{each}" for each in range(calls)]
    used = tuple(ToolCall(id=call, name="Read", input={"file_path": "ä.py"}) for call in ids)
    results = tuple(ToolResult(call_id=call, content="x = 1\n" * 20) for call in ids)
    return Message(speaker=Speaker.ASSISTANT, parts=used), Message(speaker=Speaker.USER, parts=results)


def request(messages: tuple[Message, ...], **changes: Any) -> Request:
    return a_request(*messages, **{"model": "m", "system": "You look.", "tools": (TOOL,), **changes})


def growing(steps: int, calls: int = 1) -> list[tuple[Message, ...]]:
    """Return the messages of each request of a run."""
    found: list[tuple[Message, ...]] = [(user("begin"),)]
    for number in range(steps):
        found.append((*found[-1], *step(number, calls)))
    return found


def plain(body: bytes) -> list[bytes]:
    """Return the bytes of each message of a body, without breakpoints."""
    messages = json.loads(body.replace(b',"cache_control":{"type":"ephemeral"}', b""))["messages"]
    return [encode(message) for message in messages]


def body_of(api: MessagesApi, asked: Request) -> bytes:
    return api.encode(asked, stream=False, room=lambda _: 100)


def marked(body: bytes) -> list[tuple[int, int]]:
    """Return message and block of each breakpoint in the messages of a body."""
    found = json.loads(body)["messages"]
    return [
        (place, number)
        for place, message in enumerate(found)
        for number, block in enumerate(message["content"])
        if "cache_control" in block
    ]


def test_what_was_sent_stays_byte_for_byte() -> None:
    api = MessagesApi()
    bodies = [body_of(api, request(messages)) for messages in growing(30)]
    for before, after in pairwise(bodies):
        kept = before.replace(b',"cache_control":{"type":"ephemeral"}', b"").removesuffix(b"]}")
        assert after.replace(b',"cache_control":{"type":"ephemeral"}', b"").startswith(kept)


def test_a_run_that_is_loaded_again_gives_the_same_bytes() -> None:
    messages = growing(25, calls=3)[-1]
    again = decode(tuple[Message, ...], encode(messages), "runs")
    assert again[0] is not messages[0]
    one = MessagesApi()
    for earlier in growing(25, calls=3):
        living = body_of(one, request(earlier))
    assert body_of(MessagesApi(), request(again)) == living == body_of(one, request(again))


def test_a_message_that_was_replaced_is_sent_anew() -> None:
    api = MessagesApi()
    body_of(api, request(growing(2)[-1]))
    shorter = (user("what came before, in short"), *step(9))
    assert plain(body_of(api, request(shorter))) == plain(body_of(MessagesApi(), request(shorter)))


def test_runs_side_by_side_do_not_mix() -> None:
    api = MessagesApi()
    for run in range(20):
        body_of(api, request((user(f"run {run}"),), run=run))
    for run in range(20):
        body = json.loads(body_of(api, request((user(f"run {run}"),), run=run, system=f"S{run}")))
        assert body["messages"][0]["content"][0]["text"] == f"run {run}"


@pytest.mark.parametrize(("calls", "expected"), [(1, 1), (9, 1), (10, 2), (30, 2)])
def test_a_breakpoint_stands_at_the_end_and_where_the_last_request_ended_if_that_is_far(
    calls: int, expected: int
) -> None:
    api = MessagesApi()
    for messages in growing(4, calls):
        body = body_of(api, request(messages))
    last = len(messages) - 1
    assert marked(body) == [(last - 2, calls - 1), (last, calls - 1)][-expected:]


@pytest.mark.parametrize("calls", [1, 5, 10, 25])
def test_each_request_finds_the_breakpoint_of_the_one_before(calls: int) -> None:
    api = MessagesApi()
    written: set[int] = set()
    for messages in growing(12, calls):
        body = body_of(api, request(messages))
        sizes = [len(message["content"]) for message in json.loads(body)["messages"]]
        points = [sum(sizes[:place]) + number for place, number in marked(body)]
        reads = {read for point in points for read in range(point - 19, point + 1)} & written
        assert not written or max(written) in reads
        assert len(points) <= 3
        written |= set(points)


def test_head_and_tail_hold_what_the_api_wants() -> None:
    body = json.loads(
        MessagesApi().encode(request((user("x"),), force="Read"), stream=True, room=lambda _: 77)
    )
    assert (body["model"], body["max_tokens"], body["stream"]) == ("m", 77, True)
    assert body["tool_choice"] == {"type": "tool", "name": "Read"}
    assert body["tools"] == [{"name": "Read", "description": "Read.", "input_schema": TOOL.input_schema}]
    assert not {"temperature", "top_p", "top_k", "metadata"} & set(body)


def test_without_a_prompt_the_tools_are_cached_and_without_tools_none_are_named() -> None:
    bare = json.loads(body_of(MessagesApi(), request((user("x"),), system="")))
    assert "system" not in bare
    assert bare["tools"][-1]["cache_control"] == {"type": "ephemeral"}
    assert "tools" not in json.loads(body_of(MessagesApi(), request((user("x"),), tools=())))


def test_what_the_api_refuses_is_left_out() -> None:
    empty = Message(speaker=Speaker.ASSISTANT, parts=())
    blank = Message(speaker=Speaker.ASSISTANT, parts=(Text(text=" \n\t"),))
    body = json.loads(body_of(MessagesApi(), request((user("a"), empty, user("b"), blank, user("c")))))
    assert [message["content"][0]["text"] for message in body["messages"]] == ["a", "b", "c"]


def test_each_shipped_price_has_a_date_and_a_source() -> None:
    for each in load_price_lists():
        assert each.source.startswith("https://")
        assert each.as_of <= date(2026, 12, 31)
        assert each.prices
    assert all(find_price(model, "anthropic", Settings()) for model in MODELS.values())


def test_a_price_is_of_the_id_alone() -> None:
    own = Price(input=1, output=2, cache_read=0, cache_write=0)
    mine = Settings(prices={"claude-opus-5-5": own})
    assert find_price("claude-opus-5-5", "anthropic", mine) == own
    assert find_price("claude-opus-9", "anthropic", mine) is None
    assert find_price("claude-sonnet-5-5", "bedrock", mine) is None


@pytest.mark.parametrize(("prompt", "dollars"), [(100_000, 0.01), (100_001, 0.0500005)])
def test_a_long_prompt_has_a_price_of_its_own(prompt: int, dollars: float) -> None:
    haiku = find_price("claude-haiku-5-5", "anthropic", Settings())
    assert add_cost(Usage(input=prompt), haiku).cost_usd == pytest.approx(dollars)


def test_a_cost_is_known_only_with_a_price() -> None:
    usage = Usage(input=1_000_000, output=2_000_000, cache_read=10, cache_write=20)
    price = Price(input=3, output=15, cache_read=0.3, cache_write=3.75)
    assert add_cost(usage, price).cost_usd == pytest.approx(33.000078)
    assert add_cost(usage, None).cost_usd is None


@pytest.mark.parametrize(
    ("environ", "address", "expected"),
    [
        ({}, None, VENDOR),
        ({}, "http://127.0.0.1:1/", "http://127.0.0.1:1"),
        ({"ANTHROPIC_BASE_URL": "https://gateway.test/x"}, "http://127.0.0.1:1", "https://gateway.test/x"),
        ({"ANTHROPIC_BASE_URL": ""}, None, VENDOR),
    ],
)
def test_the_environment_names_the_endpoint_before_the_settings(
    environ: dict[str, str], address: str | None, expected: str
) -> None:
    assert choose_endpoint(environ, Settings(endpoint=address)).address == expected


@pytest.mark.parametrize("address", ["ftp://x.test", "x.test", "http://", "file:///etc/passwd"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="http"):
        choose_endpoint({"ANTHROPIC_BASE_URL": address}, Settings())


@pytest.mark.parametrize("key", ["a b", "a\nb", "schlüssel", "a\x00b"])
def test_a_key_that_is_none_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY") as caught:
        choose_endpoint({"ANTHROPIC_API_KEY": key}, Settings())
    assert key not in str(caught.value)


def test_a_token_alone_is_a_bearer_token() -> None:
    assert choose_endpoint({"ANTHROPIC_AUTH_TOKEN": " tok \n"}, Settings()).headers == {
        "authorization": "Bearer tok"
    }


def test_no_print_shows_a_key() -> None:
    shown = Endpoint(address="http://x.test", key=Secret("sk-1"), token=Secret("tok-2"))
    assert "sk-1" not in f"{shown!r} {shown} {shown.key!s}"
    assert "tok-2" not in f"{shown!r} {shown}"


@pytest.mark.parametrize(
    ("option", "environ", "settings", "expected"),
    [
        (None, {}, Settings(), "repair"),
        (None, {"ANTHROPIC_API_KEY": "k"}, Settings(), "anthropic"),
        (None, {"ANTHROPIC_AUTH_TOKEN": "k"}, Settings(), "anthropic"),
        (None, {"ANTHROPIC_BASE_URL": "http://x.test"}, Settings(), "anthropic"),
        (None, {"ANTHROPIC_API_KEY": ""}, Settings(), "repair"),
        (None, {}, Settings(endpoint="http://x.test"), "anthropic"),
        (None, {"ANTHROPIC_API_KEY": "k"}, Settings(model="repair"), "repair"),
        (None, {"AGENTFLOW_MODEL": "vertex"}, Settings(model="repair"), "vertex"),
        ("script:x", {"AGENTFLOW_MODEL": "vertex"}, Settings(), "script:x"),
    ],
)
def test_the_model_is_the_first_that_is_named(
    option: str | None, environ: dict[str, str], settings: Settings, expected: str
) -> None:
    assert choose_model_name(option, settings, environ) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("transport: carrier", "transport"),
        ("max_tokens: 0", "max_tokens"),
        ("retries: 3", "retries"),
        ("retry: {tries: 0}", "retry.tries"),
        ("deadlines: {idle: 0}", "deadlines.idle"),
        ("prices: {m: {input: 1}}", "prices"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Any, text: str, words: str) -> None:
    path = tmp_path / ".config/agentflow/config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(ConfigError, match=words):
        load_settings({"AGENTFLOW_HOME": str(tmp_path)})


def test_prices_and_retries_may_be_fractions(tmp_path: Any) -> None:
    path = tmp_path / ".config/agentflow/config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(
        "prices: {m: {input: 3, output: 15, cache_read: 0.30, cache_write: 3.75}}\n"
        "retry: {base_seconds: 0.5}\n"
    )
    found = load_settings({"AGENTFLOW_HOME": str(tmp_path)})
    assert found.prices["m"].cache_read == 0.3
    assert (found.retry.base_seconds, found.retry.tries) == (0.5, 9)
