import ast
import dataclasses
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agentflow
from agentflow.compose.builder import AgentBuilder
from agentflow.compose.capability import Capability
from agentflow.compose.standard import (
    FIRST,
    LAST,
    Kit,
    RolePrompt,
    Submission,
    describe_capabilities,
    list_standard_capabilities,
)
from agentflow.core.errors import ConfigError, ModelRejected
from agentflow.core.events import Event
from agentflow.core.role import Role
from agentflow.core.routing import PIPELINE
from agentflow.core.run import RunOutcome
from agentflow.library.roles import read_role
from agentflow.loop.agent import Surroundings
from agentflow.loop.prompts import read_prompt
from agentflow.model.tiers import choose_model_id
from agentflow.settings import find_bundled
from agentflow.tools.registry import SUBMITS, make_standard_toolbox
from tests.unit.compose.parts import (
    LOOK,
    PEEK,
    TURNS,
    EndsWith,
    Gives,
    Hooked,
    Makes,
    Says,
    Watches,
    a_hook,
    around,
    built,
    parts_of,
    peek,
    run,
    talk,
    untimed,
    wiring,
)
from tests.unit.loop.stage import SUBMIT, a_role, script


def kit(*events: Event) -> Kit:
    return Kit(
        model=script(*TURNS),
        models={"fast": "small-1"},
        toolbox=make_standard_toolbox(),
        events=list(events).append,
        hooks=(a_hook("house"),),
    )


def shipped(part: str) -> Role:
    return read_role(find_bundled("agents") / f"{part}.md", "bundled")[0]


def test_the_builder_has_four_public_names() -> None:
    public = {name for name in dir(AgentBuilder) if not name.startswith("_")}
    assert public == {"base", "standard", "with_capability", "build"}


def test_base_has_no_opinions(place: Surroundings) -> None:
    assert wiring(AgentBuilder.base(a_role(), place).build()) == {
        "role": "builder",
        "model": "none",
        "model_id": "none",
        "system": "e3b0c44298fc",
        "tools": [],
        "submit": None,
        "hooks": [],
        "records": [],
        "observers": [],
    }


def test_an_agent_without_a_model_says_so_when_it_is_run(place: Surroundings) -> None:
    agent = built(place, Gives())
    with pytest.raises(ModelRejected, match="no model is installed for builder"):
        run(agent)
    assert agent.model.explain_refusal("anything") == "no model is installed"


def test_a_builder_is_never_changed(place: Surroundings) -> None:
    bare = AgentBuilder.base(a_role(), place)
    first, second = bare.with_capability(Gives()), bare.with_capability(Says("Be brief."))
    assert wiring(bare.build())["tools"] == []
    assert wiring(first.build())["tools"] == ["Look"]
    assert wiring(second.build())["tools"] == []
    with pytest.raises(dataclasses.FrozenInstanceError):
        bare._capabilities = (Gives(),)  # type: ignore[misc]


RECALLING = ("implementer", "reviewer", "verifier")


@pytest.mark.parametrize("part", PIPELINE)
def test_standard_is_base_with_the_printed_list(part: str, place: Surroundings) -> None:
    role, given = shipped(part), kit()
    standard_agent = AgentBuilder.standard(role, place, given).build()
    by_hand = AgentBuilder.base(role, place)
    for capability in list_standard_capabilities(role, given):
        by_hand = by_hand.with_capability(capability)
    assert parts_of(by_hand.build()) == parts_of(standard_agent)
    assert wiring(by_hand.build()) == wiring(standard_agent)
    assert describe_capabilities(list_standard_capabilities(role, given)) == (
        "UseModel: model",
        "RolePrompt: context",
        "RoleTools: tools",
        *(("RecallOutputs: tools",) if part in RECALLING else ()),
        "UseSkills: tools, context",
        "Submission: tools, context",
        "UseHooks: hooks",
        "EventLog: observer",
    )


@pytest.mark.parametrize("part", PIPELINE)
def test_a_standard_agent_has_what_its_role_file_says(part: str, place: Surroundings) -> None:
    role, given = shipped(part), kit()
    agent = AgentBuilder.standard(role, place, given).build()
    granted = {"RecallOutput"} if part in RECALLING else set()
    own = {tool.name for tool in make_standard_toolbox().select_for(role)}
    assert {tool.name for tool in agent.tools} == own | granted
    assert agent.submit is make_standard_toolbox().find(SUBMITS[part])
    assert agent.system.startswith(role.prompt[:60])
    assert SUBMITS[part] in agent.system.removeprefix(role.prompt)
    assert (agent.model, agent.model_id) == (given.model, choose_model_id(role.model, given.models))
    assert [hook.name for hook in agent.hooks.hooks] == ["house"]


def test_a_role_of_no_part_submits_nothing(place: Surroundings) -> None:
    role = a_role().replace(part=None, tools=())
    agent = AgentBuilder.standard(role, place, kit()).build()
    assert (agent.tools, agent.submit, agent.system) == ((), None, role.prompt)


def test_a_later_capability_goes_on_top_of_standard(place: Surroundings) -> None:
    builder = AgentBuilder.standard(shipped("planner"), place, kit())
    other = builder.with_capability(talk(*TURNS)).with_capability(Gives())
    assert wiring(other.build())["model_id"] == "m-1"
    assert "Look" in wiring(other.build())["tools"]
    assert wiring(builder.build())["model_id"] != "m-1"


def test_two_tools_that_end_the_run_are_refused(place: Surroundings) -> None:
    with pytest.raises(ConfigError, match="one tool, not with SubmitChange, SubmitOther"):
        built(place, EndsWith(SUBMIT), EndsWith(SUBMIT.replace(name="SubmitOther")))


def test_two_runs_of_one_agent_share_nothing(place: Surroundings) -> None:
    seen: list[Event] = []
    first = built(place, talk(*TURNS, *TURNS), Gives(), EndsWith(SUBMIT), Watches(seen.append))
    one = run(first)
    count = len(seen)
    one.changes["todos"] = [{"id": 1, "title": "mine", "status": "pending"}]
    two = run(first.replace(around=place.replace(number=2), model=script(*TURNS)))
    assert (one.outcome, two.outcome) == (RunOutcome.SUBMITTED, RunOutcome.SUBMITTED)
    assert "todos" not in two.changes
    assert (two.turns, two.tool_calls, two.head.run) == (one.turns, one.tool_calls, 2)
    assert {getattr(event, "run", 2) for event in seen[count:]} == {2}


def test_only_the_builder_makes_agents() -> None:
    package = Path(agentflow.__file__).parent
    makers = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Agent"
    }
    assert makers == {"compose/builder.py"}


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


EQUAL = 20
PRIORITIES = st.lists(st.integers(min_value=-3, max_value=3), max_size=30)


def expected(priorities: list[int]) -> list[str]:
    """Return names by priority, the highest first, and by their place among equals."""
    places = sorted(range(len(priorities)), key=lambda place: (-priorities[place], place))
    return [f"n{place}" for place in places]


@settings(deadline=None)
@given(priorities=PRIORITIES)
def test_hooks_stand_by_priority_then_by_insertion(priorities: list[int]) -> None:
    hooks = [Hooked((a_hook(f"n{place}", priority),)) for place, priority in enumerate(priorities)]
    assert wiring(built(around(Path()), *hooks))["hooks"] == expected(priorities)


@settings(deadline=None)
@given(priorities=PRIORITIES)
def test_sections_stand_by_priority_then_by_insertion(priorities: list[int]) -> None:
    sections = [Says(f"n{place}", priority) for place, priority in enumerate(priorities)]
    assert built(around(Path()), *sections).system.split() == expected(priorities)


def test_equal_priorities_keep_their_order(place: Surroundings) -> None:
    one_by_one = [Hooked((a_hook(f"n{number}", 7),)) for number in range(EQUAL)]
    at_once = Hooked(tuple(a_hook(f"n{number}", 7) for number in range(EQUAL)))
    names = [f"n{number}" for number in range(EQUAL)]
    assert wiring(built(place, *one_by_one))["hooks"] == names
    assert wiring(built(place, at_once))["hooks"] == names


def test_tools_stand_by_name_whatever_the_order(place: Surroundings) -> None:
    names = [wiring(built(place, Gives(pair)))["tools"] for pair in ((LOOK, PEEK), (PEEK, LOOK))]
    assert names == [["Look", "Peek"], ["Look", "Peek"]]


def test_the_role_comes_first_and_the_submission_last_whatever_the_order(place: Surroundings) -> None:
    role = a_role()
    parts = (Submission(tool=SUBMIT), Says("In between."), RolePrompt(role=role))
    protocol = read_prompt("protocol.md").format(submit=SUBMIT.name)
    for order in (parts, parts[::-1]):
        assert built(place, *order).system == f"{role.prompt}\n\nIn between.\n\n{protocol}"
    assert FIRST > 0 > LAST
