"""What each role used, and the time that was waited, as the events tell it."""

from agentflow.core.events import Asked, Event, Replied, RunStarted, StoredEvent, TaskEnded
from agentflow.core.messages import Stop, Usage
from agentflow.core.task import Status
from agentflow.report.material import RoleSpending, sum_spending


def stamped(*happened: Event) -> list[StoredEvent]:
    return [
        StoredEvent(seq=seq, at="2026-01-01T00:00:00Z", event=event) for seq, event in enumerate(happened, 1)
    ]


def started(run: int, role: str) -> RunStarted:
    return RunStarted(run=run, role=role, agent=role, model="m", iteration=1)


def replied(run: int, seconds: float, cost: float | None = 0.5) -> Replied:
    usage = Usage(input=100, output=10, cost_usd=cost)
    return Replied(run=run, turn=1, text="", calls=0, stop=Stop.END_TURN, usage=usage, seconds=seconds)


ENDED = TaskEnded(status=Status.VERIFIED, exit_code=0, reason="", seconds=10.0)


def test_each_role_has_what_its_runs_used() -> None:
    told = stamped(
        *(started(1, "implementer"), Asked(run=1, turn=0), replied(1, 2)),
        *(started(2, "verifier"), Asked(run=2, turn=0), replied(2, 1, None)),
        *(started(3, "implementer"), Asked(run=3, turn=0), replied(3, 3), ENDED),
    )
    spent = sum_spending(told, 5)
    assert spent.roles == (
        RoleSpending(
            role="implementer", requests=2, usage=Usage(input=200, output=20, cost_usd=1.0), seconds=5
        ),
        RoleSpending(role="verifier", requests=1, usage=Usage(input=100, output=10), seconds=1),
    )
    assert (spent.seconds, spent.model, spent.own) == (15, 6, 9)


def test_runs_that_wait_side_by_side_are_waited_for_once() -> None:
    told = stamped(
        *(started(1, "reviewer"), started(2, "verifier"), Asked(run=1, turn=0), Asked(run=2, turn=0)),
        *(replied(1, 2), Asked(run=1, turn=1), replied(2, 3), replied(1, 2), ENDED),
    )
    assert (sum_spending(told).model, sum_spending(told).own) == (4, 6)


def test_a_task_that_asked_nobody_spent_nothing() -> None:
    assert sum_spending(stamped(ENDED)).roles == ()
