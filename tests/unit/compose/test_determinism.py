from pathlib import Path

from agentflow.compose.builder import AgentBuilder
from agentflow.compose.capability import Capability
from agentflow.core.events import Event
from agentflow.loop.agent import Surroundings
from tests.unit.compose.parts import (
    PEEK,
    TURNS,
    EndsWith,
    Gives,
    Hooked,
    Makes,
    Watches,
    a_hook,
    around,
    built,
    parts_of,
    peek,
    run,
    talk,
    untimed,
)
from tests.unit.compose.wiring import wiring
from tests.unit.loop.stage import SUBMIT, a_role


def unrelated(seen: list[Event]) -> tuple[Capability, ...]:
    """Return capabilities of which none has to do with another."""
    return (
        talk(*TURNS),
        Gives(),
        EndsWith(SUBMIT),
        Hooked((a_hook("one"),)),
        Watches(seen.append),
    )


def test_two_builds_are_equal_and_independent(place: Surroundings) -> None:
    seen: list[Event] = []
    builder = AgentBuilder.base(a_role(), place)
    for capability in (*unrelated(seen), Makes(peek)):
        builder = builder.with_capability(capability)
    first, second = builder.build(), builder.build()
    assert parts_of(first) == parts_of(second)
    assert first is not second
    assert first.observe is not second.observe
    assert hash(first.observe) == hash(second.observe)
    assert first.observe != print
    assert parts_of(first) != parts_of(first.replace(tools=(PEEK,)))


def test_unrelated_capabilities_may_stand_in_any_order(place: Surroundings) -> None:
    given = (*unrelated([]), Makes(lambda settled: PEEK if settled.tools else SUBMIT))
    turned = (given[number:] + given[:number] for number in range(len(given)))
    orders = [*turned, given[::-1]]
    expected = wiring(built(place, *given))
    assert [order for order in orders if wiring(built(place, *order)) != expected] == []


def test_equal_builds_run_alike(tmp_path: Path) -> None:
    told = []
    for number in range(2):
        seen: list[Event] = []
        root = tmp_path / str(number)
        root.mkdir()
        run(built(around(root), *unrelated(seen)))
        told.append(untimed(seen))
    assert told[0] == told[1]
    assert len(told[0]) > 10
