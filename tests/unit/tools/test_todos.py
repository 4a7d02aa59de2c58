from typing import Any

import pytest

from agentflow.core.errors import InvalidInput
from agentflow.core.role import Todo, TodoStatus
from agentflow.core.tool import Output
from agentflow.parse import Mismatch
from agentflow.tools.todos import TODO_WRITE, make_todo_update
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
    noted = bench(TODO_WRITE, todos=[*items, todo("third", "in_progress", id=1)]).changes["todos"]
    assert [(each["id"], each["title"]) for each in noted] == [(2, "step 1"), (3, "step 2"), (1, "third")]


def test_the_acknowledgement_is_short(bench: Bench) -> None:
    output = bench(TODO_WRITE, todos=[todo("x" * 5000, "blocked") for _ in range(20)])
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
        ([todo("a"), todo("b", "blocked")], "work remains, so one todo has to be in_progress, such as 1"),
        ([todo("a", "blocked") for _ in range(21)], "at most 20 todos, not 21"),
        ([todo("  ")], r"todos\[0\]: title is missing"),
        ([{"status": "pending"}], r"todos\[0\]: title is missing"),
    ],
)
def test_lists_that_break_a_rule_are_refused(bench: Bench, todos: list[Any], problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        bench(TODO_WRITE, todos=todos)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("in progress", "in_progress"),
        ("In-Progress", "in_progress"),
        ("doing", "in_progress"),
        ("done", "completed"),
        ("complete", "completed"),
        ("stuck", "blocked"),
        ("todo", "pending"),
    ],
)
def test_usual_words_for_a_status_are_taken(bench: Bench, said: str, meant: str) -> None:
    bench.ledger = Records(a_record("ev-0001"))
    items = [todo("a", said, evidence="ev-0001"), *([todo("b", "in_progress")] * (meant == "pending"))]
    assert bench(TODO_WRITE, todos=items).changes["todos"][0]["status"] == meant


SAVED = (
    Todo(id=3, title="first", status=TodoStatus.IN_PROGRESS),
    Todo(id=4, title="stuck", status=TodoStatus.BLOCKED),
    Todo(id=5, title="last", status=TodoStatus.PENDING),
)


def statuses(output: Output) -> dict[int, str]:
    return {each["id"]: each["status"] for each in output.changes["todos"]}


def test_the_current_todo_ends_and_the_next_begins(bench: Bench) -> None:
    bench.ledger = Records(a_record("ev-0001"))
    update = make_todo_update(SAVED)
    output = bench(update, status="done", evidence="ev-0001")
    assert statuses(output) == {3: "completed", 4: "blocked", 5: "in_progress"}
    assert output.content == "todo 3 completed; todo 5 is in progress"
    assert statuses(bench(update, status="blocked")) == {3: "completed", 4: "blocked", 5: "blocked"}
    with pytest.raises(InvalidInput, match="no todo is in progress"):
        bench(update, status="blocked")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"status": "completed"}, "todo 3: completed needs the id of its evidence"),
        ({"status": "completed", "evidence": "../x/ev-0001"}, "there is no evidence"),
        ({"status": "pending"}, "only completed or blocked ends it"),
        ({"status": "in_progress"}, "only completed or blocked ends it"),
    ],
)
def test_an_update_that_breaks_a_rule_is_refused(bench: Bench, given: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        bench(make_todo_update(SAVED), **given)


@pytest.mark.parametrize("item", [todo("a", "gone"), todo("a", id=0), todo("a", owner="me"), {"title": "a"}])
def test_items_of_another_shape_are_refused(bench: Bench, item: dict[str, Any]) -> None:
    with pytest.raises(Mismatch):
        bench(TODO_WRITE, todos=[item])
