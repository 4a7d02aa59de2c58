from collections.abc import Mapping
from itertools import permutations
from typing import Any

import pytest

from agentflow.compose import capability as channels
from agentflow.compose.builder import AgentBuilder
from agentflow.compose.capability import CHANNELS, Capability, FactoryInput, list_channels
from agentflow.core.errors import ConfigError
from agentflow.core.tool import Output, Tool, ToolContext
from agentflow.loop.agent import Surroundings
from tests.unit.compose.parts import (
    LOOK,
    PEEK,
    TURNS,
    EndsWith,
    Everything,
    Gives,
    Makes,
    Says,
    a_hook,
    built,
    peek,
    run,
    talk,
    wiring,
)
from tests.unit.loop.stage import SUBMIT, Wanted, a_role, a_tool, call, script, submit, turn

NARROW: Mapping[str, type] = {
    "tools": channels.ToolChannel,
    "hooks": channels.HookChannel,
    "model": channels.ModelChannel,
    "context": channels.ContextChannel,
    "tool_factories": channels.ToolFactoryChannel,
    "observer": channels.ObserverChannel,
}


def test_a_capability_of_all_six_is_asked_once_for_each_in_the_fixed_order(place: Surroundings) -> None:
    everything = Everything()
    agent = built(place, everything)
    assert tuple(name for name, _ in everything.handed) == CHANNELS
    assert list_channels(everything) == CHANNELS
    shown = wiring(agent)
    assert (shown["tools"], shown["hooks"], shown["model_id"]) == (["Look", "Peek"], ["all"], "m-2")
    assert (agent.system, len(shown["observers"])) == ("Look twice.", 1)


def test_each_channel_shows_its_own_methods_only(place: Surroundings) -> None:
    everything = Everything()
    built(place, everything)
    for name, channel in everything.handed:
        public = {each for each in dir(channel) if not each.startswith("_")}
        assert public == {each for each in vars(NARROW[name]) if not each.startswith("_")}, name
        held = vars(channel).values()
        assert not [value for value in held if isinstance(value, AgentBuilder | Everything)], name


def test_a_channel_that_was_kept_leads_nowhere_afterwards(place: Surroundings) -> None:
    everything = Everything()
    agent = built(place, everything)
    before, kept = wiring(agent), dict(everything.handed)
    kept["tools"].add(PEEK)
    kept["tools"].end_with(SUBMIT)
    kept["hooks"].add(a_hook("late"))
    kept["model"].use(script(), "late")
    kept["context"].add("late")
    kept["tool_factories"].add(lambda _: SUBMIT)
    kept["observer"].add(print)
    kept["observer"].keep(print)
    assert wiring(agent) == before


class InstallsNothing:
    """Looks like a capability to nobody."""


class Misspelled:
    def install_tool(self, tools: channels.ToolChannel) -> None:
        tools.add(LOOK)


class HalfMisspelled(Misspelled):
    def install_tools(self, tools: channels.ToolChannel) -> None:
        tools.add(LOOK)


class NotAMethod:
    install_hooks = 3


@pytest.mark.parametrize(
    ("stranger", "problem"),
    [
        (InstallsNothing(), "InstallsNothing is not a capability: it installs nothing"),
        (Misspelled(), "Misspelled is not a capability: install_tool leads to no channel"),
        (HalfMisspelled(), "HalfMisspelled is not a capability: install_tool leads to no channel"),
        (NotAMethod(), "NotAMethod is not a capability: install_hooks leads to no channel"),
        (None, "NoneType is not a capability: it installs nothing"),
    ],
)
def test_what_is_no_capability_is_refused_at_once(place: Surroundings, stranger: Any, problem: str) -> None:
    builder = AgentBuilder.base(a_role(), place)
    with pytest.raises(ConfigError) as caught:
        builder.with_capability(stranger)
    assert str(caught.value) == problem
    assert all(f"install_{name}" in caught.value.hint for name in CHANNELS)
    assert builder == AgentBuilder.base(a_role(), place)


def test_a_capability_may_use_two_channels(place: Surroundings) -> None:
    agent = built(place, Everything(), Says("Third."), EndsWith(SUBMIT))
    assert agent.submit is SUBMIT
    assert wiring(agent)["tools"] == ["Look", "Peek", "SubmitChange"]


def test_two_tools_of_one_name_are_refused(place: Surroundings) -> None:
    with pytest.raises(ConfigError, match="two tools are named Look"):
        built(place, Gives(), Gives((LOOK.replace(input=SUBMIT.input),)))


def call_others(tools: channels.ToolChannel) -> None:
    """Hold strict types to each channel's own methods: mypy refuses an `ignore` that nothing needs."""
    tools.add(LOOK)
    tools.hooks()  # type: ignore[attr-defined]
    tools.build()  # type: ignore[attr-defined]


class Broad:
    def install_tools(self, builder: AgentBuilder) -> None: ...


NO_CAPABILITY: Capability = InstallsNothing()  # type: ignore[assignment]
TOO_BROAD: Capability = Broad()  # type: ignore[assignment]
FITTING: Capability = Everything()


class Keeps:
    """A factory that keeps what it was given."""

    def __init__(self, name: str = "Peek") -> None:
        self.given: list[FactoryInput] = []
        self._name = name

    def __call__(self, settled: FactoryInput, /) -> Tool:
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

    def factory(settled: FactoryInput) -> Tool:
        names.append(settled.model.name)
        return a_tool("Ask", ask)

    names: list[str] = []
    agent = built(place, Makes(factory), talk(turn(call("Ask")), submit()), EndsWith(SUBMIT), Makes(peek_at))
    ended = run(agent)
    assert [spec.name for spec in ended.head.tools] == ["Ask", "Peek", "SubmitChange"]
    assert any("script:memory for xt" in str(message.parts) for message in ended.messages)


def peek_at(settled: FactoryInput) -> Tool:
    return peek(settled).replace(input=Wanted)
