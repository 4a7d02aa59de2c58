"""What a streamed reply can go through, on each byte source."""

import json
import re
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agentflow.core.errors import ModelRefused, ModelUnavailable
from agentflow.core.events import Warned
from agentflow.core.messages import Text, ToolCall, Usage
from agentflow.settings import Retry, Settings
from tests.contract.conftest import QUICK, Ask, Line
from tests.support.messages_server import Event, Plays, Raw, Stream, delta_event, sse, text, use

GOOD = Plays((text("Done."),))
WHOLE = tuple(Plays((text("I edit."), use("Edit", {"a": "b" * 40}))).events("model-1"))
SIZE = sum(len(sse(event)) for event in WHOLE)


@pytest.fixture(params=[Line("direct", True), Line("sdk", True)], ids=["direct", "sdk"])
def line(request: pytest.FixtureRequest) -> Line:
    found: Line = request.param
    return found


def without(kind: str) -> tuple[Event, ...]:
    return tuple(event for event in WHOLE if event["type"] != kind)


def changed(kind: str, change: Callable[[Event], Event | bytes]) -> tuple[Event | bytes, ...]:
    return tuple(change(event) if event["type"] == kind else event for event in WHOLE)


BROKEN: dict[str, Stream] = {
    "an end before message_stop": Stream(without("message_stop")),
    "an end inside tool JSON": Stream(WHOLE, cut=SIZE * 2 // 3),
    "an end at once": Stream(()),
    "a reset in mid-stream": Stream(WHOLE[:6], reset=True),
    "bad UTF-8": Stream((*WHOLE[:3], b'event: x\ndata: {"type":"ping","x":"\xff"}\n\n', *WHOLE[3:])),
    "a line that is no JSON": Stream((*WHOLE[:3], b"data: {oops\n\n", *WHOLE[3:])),
    "an event that is not an object": Stream((b"data: 17\n\n", *WHOLE)),
    "a very deep event": Stream((b"data: " + b"[" * 100_000 + b"\n\n", *WHOLE)),
    "a delta for a block that is not there": Stream(
        (*WHOLE[:3], delta_event(9, {"type": "text_delta", "text": "x"}), *WHOLE[3:])
    ),
    "an index that is no number": Stream(
        changed("content_block_start", lambda event: {**event, "index": "0"})
    ),
    "a block that begins twice": Stream((*WHOLE[:3], WHOLE[2], *WHOLE[3:])),
    "a block that does not end": Stream(without("content_block_stop")),
    "no usage": Stream(tuple(Plays((text("x"),), usage={}).events("m"))),
    "no stop reason": Stream(without("message_delta")),
    "a delta without its text": Stream((*WHOLE[:3], delta_event(0, {"type": "text_delta"}), *WHOLE[3:])),
    "an overloaded event": Stream(
        (*WHOLE[:4], {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})
    ),
}


@pytest.mark.parametrize("fault", BROKEN.values(), ids=BROKEN)
def test_a_broken_stream_is_no_turn_and_is_asked_for_again(ask: Ask, fault: Stream) -> None:
    said = ask(fault, GOOD)
    assert said.reply.parts == (Text(text="Done."),)
    assert len(said.asked) == 2
    assert len(said.retried) == 1
    assert not re.search(r"(Error|Exception|Resource)\b", said.retried[0].reason)  # words, no name of a class


@pytest.mark.parametrize("cut", range(0, SIZE, SIZE // 25))
def test_a_stream_cut_anywhere_is_never_a_turn(ask: Ask, cut: int) -> None:
    said = ask(Stream(WHOLE, cut=cut))
    assert isinstance(said.error, ModelUnavailable)
    assert said.replies == []
    assert len(said.asked) == 3


PIECES = {
    "text": {"type": "text_delta", "text": "x" * 2**20},
    "thinking": {"type": "thinking_delta", "thinking": "x" * 2**20},
    "tool input": {"type": "input_json_delta", "partial_json": "x" * 2**20},
    "what nobody knows": {"type": "new_delta", "new": "x" * 2**20},
}
ENDLESS: dict[str, bytes] = {
    **{name: sse(delta_event(0, piece)) for name, piece in PIECES.items()},
    "pings": sse({"type": "ping"}) * 2**15,
    "one line": b"x" * 2**20,
    "one event": b"data: " + b" " * 2**20 + b"\n",
}


@pytest.mark.parametrize("piece", ENDLESS.values(), ids=ENDLESS)
def test_a_stream_without_end_is_left_after_a_bounded_number_of_bytes(
    ask: Ask, line: Line, piece: bytes
) -> None:
    sent: list[int] = []

    def counted() -> Iterator[Event | bytes]:
        yield from WHOLE[:3]
        for _ in range(1000):
            sent.append(len(piece))
            yield piece

    line.connect("http://127.0.0.1:1")  # the SDK is imported before anything is measured
    tracemalloc.start()
    try:
        said = ask(policy=lambda _: Stream(counted()), settings=patient_for(2).replace(retry=Retry(tries=1)))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(said.error, ModelUnavailable)
    assert sum(sent) / len(said.asked) < 96 * 2**20
    assert most < 200 * 2**20


def test_a_reply_of_a_megabyte_is_none_too_many(ask: Ask) -> None:
    long = "word " * 200_000
    assert ask(Plays((text(long),))).reply.parts == (Text(text=long),)


def test_what_a_failed_try_used_is_counted(ask: Ask) -> None:
    said = ask(Stream(WHOLE[:6]), GOOD)
    assert said.reply.usage == Usage(input=20, output=6, cache_read=6, cache_write=4)


def test_a_wrong_request_is_not_sent_again_when_the_stream_says_so(ask: Ask) -> None:
    error = {"type": "invalid_request_error", "message": "too long"}
    said = ask(Stream((*WHOLE[:4], {"type": "error", "error": error})), GOOD)
    assert isinstance(said.error, ModelRefused)
    assert len(said.asked) == 1


PINGS = tuple([{"type": "ping"}] * 40)


def patient_for(idle: float) -> Settings:
    return QUICK.replace(deadlines=QUICK.deadlines.replace(idle=idle))


@pytest.mark.parametrize(
    "fault",
    [
        Stream((*WHOLE[:4], *PINGS), every=0.05),
        Stream(WHOLE[:1] + PINGS, every=0.05),
        Stream(PINGS, every=0.05),
    ],
    ids=["after text", "after the start", "from the start"],
)
def test_pings_are_no_progress(ask: Ask, fault: Stream) -> None:
    begin = time.monotonic()
    said = ask(fault, GOOD, settings=patient_for(0.4))
    assert said.reply.parts == (Text(text="Done."),)
    assert time.monotonic() - begin >= 0.4
    assert "nothing new" in said.retried[0].reason


def test_a_stream_that_always_goes_on_ends_with_its_time(ask: Ask) -> None:
    endless = Stream((*WHOLE[:3], *[WHOLE[3]] * 1000), every=0.02)
    patience = QUICK.deadlines.replace(total=1)
    begin = time.monotonic()
    assert ask(endless, GOOD, settings=QUICK.replace(deadlines=patience)).reply.parts == (Text(text="Done."),)
    assert time.monotonic() - begin < 10


def test_a_slow_stream_that_goes_on_is_waited_for(ask: Ask) -> None:
    said = ask(Stream(WHOLE, every=0.25), settings=patient_for(2))
    assert isinstance(said.reply.parts[1], ToolCall)
    assert said.retried == []


@pytest.mark.parametrize(
    "after",
    [Stream(WHOLE, reset=True), Stream((*WHOLE, *PINGS), every=0.02), Stream((*WHOLE, b"data: {oops\n\n"))],
    ids=["a reset", "pings", "rubbish"],
)
def test_nothing_after_the_final_event_takes_the_turn_back(ask: Ask, after: Stream) -> None:
    said = ask(after)
    assert isinstance(said.reply.parts[1], ToolCall)
    assert said.reply.parts[1].input == {"a": "b" * 40}
    assert len(said.asked) == 1


def test_what_nobody_knows_is_skipped_and_told(ask: Ask) -> None:
    strange = (
        {"type": "weather"},
        delta_event(0, {"type": "odd_delta"}),
        b": a comment\n\n",
        b"event: x\n\n",
    )
    said = ask(Stream((*WHOLE[:3], *strange, *WHOLE[3:])))
    assert said.reply.parts[0] == Text(text="I edit.")
    (warned,) = said.events
    assert isinstance(warned, Warned)
    assert "odd_delta, weather" in warned.message


def streamed_call(*pieces: str) -> tuple[Event, ...]:
    head, tail = (GOOD.events("m")[:2], Plays((use("Edit", {}),)).events("m")[-2:])
    start: dict[str, Any] = use("Bad", {}, "toolu_bad")
    return (
        *head,
        {"type": "content_block_start", "index": 0, "content_block": use("Edit", {}, "toolu_good")},
        delta_event(0, {"type": "input_json_delta", "partial_json": '{"a": "fine"}'}),
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": start},
        *(delta_event(1, {"type": "input_json_delta", "partial_json": piece}) for piece in pieces),
        {"type": "content_block_stop", "index": 1},
        *tail,
    )


MALFORMED = {
    "half an object": ('{"a": "b',),
    "no object": ("[1, 2]",),
    "a bare word": ("oops",),
    "very deep": ("[" * 100_000,),
    "a lone surrogate": ('{"a": "\\ud800"}',),
    "two objects": ('{"a": 1}', '{"b": 2}'),
}


@pytest.mark.parametrize("pieces", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_call_is_marked_and_the_good_one_beside_it_stays(
    ask: Ask, pieces: tuple[str, ...]
) -> None:
    good, bad = ask(Stream(streamed_call(*pieces))).reply.parts
    assert good == ToolCall(id="toolu_good", name="Edit", input={"a": "fine"})
    assert isinstance(bad, ToolCall)
    assert (bad.id, bad.name, bad.input) == ("toolu_bad", "Bad", {})
    assert bad.problem


@pytest.mark.parametrize(
    ("pieces", "given"),
    [
        ((), {}),
        (("",), {}),
        (('{"a":', ' "\\ud83d', '\\ude00"}'), {"a": "😀"}),
        (('{"a": "\ud83d', '\ude00"}'), {"a": "😀"}),
    ],
    ids=["none", "empty", "an escaped pair in two pieces", "a pair in two pieces"],
)
def test_the_pieces_of_an_input_are_joined(ask: Ask, pieces: tuple[str, ...], given: dict[str, Any]) -> None:
    _, call = ask(Stream(streamed_call(*pieces))).reply.parts
    assert call == ToolCall(id="toolu_bad", name="Bad", input=given)


def test_a_text_that_is_half_a_character_is_replaced(ask: Ask) -> None:
    said = ask(Stream(tuple(Plays((text("a\ud800"),)).events("m"))))
    assert said.reply.parts == (Text(text="a\ufffd"),)


def test_crlf_and_one_byte_at_a_time_make_no_difference(ask: Ask) -> None:
    raw = b"".join(sse(event) for event in WHOLE[2:5]).replace(b"\n", b"\r\n")
    said = ask(Stream((*WHOLE[:2], *(raw[place : place + 1] for place in range(len(raw))), *WHOLE[5:])))
    assert said.reply.parts[0] == Text(text="I edit.")


def test_a_whole_reply_to_a_request_for_a_stream_is_taken(ask: Ask) -> None:
    said = ask(Raw(json.dumps(GOOD.message("m")).encode()))
    assert said.reply.parts == (Text(text="Done."),)
