"""Which steps of a plan are carried out at the same time."""

import pytest

from agentflow.core.role import Plan, PlanStep, find_overlaps, list_waves

Given = tuple[str, tuple[int, ...] | None]


def plan(*given: Given) -> Plan:
    steps = (PlanStep(title="t", files=tuple(files.split()), after=after) for files, after in given)
    return Plan(summary="s", steps=tuple(steps), acceptance=(), risks=())


@pytest.mark.parametrize(
    ("given", "waves"),
    [
        ([], ()),
        ([("a", ()), ("b", ()), ("c", ())], ((1, 2, 3),)),
        ([("a", None), ("b", None)], ((1,), (2,))),
        ([("a", ()), ("b", ()), ("c", None), ("d", ())], ((1, 2, 4), (3,))),
        ([("a", ()), ("b", (1,)), ("c", (1,)), ("d", (2, 3))], ((1,), (2, 3), (4,))),
        ([("a", ()), ("./a", ())], ((1,), (2,))),
        ([("src/", ()), ("src/a.py", ()), ("srcs", ())], ((1, 3), (2,))),
        ([("src/a.py", ()), ("src", ())], ((1,), (2,))),
        ([("", ()), ("b", ())], ((1,), (2,))),
        ([("a", (2,)), ("b", ())], ((1, 2),)),
    ],
)
def test_steps_wait_for_what_they_need(given: list[Given], waves: tuple[tuple[int, ...], ...]) -> None:
    assert list_waves(plan(*given)) == waves


def test_a_common_file_of_steps_that_do_not_follow_each_other_is_named() -> None:
    assert list(find_overlaps(plan(("a", ()), ("a b", ()), ("b", (2,)), ("", ())))) == [(1, 2)]
    assert list(find_overlaps(plan(("a", ()), ("b", (1,)), ("a", (2,))))) == []
    assert list(find_overlaps(plan(("a", None), ("a", None)))) == []
