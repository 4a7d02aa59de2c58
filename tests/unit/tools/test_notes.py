from typing import Any

import pytest

from agentflow.core.errors import InvalidInput
from agentflow.parse import Mismatch
from agentflow.tools.notes import TODO_WRITE
from tests.unit.tools.bench import Bench, Records, a_record


def todo(title: str, status: str = "pending", **more: Any) -> dict[str, Any]:
    return {"title": title, "status": status, **more}


def test_todos_become_the_tasks_todos(bench: Bench) -> None:
    bench.ledger = Records(a_record("ev-0001"))
    output = bench(
        TODO_WRITE,
        todos=[
            todo("read", "completed", id=7, evidence="ev-0001"),
            todo("write", "in_progress", id=1),
            todo("wait", "blocked", id=2),
        ],
    )
    assert output.changes == {
        "todos": [
            {"id": 7, "title": "read", "status": "completed", "evidence": "ev-0001"},
            {"id": 1, "title": "write", "status": "in_progress", "evidence": None},
            {"id": 2, "title": "wait", "status": "blocked", "evidence": None},
        ]
    }
    assert output.content == "3 todos noted"


def test_the_public_shape_is_taken_and_numbered(bench: Bench) -> None:
    items = [{"content": f"step {n}", "status": "pending", "activeForm": "doing"} for n in (1, 2)]
    noted = bench(TODO_WRITE, todos=[*items, todo("third", id=1)]).changes["todos"]
    assert [(each["id"], each["title"]) for each in noted] == [(2, "step 1"), (3, "step 2"), (1, "third")]


def test_the_acknowledgement_is_short(bench: Bench) -> None:
    output = bench(TODO_WRITE, todos=[todo("x" * 500) for _ in range(1000)])
    assert len(output.content) <= 80
    assert bench(TODO_WRITE, todos=[]).changes == {"todos": []}


@pytest.mark.parametrize(
    ("todos", "problem"),
    [
        ([todo("a", id=1), todo("b", id=1)], "id 1 stands 2 times"),
        ([todo("a", "in_progress"), todo("b", "in_progress")], "only one todo may be in_progress, not 1, 2"),
        ([todo("a", "completed")], "todo 1: completed needs the id of its evidence"),
        ([todo("a", "completed", evidence="ev-9999")], "todo 1: there is no evidence ev-9999"),
        ([todo("a", "completed", evidence="")], "todo 1: there is no evidence"),
        ([todo("a", evidence="ev-9999")], "there is no evidence"),
        ([todo("  ")], r"todos\[0\]: title is missing"),
        ([{"status": "pending"}], r"todos\[0\]: title is missing"),
    ],
)
def test_lists_that_break_a_rule_are_refused(bench: Bench, todos: list[Any], problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        bench(TODO_WRITE, todos=todos)


@pytest.mark.parametrize("item", [todo("a", "done"), todo("a", id=0), todo("a", owner="me"), {"title": "a"}])
def test_items_of_another_shape_are_refused(bench: Bench, item: dict[str, Any]) -> None:
    with pytest.raises(Mismatch):
        bench(TODO_WRITE, todos=[item])
