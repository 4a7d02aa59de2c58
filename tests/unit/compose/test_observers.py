from pathlib import Path

import pytest

from agentflow.compose.capability import Capability, ObserverChannel, ToolChannel
from agentflow.compose.standard import EventLog
from agentflow.core.events import Event, RunEnded, RunStarted, Warned
from agentflow.core.run import RunOutcome
from agentflow.loop.agent import Surroundings
from tests.unit.compose.parts import (
    LOOK,
    TURNS,
    EndsWith,
    Gives,
    Watches,
    around,
    built,
    run,
    talk,
    untimed,
    wiring,
)
from tests.unit.loop.stage import SUBMIT, call, submit, turn


class Breaks:
    """Looks on for some events and raises at the next."""

    def __init__(self, after: int) -> None:
        self.seen = 0
        self._after = after

    def __call__(self, event: Event, /) -> None:
        self.seen += 1
        if self.seen > self._after:
            raise OSError("no\x1bspace", event)


ORDERS = ((0, 1, 2, 3, 4), (4, 3, 2, 1, 0), (3, 4, 0, 1, 2), (0, 3, 1, 4, 2))
"""Orders of five capabilities: observers behind, before and among the others."""


def working() -> tuple[Capability, ...]:
    return (talk(*TURNS), Gives(), EndsWith(SUBMIT))


def test_observers_may_be_registered_at_any_point(tmp_path: Path) -> None:
    told: list[list[Event]] = []
    for number, order in enumerate(ORDERS):
        first: list[Event] = []
        second: list[Event] = []
        given = (*working(), Watches(first.append), EventLog(record=second.append))
        root = tmp_path / str(number)
        root.mkdir()
        run(built(around(root), *(given[place] for place in order)))
        told.extend((untimed(first), untimed(second)))
    assert all(events == told[0] for events in told)
    assert isinstance(told[0][0], RunStarted)
    assert isinstance(told[0][-1], RunEnded)


def test_a_failing_observer_may_stand_anywhere(tmp_path: Path) -> None:
    told: list[list[Event]] = []
    for number, order in enumerate(ORDERS):
        first: list[Event] = []
        second: list[Event] = []
        watching = (Watches(first.append), Watches(Breaks(2)), Watches(second.append))
        given: tuple[Capability, ...] = (talk(turn(call("Look")), submit()), LooksAndEnds(), *watching)
        root = tmp_path / str(number)
        root.mkdir()
        run(built(around(root), *(given[place] for place in order)))
        told.extend((untimed(first), untimed(second)))
    assert [events for events in told if events != told[0]] == []


@pytest.mark.parametrize("after", [0, 1, 5])
def test_an_observer_that_raises_is_dropped_and_the_others_hear_of_it(
    place: Surroundings, after: int
) -> None:
    seen: list[Event] = []
    kept: list[Event] = []
    breaks = Breaks(after)
    ended = run(built(place, Watches(breaks), *working(), Watches(seen.append), EventLog(record=kept.append)))
    assert ended.outcome is RunOutcome.SUBMITTED
    assert breaks.seen == after + 1
    assert seen == kept
    warnings = [number for number, event in enumerate(seen) if isinstance(event, Warned)]
    assert warnings == [after + 1]
    warned = seen[after + 1]
    assert isinstance(warned, Warned)
    assert warned.message.startswith("Breaks is no longer called: OSError: ")
    assert "\x1b" not in warned.message


def test_all_observers_may_fail_at_once(place: Surroundings) -> None:
    kept: list[Event] = []
    failing = [Watches(Breaks(0)) for _ in range(3)]
    ended = run(built(place, *working(), *failing, EventLog(record=kept.append)))
    assert ended.outcome is RunOutcome.SUBMITTED
    assert len([event for event in kept if isinstance(event, Warned)]) == len(failing)


def stumble(event: Event) -> None:
    raise LookupError(event)


def test_failures_are_told_in_one_order(tmp_path: Path) -> None:
    told: list[list[str]] = []
    breaks, stumbles = Watches(Breaks(0)), Watches(stumble)
    for number, pair in enumerate(((breaks, stumbles), (stumbles, breaks))):
        seen: list[Event] = []
        root = tmp_path / str(number)
        root.mkdir()
        run(built(around(root), *pair, *working(), Watches(seen.append)))
        told.append([event.message.split()[0] for event in seen if isinstance(event, Warned)])
    assert told == [["Breaks", "stumble"]] * 2


class LooksAndEnds:
    def install_tools(self, tools: ToolChannel) -> None:
        tools.add(LOOK)
        tools.end_with(SUBMIT)


class BreaksOnWarnings:
    def __init__(self) -> None:
        self.messages: list[str] = []

    def __call__(self, event: Event, /) -> None:
        self.messages.extend([event.message] if isinstance(event, Warned) else [])
        if self.messages:
            raise LookupError(self.messages)


def test_one_may_fail_over_the_failure_of_another(place: Surroundings) -> None:
    seen: list[Event] = []
    ended = run(
        built(place, *working(), Watches(BreaksOnWarnings()), Watches(Breaks(0)), Watches(seen.append))
    )
    assert ended.outcome is RunOutcome.SUBMITTED
    messages = [event.message for event in seen if isinstance(event, Warned)]
    assert [message.split()[0] for message in sorted(messages)] == ["Breaks", "BreaksOnWarnings"]


def test_a_run_that_cannot_be_recorded_ends(place: Surroundings) -> None:
    seen: list[Event] = []
    agent = built(place, *working(), Watches(seen.append), EventLog(record=Breaks(1)))
    with pytest.raises(OSError, match="space"):
        run(agent)
    assert len(seen) == 1


def test_what_was_dropped_in_one_run_is_there_again_in_the_next(place: Surroundings) -> None:
    breaks = Breaks(0)
    agent = built(place, talk(*TURNS, *TURNS), Gives(), EndsWith(SUBMIT), Watches(breaks))
    run(agent)
    run(agent.replace(model=talk(*TURNS).model))
    assert breaks.seen == 2


def interrupt(event: Event) -> None:
    raise KeyboardInterrupt(event)


def test_an_interrupt_is_no_failure_of_an_observer(place: Surroundings) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(built(place, *working(), Watches(interrupt)))


class Late:
    """Registers two observers through one channel."""

    def __init__(self, events: list[Event]) -> None:
        self._events = events

    def install_observer(self, observers: ObserverChannel) -> None:
        observers.add(self._events.append)
        observers.add(self.told)

    def told(self, event: Event) -> None:
        self._events.append(event)


def test_one_capability_may_bring_several_observers(place: Surroundings) -> None:
    events: list[Event] = []
    agent = built(place, Late(events), *working())
    assert wiring(agent)["observers"] == ["list.append", "Late.told"]
    run(agent)
    assert events[::2] == events[1::2]
