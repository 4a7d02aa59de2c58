from itertools import permutations

import pytest

from agentflow.compose.capability import Capability, Settled
from agentflow.core.errors import ConfigError
from agentflow.core.tool import Output, Tool, ToolContext
from agentflow.loop.agent import Surroundings
from tests.unit.compose.parts import LOOK, PEEK, TURNS, EndsWith, Gives, Makes, built, peek, run, talk
from tests.unit.compose.wiring import wiring
from tests.unit.loop.stage import SUBMIT, Wanted, a_tool, call, submit, turn


class Keeps:
    """A factory that keeps what it was given."""

    def __init__(self, name: str = "Peek") -> None:
        self.given: list[Settled] = []
        self._name = name

    def __call__(self, settled: Settled, /) -> Tool:
        self.given.append(settled)
        return PEEK.replace(name=self._name)


def test_a_factory_registered_first_sees_the_final_model_and_tools(place: Surroundings) -> None:
    keeps, final = Keeps(), talk(*TURNS)
    built(place, Makes(keeps), talk(), Gives(), final, EndsWith(SUBMIT))
    (settled,) = keeps.given
    assert settled.model is final.model
    assert settled.model_id == "m-1"
    assert settled.tools == (LOOK, SUBMIT)


def test_wherever_a_factory_stands_it_sees_the_same(place: Surroundings) -> None:
    keeps = Keeps()
    given: tuple[Capability, ...] = (Makes(keeps), talk(*TURNS), Gives(), EndsWith(SUBMIT))
    agents = [built(place, *order) for order in permutations(given)]
    assert keeps.given == [keeps.given[0]] * 24
    assert [agent for agent in agents if agent.tools != (LOOK, PEEK, SUBMIT)] == []


def test_a_factory_does_not_see_what_another_made(place: Surroundings) -> None:
    first, second = Keeps("Peek"), Keeps("Stare")
    agent = built(place, Makes(first), Makes(second), Gives())
    assert first.given == second.given
    assert wiring(agent)["tools"] == ["Look", "Peek", "Stare"]


def test_a_factory_runs_once_for_each_build(place: Surroundings) -> None:
    keeps = Keeps()
    for number in (1, 2):
        built(place, Makes(keeps))
        assert len(keeps.given) == number


def test_a_factory_cannot_replace_a_tool(place: Surroundings) -> None:
    for order in ((Gives(), Makes(Keeps("Look"))), (Makes(Keeps("Look")), Gives())):
        with pytest.raises(ConfigError, match="two tools are named Look"):
            built(place, *order)


def test_a_tool_from_a_factory_is_offered_and_run(place: Surroundings) -> None:
    def ask(wanted: Wanted, context: ToolContext) -> Output:
        """Say which model answers."""
        return Output(content=f"{names[-1]} for {wanted.word}{context.task_id}")

    def factory(settled: Settled) -> Tool:
        names.append(settled.model.name)
        return a_tool("Ask", ask)

    names: list[str] = []
    agent = built(place, Makes(factory), talk(turn(call("Ask")), submit()), EndsWith(SUBMIT), Makes(peek_at))
    ended = run(agent)
    assert [spec.name for spec in ended.head.tools] == ["Ask", "Peek", "SubmitChange"]
    assert any("script:memory for xt" in str(message.parts) for message in ended.messages)


def peek_at(settled: Settled) -> Tool:
    return peek(settled).replace(input=Wanted)
