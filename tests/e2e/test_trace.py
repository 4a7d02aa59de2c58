"""`events.jsonl` is the trace: spans nest, and what they took adds up."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

import pytest

from tests.support import play
from tests.support.repo import NewRepo


class Span(NamedTuple):
    kind: str
    name: str
    begin: float
    end: float
    seconds: float | None
    parent: str


Event = dict[str, Any]
KINDS = ("Task", "Phase", "Run", "Tool")
AROUND = {"Phase": "Task", "Run": "Phase", "Turn": "Run", "Tool": "Turn", "Model": "Turn"}


def name_of(kind: str, event: Event) -> str:
    """Return what a span is called, from any event in it."""
    match kind:
        case "Phase":
            return str(event["phase"])
        case "Run":
            return f"run {event['run']}"
        case "Turn":
            return f"run {event['run']} turn {event['turn']}"
        case "Tool":
            return str(event["call_id"])
        case _:
            return kind


def clock(event: Event) -> float:
    return datetime.fromisoformat(event["at"]).timestamp()


def spans(events: list[Event]) -> list[Span]:
    """Return the spans of a trace; a phase holds the runs that begin in it, all else names what it is in."""
    return [*paired(events), *turns(events)]


def paired(events: list[Event]) -> Iterator[Span]:
    """Yield what has a line for its begin and one for its end."""
    begun: dict[str, Event] = {}
    phase = ""
    for event in events:
        kind = next((kind for kind in KINDS if event["type"].startswith(kind)), "")
        if event["type"] == "PhaseStarted":
            phase = event["phase"]
        if event["type"] == f"{kind}Started":
            begun[name_of(kind, event)] = event
        if event["type"] in (f"{kind}Ended", f"{kind}Finished"):
            name = name_of(kind, event)
            parent = phase if kind == "Run" else name_of(AROUND.get(kind, "Task"), event)
            yield Span(kind, name, clock(begun.pop(name)), clock(event), event["seconds"], parent)
    assert begun == {}


def turns(events: list[Event]) -> Iterator[Span]:
    """Yield each turn, which ends with its last line, and what the model took of it."""
    seen: dict[str, list[Event]] = {}
    for event in events:
        if "turn" in event:
            seen.setdefault(name_of("Turn", event), []).append(event)
    for name, lines in seen.items():
        (replied,) = (event for event in lines if event["type"] == "Replied")
        yield Span("Turn", name, clock(lines[0]), clock(lines[-1]), None, name_of("Run", lines[0]))
        end = clock(replied)
        yield Span("Model", f"{name} model", end - replied["seconds"], end, replied["seconds"], name)


@pytest.fixture
def traced(new_repo: NewRepo) -> list[Span]:
    work = [play.turn(play.call("Bash", command="sleep 0.3")), *play.MENDED, play.submit()]
    script = [
        {**play.findings(), "delay": 0.2},
        play.plan("calc.py"),
        play.role("implementer", *work),
        play.verified("ev-0003"),
    ]
    repo = new_repo(play.QUICK)
    done = repo.task("--no-sandbox", play.WHOLE_CREW, script=script)
    assert done.code == 0, done.out + done.err
    return list(spans(repo.events()))


def test_each_span_lies_in_the_one_around_it(traced: list[Span]) -> None:
    by_name = {span.name: span for span in traced}
    for span in traced:
        if span.kind == "Task":
            continue
        parent = by_name[span.parent]
        assert parent.kind == AROUND[span.kind]
        assert parent.begin - 0.01 <= span.begin <= span.end <= parent.end + 0.01, span
    assert {span.kind for span in traced} == {"Task", *AROUND}


def test_what_they_took_adds_up(traced: list[Span]) -> None:
    """What a span says it took lies within its two lines, and holds all that was inside it."""
    by_name = {span.name: span for span in traced}
    for span in traced:
        timed = [other.seconds or 0 for other in inside(span, traced)]
        assert sum(timed) <= span.end - span.begin + 0.01 * (1 + len(timed)), span
        if span.seconds is not None:
            assert sum(timed) <= span.seconds + 0.01 * (1 + len(timed)), span
            assert span.seconds <= span.end - span.begin + 0.01, span
    command, reply = by_name["c3-1-1"], by_name["run 1 turn 1 model"]
    assert (command.parent, reply.parent) == ("run 3 turn 1", "run 1 turn 1")
    assert (command.seconds or 0) >= 0.3
    assert (reply.seconds or 0) >= 0.2


def inside(span: Span, traced: list[Span]) -> Iterator[Span]:
    """Yield what took its time in a span, what only counts turns left out."""
    for other in traced:
        if other.parent == span.name != other.name:
            yield from [other] if other.seconds is not None else inside(other, traced)
