"""Numbers over recorded tasks, from their events alone."""

import time
from pathlib import Path

from agentflow.core.events import Classified, Event, Replied, RunStarted, TaskEnded, ToolBlocked, ToolStarted
from agentflow.core.messages import Stop, Usage
from agentflow.core.task import Complexity, Phase, Status, TaskState
from agentflow.pages.stats import ResultKind, read_stats
from agentflow.store.tasks import TaskStore


def record(root: Path, task_id: str, route: str, status: Status | None, *more: Event) -> None:
    state = TaskState(task_id=task_id, task="t", started_at="", max_iterations=3, model="m")
    store = TaskStore.create(root, state)
    store.emit(
        Classified(
            complexity=Complexity.TRIVIAL, route=route, score=0, reasons=(), steps=(Phase.IMPLEMENTATION,)
        )
    )
    for event in more:
        store.emit(event)
    if status is not None:
        store.emit(TaskEnded(status=status, exit_code=0, reason="", seconds=30))


def a_run(number: int, role: str, iteration: int) -> RunStarted:
    return RunStarted(run=number, role=role, agent=role, model="m", iteration=iteration)


def a_reply(cost: float | None) -> Replied:
    usage = Usage(input=100, output=20, cost_usd=cost)
    return Replied(run=1, turn=1, text="", calls=1, stop=Stop.TOOL_USE, usage=usage, seconds=1)


def a_call(number: int, tool: str) -> ToolStarted:
    return ToolStarted(run=1, call_id=str(number), tool=tool, subject="")


def blocked(number: int, owner: str | None) -> ToolBlocked:
    return ToolBlocked(run=1, call_id=str(number), tool="Edit", role="planner", owner=owner, reason="no")


def test_three_recorded_tasks_give_their_numbers(tmp_path: Path) -> None:
    runs = (a_run(1, "implementer", 1), a_run(2, "implementer", 2), a_run(3, "implementer", 3))
    calls = (a_call(1, "Read"), a_call(2, "Edit"), a_call(3, "Read"))
    record(tmp_path, "20260105T000000Z-aaaa", "direct", Status.VERIFIED, *runs, *calls, a_reply(0.25))
    refused = (blocked(4, "implementer"), blocked(5, None), blocked(6, None), blocked(7, None))
    record(
        tmp_path,
        "20260111T235959Z-bbbb",
        "direct",
        Status.FAILED,
        a_run(1, "explorer", 1),
        *refused,
        a_reply(None),
    )
    record(tmp_path, "20260119T000000Z-cccc", "quick_fix", None)
    (tmp_path / ".claude/agentflow/20260120T000000Z-dddd").mkdir()
    (tmp_path / ".claude/agentflow/20260120T000000Z-dddd/events.jsonl").write_text(
        '{"seq":1,"at":"","type":"TaskEnded"}\n'
    )
    found = read_stats([tmp_path])
    assert found.total.tasks == 3
    assert found.total.came == {
        **dict.fromkeys(ResultKind, 0),
        ResultKind.VERIFIED: 1,
        ResultKind.NOT_VERIFIED: 1,
        ResultKind.OPEN: 1,
    }
    assert (found.total.attempts, found.total.runs, found.total.tokens) == (5, 4, 240)
    assert (found.total.cost_usd, found.total.unpriced, found.total.seconds) == (0.25, 1, 60)
    assert [(week.name, week.tasks) for week in found.weeks] == [
        ("2026-01-05", 2),
        ("2026-01-12", 0),
        ("2026-01-19", 1),
    ]
    assert [(route.name, route.tasks) for route in found.routes] == [("direct", 2), ("quick fix", 1)]
    assert found.tools == {"Read": 2, "Edit": 1}
    assert found.refused == 4
    assert found.unreadable == ("20260120T000000Z-dddd",)
    assert found.notes == (
        "act: 3.0 attempts a task, more than 1.5",
        "act: 57% of the tool calls were refused, more than 30%",
        "look: 1 refused call of a tool that another role has",
    )


def test_a_repository_without_tasks_has_numbers_too(tmp_path: Path) -> None:
    found = read_stats([tmp_path])
    assert (found.total.tasks, found.weeks, found.routes, found.notes) == (0, (), (), ())


def test_a_thousand_tasks_take_about_a_second(tmp_path: Path) -> None:
    record(
        tmp_path,
        "20260105T000000Z-0000",
        "direct",
        Status.VERIFIED,
        *(a_call(each, "Read") for each in range(60)),
    )
    first = tmp_path / ".claude/agentflow/20260105T000000Z-0000/events.jsonl"
    for number in range(1, 1000):
        folder = first.parent.with_name(f"20260105T000000Z-{number:04x}")
        folder.mkdir()
        (folder / first.name).hardlink_to(first)
    begin = time.process_time()
    assert read_stats([tmp_path]).total.tasks == 1000
    assert time.process_time() - begin < 4
