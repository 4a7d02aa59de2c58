"""Bytes to events, and events to a turn."""

import json
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentflow.core.errors import ModelRejected
from agentflow.core.messages import Reply, Text, ToolCall
from agentflow.core.record import encode
from agentflow.model.reply import Assembly, read_events
from agentflow.model.wire import BadReply, ErrorEvent
from tests.support.messages_server import Plays, delta_event, sse, text, use

EVENTS = Plays((text("Größe 😀"), use("Edit", {"a": "é\n", "b": [1, None]}))).events("m")
RAW = b"".join(sse(event) for event in EVENTS)


def read(*chunks: bytes) -> list[dict[str, Any]]:
    async def source() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    async def run() -> list[dict[str, Any]]:
        return [event async for event in read_events(source())]

    return anyio.run(run)


def assembled(*given: dict[str, Any]) -> Reply:
    assembly = Assembly()
    for event in given:
        assembly.take(event)
    return assembly.to_reply()[0]


@given(st.lists(st.integers(0, len(RAW)), max_size=8))
def test_it_makes_no_difference_where_the_bytes_are_cut(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(RAW)]
    chunks = [RAW[start:end] for start, end in pairwise(places)]
    assert read(*chunks) == EVENTS


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda raw: raw.replace(b"\n", b"\r\n"), "other line ends"),
        (lambda raw: b": hello\n\n" + raw, "a comment"),
        (lambda raw: raw.replace(b"data: ", b"data:"), "no space"),
        (lambda raw: raw.replace(b"event: ", b"id: 7\nretry: 5\nevent: "), "other fields"),
    ],
)
def test_spellings_of_the_same_events(change: Callable[[bytes], bytes], why: str) -> None:
    assert read(change(RAW)) == EVENTS, why


def test_an_event_over_several_lines_is_one() -> None:
    assert read(b'data: {"type":\ndata: "ping"}\n\n') == [{"type": "ping"}]


def test_an_event_without_its_blank_line_has_not_come() -> None:
    assert read(RAW[:-1]) == EVENTS[:-1]


@pytest.mark.parametrize("raw", [b"data: {\n\n", b'data: "x"\n\n', b"data: \xff\n\n", b"data: []\n\n"])
def test_what_is_no_event_is_a_bad_reply(raw: bytes) -> None:
    with pytest.raises(BadReply):
        read(raw)


def test_an_endless_line_is_not_collected() -> None:
    with pytest.raises(BadReply, match="endless"):
        read(*[b"x" * 1024 * 1024] * 17)


def test_a_turn_is_put_together() -> None:
    assert assembled(*EVENTS).parts == (
        Text(text="Größe 😀"),
        ToolCall(id="toolu_1", name="Edit", input={"a": "é\n", "b": [1, None]}),
    )


@pytest.mark.parametrize("count", range(len(EVENTS)))
def test_no_beginning_of_a_turn_is_a_turn(count: int) -> None:
    with pytest.raises(BadReply):
        assembled(*EVENTS[:count])


def test_only_pings_and_the_unknown_bring_nothing_new() -> None:
    assembly = Assembly()
    told = [assembly.take(event) for event in (*EVENTS[:2], {"type": "new"}, *EVENTS[2:4])]
    assert told == ["", None, None, "", "Grö"]


def test_an_error_event_ends_the_reading() -> None:
    with pytest.raises(ErrorEvent) as caught:
        assembled(*EVENTS[:3], {"type": "error", "error": {"type": "api_error", "message": "x"}})
    assert caught.value.error["type"] == "api_error"


VALUES: st.SearchStrategy[object] = (
    st.just("\ud800")
    | st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=4)
    | st.just({})
    | st.just([])
)


@given(st.data())
def test_whatever_a_field_holds_it_is_a_turn_or_a_bad_reply(drawn: st.DataObject) -> None:
    mangled = json.loads(json.dumps(EVENTS))
    event = drawn.draw(st.sampled_from(mangled))
    place = drawn.draw(
        st.sampled_from([event, *(value for value in event.values() if isinstance(value, dict))])
    )
    place[drawn.draw(st.sampled_from(sorted(place)))] = drawn.draw(VALUES)
    try:
        encode(assembled(*mangled))
    except (BadReply, ErrorEvent, ModelRejected):
        pass  # each is answered


def test_many_small_pieces_do_not_take_ever_longer() -> None:
    pieces = [delta_event(0, {"type": "text_delta", "text": "word "}) for _ in range(50_000)]
    found = assembled(*EVENTS[:3], *pieces, *EVENTS[3:])
    assert isinstance(found.parts[0], Text)
    assert found.parts[0].text.count("word ") == len(pieces)
