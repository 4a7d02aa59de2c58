from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from agentflow.compose.standard import FIRST, LAST, RolePrompt, Submission
from agentflow.loop.agent import Surroundings
from agentflow.loop.prompts import prompt_text
from tests.unit.compose.parts import LOOK, PEEK, Gives, Hooked, Says, a_hook, around, built
from tests.unit.compose.wiring import wiring
from tests.unit.loop.stage import SUBMIT, a_role

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
    protocol = prompt_text("protocol.md").format(submit=SUBMIT.name)
    for order in (parts, parts[::-1]):
        assert built(place, *order).system == f"{role.prompt}\n\nIn between.\n\n{protocol}"
    assert FIRST > 0 > LAST
